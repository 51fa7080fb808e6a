//! `CoDel` (RFC 8289): drops at the head, as long as packets have waited too long for too long.

use super::fifo::Fifo;
use super::{DropReason, Dropped, Queue, Waiting, refuse};
use crate::packet::{FULL_PACKET_BYTES, Packet};
use crate::size::Limit;
use crate::spec::{CodelSpec, QueueContext};

/// What a controller takes its packets from: a whole queue, or a flow's.
pub(super) trait Backlog<P> {
    fn pop(&mut self) -> Option<Waiting<P>>;
    fn len_bytes(&self) -> u64;
}

impl<P: Packet> Backlog<P> for Fifo<P> {
    fn pop(&mut self) -> Option<Waiting<P>> {
        Fifo::pop(self)
    }

    fn len_bytes(&self) -> u64 {
        Fifo::len_bytes(self)
    }
}

/// The parameters of a controller.
#[derive(Debug, Clone, Copy)]
pub(super) struct Targets {
    /// TARGET: the time in the queue that is acceptable.
    pub(super) target_ns: u64,
    /// INTERVAL: for how long more than that is put up with.
    pub(super) interval_ns: u64,
    /// Whether packets that understand a mark are marked in place of a drop.
    pub(super) ecn: bool,
}

/// What a controller did beside giving a packet.
pub(super) struct Toll<'a, P> {
    pub(super) drops: &'a mut Vec<Dropped<P>>,
    pub(super) marked_pkts: &'a mut u64,
}

/// The state of section 5.2 of the RFC, under its names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Controller {
    /// `first_above_time_`: when the sojourn time will have been above TARGET for an INTERVAL.
    first_above_time_ns: Option<u64>,
    drop_next_ns: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Controller {
    pub(super) const NEW: Controller = Controller {
        first_above_time_ns: None,
        drop_next_ns: 0,
        count: 0,
        last_count: 0,
        dropping: false,
    };

    /// `deque()` of section 5.5.
    pub(super) fn dequeue<P: Packet>(
        &mut self,
        now_ns: u64,
        targets: Targets,
        backlog: &mut impl Backlog<P>,
        mut toll: Toll<'_, P>,
    ) -> Option<Waiting<P>> {
        let Some((mut packet, mut ok_to_drop)) = self.take(now_ns, targets, backlog) else {
            // Nothing is not ok_to_drop.
            self.dropping = false;
            return None;
        };
        if self.dropping {
            if !ok_to_drop {
                // Sojourn time below TARGET: leave dropping state.
                self.dropping = false;
            }
            // Time for the next drop: drop, and take the next, until it is not.
            while self.dropping && now_ns >= self.drop_next_ns {
                self.count = self.count.saturating_add(1);
                let next = if toll.marks(targets, &mut packet) {
                    self.drop_next_ns = self.control_law(self.drop_next_ns, targets);
                    return Some(packet);
                } else {
                    toll.drop(now_ns, packet);
                    self.take(now_ns, targets, backlog)
                };
                let Some(next) = next else {
                    self.dropping = false;
                    return None;
                };
                (packet, ok_to_drop) = next;
                if ok_to_drop {
                    self.drop_next_ns = self.control_law(self.drop_next_ns, targets);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            let next = if toll.marks(targets, &mut packet) {
                Some(packet)
            } else {
                toll.drop(now_ns, packet);
                self.take(now_ns, targets, backlog).map(|(next, _)| next)
            };
            self.enter_dropping(now_ns, targets);
            return next;
        }
        Some(packet)
    }

    /// "If min went above TARGET close to when it last went below, assume that the drop rate that
    /// controlled the queue on the last cycle is a good starting point to control it now."
    fn enter_dropping(&mut self, now_ns: u64, targets: Targets) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let recent_ns = targets.interval_ns.saturating_mul(16);
        self.count = match delta > 1 && now_ns.saturating_sub(self.drop_next_ns) < recent_ns {
            true => delta,
            false => 1,
        };
        self.drop_next_ns = self.control_law(now_ns, targets);
        self.last_count = self.count;
    }

    /// `control_law()`: t + INTERVAL / sqrt(count).
    fn control_law(&self, from_ns: u64, targets: Targets) -> u64 {
        // A square root and a division of doubles are exact to the last bit on every machine.
        let step_ns = targets.interval_ns as f64 / f64::from(self.count.max(1)).sqrt();
        from_ns.saturating_add(step_ns as u64)
    }

    /// `dodequeue()` of section 5.4: a packet, and whether it is `ok_to_drop`.
    fn take<P: Packet>(
        &mut self,
        now_ns: u64,
        targets: Targets,
        backlog: &mut impl Backlog<P>,
    ) -> Option<(Waiting<P>, bool)> {
        let Some(packet) = backlog.pop() else {
            self.first_above_time_ns = None;
            return None;
        };
        let sojourn_ns = now_ns.saturating_sub(packet.arrived_ns);
        // maxpacket_: "should use interface MTU".
        if sojourn_ns < targets.target_ns || backlog.len_bytes() <= u64::from(FULL_PACKET_BYTES) {
            self.first_above_time_ns = None;
            return Some((packet, false));
        }
        let above_ns = now_ns.saturating_add(targets.interval_ns);
        let first_above_time_ns = *self.first_above_time_ns.get_or_insert(above_ns);
        Some((packet, now_ns >= first_above_time_ns))
    }
}

impl<P: Packet> Toll<'_, P> {
    /// Marks the packet if that is allowed and understood.
    fn marks(&mut self, targets: Targets, waiting: &mut Waiting<P>) -> bool {
        let marks = targets.ecn && waiting.packet.ecn_capable();
        if marks {
            waiting.packet.mark_congestion();
            *self.marked_pkts += 1;
        }
        marks
    }

    fn drop(&mut self, now_ns: u64, waiting: Waiting<P>) {
        self.drops.push(Dropped {
            waiting,
            dropped_ns: now_ns,
            reason: DropReason::Codel,
        });
    }
}

