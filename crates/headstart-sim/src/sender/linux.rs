//! Recovery as Linux has it: losses are found by RACK (RFC 8985), the window follows PRR (RFC 9937),
//! what proves to be a mistake is undone (RFC 5682, RFC 3522, RFC 3708). Without SACK, duplicate ACKs.

use headstart_core::{INFINITE_SSTHRESH, LossKind};

use super::ack::News;
use super::{Context, Reduction, Sender, State, Undo};
use crate::scoreboard::{EVER_RETRANS, LOST, RETRANS_OUT, SACKED};

/// RFC 5682, 2.1, step 3a.
const FRTO_WINDOW_PKTS: u32 = 3;

impl Sender {
    /// Returns whether what is thought lost may be sent again at once.
    pub(super) fn linux_ack(&mut self, ctx: &mut Context<'_>, news: &mut News) -> bool {
        let prior_lost = self.lost_total;
        self.take_probe_ack(ctx, news);
        let without_sack = !self.transport.uses_sack();
        let dubious = self.state != State::Open
            || news.newly_sacked_pkts > 0
            || news.is_duplicate
            || news.came_twice
            || news.congestion;
        let mut may_resend = true;
        if dubious {
            if without_sack {
                self.count_duplicates(news);
            }
            may_resend = self.take_dubious(ctx, news);
        }
        if news.restart_timer && !self.timers.is(super::timers::Timer::Reorder) {
            self.restart_timer(ctx.now_ns);
        } else if self.board.is_empty() {
            self.stop();
        }
        if matches!(self.state, State::Reducing | State::Recovery) {
            self.reduce_proportionally(news, self.lost_total != prior_lost);
        } else if self.may_grow(news) {
            self.grow(ctx, news);
        }
        may_resend
    }

    /// F-RTO (RFC 5682, 2.1, step 2b): new data, which proves the timer right or wrong; what is thought lost only
    /// where none may leave (Linux: tcp_xmit_recovery, REXMIT_NEW).
    pub(super) fn send_before_resending(&mut self, ctx: &mut Context<'_>) {
        self.send_new(ctx);
        if self.nxt <= self.high {
            self.frto = false;
            self.push(ctx);
        }
    }

    /// Without SACK each duplicate stands for a packet that has left the network.
    fn count_duplicates(&mut self, news: &News) {
        if news.advanced() {
            self.duplicates = 0;
            self.sacked_pkts = 0;
        } else if news.is_duplicate {
            let room = self
                .packets_out()
                .saturating_sub(self.lost_pkts + self.sacked_pkts);
            if room > 0 {
                self.duplicates += 1;
                self.sacked_pkts += 1;
                self.delivered_total = self.delivered_total.wrapping_add(1);
            }
        }
    }

    /// RFC 8985, 7.4: was the probe needed?
    fn take_probe_ack(&mut self, ctx: &mut Context<'_>, news: &News) {
        let Some(end) = self.probe_end else { return };
        if self.una < end {
            return;
        }
        if !self.probe_was_resent || news.came_twice {
            self.probe_end = None;
        } else if self.una > end {
            // The probe repaired a loss: the window is reduced for it.
            self.probe_end = None;
            self.begin_reduction(ctx, LossKind::Ecn);
            self.state = State::Reducing;
            self.end_reduction();
            self.keep_open();
        } else if !news.advanced() && news.newly_sacked_pkts == 0 {
            self.probe_end = None;
        }
    }

