//! A queue, a transmitter and a delay line, on virtual time stamps.

use serde::Serialize;

use crate::express::Express;
use crate::line::Line;
use crate::queue::{AnyQueue, DropReason, Dropped, Queue, Waiting};
use crate::spec::QueueContext;
use crate::transmitter::Transmitter;
use crate::wire::{JitterSpec, LossSpec, ReorderSpec, Wire};
use crate::{Distribution, Packet, QueueSpec, QueueSpecError, Rate, RateSpec, Share, Span};

/// One direction of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkConfig {
    /// Bits a second on the wire.
    pub rate: RateSpec,
    /// From the last bit sent to the packet's arrival at the far end.
    pub delay: Span,
    /// What waits for the transmitter.
    pub queue: QueueSpec,
    /// The round-trip time of the empty path: what a queue that is given as a share of the
    /// bandwidth-delay product is measured by.
    pub rtt: Span,
    /// Packets lost on the wire.
    pub loss: Option<LossSpec>,
    /// Delay that is different for each packet.
    pub jitter: Option<JitterSpec>,
    /// Delay that is different for each flow and the same for all of its packets: drawn from
    /// [`Packet::flow_hash`] and `flow_seed` alone, so no table of flows is kept.
    pub flow_delay: Option<Distribution<Span>>,
    /// The seed of `flow_delay`. With the same one, a flow whose packets have the same hash in both
    /// directions draws the same in both: long there, long back.
    pub flow_seed: u64,
    /// Packets that others overtake.
    pub reorder: Option<ReorderSpec>,
    /// How likely a packet comes twice, the copy right behind it.
    pub duplicate: Option<Share>,
    /// The seed of everything that is drawn by lot: the same seed and the same arrivals give the
    /// same fates.
    pub seed: u64,
}

impl LinkConfig {
    /// A link of a fixed rate and delay that spoils nothing on the wire, in a path that is as long
    /// in the other direction.
    #[must_use]
    pub const fn new(rate: Rate, delay: Span, queue: QueueSpec) -> LinkConfig {
        LinkConfig {
            rate: RateSpec::Fixed(rate),
            delay,
            queue,
            rtt: Span::from_ns(delay.as_ns().saturating_mul(2)),
            loss: None,
            jitter: None,
            flow_delay: None,
            flow_seed: 0,
            reorder: None,
            duplicate: None,
            seed: 0,
        }
    }

    /// What the queue has to know of the link.
    #[must_use]
    pub fn queue_context(&self) -> QueueContext {
        QueueContext {
            rate: self.rate.nominal(),
            rtt: self.rtt,
            seed: self.seed,
        }
    }

    /// The same link at this rate.
    #[must_use]
    pub fn with_rate(self, rate: RateSpec) -> LinkConfig {
        LinkConfig { rate, ..self }
    }
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
    /// Whether it is the second of two, made by duplication.
    pub is_copy: bool,
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

    /// The reasons for which packets were dropped, and how many.
    pub fn by_reason(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        let all = DropReason::ALL.iter();
        all.map(|&reason| (reason, self.of(reason)))
            .filter(|(_, pkts)| *pkts > 0)
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
    /// Copies made on the wire: `in + duplicated = out + dropped + still in the link`.
    pub duplicated_pkts: u64,
    /// Bytes of these copies.
    pub duplicated_bytes: u64,
    /// Packets that the queue gave a congestion mark.
    pub marked_pkts: u64,
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
    way: Way<P>,
    dropped: Vec<Dropped<P>>,
    /// Of `dropped`, how many are counted already.
    counted_drops: usize,
    counters: Counters,
    now_ns: u64,
}

/// How packets get through.
enum Way<P> {
    /// What becomes of a packet is known when it comes.
    Express(Express<P>),
    /// Any queue, transmitter and wire.
    General(General<P>),
}

struct General<P> {
    queue: AnyQueue<P>,
    transmitter: Transmitter,
    wire: Wire,
    keeps_order: bool,
    /// Sent or in transmission, and not lost.
    line: Line<P>,
}

impl<P: Packet> Link<P> {
    /// An empty, idle link whose schedule or trace begins at time 0.
    ///
    /// # Errors
    /// A queue that cannot be, see [`QueueSpec::check_on`].
    pub fn new(config: &LinkConfig) -> Result<Link<P>, QueueSpecError> {
        Link::starting_at(config, 0)
    }

