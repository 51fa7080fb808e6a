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
        if self.transport.idle == IdleSpec::Linux
            && now_ns - self.used_at_ns >= rto_ns
            && self.state == State::Open
        {
            let used_pkts = self.used_pkts.max(self.transport.initial_window_pkts);
            if used_pkts < self.cwnd_pkts {
                self.ssthresh_pkts = self.kept_ssthresh();
                self.cwnd_pkts = (self.cwnd_pkts + used_pkts) / 2;
            }
            self.used_pkts = 0;
            self.used_at_ns = now_ns;
        }
    }

    /// The window limits sending; in slow start it is enough that half of it was used.
    pub(super) fn window_is_used(&self) -> bool {
        self.cwnd_limited
            || (self.cwnd_pkts < self.ssthresh_pkts && self.cwnd_pkts < 2 * self.peak_pkts)
    }
}
