//! The usual link, made short: a drop-tail queue in front of a transmitter of a fixed rate, and a wire that
//! loses, copies and reorders nothing.
//!
//! What happens to a packet there is known when it comes: nothing that comes later goes before it. So it is put
//! in its place on the wire at once, and is moved no more; the queue is the part of the line whose transmission
//! has not begun. The fates are those of the general way, to the nanosecond: `tests/express.rs`.

use std::collections::VecDeque;

use crate::link::{Departed, LinkConfig};
use crate::queue::{DropReason, Dropped, Waiting};
use crate::size::Limit;
use crate::transmitter::steady::Steady;
use crate::wire::Wire;
use crate::{Packet, QueueSpec, RateSpec};

pub(crate) struct Express<P> {
    limit: Limit,
    transmitter: Steady,
    wire: Wire,
    /// The wire's delay, where it does nothing else.
    only_delay_ns: Option<u64>,
    /// In the order in which they came, which is that in which they are due.
    line: VecDeque<Departed<P>>,
    /// Of the line, how many have begun their transmission; the others wait.
    begun: usize,
    /// When the first that waits begins; `u64::MAX`: none waits.
    next_start_ns: u64,
    waiting_bytes: u64,
}

impl<P: Packet> Express<P> {
    /// `None`: the link is not of that kind. The queue of `config` has been found to be one that can be.
    pub(crate) fn new(config: &LinkConfig) -> Option<Express<P>> {
        let (RateSpec::Fixed(rate), QueueSpec::DropTail { limit }) = (&config.rate, &config.queue)
        else {
            return None;
        };
        let wire = Wire::new(config);
        if config.loss.is_some() || config.duplicate.is_some() || !wire.keeps_order() {
            return None;
        }
        let context = config.queue_context();
        Some(Express {
            limit: limit.resolve(context.rate, context.rtt),
            transmitter: Steady::fixed(*rate),
            only_delay_ns: wire.only_delays().then(|| wire.delay_ns()),
            wire,
            line: VecDeque::new(),
            begun: 0,
            next_start_ns: u64::MAX,
            waiting_bytes: 0,
        })
    }

    /// Begins every transmission that begins by `now_ns`.
    #[inline]
    pub(crate) fn advance(&mut self, now_ns: u64) {
        while self.next_start_ns <= now_ns {
            let wire_bytes = self.line[self.begun].packet.wire_bytes();
            self.waiting_bytes -= u64::from(wire_bytes);
            self.begun += 1;
            let next = self.line.get(self.begun);
            self.next_start_ns = next.map_or(u64::MAX, |next| next.started_ns);
        }
    }

    /// A packet comes at `now_ns`, to which time has been moved on. Returns how many waited.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        now_ns: u64,
        packet: P,
        drops: &mut Vec<Dropped<P>>,
    ) -> Result<u32, DropReason> {
        let wire_bytes = packet.wire_bytes();
        let queue_len_pkts = self.len_pkts();
        if !self
            .limit
            .has_room(queue_len_pkts, self.waiting_bytes, wire_bytes)
        {
            let waiting = Waiting {
                packet,
                arrived_ns: now_ns,
                queue_len_pkts,
            };
            drops.push(Dropped {
                waiting,
                dropped_ns: now_ns,
                reason: DropReason::QueueFull,
            });
            return Err(DropReason::QueueFull);
        }
        if queue_len_pkts == 0 {
            self.transmitter.idle_until(now_ns);
        }
        let started_ns = self.transmitter.free_ns();
        let sent_ns = self.transmitter.send(wire_bytes);
        let due_ns = match self.only_delay_ns {
            Some(delay_ns) => sent_ns.saturating_add(delay_ns),
            None => self.wire.carry(sent_ns, &packet).due_ns,
        };
        self.line.push_back(Departed {
            packet,
            arrived_ns: now_ns,
            queue_len_pkts,
            started_ns,
            due_ns,
            is_copy: false,
        });
        if started_ns <= now_ns {
            self.begun += 1;
        } else {
            self.waiting_bytes += u64::from(wire_bytes);
            self.next_start_ns = self.next_start_ns.min(started_ns);
        }
        Ok(queue_len_pkts)
    }

    #[inline]
    pub(crate) fn first_due_ns(&self) -> Option<u64> {
        Some(self.line.front()?.due_ns)
    }

    /// The first packet, which is due: its transmission is over.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Departed<P>> {
        let first = self.line.pop_front()?;
        self.begun -= 1;
        Some(first)
    }

    /// All that is left, for the end of a run.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Departed<P>> + '_ {
        (self.begun, self.next_start_ns, self.waiting_bytes) = (0, u64::MAX, 0);
        self.line.drain(..)
    }

    /// Packets that wait.
    #[inline]
    pub(crate) fn len_pkts(&self) -> u32 {
        (self.line.len() - self.begun) as u32
    }

    /// How long the transmitter has been sending, the packet in transmission included as a whole, and those that
    /// wait not.
    pub(crate) fn busy_ns(&self) -> u64 {
        self.transmitter.busy_ns_without_last(self.waiting_bytes)
    }
}
