//! From the TOML document to the [`Scenario`], table by table in the order of the file.

mod path;
mod traffic;
mod transport;

use headstart_link::Span;

use crate::reader::{Key, Source, Table};
use crate::{
    Case, CaseKind, Client, Compare, Fault, Listed, Parameter, Scenario, ScenarioError, Server,
    Transfer,
};

const NAME: Key = Key {
    name: "name",
    example: "\"satellite\"",
};
const DESCRIPTION: Key = Key {
    name: "description",
    example: "\"a satellite path\"",
};
const SEED: Key = Key {
    name: "seed",
    example: "1",
};
const PATH: Key = Key {
    name: "path",
    example: "[path]",
};
const TRANSFER: Key = Key {
    name: "transfer",
    example: "[transfer]",
};
const COMPARE: Key = Key {
    name: "compare",
    example: "[compare]",
};
const CASE: Key = Key {
    name: "case",
    example: "[[case]]",
};
const STARTUP: Key = Key {
    name: "startup",
    example: "[startup.su_fast_start]",
};

const SERVER: Key = Key {
    name: "server",
    example: "\"nginx\"",
};
const CLIENT: Key = Key {
    name: "client",
    example: "\"curl\"",
};

const STARTUPS: Key = Key {
    name: "startups",
    example: "[\"cubic\", \"su_fast_start\"]",
};
const REPEAT: Key = Key {
    name: "repeat",
    example: "10",
};

const KIND: Key = Key {
    name: "kind",
    example: "\"new-cold\"",
};
const BYTES: Key = Key {
    name: "bytes",
    example: "\"50KiB\"",
};
const WARM_BYTES: Key = Key {
    name: "warm_bytes",
    example: "\"2MB\"",
};
const IDLE: Key = Key {
    name: "idle",
    example: "\"10s\"",
};

/// What `seed` is when the file says nothing.
const DEFAULT_SEED: u64 = 1;

/// Reads the scenario `text` of the file called `file`.
pub(crate) fn scenario(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
    let source = Source { file, text };
    let document = source.document()?;
    let top = Table::top(source, &document);
    top.only(&[
        NAME,
        DESCRIPTION,
        SEED,
        PATH,
        TRANSFER,
        COMPARE,
        CASE,
        STARTUP,
        traffic::TRANSPORT,
        traffic::SIMULATION,
        traffic::LINK,
        traffic::TRAFFIC,
    ])?;
    let name = top.need(NAME)?.words(NAME)?.to_owned();
    let description = match top.get(DESCRIPTION) {
        Some(description) => description.text()?.to_owned(),
        None => String::new(),
    };
    let seed = match top.get(SEED) {
        Some(seed) => seed.whole(0, i64::MAX.cast_unsigned())?,
        None => DEFAULT_SEED,
    };
    let path = path::path(&top.need(PATH)?.table("in [path]".to_owned())?)?;
    let transfer = transfer(&top)?;
    let compare = compare(&top)?;
    let sim = traffic::tables(&top, path.forward.clone(), path.reverse.clone(), path::link)?;
    let cases = match (top.get(CASE), sim.traffic.is_empty()) {
        // Traffic alone is enough for the simulator.
        (None, false) => Vec::new(),
        _ => cases(&top)?,
    };
    let parameters = parameters(&top, &compare)?;
    Ok(Scenario {
        name,
        description,
        seed,
        path,
        transfer,
        compare,
        cases,
        parameters,
        sim,
        file: file.to_owned(),
        source: text.to_owned(),
    })
}

fn transfer(top: &Table<'_>) -> Result<Transfer, ScenarioError> {
    let Some(value) = top.get(TRANSFER) else {
        return Ok(Transfer::default());
    };
    let table = value.table("in [transfer]".to_owned())?;
    table.only(&[SERVER, CLIENT])?;
    Ok(Transfer {
        server: match table.get(SERVER) {
            Some(server) => server.one_of("server", &Server::NAMES)?,
            None => Server::default(),
        },
        client: match table.get(CLIENT) {
            Some(client) => client.one_of("client", &Client::NAMES)?,
            None => Client::default(),
        },
    })
}

