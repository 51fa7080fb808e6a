//! Amounts of data: `"50KiB"`, `"2MB"`, `"51200"`.

use std::fmt;
use std::str::FromStr;

use headstart_link::Quantity;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// An amount of data in bytes.
///
/// Written as a whole number with an optional unit: `B`, `kB`, `MB`, `GB` (powers of 1000), `KiB`, `MiB`, `GiB` (powers
/// of 1024). The `B` may be left out and the letters may be of either case. Serialises as the number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// An amount of `bytes` bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The amount in bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

/// Sizes can be drawn by lot: `Distribution<ByteSize>` reads `exp:10KiB`.
impl Quantity for ByteSize {
    const EXAMPLES: [&'static str; 3] = ["1KiB", "10KiB", "1MB"];
    const MODELS: &'static [(&'static str, &'static str)] = &[
        ("mah-1997", include_str!("models/mah-1997.bytes.csv")),
        ("surge", include_str!("models/surge.bytes.csv")),
    ];

    fn from_whole(bytes: u64) -> Self {
        Self(bytes)
    }

    fn whole(self) -> u64 {
        self.0
    }
}

/// A number of things, to be drawn from a distribution: `4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Count, String> {
        let number = text.trim().parse();
        number
            .map(Count)
            .map_err(|_| format!("{text:?} is not a whole number"))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Quantity for Count {
    const EXAMPLES: [&'static str; 3] = ["1", "4", "20"];
    const MODELS: &'static [(&'static str, &'static str)] = &[
        ("mah-1997", include_str!("models/mah-1997.objects.csv")),
        ("surge", include_str!("models/surge.objects.csv")),
    ];

    fn from_whole(number: u64) -> Count {
        Count(number)
    }

    fn whole(self) -> u64 {
        self.0
    }
}

/// A text that is not a [`ByteSize`], with what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ByteSizeError {
    /// Not a whole number followed by one of the known units.
    #[error("size {text:?} is not a whole number with a unit: write it like \"50KiB\" or \"2MB\"")]
    Malformed {
        /// What was given.
        text: String,
    },
    /// A number with a unit that does not exist.
    #[error("size {text:?} has an unknown unit {unit:?}: known are B, kB, MB, GB, KiB, MiB, GiB")]
    UnknownUnit {
        /// What was given.
        text: String,
        /// The unit as it was given.
        unit: String,
    },
    /// More bytes than 64 bits hold.
    #[error("size {text:?} is too large: give at most \"17179869183GiB\"")]
    TooLarge {
        /// What was given.
        text: String,
    },
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let end = trimmed
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(trimmed.len());
        let (digits, unit) = trimmed.split_at(end);
        let unit = unit.trim();
        if digits.is_empty() || unit.starts_with(['.', ',']) {
            return Err(ByteSizeError::Malformed { text: text.into() });
        }
        let bytes_per_unit: u64 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" => 1000,
            "m" | "mb" => 1000 * 1000,
            "g" | "gb" => 1000 * 1000 * 1000,
            "ki" | "kib" => 1 << 10,
            "mi" | "mib" => 1 << 20,
            "gi" | "gib" => 1 << 30,
            _ => {
                return Err(ByteSizeError::UnknownUnit {
                    text: text.into(),
                    unit: unit.into(),
                });
            }
        };
        let bytes = digits
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(bytes_per_unit));
        bytes
            .map(Self)
            .ok_or_else(|| ByteSizeError::TooLarge { text: text.into() })
    }
}

