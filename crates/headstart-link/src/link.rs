//! A queue, a transmitter and a delay line, on virtual time stamps.

use std::collections::VecDeque;

use serde::Serialize;

use crate::queue::{DropReason, Dropped, Packet, Queue, Waiting};
use crate::transmitter::Transmitter;
use crate::{QueueSpec, QueueSpecError, Rate, Span};

/// One direction of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkConfig {
    /// Bits a second on the wire.
    pub rate: Rate,
    /// From the last bit sent to the packet's arrival at the far end.
    pub delay: Span,
    /// What waits for the transmitter.
    pub queue: QueueSpec,
}

/// What became of an arriving packet, as far as it is known on arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It waits or is in transmission. A queue that drops a waiting packet says so later.
    Queued {
        /// How many packets were waiting when it came.
        queue_len_pkts: u32,
    },
    /// It is among the [`Link::take_dropped`].
    Dropped(DropReason),
}

/// A packet at the far end of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departed<P> {
    /// The packet itself.
    pub packet: P,
    /// When it came to the link.
    pub arrived_ns: u64,
    /// How many packets were waiting when it came.
    pub queue_len_pkts: u32,
    /// When its transmission began: it waited `started_ns - arrived_ns`.
    pub started_ns: u64,
    /// When it is due at the far end: its last bit sent, and the delay.
    pub due_ns: u64,
}

/// Packets dropped, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropCounts([u64; DropReason::ALL.len()]);

impl DropCounts {
    /// Packets dropped for this reason.
    #[must_use]
    pub fn of(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Packets dropped for any reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Serialize for DropCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            DropReason::ALL
                .iter()
                .map(|&reason| (reason, self.of(reason))),
        )
    }
}

/// What a link has seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Packets that came.
    pub in_pkts: u64,
    /// Bytes that came.
    pub in_bytes: u64,
    /// Packets that reached the far end.
    pub out_pkts: u64,
    /// Bytes that reached the far end.
    pub out_bytes: u64,
    /// Packets dropped, by reason.
    pub dropped_pkts: DropCounts,
    /// Bytes dropped.
    pub dropped_bytes: u64,
    /// How long the transmitter was sending, the packet in transmission included as a whole.
    pub busy_ns: u64,
    /// The most packets that ever waited.
    pub longest_queue_pkts: u32,
}

/// The bottleneck link. Times must not go back: an earlier time counts as the latest one seen.
///
/// It works on time stamps alone, so it may be asked late: a packet asked for late has the same
/// [`Departed::due_ns`] as one asked for in time, and the next packet is not late because of it.
pub struct Link<P> {
    delay_ns: u64,
    queue: Box<dyn Queue<P> + Send>,
    transmitter: Transmitter,
    /// Sent or in transmission, in order of `due_ns`. As long as a packet waits in the queue there
    /// is one in transmission here.
    line: VecDeque<Departed<P>>,
    dropped: Vec<Dropped<P>>,
    /// Of `dropped`, how many are counted already.
    counted_drops: usize,
    counters: Counters,
    now_ns: u64,
}

impl<P: Packet> Link<P> {
    /// An empty, idle link.
    ///
    /// # Errors
    /// A queue that cannot be, see [`QueueSpec::check`].
    pub fn new(config: &LinkConfig) -> Result<Link<P>, QueueSpecError> {
        config.queue.check()?;
        Ok(Link {
            delay_ns: config.delay.as_ns(),
            queue: config.queue.build(),
            transmitter: Transmitter::new(config.rate),
            line: VecDeque::new(),
            dropped: Vec::new(),
            counted_drops: 0,
            counters: Counters::default(),
            now_ns: 0,
        })
    }

