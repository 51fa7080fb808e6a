//! FQ-CoDel (RFC 8290): a queue a flow, served in turn by bytes, new flows first, each under its
//! own `CoDel`.

use std::collections::VecDeque;

use super::codel::{Backlog, Controller, Targets, Toll};
use super::{DropReason, Dropped, Queue, Waiting};
use crate::dice::{Dice, Purpose, mixed};
use crate::packet::Packet;
use crate::size::Limit;
use crate::spec::{FqCodelSpec, QueueContext};

/// Section 4.1: packets dropped at once from the head of the fattest queue, at most.
const DROP_BATCH_PKTS: u32 = 64;

/// No packet: the end of a flow's chain.
const NONE: u32 = u32::MAX;

/// All waiting packets of all flows, in chains. The places of packets that are gone are used again.
#[derive(Debug)]
struct Chains<P> {
    places: Vec<Place<P>>,
    /// The first free place.
    free: u32,
}

#[derive(Debug)]
struct Place<P> {
    waiting: Option<Waiting<P>>,
    next: u32,
}

impl<P> Chains<P> {
    fn put(&mut self, waiting: Waiting<P>) -> u32 {
        let filled = Place {
            waiting: Some(waiting),
            next: NONE,
        };
        let at = self.free;
        match self.places.get_mut(at as usize) {
            Some(place) => {
                self.free = place.next;
                *place = filled;
                at
            }
            None => {
                self.places.push(filled);
                u32::try_from(self.places.len() - 1).unwrap_or(NONE)
            }
        }
    }

    /// The packet at `at`, and the one after it in its chain.
    fn take(&mut self, at: u32) -> Option<(Waiting<P>, u32)> {
        let place = self.places.get_mut(at as usize)?;
        let waiting = place.waiting.take()?;
        let next = std::mem::replace(&mut place.next, self.free);
        self.free = at;
        Some((waiting, next))
    }
}

/// Which list a flow is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Neither,
    New,
    Old,
}

#[derive(Debug)]
struct Flow {
    first: u32,
    last: u32,
    len_pkts: u32,
    len_bytes: u64,
    /// Bytes that it may still send before it is another's turn.
    deficit: i64,
    on: On,
    controller: Controller,
}

impl Flow {
    const EMPTY: Flow = Flow {
        first: NONE,
        last: NONE,
        len_pkts: 0,
        len_bytes: 0,
        deficit: 0,
        on: On::Neither,
        controller: Controller::NEW,
    };

    fn push<P: Packet>(&mut self, chains: &mut Chains<P>, arriving: Waiting<P>) {
        self.len_pkts += 1;
        self.len_bytes += u64::from(arriving.packet.wire_bytes());
        let at = chains.put(arriving);
        match chains.places.get_mut(self.last as usize) {
            Some(last) => last.next = at,
            None => self.first = at,
        }
        self.last = at;
    }

    fn pop<P: Packet>(&mut self, chains: &mut Chains<P>) -> Option<Waiting<P>> {
        let (waiting, next) = chains.take(self.first)?;
        self.first = next;
        if next == NONE {
            self.last = NONE;
        }
        self.len_pkts -= 1;
        self.len_bytes -= u64::from(waiting.packet.wire_bytes());
        Some(waiting)
    }
}

/// One flow's queue, as its controller sees it. It also keeps the account of the whole.
struct FlowBacklog<'a, P> {
    flow: &'a mut Flow,
    chains: &'a mut Chains<P>,
    len_pkts: &'a mut u32,
    len_bytes: &'a mut u64,
}

impl<P: Packet> Backlog<P> for FlowBacklog<'_, P> {
    fn pop(&mut self) -> Option<Waiting<P>> {
        let waiting = self.flow.pop(self.chains)?;
        *self.len_pkts -= 1;
        *self.len_bytes -= u64::from(waiting.packet.wire_bytes());
        Some(waiting)
    }

    fn len_bytes(&self) -> u64 {
        self.flow.len_bytes
    }
}

#[derive(Debug)]
pub(crate) struct FqCodel<P> {
    limit: Limit,
    quantum_bytes: i64,
    targets: Targets,
    /// Section 4.1: the hash is salted, so that nobody can choose whom to share a queue with.
    salt: u64,
    flows: Vec<Flow>,
    chains: Chains<P>,
    new_flows: VecDeque<u32>,
    old_flows: VecDeque<u32>,
    len_pkts: u32,
    len_bytes: u64,
    marked_pkts: u64,
}

impl<P: Packet> FqCodel<P> {
    pub(crate) fn new(spec: &FqCodelSpec, context: &QueueContext) -> Self {
        FqCodel {
            limit: spec.limit.resolve(context.rate, context.rtt),
            quantum_bytes: i64::from(spec.quantum_bytes),
            targets: Targets {
                target_ns: spec.target.as_ns(),
                interval_ns: spec.interval.as_ns(),
                ecn: spec.ecn,
            },
            salt: Dice::new(context.seed, Purpose::FlowSalt).bits(),
            flows: (0..spec.flows).map(|_| Flow::EMPTY).collect(),
            chains: Chains {
                places: Vec::new(),
                free: NONE,
            },
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            len_pkts: 0,
            len_bytes: 0,
            marked_pkts: 0,
        }
    }

