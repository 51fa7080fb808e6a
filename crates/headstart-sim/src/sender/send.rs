//! What leaves: new data, and what is thought lost.

use super::burst::{Burst, Readiness};
use super::timers::Timer;
use super::{Context, Sender, State};
use crate::packet::{
    ECN_CAPABLE, LOW_PRIORITY, NO_SACK, PUSH, PacketKind, REDUCED, RETRANSMISSION, SimPacket,
};
use crate::scoreboard::{EVER_RETRANS, LOST, RETRANS_OUT, Segment};
use headstart_scenario::RecoverySpec;

const NS_PER_S: u64 = 1_000_000_000;

impl Sender {
    /// Sends what may leave: first what is thought lost, then new data.
    pub(crate) fn push(&mut self, ctx: &mut Context<'_>) {
        self.resend_lost(ctx);
        self.send_new(ctx);
    }

    pub(super) fn send_new(&mut self, ctx: &mut Context<'_>) {
        if self.state == State::Recovery
            && !self.transport.recovery.is_new_reno()
            && self.has_lost()
        {
            return;
        }
        let mut sent = false;
        let mut burst = Burst::default();
        let mut limited = false;
        while self.nxt < self.write_end {
            if burst.left_pkts == 0 {
                if self.paced && !self.may_leave(ctx.now_ns) {
                    break;
                }
                let in_flight = self.in_flight();
                if in_flight >= self.allowed_pkts() {
                    limited = true;
                    break;
                }
                if self.next_len_bytes() == 0 {
                    break;
                }
                // The start-up may set another window and rate.
                if in_flight == 0
                    && self.state == State::Open
                    && self.announce(ctx)
                    && self.paced
                    && !self.may_leave(ctx.now_ns)
                {
                    break;
                }
                match self.next_burst(ctx.now_ns) {
                    Readiness::Now(ready) => burst = ready,
                    Readiness::Later { limited: by_window } => {
                        limited |= by_window;
                        break;
                    }
                }
            }
            let len_bytes = self.next_len_bytes();
            if len_bytes == 0 || self.in_flight() >= self.allowed_pkts() {
                burst.end();
                continue;
            }
            let pushes = burst.take();
            if len_bytes < self.transport.mss_bytes {
                burst.end();
            }
            self.send_segment(ctx, len_bytes, pushes);
            debug_assert!(self.in_flight() <= self.allowed_pkts(), "above the window");
            debug_assert!(self.nxt <= self.window_end, "above the receiver's window");
            sent = true;
        }
        limited |= self.in_flight() >= self.cwnd_pkts;
        if sent || limited {
            self.validate(ctx.now_ns, limited);
        }
        if sent && self.transport.recovery == RecoverySpec::Linux {
            self.schedule_probe(ctx.now_ns, false);
        }
    }

    /// How many bytes the next new segment has; 0: the window has no room for it.
    pub(super) fn next_len_bytes(&self) -> u16 {
        let left = match self.nxt < self.head_end {
            true => self.head_end - self.nxt,
            false => self.write_end - self.nxt,
        };
        let len = left.min(u64::from(self.transport.mss_bytes));
        let end = self.window_end;
        // Nagle: what may become a whole segment waits for it (RFC 1122, 4.2.3.4).
        let may_grow = self.is_starved() && self.nxt + len == self.write_end;
        if may_grow && len < u64::from(self.transport.mss_bytes) && !self.board.is_empty() {
            return 0;
        }
        // No silly window: whole segments, or all there is (RFC 1122, 4.2.3.4).
        if self.nxt + len > end {
            // A window smaller than a segment is used as it is where nothing else is out.
            let room = end.saturating_sub(self.nxt);
            return match self.board.is_empty() {
                true => room.min(len) as u16,
                false => 0,
            };
        }
        len as u16
    }

    /// Nothing is in flight and data is about to leave.
    pub(super) fn announce(&mut self, ctx: &mut Context<'_>) -> bool {
        if self.sent_total > 0 {
            let idle_ns = ctx.now_ns - self.last_sent_ns;
            self.avoidance.rested(idle_ns, ctx.now_ns);
        }
        self.startup_send(ctx)
    }