fn compare(top: &Table<'_>) -> Result<Compare, ScenarioError> {
    let table = top.need(COMPARE)?.table("in [compare]".to_owned())?;
    table.only(&[STARTUPS, REPEAT])?;
    let list = table.need(STARTUPS)?;
    let mut startups: Vec<Listed> = Vec::new();
    for item in list.list("a list of strings")? {
        let name = item.words(STARTUPS)?.to_owned();
        if startups.iter().any(|earlier| earlier.name == name) {
            return Err(item.error(Fault::DuplicateStartup { name }));
        }
        startups.push(Listed {
            name,
            line: item.line,
        });
    }
    if startups.is_empty() {
        return Err(list.error(Fault::Empty {
            key: STARTUPS.name,
            place: table.place,
            example: format!("{} = {}", STARTUPS.name, STARTUPS.example),
        }));
    }
    let repeat = table.need(REPEAT)?.whole(1, u64::from(u32::MAX))?;
    Ok(Compare {
        startups,
        repeat: u32::try_from(repeat).unwrap_or(u32::MAX),
    })
}

fn cases(top: &Table<'_>) -> Result<Vec<Case>, ScenarioError> {
    let list = top.need(CASE)?;
    let mut cases: Vec<(Case, usize)> = Vec::new();
    for item in list.list("a list of tables")? {
        let table = item.table("in [[case]]".to_owned())?;
        let case = case(&table)?;
        let twin = cases
            .iter()
            .find(|(earlier, _)| earlier.kind() == case.kind() && earlier.bytes() == case.bytes());
        if let Some((_, first_line)) = twin {
            return Err(item.error(Fault::DuplicateCase {
                kind: case.kind(),
                bytes: case.bytes(),
                first_line: *first_line,
            }));
        }
        cases.push((case, item.line));
    }
    if cases.is_empty() {
        return Err(list.error(Fault::Empty {
            key: CASE.name,
            place: top.place.clone(),
            example: "[[case]]".to_owned(),
        }));
    }
    Ok(cases.into_iter().map(|(case, _)| case).collect())
}

fn case(table: &Table<'_>) -> Result<Case, ScenarioError> {
    table.only(&[KIND, BYTES, WARM_BYTES, IDLE])?;
    let kind = table.need(KIND)?;
    if kind.text()? == "stale" {
        return Err(kind.error(Fault::StaleCase));
    }
    let kind = kind.one_of("kind", &CaseKind::ALL.map(|kind| (kind.name(), kind)))?;
    let bytes = table.need(BYTES)?.size(BYTES)?;
    match kind {
        CaseKind::NewCold => {
            refuse(table, WARM_BYTES, kind, "\"resume-warm\" or \"new-warm\"")?;
            refuse(table, IDLE, kind, "\"resume-warm\"")?;
            Ok(Case::NewCold { bytes })
        }
        CaseKind::ResumeWarm => {
            let warm_bytes = table.need(WARM_BYTES)?.size(WARM_BYTES)?;
            let idle: Span = table.need(IDLE)?.parsed(IDLE)?;
            if idle == Span::ZERO {
                return Err(table.need(IDLE)?.error(Fault::Zero {
                    key: IDLE.name,
                    place: table.place.clone(),
                    least: "\"1ms\"",
                }));
            }
            Ok(Case::ResumeWarm {
                bytes,
                warm_bytes,
                idle,
            })
        }
        CaseKind::NewWarm => {
            refuse(table, IDLE, kind, "\"resume-warm\"")?;
            let warm_bytes = table.need(WARM_BYTES)?.size(WARM_BYTES)?;
            Ok(Case::NewWarm { bytes, warm_bytes })
        }
    }
}

/// Refuses `key` in a case of a kind that has no use for it.
fn refuse(
    table: &Table<'_>,
    key: Key,
    kind: CaseKind,
    instead: &'static str,
) -> Result<(), ScenarioError> {
    match table.get(key) {
        Some(value) => Err(value.error(Fault::NotOfKind {
            key: key.name,
            kind,
            instead,
        })),
        None => Ok(()),
    }
}

fn parameters(top: &Table<'_>, compare: &Compare) -> Result<Vec<Parameter>, ScenarioError> {
    let Some(value) = top.get(STARTUP) else {
        return Ok(Vec::new());
    };
    let tables = value.table("in [startup]".to_owned())?;
    let mut parameters = Vec::new();
    for (startup, value) in tables.entries(STARTUP.example) {
        let table = value.table(format!("in [startup.{startup}]"))?;
        if !compare.startups.iter().any(|listed| listed.name == startup) {
            return Err(value.error(Fault::UnusedStartup { name: startup }));
        }
        for (name, value) in table.entries("4") {
            let number = value.whole(0, u64::from(u32::MAX))?;
            parameters.push(Parameter {
                startup: startup.clone(),
                name,
                value: u32::try_from(number).unwrap_or(u32::MAX),
                line: value.line,
            });
        }
    }
    Ok(parameters)
}
