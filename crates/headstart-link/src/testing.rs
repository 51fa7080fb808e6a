//! What the unit tests share, above all packets that know their number.

use crate::{Packet, QueueContext, Waiting};

/// The code point of low drop priority in the tests.
pub(crate) const LOW_DSCP: u8 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) number: usize,
    pub(crate) wire_bytes: u32,
    pub(crate) dscp: u8,
    pub(crate) flow: u64,
    pub(crate) ecn_capable: bool,
    pub(crate) marked: bool,
}

impl Numbered {
    /// A full packet of high priority.
    pub(crate) fn high(number: usize) -> Numbered {
        Numbered {
            number,
            wire_bytes: 1500,
            dscp: 0,
            flow: 0,
            ecn_capable: false,
            marked: false,
        }
    }

    /// A full packet of low priority.
    pub(crate) fn low(number: usize) -> Numbered {
        Numbered {
            dscp: LOW_DSCP,
            ..Numbered::high(number)
        }
    }
}

impl Packet for Numbered {
    fn wire_bytes(&self) -> u32 {
        self.wire_bytes
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn flow_hash(&self) -> u64 {
        self.flow
    }

    fn ecn_capable(&self) -> bool {
        self.ecn_capable
    }

    fn mark_congestion(&mut self) {
        self.marked = true;
    }
}

/// 12 Mbit/s, where a full packet takes 1 ms, and 100 ms.
pub(crate) fn context() -> QueueContext {
    QueueContext {
        rate: crate::Rate::at_least_one(12_000_000),
        rtt: crate::Span::from_ns(100_000_000),
        seed: 7,
    }
}

/// As if it had come at 0 to an empty queue.
pub(crate) fn waiting(packet: Numbered) -> Waiting<Numbered> {
    waiting_since(0, packet)
}

pub(crate) fn waiting_since(arrived_ns: u64, packet: Numbered) -> Waiting<Numbered> {
    Waiting {
        packet,
        arrived_ns,
        queue_len_pkts: 0,
    }
}

pub(crate) fn numbers(packets: impl Iterator<Item = Waiting<Numbered>>) -> Vec<usize> {
    packets.map(|waiting| waiting.packet.number).collect()
}

/// But for rounding.
pub(crate) fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-12, "{value}, not {expected}");
}
