//! The sending end of a connection: what may leave, and when.
//!
//! Windows are in packets, as Linux counts them; positions in bytes since the connection opened.
//! `ack.rs` takes acknowledgements, `linux.rs` and `classic.rs` find and repair losses, `startup.rs`
//! gives the events to a start-up of `core/` and obeys its verdicts.

mod ack;
mod classic;
mod linux;
mod startup;
mod timers;

use std::sync::Arc;

use headstart_core::INFINITE_SSTHRESH;

use crate::avoidance::Avoidance;
use crate::memory::PathMemory;
use crate::network::Network;
use crate::packet::{
    ECN_CAPABLE, LOW_PRIORITY, NO_SACK, PacketKind, REDUCED, RETRANSMISSION, SimPacket,
};
use crate::rtt::RttEstimator;
use crate::scoreboard::{EVER_RETRANS, LOST, RETRANS_OUT, Scoreboard, Segment};
use headstart_scenario::{IdleSpec, PacingSpec, RecoverySpec, Transport};

pub(crate) use ack::Acknowledgement;
pub use startup::Exit;
pub(crate) use startup::StartupGlue;
use timers::{Timer, Timers};

/// Linux paces none of a connection's first packets (tcp_update_skb_after_send).
const UNPACED_PKTS: u64 = 10;
const NS_PER_S: u64 = 1_000_000_000;

/// Where loss recovery stands (Linux: icsk_ca_state).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// No sign of a loss.
    Open,
    /// Reordering is suspected.
    Disorder,
    /// The window is being reduced, nothing is lost: ECN, or a loss that a probe repaired.
    Reducing,
    /// Fast recovery.
    Recovery,
    /// Slow start after the timer.
    Loss,
}

/// What the sender works with when it is called.
pub(crate) struct Context<'a> {
    pub(crate) now_ns: u64,
    pub(crate) network: &'a mut Network,
    pub(crate) memory: &'a mut PathMemory,
}

/// RACK: the most recently sent segment that was delivered (RFC 8985, 5.2).
#[derive(Clone, Copy, Debug, Default)]
struct Rack {
    sent_ns: u64,
    end: u64,
    rtt_ns: u64,
    advanced: bool,
    /// Segments before this are judged, or were sent again.
    cursor: u64,
    reordering_seen: bool,
}

/// Of the present reduction (RFC 9937).
#[derive(Clone, Copy, Debug, Default)]
struct Reduction {
    prior_cwnd_pkts: u32,
    delivered_pkts: u32,
    out_pkts: u32,
}

/// What it takes to undo a reduction.
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    possible: bool,
    prior_cwnd_pkts: u32,
    prior_ssthresh_pkts: u32,
    /// Retransmissions of which the receiver has not said that they came twice.
    unproven_pkts: u32,
    /// When the first of them left.
    first_resent_ns: Option<u64>,
}

pub(crate) struct Sender {
    pub(crate) transport: Arc<Transport>,
    conn: u32,
    life: u16,
    /// Of the path memory.
    destination: u32,
    board: Scoreboard,
    una: u64,
    nxt: u64,
    write_end: u64,
    /// Where the application's first write of a transfer ends: a segment ends there, too.
    head_end: u64,
    window_end: u64,
    cwnd_pkts: u32,
    ssthresh_pkts: u32,
    sacked_pkts: u32,
    lost_pkts: u32,
    resent_pkts: u32,
    /// The most that was in flight in the present window, and where that ends (RFC 7661).
    peak_pkts: u32,
    usage_end: u64,
    cwnd_limited: bool,
    used_pkts: u32,
    used_at_ns: u64,
    avoidance: Avoidance,
    rtt: RttEstimator,
    state: State,
    /// The state ends when this is acknowledged.
    high: u64,
    highest_sacked: u64,
    duplicates: u32,
    reordering_pkts: u32,
    last_blocks: crate::packet::Blocks,
    rack: Rack,
    /// Retransmissions in the order in which they left.
    resent: std::collections::VecDeque<(u64, u64)>,
    /// The first segment that may have to be sent again is not before this one.
    resend_hint: u64,
    /// RFC 6675: segments before this are judged.
    edge: u64,
    sacked_above_edge: u32,
    rescued: bool,
    partial_seen: bool,
    reduction: Reduction,
    undo: Undo,
    frto: bool,
    probe_end: Option<u64>,
    probe_was_resent: bool,
    reduced_mark: bool,
    timers: Timers,
    backoff: u32,
    last_sent_ns: u64,
    delivered_total: u32,
    lost_total: u32,
    sent_total: u64,
    resent_total: u64,
    /// Steps that a list of what is out, walked from its head for each SACK block, would have taken.
    sack_walk_total: u64,
    timeouts_total: u32,
    rtt_sample_us: u32,
    paced: bool,
    next_paced_ns: u64,
    startup: Option<Box<StartupGlue>>,
    /// Where slow start was first ended, and when.
    pub(crate) slow_start_end: Option<crate::SlowStartEnd>,
    handshake_lost: bool,
}

