//! How large the window is that may be used: after a rest, and while it is not filled.

use super::{Context, Sender, State};
use headstart_scenario::{IdleSpec, RecoverySpec};

impl Sender {
    pub(super) fn restart_after_idle(&mut self, ctx: &mut Context<'_>) {
        let idle_ns = ctx.now_ns - self.last_sent_ns;
        let rto_ns = u64::from(self.rtt.rto_us()) * 1000;
        if self.sent_total == 0 || idle_ns <= rto_ns || self.transport.idle == IdleSpec::Keep {
            return;
        }
        self.startup_idle(ctx, idle_ns / 1000);
        let least_pkts = self.transport.initial_window_pkts.min(self.cwnd_pkts);
        match self.transport.idle {
            IdleSpec::Keep => {}
            // RFC 5681, 4.1: RW = min(IW, cwnd).
            IdleSpec::Restart => self.cwnd_pkts = least_pkts,
            // RFC 2861, as Linux does it.
            IdleSpec::Linux => {
                self.ssthresh_pkts = self.kept_ssthresh();
                let mut left_ns = idle_ns;
                while left_ns > rto_ns && self.cwnd_pkts > least_pkts {
                    left_ns -= rto_ns;
                    self.cwnd_pkts /= 2;
                }
                self.cwnd_pkts = self.cwnd_pkts.max(least_pkts);
                self.used_pkts = 0;
                self.used_at_ns = ctx.now_ns;
            }
        }
    }

    /// RFC 2861: the threshold remembers three quarters of the window.
    pub(super) fn kept_ssthresh(&self) -> u32 {
        match self.state {
            State::Reducing | State::Recovery => self.ssthresh_pkts,
            _ => self
                .ssthresh_pkts
                .max(self.cwnd_pkts / 2 + self.cwnd_pkts / 4),
        }
    }

    /// What may be in flight now; NewReno counts by its own window, which duplicate ACKs inflate.
    pub(super) fn allowed_pkts(&self) -> u32 {
        let extra_pkts = match self.transport.recovery {
            RecoverySpec::NewRenoImpatient | RecoverySpec::NewRenoSteady
                if self.state == State::Open && self.transport.limited_transmit =>
            {
                self.duplicates.min(2)
            }
            _ => 0,
        };
        self.cwnd_pkts.saturating_add(extra_pkts)
    }

    /// RFC 7661, as Linux does it: whether the window is used, and what is in use when it is not.
    pub(super) fn validate(&mut self, now_ns: u64, limited: bool) {
        let out_pkts = self.packets_out();
        if self.una >= self.usage_end
            || limited
            || (!self.cwnd_limited && out_pkts > self.peak_pkts)
        {
            self.cwnd_limited = limited;
            self.peak_pkts = out_pkts;
            self.usage_end = self.nxt;
        }
        if self.window_is_used() {
            self.used_pkts = 0;
            self.used_at_ns = now_ns;
            return;
        }
        self.used_pkts = self.used_pkts.max(out_pkts);
        let rto_ns = u64::from(self.rtt.rto_us()) * 1000;
        if self.transport.idle == IdleSpec::Linux && now_ns - self.used_at_ns >= rto_ns {
            self.decay();
            self.used_at_ns = now_ns;
        }
    }

    /// tcp_cwnd_application_limited: an RTO long the window was not used. Where the application has more than the buffer
    /// takes (SOCK_NOSPACE), it is not the application that left it unused.
    fn decay(&mut self) {
        if self.state != State::Open || self.is_starved() {
            return;
        }
        let used_pkts = self.used_pkts.max(self.transport.initial_window_pkts);
        if used_pkts < self.cwnd_pkts {
            self.ssthresh_pkts = self.kept_ssthresh();
            self.cwnd_pkts = (self.cwnd_pkts + used_pkts) / 2;
        }
        self.used_pkts = 0;
    }

    /// The window limits sending; in slow start it is enough that half of it was used.
    pub(super) fn window_is_used(&self) -> bool {
        self.cwnd_limited
            || (self.cwnd_pkts < self.ssthresh_pkts && self.cwnd_pkts < 2 * self.peak_pkts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::testing::{MS_NS, with_packets_out};

    /// In congestion avoidance, 20 of a window of 100 are out, and nothing more may leave: the buffer is empty, whether
    /// the application has more for it or not.
    fn unused(application_has_more: bool) -> Sender {
        let mut sender = with_packets_out(20);
        (sender.cwnd_pkts, sender.ssthresh_pkts) = (100, 50);
        sender.write_end = sender.nxt;
        sender.app_end = sender.write_end + u64::from(application_has_more);
        sender
    }

    fn after(mut sender: Sender, ms: u64) -> (u32, u32) {
        sender.validate(ms * MS_NS, false);
        (sender.cwnd_pkts, sender.ssthresh_pkts)
    }

    #[test]
    fn what_the_application_leaves_unused_for_an_rto_is_halved_away() {
        let rto_ms = u64::from(unused(false).rtt.rto_us()) / 1000;
        assert_eq!(after(unused(false), rto_ms - 1), (100, 50));
        // (100 + 20) / 2; three quarters of the window are remembered.
        assert_eq!(after(unused(false), rto_ms), (60, 75));
    }

    #[test]
    fn the_window_stays_where_it_is_the_buffer_that_is_too_small_or_a_loss_is_suspected() {
        assert_eq!(after(unused(true), 1000), (100, 50));
        let mut sender = unused(false);
        sender.state = State::Disorder;
        assert_eq!(after(sender, 1000), (100, 50));
    }
}