    /// An empty, idle link whose schedule or trace begins at `origin_ns`.
    ///
    /// # Errors
    /// A queue that cannot be, see [`QueueSpec::check_on`].
    pub fn starting_at(config: &LinkConfig, origin_ns: u64) -> Result<Link<P>, QueueSpecError> {
        let general = General::new(config, origin_ns)?;
        Ok(Link::through(match Express::new(config) {
            Some(express) => Way::Express(express),
            None => Way::General(general),
        }))
    }

    /// One that takes each packet from hand to hand, whatever its kind: what the short way of the usual link is
    /// held to. Its fates are the same.
    ///
    /// # Errors
    /// A queue that cannot be, see [`QueueSpec::check_on`].
    #[doc(hidden)]
    pub fn by_hand(config: &LinkConfig) -> Result<Link<P>, QueueSpecError> {
        General::new(config, 0).map(|general| Link::through(Way::General(general)))
    }

    fn through(way: Way<P>) -> Link<P> {
        Link {
            way,
            dropped: Vec::new(),
            counted_drops: 0,
            counters: Counters::default(),
            now_ns: 0,
        }
    }

    /// A packet comes. Packets that this costs, itself or another, are in [`Link::take_dropped`].
    ///
    /// A transmission that ends in this same nanosecond frees its place first.
    pub fn arrive(&mut self, now_ns: u64, packet: P) -> Fate {
        let now_ns = self.advance(now_ns);
        self.counters.in_pkts += 1;
        self.counters.in_bytes += u64::from(packet.wire_bytes());
        let arrived = match &mut self.way {
            Way::Express(express) => express.arrive(now_ns, packet, &mut self.dropped),
            Way::General(general) => {
                general.arrive(now_ns, packet, &mut self.dropped, &mut self.counters)
            }
        };
        self.count_drops();
        let len_pkts = self.queue_len_pkts();
        self.counters.longest_queue_pkts = self.counters.longest_queue_pkts.max(len_pkts);
        match arrived {
            Err(reason) => Fate::Dropped(reason),
            Ok(queue_len_pkts) => Fate::Queued { queue_len_pkts },
        }
    }

    /// When to ask for due packets next: never later than the next one is due, and earlier only
    /// where that is not known before another transmission begins. `None` when the link is empty.
    #[inline]
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        match &self.way {
            Way::Express(express) => express.first_due_ns(),
            Way::General(general) => general.next_due_ns(),
        }
    }

    /// The next packet that is due at the far end by `now_ns`.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<Departed<P>> {
        let now_ns = self.advance(now_ns);
        let departed = match &mut self.way {
            Way::Express(express) => {
                if express.first_due_ns()? > now_ns {
                    return None;
                }
                express.pop()?
            }
            Way::General(general) => {
                if general.line.first_due_ns()? > now_ns {
                    return None;
                }
                general.line.pop()?
            }
        };
        self.counters.out_pkts += 1;
        self.counters.out_bytes += u64::from(departed.packet.wire_bytes());
        Some(departed)
    }

    /// Whether packets were dropped since [`Link::take_dropped`] was last called.
    #[inline]
    #[must_use]
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// The packets dropped since this was last called, in the order in which their fates were
    /// decided: that of a packet lost on the wire is known when its transmission begins, before
    /// its `dropped_ns`. A caller that never asks keeps them all in memory.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = Dropped<P>> + '_ {
        self.counted_drops = 0;
        self.dropped.drain(..)
    }

    /// Takes out everything that is still in the link, in transmission or on the way first, then
    /// what waits. For the end of a run; none of it counts as having reached the far end.
    pub fn drain(&mut self) -> Vec<Waiting<P>> {
        let waiting = |departed: Departed<P>| Waiting {
            packet: departed.packet,
            arrived_ns: departed.arrived_ns,
            queue_len_pkts: departed.queue_len_pkts,
        };
        let left = match &mut self.way {
            Way::Express(express) => express.drain().map(waiting).collect(),
            Way::General(general) => {
                let on_the_way = std::iter::from_fn(|| general.line.pop()).map(waiting);
                let mut left: Vec<Waiting<P>> = on_the_way.collect();
                left.extend(std::iter::from_fn(|| {
                    general.queue.dequeue(self.now_ns, &mut self.dropped)
                }));
                left
            }
        };
        self.count_drops();
        left
    }

    /// Packets that wait, the one in transmission not among them.
    #[inline]
    #[must_use]
    pub fn queue_len_pkts(&self) -> u32 {
        match &self.way {
            Way::Express(express) => express.len_pkts(),
            Way::General(general) => general.queue.len_pkts(),
        }
    }

    /// What the link has seen so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let (busy_ns, marked_pkts) = match &self.way {
            Way::Express(express) => (express.busy_ns(), 0),
            Way::General(general) => (general.transmitter.busy_ns(), general.queue.marked_pkts()),
        };
        Counters {
            busy_ns,
            marked_pkts,
            ..self.counters
        }
    }

    /// Moves time on to `now_ns`, and returns it.
    #[inline]
    fn advance(&mut self, now_ns: u64) -> u64 {
        self.now_ns = self.now_ns.max(now_ns);
        match &mut self.way {
            Way::Express(express) => express.advance(self.now_ns),
            Way::General(general) => {
                general.start_transmissions(self.now_ns, &mut self.dropped, &mut self.counters);
                self.count_drops();
            }
        }
        self.now_ns
    }

    #[inline]
    fn count_drops(&mut self) {
        if self.counted_drops < self.dropped.len() {
            self.count_new_drops();
        }
    }

    #[cold]
    fn count_new_drops(&mut self) {
        for dropped in &self.dropped[self.counted_drops..] {
            self.counters.dropped_pkts.0[dropped.reason as usize] += 1;
            self.counters.dropped_bytes += u64::from(dropped.waiting.packet.wire_bytes());
        }
        self.counted_drops = self.dropped.len();
    }
}

