//! Random early detection as published: Floyd and Jacobson, "Random Early Detection Gateways for
//! Congestion Avoidance", IEEE/ACM Transactions on Networking 1(4), August 1993; with priority drop
//! on top (Fast Start, section 3.2), if it is asked for.
//!
//! Beyond the paper, each as an option: the "gentle" slope between `max` and twice `max` (Floyd,
//! 2000), and marks in place of early drops for packets that understand them (RFC 3168).

mod detector;

use super::fifo::Fifo;
use super::{DropReason, Dropped, Queue, Waiting, refuse};
use crate::packet::Packet;
use crate::size::Limit;
use crate::spec::{QueueContext, QueueSpecError, RedSpec};
use detector::{Detector, Verdict};

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
        Ok(Red {
            limit: spec.limit.resolve(context.rate, context.rtt),
            ecn: spec.ecn,
            detector: Detector::new(spec, context)?,
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
    use crate::dice::{Dice, Purpose};
    use crate::testing::{LOW_DSCP, Numbered, close, context, waiting};
    use proptest::prelude::*;

    /// At 12 Mbit/s, where a small packet of 500 bytes takes 1/3 ms.
    fn red(text: &str) -> Red<Numbered> {
        let Ok(QueueSpec::Red(spec)) = text.parse() else {
            unreachable!("{text} is not RED")
        };
        Red::new(&spec, &context()).unwrap()
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

    /// Figure 2 of the paper, line by line, with `powf` for the idle time: the average before each
    /// arrival, and whether it is dropped early or by force.
    fn by_the_paper(
        arrivals: &[(u64, bool)],
        (min, max, max_p, w_q): (f64, f64, f64, f64),
    ) -> Vec<(f64, Option<DropReason>)> {
        let small_packet_ns = 500.0 * 8.0 * 1e9 / 12e6;
        let mut dice = Dice::new(7, Purpose::Red);
        let (mut avg, mut count, mut q, mut q_time) = (0.0f64, -1.0f64, 0u32, 0u64);
        let (mut now, mut seen) = (0, Vec::new());
        for &(gap_ns, leaves) in arrivals {
            now += gap_ns;
            if leaves && q > 0 {
                q -= 1;
                if q == 0 {
                    q_time = now;
                }
            }
            if q > 0 {
                avg = (1.0 - w_q) * avg + w_q * f64::from(q);
            } else {
                let m = (now - q_time) as f64 / small_packet_ns;
                // Linear between whole powers, as in the queue.
                avg *= (1.0 - w_q).powf(m.floor()) * (1.0 - w_q * m.fract());
            }
            let drop = if min <= avg && avg < max {
                count += 1.0;
                let p_b = max_p * (avg - min) / (max - min);
                let p_a = p_b / (1.0 - count * p_b);
                let certain = 1.0 - count * p_b <= p_b;
                if dice.unit() < if certain { 1.0 } else { p_a } {
                    count = 0.0;
                    Some(DropReason::RedEarly)
                } else {
                    None
                }
            } else if max <= avg {
                count = 0.0;
                Some(DropReason::RedForced)
            } else {
                count = -1.0;
                None
            };
            q += u32::from(drop.is_none());
            seen.push((avg, drop));
        }
        seen
    }

    proptest! {
        #[test]
        fn averages_and_drops_on_a_list_of_arrivals_are_those_of_the_paper(
            arrivals in prop::collection::vec((0u64..3_000_000, prop::bool::weighted(0.4)), 1..400),
        ) {
            let mut queue = red("red:100000,min=3,max=9,max_p=0.2,w_q=0.05");
            let expected = by_the_paper(&arrivals, (3.0, 9.0, 0.2, 0.05));
            let mut now_ns = 0;
            for (&(gap_ns, leaves), (average, drop)) in arrivals.iter().zip(expected) {
                now_ns += gap_ns;
                if leaves {
                    queue.dequeue(now_ns, &mut Vec::new());
                }
                let (found, fate) = offer(&mut queue, now_ns, Numbered::high(0));
                prop_assert!((found - average).abs() < 1e-9, "{found}, not {average}");
                prop_assert_eq!(fate, drop);
            }
        }
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
