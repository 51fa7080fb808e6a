//! What the unit tests share: a sender in the middle of a transfer.

use std::sync::Arc;

use headstart_scenario::Transport;

use super::Sender;
use crate::scoreboard::Segment;

pub(super) const MS_NS: u64 = 1_000_000;
pub(super) const MSS_BYTES: u64 = 1448;

/// As Linux sends. So many packets left at 0, and nothing was heard of them; a round trip takes 100 ms, and the peer
/// takes whatever is sent.
pub(super) fn with_packets_out(out_pkts: u64) -> Sender {
    let mut sender = Sender::new(Arc::new(Transport::linux()), 0, 0, 0, None, 0);
    for number in 0..out_pkts {
        sender.board.push(Segment {
            start: number * MSS_BYTES,
            sent_ns: 0,
            len_bytes: 1448,
            flags: 0,
        });
    }
    sender.rtt.measure(100_000, 0, 0);
    (sender.nxt, sender.window_end) = (out_pkts * MSS_BYTES, 1 << 24);
    sender
}
