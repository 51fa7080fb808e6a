//! A rate that lasts: for ever, or until the next step of a schedule.

use std::sync::Arc;

use crate::Rate;
use crate::rate::{RateSchedule, Step};

const NS_PER_S: u64 = 1_000_000_000;

/// Its time is exact: whole nanoseconds and a remainder, so that a long busy period is as long as
/// its bits, not as its rounded packets. What is sent is counted in billionths of a bit: at a rate
/// of R bits a second, R of them a nanosecond.
#[derive(Debug)]
pub(crate) struct Steady {
    rate_bits_per_s: u64,
    /// When the rate changes next; `u64::MAX`: never.
    until_ns: u64,
    steps: Option<Steps>,
    /// Free again at `free_ns + free_fraction / rate_bits_per_s` nanoseconds.
    free_ns: u64,
    free_fraction: u64,
    busy_ns: u64,
    last: Lap,
}

/// How long a packet of this size takes at this rate: most packets are as large as the one before,
/// and a division costs more than everything else that a transmitter does.
#[derive(Debug, Clone, Copy)]
struct Lap {
    wire_bytes: u32,
    rate_bits_per_s: u64,
    whole_ns: u64,
    fraction: u64,
}

impl Lap {
    /// A packet of nothing, at any rate.
    const NONE: Lap = Lap {
        wire_bytes: 0,
        rate_bits_per_s: 0,
        whole_ns: 0,
        fraction: 0,
    };
}

/// Where in its schedule it is.
#[derive(Debug)]
struct Steps {
    steps: Arc<[Step]>,
    repeat_ns: Option<u64>,
    current: usize,
    /// When the present round of the schedule began.
    round_ns: u64,
}

impl Steps {
    /// The rate of the present step, and when it ends.
    fn present(&self) -> (u64, u64) {
        let end_ns = match self.steps.get(self.current + 1) {
            Some(next) => Some(next.at_ns),
            None => self.repeat_ns,
        };
        let end_ns = end_ns.map_or(u64::MAX, |end_ns| self.round_ns.saturating_add(end_ns));
        (self.steps[self.current].rate.bits_per_s(), end_ns)
    }

    fn next(&mut self) {
        self.current += 1;
        if self.current == self.steps.len() {
            self.current = 0;
            let round_ns = self.repeat_ns.unwrap_or(u64::MAX);
            self.round_ns = self.round_ns.saturating_add(round_ns);
        }
    }

    /// Leaves out whole rounds up to `now_ns`.
    fn skip_rounds(&mut self, now_ns: u64) {
        if let Some(repeat_ns) = self.repeat_ns {
            let rounds = now_ns.saturating_sub(self.round_ns) / repeat_ns;
            if rounds > 0 {
                self.round_ns += rounds * repeat_ns;
                self.current = 0;
            }
        }
    }
}

impl Steady {
    pub(crate) fn fixed(rate: Rate) -> Steady {
        Steady {
            rate_bits_per_s: rate.bits_per_s(),
            until_ns: u64::MAX,
            steps: None,
            free_ns: 0,
            free_fraction: 0,
            busy_ns: 0,
            last: Lap::NONE,
        }
    }

    pub(super) fn scheduled(schedule: &RateSchedule, origin_ns: u64) -> Steady {
        let steps = Steps {
            steps: Arc::clone(&schedule.steps),
            repeat_ns: schedule.repeat_ns,
            current: 0,
            round_ns: origin_ns,
        };
        let (rate_bits_per_s, until_ns) = steps.present();
        Steady {
            rate_bits_per_s,
            until_ns,
            steps: Some(steps),
            free_ns: origin_ns,
            free_fraction: 0,
            busy_ns: 0,
            last: Lap::NONE,
        }
    }

    #[inline]
    pub(crate) fn free_ns(&self) -> u64 {
        self.free_ns
            .saturating_add(u64::from(self.free_fraction > 0))
    }

    pub(crate) fn idle_until(&mut self, now_ns: u64) {
        if self.free_ns() < now_ns {
            self.free_ns = now_ns;
            self.free_fraction = 0;
            if self.until_ns <= now_ns {
                if let Some(steps) = &mut self.steps {
                    steps.skip_rounds(now_ns);
                }
                self.set_present();
                self.follow_schedule();
            }
        }
    }

