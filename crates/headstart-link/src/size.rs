//! How much a queue holds: packets, bytes, or a share of the bandwidth-delay product.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::packet::FULL_PACKET_BYTES;
use crate::{Rate, Span};

/// A size of a queue as people write it: `50` or `50p`, `64KiB` or `75kB`, `1bdp` or `0.2bdp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum QueueSize {
    /// So many packets, of whatever size.
    Packets(u32),
    /// So many bytes on the wire.
    Bytes(u64),
    /// Millionths of the bandwidth-delay product, in full packets, rounded up to whole ones. What it
    /// comes to is known when the link is made; a queue of less than one packet is refused then.
    BdpMillionths(u32),
}

/// A text that is no size of a queue, with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a size {why}: write it like \"50\" (packets), \"64KiB\", \"75kB\" or \"1bdp\""
)]
pub struct QueueSizeError {
    /// What was given.
    pub text: String,
    /// What is wrong with it, if more than its form.
    pub why: &'static str,
}

/// A size that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Packets(u32),
    Bytes(u64),
}

impl Limit {
    /// Whether one more packet of `wire_bytes` keeps the queue within the limit.
    pub(crate) fn has_room(self, len_pkts: u32, len_bytes: u64, wire_bytes: u32) -> bool {
        match self {
            Limit::Packets(limit_pkts) => len_pkts < limit_pkts,
            Limit::Bytes(limit_bytes) => len_bytes + u64::from(wire_bytes) <= limit_bytes,
        }
    }

    /// Whether a queue is longer than the limit.
    pub(crate) fn is_passed_by(self, len_pkts: u32, len_bytes: u64) -> bool {
        match self {
            Limit::Packets(limit_pkts) => len_pkts > limit_pkts,
            Limit::Bytes(limit_bytes) => len_bytes > limit_bytes,
        }
    }
}

impl From<Limit> for QueueSize {
    fn from(limit: Limit) -> QueueSize {
        match limit {
            Limit::Packets(pkts) => QueueSize::Packets(pkts),
            Limit::Bytes(bytes) => QueueSize::Bytes(bytes),
        }
    }
}

impl QueueSize {
    const UNITS: [(&'static str, u64); 5] = [
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("kB", 1_000),
        ("B", 1),
    ];
    const MILLION: u64 = 1_000_000;

    /// On a link of this rate, on a path of this round-trip time.
    pub(crate) fn resolve(self, rate: Rate, rtt: Span) -> Limit {
        match self {
            QueueSize::Packets(pkts) => Limit::Packets(pkts),
            QueueSize::Bytes(bytes) => Limit::Bytes(bytes),
            QueueSize::BdpMillionths(millionths) => {
                let share = u128::from(rate.bytes_in(rtt)) * u128::from(millionths);
                let packet = u128::from(FULL_PACKET_BYTES) * u128::from(QueueSize::MILLION);
                let pkts = u32::try_from(share.div_ceil(packet)).unwrap_or(u32::MAX);
                Limit::Packets(pkts.max(1))
            }
        }
    }

    /// Whether it is a share that no full packet fits into.
    pub(crate) fn is_below_one_packet(self, rate: Rate, rtt: Span) -> bool {
        match self {
            QueueSize::BdpMillionths(millionths) => {
                let share = u128::from(rate.bytes_in(rtt)) * u128::from(millionths);
                share < u128::from(FULL_PACKET_BYTES) * u128::from(QueueSize::MILLION)
            }
            QueueSize::Packets(_) | QueueSize::Bytes(_) => false,
        }
    }

    /// Whether it is nothing at all, on every path.
    pub(crate) fn is_zero(self) -> bool {
        matches!(
            self,
            QueueSize::Packets(0) | QueueSize::Bytes(0) | QueueSize::BdpMillionths(0)
        )
    }

    /// `number` with a decimal point, times `factor`, if that is a whole number.
    fn scaled(number: &str, factor: u64) -> Option<u64> {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let mut parts = u128::from(whole.parse::<u64>().ok()?);
        let fraction = fraction.trim_end_matches('0');
        let places = u32::try_from(fraction.len())
            .ok()
            .filter(|&places| places <= 18)?;
        let one = 10u128.pow(places);
        parts *= one;
        if !fraction.is_empty() {
            parts += u128::from(fraction.parse::<u64>().ok()?);
        }
        let scaled = parts.checked_mul(u128::from(factor))?;
        (scaled % one == 0).then(|| u64::try_from(scaled / one).ok())?
    }
}

impl FromStr for QueueSize {
    type Err = QueueSizeError;

