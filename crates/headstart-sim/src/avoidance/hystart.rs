//! `HyStart` beneath CUBIC, as Linux has it: Ha and Rhee, "Taming the elephants: New TCP slow start",
//! 2011, Algorithm 1, with the constants and the changes of Linux's CUBIC.

use super::AckTrain;

/// Algorithm 1: `low_ssthresh`, packets.
const LOW_WINDOW_PKTS: u32 = 16;
/// Acknowledgements no further apart belong to one train (Linux: `hystart_ack_delta_us`).
const TRAIN_GAP_NS: u64 = 2_000_000;
/// Algorithm 1: `nMinSamples`.
const LEAST_SAMPLES: u32 = 8;
/// Algorithm 1: eta = min delay / 8, within 4 and 16 ms (the paper: 2 and 16 ms, a sixteenth).
const LEAST_DELAY_US: u32 = 4000;
const MOST_DELAY_US: u32 = 16_000;
/// Linux allows a train for the data that the sender may put out at once: four bursts of 64 KiB, and
/// no more than 1 ms.
const BURSTS_BYTES: u64 = 4 * 65_536;
const MOST_ALLOWANCE_US: u64 = 1000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Hystart {
    found: bool,
    round_start_ns: u64,
    last_ack_ns: u64,
    /// The round trip ends when more than this is acknowledged.
    round_end: u64,
    samples: u32,
    least_us: u32,
}

impl Hystart {
    pub(super) fn new(now_ns: u64) -> Hystart {
        Hystart {
            found: false,
            round_start_ns: now_ns,
            last_ack_ns: now_ns,
            round_end: 0,
            samples: 0,
            least_us: u32::MAX,
        }
    }

    pub(super) fn restart(&mut self, now_ns: u64, nxt: u64) {
        *self = Hystart {
            round_end: nxt,
            ..Hystart::new(now_ns)
        };
    }

    /// An acknowledgement in slow start. True when slow start has to end here.
    pub(super) fn found(&mut self, rtt_us: u32, min_delay_us: u32, ack: &AckTrain) -> bool {
        if self.found {
            return false;
        }
        if ack.una > self.round_end {
            self.restart(ack.now_ns, ack.nxt);
        }
        if ack.cwnd_pkts < LOW_WINDOW_PKTS {
            return false;
        }
        self.found =
            self.train_is_long(min_delay_us, ack) | self.delay_has_grown(rtt_us, min_delay_us);
        self.found
    }

    /// A train of acknowledgements as long as the forward delay: the pipe is full.
    fn train_is_long(&mut self, min_delay_us: u32, ack: &AckTrain) -> bool {
        if ack.now_ns - self.last_ack_ns > TRAIN_GAP_NS {
            return false;
        }
        self.last_ack_ns = ack.now_ns;
        let allowance_us = match ack.rate_bytes_per_s {
            0 => 0,
            rate => (BURSTS_BYTES * 1_000_000 / rate).min(MOST_ALLOWANCE_US),
        };
        let mut threshold_us = u64::from(min_delay_us) + allowance_us;
        if !ack.paced {
            threshold_us /= 2;
        }
        ack.now_ns - self.round_start_ns > threshold_us * 1000
    }

    /// The least delay of more than eight samples is above that of the empty path.
    fn delay_has_grown(&mut self, rtt_us: u32, min_delay_us: u32) -> bool {
        self.least_us = self.least_us.min(rtt_us);
        if self.samples < LEAST_SAMPLES {
            self.samples += 1;
            return false;
        }
        let margin_us = (min_delay_us / 8).clamp(LEAST_DELAY_US, MOST_DELAY_US);
        self.least_us > min_delay_us.saturating_add(margin_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(now_ms: u64, una: u64, nxt: u64) -> AckTrain {
        AckTrain {
            now_ns: now_ms * 1_000_000,
            una,
            nxt,
            cwnd_pkts: 100,
            rate_bytes_per_s: 0,
            paced: false,
        }
    }

    #[test]
    fn a_train_of_more_than_half_the_round_trip_ends_slow_start() {
        let mut hystart = Hystart::new(0);
        assert!(!hystart.found(100_000, 100_000, &ack(100, 1, 1000)));
        let late = (101..200).find(|ms| {
            let una = ms - 99;
            hystart.found(100_000, 100_000, &ack(*ms, una, 1000))
        });
        assert_eq!(late, Some(151));
        assert!(
            !hystart.found(100_000, 100_000, &ack(152, 53, 1000)),
            "only once"
        );
    }

    #[test]
    fn a_gap_of_more_than_two_milliseconds_ends_the_train() {
        let mut hystart = Hystart::new(0);
        hystart.found(100_000, 100_000, &ack(100, 1, 1000));
        assert!((1..100).all(|n| !hystart.found(100_000, 100_000, &ack(100 + 3 * n, 1 + n, 1000))));
    }

    #[test]
    fn nine_samples_with_more_delay_end_slow_start() {
        let mut hystart = Hystart::new(0);
        let found =
            (0..20).find(|n| hystart.found(112_501, 100_000, &ack(100 + 3 * n, 1 + n, 1000)));
        assert_eq!(found, Some(8));
        let mut hystart = Hystart::new(0);
        assert!((0..20).all(|n| !hystart.found(112_500, 100_000, &ack(100 + 3 * n, 1 + n, 1000))));
    }

    #[test]
    fn below_sixteen_packets_nothing_is_found() {
        let mut hystart = Hystart::new(0);
        let small = |ms, una| AckTrain {
            cwnd_pkts: 15,
            ..ack(ms, una, 1000)
        };
        assert!((0..200).all(|ms| !hystart.found(900_000, 100_000, &small(100 + ms, 1 + ms))));
    }
}
