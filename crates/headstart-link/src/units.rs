//! Rates and durations as people write them (`12mbit`, `1.5ms`), kept as exact integers.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text::serde_as_text;

/// A text that is not a rate or a duration, with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not a number followed by one of the known units.
    #[error("{kind} {text:?} is not a number with a unit: write it like {examples}")]
    Malformed {
        /// `rate` or `duration`.
        kind: &'static str,
        /// What was given.
        text: String,
        /// Texts that would do.
        examples: &'static str,
    },
    /// A number with a unit that does not exist.
    #[error("{kind} {text:?} has an unknown unit {unit:?}: known are {known}")]
    UnknownUnit {
        /// `rate` or `duration`.
        kind: &'static str,
        /// What was given.
        text: String,
        /// The unit as it was given.
        unit: String,
        /// The units there are.
        known: String,
    },
    /// More decimal places than the smallest unit can hold.
    #[error("{kind} {text:?} is finer than 1 {smallest}: round it")]
    TooFine {
        /// `rate` or `duration`.
        kind: &'static str,
        /// What was given.
        text: String,
        /// The smallest unit.
        smallest: &'static str,
    },
    /// More than 64 bits can hold.
    #[error("{kind} {text:?} is too large: give at most {most}")]
    TooLarge {
        /// `rate` or `duration`.
        kind: &'static str,
        /// What was given.
        text: String,
        /// The largest value.
        most: String,
    },
    /// A link of rate 0 carries nothing.
    #[error("rate {text:?} is 0 and would carry nothing: give at least 1bit")]
    ZeroRate {
        /// What was given.
        text: String,
    },
}

/// One family of units: what it is called, how it looks, and the units, largest first.
struct Scale {
    kind: &'static str,
    examples: &'static str,
    smallest: &'static str,
    units: &'static [(&'static str, u64)],
}

const RATE: Scale = Scale {
    kind: "rate",
    examples: "\"12mbit\", \"1.5mbit\" or \"100kbit\"",
    smallest: "bit/s",
    units: &[
        ("gbit", 1_000_000_000),
        ("mbit", 1_000_000),
        ("kbit", 1_000),
        ("bit", 1),
    ],
};

const SPAN: Scale = Scale {
    kind: "duration",
    examples: "\"400ms\", \"10s\" or \"250us\"",
    smallest: "ns",
    units: &[
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ],
};

impl Scale {
    /// The value of `text` in the smallest unit.
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let (kind, owned) = (self.kind, || text.to_owned());
        let malformed = || UnitError::Malformed {
            kind,
            text: owned(),
            examples: self.examples,
        };
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = trimmed.split_at(split.ok_or_else(malformed)?);
        let unit = unit.trim_start();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
            return Err(malformed());
        }
        let Some(&(_, factor)) = self
            .units
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        else {
            let names: Vec<&str> = self.units.iter().rev().map(|(name, _)| *name).collect();
            let (unit, known) = (unit.to_owned(), names.join(", "));
            return Err(UnitError::UnknownUnit {
                kind,
                text: owned(),
                unit,
                known,
            });
        };
        let too_large = || UnitError::TooLarge {
            kind,
            text: owned(),
            most: self.show(u64::MAX),
        };
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let mut value = whole.checked_mul(factor).ok_or_else(too_large)?;
        let mut place = factor;
        for digit in fraction.trim_end_matches('0').bytes() {
            if !place.is_multiple_of(10) {
                let smallest = self.smallest;
                return Err(UnitError::TooFine {
                    kind,
                    text: owned(),
                    smallest,
                });
            }
            place /= 10;
            value = value
                .checked_add(u64::from(digit - b'0') * place)
                .ok_or_else(too_large)?;
        }
        Ok(value)
    }

    /// The shortest exact text of `value`, in the largest unit of which there is at least one.
    fn show(&self, value: u64) -> String {
        let fitting = self.units.iter().find(|(_, factor)| value >= *factor);
        let Some((name, factor)) = fitting.or(self.units.first()) else {
            return String::new();
        };
        let (whole, rest) = (value / factor, value % factor);
        if rest == 0 {
            return format!("{whole}{name}");
        }
        let places = factor.ilog10() as usize;
        let digits = format!("{rest:0places$}");
        format!("{whole}.{}{name}", digits.trim_end_matches('0'))
    }
}

/// A rate of a link, in whole bits a second, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate(u64);

impl Rate {
    /// # Errors
    /// [`UnitError::ZeroRate`] when `bits_per_s` is 0.
    pub fn from_bits_per_s(bits_per_s: u64) -> Result<Rate, UnitError> {
        if bits_per_s == 0 {
            return Err(UnitError::ZeroRate {
                text: "0bit".to_owned(),
            });
        }
        Ok(Rate(bits_per_s))
    }

