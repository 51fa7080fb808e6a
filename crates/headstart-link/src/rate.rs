//! How fast a link is: always the same, by a schedule, or as a trace recorded it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::{AccessSpec, Rate, Span, UnitError};

/// The rate of a link over time. Time begins with the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RateSpec {
    /// Always the same: `12mbit`.
    Fixed(Rate),
    /// In steps: `12mbit@0s,1mbit@10s`, for ever the last; or `...,repeat@20s`.
    Schedule(RateSchedule),
    /// As recorded, see [`Trace`].
    Trace(Trace),
    /// As an access link that is shared with others: `wifi:...`, `docsis:...`.
    Access(AccessSpec),
}

impl RateSpec {
    /// One rate for what needs only one: the bandwidth-delay product, RED's idle time. A schedule's
    /// first, a trace's mean, what an access link carries of full packets that never stop coming.
    #[must_use]
    pub fn nominal(&self) -> Rate {
        match self {
            RateSpec::Fixed(rate) => *rate,
            RateSpec::Schedule(schedule) => schedule.steps[0].rate,
            RateSpec::Trace(trace) => trace.mean(),
            RateSpec::Access(access) => access.nominal(),
        }
    }

    /// The highest one that lasts for a while: a schedule's highest, a trace's mean.
    #[must_use]
    pub fn fastest(&self) -> Rate {
        let highest = |schedule: &RateSchedule| schedule.steps.iter().map(|step| step.rate).max();
        match self {
            RateSpec::Schedule(schedule) => highest(schedule).unwrap_or(self.nominal()),
            RateSpec::Access(access) => access.fastest(),
            RateSpec::Fixed(_) | RateSpec::Trace(_) => self.nominal(),
        }
    }
}

impl From<Rate> for RateSpec {
    fn from(rate: Rate) -> RateSpec {
        RateSpec::Fixed(rate)
    }
}

impl FromStr for RateSpec {
    type Err = RateSpecError;

    fn from_str(text: &str) -> Result<RateSpec, RateSpecError> {
        if AccessSpec::is_meant_by(text) {
            return text.parse().map(RateSpec::Access);
        }
        match text.contains(['@', ',']) {
            true => Ok(RateSpec::Schedule(text.parse()?)),
            false => Ok(RateSpec::Fixed(text.parse()?)),
        }
    }
}

impl fmt::Display for RateSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateSpec::Fixed(rate) => rate.fmt(f),
            RateSpec::Schedule(schedule) => schedule.fmt(f),
            RateSpec::Trace(trace) => trace.fmt(f),
            RateSpec::Access(access) => access.fmt(f),
        }
    }
}

impl Serialize for RateSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A rate that cannot be, with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RateSpecError {
    /// A rate or a time in it cannot be read.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The steps do not make a schedule.
    #[error("rate {text:?}: {why}; write it like \"12mbit@0s,1mbit@10s\" or \"...,repeat@20s\"")]
    Schedule {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An access link that cannot be.
    #[error(
        "rate {text:?}: {why}; write it like \"wifi:26mbit/52mbit,fail=10%\" or \"docsis:384kbit,map=2ms\""
    )]
    Access {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// A line of a trace cannot be read, or the trace is none.
    #[error("{name}:{line}: {why}: a trace has one time in ms a line, in rising order")]
    Trace {
        /// The trace's name.
        name: String,
        /// The line, the first being 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// One step of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) at_ns: u64,
    pub(crate) rate: Rate,
}

/// Rates in steps. The first is from the beginning; with a repetition it all begins again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateSchedule {
    pub(crate) steps: Arc<[Step]>,
    pub(crate) repeat_ns: Option<u64>,
}

impl FromStr for RateSchedule {
    type Err = RateSpecError;

    fn from_str(text: &str) -> Result<RateSchedule, RateSpecError> {
        let error = |why| RateSpecError::Schedule {
            text: text.to_owned(),
            why,
        };
        let (mut steps, mut repeat_ns) = (Vec::new(), None);
        for word in text.split(',') {
            let (rate, at) = word
                .split_once('@')
                .ok_or_else(|| error("a step without @"))?;
            let at_ns = at.parse::<Span>()?.as_ns();
            let last_ns = steps.last().map(|step: &Step| step.at_ns);
            if repeat_ns.is_some() {
                return Err(error("repeat comes last"));
            } else if last_ns.is_some_and(|last_ns| at_ns <= last_ns) {
                return Err(error("each step has to be later than the one before"));
            } else if last_ns.is_none() && at_ns > 0 {
                return Err(error("the first step has to be @0s"));
            } else if rate.trim() == "repeat" && last_ns.is_some() {
                repeat_ns = Some(at_ns);
            } else {
                steps.push(Step {
                    at_ns,
                    rate: rate.parse()?,
                });
            }
        }
        Ok(RateSchedule {
            steps: steps.into(),
            repeat_ns,
        })
    }
}

impl fmt::Display for RateSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma}{}@{}", step.rate, Span::from_ns(step.at_ns))?;
        }
        match self.repeat_ns {
            None => Ok(()),
            Some(repeat_ns) => write!(f, ",repeat@{}", Span::from_ns(repeat_ns)),
        }
    }
}

