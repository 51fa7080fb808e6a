//! What will be run, in which order, and how much of it side by side.

use std::fs;

use headstart_core::{ParamError, Params, Setting, SettingError, Startup};
use headstart_path::PathConfig;
use headstart_scenario::{Ground, Listed, Scenario, nearest};

use crate::error::CompareError;

/// Emulations side by side do not disturb each other while their rates add up to this, in bits/s (measured:
/// four at 10 Mbit/s on two cores; docs/path.md).
const SIDE_BY_SIDE_BITS_PER_S: u64 = 50_000_000;
const SIDE_BY_SIDE_MOST: u64 = 4;

/// The congestion controls that Linux knows of its own: one that is not there is left out with a warning, where
/// an unknown name is an error.
const LINUX_CONTROLS: [&str; 15] = [
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "westwood",
];

/// A contestant of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runner {
    /// What it is called in results: its name as a congestion control, with the parameters in braces that it
    /// alone has.
    pub label: String,
    /// What carries its connections.
    pub control: CongestionControl,
}

/// What carries the connections of a contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// One of the kernel's own.
    Native(&'static str),
    /// One of ours.
    Ours(Params),
}

impl CongestionControl {
    /// Its name in the kernel.
    pub fn name(&self) -> &'static str {
        match self {
            CongestionControl::Native(name) => name,
            CongestionControl::Ours(params) => params.startup().name(),
        }
    }

    /// Its parameters, if it is one of ours.
    pub fn params(&self) -> Option<&Params> {
        match self {
            CongestionControl::Native(_) => None,
            CongestionControl::Ours(params) => Some(params),
        }
    }
}

/// A comparison, ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario that it is of.
    pub scenario: Scenario,
    /// Who takes part, in the order in which results are shown.
    pub runners: Vec<Runner>,
    /// The number of the first repeat: another than 0 where earlier ones have been measured before.
    pub first_repeat: u32,
    /// How often each case is measured for each runner.
    pub repeat: u32,
    /// Rotates the order.
    pub seed: u64,
    /// How many emulations run side by side.
    pub side_by_side: usize,
    /// What the results are to say of where it ran.
    pub ground: Ground,
    /// What the user should know before it starts.
    pub warnings: Vec<String>,
}

impl Plan {
    /// Checks the scenario's start-ups and parameters against what there is.
    ///
    /// `startups`, `repeat` and `seed` stand in place of the scenario's; `settings` are parameters in the form
    /// `STARTUP.PARAMETER=VALUE`.
    ///
    /// # Errors
    /// [`CompareError::Scenario`] or [`CompareError::Option`], with the place and the nearest name.
    pub fn new(
        scenario: Scenario,
        startups: Option<&[String]>,
        repeat: Option<u32>,
        seed: Option<u64>,
        settings: &[String],
    ) -> Result<Plan, CompareError> {
        if scenario.cases.is_empty() {
            return Err(CompareError::Option(format!(
                "{}: there is no [[case]] in it, and its traffic is for the simulator; \
                 run headstart sim, or add a [[case]]",
                scenario.file()
            )));
        }
        let mut warnings = Vec::new();
        let mut runners = Vec::new();
        let available = available_controls();
        let contestants = match startups {
            Some(texts) => named_by_option(texts)?,
            None => scenario.compare.startups.clone(),
        };
        for listed in &contestants {
            let (label, name) = (&listed.name, &listed.startup);
            match find(name, &available) {
                Found::Control(_) if runners.iter().any(|other: &Runner| other.label == *label) => {
                    return Err(CompareError::Option(format!(
                        "the start-up {label} is named twice"
                    )));
                }
                Found::Control(control) => runners.push(Runner {
                    label: label.clone(),
                    control,
                }),
                Found::NotHere => warnings.push(format!(
                    "{name} is left out: this kernel does not have it (modprobe tcp_{name})"
                )),
                Found::Unknown => {
                    let known = known_names(&available);
                    return Err(match startups {
                        None => scenario.unknown_startup(listed, &known).into(),
                        Some(_) => CompareError::Option(unknown_option(name, &known)),
                    });
                }
            }
        }
        if runners.is_empty() {
            return Err(CompareError::Option(
                "no start-up is left to compare".to_owned(),
            ));
        }
        set_from_scenario(&scenario, &mut runners)?;
        for setting in settings {
            set_from_option(setting, &mut runners, None)?;
        }
        for listed in &contestants {
            for setting in &listed.settings {
                set_from_option(setting, &mut runners, Some(&listed.name))?;
            }
        }
        let repeat = scenario.compare.repeat_or(repeat);
        let repeat = repeat.map_err(CompareError::Option)?;
        let side_by_side = side_by_side(&scenario, runners.len());
        let seed = seed.unwrap_or(scenario.seed);
        Ok(Plan {
            scenario,
            runners,
            first_repeat: 0,
            repeat,
            seed,
            side_by_side,
            ground: Ground::Kernel,
            warnings,
        })
    }

