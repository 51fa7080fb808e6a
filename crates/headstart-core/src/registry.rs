//! The start-ups there are, with their parameters: read from the tables that the C files declare.

use serde::Serialize;

use crate::abi::{NativeParam, NativeStartup, ParamWords, native_startups, uses};

/// One parameter of a start-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Param {
    /// Its name, with the unit.
    pub name: &'static str,
    /// The unit in words: `pkts`, `us`, `s`, `switch`.
    pub unit: &'static str,
    /// The value when nothing else is said.
    pub default: u32,
    /// The least value allowed.
    pub min: u32,
    /// The greatest value allowed.
    pub max: u32,
    /// One line for users.
    pub help: &'static str,
}

/// A start-up. Cheap to copy; all of them are known at compile time.
#[derive(Clone, Copy)]
pub struct Startup(&'static NativeStartup);

// SAFETY: the tables behind the reference are constants of native.c.
unsafe impl Send for Startup {}
// SAFETY: as above.
unsafe impl Sync for Startup {}

impl std::fmt::Debug for Startup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Startup {
    fn eq(&self, other: &Self) -> bool {
        self.number() == other.number()
    }
}

impl Eq for Startup {}

/// The name is of no start-up.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no start-up is called \"{name}\"; {hint}")]
pub struct UnknownStartup {
    name: String,
    hint: String,
}

impl Startup {
    /// All start-ups, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Startup> {
        native_startups().iter().map(Startup)
    }

    /// The start-up of that name, e.g. `su_fast_start`.
    ///
    /// # Errors
    /// [`UnknownStartup`], with the nearest name or the list of all.
    pub fn named(name: &str) -> Result<Startup, UnknownStartup> {
        Startup::all()
            .find(|startup| startup.name() == name)
            .ok_or_else(|| UnknownStartup {
                name: name.to_owned(),
                hint: nearest(name, Startup::all().map(|startup| startup.name())),
            })
    }

    /// Its name as a TCP congestion control of the kernel: at most 15 characters.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Where it is published.
    pub fn source(self) -> &'static str {
        self.0.source()
    }

    /// Its number in recordings (`enum su_alg`).
    pub fn number(self) -> u32 {
        self.0.alg
    }

    /// Whether it starts from what is remembered of the path. The others only add to it.
    pub fn recalls(self) -> bool {
        self.0.uses & uses::PATH != 0
    }

    /// Whether its verdicts pace, ask for bursts, or hold a window in recovery.
    pub fn shapes(self) -> bool {
        self.0.uses & uses::SHAPE != 0
    }

    /// Whether its verdicts mark packets with low drop priority.
    pub fn marks(self) -> bool {
        self.0.uses & uses::MARKS != 0
    }

    /// Its parameters, in the order of `struct su_*_params`.
    pub fn params(self) -> impl Iterator<Item = Param> {
        rows(self.0.params())
    }
}

/// The rows of a table of parameters.
pub(crate) fn rows(table: &'static [NativeParam]) -> impl Iterator<Item = Param> {
    table.iter().map(|row| Param {
        name: row.name(),
        unit: row.unit(),
        default: row.value,
        min: row.min,
        max: row.max,
        help: row.help(),
    })
}

impl Param {
    /// The value as a word, where it lies in the range.
    pub(crate) fn check(&self, owner: &'static str, value: u64) -> Result<u32, ParamError> {
        match u32::try_from(value) {
            Ok(word) if (self.min..=self.max).contains(&word) => Ok(word),
            _ => Err(ParamError::Range {
                startup: owner,
                name: self.name,
                value,
                min: self.min,
                max: self.max,
                unit: self.unit,
            }),
        }
    }
}

