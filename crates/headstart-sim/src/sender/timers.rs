//! The sender's timers: one for retransmission, which stands for three things, and one for pacing.

use super::{Context, Sender, State};
use crate::scoreboard::{EVER_RETRANS, LOST, RETRANS_OUT, SACKED};
use headstart_scenario::RecoverySpec;

/// Linux: TCP_TIMEOUT_MIN, two ticks of 1 ms.
const LEAST_TIMEOUT_NS: u64 = 2_000_000;
/// RFC 8985, 7.2: WCDelAckT; Linux takes its least RTO.
const WORST_DELAYED_ACK_NS: u64 = 200_000_000;
/// RFC 6298, 5.5: back off; Linux: to 120 s, which is 8 doublings of any timer.
const MOST_BACKOFF: u32 = 10;

/// What the retransmission timer is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Nothing.
    None,
    /// RFC 6298.
    Rto,
    /// Tail loss probe (RFC 8985, section 7).
    Probe,
    /// RACK's reordering window (RFC 8985, 6.2).
    Reorder,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    kind: Timer,
    at_ns: u64,
    pub(super) pace_ns: u64,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            kind: Timer::None,
            at_ns: u64::MAX,
            pace_ns: u64::MAX,
        }
    }
}

impl Timers {
    pub(super) fn is(&self, kind: Timer) -> bool {
        self.kind == kind
    }

    fn set(&mut self, kind: Timer, at_ns: u64) {
        (self.kind, self.at_ns) = (kind, at_ns);
    }
}

impl Sender {
    /// When it wants to be called again; `u64::MAX`: never.
    pub(crate) fn due_ns(&self) -> u64 {
        self.timers.at_ns.min(self.timers.pace_ns)
    }

    fn rto_ns(&self) -> u64 {
        (u64::from(self.rtt.rto_us()) * 1000) << self.backoff.min(MOST_BACKOFF)
    }

    /// (Re)starts the retransmission timer (RFC 6298, 5.1 and 5.3).
    pub(super) fn start_rto(&mut self, now_ns: u64) {
        let at_ns = self.rtt.expiry_ns(now_ns, self.rto_ns() / 1000);
        self.timers.set(Timer::Rto, at_ns);
    }

    /// As [`Sender::start_rto`], counted from when the first segment last left (RFC 8985, 7.3).
    pub(super) fn rearm_rto(&mut self, now_ns: u64) {
        if self.board.is_empty() {
            return self.stop();
        }
        let since_ns = now_ns - self.board.get(self.board.first()).sent_ns;
        let left_ns = self.rto_ns().saturating_sub(since_ns).max(1_000_000);
        let at_ns = self.rtt.expiry_ns(now_ns, left_ns / 1000);
        self.timers.set(Timer::Rto, at_ns);
    }

    pub(super) fn stop(&mut self) {
        self.timers.set(Timer::None, u64::MAX);
    }

    /// An acknowledgement restarts the timer, or stops it when nothing is out.
    pub(super) fn restart_timer(&mut self, now_ns: u64) {
        if self.board.is_empty() {
            self.stop();
        } else if self.transport.recovery != RecoverySpec::Linux
            || !self.schedule_probe(now_ns, true)
        {
            self.start_rto(now_ns);
        }
    }

    /// RFC 8985, 7.2: a probe two round trips after the last segment, unless the RTO is sooner.
    pub(super) fn schedule_probe(&mut self, now_ns: u64, restarts: bool) -> bool {
        let may = matches!(self.state, State::Open | State::Reducing)
            && self.transport.uses_sack()
            && !self.board.is_empty();
        if !may {
            return false;
        }
        let mut probe_ns = match self.rtt.is_measured() {
            true => {
                let extra_ns = match self.packets_out() {
                    1 => WORST_DELAYED_ACK_NS,
                    _ => LEAST_TIMEOUT_NS,
                };
                u64::from(self.rtt.srtt_us()) * 2000 + extra_ns
            }
            false => 1_000_000_000,
        };
        let mut rto_ns = self.rto_ns();
        if !restarts {
            let first_ns = self.board.get(self.board.first()).sent_ns;
            rto_ns = rto_ns.saturating_sub(now_ns - first_ns);
        }
        if rto_ns > 0 {
            probe_ns = probe_ns.min(rto_ns);
        }
        self.timers.set(Timer::Probe, now_ns + probe_ns);
        true
    }

    pub(super) fn start_reorder_timer(&mut self, now_ns: u64, after_ns: u64) {
        let after_ns = (after_ns + LEAST_TIMEOUT_NS).min(self.rto_ns());
        self.timers.set(Timer::Reorder, now_ns + after_ns);
    }

