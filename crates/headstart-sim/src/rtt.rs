//! Round-trip times and the retransmission timer (RFC 6298).

use headstart_scenario::RtoSpec;

const NS_PER_US: u64 = 1000;
/// RFC 6298, 2.1: before a measurement the timer is 1 s.
const INITIAL_RTO_US: u64 = 1_000_000;
/// Linux: TCP_RTO_MAX, 120 s.
const MOST_RTO_US: u64 = 120_000_000;
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
        }
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
        let mut sample_us = u64::from(sample_us.max(1));
        let tick_us = self.spec.ticks_us();
        if tick_us > 1 {
            // A clock of ticks: at least one, to the nearest (as ns and BSD measure).
            sample_us = ((sample_us + tick_us / 2) / tick_us).max(1) * tick_us;
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

    /// A sample for the minimum.
    pub(crate) fn see_minimum(&mut self, now_ns: u64, sample_us: u32) {
        if sample_us <= self.min_us || now_ns - self.min_at_ns > MIN_RTT_WINDOW_NS {
            self.min_us = sample_us;
            self.min_at_ns = now_ns;
        }
    }

    pub(crate) fn srtt_us(&self) -> u32 {
        clamp(self.srtt_8us >> 3)
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
            return clamp(INITIAL_RTO_US.max(self.spec.least_rto_us()));
        }
        let rto_us = (self.srtt_8us >> 3) + self.rttvar_4us;
        clamp(rto_us.max(self.spec.least_rto_us()).min(MOST_RTO_US))
    }

    /// When a timer of `span_us`, begun at `now_ns`, expires: at the next tick of a coarse clock.
    pub(crate) fn expiry_ns(&self, now_ns: u64, span_us: u64) -> u64 {
        let due_ns = now_ns.saturating_add(span_us.min(MOST_RTO_US) * NS_PER_US);
        match self.spec.ticks_us() * NS_PER_US {
            0 => due_ns,
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
        assert_eq!(rtt.srtt_us(), 500_000);
        assert_eq!(rtt.rto_us(), 1_500_000);
        assert_eq!(rtt.expiry_ns(100_000_000, 1_500_000), 2_000_000_000);
    }
}
