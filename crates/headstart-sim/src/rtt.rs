//! Round-trip times and the retransmission timer (RFC 6298).

use headstart_scenario::RtoSpec;

const NS_PER_US: u64 = 1000;
/// Linux: TCP_RTO_MAX, 120 s.
const MOST_RTO_US: u64 = 120_000_000;
/// With a clock of ticks: BSD's TCPTV_REXMTMAX and ns' maxrto_, 64 s.
const MOST_COARSE_RTO_US: u64 = 64_000_000;
/// Linux: how long a minimum of the round-trip time is believed, 300 s (tcp_min_rtt_wlen).
const MIN_RTT_WINDOW_NS: u64 = 300_000_000_000;

/// What is known of the round-trip time. In us, as Linux keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    spec: RtoSpec,
    /// Smoothed, times 8; 0: never measured.
    srtt_8us: u64,
    /// Mean deviation, times 4.
    mdev_4us: u64,
    /// The largest of those since the last round trip ended.
    mdev_max_4us: u64,
    /// What the timer goes by: 4 times the deviation.
    rttvar_4us: u64,
    /// The present round trip ends when this is acknowledged.
    round_end: u64,
    min_us: u32,
    min_at_ns: u64,
    /// The floor under 4 rttvar.
    floor_us: u64,
    /// Of samples without ticks, where the clock has some.
    fine: Fine,
    /// The timer goes by `fine`, with this floor under 4 rttvar.
    fine_floor_us: Option<u64>,
}

/// RFC 6298 on samples as they are, beside a clock of ticks: what Fast Start's timestamps give
/// (3.3.4, footnote 6).
#[derive(Clone, Copy, Debug, Default)]
struct Fine {
    /// Smoothed, times 8; 0: never measured.
    srtt_8us: u64,
    /// Mean deviation, times 4.
    mdev_4us: u64,
}

impl Fine {
    fn measure(&mut self, sample_us: u64) {
        if self.srtt_8us == 0 {
            (self.srtt_8us, self.mdev_4us) = (sample_us * 8, sample_us * 2);
            return;
        }
        let srtt_us = self.srtt_8us >> 3;
        self.srtt_8us = self.srtt_8us + sample_us - srtt_us;
        self.mdev_4us = self.mdev_4us - (self.mdev_4us >> 2) + sample_us.abs_diff(srtt_us);
    }
}

impl RttEstimator {
    pub(crate) fn new(spec: RtoSpec) -> RttEstimator {
        RttEstimator {
            spec,
            srtt_8us: 0,
            mdev_4us: 0,
            mdev_max_4us: 0,
            rttvar_4us: 0,
            round_end: 0,
            min_us: u32::MAX,
            min_at_ns: 0,
            floor_us: spec.floor_us(),
            fine: Fine::default(),
            fine_floor_us: None,
        }
    }

    /// Whether the timer is fine-grained, with this floor under 4 rttvar, although the clock has
    /// ticks. True where that is another timer than before.
    pub(crate) fn set_fine(&mut self, floor_us: Option<u32>) -> bool {
        let floor_us = floor_us.map(u64::from).filter(|_| self.has_ticks());
        let before = std::mem::replace(&mut self.fine_floor_us, floor_us);
        before != floor_us
    }

    fn has_ticks(&self) -> bool {
        self.spec.ticks_us() > 1
    }

    /// Another floor under 4 rttvar; it acts on the samples to come, as in Linux.
    pub(crate) fn set_floor_us(&mut self, floor_us: Option<u32>) {
        self.floor_us = floor_us.map_or(self.spec.floor_us(), u64::from);
    }

    pub(crate) fn is_measured(&self) -> bool {
        self.srtt_8us > 0
    }

