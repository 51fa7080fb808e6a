//! Which paths this emulator can make true; all others are refused before anything is made.

use headstart_link::{FULL_PACKET_BYTES, LinkConfig, Span};

use crate::emulation::PathConfig;
use crate::error::PathError;
use crate::hosts::MAX_HOSTS;
use crate::packets::Direction;

/// The least round-trip time. A round trip takes 0.09 to 0.16 ms longer than configured (two devices,
/// two wake-ups of the router and one of each program; the medians of `scripts/bench.sh` at 0.2 and
/// 1 ms, docs/path.md): below this it would be more of the machine than of the path.
pub const LEAST_RTT: Span = Span::from_ns(200_000);

/// The longest that one full packet may take: with ten of them in the first flight, any
/// connection has timed out long before the last has come.
pub const LONGEST_PACKET: Span = Span::from_ns(10_000_000_000);

/// The number of pairs, if there can be such a path.
pub(crate) fn check(config: &PathConfig) -> Result<u8, PathError> {
    let pairs = u8::try_from(config.hosts).unwrap_or(u8::MAX);
    if !(1..=MAX_HOSTS).contains(&pairs) {
        return Err(PathError::CannotBe(format!(
            "{} hosts a side: there can be 1 to {MAX_HOSTS}, as a lane has 254 addresses \
             (10.77.{lane}.1 to .254), half of them servers'",
            config.hosts,
            lane = config.lane
        )));
    }
    let rtt_ns = config
        .forward
        .delay
        .as_ns()
        .saturating_add(config.reverse.delay.as_ns());
    if rtt_ns < LEAST_RTT.as_ns() {
        return Err(PathError::CannotBe(format!(
            "a round-trip time of {}: this emulator cannot do less than {LEAST_RTT}, as the \
             machine adds a good 0.1 ms of its own; give at least that",
            Span::from_ns(rtt_ns)
        )));
    }
    packet_is_short_enough(Direction::Forward, &config.forward)?;
    packet_is_short_enough(Direction::Reverse, &config.reverse)?;
    Ok(pairs)
}

fn packet_is_short_enough(direction: Direction, link: &LinkConfig) -> Result<(), PathError> {
    let rate = link.rate.nominal();
    let takes_ns = u64::from(FULL_PACKET_BYTES) * 8 * 1_000_000_000 / rate.bits_per_s().max(1);
    if takes_ns <= LONGEST_PACKET.as_ns() {
        return Ok(());
    }
    let least = u64::from(FULL_PACKET_BYTES) * 8 * 1_000_000_000 / LONGEST_PACKET.as_ns();
    Err(PathError::CannotBe(format!(
        "{} direction: at {rate} a packet of {FULL_PACKET_BYTES} bytes takes {:.0} s, and connections \
         give up; give at least {least}bit",
        direction.name(),
        takes_ns as f64 / 1e9
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(rate: &str, delay: &str, hosts: u16) -> Result<u8, String> {
        let (rate, delay) = (rate.parse().unwrap(), delay.parse().unwrap());
        let link = LinkConfig::new(rate, delay, "drop-tail:10".parse().unwrap());
        let config = PathConfig {
            hosts,
            lane: 7,
            ..PathConfig::new(link.clone(), link)
        };
        check(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn a_path_that_cannot_be_is_refused_with_the_reason() {
        assert_eq!(path("10mbit", "100us", 1), Ok(1));
        assert_eq!(path("10mbit", "1ms", 127), Ok(127));
        let said = path("10mbit", "99us", 1).unwrap_err();
        assert!(said.contains("cannot do less than 200us"), "{said}");
        for hosts in [0, 128, 300] {
            let said = path("10mbit", "1ms", hosts).unwrap_err();
            assert!(
                said.contains("1 to 127") && said.contains("10.77.7.1"),
                "{said}"
            );
        }
        assert_eq!(path("1200bit", "1ms", 1), Ok(1));
        let said = path("1kbit", "1ms", 1).unwrap_err();
        assert!(
            said.contains("takes 12 s") && said.contains("at least 1200bit"),
            "{said}"
        );
    }
}