    fn from_str(text: &str) -> Result<QueueSize, QueueSizeError> {
        let error = |why| QueueSizeError {
            text: text.to_owned(),
            why,
        };
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        if number.is_empty() || number.starts_with('.') || number.ends_with('.') {
            return Err(error("of a queue"));
        }
        let scaled = |factor| QueueSize::scaled(number, factor);
        match unit.trim_start() {
            "" | "p" => scaled(1)
                .and_then(|pkts| u32::try_from(pkts).ok())
                .map(QueueSize::Packets)
                .ok_or_else(|| error("in whole packets, at most 4294967295")),
            unit if unit.eq_ignore_ascii_case("bdp") => scaled(QueueSize::MILLION)
                .and_then(|millionths| u32::try_from(millionths).ok())
                .map(QueueSize::BdpMillionths)
                .ok_or_else(|| error("in at most 4294 bandwidth-delay products and 6 decimals")),
            unit => {
                let known = QueueSize::UNITS
                    .iter()
                    .find(|(name, _)| name.eq_ignore_ascii_case(unit))
                    .ok_or_else(|| error("with a known unit"))?;
                scaled(known.1)
                    .map(QueueSize::Bytes)
                    .ok_or_else(|| error("in whole bytes"))
            }
        }
    }
}

impl fmt::Display for QueueSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            QueueSize::Packets(pkts) => f.pad(&pkts.to_string()),
            QueueSize::Bytes(bytes) => {
                let divides = |unit: &&(&str, u64)| bytes > 0 && bytes.is_multiple_of(unit.1);
                let (name, factor) = QueueSize::UNITS.iter().find(divides).unwrap_or(&("B", 1));
                f.pad(&format!("{}{name}", bytes / factor))
            }
            QueueSize::BdpMillionths(millionths) => {
                let million = QueueSize::MILLION as u32;
                let (whole, rest) = (millionths / million, millionths % million);
                if rest == 0 {
                    return f.pad(&format!("{whole}bdp"));
                }
                let digits = format!("{rest:06}");
                f.pad(&format!("{whole}.{}bdp", digits.trim_end_matches('0')))
            }
        }
    }
}

impl TryFrom<String> for QueueSize {
    type Error = QueueSizeError;

    fn try_from(text: String) -> Result<QueueSize, QueueSizeError> {
        text.parse()
    }
}

impl From<QueueSize> for String {
    fn from(size: QueueSize) -> String {
        size.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn size(text: &str) -> QueueSize {
        text.parse().unwrap()
    }

    fn error(text: &str) -> String {
        text.parse::<QueueSize>().unwrap_err().to_string()
    }

    #[test]
    fn a_size_is_read_in_packets_bytes_and_bandwidth_delay_products() {
        assert_eq!(size("50"), QueueSize::Packets(50));
        assert_eq!(size("50p"), QueueSize::Packets(50));
        assert_eq!(size("64KiB"), QueueSize::Bytes(65_536));
        assert_eq!(size("75kB"), QueueSize::Bytes(75_000));
        assert_eq!(size("1.5 MB"), QueueSize::Bytes(1_500_000));
        assert_eq!(size("1500B"), QueueSize::Bytes(1500));
        assert_eq!(size("1bdp"), QueueSize::BdpMillionths(1_000_000));
        assert_eq!(size("0.2bdp"), QueueSize::BdpMillionths(200_000));
        assert_eq!(size("0.2bdp").to_string(), "0.2bdp");
        assert_eq!(size("65536B").to_string(), "64KiB");
    }

    #[test]
    fn a_share_of_the_bandwidth_delay_product_is_whole_packets_and_at_least_one() {
        let (rate, rtt) = ("12mbit".parse().unwrap(), "400ms".parse().unwrap());
        assert_eq!(size("1bdp").resolve(rate, rtt), Limit::Packets(400));
        assert_eq!(size("0.2bdp").resolve(rate, rtt), Limit::Packets(80));
        assert_eq!(size("0.001bdp").resolve(rate, rtt), Limit::Packets(1));
        assert_eq!(size("1bdp").resolve(rate, Span::ZERO), Limit::Packets(1));
        assert_eq!(size("75kB").resolve(rate, rtt), Limit::Bytes(75_000));
    }

    #[test]
    fn a_byte_limit_counts_the_arriving_packet_and_a_packet_limit_its_place() {
        assert!(Limit::Bytes(3000).has_room(9, 1500, 1500));
        assert!(!Limit::Bytes(3000).has_room(9, 1501, 1500));
        assert!(Limit::Packets(2).has_room(1, 1_000_000, 1500));
        assert!(!Limit::Packets(2).has_room(2, 80, 40));
    }

    #[test]
    fn a_text_that_is_no_size_is_refused_with_what_to_write_instead() {
        for text in ["", "many", "-1", ".5bdp", "1..2bdp", "5."] {
            assert!(error(text).contains("write it like \"50\""), "{text}");
        }
        assert!(error("1.5").contains("whole packets"));
        assert!(error("50 parsec").contains("known unit"));
        assert!(error("0.0001kB").contains("whole bytes"));
        assert!(error("0.0000001bdp").contains("6 decimals"));
        assert!(error("99999999999").contains("at most 4294967295"));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back_the_same(pkts in 0u32.., bytes in 0u64.., share in 0u32..) {
            for size in [
                QueueSize::Packets(pkts),
                QueueSize::Bytes(bytes),
                QueueSize::BdpMillionths(share),
            ] {
                prop_assert_eq!(size.to_string().parse::<QueueSize>().unwrap(), size);
            }
        }
    }
}
