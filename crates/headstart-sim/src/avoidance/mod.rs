//! How the window grows while nothing is lost, and what is left of it after a loss.

mod cubic;
mod hystart;

use cubic::Cubic;
use headstart_scenario::AvoidanceSpec;
use hystart::Hystart;

/// The congestion control of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avoidance {
    law: Law,
    hystart: Option<Hystart>,
    /// What is left over of the growth of congestion avoidance, in packets.
    credit: f64,
}

#[derive(Clone, Copy, Debug)]
enum Law {
    Reno,
    Cubic(Cubic),
}

/// The sender as an acknowledgement finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    pub(crate) now_ns: u64,
    pub(crate) cwnd_pkts: u32,
    pub(crate) ssthresh_pkts: u32,
    /// The packets that count in slow start.
    pub(crate) slow_start_pkts: u32,
    /// The packets that count after it.
    pub(crate) acked_pkts: u32,
}

/// What `HyStart` looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckTrain {
    pub(crate) now_ns: u64,
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    pub(crate) cwnd_pkts: u32,
    /// At what rate the stack would pace, whether it does or not.
    pub(crate) rate_bytes_per_s: u64,
    pub(crate) paced: bool,
}

impl Avoidance {
    pub(crate) fn new(spec: AvoidanceSpec, now_ns: u64) -> Avoidance {
        Avoidance {
            law: match spec {
                AvoidanceSpec::Reno => Law::Reno,
                AvoidanceSpec::Cubic | AvoidanceSpec::CubicHystart => Law::Cubic(Cubic::default()),
            },
            hystart: (spec == AvoidanceSpec::CubicHystart).then(|| Hystart::new(now_ns)),
            credit: 0.0,
        }
    }

    /// A round-trip sample. True when `HyStart` wants slow start to end at the present window.
    pub(crate) fn measured(&mut self, rtt_us: u32, in_slow_start: bool, train: &AckTrain) -> bool {
        let Law::Cubic(cubic) = &mut self.law else {
            return false;
        };
        if !cubic.takes_samples(train.now_ns) {
            return false;
        }
        cubic.see_delay(rtt_us);
        match &mut self.hystart {
            Some(hystart) if in_slow_start => hystart.found(rtt_us, cubic.min_delay_us(), train),
            _ => false,
        }
    }

    /// The window after packets were acknowledged.
    pub(crate) fn grow(&mut self, growth: &Growth) -> u32 {
        let mut cwnd_pkts = growth.cwnd_pkts;
        let mut acked_pkts = growth.acked_pkts;
        if cwnd_pkts < growth.ssthresh_pkts {
            // RFC 5681, 3.1, equation (2).
            let grown = cwnd_pkts.saturating_add(growth.slow_start_pkts);
            let room = growth.ssthresh_pkts - cwnd_pkts;
            cwnd_pkts = grown.min(growth.ssthresh_pkts);
            if growth.slow_start_pkts <= room {
                return cwnd_pkts;
            }
            acked_pkts = growth.slow_start_pkts - room;
        }
        let window = f64::from(cwnd_pkts);
        self.credit += match &mut self.law {
            // RFC 5681, 3.1, equation (3), counted in packets.
            Law::Reno => f64::from(acked_pkts) / window,
            Law::Cubic(cubic) => cubic.growth(growth.now_ns, window, acked_pkts),
        };
        if self.credit >= 1.0 {
            let whole = self.credit.floor();
            self.credit -= whole;
            cwnd_pkts = cwnd_pkts.saturating_add(whole as u32);
        }
        cwnd_pkts
    }

    /// A loss is found: the threshold that is left of `window_pkts`.
    pub(crate) fn reduced(&mut self, window_pkts: u32) -> u32 {
        self.credit = 0.0;
        match &mut self.law {
            // RFC 5681, equation (4).
            Law::Reno => (window_pkts / 2).max(2),
            Law::Cubic(cubic) => cubic.reduced(window_pkts),
        }
    }

    /// The retransmission timer has expired: what was known of the path counts no more.
    pub(crate) fn timed_out(&mut self, now_ns: u64, nxt: u64) {
        if let Law::Cubic(cubic) = &mut self.law {
            *cubic = Cubic::default();
        }
        if let Some(hystart) = &mut self.hystart {
            hystart.restart(now_ns, nxt);
        }
    }

    /// Data leaves after `idle_ns` in which nothing was sent: that time is none of growth.
    pub(crate) fn rested(&mut self, idle_ns: u64, now_ns: u64) {
        if let Law::Cubic(cubic) = &mut self.law {
            cubic.rested(idle_ns, now_ns);
        }
    }

    /// The reduction was a mistake.
    pub(crate) fn undone(&mut self, window_pkts: u32) {
        if let Law::Cubic(cubic) = &mut self.law {
            cubic.undone(window_pkts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(cwnd_pkts: u32, ssthresh_pkts: u32, acked_pkts: u32) -> Growth {
        Growth {
            now_ns: 0,
            cwnd_pkts,
            ssthresh_pkts,
            slow_start_pkts: acked_pkts,
            acked_pkts,
        }
    }

    #[test]
    fn slow_start_ends_at_the_threshold_and_avoidance_goes_on_with_the_rest() {
        let mut reno = Avoidance::new(AvoidanceSpec::Reno, 0);
        assert_eq!(reno.grow(&growth(10, 100, 2)), 12);
        // 1 packet up to 11, the other 11 make one more.
        assert_eq!(reno.grow(&growth(10, 11, 12)), 12);
    }

    #[test]
    fn reno_grows_by_one_packet_a_window() {
        let mut reno = Avoidance::new(AvoidanceSpec::Reno, 0);
        let mut cwnd_pkts = 10;
        for _ in 0..10 {
            cwnd_pkts = reno.grow(&growth(cwnd_pkts, 10, 1));
        }
        assert!((10..=11).contains(&cwnd_pkts), "{cwnd_pkts}");
        cwnd_pkts = reno.grow(&growth(cwnd_pkts, 10, 1));
        assert_eq!(cwnd_pkts, 11);
        assert_eq!(reno.reduced(11), 5);
        assert_eq!(reno.reduced(1), 2);
    }
}
