//! Drop-tail, and priority drop on top of it (Fast Start, section 3.2).

use super::fifo::Fifo;
use super::{DropReason, Dropped, Queue, Waiting, refuse};
use crate::Packet;
use crate::size::Limit;

/// First in, first out, up to a limit. The packet in transmission is not in the queue and not
/// counted, as in mahimahi and ns-3: `drop-tail:1` lets one packet wait behind it.
///
/// With a code point for low priority it is the router of Fast Start, section 3.2: "When its buffer
/// fills up and it needs to drop a packet, it picks a low-priority packet, if available, first."
/// The paper leaves open which one: it is the newest, and the arriving packet is the newest of all.
#[derive(Debug)]
pub(crate) struct DropTail<P> {
    limit: Limit,
    fifo: Fifo<P>,
}

impl<P: Packet> DropTail<P> {
    pub(crate) fn new(limit: Limit, low_dscp: Option<u8>) -> Self {
        DropTail {
            limit,
            fifo: Fifo::new(low_dscp),
        }
    }

    fn has_room(&self, wire_bytes: u32) -> bool {
        self.limit
            .has_room(self.fifo.len_pkts(), self.fifo.len_bytes(), wire_bytes)
    }
}

impl<P: Packet> Queue<P> for DropTail<P> {
    fn enqueue(
        &mut self,
        now_ns: u64,
        arriving: Waiting<P>,
        drops: &mut Vec<Dropped<P>>,
    ) -> Option<DropReason> {
        let wire_bytes = arriving.packet.wire_bytes();
        // In bytes, one packet may cost several smaller ones.
        while !self.has_room(wire_bytes) {
            if !self.fifo.push_out_for(now_ns, &arriving.packet, drops) {
                return refuse(now_ns, arriving, DropReason::QueueFull, drops);
            }
        }
        self.fifo.push(arriving);
        None
    }

    fn dequeue(&mut self, _now_ns: u64, _drops: &mut Vec<Dropped<P>>) -> Option<Waiting<P>> {
        self.fifo.pop()
    }

    fn len_pkts(&self) -> u32 {
        self.fifo.len_pkts()
    }

    fn len_bytes(&self) -> u64 {
        self.fifo.len_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LOW_DSCP, Numbered, numbers, waiting};

    fn offer(queue: &mut DropTail<Numbered>, packets: &[Numbered]) -> Vec<(usize, DropReason)> {
        let mut drops = Vec::new();
        for &packet in packets {
            queue.enqueue(0, waiting(packet), &mut drops);
        }
        drops
            .iter()
            .map(|dropped| (dropped.waiting.packet.number, dropped.reason))
            .collect()
    }

    fn left(mut queue: DropTail<Numbered>) -> Vec<usize> {
        numbers(std::iter::from_fn(|| queue.dequeue(0, &mut Vec::new())))
    }

    #[test]
    fn a_high_priority_packet_pushes_out_the_newest_low_priority_one() {
        let (high, low) = (Numbered::high, Numbered::low);
        let mut queue = DropTail::new(Limit::Packets(3), Some(LOW_DSCP));
        assert_eq!(offer(&mut queue, &[low(0), low(1), high(2)]), []);
        assert_eq!(
            offer(&mut queue, &[high(3), high(4), high(5)]),
            [
                (1, DropReason::PushedOut),
                (0, DropReason::PushedOut),
                (5, DropReason::QueueFull)
            ]
        );
        assert_eq!(left(queue), [2, 3, 4]);
    }

    #[test]
    fn a_low_priority_packet_that_finds_the_queue_full_is_the_newest_and_goes() {
        let low = Numbered::low;
        let mut queue = DropTail::new(Limit::Packets(2), Some(LOW_DSCP));
        assert_eq!(
            offer(&mut queue, &[low(0), low(1), low(2)]),
            [(2, DropReason::QueueFull)]
        );
        assert_eq!(left(queue), [0, 1]);
    }

    #[test]
    fn without_priority_the_arriving_packet_goes_whatever_it_is() {
        let mut queue = DropTail::new(Limit::Packets(1), None);
        let packets = [Numbered::low(0), Numbered::high(1)];
        assert_eq!(offer(&mut queue, &packets), [(1, DropReason::QueueFull)]);
    }

    #[test]
    fn in_bytes_a_large_packet_may_cost_several_small_ones() {
        let small = |number| Numbered {
            wire_bytes: 400,
            ..Numbered::low(number)
        };
        let mut queue = DropTail::new(Limit::Bytes(2000), Some(LOW_DSCP));
        let (a, b) = (
            Numbered {
                wire_bytes: 500,
                ..Numbered::high(0)
            },
            Numbered::high(9),
        );
        assert_eq!(offer(&mut queue, &[a, small(1), small(2), small(3)]), []);
        assert_eq!(queue.len_bytes(), 1700);
        assert_eq!(
            offer(&mut queue, &[b]),
            [3, 2, 1].map(|number| (number, DropReason::PushedOut))
        );
        assert_eq!(queue.len_bytes(), 2000);
        assert_eq!(left(queue), [0, 9]);
    }
}
