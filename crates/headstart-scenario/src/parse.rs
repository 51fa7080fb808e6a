//! From the TOML document to the [`Scenario`], table by table in the order of the file.

mod cases;
mod path;
mod traffic;
mod transport;

use crate::reader::{Key, Source, Table};
use crate::scenario::OnPath;
use crate::{
    Client, Compare, Fault, Listed, MOST_REPEATS, Parameter, PathSpec, Scenario, ScenarioError,
    Server, Transfer,
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

const LIMIT: Key = Key {
    name: "limit_s",
    example: "15",
};
const DETAILS: Key = Key {
    name: "details",
    example: "true",
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
        traffic::MEMORY,
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
    let paths = paths(&top)?;
    let transfer = transfer(&top)?;
    let (compare, limit_s) = compare(&top)?;
    let (path_name, path) = paths[0].clone();
    let sim = traffic::tables(&top, path.forward.clone(), path.reverse.clone(), path::link)?;
    if paths.len() > 1 && !sim.traffic.is_empty() {
        return Err(top.need(PATH)?.error(Fault::TrafficOnPaths));
    }
    let mut each = Vec::new();
    for (name, path) in paths {
        let cases = match (top.get(CASE), sim.traffic.is_empty()) {
            // Traffic alone is enough for the simulator.
            (None, false) => Vec::new(),
            _ => cases::cases(&top, &path)?,
        };
        let takes_too_long = |case: &crate::Case| {
            limit_s.is_some_and(|limit_s| path.limit_ms(case) > limit_s as f64 * 1000.0)
        };
        let (left_out, cases) = cases.into_iter().partition(takes_too_long);
        each.push(OnPath {
            name,
            path,
            cases,
            left_out,
        });
    }
    let first = each.remove(0);
    let parameters = parameters(&top, &compare)?;
    Ok(Scenario {
        name,
        description,
        seed,
        path_name,
        path,
        transfer,
        compare,
        cases: first.cases,
        left_out: first.left_out,
        parameters,
        sim,
        other_paths: each,
        file: file.to_owned(),
        source: text.to_owned(),
    })
}

/// `[path]`, or each `[[path]]` with its name.
fn paths(top: &Table<'_>) -> Result<Vec<(Option<String>, PathSpec)>, ScenarioError> {
    let value = top.need(PATH)?;
    if !value.is_list() {
        let table = value.table("in [path]".to_owned())?;
        let name = match table.get(NAME) {
            Some(name) => Some(name.words(NAME)?.to_owned()),
            None => None,
        };
        return Ok(vec![(name, path::path(&table)?)]);
    }
    let mut paths: Vec<(Option<String>, PathSpec)> = Vec::new();
    for item in value.list("a table, or a list of tables")? {
        let table = item.table("in [[path]]".to_owned())?;
        let name = table.need(NAME)?.words(NAME)?.to_owned();
        if paths
            .iter()
            .any(|(earlier, _)| earlier.as_ref() == Some(&name))
        {
            return Err(item.error(Fault::DuplicatePath { name }));
        }
        paths.push((Some(name), path::path(&table)?));
    }
    if paths.is_empty() {
        return Err(value.error(Fault::Empty {
            key: PATH.name,
            place: top.place.clone(),
            example: "[[path]]".to_owned(),
        }));
    }
    Ok(paths)
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

/// The table, and its `limit_s`.
fn compare(top: &Table<'_>) -> Result<(Compare, Option<u64>), ScenarioError> {
    let table = top.need(COMPARE)?.table("in [compare]".to_owned())?;
    table.only(&[STARTUPS, REPEAT, LIMIT, DETAILS])?;
    let list = table.need(STARTUPS)?;
    let mut startups: Vec<Listed> = Vec::new();
    for item in list.list("a list of strings")? {
        let name = item.words(STARTUPS)?.to_owned();
        if startups.iter().any(|earlier| earlier.name == name) {
            return Err(item.error(Fault::DuplicateStartup { name }));
        }
        let listed = Listed::parse(&name, item.line);
        startups.push(listed.ok_or_else(|| item.error(Fault::Braces { name }))?);
    }
    if startups.is_empty() {
        return Err(list.error(Fault::Empty {
            key: STARTUPS.name,
            place: table.place,
            example: format!("{} = {}", STARTUPS.name, STARTUPS.example),
        }));
    }
    let repeat = table.need(REPEAT)?.whole(1, u64::from(MOST_REPEATS))?;
    let details = match table.get(DETAILS) {
        Some(details) => details.flag()?,
        None => true,
    };
    let limit_s = match table.get(LIMIT) {
        Some(limit) => Some(limit.whole(1, u64::from(u32::MAX))?),
        None => None,
    };
    let compare = Compare {
        startups,
        details,
        repeat: u32::try_from(repeat).unwrap_or(MOST_REPEATS),
    };
    Ok((compare, limit_s))
}

fn parameters(top: &Table<'_>, compare: &Compare) -> Result<Vec<Parameter>, ScenarioError> {
    let Some(value) = top.get(STARTUP) else {
        return Ok(Vec::new());
    };
    let tables = value.table("in [startup]".to_owned())?;
    let mut parameters = Vec::new();
    for (startup, value) in tables.entries(STARTUP.example) {
        let table = value.table(format!("in [startup.{startup}]"))?;
        if !compare
            .startups
            .iter()
            .any(|listed| listed.startup == startup)
        {
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