    /// A sample of the oldest segment that an acknowledgement covers, for the timer.
    pub(crate) fn measure(&mut self, sample_us: u32, una: u64, nxt: u64) {
        let sample_us = u64::from(sample_us.max(1));
        if self.has_ticks() {
            self.fine.measure(sample_us);
            if self.srtt_8us == 0 || una > self.round_end {
                self.round_end = nxt;
                self.measure_ticks(sample_us);
            }
            return;
        }
        if self.srtt_8us == 0 {
            // RFC 6298, 2.2.
            self.srtt_8us = sample_us * 8;
            self.mdev_4us = sample_us * 2;
            self.rttvar_4us = self.mdev_4us.max(self.floor_us);
            self.mdev_max_4us = self.rttvar_4us;
            self.round_end = nxt;
            return;
        }
        let srtt_us = self.srtt_8us >> 3;
        let deviation_us = sample_us.abs_diff(srtt_us);
        let below = sample_us < srtt_us;
        self.srtt_8us = self.srtt_8us + sample_us - srtt_us;
        let mdev_us = self.mdev_4us >> 2;
        if !self.spec.linux_variance() {
            // RFC 6298, 2.3: RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R'|.
            self.mdev_4us = self.mdev_4us - mdev_us + deviation_us;
            self.rttvar_4us = self.mdev_4us.max(self.floor_us);
            return;
        }
        // Linux: a fall of the round-trip time counts an eighth; the variance is the largest of a
        // round trip, and decays by a quarter each.
        if below && deviation_us > mdev_us {
            self.mdev_4us += (deviation_us - mdev_us) >> 3;
        } else {
            self.mdev_4us = self.mdev_4us + deviation_us - mdev_us;
        }
        if self.mdev_4us > self.mdev_max_4us {
            self.mdev_max_4us = self.mdev_4us;
            self.rttvar_4us = self.rttvar_4us.max(self.mdev_max_4us);
        }
        if una > self.round_end {
            if self.mdev_max_4us < self.rttvar_4us {
                self.rttvar_4us -= (self.rttvar_4us - self.mdev_max_4us) >> 2;
            }
            self.round_end = nxt;
            self.mdev_max_4us = self.floor_us;
        }
    }

    /// As BSD and ns do it (Jacobson 1988, appendix A): one sample a round trip, to the nearest tick
    /// and at least one; srtt in eighths and rttvar in quarters of a tick, whole numbers, so that a
    /// small variance does not decay.
    fn measure_ticks(&mut self, sample_us: u64) {
        let tick_us = self.spec.ticks_us();
        let sample = ((sample_us + tick_us / 2) / tick_us).max(1);
        let (mut srtt_8, mut rttvar_4) = (self.srtt_8us / tick_us, self.mdev_4us / tick_us);
        if srtt_8 == 0 {
            (srtt_8, rttvar_4) = (sample << 3, sample << 1);
        } else {
            let off = sample.abs_diff(srtt_8 >> 3);
            srtt_8 = (srtt_8 + sample - (srtt_8 >> 3)).max(1);
            rttvar_4 = (rttvar_4 + off - (rttvar_4 >> 2)).max(1);
        }
        (self.srtt_8us, self.mdev_4us) = (srtt_8 * tick_us, rttvar_4 * tick_us);
        self.rttvar_4us = self.mdev_4us.max(self.floor_us);
    }

    /// A sample for the minimum.
    pub(crate) fn see_minimum(&mut self, now_ns: u64, sample_us: u32) {
        if sample_us <= self.min_us || now_ns - self.min_at_ns > MIN_RTT_WINDOW_NS {
            self.min_us = sample_us;
            self.min_at_ns = now_ns;
        }
    }

    /// Without ticks: pacing needs it so.
    pub(crate) fn srtt_us(&self) -> u32 {
        match self.has_ticks() {
            true => clamp(self.fine.srtt_8us >> 3),
            false => clamp(self.srtt_8us >> 3),
        }
    }

    pub(crate) fn rttvar_us(&self) -> u32 {
        clamp(self.rttvar_4us >> 2)
    }

    /// `u32::MAX`: never measured.
    pub(crate) fn min_us(&self) -> u32 {
        self.min_us
    }

    /// The timer without back-off.
    pub(crate) fn rto_us(&self) -> u32 {
        if self.srtt_8us == 0 {
            return clamp(u64::from(self.spec.initial_us).max(self.spec.least_rto_us()));
        }
        if let Some(floor_us) = self.fine_floor_us {
            return clamp((self.fine.srtt_8us >> 3) + self.fine.mdev_4us.max(floor_us));
        }
        let mut rto_us = (self.srtt_8us >> 3) + self.rttvar_4us;
        if self.has_ticks() {
            rto_us -= rto_us % self.spec.ticks_us();
        }
        clamp(rto_us.max(self.spec.least_rto_us()).min(MOST_RTO_US))
    }