    /// Sends `len_bytes` of new data. What ends a burst, or all that was written, pushes.
    pub(super) fn send_segment(&mut self, ctx: &mut Context<'_>, len_bytes: u16, pushes: bool) {
        let start = self.nxt;
        let was_empty = self.board.is_empty();
        self.board.push(Segment {
            start,
            sent_ns: ctx.now_ns,
            len_bytes,
            flags: 0,
        });
        self.nxt += u64::from(len_bytes);
        self.sent_total += 1;
        if self.state == State::Recovery || self.state == State::Reducing {
            self.reduction.out_pkts += 1;
        }
        let mut flags = if self.startup_marks(start, self.nxt) {
            LOW_PRIORITY
        } else {
            0
        };
        if pushes || self.nxt == self.write_end {
            flags |= PUSH;
        }
        if self.transport.ecn {
            flags |= ECN_CAPABLE;
            if std::mem::take(&mut self.reduced_mark) {
                flags |= REDUCED;
            }
        }
        self.transmit(ctx, start, len_bytes, flags);
        if was_empty || self.timers.is(Timer::Probe) {
            self.start_rto(ctx.now_ns);
        }
    }

    pub(super) fn transmit(
        &mut self,
        ctx: &mut Context<'_>,
        start: u64,
        len_bytes: u16,
        flags: u8,
    ) {
        self.last_sent_ns = ctx.now_ns;
        if self.paced && self.sent_total + self.resent_total >= self.unpaced_pkts() {
            let rate = self.pacing_rate().max(1);
            let spacing_ns = u64::from(len_bytes) * NS_PER_S / rate;
            self.next_paced_ns = self.next_paced_ns.max(ctx.now_ns) + spacing_ns;
        }
        let packet = SimPacket {
            seq: start,
            conn: self.conn,
            window_bytes: 0,
            sack: NO_SACK,
            stamp_ms: (ctx.now_ns / 1_000_000) as u32,
            echo_ms: self.peer_stamp_ms,
            payload_bytes: len_bytes,
            wire_bytes: len_bytes + self.transport.header_bytes,
            life: self.life,
            kind: PacketKind::Data,
            flags,
            hop: 0,
        };
        ctx.network.send(ctx.now_ns, packet);
    }

    /// Sends segment `number` again.
    pub(super) fn resend(&mut self, ctx: &mut Context<'_>, number: u64) {
        let segment = self.board.get_mut(number);
        segment.sent_ns = ctx.now_ns;
        segment.flags |= RETRANS_OUT | EVER_RETRANS;
        let (start, len_bytes, lost) = (segment.start, segment.len_bytes, segment.has(LOST));
        if lost {
            self.board.clear_to_resend(number);
        }
        self.resent_pkts += 1;
        self.resent_total += 1;
        self.resent.push_back((number, ctx.now_ns));
        self.undo.unproven_pkts += 1;
        self.undo.first_resent_ns.get_or_insert(ctx.now_ns);
        if self.state == State::Recovery || self.state == State::Reducing {
            self.reduction.out_pkts += 1;
        }
        self.transmit(ctx, start, len_bytes, RETRANSMISSION);
    }

    pub(super) fn has_lost(&self) -> bool {
        self.board.to_resend_pkts() > 0
    }

    /// Sends again what is thought lost, the oldest first.
    pub(super) fn resend_lost(&mut self, ctx: &mut Context<'_>) {
        if !self.has_lost() {
            return;
        }
        let mut chunk_pkts = 0;
        self.apply_recovery_floor();
        loop {
            if self.paced && !self.pace(ctx.now_ns, &mut chunk_pkts) {
                break;
            }
            if self.in_flight() >= self.cwnd_pkts {
                break;
            }
            let Some(number) = self.board.next_to_resend(self.resend_hint) else {
                self.resend_hint = self.board.next();
                break;
            };
            self.resend_hint = number + 1;
            self.resend(ctx, number);
            if number == self.board.first() && !self.timers.is(Timer::Reorder) {
                self.start_rto(ctx.now_ns);
            }
        }
    }

    /// Thinks segment `number` lost.
    pub(super) fn mark_lost(&mut self, number: u64) {
        let segment = self.board.get_mut(number);
        if segment.has(crate::scoreboard::SACKED) {
            return;
        }
        let (was_lost, was_out) = (segment.has(LOST), segment.has(RETRANS_OUT));
        if was_lost && !was_out {
            return;
        }
        segment.flags |= LOST;
        segment.flags &= !RETRANS_OUT;
        self.board.set_to_resend(number);
        self.resent_pkts -= u32::from(was_out);
        self.lost_pkts += u32::from(!was_lost);
        self.lost_total = self.lost_total.wrapping_add(1);
        self.resend_hint = self.resend_hint.min(number);
    }
}