impl fmt::Display for ByteSize {
    /// The largest unit that states the amount exactly: 51200 is `50KiB`, 2000000 is `2MB`, 1448 is `1448B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 6] = [
            (1 << 30, "GiB"),
            (1_000_000_000, "GB"),
            (1 << 20, "MiB"),
            (1_000_000, "MB"),
            (1 << 10, "KiB"),
            (1000, "kB"),
        ];
        let exact = UNITS
            .iter()
            .find(|(unit, _)| self.0 >= *unit && self.0.is_multiple_of(*unit));
        match exact {
            Some((unit, name)) => write!(f, "{}{name}", self.0 / unit),
            None => write!(f, "{}B", self.0),
        }
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Bytes(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Bytes(bytes) => Ok(Self(bytes)),
            Written::Text(text) => text.parse().map_err(D::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_units_are_powers_of_1000_and_binary_units_powers_of_1024() {
        let table = [
            ("51200", 51_200),
            ("51200B", 51_200),
            ("50KiB", 51_200),
            ("50 kib", 51_200),
            ("50Ki", 51_200),
            ("50kB", 50_000),
            ("50k", 50_000),
            ("50KB", 50_000),
            ("2MB", 2_000_000),
            ("2M", 2_000_000),
            ("2MiB", 2_097_152),
            ("1G", 1_000_000_000),
            ("1GiB", 1_073_741_824),
            ("0", 0),
        ];
        for (text, bytes) in table {
            assert_eq!(
                text.parse::<ByteSize>().map(ByteSize::bytes),
                Ok(bytes),
                "{text}"
            );
        }
    }

    #[test]
    fn a_text_that_is_no_amount_says_why() {
        let table = [
            ("", "not a whole number"),
            ("KiB", "not a whole number"),
            ("-1", "not a whole number"),
            ("1.5MB", "not a whole number"),
            ("50KiBB", "unknown unit \"KiBB\""),
            ("10mbit", "unknown unit \"mbit\""),
            ("18446744073709551616", "too large"),
            ("99999999999G", "too large"),
        ];
        for (text, reason) in table {
            let error = text.parse::<ByteSize>().expect_err(text);
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn an_amount_is_shown_in_the_largest_unit_that_is_exact() {
        for text in ["50KiB", "2MB", "1448B", "1GiB", "3GB", "0B"] {
            let amount: ByteSize = text.parse().expect(text);
            assert_eq!(amount.to_string(), text);
        }
    }

    #[test]
    fn sizes_are_drawn_in_their_own_unit() {
        use headstart_link::{Distribution, Draws};
        let sizes: Distribution<ByteSize> = "uniform:10KiB,20KiB".parse().unwrap();
        assert_eq!(sizes.to_string(), "uniform:10KiB,20KiB");
        let mut draws = Draws::new(7, 0);
        let drawn = (0..1000).map(|_| sizes.sample(&mut draws).bytes());
        assert!(
            drawn
                .into_iter()
                .all(|bytes| (10_240..=20_480).contains(&bytes))
        );
        let refused = "exp:10ms".parse::<Distribution<ByteSize>>().unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("write it like \"fixed:10KiB\"")
        );
    }

    /// Mah: the median reply has 2 kB, a tenth are larger than 12 kB, and half of all documents are one
    /// file. Surge: the body's median is exp(9.357), and 7 % are larger than 133 kB.
    #[test]
    fn the_models_of_the_literature_have_its_quantiles() {
        use headstart_link::{Distribution, Draws};
        fn quantiles<Q: Quantity>(text: &str) -> [u64; 3] {
            let drawn: Distribution<Q> = text.parse().unwrap();
            assert_eq!(drawn.to_string(), text);
            let mut draws = Draws::new(1, 0);
            let mut all: Vec<u64> = (0..20_000)
                .map(|_| drawn.sample(&mut draws).whole())
                .collect();
            all.sort_unstable();
            [10_000, 18_000, 18_600].map(|index| all[index])
        }
        let near = |found: u64, expected: f64| (found as f64 / expected - 1.0).abs() < 0.06;
        let [median, tenth, _] = quantiles::<ByteSize>("model:mah-1997");
        assert!(
            near(median, 2112.0) && near(tenth, 12_581.0),
            "{median} {tenth}"
        );
        let [_, _, tail] = quantiles::<ByteSize>("model:surge");
        assert!(near(tail, 133_000.0), "{tail}");
        assert_eq!(quantiles::<Count>("model:mah-1997")[..2], [1, 6]);
        assert_eq!(quantiles::<Count>("model:surge")[..2], [1, 2]);
        let refused = "model:zipf".parse::<Distribution<ByteSize>>().unwrap_err();
        assert!(refused.to_string().contains("known are mah-1997, surge"));
    }
}