    /// When a timer of `span_us`, begun at `now_ns`, expires: at the next tick of a coarse clock.
    pub(crate) fn expiry_ns(&self, now_ns: u64, span_us: u64) -> u64 {
        let most_us = match self.has_ticks() {
            true => MOST_COARSE_RTO_US,
            false => MOST_RTO_US,
        };
        let due_ns = now_ns.saturating_add(span_us.min(most_us) * NS_PER_US);
        match self.spec.ticks_us() * NS_PER_US {
            0 => due_ns,
            _ if self.fine_floor_us.is_some() => due_ns,
            tick_ns => due_ns.div_ceil(tick_ns).saturating_mul(tick_ns),
        }
    }
}

fn clamp(us: u64) -> u32 {
    u32::try_from(us).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_gives_a_timer_of_three_round_trips() {
        let mut rtt = RttEstimator::new(RtoSpec::linux());
        assert_eq!(rtt.rto_us(), 1_000_000);
        rtt.measure(102_000, 0, 0);
        assert_eq!((rtt.srtt_us(), rtt.rttvar_us()), (102_000, 51_000));
        assert_eq!(rtt.rto_us(), 306_000);
    }

    #[test]
    fn linux_keeps_200_ms_under_the_variance() {
        let mut rtt = RttEstimator::new(RtoSpec::linux());
        for round in 0..200 {
            rtt.measure(20_000, round * 10 + 1, round * 10 + 10);
        }
        assert_eq!(rtt.srtt_us(), 20_000);
        // The decay by quarters stops three microseconds short in whole numbers.
        assert!(
            (220_000..220_004).contains(&rtt.rto_us()),
            "{}",
            rtt.rto_us()
        );
    }

    #[test]
    fn a_coarse_clock_measures_and_expires_in_ticks() {
        let spec = RtoSpec::classic(1_000_000, 500_000);
        let mut rtt = RttEstimator::new(spec);
        rtt.measure(102_000, 0, 0);
        assert_eq!(rtt.rto_us(), 1_500_000);
        assert_eq!(rtt.expiry_ns(100_000_000, 1_500_000), 2_000_000_000);
    }

    #[test]
    fn in_whole_ticks_a_small_variance_does_not_decay() {
        let mut rtt = RttEstimator::new(RtoSpec::classic(200_000, 100_000));
        for round in 0..100 {
            rtt.measure(102_000, round + 1, round);
        }
        // One tick, and four times the half of one that the first sample left.
        assert_eq!(rtt.rto_us(), 300_000);
    }

    #[test]
    fn a_clock_of_ticks_times_one_packet_a_round_trip() {
        let mut rtt = RttEstimator::new(RtoSpec::classic(200_000, 100_000));
        rtt.measure(100_000, 0, 10);
        for una in 1..=10 {
            rtt.measure(900_000, una, 20);
        }
        assert_eq!(rtt.rto_us(), 300_000);
        rtt.measure(900_000, 11, 20);
        // 2 of 9 ticks; the deviation of 8 beside the half tick: 10 quarters.
        assert_eq!(rtt.rto_us(), 1_200_000);
    }

    #[test]
    fn a_fine_timer_beside_a_coarse_clock_goes_by_the_samples_as_they_are() {
        let mut rtt = RttEstimator::new(RtoSpec::classic(1_000_000, 500_000));
        for round in 0..100 {
            rtt.measure(102_000, round + 1, round);
        }
        assert_eq!(rtt.srtt_us(), 102_000);
        assert!(rtt.set_fine(Some(1_000)));
        assert_eq!(rtt.rto_us(), 103_000);
        assert_eq!(rtt.expiry_ns(100_000_000, 103_000), 203_000_000);
        assert!(rtt.set_fine(None));
        assert_eq!(rtt.rto_us(), 1_500_000);
    }

    #[test]
    fn without_ticks_no_other_timer_is_finer() {
        let mut rtt = RttEstimator::new(RtoSpec::linux());
        rtt.measure(102_000, 0, 0);
        assert!(!rtt.set_fine(Some(1_000)));
        assert_eq!(rtt.rto_us(), 306_000);
    }
}
