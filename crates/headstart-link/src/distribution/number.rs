//! Plain numbers, as people write them (`0.5`, `1.2`), kept as exact integers.

use std::fmt;
use std::str::FromStr;

/// A number in millionths, from 0 to 4294.967295: a shape, a sigma.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(u32);

impl Number {
    const PLACES: usize = 6;

    /// From millionths.
    #[must_use]
    pub const fn from_millionths(millionths: u32) -> Number {
        Number(millionths)
    }

    /// As a float.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

impl FromStr for Number {
    type Err = String;

    fn from_str(text: &str) -> Result<Number, String> {
        let trimmed = text.trim();
        let (whole, fraction) = trimmed.split_once('.').unwrap_or((trimmed, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
        let fraction_digits = fraction.trim_end_matches('0');
        let fits = fraction_digits.len() <= Number::PLACES;
        if !digits(whole) || !digits(fraction) || !fits {
            return Err(format!("{text:?} is no number with at most 6 decimals"));
        }
        let (places, most) = (Number::PLACES, Number(u32::MAX));
        format!("{whole}{fraction_digits:0<places$}")
            .parse()
            .map(Number)
            .map_err(|_| format!("{text:?} is more than {most}"))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if rest == 0 {
            return f.pad(&whole.to_string());
        }
        let digits = format!("{rest:06}");
        f.pad(&format!("{whole}.{}", digits.trim_end_matches('0')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_is_read_exactly_or_refused() {
        let number = |text: &str| text.parse::<Number>();
        assert_eq!(number("1.2"), Ok(Number(1_200_000)));
        assert_eq!(number("0.000001"), Ok(Number(1)));
        assert_eq!(number("3"), Ok(Number(3_000_000)));
        for text in ["", ".5", "1.", "-1", "1e3", "0.0000001"] {
            assert!(number(text).unwrap_err().contains("is no number"), "{text}");
        }
        assert!(
            number("5000")
                .unwrap_err()
                .contains("more than 4294.967295")
        );
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back_the_same(millionths: u32) {
            let number = Number(millionths);
            prop_assert_eq!(number.to_string().parse::<Number>(), Ok(number));
        }
    }
}