    /// 1 in place of 0.
    pub(crate) const fn at_least_one(bits_per_s: u64) -> Rate {
        Rate(if bits_per_s == 0 { 1 } else { bits_per_s })
    }

    /// In bits a second; at least 1.
    #[must_use]
    pub fn bits_per_s(self) -> u64 {
        self.0
    }

    /// How many bytes fit into the link and its delay: the bandwidth-delay product, rounded up.
    #[must_use]
    pub fn bytes_in(self, time: Span) -> u64 {
        let bits_ns = u128::from(self.0) * u128::from(time.as_ns());
        u64::try_from(bits_ns.div_ceil(8 * 1_000_000_000)).unwrap_or(u64::MAX)
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Rate, UnitError> {
        match RATE.parse(text)? {
            0 => Err(UnitError::ZeroRate {
                text: text.to_owned(),
            }),
            bits_per_s => Ok(Rate(bits_per_s)),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&RATE.show(self.0))
    }
}

serde_as_text!(Rate, UnitError);

/// A length of time, in whole nanoseconds. 0 is allowed.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// From nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns)
    }

    /// In nanoseconds.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// In milliseconds, for display and arithmetic that need not be exact.
    #[must_use]
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// As the standard library's duration.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Span, UnitError> {
        SPAN.parse(text).map(Span)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&SPAN.show(self.0))
    }
}

serde_as_text!(Span, UnitError);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits(text: &str) -> u64 {
        text.parse::<Rate>().unwrap().bits_per_s()
    }

    fn ns(text: &str) -> u64 {
        text.parse::<Span>().unwrap().as_ns()
    }

    fn rate_error(text: &str) -> String {
        text.parse::<Rate>().unwrap_err().to_string()
    }

    #[test]
    fn a_rate_is_read_exactly() {
        assert_eq!(bits("12mbit"), 12_000_000);
        assert_eq!(bits("1.5mbit"), 1_500_000);
        assert_eq!(bits("100kbit"), 100_000);
        assert_eq!(bits("1gbit"), 1_000_000_000);
        assert_eq!(bits("12000000bit"), 12_000_000);
        assert_eq!(bits("1.50 Mbit"), 1_500_000);
        assert_eq!(bits("0.1gbit"), 100_000_000);
    }

    #[test]
    fn a_duration_is_read_exactly() {
        assert_eq!(ns("400ms"), 400_000_000);
        assert_eq!(ns("10s"), 10_000_000_000);
        assert_eq!(ns("250us"), 250_000);
        assert_eq!(ns("1.5ms"), 1_500_000);
        assert_eq!(ns("0s"), 0);
        assert_eq!(ns("0.000000001s"), 1);
    }

    #[test]
    fn a_wrong_text_is_refused_with_what_to_write_instead() {
        assert!(rate_error("12").contains("write it like \"12mbit\""));
        assert!(rate_error("").contains("is not a number"));
        assert!(rate_error("fast").contains("is not a number"));
        assert!(rate_error("-3mbit").contains("is not a number"));
        assert!(rate_error("1..2mbit").contains("is not a number"));
        assert!(rate_error("12mb").contains("known are bit, kbit, mbit, gbit"));
        assert!(rate_error("1.5bit").contains("finer than 1 bit/s"));
        assert!(rate_error("99999999999gbit").contains("too large"));
        assert!(
            "1h".parse::<Span>()
                .unwrap_err()
                .to_string()
                .contains("ns, us, ms, s")
        );
    }

    #[test]
    fn a_rate_of_zero_is_refused_and_a_delay_of_zero_is_not() {
        assert!(rate_error("0mbit").contains("give at least 1bit"));
        assert!(Rate::from_bits_per_s(0).is_err());
        assert_eq!("0ms".parse::<Span>().unwrap(), Span::ZERO);
    }

    #[test]
    fn units_travel_through_serde_as_text() {
        let rate: Rate = serde_json::from_str("\"1.5mbit\"").unwrap();
        assert_eq!(serde_json::to_string(&rate).unwrap(), "\"1.5mbit\"");
        let refused = serde_json::from_str::<Span>("\"400\"")
            .unwrap_err()
            .to_string();
        assert!(refused.contains("400ms"), "{refused}");
    }

    #[test]
    fn the_bandwidth_delay_product_is_exact() {
        let rate: Rate = "12mbit".parse().unwrap();
        assert_eq!(rate.bytes_in("400ms".parse().unwrap()), 600_000);
        assert_eq!(rate.bytes_in(Span::ZERO), 0);
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back_the_same(value in 1u64..) {
            let rate = Rate::from_bits_per_s(value).unwrap();
            prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
            let span = Span::from_ns(value);
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
    }
}
