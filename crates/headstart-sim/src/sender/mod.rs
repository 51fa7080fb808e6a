//! The sending end of a connection: what may leave, and when.
//!
//! Windows are in packets, as Linux counts them; positions in bytes since the connection opened.
//! `send.rs` sends, as far as `window.rs`, `pacing.rs` and `burst.rs` let it; `ack.rs` takes acknowledgements,
//! `linux.rs` and `classic.rs` find and repair losses; `startup.rs` gives the events to a start-up of
//! `core/` and obeys its verdicts.

mod ack;
mod buffer;
mod burst;
mod classic;
mod linux;
mod pacing;
mod send;
mod startup;
#[cfg(test)]
mod testing;
mod timers;
mod window;

use std::sync::Arc;

use headstart_core::INFINITE_SSTHRESH;

use crate::avoidance::Avoidance;
use crate::memory::PathMemory;
use crate::network::Network;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use headstart_scenario::{RecoverySpec, Transport};

pub(crate) use ack::Acknowledgement;
pub use startup::Exit;
pub(crate) use startup::StartupGlue;
use timers::Timers;

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
    /// What is in the send buffer, or was; and what the application wants to send in all.
    write_end: u64,
    app_end: u64,
    buffer_bytes: u64,
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
    /// NextSeg, rule (3): segments before this have been looked at.
    suspect_hint: u64,
    partial_seen: bool,
    reduction: Reduction,
    undo: Undo,
    frto: bool,
    probe_end: Option<u64>,
    probe_was_resent: bool,
    reduced_mark: bool,
    timers: Timers,
    backoff: u32,
    /// Since an acknowledgement last advanced.
    timeouts_in_a_row: u32,
    last_sent_ns: u64,
    delivered_total: u32,
    lost_total: u32,
    sent_total: u64,
    resent_total: u64,
    /// Steps that a list of what is out, walked from its head for each SACK block, would have taken.
    sack_walk_total: u64,
    timeouts_total: u32,
    rtt_sample_us: u32,
    /// When what was last heard of the peer had left, in ms: the echo of what is sent.
    peer_stamp_ms: u32,
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
            app_end: 0,
            buffer_bytes: match (t.send_buffer_bytes, t.recovery) {
                (Some(bytes), _) => bytes,
                (None, RecoverySpec::Linux) => buffer::linux_buffer_bytes(t.mss_bytes, 0),
                (None, _) => u64::MAX,
            },
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
            suspect_hint: 0,
            partial_seen: false,
            reduction: Reduction::default(),
            undo: Undo::default(),
            frto: false,
            probe_end: None,
            probe_was_resent: false,
            reduced_mark: false,
            timers: Timers::default(),
            backoff: 0,
            timeouts_in_a_row: 0,
            last_sent_ns: now_ns,
            delivered_total: 0,
            lost_total: 0,
            sent_total: 0,
            resent_total: 0,
            sack_walk_total: 0,
            timeouts_total: 0,
            rtt_sample_us: 0,
            peer_stamp_ms: 0,
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
        let told = self.transport.handshake_rtt;
        if let Some(rtt_us) = rtt_us.filter(|_| told) {
            self.rtt.measure(rtt_us, 0, 0);
            self.rtt.see_minimum(ctx.now_ns, rtt_us);
        }
        self.startup_open(ctx);
    }

    /// Something came from the peer that had left at `stamp_ms`.
    pub(crate) fn heard(&mut self, stamp_ms: u32) {
        self.peer_stamp_ms = stamp_ms;
    }

    /// The SYN was lost: RFC 5681, 3.1: the initial window is one segment.
    pub(crate) fn handshake_lost(&mut self) {
        self.cwnd_pkts = 1;
        self.handshake_lost = true;
    }

    /// What is written next begins with `bytes` that leave in a segment of their own.
    pub(crate) fn set_head(&mut self, bytes: u16) {
        self.head_end = self.app_end + u64::from(bytes);
    }

    /// The application writes `bytes` more; they leave as far as they may.
    pub(crate) fn write(&mut self, ctx: &mut Context<'_>, bytes: u64) {
        if self.board.is_empty() {
            self.restart_after_idle(ctx);
        }
        let waits = self.is_starved();
        self.app_end = self.app_end.saturating_add(bytes);
        if waits {
            return;
        }
        // The head is a write of its own: it leaves before the stack knows of more.
        let head_end = self.head_end.min(self.app_end);
        if self.write_end < head_end {
            self.write_end = head_end;
            self.push(ctx);
        }
        self.fill();
        self.push(ctx);
    }

    pub(crate) fn packets_out(&self) -> u32 {
        (self.board.next() - self.board.first()) as u32
    }

    /// As RFC 6675's pipe: what is out, less what has come or is thought lost, and what was sent again.
    pub(crate) fn in_flight(&self) -> u32 {
        (self.packets_out() + self.resent_pkts).saturating_sub(self.sacked_pkts + self.lost_pkts)
    }

    pub(crate) fn all_acknowledged(&self) -> bool {
        self.una == self.app_end
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

    /// How far it was asked to send.
    pub(crate) fn app_end(&self) -> u64 {
        self.app_end
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
}
