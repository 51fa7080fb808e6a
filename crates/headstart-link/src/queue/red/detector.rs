//! Whether a packet is to be dropped by RED: the average queue length, and the probability that follows from it.
//! Sections and figures are those of the paper (Floyd and Jacobson, 1993).

use crate::dice::{Dice, Purpose};
use crate::packet::FULL_PACKET_BYTES;
use crate::spec::{QueueContext, QueueSpecError, RedSpec};

/// The average queue length, in packets or bytes (section IV and figure 2).
#[derive(Debug)]
pub(super) struct Average {
    w_q: f64,
    /// "s", the typical time to transmit a small packet.
    small_packet_ns: f64,
    pub(super) value: f64,
    /// `q_time`: since when the queue is empty, if it is.
    pub(super) empty_since_ns: Option<u64>,
}

impl Average {
    /// On each arrival, with the length that it finds.
    pub(super) fn update(&mut self, now_ns: u64, queue_len: f64) {
        match self.empty_since_ns {
            // avg <- (1 - w_q) avg + w_q q
            None => self.value += self.w_q * (queue_len - self.value),
            // m <- f(time - q_time); avg <- (1 - w_q)^m avg
            Some(since_ns) => {
                let m = now_ns.saturating_sub(since_ns) as f64 / self.small_packet_ns;
                self.value *= power(1.0 - self.w_q, m);
            }
        }
    }
}

/// `base` to the power of `exponent`. DEVIATES: linear between whole exponents: of multiplications alone, so
/// that it is the same on every machine.
fn power(base: f64, exponent: f64) -> f64 {
    let mut result = 1.0 - (1.0 - base) * exponent.fract();
    let (mut whole, mut square) = (exponent as u64, base);
    while whole > 0 {
        if whole & 1 == 1 {
            result *= square;
        }
        square *= square;
        whole >>= 1;
    }
    result
}

/// What is to be done with an arriving packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Admit,
    /// Drawn by lot between the thresholds: a mark will do.
    Early,
    /// The average is past the last threshold.
    Forced,
}

/// When to drop: thresholds, the last probability, and how many packets went by since.
#[derive(Debug)]
pub(super) struct Detector {
    min: f64,
    max: f64,
    max_p: f64,
    gentle: bool,
    pub(super) in_bytes: bool,
    pub(super) average: Average,
    /// "count": packets admitted since the last one that was not, while above `min`; -1 below it.
    pub(super) count: f64,
    dice: Dice,
}

impl Detector {
    /// # Errors
    /// [`QueueSpecError::Thresholds`] where the thresholds are not in order on this link.
    pub(super) fn new(spec: &RedSpec, context: &QueueContext) -> Result<Self, QueueSpecError> {
        let (min, max, in_bytes) = spec.thresholds(context)?;
        let small_packet_bits = f64::from(spec.mean_packet_bytes) * 8.0;
        let average = Average {
            w_q: spec.w_q.as_f64(),
            small_packet_ns: small_packet_bits * 1e9 / context.rate.bits_per_s() as f64,
            value: 0.0,
            empty_since_ns: Some(0),
        };
        Ok(Detector {
            min,
            max,
            max_p: spec.max_p.as_f64(),
            gentle: spec.gentle,
            in_bytes,
            average,
            count: -1.0,
            dice: Dice::new(context.seed, Purpose::Red),
        })
    }

    /// `p_b`, for a packet of this size; `None` where every packet goes.
    fn p_b(&self, wire_bytes: u32) -> Option<f64> {
        let (avg, min, max) = (self.average.value, self.min, self.max);
        let p_b = if avg < max {
            self.max_p * (avg - min) / (max - min)
        } else if self.gentle && avg < 2.0 * max {
            self.max_p + (1.0 - self.max_p) * (avg - max) / max
        } else {
            return None;
        };
        // Section VII, in bytes: p_b <- p_b PacketSize / MaximumPacketSize
        Some(match self.in_bytes {
            true => p_b * f64::from(wire_bytes) / f64::from(FULL_PACKET_BYTES),
            false => p_b,
        })
    }

    /// p_a <- p_b / (1 - count p_b), 1 where that is past 1 or has no value.
    fn p_a(&self, p_b: f64) -> f64 {
        let rest = 1.0 - self.count * p_b;
        if rest <= p_b { 1.0 } else { p_b / rest }
    }

