//! Who takes part: the kernel's own controls as the simulator has them, and the start-ups of `core/`.

use headstart_core::{ParamError, Params, Setting, SettingError, Startup};
use headstart_scenario::{AvoidanceSpec, Listed, Scenario, nearest};

use super::StudyError;
use crate::Runner;

/// Linux's own controls that the simulator has.
const NATIVE: [(&str, AvoidanceSpec); 2] = [
    ("cubic", AvoidanceSpec::CubicHystart),
    ("reno", AvoidanceSpec::Reno),
];
/// Those that it has not: left out with a warning where a scenario lists them.
const NOT_HERE: [&str; 13] = [
    "bbr",
    "bic",
    "cdg",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "westwood",
];

/// A contestant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    /// What it is called in results: its name as a congestion control, with the parameters in braces
    /// that it alone has.
    pub name: String,
    /// Who starts connections.
    pub runner: Runner,
    /// What follows slow start.
    pub avoidance: AvoidanceSpec,
}

impl Contender {
    /// The contestant of that name, with its defaults; `None`: no such name.
    pub fn named(name: &str, hystart: bool) -> Option<Contender> {
        let cubic = match hystart {
            true => AvoidanceSpec::CubicHystart,
            false => AvoidanceSpec::Cubic,
        };
        let native = NATIVE.iter().find(|(native, _)| *native == name);
        let (runner, avoidance) = match native {
            Some((_, AvoidanceSpec::CubicHystart)) => (Runner::Native, cubic),
            Some((_, avoidance)) => (Runner::Native, *avoidance),
            None => {
                let startup = Startup::named(name).ok()?;
                (Runner::Startup(Params::new(startup)), cubic)
            }
        };
        Some(Contender {
            name: name.to_owned(),
            runner,
            avoidance,
        })
    }

    fn is_of(&self, startup: Startup) -> bool {
        matches!(&self.runner, Runner::Startup(params) if params.startup() == startup)
    }

    fn set(&mut self, setting: &Setting) -> Result<(), SettingError> {
        if let Runner::Startup(params) = &mut self.runner {
            setting.apply(params)?;
            if params.get("reno") == Some(1) {
                self.avoidance = AvoidanceSpec::Reno;
            }
        }
        Ok(())
    }
}

/// The contestants of a scenario (or `startups` in their place) with their parameters, and warnings.
///
/// # Errors
/// [`StudyError`], with the place and the nearest name.
pub fn contenders(
    scenario: &Scenario,
    startups: Option<&[String]>,
    settings: &[String],
) -> Result<(Vec<Contender>, Vec<String>), StudyError> {
    let hystart = scenario.sim.hystart;
    let (mut found, mut warnings): (Vec<Contender>, Vec<String>) = (Vec::new(), Vec::new());
    let contestants: Vec<Listed> = match startups {
        Some(texts) => named_by_option(texts)?,
        None => scenario.compare.startups.clone(),
    };
    for listed in &contestants {
        let name = &listed.startup;
        match Contender::named(name, hystart) {
            Some(_) if found.iter().any(|other| other.name == listed.name) => {
                return Err(StudyError::Choice(format!(
                    "the start-up {} is named twice",
                    listed.name
                )));
            }
            Some(contender) => found.push(Contender {
                name: listed.name.clone(),
                ..contender
            }),
            None if NOT_HERE.contains(&name.as_str()) => {
                warnings.push(format!(
                    "{name} is left out: the simulator does not have it"
                ));
            }
            None => {
                let known = known();
                return Err(match startups {
                    None => scenario.unknown_startup(listed, &known).into(),
                    Some(_) => StudyError::Choice(unknown(name, &known)),
                });
            }
        }
    }
    if found.is_empty() {
        return Err(StudyError::Choice(
            "no start-up is left to simulate".to_owned(),
        ));
    }
    set_from_scenario(scenario, &mut found)?;
    for setting in settings {
        set_from_option(setting, &mut found, None)?;
    }
    for listed in &contestants {
        for setting in &listed.settings {
            set_from_option(setting, &mut found, Some(&listed.name))?;
        }
    }
    Ok((found, warnings))
}

/// The contestants of `--startups`.
fn named_by_option(texts: &[String]) -> Result<Vec<Listed>, StudyError> {
    let listed = texts.iter().map(|text| {
        Listed::parse(text, 0).ok_or_else(|| {
            StudyError::Choice(format!(
                "--startups: \"{text}\" is no start-up with parameters; write it like su_standard{{hystart=0}}"
            ))
        })
    });
    listed.collect()
}

fn known() -> Vec<&'static str> {
    let natives = NATIVE.iter().map(|(name, _)| *name);
    natives.chain(Startup::all().map(Startup::name)).collect()
}

fn unknown(name: &str, known: &[&str]) -> String {
    let hint = match nearest(name, known) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("there are: {}", known.join(", ")),
    };
    format!("--startups: no start-up is called \"{name}\"; {hint}")
}

/// Parameters of start-ups that do not take part are checked all the same.
fn set_from_scenario(scenario: &Scenario, found: &mut [Contender]) -> Result<(), StudyError> {
    for parameter in &scenario.parameters {
        let bad = |error: SettingError| match error {
            SettingError::Param(ParamError::Unknown { known, .. }) => {
                scenario.unknown_parameter(parameter, &known)
            }
            error => scenario.bad_parameter(parameter, &error.to_string()),
        };
        let setting = Setting::new(&parameter.startup, &parameter.name, parameter.value.into())
            .map_err(bad)?;
        let of_startup = |other: &&mut Contender| other.is_of(setting.startup());
        for contender in found.iter_mut().filter(of_startup) {
            contender.set(&setting).map_err(bad)?;
        }
    }
    Ok(())
}

/// Sets a parameter of the contestant called `label`, or of all of that start-up.
fn set_from_option(
    setting: &str,
    found: &mut [Contender],
    label: Option<&str>,
) -> Result<(), StudyError> {
    let bad = |why: &dyn std::fmt::Display| StudyError::Choice(format!("--param {setting}: {why}"));
    let checked: Setting = setting.parse().map_err(|error| bad(&error))?;
    let startup = checked.startup();
    let mut taken = false;
    for contender in found
        .iter_mut()
        .filter(|other| other.is_of(startup) && label.is_none_or(|label| other.name == label))
    {
        contender.set(&checked).map_err(|error| bad(&error))?;
        taken = true;
    }
    match taken {
        true => Ok(()),
        false => Err(bad(&format!("{} does not take part", startup.name()))),
    }
}
