//! The wire behind the transmitter: delay, and everything that goes wrong on it.
//!
//! A packet that is lost here has taken its time in transmission and its place in the queue before.
//! Every mechanism that is switched on draws once for every packet that is transmitted, whatever
//! the others have drawn: so each gives the same with the others and without.

mod delay;
mod error;
mod loss;

pub use delay::{JitterSpec, ReorderSpec};
pub use error::ImpairmentError;
pub use loss::{GilbertElliott, LossSpec};

use crate::dice::{Dice, Draws, Purpose};
use crate::{Distribution, LinkConfig, Packet, Share, Span};
use loss::Loss;

/// What becomes of a packet on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) lost: bool,
    /// When it is at the far end, if it is not lost.
    pub(crate) due_ns: u64,
    /// Whether it comes twice.
    pub(crate) duplicated: bool,
}

#[derive(Debug)]
pub(crate) struct Wire {
    delay_ns: u64,
    loss: Option<Loss>,
    jitter: Option<(JitterSpec, Dice)>,
    flow_delay: Option<(Distribution<Span>, u64)>,
    reorder: Option<(ReorderSpec, Dice)>,
    duplicate: Option<(Share, Dice)>,
    /// Until when the next packet waits for the one before it.
    in_order_ns: u64,
}

impl Wire {
    pub(crate) fn new(config: &LinkConfig) -> Wire {
        let seed = config.seed;
        Wire {
            delay_ns: config.delay.as_ns(),
            loss: config.loss.as_ref().map(|spec| Loss::new(spec, seed)),
            jitter: config
                .jitter
                .map(|spec| (spec, Dice::new(seed, Purpose::Jitter))),
            flow_delay: config
                .flow_delay
                .clone()
                .map(|delay| (delay, config.flow_seed)),
            reorder: config
                .reorder
                .map(|spec| (spec, Dice::new(seed, Purpose::Reorder))),
            duplicate: config
                .duplicate
                .map(|chance| (chance, Dice::new(seed, Purpose::Duplicate))),
            in_order_ns: 0,
        }
    }

    /// Whether packets are due in the order in which they are sent.
    pub(crate) fn keeps_order(&self) -> bool {
        let jitter_does = !matches!(self.jitter, Some((JitterSpec::Unordered(_), _)));
        jitter_does && self.reorder.is_none() && self.flow_delay.is_none()
    }

    /// Whether it delays each packet alike, and does nothing else.
    pub(crate) fn only_delays(&self) -> bool {
        let draws = self.loss.is_some() || self.jitter.is_some() || self.duplicate.is_some();
        !draws && self.reorder.is_none() && self.flow_delay.is_none()
    }

    pub(crate) fn delay_ns(&self) -> u64 {
        self.delay_ns
    }