    /// Returns whether what is thought lost may be sent again at once.
    fn take_dubious(&mut self, ctx: &mut Context<'_>, news: &mut News) -> bool {
        if news.congestion && matches!(self.state, State::Open | State::Disorder) {
            self.begin_reduction(ctx, LossKind::Ecn);
            self.state = State::Reducing;
            self.reduced_mark = true;
        }
        if self.state != State::Open && self.una >= self.high {
            match self.state {
                State::Reducing if self.una > self.high => {
                    self.end_reduction();
                    self.state = State::Open;
                }
                State::Recovery => {
                    if !self.try_undo(news) {
                        self.end_reduction();
                    }
                    self.state = State::Open;
                    self.undo.possible = false;
                    if !self.transport.uses_sack() {
                        self.sacked_pkts = 0;
                    }
                }
                _ => {}
            }
        }
        match self.state {
            State::Recovery => {
                if news.advanced() && self.try_undo_partly(news) {
                    return true;
                }
                self.find_losses(ctx, news);
            }
            State::Loss => {
                if let Some(may_resend) = self.take_in_loss(news) {
                    self.find_losses(ctx, news);
                    if self.state == State::Loss && !news.lost_again {
                        return may_resend;
                    }
                    self.open_or_recover(ctx, news);
                    return may_resend;
                }
                self.find_losses(ctx, news);
                self.open_or_recover(ctx, news);
            }
            State::Open | State::Disorder | State::Reducing => {
                self.find_losses(ctx, news);
                self.open_or_recover(ctx, news);
            }
        }
        true
    }

    fn open_or_recover(&mut self, ctx: &mut Context<'_>, news: &News) {
        let _ = news;
        if self.lost_pkts == 0
            || (self.state == State::Loss && self.una < self.high && !news.lost_again)
        {
            if self.state != State::Reducing && self.state != State::Loss {
                self.keep_open();
            }
            return;
        }
        self.enter_recovery(ctx);
    }

    fn keep_open(&mut self) {
        let suspect = self.sacked_pkts + self.lost_pkts + self.resent_pkts > 0;
        let state = match suspect {
            true => State::Disorder,
            false => State::Open,
        };
        if self.state != state {
            self.state = state;
            self.high = self.nxt;
        }
    }

    fn enter_recovery(&mut self, ctx: &mut Context<'_>) {
        self.undo = Undo {
            possible: true,
            prior_cwnd_pkts: self.cwnd_pkts,
            prior_ssthresh_pkts: self.kept_ssthresh(),
            unproven_pkts: self.resent_pkts,
            first_resent_ns: None,
        };
        if self.state != State::Reducing {
            self.begin_reduction(ctx, LossKind::Fast);
        } else {
            self.high = self.nxt;
        }
        self.state = State::Recovery;
    }

    fn begin_reduction(&mut self, ctx: &mut Context<'_>, loss: LossKind) {
        self.high = self.nxt;
        self.probe_end = None;
        self.reduction = Reduction {
            prior_cwnd_pkts: self.cwnd_pkts,
            delivered_pkts: 0,
            out_pkts: 0,
        };
        self.ssthresh_pkts = self.penalty(ctx, loss);
        self.note_slow_start_end(ctx.now_ns);
    }

    /// What is left of the window after a loss: the start-up's word, else the congestion control's.
    pub(super) fn penalty(&mut self, ctx: &mut Context<'_>, loss: LossKind) -> u32 {
        if let Some(ssthresh_pkts) = self.startup_loss(ctx, loss) {
            return match loss {
                LossKind::Timeout => ssthresh_pkts,
                _ if ssthresh_pkts >= INFINITE_SSTHRESH => ssthresh_pkts,
                _ => ssthresh_pkts.min(self.cwnd_pkts).max(2),
            };
        }
        let window_pkts = match self.is_linux() {
            true => self.cwnd_pkts,
            // RFC 5681, equation (4): FlightSize.
            false => self.packets_out().min(self.cwnd_pkts),
        };
        self.avoidance.reduced(window_pkts)
    }

    fn end_reduction(&mut self) {
        if self.ssthresh_pkts < INFINITE_SSTHRESH {
            self.cwnd_pkts = self.ssthresh_pkts;
        }
    }

