//! Queue disciplines: what waits in front of the transmitter, and what is dropped.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// What a link carries. Only its size on the wire matters to the link.
pub trait Packet: Send + 'static {
    /// Bytes that occupy the wire, headers included.
    fn wire_bytes(&self) -> u32;
}

/// A packet in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting<P> {
    /// The packet itself.
    pub packet: P,
    /// When it came to the link.
    pub arrived_ns: u64,
    /// How many packets were waiting when it came, not counting itself.
    pub queue_len_pkts: u32,
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropReason {
    /// It came to a queue without room.
    QueueFull,
}

impl DropReason {
    /// Every reason there is, in the order of its number.
    pub const ALL: [DropReason; 1] = [DropReason::QueueFull];
}

/// A packet that the link gives back instead of carrying it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped<P> {
    /// The packet, and when and to what queue it came.
    pub waiting: Waiting<P>,
    /// When it was dropped; later than it came where the queue chose to drop one that waited.
    pub dropped_ns: u64,
    /// Why.
    pub reason: DropReason,
}

/// A queue discipline. It may drop any packet that it holds, on arrival of another one or when the
/// transmitter asks for the next: whatever it drops goes to `drops`, and nothing else is lost.
pub trait Queue<P: Packet> {
    /// Takes in `arriving`, or drops it, or drops another in its favour. Tells why `arriving`
    /// itself was dropped, if it was.
    fn enqueue(
        &mut self,
        now_ns: u64,
        arriving: Waiting<P>,
        drops: &mut Vec<Dropped<P>>,
    ) -> Option<DropReason>;

    /// The next packet to transmit at `now_ns`; `None` only if nothing is left.
    fn dequeue(&mut self, now_ns: u64, drops: &mut Vec<Dropped<P>>) -> Option<Waiting<P>>;

    /// Packets that wait.
    fn len_pkts(&self) -> u32;

    /// Bytes that wait.
    fn len_bytes(&self) -> u64;
}

/// First in, first out, up to a number of packets. The packet in transmission is not in the queue
/// and not counted, as in mahimahi and ns-3: `drop-tail:1` lets one packet wait behind it.
#[derive(Debug)]
pub struct DropTail<P> {
    limit_pkts: u32,
    waiting: VecDeque<Waiting<P>>,
    len_bytes: u64,
}

impl<P> DropTail<P> {
    /// An empty queue in which at most `limit_pkts` packets wait.
    #[must_use]
    pub fn new(limit_pkts: u32) -> Self {
        DropTail {
            limit_pkts,
            waiting: VecDeque::new(),
            len_bytes: 0,
        }
    }
}

impl<P: Packet> Queue<P> for DropTail<P> {
    fn enqueue(
        &mut self,
        now_ns: u64,
        arriving: Waiting<P>,
        drops: &mut Vec<Dropped<P>>,
    ) -> Option<DropReason> {
        if self.len_pkts() >= self.limit_pkts {
            let reason = DropReason::QueueFull;
            drops.push(Dropped {
                waiting: arriving,
                dropped_ns: now_ns,
                reason,
            });
            return Some(reason);
        }
        self.len_bytes += u64::from(arriving.packet.wire_bytes());
        self.waiting.push_back(arriving);
        None
    }

    fn dequeue(&mut self, _now_ns: u64, _drops: &mut Vec<Dropped<P>>) -> Option<Waiting<P>> {
        let next = self.waiting.pop_front()?;
        self.len_bytes -= u64::from(next.packet.wire_bytes());
        Some(next)
    }

    fn len_pkts(&self) -> u32 {
        u32::try_from(self.waiting.len()).unwrap_or(u32::MAX)
    }

    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}
