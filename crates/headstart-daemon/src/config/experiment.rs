//! From the text of the file to the configuration: the experiment.

use std::time::Duration;

use headstart_kernel::MAX_RULE_ARMS;
use headstart_scenario::ScenarioError;
use headstart_scenario::reader::{Key, Table, Value};

use super::keys::*;
use super::read::{duration, margins, percent, table_of};
use super::rules::action;
use super::{Action, ArmConfig, Experiment, Margins, Unit};

pub(super) fn experiment(
    top: &Table<'_>,
    controls: &[String],
) -> Result<Option<Experiment>, ScenarioError> {
    let Some(table) = table_of(top, EXPERIMENT)? else {
        return Ok(None);
    };
    table.only(&[NAME, SALT, UNIT, SLICE, BURN_IN, BASELINE, UNTIL, STOP, ARM])?;
    let arms = arms(&table, controls)?;
    let unit = unit(&table)?;
    Ok(Some(Experiment {
        name: table.need(NAME)?.words(NAME)?.to_owned(),
        salt: table.need(SALT)?.words(SALT)?.to_owned(),
        baseline: baseline(&table, &arms)?,
        stop: stop(&table, unit)?,
        until_us: table.get(UNTIL).map(|value| until(&value)).transpose()?,
        unit,
        arms,
    }))
}

fn arms(table: &Table<'_>, controls: &[String]) -> Result<Vec<ArmConfig>, ScenarioError> {
    let list = table.need(ARM)?;
    let mut arms = Vec::new();
    for item in list.list("a list of tables")? {
        let arm = item.table("in [[experiment.arm]]".to_owned())?;
        arm.only(&[NAME, SHARE, STARTUP, PARAMS])?;
        let share = arm.need(SHARE)?;
        arms.push(ArmConfig {
            name: arm.need(NAME)?.words(NAME)?.to_owned(),
            share_percent: percent(&share, 0, 100)?,
            action: action(&arm, controls, false)?.unwrap_or(Action::LeaveAlone),
        });
    }
    let sum: u32 = arms.iter().map(|arm| u32::from(arm.share_percent)).sum();
    if arms.len() < 2 || arms.len() > MAX_RULE_ARMS {
        let cause = format!("there are {}; give 2 to {MAX_RULE_ARMS}", arms.len());
        return Err(list.bad(ARM, &cause));
    }
    if sum != 100 {
        return Err(list.bad(
            ARM,
            &format!("the shares sum to {sum} percent; make it 100"),
        ));
    }
    let mut names: Vec<_> = arms.iter().map(|arm| arm.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twin) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let cause = format!(
            "two arms are called \"{}\"; records tell them apart by name",
            twin[0]
        );
        return Err(list.bad(ARM, &cause));
    }
    Ok(arms)
}

fn unit(table: &Table<'_>) -> Result<Unit, ScenarioError> {
    let name = match table.get(UNIT) {
        Some(value) => value.one_of(
            "unit",
            &[
                ("prefix", "prefix"),
                ("connection", "connection"),
                ("time", "time"),
            ],
        )?,
        None => "prefix",
    };
    if name != "time" {
        for key in [SLICE, BURN_IN] {
            if let Some(value) = table.get(key) {
                let cause = "it is for slices of time; write unit = \"time\", or remove it";
                return Err(value.bad(key, &cause));
            }
        }
        return Ok(if name == "prefix" {
            Unit::Prefix
        } else {
            Unit::Connection
        });
    }
    let of = |key: Key, least: u64| -> Result<Duration, ScenarioError> {
        duration(&table.need(key)?, key, Duration::from_secs(least))
    };
    let (slice, burn_in) = (of(SLICE, 2)?, of(BURN_IN, 1)?);
    if burn_in >= slice {
        let cause = "it is the whole slice: nothing would be left to compare; make it shorter";
        return Err(table.need(BURN_IN)?.bad(BURN_IN, &cause));
    }
    Ok(Unit::Time { slice, burn_in })
}

fn baseline(table: &Table<'_>, arms: &[ArmConfig]) -> Result<usize, ScenarioError> {
    let Some(value) = table.get(BASELINE) else {
        return Ok(0);
    };
    let name = value.text()?;
    arms.iter().position(|arm| arm.name == name).ok_or_else(|| {
        let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
        let cause = format!(
            "no arm is called \"{name}\"; there are {}",
            names.join(", ")
        );
        value.bad(BASELINE, &cause)
    })
}

fn stop(table: &Table<'_>, unit: Unit) -> Result<Option<Margins>, ScenarioError> {
    let Some(value) = table.get(STOP) else {
        return Ok(None);
    };
    let table = value.table("in [experiment.stop]".to_owned())?;
    table.only(&[WINDOW, MIN_TRANSFERS, RETRANSMISSIONS, TIMEOUTS, LATENCY])?;
    let margins = margins(&table)?;
    if let Unit::Time { slice, .. } = unit
        && margins.window < slice * 4
    {
        let cause = "one slice has one arm; make it four slices at least, so that there are arms to compare";
        return Err(table.need(WINDOW)?.bad(WINDOW, &cause));
    }
    Ok(Some(margins))
}

fn until(value: &Value<'_>) -> Result<i64, ScenarioError> {
    let text = value.text()?;
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    parsed.map(|time| time.as_microsecond()).map_err(|_| {
        let cause = format!("\"{text}\" is no point in time; write \"2026-12-01T00:00:00Z\"");
        value.bad(UNTIL, &cause)
    })
}