    /// The same in a kernel in virtual time: one emulation after the other. Waiting costs nothing there, and they share
    /// one CPU, whose time is the time that is measured.
    #[must_use]
    pub fn in_virtual_time(self) -> Plan {
        Plan {
            side_by_side: 1,
            ground: Ground::Virtual,
            ..self
        }
    }

    /// The measured transfers in all.
    pub fn transfers(&self) -> u64 {
        u64::from(self.repeat) * self.runners.len() as u64 * self.scenario.cases.len() as u64
    }

    /// Who runs in repeat `repeat`, in order: each repeat begins with another, so that no runner always has the
    /// same neighbours or the same moment.
    pub fn order(&self, repeat: u32) -> Vec<Runner> {
        let mut order = self.runners.clone();
        let shift = (u64::from(repeat) + self.seed) % order.len() as u64;
        order.rotate_left(shift as usize);
        order
    }

    /// The path of lane `lane`.
    pub fn path(&self, lane: u8) -> PathConfig {
        let (forward, reverse) = self.scenario.path.seeded(self.seed);
        PathConfig {
            lane,
            log_packets: true,
            ..PathConfig::new(forward, reverse)
        }
    }

    /// The path's round trip without any queue, in ms.
    pub fn rtt_ms(&self) -> f64 {
        self.scenario.path.rtt().as_ms_f64()
    }
}

/// The contestants of `--startups`.
fn named_by_option(texts: &[String]) -> Result<Vec<Listed>, CompareError> {
    let listed = texts.iter().map(|text| {
        Listed::parse(text, 0).ok_or_else(|| {
            CompareError::Option(format!(
                "--startups: \"{text}\" is no start-up with parameters; write it like su_standard{{hystart=0}}"
            ))
        })
    });
    listed.collect()
}

enum Found {
    Control(CongestionControl),
    NotHere,
    Unknown,
}

fn find(name: &str, available: &[String]) -> Found {
    if let Ok(startup) = Startup::named(name) {
        return Found::Control(CongestionControl::Ours(Params::new(startup)));
    }
    match LINUX_CONTROLS.into_iter().find(|control| *control == name) {
        Some(control) if available.iter().any(|other| other == name) => {
            Found::Control(CongestionControl::Native(control))
        }
        Some(_) => Found::NotHere,
        None => Found::Unknown,
    }
}

fn available_controls() -> Vec<String> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    text.unwrap_or_default()
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

fn known_names(available: &[String]) -> Vec<&str> {
    let mut names: Vec<&str> = Startup::all().map(Startup::name).collect();
    names.extend(
        available
            .iter()
            .map(String::as_str)
            .filter(|name| !name.starts_with("su_")),
    );
    names
}

fn unknown_option(name: &str, known: &[&str]) -> String {
    let hint = match nearest(name, known) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("there are: {}", known.join(", ")),
    };
    format!("--startups: no start-up is called \"{name}\"; {hint}")
}

/// Parameters of start-ups that do not take part are checked all the same: a scenario is right or wrong whoever
/// runs it.
fn set_from_scenario(scenario: &Scenario, runners: &mut [Runner]) -> Result<(), CompareError> {
    for parameter in &scenario.parameters {
        let bad = |error: SettingError| match error {
            SettingError::Param(ParamError::Unknown { known, .. }) => {
                scenario.unknown_parameter(parameter, &known)
            }
            error => scenario.bad_parameter(parameter, &error.to_string()),
        };
        let setting = Setting::new(&parameter.startup, &parameter.name, parameter.value.into())
            .map_err(bad)?;
        for runner in runners.iter_mut() {
            if let CongestionControl::Ours(params) = &mut runner.control
                && params.startup() == setting.startup()
            {
                setting.apply(params).map_err(bad)?;
            }
        }
    }
    Ok(())
}

/// Sets a parameter of the runner called `label`, or of all of that start-up.
fn set_from_option(
    setting: &str,
    runners: &mut [Runner],
    label: Option<&str>,
) -> Result<(), CompareError> {
    let bad =
        |why: &dyn std::fmt::Display| CompareError::Option(format!("--param {setting}: {why}"));
    let checked: Setting = setting.parse().map_err(|error| bad(&error))?;
    let startup = checked.startup();
    let mut taken = false;
    for runner in runners.iter_mut() {
        if let CongestionControl::Ours(params) = &mut runner.control
            && params.startup() == startup
            && label.is_none_or(|label| runner.label == label)
        {
            checked.apply(params).map_err(|error| bad(&error))?;
            taken = true;
        }
    }
    if taken {
        Ok(())
    } else {
        Err(bad(&format!("{} does not take part", startup.name())))
    }
}