    #[inline]
    pub(crate) fn send(&mut self, wire_bytes: u32) -> u64 {
        let rate = self.rate_bits_per_s;
        if self.last.wire_bytes != wire_bytes || self.last.rate_bits_per_s != rate {
            let billionths = u128::from(wire_bytes) * 8 * u128::from(NS_PER_S);
            let (whole_ns, fraction) = self.time_for(billionths);
            self.last = Lap {
                wire_bytes,
                rate_bits_per_s: rate,
                whole_ns,
                fraction,
            };
        }
        // Both fractions are below the rate: together they make at most one more nanosecond.
        let (sum, wrapped) = self.free_fraction.overflowing_add(self.last.fraction);
        let carry = wrapped || sum >= rate;
        let lap_ns = self.last.whole_ns.saturating_add(u64::from(carry));
        let end_ns = self.free_ns.saturating_add(lap_ns);
        if end_ns >= self.until_ns {
            return self.send_across_steps(wire_bytes);
        }
        self.busy_ns += lap_ns;
        self.free_ns = end_ns;
        self.free_fraction = if carry { sum.wrapping_sub(rate) } else { sum };
        self.free_ns()
    }

    /// A packet that ends when the rate changes, or later.
    #[cold]
    fn send_across_steps(&mut self, wire_bytes: u32) -> u64 {
        let started_ns = self.free_ns;
        let bits = u64::from(wire_bytes) * 8;
        let mut billionths =
            u128::from(bits) * u128::from(NS_PER_S) + u128::from(self.free_fraction);
        loop {
            let (whole_ns, fraction) = self.time_for(billionths);
            let end_ns = self.free_ns.saturating_add(whole_ns);
            if end_ns < self.until_ns || (end_ns == self.until_ns && fraction == 0) {
                self.free_ns = end_ns;
                self.free_fraction = fraction;
                break;
            }
            let span_ns = self.until_ns - self.free_ns;
            billionths -= u128::from(span_ns) * u128::from(self.rate_bits_per_s);
            self.free_ns = self.until_ns;
            if self.until_ns == u64::MAX {
                self.free_fraction = 0;
                break;
            }
            self.follow_schedule();
        }
        self.follow_schedule();
        self.busy_ns += self.free_ns - started_ns;
        self.free_ns()
    }

    pub(super) fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// As [`Steady::busy_ns`], without the last `wire_bytes` bytes that were sent without a pause. Of a fixed rate.
    pub(crate) fn busy_ns_without_last(&self, wire_bytes: u64) -> u64 {
        let rate = u128::from(self.rate_bits_per_s);
        let end = u128::from(self.free_ns) * rate + u128::from(self.free_fraction);
        let last = u128::from(wire_bytes) * 8 * u128::from(NS_PER_S);
        let begin_ns = u64::try_from(end.saturating_sub(last) / rate).unwrap_or(u64::MAX);
        self.busy_ns - self.free_ns.saturating_sub(begin_ns)
    }

    /// At the present rate: whole nanoseconds, and what is left over.
    fn time_for(&self, billionths: u128) -> (u64, u64) {
        // A packet at any usual size fits into 64 bits, where a division takes a tenth of the time.
        if let Ok(billionths) = u64::try_from(billionths) {
            let rate = self.rate_bits_per_s;
            return (billionths / rate, billionths % rate);
        }
        let rate = u128::from(self.rate_bits_per_s);
        let whole_ns = u64::try_from(billionths / rate).unwrap_or(u64::MAX);
        // Less than the rate, which has 64 bits.
        (whole_ns, (billionths % rate) as u64)
    }

    /// Goes on to the step that `free_ns` lies in.
    fn follow_schedule(&mut self) {
        while self.until_ns <= self.free_ns
            && self.until_ns < u64::MAX
            && let Some(steps) = &mut self.steps
        {
            steps.next();
            self.set_present();
        }
    }

