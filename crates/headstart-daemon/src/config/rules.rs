//! From the text of the file to the configuration: rules, and what they do.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use headstart_core::{Params, Startup};
use headstart_kernel::MAX_POLICY_RULES;
use headstart_scenario::reader::{Table, Value};
use headstart_scenario::{Fault, ScenarioError};

use super::keys::*;
use super::read::path_of;
use super::{Action, Experiment, LEAVE_ALONE, RuleAction, RuleConfig};

const EXPERIMENT_ACTION: &str = "experiment";

/// `None`: the experiment decides.
pub(super) fn action(
    table: &Table<'_>,
    controls: &[String],
    experiment: bool,
) -> Result<Option<Action>, ScenarioError> {
    let value = table.need(STARTUP)?;
    let name = value.text()?;
    let params = table.get(PARAMS);
    if let Ok(startup) = Startup::named(name) {
        return Ok(Some(Action::Startup(parameters(startup, params)?)));
    }
    let native = match name {
        LEAVE_ALONE => Some(Some(Action::LeaveAlone)),
        EXPERIMENT_ACTION if experiment => Some(None),
        _ if controls.iter().any(|control| control == name) => {
            Some(Some(Action::Native(name.to_owned())))
        }
        _ => None,
    };
    if let Some(native) = native {
        let Some(params) = params else {
            return Ok(native);
        };
        let cause = format!("{name} has no parameters; remove them, or name a start-up");
        return Err(params.bad(PARAMS, &cause));
    }
    let mut known: Vec<String> = Startup::all().map(|s| s.name().to_owned()).collect();
    known.push(LEAVE_ALONE.to_owned());
    known.extend(experiment.then(|| EXPERIMENT_ACTION.to_owned()));
    known.extend(controls.iter().cloned());
    Err(value.error(Fault::UnknownName {
        object: "start-up",
        name: name.to_owned(),
        place: table.place.clone(),
        known,
    }))
}

fn parameters(startup: Startup, table: Option<Value<'_>>) -> Result<Params, ScenarioError> {
    let mut params = Params::new(startup);
    let Some(value) = table else {
        return Ok(params);
    };
    for (name, value) in value.table("in params".to_owned())?.entries("4") {
        if name == "reno" {
            let cause = "it is the same for all connections of a start-up, and cannot be a rule's";
            return Err(value.bad(PARAMS, &cause));
        }
        let number = value.whole(0, u64::from(u32::MAX))?;
        params.set(&name, number).map_err(|cause| {
            value.error(Fault::BadParameter {
                startup: startup.name().to_owned(),
                parameter: name.clone(),
                cause: cause.to_string(),
            })
        })?;
    }
    Ok(params)
}

pub(super) fn rules(
    top: &Table<'_>,
    controls: &[String],
    experiment: Option<&Experiment>,
) -> Result<Vec<RuleConfig>, ScenarioError> {
    let Some(list) = top.get(RULE) else {
        return Ok(Vec::new());
    };
    let items = list.list("a list of tables")?;
    if items.len() > MAX_POLICY_RULES {
        let cause = format!("there are {}; at most {MAX_POLICY_RULES} go", items.len());
        return Err(list.bad(RULE, &cause));
    }
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    let mut rules = Vec::new();
    for item in items {
        let table = item.table("in [[rule]]".to_owned())?;
        let rule = rule(&table, controls, experiment)?;
        if let Some(line) = lines.insert(rule.name.clone(), item.line) {
            let cause = format!(
                "\"{}\" is the name of a rule already (line {line}); records tell rules apart by name",
                rule.name
            );
            return Err(table.need(NAME)?.bad(NAME, &cause));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn rule(
    table: &Table<'_>,
    controls: &[String],
    experiment: Option<&Experiment>,
) -> Result<RuleConfig, ScenarioError> {
    table.only(&[
        NAME,
        CGROUP,
        INTERFACE,
        PORTS,
        DESTINATION,
        STARTUP,
        PARAMS,
        CAP,
        RULE_RECORDS,
    ])?;
    let action = match action(table, controls, true)? {
        Some(action) => RuleAction::One(action),
        None if experiment.is_some() => RuleAction::Experiment,
        None => {
            let cause = "there is no [experiment]; add one, or name a start-up";
            return Err(table.need(STARTUP)?.bad(STARTUP, &cause));
        }
    };
    let cap_pkts = match table.get(CAP) {
        Some(value) => Some(u32::try_from(value.whole(2, 1_000_000)?).unwrap_or(u32::MAX)),
        None => None,
    };
    let records = match table.get(RULE_RECORDS) {
        Some(value) => value.truth()?,
        None => true,
    };
    let interface = match table.get(INTERFACE) {
        Some(value) => Some(value.words(INTERFACE)?.to_owned()),
        None => None,
    };
    Ok(RuleConfig {
        name: table.need(NAME)?.words(NAME)?.to_owned(),
        cgroup: path_of(Some(table), CGROUP)?.map(|path| relative(&path)),
        interface,
        ports: ports(table)?,
        destination: destination(table)?,
        action,
        cap_pkts,
        records,
    })
}

/// Cgroups are named from their root.
fn relative(path: &Path) -> PathBuf {
    path.strip_prefix("/")
        .map_or_else(|_| path.to_owned(), Path::to_owned)
}

fn ports(table: &Table<'_>) -> Result<(u16, u16), ScenarioError> {
    let Some(value) = table.get(PORTS) else {
        return Ok((0, u16::MAX));
    };
    let text = value.text()?;
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
        _ => {
            let cause = format!("\"{text}\" is no port; write \"443\" or \"8000-8010\"");
            Err(value.bad(PORTS, &cause))
        }
    }
}

fn destination(table: &Table<'_>) -> Result<Option<(IpAddr, u8)>, ScenarioError> {
    let Some(value) = table.get(DESTINATION) else {
        return Ok(None);
    };
    let text = value.text()?;
    let parsed = text.split_once('/').and_then(|(addr, bits)| {
        let addr: IpAddr = addr.parse().ok()?;
        let bits: u8 = bits.parse().ok()?;
        (bits <= if addr.is_ipv4() { 32 } else { 128 }).then_some((addr, bits))
    });
    match parsed {
        Some(prefix) => Ok(Some(prefix)),
        None => {
            let cause =
                format!("\"{text}\" is no prefix; write \"203.0.113.0/24\" or \"2001:db8::/48\"");
            Err(value.bad(DESTINATION, &cause))
        }
    }
}
