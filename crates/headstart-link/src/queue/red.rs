//! Random early detection as published: Floyd and Jacobson, "Random Early Detection Gateways for
//! Congestion Avoidance", IEEE/ACM Transactions on Networking 1(4), August 1993; with priority drop
//! on top (Fast Start, section 3.2), if it is asked for.
//!
//! Beyond the paper, each as an option: the "gentle" slope between `max` and twice `max` (Floyd,
//! 2000), and marks in place of early drops for packets that understand them (RFC 3168).

use super::fifo::Fifo;
use super::{DropReason, Dropped, Queue, Waiting, refuse};
use crate::dice::{Dice, Purpose};
use crate::packet::{FULL_PACKET_BYTES, Packet};
use crate::size::Limit;
use crate::spec::{QueueContext, QueueSpecError, RedSpec};

/// The average queue length, in packets or bytes (section IV and figure 2 of the paper).
#[derive(Debug)]
struct Average {
    w_q: f64,
    /// "s", the typical time to transmit a small packet.
    small_packet_ns: f64,
    value: f64,
    /// `q_time`: since when the queue is empty, if it is.
    empty_since_ns: Option<u64>,
}

impl Average {
    /// On each arrival, with the length that it finds.
    fn update(&mut self, now_ns: u64, queue_len: f64) {
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

/// `base` to the power of `exponent`, linear between whole exponents: of multiplications alone, so
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
enum Verdict {
    Admit,
    /// Drawn by lot between the thresholds: a mark will do.
    Early,
    /// The average is past the last threshold.
    Forced,
}

/// When to drop: thresholds, the last probability, and how many packets went by since.
#[derive(Debug)]
struct Detector {
    min: f64,
    max: f64,
    max_p: f64,
    gentle: bool,
    in_bytes: bool,
    average: Average,
    /// "count": packets admitted since the last one that was not, while above `min`; -1 below it.
    count: f64,
    dice: Dice,
}

impl Detector {
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

    fn judge(&mut self, wire_bytes: u32) -> Verdict {
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

/// A RED queue.
#[derive(Debug)]
pub(crate) struct Red<P> {
    limit: Limit,
    ecn: bool,
    detector: Detector,
    fifo: Fifo<P>,
    marked_pkts: u64,
}

impl<P: Packet> Red<P> {
    /// # Errors
    /// [`QueueSpecError::Thresholds`] where the thresholds are not in order on this link.
    pub(crate) fn new(spec: &RedSpec, context: &QueueContext) -> Result<Self, QueueSpecError> {
        let (min, max, in_bytes) = spec.thresholds(context)?;
        let small_packet_bits = f64::from(spec.mean_packet_bytes) * 8.0;
        let average = Average {
            w_q: spec.w_q.as_f64(),
            small_packet_ns: small_packet_bits * 1e9 / context.rate.bits_per_s() as f64,
            value: 0.0,
            empty_since_ns: Some(0),
        };
        Ok(Red {
            limit: spec.limit.resolve(context.rate, context.rtt),
            ecn: spec.ecn,
            detector: Detector {
                min,
                max,
                max_p: spec.max_p.as_f64(),
                gentle: spec.gentle,
                in_bytes,
                average,
                count: -1.0,
                dice: Dice::new(context.seed, Purpose::Red),
            },
            fifo: Fifo::new(spec.low_priority_dscp),
            marked_pkts: 0,
        })
    }

    /// The queue length in the unit of the thresholds.
    fn len(&self) -> f64 {
        match self.detector.in_bytes {
            true => self.fifo.len_bytes() as f64,
            false => f64::from(self.fifo.len_pkts()),
        }
    }
}

impl<P: Packet> Queue<P> for Red<P> {
    fn enqueue(
        &mut self,
        now_ns: u64,
        mut arriving: Waiting<P>,
        drops: &mut Vec<Dropped<P>>,
    ) -> Option<DropReason> {
        let wire_bytes = arriving.packet.wire_bytes();
        let queue_len = self.len();
        self.detector.average.update(now_ns, queue_len);
        let reason = match self.detector.judge(wire_bytes) {
            Verdict::Admit => None,
            // RFC 3168, section 7: above the last threshold packets are dropped, not marked.
            Verdict::Early if self.ecn && arriving.packet.ecn_capable() => {
                arriving.packet.mark_congestion();
                self.marked_pkts += 1;
                None
            }
            Verdict::Early => Some(DropReason::RedEarly),
            Verdict::Forced => Some(DropReason::RedForced),
        };
        if let Some(reason) = reason
            && !self.fifo.push_out_for(now_ns, &arriving.packet, drops)
        {
            return refuse(now_ns, arriving, reason, drops);
        }
        let limit = self.limit;
        while !limit.has_room(self.fifo.len_pkts(), self.fifo.len_bytes(), wire_bytes) {
            // The paper has no full buffer: a drop is a drop, and the count begins again.
            self.detector.count = 0.0;
            if !self.fifo.push_out_for(now_ns, &arriving.packet, drops) {
                return refuse(now_ns, arriving, DropReason::QueueFull, drops);
            }
        }
        self.fifo.push(arriving);
        self.detector.average.empty_since_ns = None;
        None
    }

    fn dequeue(&mut self, now_ns: u64, _drops: &mut Vec<Dropped<P>>) -> Option<Waiting<P>> {
        let next = self.fifo.pop()?;
        if self.fifo.len_pkts() == 0 {
            self.detector.average.empty_since_ns = Some(now_ns);
        }
        Some(next)
    }

    fn len_pkts(&self) -> u32 {
        self.fifo.len_pkts()
    }

    fn len_bytes(&self) -> u64 {
        self.fifo.len_bytes()
    }

    fn marked_pkts(&self) -> u64 {
        self.marked_pkts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueSpec;
    use crate::testing::{LOW_DSCP, Numbered, waiting};

    /// At 12 Mbit/s, where a small packet of 500 bytes takes 1/3 ms.
    fn red(text: &str) -> Red<Numbered> {
        let (QueueSpec::Red(spec), rate) = (text.parse().unwrap(), "12mbit".parse().unwrap())
        else {
            unreachable!("{text} is not RED")
        };
        let rtt = "400ms".parse().unwrap();
        Red::new(&spec, &QueueContext { rate, rtt, seed: 7 }).unwrap()
    }

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-12, "{value}, not {expected}");
    }

    /// Offers a packet, and gives the average and why it was dropped, if it was.
    fn offer(
        queue: &mut Red<Numbered>,
        now_ns: u64,
        packet: Numbered,
    ) -> (f64, Option<DropReason>) {
        let fate = queue.enqueue(now_ns, waiting(packet), &mut Vec::new());
        (queue.detector.average.value, fate)
    }

    #[test]
    fn the_average_follows_the_formula_on_a_list_of_arrivals() {
        // w_q = 1/4: each arrival takes a quarter of the way to the length that it finds.
        let mut queue = red("red:100,min=50,max=80,w_q=0.25");
        let mut expected = 0.0;
        for (number, now_ns) in [0, 0, 0, 1000, 2000].into_iter().enumerate() {
            if number > 0 {
                expected = 0.75 * expected + 0.25 * number as f64;
            }
            close(
                offer(&mut queue, now_ns, Numbered::high(number)).0,
                expected,
            );
        }
        // 0, 1/4, 0.6875, 1.265625, 1.94921875: by hand.
        close(expected, 1.949_218_75);
    }

    #[test]
    fn an_idle_queue_lets_the_average_fall_as_if_small_packets_had_been_sent() {
        let mut queue = red("red:100,min=50,max=80,w_q=0.25");
        for number in 0..5 {
            offer(&mut queue, 0, Numbered::high(number));
        }
        for _ in 0..5 {
            queue.dequeue(1_000_000, &mut Vec::new());
        }
        // 1 ms after it became empty: time for 3 packets of 500 bytes.
        let (average, _) = offer(&mut queue, 2_000_000, Numbered::high(5));
        close(average, 1.949_218_75 * 0.75 * 0.75 * 0.75);
        // Empty again at once; half a small packet's time: half of the way to the next power.
        queue.dequeue(2_000_000, &mut Vec::new());
        let before = average;
        let (average, _) = offer(&mut queue, 2_000_000 + 500_000 / 3, Numbered::high(6));
        assert!((average - before * 0.875).abs() < 1e-6, "{average}");
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
        let mut detector = red(text).detector;
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
        let mut detector = red("red:100,min=5,max=15,max_p=0.1").detector;
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
        let mut detector = red("red:100,min=5,max=15,max_p=0.1").detector;
        (detector.average.value, detector.count) = (4.999, 19.0);
        assert_eq!(detector.judge(1500), Verdict::Admit);
        close(detector.count, -1.0);
    }

    #[test]
    fn above_max_every_packet_goes_and_a_mark_does_not_save_it() {
        let mut queue = red("red:100,min=1,max=2,w_q=1,ecn");
        let capable = Numbered {
            ecn_capable: true,
            ..Numbered::high(0)
        };
        let fates: Vec<_> = (0..4).map(|_| offer(&mut queue, 0, capable).1).collect();
        // Lengths 0, 1 (p_b = 0) and 2: the third and all after it find the average at max.
        let forced = Some(DropReason::RedForced);
        assert_eq!(fates, [None, None, forced, forced]);
    }

    #[test]
    fn a_packet_that_understands_marks_is_marked_instead_of_dropped_early() {
        let mut queue = red("red:100,min=1,max=90,max_p=1,w_q=1,ecn");
        for number in 0..60 {
            let packet = Numbered {
                ecn_capable: number % 2 == 0,
                ..Numbered::high(number)
            };
            offer(&mut queue, 0, packet);
        }
        let kept: Vec<Numbered> = std::iter::from_fn(|| queue.dequeue(0, &mut Vec::new()))
            .map(|waiting| waiting.packet)
            .collect();
        let capable = kept.iter().filter(|packet| packet.ecn_capable).count();
        let marked = kept.iter().filter(|packet| packet.marked);
        assert_eq!(capable, 30, "none of them was dropped");
        assert!(kept.len() < 60, "others were");
        assert!(marked.clone().all(|packet| packet.ecn_capable));
        assert!(queue.marked_pkts() > 0);
        assert_eq!(marked.count() as u64, queue.marked_pkts());
    }

    #[test]
    fn priority_drop_lets_a_low_priority_packet_go_for_a_high_one() {
        let mut queue = red("priority-red:100,min=1,max=2,w_q=1");
        assert_eq!(LOW_DSCP, 1);
        let mut drops = Vec::new();
        let packets = [
            Numbered::low(0),
            Numbered::high(1),
            Numbered::high(2),
            Numbered::high(3),
        ];
        for packet in packets {
            queue.enqueue(0, waiting(packet), &mut drops);
        }
        let dropped: Vec<_> = drops
            .iter()
            .map(|dropped| (dropped.waiting.packet.number, dropped.reason))
            .collect();
        assert_eq!(
            dropped,
            [(0, DropReason::PushedOut), (3, DropReason::RedForced)]
        );
    }

    #[test]
    fn a_full_buffer_drops_whatever_the_average_says() {
        let mut queue = red("red:3,min=10,max=20");
        let fates: Vec<_> = (0..4)
            .map(|number| offer(&mut queue, 0, Numbered::high(number)).1)
            .collect();
        assert_eq!(fates, [None, None, None, Some(DropReason::QueueFull)]);
    }
}