    fn set_present(&mut self) {
        if let Some(steps) = &self.steps {
            (self.rate_bits_per_s, self.until_ns) = steps.present();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fixed(bits_per_s: u64) -> Steady {
        Steady::fixed(Rate::from_bits_per_s(bits_per_s).unwrap())
    }

    fn scheduled(text: &str, origin_ns: u64) -> Steady {
        Steady::scheduled(&text.parse().unwrap(), origin_ns)
    }

    #[test]
    fn a_busy_year_at_an_awkward_rate_is_exact() {
        // 1500 bytes at 7 bit/s last 1714.285714... s: three packets in a row must not lose 2/7 ns each.
        let mut transmitter = fixed(7);
        for sent in 1..=20_000u128 {
            let left_ns = transmitter.send(1500);
            assert_eq!(
                u128::from(left_ns),
                (sent * 12_000 * u128::from(NS_PER_S)).div_ceil(7)
            );
        }
    }

    #[test]
    fn an_idle_transmitter_starts_when_the_packet_comes() {
        let mut transmitter = fixed(12_000_000);
        transmitter.idle_until(5);
        assert_eq!(transmitter.send(1500), 1_000_005);
        transmitter.idle_until(7);
        assert_eq!(transmitter.send(1500), 2_000_005, "it was not idle at 7 ns");
        assert_eq!(transmitter.busy_ns(), 2_000_000);
    }

    #[test]
    fn a_packet_across_a_step_is_sent_in_part_at_each_rate() {
        // 1 ms at 12 Mbit/s, then 12 ms at 1 Mbit/s: half a packet before the step, half after it.
        let mut transmitter = scheduled("12mbit@0s,1mbit@1500us", 0);
        assert_eq!(transmitter.send(1500), 1_000_000);
        assert_eq!(transmitter.send(1500), 1_500_000 + 6_000_000);
        assert_eq!(transmitter.send(1500), 19_500_000);
        assert_eq!(transmitter.busy_ns(), 19_500_000);
    }

    #[test]
    fn a_packet_that_ends_with_the_step_leaves_the_next_one_to_the_new_rate() {
        let mut transmitter = scheduled("12mbit@0s,1mbit@1ms", 0);
        assert_eq!(transmitter.send(1500), 1_000_000);
        assert_eq!(transmitter.send(1500), 13_000_000);
    }

    #[test]
    fn a_packet_may_last_over_several_steps_and_rounds() {
        // A round of 2 ms carries 12 kbit + 1 kbit, so 4 packets of 12 kbit take 3 rounds and more.
        let mut transmitter = scheduled("12mbit@0s,1mbit@1ms,repeat@2ms", 0);
        assert_eq!(transmitter.send(6000), 6_000_000 + 750_000);
    }

    #[test]
    fn a_long_idle_time_ends_in_the_right_step_of_the_right_round() {
        let mut transmitter = scheduled("12mbit@0s,1mbit@1s,repeat@2s", 500);
        transmitter.idle_until(500 + 2_000_000_000 * 1_000_000_000 + 1_000_000_000);
        assert_eq!(transmitter.send(1500) % 1_000_000_000, 500 + 12_000_000);
        let mut transmitter = scheduled("12mbit@0s,1mbit@1s,repeat@2s", 0);
        transmitter.idle_until(4_000_000_000);
        assert_eq!(transmitter.send(1500), 4_001_000_000);
        let mut transmitter = scheduled("12mbit@0s,1mbit@1s", 0);
        transmitter.idle_until(1_000_000_000);
        assert_eq!(transmitter.send(1500), 1_012_000_000);
    }

    #[test]
    fn a_rate_of_almost_nothing_is_an_outage_until_the_next_step() {
        let mut transmitter = scheduled("1bit@0s,12mbit@5s", 0);
        let left_ns = transmitter.send(1500);
        // 5 of the 12,000 bits were sent before.
        assert_eq!(left_ns, 5_000_000_000 + (11_995 * 1000u64).div_ceil(12));
    }

    proptest! {
        #[test]
        fn a_schedule_of_one_rate_is_that_rate(
            rate in 1_000u64..10_000_000_000, step_ns in 1u64..10_000_000,
            sizes in prop::collection::vec(20u32..=1500, 1..200),
        ) {
            let text = format!("{rate}bit@0s,{rate}bit@{step_ns}ns,repeat@{}ns", step_ns * 3);
            let (mut plain, mut stepped) = (fixed(rate), scheduled(&text, 0));
            for size in sizes {
                prop_assert_eq!(plain.send(size), stepped.send(size));
            }
        }
    }
}