    /// Time has come to `now_ns`: does what is due.
    pub(crate) fn on_timer(&mut self, ctx: &mut Context<'_>) {
        if self.timers.pace_ns <= ctx.now_ns {
            self.timers.pace_ns = u64::MAX;
            self.push(ctx);
        }
        if self.timers.at_ns > ctx.now_ns {
            return;
        }
        let kind = self.timers.kind;
        self.stop();
        match kind {
            Timer::None => {}
            Timer::Rto => self.time_out(ctx),
            Timer::Probe => self.probe(ctx),
            Timer::Reorder => self.reordering_window_ends(ctx),
        }
    }

    /// RFC 8985, 7.3: new data if there is any, else the last segment again.
    fn probe(&mut self, ctx: &mut Context<'_>) {
        if self.board.is_empty() {
            return;
        }
        if self.probe_end.is_some() {
            return self.rearm_rto(ctx.now_ns);
        }
        let len_bytes = match self.nxt < self.write_end {
            true => self.next_len_bytes(),
            false => 0,
        };
        self.probe_was_resent = len_bytes == 0;
        if len_bytes > 0 {
            self.send_segment(ctx, len_bytes, false);
        } else {
            let last = self.board.next() - 1;
            if !self.board.get(last).has(SACKED | RETRANS_OUT) {
                self.resend(ctx, last);
            }
        }
        self.probe_end = Some(self.nxt);
        // The whole timer, from the probe on (RFC 8985, 7.3; Linux: tcp_send_loss_probe).
        self.start_rto(ctx.now_ns);
    }

    /// RFC 6298, 5.4 to 5.6, and RFC 5681, 3.1: slow start from one packet.
    fn time_out(&mut self, ctx: &mut Context<'_>) {
        if self.board.is_empty() {
            return;
        }
        // Of the same first segment: the backoff may stay long after it (RFC 6298, 5.7), this does not (icsk_retransmits).
        let again = self.state == State::Loss && self.timeouts_in_a_row > 0;
        let fresh = self.state <= State::Disorder
            || self.una >= self.high
            || (self.state == State::Loss && !again);
        let was_recovering = self.state >= State::Recovery;
        self.mark_all_lost(ctx.now_ns);
        if fresh || !self.is_linux() && !again {
            self.undo = super::Undo {
                possible: true,
                prior_cwnd_pkts: self.cwnd_pkts,
                prior_ssthresh_pkts: self.kept_ssthresh(),
                unproven_pkts: 0,
                first_resent_ns: None,
            };
            self.ssthresh_pkts = self.penalty(ctx, headstart_core::LossKind::Timeout);
            self.note_slow_start_end(ctx.now_ns);
        }
        self.timeouts_total += 1;
        self.avoidance.timed_out(ctx.now_ns, self.nxt);
        self.state = State::Loss;
        self.high = self.nxt;
        self.duplicates = 0;
        self.probe_end = None;
        self.partial_seen = false;
        self.cwnd_pkts = self.in_flight() + 1;
        self.frto = self.transport.uses_frto() && (!was_recovering || again);
        if let Some(first) = self.board.next_to_resend(self.board.first()) {
            self.resend_hint = first + 1;
            self.resend(ctx, first);
        }
        if !self.startup_keeps_timer() {
            self.backoff += 1;
            self.timeouts_in_a_row += 1;
        }
        self.start_rto(ctx.now_ns);
    }

    /// All that is out and was not reported as received; but RACK leaves alone what left just now.
    fn mark_all_lost(&mut self, now_ns: u64) {
        if !self.is_linux() || !self.transport.uses_sack() {
            // What duplicate ACKs stood for is forgotten.
            if !self.transport.uses_sack() {
                self.sacked_pkts = 0;
            }
        }
        let first = self.board.first();
        for number in first..self.board.next() {
            let segment = *self.board.get(number);
            if segment.has(SACKED) || (segment.has(LOST) && !segment.has(RETRANS_OUT)) {
                continue;
            }
            let recent = self.is_linux()
                && number != first
                && now_ns - segment.sent_ns < self.rack_patience_ns();
            if !recent {
                self.mark_lost(number);
            }
        }
        self.resent.retain(|(number, sent_ns)| {
            *number >= first && {
                let segment = self.board.get(*number);
                segment.has(RETRANS_OUT) && segment.sent_ns == *sent_ns
            }
        });
        self.rack.cursor = self.board.first();
        self.edge = self.edge.max(self.board.first());
        debug_assert!(self.lost_pkts <= self.packets_out());
        let _ = EVER_RETRANS;
    }

    pub(super) fn is_linux(&self) -> bool {
        self.transport.recovery == RecoverySpec::Linux
    }
}
