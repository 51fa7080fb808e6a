//! Wall-clock time from the kernel's monotonic one, and when a file is full. The clocks are arguments.

use std::time::Duration;

/// The offset between the clocks, as it was when it was last looked at. A record that is younger than a jump of the
/// wall clock is placed by the new time, an older one by the time that held when it was taken from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wall {
    offset_ns: i128,
}

impl Wall {
    /// The clocks read together: ns since 1970, and `CLOCK_MONOTONIC`.
    pub fn at(wall_ns: u64, monotonic_ns: u64) -> Wall {
        Wall {
            offset_ns: i128::from(wall_ns) - i128::from(monotonic_ns),
        }
    }

    /// Microseconds since 1970 at `monotonic_ns`.
    pub fn us(&self, monotonic_ns: u64) -> i64 {
        let ns = i128::from(monotonic_ns) + self.offset_ns;
        i64::try_from(ns / 1000).unwrap_or(i64::MAX)
    }

    /// How far `newer` is from this, without the sign.
    pub fn jump(&self, newer: &Wall) -> Duration {
        let apart = (self.offset_ns - newer.offset_ns).unsigned_abs();
        Duration::from_nanos(u64::try_from(apart).unwrap_or(u64::MAX))
    }
}

/// Whether a file that was begun at `begun_ns` and holds `bytes` is to be closed. By the monotonic clock: a jump of
/// the wall clock neither closes it early nor keeps it open.
pub fn is_full(
    begun_ns: u64,
    now_ns: u64,
    bytes: u64,
    rotate: Duration,
    rotate_bytes: u64,
) -> bool {
    bytes >= rotate_bytes || u128::from(now_ns.saturating_sub(begun_ns)) >= rotate.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_record_has_the_time_of_the_wall() {
        let wall = Wall::at(1_700_000_000 * S, 50 * S);
        assert_eq!(wall.us(51 * S), 1_700_000_001_000_000);
        assert_eq!(wall.us(49 * S), 1_699_999_999_000_000);
    }

    #[test]
    fn a_jump_of_the_wall_clock_is_seen_in_both_directions() {
        let before = Wall::at(1_700_000_000 * S, 50 * S);
        for jumped in [1_700_003_601 * S, 1_699_996_401 * S] {
            let after = Wall::at(jumped, 51 * S);
            let jump = before.jump(&after);
            assert!(jump >= Duration::from_secs(3598) && jump <= Duration::from_secs(3602));
        }
        assert_eq!(
            before.jump(&Wall::at(1_700_000_001 * S, 51 * S)),
            Duration::ZERO
        );
    }

    #[test]
    fn a_file_is_full_by_age_or_by_size_and_a_clock_that_stands_does_not_fill_it() {
        let hour = Duration::from_secs(3600);
        assert!(!is_full(10 * S, 3609 * S, 5, hour, 10));
        assert!(is_full(10 * S, 3610 * S, 5, hour, 10));
        assert!(is_full(10 * S, 11 * S, 10, hour, 10));
        assert!(!is_full(10 * S, 9 * S, 5, hour, 10));
    }
}
