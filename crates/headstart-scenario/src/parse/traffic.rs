//! What a scenario says for the simulator alone: `[transport]`, `[simulation]`, `[[link]]`, `[[traffic]]`.

use headstart_link::{Distribution, LinkConfig, Span};

use super::transport::transport;
use crate::reader::{Key, Table, Value};
use crate::traffic::{Arrivals, ENDLESS, LateBody, Sizes, Traffic, Users};
use crate::{
    Count, Fault, KnownPath, Listed, PathEnding, ScenarioError, SimTables, TrafficGroup, Transport,
};

macro_rules! key {
    ($constant:ident, $name:literal, $example:literal) => {
        pub(crate) const $constant: Key = Key {
            name: $name,
            example: $example,
        };
    };
}

key!(TRANSPORT, "transport", "[transport]");
key!(SIMULATION, "simulation", "[simulation]");
key!(LINK, "link", "[[link]]");
key!(TRAFFIC, "traffic", "[[traffic]]");
key!(MEMORY, "memory", "[[memory]]");
key!(UNTIL, "until", "\"60s\"");
key!(SAMPLE_EVERY, "sample_every", "\"10ms\"");
key!(ENDS_WITH, "ends_with", "[\"web\"]");
key!(HOST_JITTER, "host_jitter", "\"100us\"");
key!(MEMORY_PARAMS, "memory_params", "[\"history_pct=25\"]");
key!(NAME, "name", "\"web\"");
key!(KIND, "kind", "\"users\"");
key!(STARTUP, "startup", "\"cubic\"");
key!(ROUTE, "route", "[\"forward\"]");
key!(REVERSE_ROUTE, "reverse_route", "[\"reverse\"]");
key!(DIRECTION, "direction", "\"reverse\"");
key!(EXTRA_RTT, "extra_rtt", "\"exp:20ms\"");
key!(DESTINATION, "destination", "0");
key!(HINTS, "hints", "true");
key!(USERS, "users", "30");
key!(START, "start", "\"uniform:0s,1s\"");
key!(STAGGER, "stagger", "\"10s\"");
key!(PAGES, "pages", "10");
key!(OBJECTS, "objects", "\"1\"");
key!(INDEX_FIRST, "index_first", "true");
key!(BYTES, "bytes", "\"40kB\"");
key!(PARALLEL, "parallel", "4");
key!(PERSISTENT, "persistent", "true");
key!(THINK, "think", "\"exp:10s\"");
key!(HEAD, "head", "\"4kB\"");
key!(BODY_AFTER, "body_after", "\"200ms\"");
key!(TRANSFERS, "transfers", "1000");
key!(GAP, "gap", "\"exp:20ms\"");
key!(CONNECTIONS, "connections", "100");
key!(WINDOW_PKTS, "window_pkts", "35");
key!(SSTHRESH_PKTS, "ssthresh_pkts", "35");
key!(RTT, "rtt", "\"400ms\"");
key!(SRTT, "srtt", "\"420ms\"");
key!(RTTVAR, "rttvar", "\"20ms\"");
key!(AGE, "age", "\"10s\"");
key!(ENDED, "ended", "\"avoidance\"");

/// When nothing is said: long enough for any transfer, short enough to end.
const DEFAULT_UNTIL: Span = Span::from_ns(600_000_000_000);
const DEFAULT_SAMPLE: Span = Span::from_ns(10_000_000);

/// Keys of every kind of traffic.
const COMMON: [Key; 13] = [
    NAME,
    KIND,
    STARTUP,
    ROUTE,
    REVERSE_ROUTE,
    DIRECTION,
    EXTRA_RTT,
    DESTINATION,
    HINTS,
    TRANSPORT,
    BYTES,
    HEAD,
    BODY_AFTER,
];

#[derive(Clone, Copy)]
enum Kind {
    Bulk,
    Users,
    Bursts,
    Arrivals,
}

const KINDS: [(&str, Kind); 4] = [
    ("bulk", Kind::Bulk),
    ("users", Kind::Users),
    ("bursts", Kind::Bursts),
    ("arrivals", Kind::Arrivals),
];

