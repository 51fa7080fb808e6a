//! Time slices: all connections of a slice get the same arm. Clocks are arguments.
//!
//! Slices are counted by the wall clock, so that all machines with one salt change arms together; what a switch is
//! still felt in is told by the monotonic one, so that a jump of the wall clock is a switch like another.

use std::collections::VecDeque;
use std::time::Duration;

use headstart_kernel::{assign_slice, salt_of};

use crate::config::{Experiment, Unit};
use crate::rules::share_of;

/// Transfers that began before as many switches are left out.
const MOST_SWITCHES: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Switch {
    at_ns: u64,
    slice: i64,
    arm: usize,
}

/// Which arm is in force, and which was.
#[derive(Clone, Debug)]
pub struct Slices {
    slice: Duration,
    burn_in: Duration,
    salt: u64,
    /// An arm has the places below its own bound and not below that of the arm before.
    upto: Vec<u32>,
    switches: VecDeque<Switch>,
}

impl Slices {
    /// `None` where the experiment's unit is another. No arm is in force before the first look.
    pub fn of(experiment: &Experiment) -> Option<Slices> {
        let Unit::Time { slice, burn_in } = experiment.unit else {
            return None;
        };
        let mut sum = 0;
        let upto = experiment.arms.iter().map(|arm| {
            sum += share_of(arm.share_percent);
            sum
        });
        Some(Slices {
            slice,
            burn_in,
            salt: salt_of(&experiment.salt),
            upto: upto.collect(),
            switches: VecDeque::new(),
        })
    }

    /// True when another slice has begun, and its arm is to be put into force. `now_ns` is `CLOCK_MONOTONIC`.
    pub fn look(&mut self, now_ns: u64, wall_us: i64) -> bool {
        let length_us = i64::try_from(self.slice.as_micros()).unwrap_or(i64::MAX);
        let slice = wall_us.div_euclid(length_us.max(1));
        if self.switches.back().is_some_and(|last| last.slice == slice) {
            return false;
        }
        let place = assign_slice(self.salt, slice.cast_unsigned());
        let arm = self.upto.partition_point(|bound| *bound <= place);
        self.switches.push_back(Switch {
            at_ns: now_ns,
            slice,
            arm: arm.min(self.upto.len().saturating_sub(1)),
        });
        if self.switches.len() > MOST_SWITCHES {
            self.switches.pop_front();
        }
        true
    }

    /// The place of the arm in force.
    pub fn arm(&self) -> Option<usize> {
        self.switches.back().map(|last| last.arm)
    }

    /// Whether a transfer that began at `start_ns`, `CLOCK_MONOTONIC`, on a connection of the arm `arm` is to be left
    /// out: it began soon after a switch, or its connection is of an earlier slice with another arm.
    pub fn is_burn_in(&self, start_ns: u64, arm: usize) -> bool {
        let before = self.switches.iter().rev();
        let in_force = before.clone().find(|switch| switch.at_ns <= start_ns);
        in_force.is_none_or(|switch| {
            let since_ns = u128::from(start_ns - switch.at_ns);
            switch.arm != arm || since_ns < self.burn_in.as_nanos()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Action, ArmConfig};

    const S: u64 = 1_000_000_000;
    const MINUTE_US: i64 = 60_000_000;

    fn experiment(shares: &[u8]) -> Experiment {
        let arms = shares.iter().enumerate().map(|(place, share)| ArmConfig {
            name: format!("arm {place}"),
            share_percent: *share,
            action: Action::LeaveAlone,
        });
        Experiment {
            name: "x".to_owned(),
            salt: "2026-11".to_owned(),
            unit: Unit::Time {
                slice: Duration::from_secs(600),
                burn_in: Duration::from_secs(60),
            },
            baseline: 0,
            stop: None,
            until_us: None,
            arms: arms.collect(),
        }
    }

    #[test]
    fn an_arm_holds_for_its_slice_and_all_machines_with_the_salt_have_the_same() {
        let (mut one, mut other) = (experiment(&[50, 50]), experiment(&[50, 50]));
        one.name = "on one machine".to_owned();
        other.name = "on another".to_owned();
        let mut one = Slices::of(&one).unwrap();
        let mut other = Slices::of(&other).unwrap();
        for minute in 0..600 {
            let wall_us = minute * MINUTE_US;
            // The other machine was started an hour earlier.
            let now_ns = 60 * minute.cast_unsigned() * S;
            assert_eq!(one.look(now_ns, wall_us), minute % 10 == 0);
            assert_eq!(other.look(now_ns + 3600 * S, wall_us), minute % 10 == 0);
            assert_eq!(one.arm(), other.arm());
        }
    }

    #[test]
    fn the_slices_are_shared_as_the_arms_shares_say() {
        let mut slices = Slices::of(&experiment(&[20, 50, 30])).unwrap();
        let mut counts = [0u32; 3];
        for number in 0..10_000_i64 {
            assert!(slices.look(600 * number.cast_unsigned() * S, 10 * number * MINUTE_US));
            counts[slices.arm().unwrap()] += 1;
        }
        // Standard deviations of 40, 50 and 46.
        for (count, expected) in counts.iter().zip([2_000u32, 5_000, 3_000]) {
            assert!(count.abs_diff(expected) < 200, "{counts:?}");
        }
    }

    #[test]
    fn what_begins_soon_after_a_switch_or_under_the_arm_before_is_left_out() {
        let mut slices = Slices::of(&experiment(&[50, 50])).unwrap();
        slices.look(1000 * S, 0);
        // The first slice with another arm than the first.
        let first = slices.arm().unwrap();
        let mut number = 0;
        while slices.arm().unwrap() == first {
            number += 1;
            slices.look(
                (1000 + 600 * number) * S,
                (10 * number).cast_signed() * MINUTE_US,
            );
        }
        let switched_ns = (1000 + 600 * number) * S;
        let second = slices.arm().unwrap();
        assert!(slices.is_burn_in(switched_ns, second));
        assert!(slices.is_burn_in(switched_ns + 60 * S - 1, second));
        assert!(!slices.is_burn_in(switched_ns + 60 * S, second));
        assert!(
            slices.is_burn_in(switched_ns + 90 * S, first),
            "of an older connection"
        );
        assert!(
            !slices.is_burn_in(switched_ns - 1, first),
            "its own slice's end"
        );
        assert!(
            slices.is_burn_in(999 * S, first),
            "before anything is known"
        );
    }

    #[test]
    fn a_jump_of_the_wall_clock_is_a_switch_with_its_burn_in() {
        let mut slices = Slices::of(&experiment(&[50, 50])).unwrap();
        slices.look(1000 * S, 1_000 * MINUTE_US);
        assert!(!slices.look(1001 * S, 1_001 * MINUTE_US));
        for wall_us in [500 * MINUTE_US, -500 * MINUTE_US, 1_001 * MINUTE_US] {
            assert!(slices.look(2000 * S, wall_us));
            assert!(slices.is_burn_in(2010 * S, slices.arm().unwrap()));
        }
    }
}
