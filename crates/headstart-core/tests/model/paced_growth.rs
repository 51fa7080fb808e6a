//! What Swift Start and paced slow start promise beyond the general rules (A Swifter Start for TCP, 3.1): how the
//! first window follows from the times of the ACKs, and how fast a window may grow. Worked out from the events
//! alone, and not by the sums that the start-ups keep.

use headstart_core::{EventKind, Params, Phase, why_name};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::Step;

pub(crate) struct PacedGrowth {
    gamma: u64,
    slope_acks: u32,
    growth_percent: u64,
    /// t_seg1 and t_ack1, and what had been delivered then.
    burst_us: u64,
    first_ack_us: u64,
    first_ack_delivered_pkts: u32,
    /// The window from which it grows, and what had been delivered when that was set.
    window_pkts: u64,
    window_delivered_pkts: u32,
    delivered_pkts: u32,
}

impl PacedGrowth {
    /// Nothing for start-ups that do not pace their growth.
    pub(crate) fn of(params: Params) -> Option<PacedGrowth> {
        Some(PacedGrowth {
            growth_percent: params.get("growth_percent")?.into(),
            gamma: params.get("gamma").unwrap_or(1).into(),
            slope_acks: params.get("slope_acks").unwrap_or(0),
            burst_us: 0,
            first_ack_us: 0,
            first_ack_delivered_pkts: 0,
            window_pkts: 0,
            window_delivered_pkts: 0,
            delivered_pkts: 0,
        })
    }

    pub(crate) fn judge(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let Step { event, verdict } = step;
        let window_pkts = u64::from(verdict.cwnd_pkts);
        let newly_pkts = event.delivered_pkts - self.delivered_pkts;
        self.delivered_pkts = event.delivered_pkts;
        let owned = verdict.phase != Phase::Native as u8;
        prop_assert_eq!(verdict.owns_slow_start, u8::from(owned));
        prop_assert_eq!(verdict.pacing_bytes_per_s > 0, verdict.burst_pkts > 0);
        match why_name(verdict.why) {
            "started" => {
                self.burst_us = event.now_us;
                self.grows_from(step);
            }
            "ack-clock" => {
                self.first_ack_us = event.now_us;
                self.first_ack_delivered_pkts = event.delivered_pkts;
                prop_assert!(verdict.pacing_bytes_per_s == 0, "paced without an estimate");
            }
            "estimated" => {
                // Capacity = BW * (t_ack1 - t_seg1), over gamma.
                let pkts = match self.slope_acks {
                    0 => 1,
                    _ => event.delivered_pkts - self.first_ack_delivered_pkts,
                };
                let gap_us = event.now_us - self.first_ack_us;
                let rtt_us = self.first_ack_us - self.burst_us;
                prop_assert!(window_pkts * gap_us * self.gamma <= u64::from(pkts) * rtt_us);
                prop_assert!(window_pkts > event.cwnd_pkts.into());
                prop_assert!(verdict.pacing_bytes_per_s > 0);
                self.grows_from(step);
            }
            "estimate-small" => {
                prop_assert!(window_pkts <= (event.cwnd_pkts + newly_pkts).into());
                prop_assert!(verdict.pacing_bytes_per_s > 0);
                self.grows_from(step);
            }
            _ if event.kind == EventKind::Ack as u8 && owned && window_pkts > 0 => {
                prop_assert!(
                    window_pkts >= event.cwnd_pkts.into(),
                    "an ACK shrinks the window"
                );
                prop_assert!(
                    window_pkts <= (event.cwnd_pkts + newly_pkts).into(),
                    "faster than slow start"
                );
                if verdict.pacing_bytes_per_s > 0 {
                    self.growth(event.delivered_pkts, window_pkts)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn grows_from(&mut self, step: &Step) {
        self.window_pkts = step.verdict.cwnd_pkts.into();
        self.window_delivered_pkts = step.event.delivered_pkts;
    }

    /// Each round trip is rounded up to a whole packet, and is at least as long as the first.
    fn growth(&self, delivered_pkts: u32, window_pkts: u64) -> Result<(), TestCaseError> {
        let delivered = u64::from(delivered_pkts - self.window_delivered_pkts);
        let grown = (delivered * (self.growth_percent - 100)).div_ceil(100);
        let round_trips = delivered / self.window_pkts + 1;
        let most = self.window_pkts + grown + round_trips;
        prop_assert!(
            window_pkts <= most,
            "{window_pkts} packets of {most} after {delivered}"
        );
        Ok(())
    }
}