    fn flow_of(&self, packet: &P) -> usize {
        let hash = mixed(packet.flow_hash() ^ self.salt);
        // The high bits of the product: a number below the number of flows.
        ((u128::from(hash) * self.flows.len() as u128) >> 64) as usize
    }

    /// Section 4.1: drops half of the queue with the most bytes, from its head.
    fn drop_from_fattest(&mut self, now_ns: u64, drops: &mut Vec<Dropped<P>>) {
        let Some(fattest) = self.flows.iter_mut().max_by_key(|flow| flow.len_bytes) else {
            return;
        };
        let batch = (fattest.len_pkts / 2).clamp(1, DROP_BATCH_PKTS);
        for _ in 0..batch {
            if let Some(waiting) = fattest.pop(&mut self.chains) {
                self.len_pkts -= 1;
                self.len_bytes -= u64::from(waiting.packet.wire_bytes());
                drops.push(Dropped {
                    waiting,
                    dropped_ns: now_ns,
                    reason: DropReason::FattestFlow,
                });
            }
        }
    }

    /// The flow whose turn it is, of the list that it is on.
    fn next_flow(&self) -> Option<usize> {
        let next = self.new_flows.front().or(self.old_flows.front())?;
        Some(*next as usize)
    }

    /// Takes it from the front of its list, to the end of the old one or to neither.
    fn move_on(&mut self, index: usize, to: On) {
        let flow = &mut self.flows[index];
        let number = match flow.on {
            On::New => self.new_flows.pop_front(),
            On::Old => self.old_flows.pop_front(),
            On::Neither => None,
        };
        flow.on = to;
        if to == On::Old {
            self.old_flows.extend(number);
        }
    }
}

impl<P: Packet> Queue<P> for FqCodel<P> {
    fn enqueue(
        &mut self,
        now_ns: u64,
        arriving: Waiting<P>,
        drops: &mut Vec<Dropped<P>>,
    ) -> Option<DropReason> {
        let index = self.flow_of(&arriving.packet);
        self.len_pkts += 1;
        self.len_bytes += u64::from(arriving.packet.wire_bytes());
        let flow = &mut self.flows[index];
        flow.push(&mut self.chains, arriving);
        if flow.on == On::Neither {
            flow.on = On::New;
            flow.deficit = self.quantum_bytes;
            self.new_flows.push_back(index as u32);
        }
        while self.limit.is_passed_by(self.len_pkts, self.len_bytes) {
            self.drop_from_fattest(now_ns, drops);
        }
        // It was the last of its queue: it is gone if and only if all of them are.
        (self.flows[index].len_pkts == 0).then_some(DropReason::FattestFlow)
    }

