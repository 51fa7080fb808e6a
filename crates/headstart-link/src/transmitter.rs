//! The transmitter: how long a packet occupies the wire, without ever drifting from the rate.

use crate::Rate;

const NS_PER_S: u128 = 1_000_000_000;

/// Sends one packet after the other at a fixed rate. Its time is exact: whole nanoseconds and a
/// remainder, so that a long busy period is as long as its bits, not as its rounded packets.
#[derive(Debug)]
pub(crate) struct Transmitter {
    rate_bits_per_s: u64,
    /// Free again at `free_ns + free_fraction / rate_bits_per_s` nanoseconds.
    free_ns: u64,
    free_fraction: u64,
    sent_bits: u64,
}

impl Transmitter {
    pub(crate) fn new(rate: Rate) -> Self {
        let rate_bits_per_s = rate.bits_per_s();
        Transmitter {
            rate_bits_per_s,
            free_ns: 0,
            free_fraction: 0,
            sent_bits: 0,
        }
    }

    /// The first whole nanosecond at which it is free: its last packet has left by then.
    pub(crate) fn free_ns(&self) -> u64 {
        self.free_ns
            .saturating_add(u64::from(self.free_fraction > 0))
    }

    /// It had nothing to do until `now_ns`.
    pub(crate) fn idle_until(&mut self, now_ns: u64) {
        if self.free_ns() < now_ns {
            self.free_ns = now_ns;
            self.free_fraction = 0;
        }
    }

    /// Sends a packet as soon as it is free. Returns when the last bit has left, in whole
    /// nanoseconds, rounded up.
    pub(crate) fn send(&mut self, wire_bytes: u32) -> u64 {
        let bits = u64::from(wire_bytes) * 8;
        let rate = u128::from(self.rate_bits_per_s);
        let total = u128::from(bits) * NS_PER_S + u128::from(self.free_fraction);
        let whole_ns = u64::try_from(total / rate).unwrap_or(u64::MAX);
        self.free_ns = self.free_ns.saturating_add(whole_ns);
        self.free_fraction = (total % rate) as u64;
        self.sent_bits += bits;
        self.free_ns()
    }

    /// How long it has been sending in all, the packet in transmission included as a whole.
    pub(crate) fn busy_ns(&self) -> u64 {
        let busy_ns = u128::from(self.sent_bits) * NS_PER_S / u128::from(self.rate_bits_per_s);
        u64::try_from(busy_ns).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_year_at_an_awkward_rate_is_exact() {
        // 1500 bytes at 7 bit/s last 1714.285714... s: three packets in a row must not lose 2/7 ns each.
        let mut transmitter = Transmitter::new(Rate::from_bits_per_s(7).unwrap());
        for sent in 1..=20_000u128 {
            let left_ns = transmitter.send(1500);
            assert_eq!(u128::from(left_ns), (sent * 12_000 * NS_PER_S).div_ceil(7));
        }
    }

    #[test]
    fn an_idle_transmitter_starts_when_the_packet_comes() {
        let mut transmitter = Transmitter::new(Rate::from_bits_per_s(12_000_000).unwrap());
        transmitter.idle_until(5);
        assert_eq!(transmitter.send(1500), 1_000_005);
        transmitter.idle_until(7);
        assert_eq!(transmitter.send(1500), 2_000_005, "it was not idle at 7 ns");
        assert_eq!(transmitter.busy_ns(), 2_000_000);
    }
}