/// Why a parameter was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// There is none of that name.
    #[error("{startup} has no parameter \"{name}\"; {hint}")]
    Unknown {
        /// The start-up.
        startup: &'static str,
        /// The name that was given.
        name: String,
        /// The nearest name, or all names.
        hint: String,
        /// All names.
        known: Vec<&'static str>,
    },
    /// The value is out of its range.
    #[error("{startup}: {name} must be {min} to {max} {unit} (got {value})")]
    Range {
        /// The start-up.
        startup: &'static str,
        /// The parameter.
        name: &'static str,
        /// The value that was given.
        value: u64,
        /// The least value allowed.
        min: u32,
        /// The greatest value allowed.
        max: u32,
        /// Its unit.
        unit: &'static str,
    },
}

/// The parameters of a start-up, all within their ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    startup: Startup,
    words: ParamWords,
}

impl Params {
    /// The defaults.
    pub fn new(startup: Startup) -> Params {
        let mut words = ParamWords::default();
        for (word, param) in words.0.iter_mut().zip(startup.params()) {
            *word = param.default;
        }
        Params { startup, words }
    }

    /// Sets one parameter.
    ///
    /// # Errors
    /// [`ParamError`]: no such parameter, or a value out of its range.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), ParamError> {
        let startup = self.startup.name();
        let Some((index, param)) = self
            .startup
            .params()
            .enumerate()
            .find(|(_, param)| param.name == name)
        else {
            return Err(ParamError::Unknown {
                startup,
                name: name.to_owned(),
                hint: nearest(name, self.startup.params().map(|param| param.name)),
                known: self.startup.params().map(|param| param.name).collect(),
            });
        };
        self.words.0[index] = param.check(startup, value)?;
        Ok(())
    }

    /// The value of a parameter, by name.
    pub fn get(&self, name: &str) -> Option<u32> {
        let index = self.startup.params().position(|param| param.name == name)?;
        self.words.0.get(index).copied()
    }

    /// The start-up they are of.
    pub fn startup(&self) -> Startup {
        self.startup
    }

    /// The values as the C side reads them.
    pub fn words(&self) -> &ParamWords {
        &self.words
    }
}

/// "did you mean ..." where a name is near, else the list of all names.
pub(crate) fn nearest(name: &str, candidates: impl Iterator<Item = &'static str>) -> String {
    let candidates: Vec<_> = candidates.collect();
    let near = candidates
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate);
    let begun = || {
        let mut begun = candidates.iter().filter(|known| known.starts_with(name));
        begun.next().filter(|_| !name.is_empty())
    };
    match near.or_else(begun) {
        Some(candidate) => format!("did you mean \"{candidate}\"?"),
        None => format!("there are: {}", candidates.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_fits_the_kernels_fifteen_characters_and_is_unique() {
        let mut names: Vec<_> = Startup::all().map(Startup::name).collect();
        assert!(
            names
                .iter()
                .all(|name| name.len() <= 15 && name.starts_with("su_"))
        );
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Startup::all().count());
    }

    #[test]
    fn every_default_lies_in_its_range() {
        for startup in Startup::all() {
            for param in startup.params() {
                assert!(
                    (param.min..=param.max).contains(&param.default),
                    "{startup:?} {param:?}"
                );
                assert!(!param.help.is_empty() && !param.unit.is_empty());
            }
        }
    }

    #[test]
    fn a_misspelt_start_up_is_answered_with_the_nearest_name() {
        let error = Startup::named("su_fast_strat").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no start-up is called \"su_fast_strat\"; did you mean \"su_fast_start\"?"
        );
    }

    #[test]
    fn a_parameter_out_of_range_is_refused_with_its_range() {
        let mut params = Params::new(Startup::named("su_standard").unwrap());
        assert_eq!(
            params.set("iw_pkts", 0).unwrap_err().to_string(),
            "su_standard: iw_pkts must be 1 to 100 pkts (got 0)"
        );
        params.set("iw_pkts", 30).unwrap();
        assert_eq!(params.get("iw_pkts"), Some(30));
        assert!(
            params
                .set("iw", 3)
                .unwrap_err()
                .to_string()
                .contains("did you mean")
        );
    }
}