    /// A packet comes. Packets that this costs, itself or another, are in [`Link::take_dropped`].
    ///
    /// A transmission that ends in this same nanosecond frees its place first.
    pub fn arrive(&mut self, now_ns: u64, packet: P) -> Fate {
        let now_ns = self.advance(now_ns);
        self.counters.in_pkts += 1;
        self.counters.in_bytes += u64::from(packet.wire_bytes());
        let queue_len_pkts = self.queue.len_pkts();
        if queue_len_pkts == 0 {
            self.transmitter.idle_until(now_ns);
        }
        let arriving = Waiting {
            packet,
            arrived_ns: now_ns,
            queue_len_pkts,
        };
        let refused = self.queue.enqueue(now_ns, arriving, &mut self.dropped);
        self.start_transmissions(now_ns);
        self.counters.longest_queue_pkts =
            self.counters.longest_queue_pkts.max(self.queue.len_pkts());
        match refused {
            Some(reason) => Fate::Dropped(reason),
            None => Fate::Queued { queue_len_pkts },
        }
    }

    /// When the next packet is due at the far end; `None` when the link is empty.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        self.line.front().map(|first| first.due_ns)
    }

    /// The next packet that is due at the far end by `now_ns`.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<Departed<P>> {
        let now_ns = self.advance(now_ns);
        if self.line.front()?.due_ns > now_ns {
            return None;
        }
        let departed = self.line.pop_front()?;
        self.counters.out_pkts += 1;
        self.counters.out_bytes += u64::from(departed.packet.wire_bytes());
        Some(departed)
    }

    /// The packets dropped since this was last called, in the order in which they were dropped.
    /// A caller that never asks keeps them all in memory.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = Dropped<P>> + '_ {
        self.counted_drops = 0;
        self.dropped.drain(..)
    }

    /// Takes out everything that is still in the link, in transmission or on the way first, then
    /// what waits. For the end of a run; none of it counts as having reached the far end.
    pub fn drain(&mut self) -> Vec<Waiting<P>> {
        let on_the_way = self.line.drain(..).map(|departed| Waiting {
            packet: departed.packet,
            arrived_ns: departed.arrived_ns,
            queue_len_pkts: departed.queue_len_pkts,
        });
        let mut left: Vec<Waiting<P>> = on_the_way.collect();
        left.extend(std::iter::from_fn(|| {
            self.queue.dequeue(self.now_ns, &mut self.dropped)
        }));
        self.count_drops();
        left
    }

    /// Packets that wait, the one in transmission not among them.
    #[must_use]
    pub fn queue_len_pkts(&self) -> u32 {
        self.queue.len_pkts()
    }

    /// What the link has seen so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            busy_ns: self.transmitter.busy_ns(),
            ..self.counters
        }
    }

    /// Moves time on to `now_ns`, and returns it.
    fn advance(&mut self, now_ns: u64) -> u64 {
        self.now_ns = self.now_ns.max(now_ns);
        self.start_transmissions(self.now_ns);
        self.now_ns
    }

    /// Starts every transmission that begins by `now_ns`.
    fn start_transmissions(&mut self, now_ns: u64) {
        while self.queue.len_pkts() > 0 && self.transmitter.free_ns() <= now_ns {
            let started_ns = self.transmitter.free_ns();
            let Some(next) = self.queue.dequeue(started_ns, &mut self.dropped) else {
                break;
            };
            let sent_ns = self.transmitter.send(next.packet.wire_bytes());
            self.line.push_back(Departed {
                packet: next.packet,
                arrived_ns: next.arrived_ns,
                queue_len_pkts: next.queue_len_pkts,
                started_ns,
                due_ns: sent_ns.saturating_add(self.delay_ns),
            });
        }
        self.count_drops();
    }

    fn count_drops(&mut self) {
        for dropped in &self.dropped[self.counted_drops..] {
            self.counters.dropped_pkts.0[dropped.reason as usize] += 1;
            self.counters.dropped_bytes += u64::from(dropped.waiting.packet.wire_bytes());
        }
        self.counted_drops = self.dropped.len();
    }
}
