//! What a run tells while it runs. What an observer does not ask for costs nothing.

use headstart_link::{Counters, DropReason};

use crate::packet::SimPacket;
use crate::sender::Exit;

/// A transfer that is over, or that the end of the run cut short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransferDone {
    /// Which group.
    pub group: u32,
    /// Which of the users of all groups; `None`: an arrival of an open loop.
    pub user: Option<u32>,
    /// The slot of its connection.
    pub conn: u32,
    /// The how manieth transfer of its connection, from 0.
    pub turn: u32,
    /// When it was asked for.
    pub start_ns: u64,
    /// When its connection was open, if it was opened for it.
    pub connected_ns: Option<u64>,
    /// When its last byte came, or when the run ended.
    pub end_ns: u64,
    /// Its size.
    pub bytes: u64,
    /// How much of it came, in order.
    pub delivered_bytes: u64,
    /// Whether all of it did.
    pub finished: bool,
    /// Data packets sent again.
    pub retransmitted_pkts: u64,
    /// Its packets that links dropped, in both directions.
    pub dropped_pkts: u64,
    /// How far a linked list of what is out would have been walked for the SACK blocks that came, in
    /// packets, since its connection opened: the work that section 2.1.1 of the `HyStart` paper is about.
    pub sack_walk_pkts: u64,
    /// How often its connection's retransmission timer has expired.
    pub timeouts: u32,
    /// The least round trip that its sender saw, in us; 0: none.
    pub min_rtt_us: u32,
    /// The reason with which the start-up left during it.
    pub exit: Option<Exit>,
    /// How its connection's slow start first ended.
    pub slow_start_end: Option<SlowStartEnd>,
}

impl TransferDone {
    /// How long it took.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// How many of its path's shortest round trips that is.
    pub fn round_trips(&self) -> Option<f64> {
        let rtt_ns = f64::from(self.min_rtt_us) * 1000.0;
        (rtt_ns > 0.0).then(|| self.duration_ns() as f64 / rtt_ns)
    }
}

/// The moment at which ssthresh first has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowStartEnd {
    /// When.
    pub at_ns: u64,
    /// The window then; after a loss, still that before it.
    pub cwnd_pkts: u32,
    /// The value.
    pub ssthresh_pkts: u32,
}

/// A sender at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSample {
    /// When.
    pub at_ns: u64,
    /// Which group.
    pub group: u32,
    /// The slot of its connection.
    pub conn: u32,
    /// Congestion window.
    pub cwnd_pkts: u32,
    /// Slow-start threshold; `INFINITE_SSTHRESH`: none.
    pub ssthresh_pkts: u32,
    /// Smoothed round trip.
    pub srtt_us: u32,
    /// In flight.
    pub inflight_pkts: u32,
}

/// A queue at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSample {
    /// When.
    pub at_ns: u64,
    /// Which link.
    pub link: u32,
    /// Packets that wait.
    pub len_pkts: u32,
    /// What the link has seen so far.
    pub counters: Counters,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFate {
    /// It left its sender.
    Sent,
    /// It came to the other end.
    Came,
    /// A link dropped it.
    Dropped(DropReason),
}

/// Is told of a run.
pub trait Observer {
    /// Whether it wants windows.
    const WINDOWS: bool = false;
    /// Whether it wants queues.
    const QUEUES: bool = false;
    /// Whether it wants packets.
    const PACKETS: bool = false;

    /// A transfer is over.
    fn transfer(&mut self, done: &TransferDone) {
        let _ = done;
    }

    /// The start-up of connection `conn` left after its last transfer was over: the last acknowledgements
    /// reach the sender only then.
    fn late_exit(&mut self, conn: u32, exit: Exit) {
        let _ = (conn, exit);
    }

    /// A sample of a window.
    fn window(&mut self, sample: &WindowSample) {
        let _ = sample;
    }

    /// A sample of a queue.
    fn queue(&mut self, sample: &QueueSample) {
        let _ = sample;
    }

    /// A packet of the group `group`.
    fn packet(&mut self, at_ns: u64, group: u32, packet: &SimPacket, fate: PacketFate) {
        let _ = (at_ns, group, packet, fate);
    }

    /// Whether to go on: asked about every 65,536 steps.
    fn goes_on(&mut self) -> bool {
        true
    }
}

/// Wants nothing.
impl Observer for () {}

/// Keeps the transfers.
impl Observer for Vec<TransferDone> {
    fn transfer(&mut self, done: &TransferDone) {
        self.push(*done);
    }
}

/// What a run comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When the last thing happened.
    pub end_ns: u64,
    /// Steps: packets handed on by links, timers, requests.
    pub events: u64,
    /// Packets that left a sender, data and others.
    pub sent_pkts: u64,
    /// Packets that came to the other end.
    pub received_pkts: u64,
    /// Packets that links dropped.
    pub dropped_pkts: u64,
    /// Packets that were on their way when it ended.
    pub left_pkts: u64,
    /// Transfers that were over.
    pub transfers: u64,
    /// Transfers that were not.
    pub unfinished: u64,
    /// What each link has seen.
    pub links: Vec<Counters>,
    /// An observer ended it before its time.
    pub stopped: bool,
}
