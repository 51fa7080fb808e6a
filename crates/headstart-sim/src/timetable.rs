//! What happens next: one entry for each thing that has something to do, not one a packet.

/// An entry that is not in the heap.
const ABSENT: u32 = u32::MAX;

/// A heap of four children a node over numbered owners, each with at most one time. Of two times
/// that are equal, the owner with the lower number comes first, so that a run has one order.
#[derive(Debug, Default)]
pub(crate) struct Timetable {
    heap: Vec<Entry>,
    /// Where each owner stands in the heap.
    place: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at_ns: u64,
    owner: u32,
}

impl Timetable {
    /// Room for owners up to `owner`.
    fn reach(&mut self, owner: u32) {
        let needed = owner as usize + 1;
        if self.place.len() < needed {
            self.place.resize(needed, ABSENT);
        }
    }

    /// When the first owner is due; `u64::MAX`: never.
    pub(crate) fn first_ns(&self) -> u64 {
        self.heap.first().map_or(u64::MAX, |entry| entry.at_ns)
    }

    /// Who is due first.
    pub(crate) fn first_owner(&self) -> Option<u32> {
        self.heap.first().map(|entry| entry.owner)
    }

    /// When `owner` is due; `u64::MAX`: never.
    pub(crate) fn due_ns(&self, owner: u32) -> u64 {
        match self.place.get(owner as usize) {
            Some(&place) if place != ABSENT => self.heap[place as usize].at_ns,
            _ => u64::MAX,
        }
    }

    /// Makes `owner` due at `at_ns`; `u64::MAX`: never.
    #[inline]
    pub(crate) fn set(&mut self, owner: u32, at_ns: u64) {
        if self.due_ns(owner) != at_ns {
            self.change(owner, at_ns);
        }
    }

    fn change(&mut self, owner: u32, at_ns: u64) {
        self.reach(owner);
        let place = self.place[owner as usize];
        if place == ABSENT {
            if at_ns != u64::MAX {
                self.heap.push(Entry { at_ns, owner });
                self.up(self.heap.len() - 1);
            }
            return;
        }
        let place = place as usize;
        let before_ns = self.heap[place].at_ns;
        if at_ns == u64::MAX {
            self.remove(place);
        } else if at_ns < before_ns {
            self.heap[place].at_ns = at_ns;
            self.up(place);
        } else if at_ns > before_ns {
            self.heap[place].at_ns = at_ns;
            self.down(place);
        }
    }

    fn remove(&mut self, place: usize) {
        let gone = self.heap.swap_remove(place);
        self.place[gone.owner as usize] = ABSENT;
        if place < self.heap.len() {
            self.down(place);
            self.up(place);
        }
    }

    fn up(&mut self, mut place: usize) {
        let moving = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / 4;
            if self.heap[parent] <= moving {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, moving);
    }

    fn down(&mut self, mut place: usize) {
        let moving = self.heap[place];
        loop {
            let first = 4 * place + 1;
            let last = (first + 4).min(self.heap.len());
            let Some(children) = self.heap.get(first..last) else {
                break;
            };
            let mut least = (0, moving);
            for (number, child) in children.iter().enumerate() {
                if *child < least.1 {
                    least = (number + 1, *child);
                }
            }
            let (Some(number), child) = (usize::checked_sub(least.0, 1), least.1) else {
                break;
            };
            self.put(place, child);
            place = first + number;
        }
        self.put(place, moving);
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.place[entry.owner as usize] = u32::try_from(place).unwrap_or(ABSENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_first_is_always_the_earliest_and_of_those_the_lowest_number(
            changes in prop::collection::vec((0u32..40, prop::option::of(0u64..50)), 1..300),
        ) {
            let mut table = Timetable::default();
            let mut model: BTreeSet<(u64, u32)> = BTreeSet::new();
            for (owner, at_ns) in changes {
                model.retain(|(_, other)| *other != owner);
                if let Some(at_ns) = at_ns {
                    model.insert((at_ns, owner));
                }
                table.set(owner, at_ns.unwrap_or(u64::MAX));
                let first = model.first().copied();
                prop_assert_eq!(table.first_owner(), first.map(|(_, owner)| owner));
                prop_assert_eq!(table.first_ns(), first.map_or(u64::MAX, |(at_ns, _)| at_ns));
                prop_assert_eq!(table.due_ns(owner), at_ns.unwrap_or(u64::MAX));
            }
        }
    }
}
