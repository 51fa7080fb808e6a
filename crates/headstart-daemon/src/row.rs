//! A transfer as it stands in the files: with the names of its rule and arm, in wall-clock time, without the peer's
//! full address. Making one asks for no memory: there are tens of thousands a second.

use std::sync::Arc;

use headstart_core::why_name;
use headstart_kernel::{Prefix, Transfer};

use crate::clock::Wall;

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// When the first packet left, in us since 1970.
    pub start_us: i64,
    /// As the kernel recorded it.
    pub transfer: Transfer,
    /// The peer's prefix.
    pub prefix: Prefix,
    /// The rule's name.
    pub rule: Arc<str>,
    /// The arm's name.
    pub arm: Arc<str>,
    /// It is to be left out of a comparison of arms: another arm may still have been felt.
    pub burn_in: bool,
}

impl Row {
    /// `bits` are the lengths of the prefix for IPv4 and IPv6.
    pub fn new(
        transfer: Transfer,
        wall: &Wall,
        rule: Arc<str>,
        arm: Arc<str>,
        bits: (u8, u8),
    ) -> Row {
        let addr = transfer.remote_addr.to_canonical();
        let bits = if addr.is_ipv4() { bits.0 } else { bits.1 };
        Row {
            start_us: wall.us(transfer.start_ns),
            prefix: Prefix::of(addr, bits),
            transfer,
            rule,
            arm,
            burn_in: false,
        }
    }

    /// The last reason that a start-up gave.
    pub fn why(&self) -> Option<&'static str> {
        self.transfer.why.map(|(why, _)| why_name(why))
    }
}