    /// RFC 9937, section 6; Linux: tcp_cwnd_reduction.
    fn reduce_proportionally(&mut self, news: &News, newly_lost: bool) {
        let newly_delivered = self.delivered_total.wrapping_sub(news.prior_delivered);
        if newly_delivered == 0 || self.reduction.prior_cwnd_pkts == 0 {
            return;
        }
        let reduction = &mut self.reduction;
        reduction.delivered_pkts += newly_delivered;
        let (delivered, out) = (
            u64::from(reduction.delivered_pkts),
            u64::from(reduction.out_pkts),
        );
        let prior = u64::from(reduction.prior_cwnd_pkts);
        let in_flight = self.in_flight();
        let may_send = if in_flight > self.ssthresh_pkts {
            let share = (u64::from(self.ssthresh_pkts) * delivered).div_ceil(prior);
            share.saturating_sub(out)
        } else {
            let mut limit = delivered
                .saturating_sub(out)
                .max(u64::from(newly_delivered));
            // The last ACK advanced and nothing more was found lost: slow start.
            if news.advanced() && !newly_lost {
                limit += 1;
            }
            limit.min(u64::from(self.ssthresh_pkts - in_flight))
        };
        // The first retransmission leaves in any case.
        let least = u64::from(out == 0);
        let may_send = u32::try_from(may_send.max(least)).unwrap_or(u32::MAX);
        self.cwnd_pkts = in_flight.saturating_add(may_send).max(1);
    }

    /// In slow start after the timer. `None`: losses are looked for and the state may change; else
    /// whether what is thought lost may be sent again.
    pub(super) fn take_in_loss(&mut self, news: &News) -> Option<bool> {
        let recovered = self.una >= self.high;
        if news.advanced() && self.is_late_original(news) {
            self.undo_all(true);
            self.state = State::Open;
            return None;
        }
        if self.frto {
            // Step 3b: what had not been sent again came: the timer was wrong.
            if news.original_came && self.undo.possible {
                self.undo_all(true);
                self.state = State::Open;
                return None;
            }
            if self.nxt > self.high {
                // Step 3a: the loss was real.
                if news.newly_sacked_pkts > 0 || news.is_duplicate {
                    self.frto = false;
                    self.begin_resending();
                }
            } else if news.advanced() && !recovered {
                self.high = self.nxt;
                if self.nxt < self.write_end && self.nxt < self.window_end {
                    return Some(false);
                }
                self.frto = false;
            }
        }
        if recovered {
            self.undo.possible = false;
            self.state = State::Open;
            return None;
        }
        Some(true)
    }

    /// F-RTO found that the loss was real. Without SACK nothing tells that the new data has left the network, and the
    /// window has to have room beside it (RFC 5682, 2.1, step 3a: "no more than 3 * MSS"); Linux counts the duplicates.
    fn begin_resending(&mut self) {
        if !self.transport.uses_sack() && !self.is_linux() {
            self.cwnd_pkts = self.cwnd_pkts.max(FRTO_WINDOW_PKTS);
        }
    }

    /// RFC 3522 (Eifel): the timestamp says that it was the original that came.
    fn is_late_original(&self, news: &News) -> bool {
        let (Some(echo_ms), Some(resent_ns)) = (news.echo_ms, self.undo.first_resent_ns) else {
            return false;
        };
        let resent_ms = (resent_ns / 1_000_000) as u32;
        self.undo.possible && (resent_ms.wrapping_sub(echo_ms) as i32) > 0
    }

    fn try_undo(&mut self, news: &News) -> bool {
        let proven = self.undo.first_resent_ns.is_some() && self.undo.unproven_pkts == 0;
        if !self.undo.possible || !(proven || self.is_late_original(news)) {
            return false;
        }
        self.undo_all(false);
        true
    }

    /// A part of what was thought lost came late: all of it did.
    fn try_undo_partly(&mut self, news: &News) -> bool {
        if !self.is_late_original(news) {
            return false;
        }
        self.undo_all(true);
        self.state = State::Open;
        self.keep_open();
        true
    }

    fn undo_all(&mut self, forget_losses: bool) {
        if forget_losses {
            self.board.clear_marks(SACKED | RETRANS_OUT | EVER_RETRANS);
            self.lost_pkts = 0;
            self.rack.cursor = self.board.first();
        }
        self.cwnd_pkts = self.cwnd_pkts.max(self.undo.prior_cwnd_pkts);
        self.ssthresh_pkts = self.ssthresh_pkts.max(self.undo.prior_ssthresh_pkts);
        self.avoidance.undone(self.undo.prior_cwnd_pkts);
        self.undo.possible = false;
        self.frto = false;
    }

