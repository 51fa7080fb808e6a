//! Recovery by the RFCs alone: `NewReno` (RFC 6582) and SACK (RFC 6675).

use headstart_core::{INFINITE_SSTHRESH, LossKind};

use super::ack::News;
use super::{Context, Sender, State};
use crate::scoreboard::{EVER_RETRANS, LOST, SACKED};
use headstart_scenario::RecoverySpec;

impl Sender {
    /// RFC 6582, section 3.2.
    pub(super) fn new_reno_ack(&mut self, ctx: &mut Context<'_>, news: &mut News) {
        if news.advanced() {
            match self.state {
                State::Recovery if self.una >= self.high => self.new_reno_full(),
                State::Recovery => return self.new_reno_partial(ctx, news),
                State::Loss if self.una >= self.high => self.state = State::Open,
                _ => {}
            }
            self.duplicates = 0;
            self.restart_timer(ctx.now_ns);
            self.echoed(ctx, news);
            if self.may_grow(news) {
                self.grow(ctx, news);
            }
        } else if news.is_duplicate {
            self.new_reno_duplicate(ctx);
        }
    }

    fn new_reno_duplicate(&mut self, ctx: &mut Context<'_>) {
        self.duplicates += 1;
        self.delivered_total = self.delivered_total.wrapping_add(1);
        match self.state {
            // Step 3: "for each additional duplicate ACK received, increment cwnd by SMSS".
            State::Recovery => self.cwnd_pkts += 1,
            // Step 2, "careful": only if what is acknowledged is beyond the last recovery.
            State::Open | State::Disorder
                if self.duplicates == self.transport.dupthresh && self.una >= self.high =>
            {
                self.ssthresh_pkts = self.penalty(ctx, LossKind::Fast);
                self.note_slow_start_end(ctx.now_ns);
                self.high = self.nxt;
                self.state = State::Recovery;
                self.partial_seen = false;
                // RFC 5681, 3.2, step 3.
                self.cwnd_pkts = self.finite_ssthresh() + self.transport.dupthresh;
                self.resend_first(ctx);
                self.start_rto(ctx.now_ns);
            }
            _ => {}
        }
    }

    /// A start-up may leave ssthresh without bound; the window of a repair has one.
    fn finite_ssthresh(&self) -> u32 {
        match self.ssthresh_pkts < INFINITE_SSTHRESH {
            true => self.ssthresh_pkts,
            false => self.cwnd_pkts,
        }
    }

    fn resend_first(&mut self, ctx: &mut Context<'_>) {
        let first = self.board.first();
        if first < self.board.next() {
            self.resend(ctx, first);
            // NewReno counts all that is out; a retransmission is no more than its original.
            self.resent_pkts -= 1;
            let segment = self.board.get_mut(first);
            segment.flags &= !crate::scoreboard::RETRANS_OUT;
        }
    }

    /// Step 3, full acknowledgement: (1) min(ssthresh, max(FlightSize, SMSS) + SMSS).
    fn new_reno_full(&mut self) {
        let flight_pkts = self.packets_out();
        self.cwnd_pkts = self.finite_ssthresh().min(flight_pkts.max(1) + 1);
        self.state = State::Open;
    }

    /// Step 3, partial acknowledgement.
    fn new_reno_partial(&mut self, ctx: &mut Context<'_>, news: &News) {
        if let Some(1) = self.startup_partial(ctx) {
            // Fast Start 3.3.4: slow start without penalty.
            self.begin_slow_start(ctx);
            return;
        }
        self.resend_first(ctx);
        self.cwnd_pkts = self.cwnd_pkts.saturating_sub(news.acked_pkts).max(1) + 1;
        let steady = self.transport.recovery == RecoverySpec::NewRenoSteady;
        // Section 4: impatient, only the first one restarts the timer.
        if steady || !self.partial_seen {
            self.start_rto(ctx.now_ns);
        }
        self.partial_seen = true;
        self.startup_ack_in_recovery(ctx);
    }

    /// Everything that is out is sent again, from one packet.
    fn begin_slow_start(&mut self, ctx: &mut Context<'_>) {
        for number in self.board.first()..self.board.next() {
            self.mark_lost(number);
        }
        self.state = State::Loss;
        self.high = self.nxt;
        self.duplicates = 0;
        self.cwnd_pkts = 1;
        self.start_rto(ctx.now_ns);
    }