impl<P: Packet> General<P> {
    fn new(config: &LinkConfig, origin_ns: u64) -> Result<General<P>, QueueSpecError> {
        let wire = Wire::new(config);
        let keeps_order = wire.keeps_order();
        Ok(General {
            queue: config.queue.build(&config.queue_context())?,
            transmitter: Transmitter::new(&config.rate, config.seed, origin_ns),
            wire,
            keeps_order,
            line: Line::new(keeps_order),
        })
    }

    /// Returns how many waited.
    fn arrive(
        &mut self,
        now_ns: u64,
        packet: P,
        drops: &mut Vec<Dropped<P>>,
        counters: &mut Counters,
    ) -> Result<u32, DropReason> {
        let queue_len_pkts = self.queue.len_pkts();
        let wire_bytes = packet.wire_bytes();
        let arriving = Waiting {
            packet,
            arrived_ns: now_ns,
            queue_len_pkts,
        };
        let refused = self.queue.enqueue(now_ns, arriving, drops);
        if refused.is_none() {
            let is_only_one = queue_len_pkts == 0;
            self.transmitter.waits(now_ns, wire_bytes, is_only_one);
        }
        self.start_transmissions(now_ns, drops, counters);
        refused.map_or(Ok(queue_len_pkts), Err)
    }

    fn next_due_ns(&self) -> Option<u64> {
        let first_due_ns = self.line.first_due_ns();
        if self.queue.len_pkts() == 0 || (self.keeps_order && first_due_ns.is_some()) {
            return first_due_ns;
        }
        let next_start_ns = self.transmitter.free_ns();
        Some(first_due_ns.map_or(next_start_ns, |due_ns| due_ns.min(next_start_ns)))
    }

    /// Starts every transmission that begins by `now_ns`.
    fn start_transmissions(
        &mut self,
        now_ns: u64,
        drops: &mut Vec<Dropped<P>>,
        counters: &mut Counters,
    ) {
        while self.queue.len_pkts() > 0 && self.transmitter.free_ns() <= now_ns {
            let started_ns = self.transmitter.free_ns();
            let Some(next) = self.queue.dequeue(started_ns, drops) else {
                break;
            };
            let sent_ns = self
                .transmitter
                .send(next.packet.wire_bytes(), self.queue.len_bytes());
            self.send_on(next, started_ns, sent_ns, drops, counters);
        }
    }

    /// Puts a packet on the wire, where it has been from `started_ns` to `sent_ns`.
    fn send_on(
        &mut self,
        sent: Waiting<P>,
        started_ns: u64,
        sent_ns: u64,
        drops: &mut Vec<Dropped<P>>,
        counters: &mut Counters,
    ) {
        let passage = self.wire.carry(sent_ns, &sent.packet);
        if passage.lost {
            drops.push(Dropped {
                waiting: sent,
                dropped_ns: sent_ns,
                reason: DropReason::Lost,
            });
            return;
        }
        let departed = Departed {
            packet: sent.packet,
            arrived_ns: sent.arrived_ns,
            queue_len_pkts: sent.queue_len_pkts,
            started_ns,
            due_ns: passage.due_ns,
            is_copy: false,
        };
        if !passage.duplicated {
            return self.line.push(departed);
        }
        counters.duplicated_pkts += 1;
        counters.duplicated_bytes += u64::from(departed.packet.wire_bytes());
        let copy = Departed {
            packet: departed.packet.clone(),
            is_copy: true,
            ..departed
        };
        self.line.push(departed);
        self.line.push(copy);
    }
}
