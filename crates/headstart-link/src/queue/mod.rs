//! Queue disciplines: what waits in front of the transmitter, and what is dropped.

mod codel;
mod drop_tail;
mod fifo;
mod fq_codel;
mod red;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use codel::Codel;
pub(crate) use drop_tail::DropTail;
pub(crate) use fq_codel::FqCodel;
pub(crate) use red::Red;

use crate::Packet;

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
    /// It waited with low drop priority, and gave way to a packet without: priority drop.
    PushedOut,
    /// RED drew its lot: the average queue was between the thresholds.
    RedEarly,
    /// RED's average queue was above the last threshold.
    RedForced,
    /// `CoDel`: packets had waited too long for too long.
    Codel,
    /// FQ-CoDel was full, and this was of the flow with the most bytes.
    FattestFlow,
    /// It was sent, and lost on the wire.
    Lost,
}

impl DropReason {
    /// Every reason there is, in the order of its number.
    pub const ALL: [DropReason; 7] = [
        DropReason::QueueFull,
        DropReason::PushedOut,
        DropReason::RedEarly,
        DropReason::RedForced,
        DropReason::Codel,
        DropReason::FattestFlow,
        DropReason::Lost,
    ];
}

impl fmt::Display for DropReason {
    /// As in results.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DropReason::QueueFull => "queue-full",
            DropReason::PushedOut => "pushed-out",
            DropReason::RedEarly => "red-early",
            DropReason::RedForced => "red-forced",
            DropReason::Codel => "codel",
            DropReason::FattestFlow => "fattest-flow",
            DropReason::Lost => "lost",
        })
    }
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

    /// Packets that were given a congestion mark so far.
    fn marked_pkts(&self) -> u64 {
        0
    }
}

/// A queue of any kind. An enum within and not a `Box<dyn Queue>`: a call is a jump that can be
/// foreseen, and the usual queue is inlined into the link.
#[derive(Debug)]
pub struct AnyQueue<P>(pub(crate) Kind<P>);

#[derive(Debug)]
pub(crate) enum Kind<P> {
    DropTail(DropTail<P>),
    Red(Box<Red<P>>),
    Codel(Box<Codel<P>>),
    FqCodel(Box<FqCodel<P>>),
}

macro_rules! of_any_kind {
    ($kind:expr, $queue:ident => $call:expr) => {
        match $kind {
            Kind::DropTail($queue) => $call,
            Kind::Red($queue) => $call,
            Kind::Codel($queue) => $call,
            Kind::FqCodel($queue) => $call,
        }
    };
}

impl<P: Packet> Queue<P> for AnyQueue<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now_ns: u64,
        arriving: Waiting<P>,
        drops: &mut Vec<Dropped<P>>,
    ) -> Option<DropReason> {
        of_any_kind!(&mut self.0, queue => queue.enqueue(now_ns, arriving, drops))
    }

    #[inline]
    fn dequeue(&mut self, now_ns: u64, drops: &mut Vec<Dropped<P>>) -> Option<Waiting<P>> {
        of_any_kind!(&mut self.0, queue => queue.dequeue(now_ns, drops))
    }

    #[inline]
    fn len_pkts(&self) -> u32 {
        of_any_kind!(&self.0, queue => queue.len_pkts())
    }

    #[inline]
    fn len_bytes(&self) -> u64 {
        of_any_kind!(&self.0, queue => queue.len_bytes())
    }

    fn marked_pkts(&self) -> u64 {
        of_any_kind!(&self.0, queue => queue.marked_pkts())
    }
}

/// Drops the packet that has just come.
fn refuse<P>(
    now_ns: u64,
    arriving: Waiting<P>,
    reason: DropReason,
    drops: &mut Vec<Dropped<P>>,
) -> Option<DropReason> {
    drops.push(Dropped {
        waiting: arriving,
        dropped_ns: now_ns,
        reason,
    });
    Some(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_shown_as_it_is_written_in_results() {
        for (number, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number);
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(json, format!("\"{reason}\""));
        }
    }
}
