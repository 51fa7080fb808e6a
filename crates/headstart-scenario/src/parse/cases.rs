//! The tables `[[case]]`: what is asked of the connections over a path.

use headstart_link::Span;

use super::CASE;
use crate::reader::{Key, Table, Value};
use crate::{ByteSize, Case, CaseKind, Fault, PathSpec, ScenarioError};

const KIND: Key = Key {
    name: "kind",
    example: "\"new-cold\"",
};
const BYTES: Key = Key {
    name: "bytes",
    example: "\"50KiB\"",
};
const SIZES: Key = Key {
    name: "sizes",
    example: "[\"10kB\", \"1MB\"]",
};
const WARM_BYTES: Key = Key {
    name: "warm_bytes",
    example: "\"2MB\"",
};
const IDLE: Key = Key {
    name: "idle",
    example: "\"10s\"",
};

/// The cases on `path`, sizes in its bandwidth-delay product resolved.
pub(super) fn cases(top: &Table<'_>, path: &PathSpec) -> Result<Vec<Case>, ScenarioError> {
    let list = top.need(CASE)?;
    let mut cases: Vec<(Case, usize)> = Vec::new();
    for item in list.list("a list of tables")? {
        let table = item.table("in [[case]]".to_owned())?;
        for bytes in sizes(&table, path)? {
            let case = case(&table, bytes, path)?;
            let twin = cases.iter().find(|(earlier, _)| {
                earlier.kind() == case.kind() && earlier.bytes() == case.bytes()
            });
            if let Some((_, first_line)) = twin {
                return Err(item.error(Fault::DuplicateCase {
                    kind: case.kind(),
                    bytes: case.bytes(),
                    first_line: *first_line,
                }));
            }
            cases.push((case, item.line));
        }
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

/// `bytes`, or each of `sizes`.
fn sizes(table: &Table<'_>, path: &PathSpec) -> Result<Vec<ByteSize>, ScenarioError> {
    table.only(&[KIND, BYTES, SIZES, WARM_BYTES, IDLE])?;
    let Some(list) = table.get(SIZES) else {
        return Ok(vec![size(&table.need(BYTES)?, BYTES, path)?]);
    };
    if let Some(bytes) = table.get(BYTES) {
        return Err(bytes.error(Fault::BytesAndSizes));
    }
    let items = list.list("a list of sizes")?;
    if items.is_empty() {
        return Err(list.error(Fault::Empty {
            key: SIZES.name,
            place: table.place.clone(),
            example: format!("{} = {}", SIZES.name, SIZES.example),
        }));
    }
    let sizes = items.iter().map(|item| size(item, SIZES, path));
    sizes.collect()
}

/// A size in bytes, or of as many bandwidth-delay products of `path`: `4bdp`.
fn size(value: &Value<'_>, key: Key, path: &PathSpec) -> Result<ByteSize, ScenarioError> {
    let products = value
        .text()
        .ok()
        .and_then(|text| text.trim().strip_suffix("bdp"));
    let Some(products) = products else {
        return value.size(key);
    };
    let bdp_bytes = path.forward.rate.nominal().bytes_in(path.rtt());
    let number: Option<u64> = products.trim().parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(bdp_bytes));
    match bytes {
        Some(bytes) if bytes > 0 => Ok(ByteSize::from_bytes(bytes)),
        _ => Err(value.bad(
            key,
            &"a number of bandwidth-delay products is a whole one from 1: write it like \"4bdp\"",
        )),
    }
}

fn case(table: &Table<'_>, bytes: ByteSize, path: &PathSpec) -> Result<Case, ScenarioError> {
    let kind = table.need(KIND)?;
    if kind.text()? == "stale" {
        return Err(kind.error(Fault::StaleCase));
    }
    let kind = kind.one_of("kind", &CaseKind::ALL.map(|kind| (kind.name(), kind)))?;
    match kind {
        CaseKind::NewCold => {
            refuse(table, WARM_BYTES, kind, "\"resume-warm\" or \"new-warm\"")?;
            refuse(table, IDLE, kind, "\"resume-warm\"")?;
            Ok(Case::NewCold { bytes })
        }
        CaseKind::ResumeWarm => {
            let warm_bytes = size(&table.need(WARM_BYTES)?, WARM_BYTES, path)?;
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
            let warm_bytes = size(&table.need(WARM_BYTES)?, WARM_BYTES, path)?;
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