impl Sender {
    pub(crate) fn new(
        transport: Arc<Transport>,
        conn: u32,
        life: u16,
        destination: u32,
        startup: Option<Box<StartupGlue>>,
        now_ns: u64,
    ) -> Sender {
        let t = &*transport;
        Sender {
            conn,
            life,
            destination,
            board: Scoreboard::default(),
            una: 0,
            nxt: 0,
            write_end: 0,
            head_end: 0,
            window_end: 0,
            cwnd_pkts: t.initial_window_pkts.max(1),
            ssthresh_pkts: t.initial_ssthresh_pkts.unwrap_or(INFINITE_SSTHRESH),
            sacked_pkts: 0,
            lost_pkts: 0,
            resent_pkts: 0,
            peak_pkts: 0,
            usage_end: 0,
            cwnd_limited: false,
            used_pkts: 0,
            used_at_ns: now_ns,
            avoidance: Avoidance::new(t.avoidance, now_ns),
            rtt: RttEstimator::new(t.rto),
            state: State::Open,
            high: 0,
            highest_sacked: 0,
            duplicates: 0,
            reordering_pkts: t.dupthresh,
            last_blocks: crate::packet::Blocks::default(),
            rack: Rack::default(),
            resent: std::collections::VecDeque::new(),
            resend_hint: 0,
            edge: 0,
            sacked_above_edge: 0,
            rescued: false,
            partial_seen: false,
            reduction: Reduction::default(),
            undo: Undo::default(),
            frto: false,
            probe_end: None,
            probe_was_resent: false,
            reduced_mark: false,
            timers: Timers::default(),
            backoff: 0,
            last_sent_ns: now_ns,
            delivered_total: 0,
            lost_total: 0,
            sent_total: 0,
            resent_total: 0,
            sack_walk_total: 0,
            timeouts_total: 0,
            rtt_sample_us: 0,
            paced: false,
            next_paced_ns: 0,
            startup,
            slow_start_end: None,
            handshake_lost: false,
            transport,
        }
    }

    /// The connection is established. `rtt_us`: how long the handshake took, if it was seen.
    pub(crate) fn open(&mut self, ctx: &mut Context<'_>, rtt_us: Option<u32>, window_bytes: u32) {
        self.last_sent_ns = ctx.now_ns;
        self.window_end = u64::from(window_bytes);
        if let Some(rtt_us) = rtt_us {
            self.rtt.measure(rtt_us, 0, 0);
            self.rtt.see_minimum(ctx.now_ns, rtt_us);
        }
        self.startup_open(ctx);
    }

    /// The SYN was lost: RFC 5681, 3.1: the initial window is one segment.
    pub(crate) fn handshake_lost(&mut self) {
        self.cwnd_pkts = 1;
        self.handshake_lost = true;
    }

    /// What is written next begins with `bytes` that leave in a segment of their own.
    pub(crate) fn set_head(&mut self, bytes: u16) {
        self.head_end = self.write_end + u64::from(bytes);
    }