/// A recording of when a link could deliver a packet, in mahimahi's format: a line holds a time in
/// ms, and is an opportunity to deliver [`Trace::OPPORTUNITY_BYTES`] bytes at that time. Lines may
/// be equal. After the last one it begins again: the last time is also the length of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    name: Arc<str>,
    pub(crate) at_ms: Arc<[u64]>,
}

impl Trace {
    /// mahimahi's PACKET_SIZE: a packet of 1500 bytes and the header of its TUN device.
    pub const OPPORTUNITY_BYTES: u32 = 1504;
    /// That header. It counts, so that a packet of 1500 bytes takes exactly one opportunity.
    pub(crate) const TUN_HEADER_BYTES: u32 = 4;

    /// Reads a trace. `name` is for messages and reports: the file's name.
    ///
    /// # Errors
    /// What mahimahi refuses as well: no line, an empty one, one that is no number, a time that
    /// goes back, a trace that lasts 0 ms.
    pub fn parse(name: &str, text: &str) -> Result<Trace, RateSpecError> {
        let error = |line: usize, why: String| RateSpecError::Trace {
            name: name.to_owned(),
            line,
            why,
        };
        let mut at_ms: Vec<u64> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let ms = match line.parse() {
                Ok(ms) if ms <= u64::MAX / 1_000_000 => ms,
                _ => return Err(error(number, format!("{line:?} is no time in whole ms"))),
            };
            if let Some(&last_ms) = at_ms.last().filter(|&&last_ms| ms < last_ms) {
                return Err(error(
                    number,
                    format!("{ms} is earlier than {last_ms} before it"),
                ));
            }
            at_ms.push(ms);
        }
        match at_ms.last() {
            None => Err(error(1, "there is no line".to_owned())),
            Some(0) => Err(error(at_ms.len(), "the trace lasts 0 ms".to_owned())),
            Some(_) => Ok(Trace {
                name: name.into(),
                at_ms: at_ms.into(),
            }),
        }
    }

    /// How long it is until it begins again; never 0.
    pub(crate) fn period_ns(&self) -> u64 {
        self.at_ms.last().map_or(1, |ms| ms * 1_000_000)
    }

    /// What it can deliver in one period.
    pub(crate) fn period_bytes(&self) -> u64 {
        self.at_ms.len() as u64 * u64::from(Trace::OPPORTUNITY_BYTES)
    }

    /// Bits a second over the whole of it, at least 1.
    fn mean(&self) -> Rate {
        let bits = u128::from(self.period_bytes()) * 8 * 1_000_000_000;
        let bits_per_s = u64::try_from(bits / u128::from(self.period_ns())).unwrap_or(u64::MAX);
        Rate::at_least_one(bits_per_s)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trace {}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<RateSpec>().unwrap_err().to_string()
    }

    #[test]
    fn a_rate_is_written_as_it_is_read() {
        for text in [
            "12mbit",
            "12mbit@0ns,1mbit@10s",
            "12mbit@0ns,1mbit@10s,repeat@20s",
        ] {
            let spec: RateSpec = text.parse().unwrap();
            let shown = spec.to_string();
            assert_eq!(shown.parse::<RateSpec>().unwrap(), spec);
            assert_eq!(serde_json::to_string(&spec).unwrap(), format!("{shown:?}"));
        }
        let spec: RateSpec = "1mbit@0s,12mbit@10s".parse().unwrap();
        assert_eq!(spec.nominal().to_string(), "1mbit");
        assert_eq!(spec.fastest().to_string(), "12mbit");
    }

    #[test]
    fn a_schedule_that_cannot_be_is_refused_with_the_next_step() {
        assert!(error("12mbit@1s").contains("first step has to be @0s; write it like"));
        assert!(error("12mbit@0s,1mbit@0s").contains("later than the one before"));
        assert!(error("12mbit@0s,1mbit").contains("a step without @"));
        assert!(error("12mbit@0s,repeat@1s,1mbit@2s").contains("repeat comes last"));
        assert!(error("repeat@0s").contains("\"repeat\" is not a"));
        assert!(error("12mbit@0").contains("duration \"0\""));
        assert!(error("12mb").contains("unknown unit"));
    }

    #[test]
    fn a_trace_is_read_as_mahimahi_reads_it() {
        let trace = Trace::parse("lte.down", "0\n5\n5\n10\n").unwrap();
        assert_eq!(*trace.at_ms, [0, 5, 5, 10]);
        assert_eq!(trace.period_ns(), 10_000_000);
        let spec = RateSpec::Trace(trace);
        assert_eq!(spec.nominal().bits_per_s(), 4 * 1504 * 8 * 100);
        assert_eq!(spec.to_string(), "trace lte.down");
    }

    #[test]
    fn a_trace_that_mahimahi_refuses_is_refused_with_its_line() {
        let error = |text: &str| Trace::parse("t", text).unwrap_err().to_string();
        assert!(error("").contains("t:1: there is no line"));
        assert!(error("1\n\n2\n").contains("t:2: \"\" is no time"));
        assert!(error("1\n2.5\n").contains("t:2: \"2.5\" is no time in whole ms"));
        assert!(error("3\n2\n").contains("t:2: 2 is earlier than 3"));
        assert!(error("0\n0\n").contains("t:2: the trace lasts 0 ms"));
    }
}
