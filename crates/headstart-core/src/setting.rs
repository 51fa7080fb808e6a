//! How users set a parameter: `STARTUP.PARAMETER=VALUE`, and `NAME=VALUE` where it is clear of what.

use std::str::FromStr;

use crate::registry::{ParamError, Params, Startup, UnknownStartup};

/// `NAME=VALUE`: a name and a whole number; whether there is such a parameter is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment<'a> {
    /// What is set.
    pub name: &'a str,
    /// To what.
    pub value: u64,
}

/// `STARTUP.PARAMETER=VALUE`: of a start-up that there is, a parameter that it has, in its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    startup: Startup,
    name: &'static str,
    value: u32,
}

/// Why it is no setting.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// A part is missing.
    #[error("write STARTUP.PARAMETER=VALUE, e.g. su_fast_start.maxburst_pkts=2")]
    Form,
    /// A part is missing where it is clear of what.
    #[error("write NAME=VALUE, e.g. maxburst_pkts=2")]
    AssignmentForm,
    /// The value is not in figures.
    #[error("\"{0}\" is no whole number")]
    Number(String),
    /// There is no such start-up.
    #[error(transparent)]
    Startup(#[from] UnknownStartup),
    /// It has no such parameter, or not with that value.
    #[error(transparent)]
    Param(#[from] ParamError),
}

impl<'a> Assignment<'a> {
    /// Reads `NAME=VALUE`.
    ///
    /// # Errors
    /// [`SettingError::AssignmentForm`] and [`SettingError::Number`].
    pub fn parse(text: &'a str) -> Result<Assignment<'a>, SettingError> {
        let (name, value) = text.split_once('=').ok_or(SettingError::AssignmentForm)?;
        match value.parse() {
            Ok(value) if !name.is_empty() => Ok(Assignment { name, value }),
            Ok(_) => Err(SettingError::AssignmentForm),
            Err(_) => Err(SettingError::Number(value.to_owned())),
        }
    }
}

impl Setting {
    /// The parameter `name` of `startup`, set to `value`.
    ///
    /// # Errors
    /// [`SettingError::Startup`] and [`SettingError::Param`], with the nearest name or the range.
    pub fn new(startup: &str, name: &str, value: u64) -> Result<Setting, SettingError> {
        let startup = Startup::named(startup)?;
        let mut params = Params::new(startup);
        params.set(name, value)?;
        let known = startup.params().find(|known| known.name == name);
        match (known, params.get(name)) {
            (Some(known), Some(value)) => Ok(Setting {
                startup,
                name: known.name,
                value,
            }),
            _ => Err(SettingError::Form),
        }
    }

    /// Whose parameter it is.
    pub fn startup(&self) -> Startup {
        self.startup
    }

    /// Sets it in `params`.
    ///
    /// # Errors
    /// [`SettingError::Param`]: `params` are of another start-up, which does not have it.
    pub fn apply(&self, params: &mut Params) -> Result<(), SettingError> {
        Ok(params.set(self.name, self.value.into())?)
    }
}

impl FromStr for Setting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Setting, SettingError> {
        let (owner, value) = text.split_once('=').ok_or(SettingError::Form)?;
        let (startup, name) = owner.split_once('.').ok_or(SettingError::Form)?;
        // A name that is not there is said before what is wrong with the value.
        Startup::named(startup)?;
        match value.parse() {
            Ok(value) => Setting::new(startup, name, value),
            Err(_) => Err(SettingError::Number(value.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        text.parse::<Setting>().unwrap_err().to_string()
    }

    #[test]
    fn a_setting_is_applied_to_the_parameters_of_its_start_up() {
        let setting: Setting = "su_standard.iw_pkts=30".parse().unwrap();
        assert_eq!(setting.startup().name(), "su_standard");
        let mut params = Params::new(setting.startup());
        setting.apply(&mut params).unwrap();
        assert_eq!(params.get("iw_pkts"), Some(30));
        assert_eq!(
            Ok(setting),
            Setting::new("su_standard", "iw_pkts", 30),
            "written or given in parts"
        );
    }

    #[test]
    fn a_setting_of_another_start_up_is_refused_where_that_has_no_such_parameter() {
        let setting: Setting = "su_fast_start.maxburst_pkts=2".parse().unwrap();
        let mut other = Params::new(Startup::named("su_hystart").unwrap());
        let error = setting.apply(&mut other).unwrap_err();
        assert!(matches!(
            error,
            SettingError::Param(ParamError::Unknown { .. })
        ));
    }

    #[test]
    fn what_is_wrong_with_a_setting_is_said_with_what_would_be_right() {
        for (text, expected) in [
            ("", "write STARTUP.PARAMETER=VALUE"),
            ("iw_pkts=3", "write STARTUP.PARAMETER=VALUE"),
            ("su_standard.iw_pkts", "write STARTUP.PARAMETER=VALUE"),
            ("su_standrad.iw_pkts=3", "did you mean \"su_standard\"?"),
            ("su_standard.iw=3", "did you mean \"iw_pkts\"?"),
            ("su_standard.iw_pkts=many", "\"many\" is no whole number"),
            ("su_standard.iw_pkts=-1", "\"-1\" is no whole number"),
            ("su_standard.iw_pkts=101", "must be 1 to 100 pkts (got 101)"),
        ] {
            assert!(why(text).contains(expected), "{text}: {}", why(text));
        }
    }

    #[test]
    fn an_assignment_is_a_name_and_a_whole_number() {
        let assignment = Assignment::parse("lifetime_s=60").unwrap();
        assert_eq!((assignment.name, assignment.value), ("lifetime_s", 60));
        for text in ["lifetime_s", "=60", "lifetime_s=1e3", "lifetime_s="] {
            assert!(Assignment::parse(text).is_err(), "{text}");
        }
    }
}
