//! When something was learnt, kept over restarts.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A moment on the clocks that are needed, and the boot that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Now {
    /// The kernel's random name of this boot.
    pub boot_id: String,
    /// Since the boot, the machine's sleep included, in us.
    pub boot_us: u64,
    /// Since 1970, in us.
    pub unix_us: u64,
}

impl Now {
    /// The present moment of this machine.
    pub fn here() -> Now {
        let read = |clock| {
            let time = clock_gettime(clock).map(Duration::from).unwrap_or_default();
            u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
        };
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        Now {
            boot_id: boot_id.unwrap_or_default().trim().to_owned(),
            boot_us: read(ClockId::CLOCK_BOOTTIME),
            unix_us: read(ClockId::CLOCK_REALTIME),
        }
    }

    /// How long ago `then` was, in us. `None` where that cannot be known: the wall clock has jumped back since.
    pub(crate) fn since(&self, then: &Now) -> Option<u64> {
        // Without /proc every boot has the same empty name.
        if !self.boot_id.is_empty() && self.boot_id == then.boot_id {
            return self.boot_us.checked_sub(then.boot_us);
        }
        self.unix_us.checked_sub(then.unix_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(boot_id: &str, boot_us: u64, unix_us: u64) -> Now {
        Now {
            boot_id: boot_id.to_owned(),
            boot_us,
            unix_us,
        }
    }

    #[test]
    fn within_one_boot_the_wall_clock_may_jump_as_it_likes() {
        let then = at("a", 100, 5_000);
        assert_eq!(at("a", 160, 1).since(&then), Some(60));
        assert_eq!(at("a", 160, 9_000_000).since(&then), Some(60));
    }

    #[test]
    fn across_boots_the_wall_clock_counts_unless_it_has_jumped_back() {
        let then = at("a", 100, 5_000);
        assert_eq!(at("b", 3, 5_700).since(&then), Some(700));
        assert_eq!(at("b", 3, 4_999).since(&then), None);
        assert_eq!(at("", 160, 5_001).since(&at("", 100, 5_000)), Some(1));
    }
}