    pub(super) fn judge(&mut self, wire_bytes: u32) -> Verdict {
        if self.average.value < self.min {
            self.count = -1.0;
            return Verdict::Admit;
        }
        let Some(p_b) = self.p_b(wire_bytes) else {
            self.count = 0.0;
            return Verdict::Forced;
        };
        self.count += 1.0;
        if self.dice.unit() < self.p_a(p_b) {
            self.count = 0.0;
            return Verdict::Early;
        }
        Verdict::Admit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueSpec;
    use crate::testing::{close, context};

    fn detector(text: &str) -> Detector {
        let Ok(QueueSpec::Red(spec)) = text.parse() else {
            unreachable!("{text} is not RED")
        };
        Detector::new(&spec, &context()).unwrap()
    }

    #[test]
    fn powers_are_those_of_multiplication() {
        close(power(0.998, 0.0), 1.0);
        close(power(0.5, 10.0), 1.0 / 1024.0);
        close(power(0.998, 3.0), 0.998 * 0.998 * 0.998);
        close(power(0.5, 1.5), 0.375);
        assert!((power(0.998, 1e4) - 2.020_3e-9).abs() < 1e-12);
        close(power(0.998, 1e18), 0.0);
    }

    /// With this average, after so many packets admitted.
    fn p_a(text: &str, average: f64, count: f64, wire_bytes: u32) -> Option<f64> {
        let mut detector = detector(text);
        (detector.average.value, detector.count) = (average, count);
        detector.p_b(wire_bytes).map(|p_b| detector.p_a(p_b))
    }

    #[test]
    fn the_drop_probability_follows_the_formulas() {
        let red = "red:100,min=5,max=15,max_p=0.1";
        // Half way: p_b = 0.05.
        close(p_a(red, 10.0, 0.0, 1500).unwrap(), 0.05);
        close(p_a(red, 10.0, 10.0, 1500).unwrap(), 0.05 / 0.5);
        close(p_a(red, 10.0, 18.0, 1500).unwrap(), 0.05 / 0.1);
        close(p_a(red, 10.0, 19.0, 1500).unwrap(), 1.0);
        close(p_a(red, 10.0, 50.0, 1500).unwrap(), 1.0);
        close(p_a(red, 5.0, 3.0, 1500).unwrap(), 0.0);
        close(p_a(red, 10.0, 0.0, 40).unwrap(), 0.05);
        assert_eq!(p_a(red, 15.0, 0.0, 1500), None, "every packet goes");
        let gentle = "red:100,min=5,max=15,max_p=0.1,gentle";
        close(p_a(gentle, 15.0, 0.0, 1500).unwrap(), 0.1);
        close(p_a(gentle, 22.5, 0.0, 1500).unwrap(), 0.55);
        assert_eq!(p_a(gentle, 30.0, 0.0, 1500), None);
        let bytes = "red:100,min=5kB,max=15kB,max_p=0.1";
        close(p_a(bytes, 10_000.0, 0.0, 1500).unwrap(), 0.05);
        close(p_a(bytes, 10_000.0, 0.0, 150).unwrap(), 0.005);
    }

    #[test]
    fn drops_are_spread_evenly_and_never_as_far_apart_as_one_over_p_b() {
        let mut detector = detector("red:100,min=5,max=15,max_p=0.1");
        detector.average.value = 10.0;
        let (mut gaps, mut gap) = (Vec::new(), 0u32);
        for _ in 0..200_000 {
            gap += 1;
            if detector.judge(1500) == Verdict::Early {
                gaps.push(gap);
                gap = 0;
            }
        }
        // Figure 2 counts a packet before it draws for it, so the first one after a drop has count 1:
        // uniform over 1 .. 1/p_b - 1. (The first gap of all begins at count -1.)
        let gaps = &gaps[1..];
        assert!(gaps.iter().all(|gap| (1..=19).contains(gap)));
        for gap in 1..=19 {
            let seen = gaps.iter().filter(|&&found| found == gap).count() as f64;
            let share = seen / gaps.len() as f64;
            assert!(
                (share - 1.0 / 19.0).abs() < 0.007,
                "a gap of {gap}: {share}"
            );
        }
    }

    #[test]
    fn below_min_nothing_is_dropped_and_the_count_begins_again() {
        let mut detector = detector("red:100,min=5,max=15,max_p=0.1");
        (detector.average.value, detector.count) = (4.999, 19.0);
        assert_eq!(detector.judge(1500), Verdict::Admit);
        close(detector.count, -1.0);
    }
}