/// One queue under one controller.
#[derive(Debug)]
pub(crate) struct Codel<P> {
    limit: Limit,
    targets: Targets,
    fifo: Fifo<P>,
    controller: Controller,
    marked_pkts: u64,
}

impl<P: Packet> Codel<P> {
    pub(crate) fn new(spec: &CodelSpec, context: &QueueContext) -> Self {
        Codel {
            limit: spec.limit.resolve(context.rate, context.rtt),
            targets: Targets {
                target_ns: spec.target.as_ns(),
                interval_ns: spec.interval.as_ns(),
                ecn: spec.ecn,
            },
            fifo: Fifo::new(None),
            controller: Controller::NEW,
            marked_pkts: 0,
        }
    }
}

impl<P: Packet> Queue<P> for Codel<P> {
    fn enqueue(
        &mut self,
        now_ns: u64,
        arriving: Waiting<P>,
        drops: &mut Vec<Dropped<P>>,
    ) -> Option<DropReason> {
        let wire_bytes = arriving.packet.wire_bytes();
        let (len_pkts, len_bytes) = (self.fifo.len_pkts(), self.fifo.len_bytes());
        if !self.limit.has_room(len_pkts, len_bytes, wire_bytes) {
            return refuse(now_ns, arriving, DropReason::QueueFull, drops);
        }
        self.fifo.push(arriving);
        None
    }

    fn dequeue(&mut self, now_ns: u64, drops: &mut Vec<Dropped<P>>) -> Option<Waiting<P>> {
        let marked_pkts = &mut self.marked_pkts;
        let toll = Toll { drops, marked_pkts };
        self.controller
            .dequeue(now_ns, self.targets, &mut self.fifo, toll)
    }

    fn len_pkts(&self) -> u32 {
        self.fifo.len_pkts()
    }

    fn len_bytes(&self) -> u64 {
        self.fifo.len_bytes()
    }

