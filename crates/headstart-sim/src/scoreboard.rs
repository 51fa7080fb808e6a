//! What has been sent and is not yet acknowledged, segment by segment (RFC 6675, section 2).
//!
//! A ring of segments and two bitmaps over it, so that the cost of an acknowledgement goes by what it
//! tells, not by how much is in flight: a block of SACK touches what it newly covers, and the next
//! segment to send again is found 64 at a time.

/// The receiver has it, though not all before it.
pub(crate) const SACKED: u8 = 1;
/// Thought lost.
pub(crate) const LOST: u8 = 2;
/// Sent again, and that transmission is not thought lost.
pub(crate) const RETRANS_OUT: u8 = 4;
/// Has been sent more than once.
pub(crate) const EVER_RETRANS: u8 = 8;

/// One segment that is out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    /// Its first byte.
    pub(crate) start: u64,
    /// When it last left.
    pub(crate) sent_ns: u64,
    pub(crate) len_bytes: u16,
    pub(crate) flags: u8,
}

impl Segment {
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.len_bytes)
    }

    pub(crate) fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// The segments from the first unacknowledged one to the last sent one. Each has a number, counted
/// from the start of the connection.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    ring: Vec<Segment>,
    first: u64,
    next: u64,
    sacked: Vec<u64>,
    /// Thought lost and not sent again since.
    to_resend: Vec<u64>,
    to_resend_pkts: u32,
}

/// The least ring: 14 segments are a transfer of 20 KB.
const LEAST_RING: usize = 16;
/// A larger ring is given back when nothing is out.
const KEPT_RING: usize = 256;