    /// A packet whose last bit was sent at `sent_ns`; in the order of transmission.
    pub(crate) fn carry(&mut self, sent_ns: u64, packet: &impl Packet) -> Passage {
        let lost = self.loss.as_mut().is_some_and(Loss::takes_next);
        let mut due_ns = sent_ns.saturating_add(self.delay_ns);
        if let Some((spec, dice)) = &mut self.jitter {
            due_ns = due_ns.saturating_add(dice.up_to(spec.most().as_ns()));
            if let JitterSpec::Ordered(_) = spec {
                due_ns = due_ns.max(self.in_order_ns);
                if !lost {
                    self.in_order_ns = due_ns;
                }
            }
        }
        if let Some((delay, seed)) = &self.flow_delay {
            // The flow's hash is the number of its generator.
            let extra = delay.sample(&mut Draws::new(*seed, packet.flow_hash()));
            due_ns = due_ns.saturating_add(extra.as_ns());
        }
        if let Some((spec, dice)) = &mut self.reorder
            && dice.happens(spec.chance)
        {
            due_ns = due_ns.saturating_add(Span::as_ns(spec.by));
        }
        let duplicated = match &mut self.duplicate {
            Some((chance, dice)) => dice.happens(*chance),
            None => false,
        };
        Passage {
            lost,
            due_ns,
            duplicated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueSpec;
    use crate::testing::Numbered;

    fn packet_of(flow: u64) -> Numbered {
        Numbered {
            flow,
            ..Numbered::high(0)
        }
    }

    fn config(seed: u64) -> LinkConfig {
        let rate = "12mbit".parse().unwrap();
        LinkConfig {
            seed,
            ..LinkConfig::new(rate, Span::from_ns(1000), QueueSpec::drop_tail(10))
        }
    }

    /// One packet a microsecond.
    fn carried(config: &LinkConfig) -> Vec<Passage> {
        let mut wire = Wire::new(config);
        (0..1000)
            .map(|sent| wire.carry(sent * 1000, &packet_of(sent % 4)))
            .collect()
    }

    fn dues(config: &LinkConfig) -> Vec<u64> {
        carried(config)
            .iter()
            .map(|passage| passage.due_ns)
            .collect()
    }

    #[test]
    fn a_wire_without_impairments_only_delays() {
        let mut wire = Wire::new(&config(7));
        assert!(wire.keeps_order());
        let due_ns = 6000;
        let unharmed = Passage {
            lost: false,
            due_ns,
            duplicated: false,
        };
        assert_eq!(wire.carry(5000, &packet_of(0)), unharmed);
    }

    #[test]
    fn ordered_jitter_delays_by_at_most_as_much_and_keeps_the_order() {
        let jitter = Some("20us".parse().unwrap());
        let dues = dues(&LinkConfig {
            jitter,
            ..config(7)
        });
        assert!(dues.is_sorted());
        for (sent, due_ns) in dues.into_iter().enumerate() {
            let least_ns = sent as u64 * 1000 + 1000;
            assert!((least_ns..=least_ns + 20_000).contains(&due_ns));
        }
    }

    #[test]
    fn unordered_jitter_lets_packets_overtake_each_other() {
        let jitter = Some("20us,unordered".parse().unwrap());
        let config = LinkConfig {
            jitter,
            ..config(7)
        };
        assert!(!Wire::new(&config).keeps_order());
        assert!(!dues(&config).is_sorted());
    }

    #[test]
    fn a_reordered_packet_comes_later_and_holds_up_no_other() {
        let reorder = Some("10%,by=5us".parse().unwrap());
        let config = LinkConfig {
            reorder,
            ..config(7)
        };
        assert!(!Wire::new(&config).keeps_order());
        let late_ns: Vec<u64> = (0u64..)
            .zip(dues(&config))
            .map(|(n, due)| due - n * 1000 - 1000)
            .collect();
        assert!(late_ns.iter().all(|&ns| ns == 0 || ns == 5000));
        let reordered = late_ns.iter().filter(|&&ns| ns > 0).count();
        assert!((60..140).contains(&reordered), "{reordered}");
    }

    #[test]
    fn a_flow_has_one_delay_for_ever_and_keeps_its_order() {
        let flow_delay: Option<Distribution<Span>> = Some("uniform:0s,1ms".parse().unwrap());
        let with = |seed, flow_seed| LinkConfig {
            flow_delay: flow_delay.clone(),
            flow_seed,
            ..config(seed)
        };
        assert!(!Wire::new(&with(7, 1)).keeps_order());
        let delays = |config: &LinkConfig| -> Vec<u64> {
            (0u64..)
                .zip(dues(config))
                .map(|(sent, due_ns)| due_ns - sent * 1000)
                .collect()
        };
        let one_way = delays(&with(7, 1));
        for flow in 0..4 {
            let of_flow = |at: &usize| at % 4 == flow;
            let first_ns = one_way[flow];
            assert!((1000..=1_001_000).contains(&first_ns));
            assert!((0..1000).filter(of_flow).all(|at| one_way[at] == first_ns));
        }
        assert_ne!(one_way[0], one_way[1]);
        // The other direction has another seed, and the same for what belongs to the flow.
        assert_eq!(delays(&with(!7, 1)), one_way);
        assert_ne!(delays(&with(7, 2)), one_way);
    }

    #[test]
    fn one_mechanism_draws_the_same_with_the_others_and_without() {
        let duplicate = Some("5%".parse().unwrap());
        let alone = carried(&LinkConfig {
            duplicate,
            ..config(7)
        });
        let together = carried(&LinkConfig {
            duplicate,
            loss: Some("20%".parse().unwrap()),
            jitter: Some("20us".parse().unwrap()),
            reorder: Some("10%,by=5us".parse().unwrap()),
            ..config(7)
        });
        let duplicated = |passages: &[Passage]| -> Vec<bool> {
            passages.iter().map(|passage| passage.duplicated).collect()
        };
        assert_eq!(duplicated(&alone), duplicated(&together));
        assert!(duplicated(&alone).contains(&true));
    }

    #[test]
    fn the_same_seed_gives_the_same_passages_and_another_one_others() {
        let jitter = Some("20us".parse().unwrap());
        let with = |seed| {
            carried(&LinkConfig {
                jitter,
                ..config(seed)
            })
        };
        assert_eq!(with(7), with(7));
        assert_ne!(with(7), with(8));
    }
}