    fn marked_pkts(&self) -> u64 {
        self.marked_pkts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueSpec;
    use crate::testing::{Numbered, waiting_since};

    const MS: u64 = 1_000_000;

    fn codel(text: &str) -> Codel<Numbered> {
        let Ok(QueueSpec::Codel(spec)) = text.parse() else {
            unreachable!("{text} is not CoDel")
        };
        let (rate, rtt) = ("12mbit".parse().unwrap(), "100ms".parse().unwrap());
        Codel::new(&spec, &QueueContext { rate, rtt, seed: 7 })
    }

    /// Offers twice what a link of one packet a ms carries, from 0 to `until_ms`, and gives the
    /// times of the drops in ms.
    fn overload(queue: &mut Codel<Numbered>, until_ms: u64, packet: Numbered) -> Vec<u64> {
        let mut drops = Vec::new();
        for ms in 0..until_ms {
            for _ in 0..2 {
                queue.enqueue(ms * MS, waiting_since(ms * MS, packet), &mut drops);
            }
            queue.dequeue(ms * MS, &mut drops);
        }
        assert!(drops.iter().all(|drop| drop.reason == DropReason::Codel));
        drops.iter().map(|drop| drop.dropped_ns / MS).collect()
    }

    #[test]
    fn the_drops_of_a_standing_queue_follow_the_control_law() {
        let mut queue = codel("codel:100000");
        let times = overload(&mut queue, 500, Numbered::high(0));
        // The packet that leaves at 9 ms came at 4 ms, the first to have waited 5 ms. So the first
        // drop is at 109 ms, and the next ones 100/sqrt(1), 100/sqrt(2), 100/sqrt(3), ... later.
        let mut expected = vec![109];
        let mut next_ns = 109.0 * 1e6;
        for count in 1..8 {
            next_ns += (100.0 * 1e6 / f64::from(count).sqrt()).floor();
            expected.push((next_ns / 1e6).ceil() as u64);
        }
        let seen = times.len();
        assert!(seen >= 6, "{times:?}");
        assert_eq!(times, expected[..seen]);
    }

    #[test]
    fn a_queue_that_is_short_in_time_is_let_alone() {
        let mut queue = codel("codel:100,target=5ms");
        let mut drops = Vec::new();
        for ms in 0..1000 {
            for _ in 0..4 {
                let arriving = waiting_since(ms * MS, Numbered::high(0));
                queue.enqueue(ms * MS, arriving, &mut drops);
            }
            for _ in 0..4 {
                queue.dequeue(ms * MS + MS / 2, &mut drops);
            }
        }
        assert_eq!(drops, []);
    }

    #[test]
    fn the_last_packet_is_never_dropped_however_long_it_waited() {
        let mut queue = codel("codel:100");
        let mut drops = Vec::new();
        for second in 1..100u64 {
            let (came_ns, now_ns) = (second * 1000 * MS, second * 1000 * MS + 900 * MS);
            queue.enqueue(
                came_ns,
                waiting_since(came_ns, Numbered::high(0)),
                &mut drops,
            );
            assert!(queue.dequeue(now_ns, &mut drops).is_some());
        }
        assert_eq!(drops, []);
    }

    #[test]
    fn a_short_dip_below_the_target_ends_the_dropping_and_a_new_cycle_starts_where_it_was() {
        let mut queue = codel("codel:100000");
        overload(&mut queue, 500, Numbered::high(0));
        assert!(queue.controller.dropping);
        let count = queue.controller.count;
        while queue.dequeue(500 * MS, &mut Vec::new()).is_some() {}
        let mut drops = Vec::new();
        for ms in 500..700 {
            for _ in 0..2 {
                let arriving = waiting_since(ms * MS, Numbered::high(0));
                queue.enqueue(ms * MS, arriving, &mut drops);
            }
            queue.dequeue(ms * MS, &mut drops);
            if queue.controller.dropping {
                break;
            }
        }
        assert!(count > 3 && queue.controller.count > 1, "{count}");
    }

    #[test]
    fn an_empty_queue_ends_the_dropping() {
        let mut queue = codel("codel:100000");
        overload(&mut queue, 500, Numbered::high(0));
        queue.controller.dropping = true;
        while queue.fifo.pop().is_some() {}
        assert!(queue.dequeue(500 * MS, &mut Vec::new()).is_none());
        assert!(!queue.controller.dropping);
    }

    #[test]
    fn packets_that_understand_marks_are_marked_and_none_is_dropped() {
        let mut queue = codel("codel:100000,ecn");
        let capable = Numbered {
            ecn_capable: true,
            ..Numbered::high(0)
        };
        assert!(overload(&mut queue, 500, capable).is_empty());
        assert!(queue.marked_pkts() >= 6);
        let mut queue = codel("codel:100000");
        assert!(
            !overload(&mut queue, 500, capable).is_empty(),
            "not asked for"
        );
    }

    #[test]
    fn a_full_queue_drops_at_the_tail() {
        let mut queue = codel("codel:2");
        let fates = [0, 1, 2].map(|number| {
            let arriving = waiting_since(0, Numbered::high(number));
            queue.enqueue(0, arriving, &mut Vec::new())
        });
        assert_eq!(fates, [None, None, Some(DropReason::QueueFull)]);
    }
}