impl Scoreboard {
    /// The number of the first segment that is out.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// One past the number of the last segment that is out.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first == self.next
    }

    fn mask(&self) -> usize {
        self.ring.len().wrapping_sub(1)
    }

    fn slot(&self, number: u64) -> usize {
        number as usize & self.mask()
    }

    pub(crate) fn get(&self, number: u64) -> &Segment {
        &self.ring[self.slot(number)]
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> &mut Segment {
        let slot = self.slot(number);
        &mut self.ring[slot]
    }

    /// A segment leaves for the first time.
    pub(crate) fn push(&mut self, segment: Segment) {
        if (self.next - self.first) as usize == self.ring.len() {
            self.grow();
        }
        let slot = self.slot(self.next);
        self.ring[slot] = segment;
        self.next += 1;
    }

    fn grow(&mut self) {
        let room = (self.ring.len() * 2).max(LEAST_RING);
        let mut ring = vec![Segment::default(); room];
        let words = room.div_ceil(64);
        let (mut sacked, mut to_resend) = (vec![0; words], vec![0; words]);
        for number in self.first..self.next {
            let segment = *self.get(number);
            let slot = number as usize & (room - 1);
            ring[slot] = segment;
            let bit = 1 << (slot & 63);
            if segment.has(SACKED) {
                sacked[slot / 64] |= bit;
            }
            if segment.has(LOST) && !segment.has(RETRANS_OUT) {
                to_resend[slot / 64] |= bit;
            }
        }
        (self.ring, self.sacked, self.to_resend) = (ring, sacked, to_resend);
    }

    /// The first segment is acknowledged.
    #[inline]
    pub(crate) fn pop(&mut self) -> Segment {
        let slot = self.slot(self.first);
        let segment = self.ring[slot];
        if segment.flags != 0 {
            self.sacked[slot / 64] &= !(1 << (slot & 63));
            self.clear_to_resend(self.first);
        }
        self.first += 1;
        segment
    }

    /// Nothing is out and nothing may be for long: gives a large ring back.
    pub(crate) fn rest(&mut self) {
        if self.is_empty() && self.ring.len() > KEPT_RING {
            *self = Scoreboard {
                first: self.first,
                next: self.next,
                ..Scoreboard::default()
            };
        }
    }

    /// The number of the first segment that starts at `seq` or later. Segments are `mss_bytes` long
    /// or shorter, and few are shorter, so the first guess is nearly always right.
    pub(crate) fn number_at(&self, seq: u64, mss_bytes: u32) -> u64 {
        if self.is_empty() {
            return self.next;
        }
        let base = self.get(self.first).start;
        if seq <= base {
            return self.first;
        }
        let guess = self.first + (seq - base) / u64::from(mss_bytes.max(1));
        let (mut low, mut high) = (guess.min(self.next), self.next);
        let mut step = 1;
        // It is at the guess or beyond.
        while low < high && self.get(low).start < seq {
            let probe = low + step;
            if probe >= high {
                break;
            }
            if self.get(probe).start >= seq {
                high = probe;
                break;
            }
            low = probe;
            step *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).start < seq {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Calls `found` with each of the segments `from` to `to` (without the last) that is not marked
    /// as received yet, in their order, and marks it. Whole words are passed over at once.
    pub(crate) fn mark_sacked(&mut self, from: u64, to: u64, mut found: impl FnMut(&mut Segment)) {
        let mut number = from.max(self.first);
        let to = to.min(self.next);
        while number < to {
            let slot = self.slot(number);
            let here = (64 - (slot & 63))
                .min(self.ring.len() - slot)
                .min((to - number) as usize);
            let mask = (u64::MAX >> (64 - here)) << (slot & 63);
            let mut new = mask & !self.sacked[slot / 64];
            self.sacked[slot / 64] |= new;
            self.to_resend_pkts -= (self.to_resend[slot / 64] & new).count_ones();
            self.to_resend[slot / 64] &= !new;
            while new != 0 {
                let bit = new.trailing_zeros() as usize;
                new &= new - 1;
                found(&mut self.ring[(slot & !63) + bit]);
            }
            number += here as u64;
        }
    }

    /// Marks segment `number` as to be sent again.
    pub(crate) fn set_to_resend(&mut self, number: u64) {
        let slot = self.slot(number);
        let word = &mut self.to_resend[slot / 64];
        self.to_resend_pkts += u32::from(*word & 1 << (slot & 63) == 0);
        *word |= 1 << (slot & 63);
    }

    /// It has been.
    pub(crate) fn clear_to_resend(&mut self, number: u64) {
        let slot = self.slot(number);
        let word = &mut self.to_resend[slot / 64];
        self.to_resend_pkts -= u32::from(*word & 1 << (slot & 63) != 0);
        *word &= !(1 << (slot & 63));
    }

    /// How many are to be sent again.
    pub(crate) fn to_resend_pkts(&self) -> u32 {
        self.to_resend_pkts
    }

    /// The first segment from `from` on that is to be sent again.
    pub(crate) fn next_to_resend(&self, from: u64) -> Option<u64> {
        let mut number = from.max(self.first);
        while self.to_resend_pkts > 0 && number < self.next {
            let slot = self.slot(number);
            let here = (64 - (slot & 63)).min(self.ring.len() - slot);
            let word = self.to_resend[slot / 64] >> (slot & 63);
            let word = word & (u64::MAX >> (64 - here));
            if word != 0 {
                let found = number + u64::from(word.trailing_zeros());
                return (found < self.next).then_some(found);
            }
            number += here as u64;
        }
        None
    }

    /// The marks of all segments that are out are taken off, but for those in `kept`.
    pub(crate) fn clear_marks(&mut self, kept: u8) {
        for number in self.first..self.next {
            let slot = self.slot(number);
            let segment = &mut self.ring[slot];
            segment.flags &= kept;
            let segment = *segment;
            let bit = 1 << (slot & 63);
            if !segment.has(SACKED) {
                self.sacked[slot / 64] &= !bit;
            }
            if !segment.has(LOST) || segment.has(RETRANS_OUT) {
                self.clear_to_resend(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segment(start: u64, len_bytes: u16) -> Segment {
        Segment {
            start,
            sent_ns: 0,
            len_bytes,
            flags: 0,
        }
    }

    proptest! {
        /// Against a list that is searched from one end to the other.
        #[test]
        fn a_ring_with_bitmaps_finds_what_a_plain_list_finds(
            lengths in prop::collection::vec(1u16..=100, 1..400),
            acked in 0usize..300,
            runs in prop::collection::vec((0usize..400, 1usize..130), 0..30),
            resend in prop::collection::vec(0usize..400, 0..40),
            asked in prop::collection::vec((0u64..40_000, 0u64..400), 1..30),
        ) {
            let mut board = Scoreboard::default();
            let mut list = Vec::new();
            let mut start = 0;
            for (index, len_bytes) in lengths.iter().enumerate() {
                // Acknowledge on the way, so that the ring wraps.
                if index >= 20 && (board.first() as usize) < acked {
                    board.pop();
                }
                board.push(segment(start, *len_bytes));
                list.push(segment(start, *len_bytes));
                start += u64::from(*len_bytes);
            }
            let first = board.first() as usize;
            let count = list.len();
            for index in resend {
                if (first..count).contains(&index) {
                    board.set_to_resend(index as u64);
                    board.get_mut(index as u64).flags |= LOST;
                    list[index].flags |= LOST;
                }
            }
            for (from, length) in runs {
                let mut seen = Vec::new();
                board.mark_sacked(from as u64, (from + length) as u64, |segment| {
                    segment.flags |= SACKED;
                    seen.push(segment.start);
                });
                let mut expected = Vec::new();
                for row in list.iter_mut().take(from + length).skip(from.max(first)) {
                    if !row.has(SACKED) {
                        expected.push(row.start);
                        row.flags |= SACKED;
                        row.flags &= !LOST;
                    }
                }
                prop_assert_eq!(seen, expected);
            }
            for (seq, from) in asked {
                let number = (first..count).find(|index| list[*index].start >= seq);
                prop_assert_eq!(board.number_at(seq, 100), number.unwrap_or(count) as u64);
                let lost = (first.max(from as usize)..count).find(|index| list[*index].has(LOST));
                prop_assert_eq!(board.next_to_resend(from), lost.map(|index| index as u64));
            }
        }
    }

    #[test]
    fn a_large_ring_is_given_back_at_rest_and_the_numbers_go_on() {
        let mut board = Scoreboard::default();
        (0..1000).for_each(|number| board.push(segment(number * 100, 100)));
        for _ in 0..1000 {
            board.pop();
        }
        board.rest();
        assert!(board.ring.is_empty());
        board.push(segment(100_000, 100));
        assert_eq!((board.first(), board.next()), (1000, 1001));
        assert_eq!(board.number_at(100_000, 100), 1000);
    }
}
