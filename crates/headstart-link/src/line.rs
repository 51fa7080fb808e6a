//! The packets that have begun their transmission and are not yet at the far end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::link::Departed;

/// Sorted by due time; of two that are due together, the one that was sent first comes first.
#[derive(Debug)]
pub(crate) enum Line<P> {
    /// The wire keeps the order: constant time a packet.
    Ordered(VecDeque<Departed<P>>),
    /// It does not: logarithmic time a packet.
    Unordered {
        heap: BinaryHeap<Reverse<Entry<P>>>,
        pushed: u64,
    },
}

#[derive(Debug)]
pub(crate) struct Entry<P> {
    number: u64,
    departed: Departed<P>,
}

impl<P> Entry<P> {
    fn key(&self) -> (u64, u64) {
        (self.departed.due_ns, self.number)
    }
}

impl<P> PartialEq for Entry<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Entry<P> {}

impl<P> PartialOrd for Entry<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Entry<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<P> Line<P> {
    pub(crate) fn new(keeps_order: bool) -> Line<P> {
        match keeps_order {
            true => Line::Ordered(VecDeque::new()),
            false => Line::Unordered {
                heap: BinaryHeap::new(),
                pushed: 0,
            },
        }
    }

    pub(crate) fn push(&mut self, departed: Departed<P>) {
        match self {
            Line::Ordered(line) => line.push_back(departed),
            Line::Unordered { heap, pushed } => {
                heap.push(Reverse(Entry {
                    number: *pushed,
                    departed,
                }));
                *pushed += 1;
            }
        }
    }

    /// When the first one is due.
    pub(crate) fn first_due_ns(&self) -> Option<u64> {
        match self {
            Line::Ordered(line) => Some(line.front()?.due_ns),
            Line::Unordered { heap, .. } => Some(heap.peek()?.0.departed.due_ns),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Departed<P>> {
        match self {
            Line::Ordered(line) => line.pop_front(),
            Line::Unordered { heap, .. } => Some(heap.pop()?.0.departed),
        }
    }
}
