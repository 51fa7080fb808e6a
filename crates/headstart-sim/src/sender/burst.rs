//! What leaves as one: Linux hands packets down in bursts (TSO; done in software where the device cannot), and
//! waits a little for an acknowledgement that makes the burst whole. The last packet of a burst carries PSH,
//! which the receiver answers (`receiver.rs`).

use super::{Sender, State};

/// Linux: tcp_tso_should_defer waits only where something was sent in the last millisecond.
const RECENTLY_NS: u64 = 1_000_000;
/// Linux: `tcp_tso_win_divisor`: nor where this part of the window may leave.
const WINDOW_PARTS: u64 = 3;

/// Packets that leave as one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    pub(super) left_pkts: u32,
    /// Of more than one packet the last one pushes (`__tcp_transmit_skb`).
    pushes: bool,
}

/// Whether a burst may leave.
pub(super) enum Readiness {
    Now(Burst),
    /// The next acknowledgement makes it whole. Whether it is the window that is too small.
    Later {
        limited: bool,
    },
}

impl Burst {
    /// One packet of it leaves. Returns whether it pushes.
    pub(super) fn take(&mut self) -> bool {
        self.left_pkts = self.left_pkts.saturating_sub(1);
        self.pushes && self.left_pkts == 0
    }

    /// What is left of it does not leave: the packet that just did was not a whole one.
    pub(super) fn end(&mut self) {
        self.left_pkts = 0;
    }
}

impl Sender {
    /// What leaves now (tcp_write_xmit), where the window has room for a packet.
    pub(super) fn next_burst(&self, now_ns: u64) -> Readiness {
        let most_pkts = self.chunk_pkts();
        if !self.is_linux() {
            return Readiness::Now(Burst {
                left_pkts: most_pkts,
                pushes: false,
            });
        }
        let mss_bytes = u64::from(self.transport.mss_bytes.max(1));
        let left_bytes = self.write_end - self.nxt;
        let in_flight = self.in_flight();
        // tcp_cwnd_test: two bursts at least are under way.
        let room_pkts = self.cwnd_pkts.saturating_sub(in_flight);
        let quota_pkts = room_pkts.min(self.cwnd_pkts / 2).max(1).min(most_pkts);
        let window_bytes = self.window_end.saturating_sub(self.nxt);
        let room_bytes = u64::from(room_pkts) * mss_bytes;
        let limit_bytes = room_bytes.min(window_bytes);
        let share_bytes = self
            .window_end
            .saturating_sub(self.una)
            .min(u64::from(self.cwnd_pkts) * mss_bytes)
            / WINDOW_PARTS;
        let waits = left_bytes > mss_bytes
            && limit_bytes < u64::from(most_pkts) * mss_bytes
            && limit_bytes < share_bytes
            && self.state < State::Recovery
            && now_ns <= self.last_write_ns() + RECENTLY_NS
            && self.answer_is_near(now_ns);
        if waits {
            return Readiness::Later {
                limited: room_bytes < window_bytes && room_bytes <= left_bytes,
            };
        }
        let whole_pkts = left_bytes.min(window_bytes) / mss_bytes;
        let left_pkts = quota_pkts.min(u32::try_from(whole_pkts.max(1)).unwrap_or(u32::MAX));
        Readiness::Now(Burst {
            left_pkts,
            pushes: left_pkts > 1,
        })
    }

    /// tcp_wstamp_ns: when the last packet left; where packets are spaced, when the next one may.
    fn last_write_ns(&self) -> u64 {
        match self.paced {
            true => self.next_paced_ns,
            false => self.last_sent_ns,
        }
    }

    /// The answer to the first packet that is out is due within a millisecond, or within half a round trip where
    /// that is less (Linux 6.18 and its stable releases of that time; before, any time after half a round trip).
    fn answer_is_near(&self, now_ns: u64) -> bool {
        !self.board.is_empty() && {
            let srtt_ns = u64::from(self.rtt.srtt_us()) * 1000;
            let expected_ns = self.board.get(self.board.first()).sent_ns + srtt_ns;
            expected_ns <= now_ns + RECENTLY_NS.min(srtt_ns / 2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::testing::{MS_NS, MSS_BYTES, with_packets_out};

    /// `out_pkts` are out, the first of them since 0, and more waits. The last one left at `last_ms`.
    fn sender(cwnd_pkts: u32, out_pkts: u64, last_ms: u64) -> Sender {
        let mut sender = with_packets_out(out_pkts);
        (sender.cwnd_pkts, sender.last_sent_ns) = (cwnd_pkts, last_ms * MS_NS);
        sender.write_end = sender.nxt + 100 * MSS_BYTES;
        sender
    }

    fn leaves(sender: &Sender, now_ms: u64) -> Option<(u32, bool)> {
        match sender.next_burst(now_ms * MS_NS) {
            Readiness::Now(burst) => Some((burst.left_pkts, burst.pushes)),
            Readiness::Later { limited } => {
                assert!(limited, "the window is what is too small");
                None
            }
        }
    }

    #[test]
    fn a_burst_is_a_millisecond_of_data_and_two_packets_at_least() {
        // Twice 20 packets in 100 ms: less than one in a millisecond.
        assert_eq!(leaves(&sender(20, 10, 0), 50), Some((2, true)));
        // Twice 400 in 100 ms: 11.3 MB/s, of which 1/1024 is 7 packets.
        assert_eq!(leaves(&sender(400, 200, 0), 50), Some((7, true)));
        assert_eq!(leaves(&sender(20, 19, 0), 50), Some((1, false)));
    }

    #[test]
    fn a_part_of_a_burst_waits_for_the_answer_that_comes_within_a_millisecond() {
        let sender = sender(400, 398, 99);
        assert_eq!(leaves(&sender, 99), None);
        assert_eq!(leaves(&sender, 100), None);
    }

    #[test]
    fn it_does_not_wait_where_the_answer_is_further_away() {
        assert_eq!(leaves(&sender(400, 398, 98), 98), Some((2, true)));
    }

    #[test]
    fn it_does_not_wait_where_nothing_was_sent_for_a_millisecond() {
        assert_eq!(leaves(&sender(400, 398, 98), 100), Some((2, true)));
    }

    #[test]
    fn it_does_not_wait_where_a_third_of_the_window_is_free_or_a_loss_is_repaired() {
        let mut three = sender(5, 4, 99);
        assert_eq!(leaves(&three, 99), None);
        three.state = State::Recovery;
        assert_eq!(leaves(&three, 99), Some((1, false)));
        assert_eq!(leaves(&sender(3, 2, 99), 99), Some((1, false)));
    }
}