fn side_by_side(scenario: &Scenario, runners: usize) -> usize {
    let path = &scenario.path;
    let each = path
        .forward
        .rate
        .fastest()
        .max(path.reverse.rate.fastest())
        .bits_per_s();
    let room = (SIDE_BY_SIDE_BITS_PER_S / each).clamp(1, SIDE_BY_SIDE_MOST);
    runners.min(room as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
name = "t"
description = "for tests"
seed = 1
[path]
rate = "12mbit"
rtt = "400ms"
queue = "drop-tail:400"
[transfer]
server = "nginx"
client = "curl"
[compare]
startups = ["su_standard", "su_fast_start"]
repeat = 3
[[case]]
kind = "new-cold"
bytes = "50KiB"
[[case]]
kind = "resume-warm"
bytes = "50KiB"
warm_bytes = "2MB"
idle = "10s"
"#;

    fn plan(text: &str, settings: &[String]) -> Result<Plan, CompareError> {
        Plan::new(Scenario::parse("t.toml", text)?, None, None, None, settings)
    }

    #[test]
    fn every_repeat_begins_with_another_runner() {
        let plan = plan(SCENARIO, &[]).unwrap();
        let first: Vec<_> = (0..3)
            .map(|repeat| plan.order(repeat)[0].label.clone())
            .collect();
        assert_eq!(first, ["su_fast_start", "su_standard", "su_fast_start"]);
        assert_eq!(plan.transfers(), 12);
    }

    #[test]
    fn the_limit_is_the_round_trips_and_the_size_over_the_rate() {
        let plan = plan(SCENARIO, &[]).unwrap();
        let serialisation_ms = 51_200.0 * 8.0 / 12_000.0;
        let limits: Vec<f64> = plan
            .scenario
            .cases
            .iter()
            .map(|case| plan.scenario.path.limit_ms(case))
            .collect();
        assert!((limits[0] - (800.0 + serialisation_ms)).abs() < 1e-9);
        assert!((limits[1] - (400.0 + serialisation_ms)).abs() < 1e-9);
    }

    #[test]
    fn an_unknown_start_up_is_an_error_that_names_the_place_and_the_nearest_name() {
        let text = SCENARIO.replace("\"su_fast_start\"", "\"su_fast_strat\"");
        let error = plan(&text, &[]).unwrap_err().to_string();
        assert!(error.starts_with("t.toml:13:"), "{error}");
        assert!(error.contains("su_fast_start"), "{error}");
    }

    #[test]
    fn a_parameter_of_the_scenario_is_taken_and_a_wrong_one_is_named_with_its_line() {
        let text = format!("{SCENARIO}[startup.su_fast_start]\nmaxburst_pkts = 2\n");
        let plan_ok = plan(&text, &[]).unwrap();
        let params = plan_ok.runners[1].control.params().unwrap();
        assert_eq!(params.get("maxburst_pkts"), Some(2));

        let error = plan(&text.replace("= 2\n", "= 0\n"), &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("must be 1 to 64 pkts (got 0)"), "{error}");
        let error = plan(&text.replace("maxburst_pkts", "maxburts"), &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("maxburst_pkts"), "{error}");
    }

    #[test]
    fn one_start_up_can_take_part_twice_with_other_parameters() {
        let text = SCENARIO.replace(
            "[\"su_standard\", ",
            "[\"su_standard\", \"su_standard{iw_pkts=4;reno=1}\", ",
        );
        let of_file = plan(&text, &["su_standard.iw_pkts=30".to_owned()]).unwrap();
        let windows: Vec<_> = of_file.runners[..2]
            .iter()
            .map(|runner| {
                (
                    runner.label.as_str(),
                    runner.control.params().unwrap().get("iw_pkts"),
                )
            })
            .collect();
        assert_eq!(
            windows,
            [
                ("su_standard", Some(30)),
                ("su_standard{iw_pkts=4;reno=1}", Some(4))
            ]
        );
        for (wrong, expected) in [
            (
                "su_standard{iw_pkts=101}",
                "must be 1 to 100 pkts (got 101)",
            ),
            ("su_standard{iw_pkts", "su_standard{hystart=0}"),
            ("cubic{iw_pkts=3}", "cubic"),
        ] {
            let error = plan(&text.replace("su_standard{iw_pkts=4;reno=1}", wrong), &[])
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_setting_of_the_command_line_is_checked_as_a_whole() {
        let with = |setting: &str| plan(SCENARIO, &[setting.to_owned()]);
        let plan = with("su_standard.iw_pkts=30").unwrap();
        let params = plan.runners[0].control.params().unwrap();
        assert_eq!(params.get("iw_pkts"), Some(30));
        for (setting, expected) in [
            ("iw_pkts=3", "write STARTUP.PARAMETER=VALUE"),
            ("su_standard.iw_pkts", "write STARTUP.PARAMETER=VALUE"),
            ("su_standard.iw_pkts=many", "no whole number"),
            ("su_standard.iw_pkts=101", "must be 1 to 100 pkts (got 101)"),
            ("su_standrad.iw_pkts=3", "did you mean \"su_standard\"?"),
        ] {
            let error = with(setting).unwrap_err().to_string();
            assert!(error.contains(expected), "{setting}: {error}");
        }
    }
}
