//! Shares and probabilities, as people write them (`1%`, `0.002`), kept as exact integers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::serde_as_text;

/// A number from 0 to 1 in billionths: a probability, a weight.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Share(u32);

/// A text that is no share, with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no share from 0 to 1 {why}: write it like \"1%\", \"0.1%\" or \"0.002\"")]
pub struct ShareError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl Share {
    const BILLION: u32 = 1_000_000_000;
    /// Nothing, never.
    pub const ZERO: Share = Share(0);
    /// All, always.
    pub const ONE: Share = Share(Share::BILLION);

    /// For constants: refused by the compiler above 1.
    pub(crate) const fn exactly(billionths: u32) -> Share {
        assert!(billionths <= Share::BILLION);
        Share(billionths)
    }

    /// In billionths; `None` above 1.
    #[must_use]
    pub const fn from_billionths(billionths: u32) -> Option<Share> {
        match billionths <= Share::BILLION {
            true => Some(Share(billionths)),
            false => None,
        }
    }

    /// In billionths.
    #[must_use]
    pub const fn billionths(self) -> u32 {
        self.0
    }

    /// As a number from 0 to 1, for arithmetic that need not be exact.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Share::BILLION)
    }

    /// What is left to 1.
    #[must_use]
    pub const fn rest(self) -> Share {
        Share(Share::BILLION - self.0)
    }
}

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Share, ShareError> {
        let error = |why| ShareError {
            text: text.to_owned(),
            why,
        };
        let trimmed = text.trim();
        let (number, places) = match trimmed.strip_suffix('%') {
            Some(percent) => (percent.trim_end(), 7),
            None => (trimmed, 9),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(error("in digits"));
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > places {
            return Err(error("of at most a billionth's precision"));
        }
        let all_digits = format!("{whole}{fraction:0<places$}");
        all_digits
            .parse()
            .ok()
            .and_then(Share::from_billionths)
            .ok_or_else(|| error("but more than 1"))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 10_000_000, self.0 % 10_000_000);
        if rest == 0 {
            return f.pad(&format!("{whole}%"));
        }
        let digits = format!("{rest:07}");
        f.pad(&format!("{whole}.{}%", digits.trim_end_matches('0')))
    }
}

serde_as_text!(Share, ShareError);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn billionths(text: &str) -> u32 {
        text.parse::<Share>().unwrap().billionths()
    }

    #[test]
    fn a_share_is_read_exactly() {
        assert_eq!(billionths("1%"), 10_000_000);
        assert_eq!(billionths("0.1 %"), 1_000_000);
        assert_eq!(billionths("0.002"), 2_000_000);
        assert_eq!(billionths("100%"), 1_000_000_000);
        assert_eq!(billionths("1"), 1_000_000_000);
        assert_eq!(billionths("0"), 0);
        assert_eq!(billionths("0.0000001%"), 1);
    }

    #[test]
    fn a_text_that_is_no_share_is_refused_with_what_to_write_instead() {
        for text in [
            "",
            "%",
            "-1%",
            ".5",
            "1.",
            "half",
            "101%",
            "1.1",
            "1e-3",
            "99999999999",
        ] {
            let said = text.parse::<Share>().unwrap_err().to_string();
            assert!(said.contains("write it like \"1%\""), "{said}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back_the_same(billionths in 0u32..=1_000_000_000) {
            let share = Share::from_billionths(billionths).unwrap();
            prop_assert_eq!(share.to_string().parse::<Share>().unwrap(), share);
        }
    }
}