    /// How long RACK waits for what was overtaken (RFC 8985, 6.2, step 4).
    pub(super) fn rack_patience_ns(&self) -> u64 {
        self.rack.rtt_ns + self.reordering_window_ns()
    }

    fn reordering_window_ns(&self) -> u64 {
        let enough = self.sacked_pkts >= self.reordering_pkts;
        if !self.rack.reordering_seen && (self.state >= State::Recovery || enough) {
            return 0;
        }
        let quarter_ns = u64::from(self.rtt.min_us()) * 1000 / 4;
        quarter_ns.min(u64::from(self.rtt.srtt_us()) * 1000)
    }

    fn find_losses(&mut self, ctx: &mut Context<'_>, news: &mut News) {
        if self.board.is_empty() {
            return;
        }
        if !self.transport.uses_sack() {
            let enough =
                self.state < State::Recovery && self.duplicates >= self.transport.dupthresh;
            if enough || (self.state >= State::Recovery && news.advanced()) {
                self.mark_lost(self.board.first());
            }
            return;
        }
        if !std::mem::take(&mut self.rack.advanced) {
            return;
        }
        let resent_before = self.resent_pkts;
        if let Some(wait_ns) = self.rack_detect(ctx.now_ns) {
            self.start_reorder_timer(ctx.now_ns, wait_ns);
            news.restart_timer = false;
        } else if self.timers.is(super::timers::Timer::Reorder) {
            self.start_rto(ctx.now_ns);
        }
        news.lost_again = self.resent_pkts < resent_before;
    }

    /// RFC 8985, 6.2, step 5. Returns how long to wait for the first that may be lost.
    ///
    /// First transmissions left in the order of their numbers, and retransmissions in the order of
    /// `resent`: so both are walked from where the last walk ended, and each segment is judged once.
    fn rack_detect(&mut self, now_ns: u64) -> Option<u64> {
        let patience_ns = self.rack_patience_ns();
        let (rack_ns, rack_end) = (self.rack.sent_ns, self.rack.end);
        let mut wait_ns = None;
        let mut number = self.rack.cursor.max(self.board.first());
        while number < self.board.next() {
            let segment = *self.board.get(number);
            if !segment.has(SACKED | EVER_RETRANS) && !segment.has(LOST) {
                if (segment.sent_ns, segment.end()) >= (rack_ns, rack_end) {
                    break;
                }
                let age_ns = now_ns - segment.sent_ns;
                if age_ns < patience_ns {
                    wait_ns = Some(patience_ns - age_ns);
                    break;
                }
                self.mark_lost(number);
            }
            number += 1;
        }
        self.rack.cursor = number;
        while let Some(&(number, sent_ns)) = self.resent.front() {
            let gone = number < self.board.first() || {
                let segment = self.board.get(number);
                segment.has(SACKED) || !segment.has(RETRANS_OUT) || segment.sent_ns != sent_ns
            };
            if !gone {
                let end = self.board.get(number).end();
                if (sent_ns, end) >= (rack_ns, rack_end) {
                    break;
                }
                let age_ns = now_ns - sent_ns;
                if age_ns < patience_ns {
                    let left_ns = patience_ns - age_ns;
                    wait_ns = Some(wait_ns.map_or(left_ns, |wait: u64| wait.min(left_ns)));
                    break;
                }
                self.mark_lost(number);
            }
            self.resent.pop_front();
        }
        wait_ns
    }

    /// What was overtaken has had its time.
    pub(super) fn reordering_window_ends(&mut self, ctx: &mut Context<'_>) {
        let flight_before = self.in_flight();
        let wait_ns = self.rack_detect(ctx.now_ns);
        if self.in_flight() != flight_before && self.state != State::Recovery {
            if self.state != State::Loss {
                self.enter_recovery(ctx);
            }
            self.cwnd_pkts = self.cwnd_pkts.min(self.in_flight() + 1).max(1);
        }
        match wait_ns {
            Some(wait_ns) => self.start_reorder_timer(ctx.now_ns, wait_ns),
            None => self.rearm_rto(ctx.now_ns),
        }
        self.push(ctx);
    }
}
