//! Everything that is drawn by lot.
//!
//! One seed a link; each mechanism draws from a generator of its own, so that to switch one on
//! changes the draws of no other. PCG64 MCG is a fixed algorithm and the arithmetic is on integers:
//! the same seed gives the same draws for ever, on every machine.

use std::convert::Infallible;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, TryRng};

use crate::Share;

/// Who draws. The numbers are part of what a seed means: never change one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Loss = 1,
    Jitter = 2,
    Reorder = 3,
    Duplicate = 4,
    Red = 5,
    FlowSalt = 6,
    RateWalk = 7,
    Bursts = 8,
    Attempts = 9,
}

/// A seeded generator for [`crate::Distribution`]: streams of one seed draw apart.
#[derive(Debug, Clone)]
pub struct Draws(Pcg64Mcg);

impl Draws {
    /// The generator number `stream` of `seed`.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Draws {
        Draws(generator(seed.wrapping_add(mixed(!stream))))
    }
}

impl TryRng for Draws {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }

    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(to)
    }
}

/// Unlike for neighbouring seeds.
fn generator(seed: u64) -> Pcg64Mcg {
    let first = mixed(seed);
    let second = mixed(first);
    Pcg64Mcg::new(u128::from(first) << 64 | u128::from(second))
}

#[derive(Debug, Clone)]
pub(crate) struct Dice(Pcg64Mcg);

impl Dice {
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Dice {
        Dice(generator(seed.wrapping_add(mixed(purpose as u64))))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// For distributions that are drawn by a library.
    pub(crate) fn generator(&mut self) -> &mut Pcg64Mcg {
        &mut self.0
    }

    /// Draws in any case, so that the draws after it do not depend on `chance`.
    pub(crate) fn happens(&mut self, chance: Share) -> bool {
        self.below(u64::from(Share::ONE.billionths())) < u64::from(chance.billionths())
    }

    /// A whole number from 0 to `most`, each as likely as any other to within 2^-64.
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        match most.checked_add(1) {
            Some(numbers) => self.below(numbers),
            None => self.bits(),
        }
    }

    /// A number of [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        // A double holds 53 bits exactly.
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, numbers: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(numbers)) >> 64) as u64
    }
}

/// The finalizer of `SplitMix64`: neighbouring seeds become unlike numbers.
pub(crate) fn mixed(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_draws_for_ever() {
        let mut dice = Dice::new(7, Purpose::Loss);
        assert_eq!(
            [dice.bits(), dice.bits(), dice.bits()],
            [
                541_930_028_377_134_390,
                8_161_503_244_279_118_734,
                9_345_719_956_971_539_449
            ]
        );
    }

    #[test]
    fn two_purposes_and_two_seeds_draw_differently() {
        let first = |seed, purpose| Dice::new(seed, purpose).bits();
        assert_ne!(first(7, Purpose::Loss), first(7, Purpose::Jitter));
        assert_ne!(first(7, Purpose::Loss), first(8, Purpose::Loss));
    }

    #[test]
    fn chances_come_true_as_often_as_they_say() {
        let mut dice = Dice::new(1, Purpose::Loss);
        let hundredth: Share = "1%".parse().unwrap();
        let came = (0..1_000_000).filter(|_| dice.happens(hundredth)).count();
        // Four standard deviations: 4 * sqrt(10^6 * 0.01 * 0.99) = 398.
        assert!((9_602..=10_398).contains(&came), "{came}");
        assert!((0..1000).all(|_| dice.happens(Share::ONE)));
        assert!(!(0..1000).any(|_| dice.happens(Share::ZERO)));
    }

    #[test]
    fn both_ends_of_a_range_are_drawn() {
        let mut dice = Dice::new(1, Purpose::Jitter);
        let mut seen = [0u32; 4];
        (0..4000).for_each(|_| seen[dice.up_to(3) as usize] += 1);
        assert!(seen.iter().all(|&count| count > 850), "{seen:?}");
        assert_eq!(dice.up_to(0), 0);
        assert!(
            (0..1000)
                .map(|_| dice.unit())
                .all(|u| (0.0..1.0).contains(&u))
        );
    }
}