    /// The application writes `bytes` more; they leave as far as they may.
    pub(crate) fn write(&mut self, ctx: &mut Context<'_>, bytes: u64) {
        if self.board.is_empty() {
            self.restart_after_idle(ctx);
        }
        self.write_end = self.write_end.saturating_add(bytes);
        self.push(ctx);
    }

    fn restart_after_idle(&mut self, ctx: &mut Context<'_>) {
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
    fn kept_ssthresh(&self) -> u32 {
        match self.state {
            State::Reducing | State::Recovery => self.ssthresh_pkts,
            _ => self
                .ssthresh_pkts
                .max(self.cwnd_pkts / 2 + self.cwnd_pkts / 4),
        }
    }

    pub(crate) fn packets_out(&self) -> u32 {
        (self.board.next() - self.board.first()) as u32
    }

    /// As RFC 6675's pipe: what is out, less what has come or is thought lost, and what was sent again.
    pub(crate) fn in_flight(&self) -> u32 {
        (self.packets_out() + self.resent_pkts).saturating_sub(self.sacked_pkts + self.lost_pkts)
    }

    pub(crate) fn all_acknowledged(&self) -> bool {
        self.una == self.write_end
    }

    /// What may be in flight now; NewReno counts by its own window, which duplicate ACKs inflate.
    fn allowed_pkts(&self) -> u32 {
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

    /// Sends what may leave: first what is thought lost, then new data.
    pub(crate) fn push(&mut self, ctx: &mut Context<'_>) {
        self.resend_lost(ctx);
        self.send_new(ctx);
    }

    fn send_new(&mut self, ctx: &mut Context<'_>) {
        if self.state == State::Recovery
            && !self.transport.recovery.is_new_reno()
            && self.has_lost()
        {
            return;
        }
        let mut sent = false;
        let mut chunk_pkts = 0;
        let mut limited = false;
        while self.nxt < self.write_end {
            if self.paced && !self.pace(ctx.now_ns, &mut chunk_pkts) {
                break;
            }
            let in_flight = self.in_flight();
            if in_flight >= self.allowed_pkts() {
                limited = true;
                break;
            }
            let len_bytes = self.next_len_bytes();
            if len_bytes == 0 {
                break;
            }
            if in_flight == 0 && self.state == State::Open && self.announce(ctx) {
                // The start-up may have set another window and rate.
                chunk_pkts = 0;
                if self.paced && !self.pace(ctx.now_ns, &mut chunk_pkts) {
                    break;
                }
            }
            self.send_segment(ctx, len_bytes);
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
    fn next_len_bytes(&self) -> u16 {
        let left = match self.nxt < self.head_end {
            true => self.head_end - self.nxt,
            false => self.write_end - self.nxt,
        };
        let len = left.min(u64::from(self.transport.mss_bytes));
        let mut end = self.window_end;
        if let Some(buffer_bytes) = self.transport.send_buffer_bytes {
            end = end.min(self.una.saturating_add(buffer_bytes));
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
    fn announce(&mut self, ctx: &mut Context<'_>) -> bool {
        if self.sent_total > 0 {
            let idle_ns = ctx.now_ns - self.last_sent_ns;
            self.avoidance.rested(idle_ns, ctx.now_ns);
        }
        self.startup_send(ctx)
    }

    fn send_segment(&mut self, ctx: &mut Context<'_>, len_bytes: u16) {
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

    fn transmit(&mut self, ctx: &mut Context<'_>, start: u64, len_bytes: u16, flags: u8) {
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
    fn resend(&mut self, ctx: &mut Context<'_>, number: u64) {
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

    fn has_lost(&self) -> bool {
        self.board.to_resend_pkts() > 0
    }

    /// Sends again what is thought lost, the oldest first.
    fn resend_lost(&mut self, ctx: &mut Context<'_>) {
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
    fn mark_lost(&mut self, number: u64) {
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

    /// RFC 7661, as Linux does it: whether the window is used, and what is in use when it is not.
    fn validate(&mut self, now_ns: u64, limited: bool) {
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
    fn window_is_used(&self) -> bool {
        self.cwnd_limited
            || (self.cwnd_pkts < self.ssthresh_pkts && self.cwnd_pkts < 2 * self.peak_pkts)
    }

    /// Whether a packet may leave now; if not, a timer is set. Packets leave in chunks.
    fn pace(&mut self, now_ns: u64, chunk_pkts: &mut u32) -> bool {
        if *chunk_pkts > 0 || self.sent_total + self.resent_total < self.unpaced_pkts() {
            *chunk_pkts = chunk_pkts.saturating_sub(1);
            return true;
        }
        if now_ns < self.next_paced_ns {
            self.timers.pace_ns = self.next_paced_ns;
            return false;
        }
        *chunk_pkts = self.chunk_pkts() - 1;
        true
    }

    /// The papers' own stacks pace from the first packet on.
    fn unpaced_pkts(&self) -> u64 {
        match self.is_linux() {
            true => UNPACED_PKTS,
            false => 0,
        }
    }

    /// tcp_tso_autosize of Linux: a millisecond's data, and no less than the start-up's burst or 2.
    /// Others have no bursts but the start-up's.
    fn chunk_pkts(&self) -> u32 {
        if !self.is_linux() {
            return self.startup_burst().unwrap_or(1).max(1);
        }
        let millisecond_bytes = self.pacing_rate() >> 10;
        let pkts = millisecond_bytes / u64::from(self.transport.mss_bytes.max(1));
        let least_pkts = self.startup_burst().unwrap_or(2).max(1);
        u32::try_from(pkts)
            .unwrap_or(u32::MAX)
            .clamp(least_pkts, 44.max(least_pkts))
    }

    fn pacing_rate(&self) -> u64 {
        self.startup_rate().unwrap_or_else(|| self.stack_rate())
    }

    /// tcp_update_pacing_rate of Linux: twice the window a round trip, 1.2 times from half of ssthresh.
    fn stack_rate(&self) -> u64 {
        let percent = match self.cwnd_pkts < self.ssthresh_pkts / 2 {
            true => 200,
            false => 120,
        };
        let pkts = u64::from(self.cwnd_pkts.max(self.packets_out()));
        let bytes = pkts * u64::from(self.transport.mss_bytes);
        match self.rtt.srtt_us() {
            0 => 0,
            srtt_us => bytes * percent * 10_000 / u64::from(srtt_us),
        }
    }

    /// The transfer is over and may be the last for long.
    pub(crate) fn rest(&mut self) {
        self.board.rest();
        if self.resent.capacity() > 64 {
            self.resent = std::collections::VecDeque::new();
        }
    }

    /// The connection is over: nothing is due any more.
    pub(crate) fn forget(&mut self) {
        self.timers = Timers::default();
        self.board = Scoreboard::default();
    }

    pub(crate) fn write_end(&self) -> u64 {
        self.write_end
    }

    /// 0: never measured.
    pub(crate) fn min_rtt_us(&self) -> u32 {
        match self.rtt.min_us() {
            u32::MAX => 0,
            min_us => min_us,
        }
    }

    pub(crate) fn cwnd_pkts(&self) -> u32 {
        self.cwnd_pkts
    }

    pub(crate) fn ssthresh_pkts(&self) -> u32 {
        self.ssthresh_pkts
    }

    pub(crate) fn srtt_us(&self) -> u32 {
        self.rtt.srtt_us()
    }

    pub(crate) fn resent_total(&self) -> u64 {
        self.resent_total
    }

    pub(crate) fn sack_walk_total(&self) -> u64 {
        self.sack_walk_total
    }

    pub(crate) fn timeouts_total(&self) -> u32 {
        self.timeouts_total
    }

    fn always_paced(&self) -> bool {
        self.transport.pacing == PacingSpec::Linux
    }
}