impl Kind {
    /// The keys that it has beside those of every kind.
    fn keys(self) -> &'static [Key] {
        match self {
            Kind::Bulk => &[USERS, START, STAGGER],
            Kind::Users => &[
                USERS,
                START,
                STAGGER,
                PAGES,
                OBJECTS,
                INDEX_FIRST,
                PARALLEL,
                PERSISTENT,
                THINK,
            ],
            Kind::Bursts => &[USERS, START, STAGGER, PAGES, THINK],
            Kind::Arrivals => &[START, TRANSFERS, GAP, CONNECTIONS],
        }
    }
}

/// Reads the tables; `read_link` reads one `[[link]]`.
pub(crate) fn tables(
    top: &Table<'_>,
    forward: LinkConfig,
    reverse: LinkConfig,
    read_link: impl Fn(&Table<'_>) -> Result<LinkConfig, ScenarioError>,
) -> Result<SimTables, ScenarioError> {
    let (transport, hystart) = match top.get(TRANSPORT) {
        None => (Transport::linux(), true),
        Some(value) => {
            let table = value.table("in [transport]".to_owned())?;
            transport(&table, &Transport::linux(), true)?
        }
    };
    let (mut until, mut sample_every) = (DEFAULT_UNTIL, DEFAULT_SAMPLE);
    let (mut host_jitter, mut ends_with, mut memory_params) = (None, None, Vec::new());
    if let Some(value) = top.get(SIMULATION) {
        let table = value.table("in [simulation]".to_owned())?;
        table.only(&[UNTIL, SAMPLE_EVERY, HOST_JITTER, ENDS_WITH, MEMORY_PARAMS])?;
        if let Some(value) = table.get(UNTIL) {
            until = value.parsed(UNTIL)?;
        }
        if let Some(value) = table.get(SAMPLE_EVERY) {
            sample_every = value.parsed(SAMPLE_EVERY)?;
        }
        if let Some(value) = table.get(HOST_JITTER) {
            host_jitter = Some(value.parsed(HOST_JITTER)?);
        }
        ends_with = table.get(ENDS_WITH);
        if let Some(value) = table.get(MEMORY_PARAMS) {
            let list = value.list("a list of strings")?;
            let texts = list
                .iter()
                .map(|item| item.words(MEMORY_PARAMS).map(str::to_owned));
            memory_params = texts.collect::<Result<_, _>>()?;
        }
    }
    let mut tables = SimTables {
        transport,
        hystart,
        links: vec![
            ("forward".to_owned(), forward),
            ("reverse".to_owned(), reverse),
        ],
        traffic: Vec::new(),
        until,
        sample_every,
        host_jitter,
        ends_with: Vec::new(),
        memory: Vec::new(),
        memory_params,
    };
    if let Some(list) = top.get(LINK) {
        for item in list.list("a list of tables")? {
            let table = item.table("in [[link]]".to_owned())?;
            let name = table.need(NAME)?.words(NAME)?.to_owned();
            if tables.links.iter().any(|(other, _)| *other == name) {
                return Err(item.error(Fault::DuplicateName {
                    object: "link",
                    name,
                }));
            }
            let link = read_link(&table)?;
            tables.links.push((name, link));
        }
    }
    if let Some(list) = top.get(TRAFFIC) {
        for item in list.list("a list of tables")? {
            let table = item.table("in [[traffic]]".to_owned())?;
            let group = group(&table, &tables)?;
            if tables.traffic.iter().any(|other| other.name == group.name) {
                return Err(item.error(Fault::DuplicateName {
                    object: "traffic",
                    name: group.name,
                }));
            }
            tables.traffic.push(group);
        }
    }
    if let Some(value) = ends_with {
        let names: Vec<(&str, u32)> = (0..)
            .zip(&tables.traffic)
            .map(|(number, group)| (group.name.as_str(), number))
            .collect();
        let list = value.list("a list of strings")?;
        let found = list.iter().map(|name| name.one_of("traffic", &names));
        tables.ends_with = found.collect::<Result<_, _>>()?;
    }
    if let Some(list) = top.get(MEMORY) {
        for item in list.list("a list of tables")? {
            let path = known_path(&item.table("in [[memory]]".to_owned())?)?;
            let destination = path.destination;
            if tables
                .memory
                .iter()
                .any(|other| other.destination == destination)
            {
                return Err(item.error(Fault::DuplicateName {
                    object: "destination",
                    name: destination.to_string(),
                }));
            }
            tables.memory.push(path);
        }
    }
    Ok(tables)
}

/// One `[[memory]]`.
fn known_path(table: &Table<'_>) -> Result<KnownPath, ScenarioError> {
    table.only(&[
        DESTINATION,
        WINDOW_PKTS,
        SSTHRESH_PKTS,
        RTT,
        SRTT,
        RTTVAR,
        AGE,
        ENDED,
    ])?;
    let span = |key: Key| optional(table, key, |value| value.parsed::<Span>(key));
    let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let most_pkts = 1 << 24;
    let destination = optional(table, DESTINATION, |value| value.whole(0, 1 << 24))?;
    let window_pkts = number(table.need(WINDOW_PKTS)?.whole(1, most_pkts)?);
    let ssthresh_pkts = optional(table, SSTHRESH_PKTS, |value| value.whole(2, most_pkts))?;
    let rtt: Span = table.need(RTT)?.parsed(RTT)?;
    let ended = optional(table, ENDED, |value| {
        value.one_of(
            "ending",
            &[
                ("slow-start", PathEnding::SlowStart),
                ("avoidance", PathEnding::Avoidance),
                ("recovery", PathEnding::Recovery),
            ],
        )
    })?;
    Ok(KnownPath {
        destination: number(destination.unwrap_or(0)),
        window_pkts,
        ssthresh_pkts: ssthresh_pkts.map_or(window_pkts.max(2), number),
        rtt,
        srtt: span(SRTT)?.unwrap_or(rtt),
        rttvar: span(RTTVAR)?.unwrap_or(Span::ZERO),
        age: span(AGE)?.unwrap_or(Span::ZERO),
        ended: ended.unwrap_or(PathEnding::Avoidance),
    })
}

fn group(table: &Table<'_>, tables: &SimTables) -> Result<TrafficGroup, ScenarioError> {
    let kind = table.need(KIND)?.one_of("kind", &KINDS)?;
    let known: Vec<Key> = COMMON.iter().chain(kind.keys()).copied().collect();
    table.only(&known)?;
    let startup = match table.get(STARTUP) {
        Some(value) => {
            let name = value.words(STARTUP)?;
            Some(Listed {
                name: name.to_owned(),
                startup: name.to_owned(),
                settings: Vec::new(),
                line: value.line,
            })
        }
        None => None,
    };
    let (route, reverse_route) = routes(table, tables)?;
    let transport = match table.get(TRANSPORT) {
        None => tables.transport,
        Some(value) => {
            let inner = value.table("in transport of [[traffic]]".to_owned())?;
            transport(&inner, &tables.transport, tables.hystart)?.0
        }
    };
    let destination = optional(table, DESTINATION, |value| value.whole(0, 1 << 24))?;
    Ok(TrafficGroup {
        name: table.need(NAME)?.words(NAME)?.to_owned(),
        startup,
        route,
        reverse_route,
        extra_rtt: optional(table, EXTRA_RTT, |value| value.distribution(EXTRA_RTT))?,
        destination: u32::try_from(destination.unwrap_or(0)).unwrap_or(u32::MAX),
        hints: flag(table, HINTS)?,
        late_body: late_body(table)?,
        transport,
        traffic: traffic(table, kind)?,
    })
}

/// Both keys or neither.
fn late_body(table: &Table<'_>) -> Result<Option<LateBody>, ScenarioError> {
    if table.get(HEAD).is_none() && table.get(BODY_AFTER).is_none() {
        return Ok(None);
    }
    Ok(Some(LateBody {
        head: table.need(HEAD)?.distribution(HEAD)?,
        after: table.need(BODY_AFTER)?.distribution(BODY_AFTER)?,
    }))
}

fn optional<'a, T>(
    table: &Table<'a>,
    key: Key,
    read: impl FnOnce(&Value<'a>) -> Result<T, ScenarioError>,
) -> Result<Option<T>, ScenarioError> {
    table.get(key).map(|value| read(&value)).transpose()
}

fn flag(table: &Table<'_>, key: Key) -> Result<bool, ScenarioError> {
    Ok(optional(table, key, Value::flag)?.unwrap_or(false))
}

/// Both ways; the other way round for traffic from the client's side.
fn routes(table: &Table<'_>, tables: &SimTables) -> Result<(Vec<u32>, Vec<u32>), ScenarioError> {
    let turned = optional(table, DIRECTION, |value| {
        value.one_of("direction", &[("forward", false), ("reverse", true)])
    })?;
    let (there, back) = match turned {
        Some(true) => (1, 0),
        _ => (0, 1),
    };
    let read = |key: Key, default: u32| -> Result<Vec<u32>, ScenarioError> {
        let Some(value) = table.get(key) else {
            return Ok(vec![default]);
        };
        let names: Vec<(&str, u32)> = (0..)
            .zip(&tables.links)
            .map(|(number, (name, _))| (name.as_str(), number))
            .collect();
        let links = value.list("a list of strings")?;
        links
            .iter()
            .map(|link| link.one_of("link", &names))
            .collect()
    };
    Ok((read(ROUTE, there)?, read(REVERSE_ROUTE, back)?))
}

/// Users or connections. Each is kept from the beginning: a million users take 1.5 GB.
fn count(table: &Table<'_>, key: Key, default: u32) -> Result<u32, ScenarioError> {
    const MOST: u32 = 1_000_000;
    let number = optional(table, key, |value| value.whole(1, u64::from(MOST)))?;
    Ok(number.map_or(default, |number| u32::try_from(number).unwrap_or(MOST)))
}

fn traffic(table: &Table<'_>, kind: Kind) -> Result<Traffic, ScenarioError> {
    let none = || Distribution::fixed(Span::ZERO);
    let start = || optional(table, START, |value| value.distribution(START));
    let stagger = || optional(table, STAGGER, |value| value.parsed(STAGGER));
    let users = Users {
        users: 1,
        start: none(),
        stagger: Span::ZERO,
        pages: Some(1),
        objects: Distribution::fixed(Count(1)),
        index_first: false,
        bytes: Sizes::Drawn(Distribution::fixed(ENDLESS)),
        parallel: 1,
        persistent: true,
        think: none(),
    };
    let with_users = |users: Users| -> Result<Users, ScenarioError> {
        Ok(Users {
            users: count(table, USERS, 1)?,
            start: start()?.unwrap_or_else(none),
            stagger: stagger()?.unwrap_or(Span::ZERO),
            ..users
        })
    };
    let pages = || -> Result<Option<u32>, ScenarioError> {
        let number = optional(table, PAGES, |value| value.whole(1, u64::from(u32::MAX)))?;
        Ok(number.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
    };
    let bytes = || table.need(BYTES)?.distribution(BYTES).map(Sizes::Drawn);
    let think = || optional(table, THINK, |value| value.distribution(THINK));
    Ok(match kind {
        Kind::Bulk => {
            let bytes = optional(table, BYTES, |value| value.distribution(BYTES))?;
            Traffic::Users(Users {
                bytes: bytes.map_or(users.bytes.clone(), Sizes::Drawn),
                ..with_users(users)?
            })
        }
        Kind::Bursts => Traffic::Users(Users {
            pages: pages()?,
            bytes: bytes()?,
            think: table.need(THINK)?.distribution(THINK)?,
            ..with_users(users)?
        }),
        Kind::Users => {
            let objects = optional(table, OBJECTS, |value| value.distribution(OBJECTS))?;
            let parallel = optional(table, PARALLEL, |value| value.whole(1, 255))?;
            Traffic::Users(Users {
                pages: pages()?,
                objects: objects.unwrap_or_else(|| Distribution::fixed(Count(1))),
                index_first: flag(table, INDEX_FIRST)?,
                bytes: bytes()?,
                parallel: u8::try_from(parallel.unwrap_or(1)).unwrap_or(u8::MAX),
                persistent: flag(table, PERSISTENT)?,
                think: think()?.unwrap_or_else(none),
                ..with_users(users)?
            })
        }
        Kind::Arrivals => Traffic::Arrivals(Arrivals {
            start: optional(table, START, |value| value.parsed(START))?.unwrap_or(Span::ZERO),
            transfers: optional(table, TRANSFERS, |value| value.whole(1, 1 << 40))?,
            gap: table.need(GAP)?.distribution(GAP)?,
            bytes: table.need(BYTES)?.distribution(BYTES)?,
            connections: match table.get(CONNECTIONS) {
                Some(_) => Some(count(table, CONNECTIONS, 1)?),
                None => None,
            },
        }),
    })
}
