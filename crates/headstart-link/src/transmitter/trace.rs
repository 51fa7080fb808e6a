//! mahimahi's link: packets leave at the opportunities of a recorded trace, and at no other time.
//!
//! What mm-link does (`link_queue.cc`), done here: an opportunity delivers 1504 bytes at once. What
//! a packet leaves of them serves the next one if it waits, and is lost otherwise. A packet larger
//! than what is left goes on at the next opportunity, and is delivered with its last byte. An
//! opportunity without a packet is lost. A packet that comes at the time of an opportunity has
//! missed it. A packet counts with the 4 bytes of its TUN header, so 1500 bytes take one
//! opportunity exactly.

use crate::Trace;

const NS_PER_MS: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct TraceReader {
    trace: Trace,
    /// When the present round of the trace began.
    round_ns: u64,
    /// The next opportunity, or the present one if something is left of it.
    index: usize,
    /// What is left of it; never 0.
    left_bytes: u32,
    used_bytes: u64,
}

impl TraceReader {
    pub(super) fn new(trace: &Trace, origin_ns: u64) -> TraceReader {
        TraceReader {
            trace: trace.clone(),
            round_ns: origin_ns,
            index: 0,
            left_bytes: Trace::OPPORTUNITY_BYTES,
            used_bytes: 0,
        }
    }

    pub(super) fn free_ns(&self) -> u64 {
        let at_ns = self.trace.at_ms[self.index] * NS_PER_MS;
        self.round_ns.saturating_add(at_ns)
    }

    pub(super) fn idle_until(&mut self, now_ns: u64) {
        if self.free_ns() > now_ns {
            return;
        }
        let period_ns = self.trace.period_ns();
        let rounds = (now_ns - self.round_ns) / period_ns;
        self.round_ns += rounds * period_ns;
        let into_ns = now_ns - self.round_ns;
        // Less than a period, so there is a later opportunity: the last one.
        self.index = self
            .trace
            .at_ms
            .partition_point(|ms| ms * NS_PER_MS <= into_ns);
        self.left_bytes = Trace::OPPORTUNITY_BYTES;
    }

    pub(super) fn send(&mut self, wire_bytes: u32) -> u64 {
        let mut bytes = wire_bytes.saturating_add(Trace::TUN_HEADER_BYTES);
        self.used_bytes += u64::from(bytes);
        loop {
            let at_ns = self.free_ns();
            let sent = bytes.min(self.left_bytes);
            bytes -= sent;
            self.left_bytes -= sent;
            if self.left_bytes == 0 {
                self.next_opportunity();
            }
            if bytes == 0 {
                return at_ns;
            }
        }
    }

    pub(super) fn busy_ns(&self) -> u64 {
        let busy_ns = u128::from(self.used_bytes) * u128::from(self.trace.period_ns())
            / u128::from(self.trace.period_bytes());
        u64::try_from(busy_ns).unwrap_or(u64::MAX)
    }

    fn next_opportunity(&mut self) {
        self.left_bytes = Trace::OPPORTUNITY_BYTES;
        self.index += 1;
        if self.index == self.trace.at_ms.len() {
            self.index = 0;
            self.round_ns = self.round_ns.saturating_add(self.trace.period_ns());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(text: &str, origin_ns: u64) -> TraceReader {
        TraceReader::new(&Trace::parse("test", text).unwrap(), origin_ns)
    }

    fn sent_ms(reader: &mut TraceReader, sizes: &[u32]) -> Vec<u64> {
        sizes
            .iter()
            .map(|&size| reader.send(size) / NS_PER_MS)
            .collect()
    }

    #[test]
    fn a_full_packet_takes_one_opportunity_and_the_trace_begins_again() {
        let mut reader = reader("2\n5\n5\n9\n", 0);
        let sent = sent_ms(&mut reader, &[1500; 9]);
        assert_eq!(sent, [2, 5, 5, 9, 11, 14, 14, 18, 20]);
        assert_eq!(reader.busy_ns(), 9 * 9_000_000 / 4);
    }

    #[test]
    fn an_opportunity_at_0_and_the_last_one_of_the_round_before_are_two() {
        let mut reader = reader("0\n3\n", 0);
        assert_eq!(sent_ms(&mut reader, &[1500; 5]), [0, 3, 3, 6, 6]);
    }

    #[test]
    fn packets_share_an_opportunity_and_one_may_need_two() {
        let mut reader = reader("1\n2\n3\n4\n", 0);
        // 3 * 504 = 1504 + 8: the third needs 8 bytes of the second opportunity.
        assert_eq!(
            sent_ms(&mut reader, &[500, 500, 500, 1488, 20]),
            [1, 1, 2, 2, 3]
        );
    }

    #[test]
    fn a_packet_that_comes_at_the_time_of_an_opportunity_has_missed_it() {
        let mut reader = reader("2\n5\n9\n", 100);
        reader.idle_until(100 + 2 * NS_PER_MS - 1);
        assert_eq!(reader.free_ns(), 100 + 2 * NS_PER_MS);
        reader.idle_until(100 + 2 * NS_PER_MS);
        assert_eq!(reader.send(1500), 100 + 5 * NS_PER_MS);
        reader.idle_until(100 + 9 * NS_PER_MS);
        assert_eq!(reader.free_ns(), 100 + 11 * NS_PER_MS);
    }

    #[test]
    fn what_a_lone_packet_leaves_of_an_opportunity_is_lost() {
        let mut reader = reader("2\n5\n", 0);
        assert_eq!(reader.send(40), 2 * NS_PER_MS);
        assert_eq!(
            reader.free_ns(),
            2 * NS_PER_MS,
            "the next one might wait already"
        );
        reader.idle_until(2 * NS_PER_MS);
        assert_eq!(reader.send(1500), 5 * NS_PER_MS);
    }

    #[test]
    fn a_long_idle_time_ends_in_the_right_round() {
        let mut reader = reader("0\n2\n5\n", 7);
        reader.idle_until(7 + 5 * NS_PER_MS * 1_000_000_000);
        assert_eq!(reader.free_ns(), 7 + (5_000_000_000 + 2) * NS_PER_MS);
    }
}