    /// Section 4.2.
    fn dequeue(&mut self, now_ns: u64, drops: &mut Vec<Dropped<P>>) -> Option<Waiting<P>> {
        loop {
            let index = self.next_flow()?;
            let flow = &mut self.flows[index];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum_bytes;
                self.move_on(index, On::Old);
                continue;
            }
            let mut controller = flow.controller;
            let mut backlog = FlowBacklog {
                flow,
                chains: &mut self.chains,
                len_pkts: &mut self.len_pkts,
                len_bytes: &mut self.len_bytes,
            };
            let toll = Toll {
                drops,
                marked_pkts: &mut self.marked_pkts,
            };
            let next = controller.dequeue(now_ns, self.targets, &mut backlog, toll);
            let flow = &mut self.flows[index];
            flow.controller = controller;
            match next {
                Some(next) => {
                    flow.deficit -= i64::from(next.packet.wire_bytes());
                    return Some(next);
                }
                // An empty new queue has to wait for its turn among the old ones once, so that a
                // flow cannot stay new by sending little at a time.
                None if flow.on == On::New => self.move_on(index, On::Old),
                None => self.move_on(index, On::Neither),
            }
        }
    }

    fn len_pkts(&self) -> u32 {
        self.len_pkts
    }

    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn marked_pkts(&self) -> u64 {
        self.marked_pkts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueSpec;
    use crate::testing::{Numbered, context, numbers, waiting, waiting_since};

    fn fq_codel(text: &str) -> FqCodel<Numbered> {
        let Ok(QueueSpec::FqCodel(spec)) = text.parse() else {
            unreachable!("{text} is not FQ-CoDel")
        };
        FqCodel::new(&spec, &context())
    }

    fn of_flow(flow: u64, number: usize) -> Numbered {
        Numbered {
            flow,
            ..Numbered::high(number)
        }
    }

    fn offer(queue: &mut FqCodel<Numbered>, packets: &[(u64, usize)]) -> Vec<Option<DropReason>> {
        packets
            .iter()
            .map(|&(flow, number)| {
                queue.enqueue(0, waiting(of_flow(flow, number)), &mut Vec::new())
            })
            .collect()
    }

    fn left(queue: &mut FqCodel<Numbered>) -> Vec<usize> {
        numbers(std::iter::from_fn(|| queue.dequeue(0, &mut Vec::new())))
    }

    #[test]
    fn flows_take_turns_by_bytes_and_each_keeps_its_order() {
        let mut queue = fq_codel("fq-codel:100,quantum=1500");
        offer(
            &mut queue,
            &[(1, 10), (1, 11), (1, 12), (2, 20), (2, 21), (3, 30)],
        );
        assert_eq!(left(&mut queue), [10, 20, 30, 11, 21, 12]);
        assert_eq!((queue.len_pkts(), queue.len_bytes()), (0, 0));
    }

    #[test]
    fn a_flow_of_small_packets_sends_as_many_bytes_in_a_turn() {
        let mut queue = fq_codel("fq-codel:100,quantum=1500");
        let small = |number| Numbered {
            wire_bytes: 500,
            ..of_flow(1, number)
        };
        for number in 0..6 {
            queue.enqueue(0, waiting(small(number)), &mut Vec::new());
        }
        offer(&mut queue, &[(2, 20), (2, 21)]);
        assert_eq!(left(&mut queue), [0, 1, 2, 20, 3, 4, 5, 21]);
    }

    #[test]
    fn a_new_flow_goes_before_the_old_ones() {
        let mut queue = fq_codel("fq-codel:100,quantum=1500");
        offer(&mut queue, &[(1, 10), (1, 11), (1, 12), (2, 20), (2, 21)]);
        let first: Vec<usize> = numbers((0..3).filter_map(|_| queue.dequeue(0, &mut Vec::new())));
        assert_eq!(first, [10, 20, 11]);
        offer(&mut queue, &[(3, 30)]);
        assert_eq!(left(&mut queue), [30, 21, 12]);
    }

    #[test]
    fn a_flow_that_sends_one_packet_at_a_time_does_not_stay_new() {
        let mut queue = fq_codel("fq-codel:100,quantum=1500");
        offer(&mut queue, &[(1, 10), (1, 11), (1, 12), (1, 13)]);
        let mut served = Vec::new();
        for number in 20..24 {
            offer(&mut queue, &[(2, number)]);
            served.extend(numbers(queue.dequeue(0, &mut Vec::new()).into_iter()));
        }
        served.extend(left(&mut queue));
        let of_the_first = served.iter().take(5).filter(|&&number| number < 20).count();
        assert!(of_the_first >= 2, "{served:?}");
    }

    #[test]
    fn a_full_queue_drops_half_of_the_fattest_flow_from_its_head() {
        let mut queue = fq_codel("fq-codel:8");
        offer(
            &mut queue,
            &[
                (1, 10),
                (1, 11),
                (1, 12),
                (1, 13),
                (1, 14),
                (1, 15),
                (2, 20),
                (2, 21),
            ],
        );
        let mut drops = Vec::new();
        let fate = queue.enqueue(0, waiting(of_flow(3, 30)), &mut drops);
        assert_eq!(fate, None, "the thin flow is let in");
        let dropped: Vec<usize> = drops
            .iter()
            .map(|drop| drop.waiting.packet.number)
            .collect();
        assert_eq!(dropped, [10, 11, 12]);
        assert!(
            drops
                .iter()
                .all(|drop| drop.reason == DropReason::FattestFlow)
        );
        assert_eq!(queue.len_pkts(), 6);
    }

    #[test]
    fn a_packet_that_is_its_own_fattest_flow_is_told_so() {
        let mut queue = fq_codel("fq-codel:1500B");
        let small = Numbered {
            wire_bytes: 100,
            ..of_flow(2, 20)
        };
        assert_eq!(queue.enqueue(0, waiting(small), &mut Vec::new()), None);
        let fates = offer(&mut queue, &[(1, 10)]);
        assert_eq!(fates, [Some(DropReason::FattestFlow)]);
        assert_eq!(left(&mut queue), [20]);
        assert_eq!(queue.len_bytes(), 0);
    }

    #[test]
    fn each_flow_has_a_codel_of_its_own() {
        const MS: u64 = 1_000_000;
        let mut queue = fq_codel("fq-codel:100000");
        let mut drops = Vec::new();
        for ms in 0..1000u64 {
            // The first flow alone offers twice the rate, the second one packet in 10 ms.
            for number in 0..2 {
                queue.enqueue(
                    ms * MS,
                    waiting_since(ms * MS, of_flow(1, number)),
                    &mut drops,
                );
            }
            if ms % 10 == 0 {
                queue.enqueue(ms * MS, waiting_since(ms * MS, of_flow(2, 0)), &mut drops);
            }
            queue.dequeue(ms * MS, &mut drops);
        }
        assert!(!drops.is_empty());
        assert!(drops.iter().all(|drop| drop.waiting.packet.flow == 1));
    }

    #[test]
    fn places_are_used_again() {
        let mut queue = fq_codel("fq-codel:1000");
        for round in 0..100 {
            offer(&mut queue, &[(round, 0), (round + 1, 1), (round, 2)]);
            assert_eq!(left(&mut queue).len(), 3);
        }
        assert_eq!(queue.chains.places.len(), 3);
    }
}
