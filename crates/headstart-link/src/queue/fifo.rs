//! The waiting line of the disciplines that serve packets in the order in which they came.
//!
//! A packet can leave from the front, or from anywhere if it has low drop priority. The place of
//! one that left from the middle stays empty until the line has moved past it, so that both take
//! constant time. A place is filled only when there is room, and emptied early at most once, so no
//! more than two places a waiting packet are ever kept, and their memory is used again.

use std::collections::VecDeque;

use super::{DropReason, Dropped, Waiting};
use crate::Packet;

#[derive(Debug)]
pub(super) struct Fifo<P> {
    /// The code point that marks low drop priority; `None`: every packet is as good as any other.
    low_dscp: Option<u8>,
    places: VecDeque<Option<Waiting<P>>>,
    /// How many places have gone from the front: the number of the first one that is left.
    first_number: u64,
    /// The numbers of the places that hold a packet of low priority, oldest first.
    low: VecDeque<u64>,
    len_pkts: u32,
    len_bytes: u64,
}

impl<P: Packet> Fifo<P> {
    pub(super) fn new(low_dscp: Option<u8>) -> Self {
        Fifo {
            low_dscp,
            places: VecDeque::new(),
            first_number: 0,
            low: VecDeque::new(),
            len_pkts: 0,
            len_bytes: 0,
        }
    }

    /// Whether it may be dropped in favour of others.
    fn is_low(&self, packet: &P) -> bool {
        self.low_dscp.is_some_and(|low| packet.dscp() == low)
    }

    pub(super) fn push(&mut self, arriving: Waiting<P>) {
        self.len_pkts += 1;
        self.len_bytes += u64::from(arriving.packet.wire_bytes());
        if self.is_low(&arriving.packet) {
            self.low
                .push_back(self.first_number + self.places.len() as u64);
        }
        self.places.push_back(Some(arriving));
    }

    /// The packet that came first of those that wait.
    pub(super) fn pop(&mut self) -> Option<Waiting<P>> {
        loop {
            let place = self.places.pop_front()?;
            let number = self.first_number;
            self.first_number += 1;
            if let Some(waiting) = place {
                if self.low.front() == Some(&number) {
                    self.low.pop_front();
                }
                return Some(self.taken(waiting));
            }
        }
    }

    /// The packet of low priority that came last of those that wait.
    ///
    /// The last one, not the first or any: the tail of a burst is lost, as a drop-tail queue would
    /// have lost it, and what is delivered of a failed fast start has no holes.
    fn take_newest_low(&mut self) -> Option<Waiting<P>> {
        let number = self.low.pop_back()?;
        let index = usize::try_from(number - self.first_number).ok()?;
        let waiting = self.places.get_mut(index)?.take()?;
        Some(self.taken(waiting))
    }

    /// A packet must go and `arriving` is of high priority: drops one of low priority in its place,
    /// if there is one. Tells whether it did.
    pub(super) fn push_out_for(
        &mut self,
        now_ns: u64,
        arriving: &P,
        drops: &mut Vec<Dropped<P>>,
    ) -> bool {
        if self.is_low(arriving) {
            return false;
        }
        let Some(waiting) = self.take_newest_low() else {
            return false;
        };
        drops.push(Dropped {
            waiting,
            dropped_ns: now_ns,
            reason: DropReason::PushedOut,
        });
        true
    }

    fn taken(&mut self, waiting: Waiting<P>) -> Waiting<P> {
        self.len_pkts -= 1;
        self.len_bytes -= u64::from(waiting.packet.wire_bytes());
        waiting
    }

    pub(super) fn len_pkts(&self) -> u32 {
        self.len_pkts
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LOW_DSCP, Numbered, numbers, waiting};
    use proptest::prelude::*;

    fn fifo_of(packets: &[Numbered]) -> Fifo<Numbered> {
        let mut fifo = Fifo::new(Some(LOW_DSCP));
        packets
            .iter()
            .for_each(|&packet| fifo.push(waiting(packet)));
        fifo
    }

    #[test]
    fn the_newest_packet_of_low_priority_leaves_and_the_order_stays() {
        let (high, low) = (Numbered::high, Numbered::low);
        let mut fifo = fifo_of(&[low(0), high(1), low(2), high(3)]);
        assert_eq!(fifo.take_newest_low().unwrap().packet, low(2));
        fifo.push(waiting(high(4)));
        assert_eq!((fifo.len_pkts(), fifo.len_bytes()), (4, 6000));
        assert_eq!(
            numbers(std::iter::from_fn(|| fifo.pop())),
            [0, 1, 3, 4],
            "0 had low priority, but nothing more had to go"
        );
        assert_eq!((fifo.len_pkts(), fifo.len_bytes()), (0, 0));
        assert_eq!(fifo.take_newest_low(), None);
    }

    #[test]
    fn without_a_code_point_no_packet_has_low_priority() {
        let mut fifo = Fifo::new(None);
        fifo.push(waiting(Numbered::low(0)));
        assert!(!fifo.is_low(&Numbered::low(0)));
        assert_eq!(fifo.take_newest_low(), None);
    }

    #[test]
    fn places_left_empty_do_not_pile_up() {
        let limit = 50;
        let mut fifo = Fifo::new(Some(LOW_DSCP));
        let mut most_places = 0;
        for number in 0..100_000usize {
            // A low one takes each place that becomes free; a high one then pushes it out.
            if fifo.len_pkts() >= limit {
                fifo.pop();
            }
            fifo.push(waiting(Numbered::low(number)));
            if fifo.len_pkts() >= limit && fifo.take_newest_low().is_some() {
                fifo.push(waiting(Numbered::high(number)));
            }
            most_places = most_places.max(fifo.places.len());
        }
        assert!(most_places <= 2 * limit as usize, "{most_places}");
    }

    proptest! {
        /// Against a plain list: 0 pops, 1 takes the newest low one, more pushes.
        #[test]
        fn it_holds_what_a_plain_list_holds(steps in prop::collection::vec(0u8..8, 0..400)) {
            let mut fifo = Fifo::new(Some(LOW_DSCP));
            let mut list: Vec<Numbered> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        let first = (!list.is_empty()).then_some(0);
                        let newest_low = list.iter().rposition(|packet| packet.dscp == LOW_DSCP);
                        let (got, place) = match step {
                            0 => (fifo.pop(), first),
                            _ => (fifo.take_newest_low(), newest_low),
                        };
                        prop_assert_eq!(got.map(|w| w.packet), place.map(|at| list.remove(at)));
                    }
                    _ => {
                        let packet = if step < 5 { Numbered::low(number) } else { Numbered::high(number) };
                        list.push(packet);
                        fifo.push(waiting(packet));
                    }
                }
                prop_assert_eq!(fifo.len_pkts() as usize, list.len());
            }
        }
    }
}