    /// RFC 6675, section 5; RFC 5682, section 3, where F-RTO is in use. Returns whether what is thought lost may be
    /// sent again at once.
    pub(super) fn sack_ack(&mut self, ctx: &mut Context<'_>, news: &mut News) -> bool {
        let may_resend = match self.state {
            State::Loss if self.transport.uses_frto() => self.take_in_loss(news).unwrap_or(true),
            _ => true,
        };
        if news.advanced() {
            self.duplicates = 0;
            if self.state != State::Open && self.una >= self.high {
                if self.state == State::Recovery {
                    self.cwnd_pkts = self.finite_ssthresh();
                }
                self.state = State::Open;
            }
            self.restart_timer(ctx.now_ns);
        } else if news.newly_sacked_pkts > 0 {
            self.duplicates += 1;
        }
        self.echoed(ctx, news);
        if news.newly_sacked_pkts > 0 || self.state == State::Recovery {
            self.move_edge();
        }
        if matches!(self.state, State::Open | State::Disorder) {
            let first_is_lost =
                !self.board.is_empty() && self.board.get(self.board.first()).has(LOST);
            let suspected = self.duplicates >= self.transport.dupthresh || first_is_lost;
            // Step 4: once a window.
            if suspected && self.una >= self.high && !self.board.is_empty() {
                self.enter_sack_recovery(ctx);
            } else if self.may_grow(news) {
                self.grow(ctx, news);
            }
        } else if self.state == State::Loss {
            self.grow(ctx, news);
        } else if !self.has_lost() {
            self.resend_suspects(ctx);
            self.rescue(ctx);
        }
        may_resend
    }

    fn enter_sack_recovery(&mut self, ctx: &mut Context<'_>) {
        // Step 4.1 to 4.3.
        self.ssthresh_pkts = self.penalty(ctx, LossKind::Fast);
        self.note_slow_start_end(ctx.now_ns);
        self.high = self.nxt;
        self.cwnd_pkts = self.finite_ssthresh();
        self.state = State::Recovery;
        self.rescued = false;
        self.suspect_hint = self.board.first();
        let first = self.board.first();
        self.mark_lost(first);
        self.resend_hint = first + 1;
        self.resend(ctx, first);
        self.start_rto(ctx.now_ns);
    }

    /// IsLost of RFC 6675, section 4: `DupThresh` segments above it have come. The edge moves up, so
    /// that each segment is judged once.
    fn move_edge(&mut self) {
        if self.edge < self.board.first() {
            self.edge = self.board.first();
        }
        while self.edge < self.board.next() && self.sacked_above_edge >= self.transport.dupthresh {
            let segment = *self.board.get(self.edge);
            if segment.has(SACKED) {
                self.sacked_above_edge -= 1;
                if self.sacked_above_edge < self.transport.dupthresh {
                    self.edge += 1;
                    break;
                }
            } else if !segment.has(LOST | EVER_RETRANS) {
                self.mark_lost(self.edge);
            }
            self.edge += 1;
        }
    }

    /// NextSeg, rule (3): where nothing is thought lost and there is no new data, what has not come
    /// although something after it has, the oldest first and each once.
    fn resend_suspects(&mut self, ctx: &mut Context<'_>) {
        let has_new = self.nxt < self.write_end && self.next_len_bytes() > 0;
        if has_new || self.has_lost() {
            return;
        }
        let mut number = self.suspect_hint.max(self.board.first());
        while number < self.board.next() && self.in_flight() < self.cwnd_pkts {
            let segment = *self.board.get(number);
            if segment.end() > self.highest_sacked {
                break;
            }
            if !segment.has(SACKED | LOST | EVER_RETRANS) {
                self.resend(ctx, number);
            }
            number += 1;
        }
        self.suspect_hint = number;
    }

    /// NextSeg, rule (4): once a recovery, the last segment, where nothing else may leave.
    fn rescue(&mut self, ctx: &mut Context<'_>) {
        if self.rescued || self.nxt < self.write_end || self.board.is_empty() {
            return;
        }
        let last = self.board.next() - 1;
        let idle = self.in_flight() < self.cwnd_pkts && self.resent_pkts == 0;
        if idle && !self.board.get(last).has(SACKED | EVER_RETRANS) {
            self.rescued = true;
            self.mark_lost(last);
            self.resend(ctx, last);
        }
    }

    /// ECN (RFC 3168, 6.1.2): as a loss, once a window, and nothing is sent again.
    fn echoed(&mut self, ctx: &mut Context<'_>, news: &News) {
        if news.congestion && self.state == State::Open && self.una >= self.high {
            self.ssthresh_pkts = self.penalty(ctx, LossKind::Ecn);
            self.note_slow_start_end(ctx.now_ns);
            self.cwnd_pkts = self.finite_ssthresh();
            self.high = self.nxt;
            self.reduced_mark = true;
        }
    }
}
