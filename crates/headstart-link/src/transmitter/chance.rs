//! States that last for a time drawn by lot. They go by the clock, not by the packets: each has a
//! generator of its own, so what it is at a time does not depend on when it is asked.

use rand_distr::{Distribution as _, Exp1};

use crate::Span;
use crate::dice::{Dice, Purpose};

/// A point of time after another, exponentially far from it.
fn after(from_ns: u64, mean: Span, dice: &mut Dice) -> u64 {
    let exponential: f64 = Exp1.sample(dice.generator());
    let step_ns = (exponential * mean.as_ns() as f64).round() as u64;
    from_ns.saturating_add(step_ns.max(1))
}

/// Off at first, then on, off, on.
#[derive(Debug)]
pub(super) struct Alternating {
    mean_on: Span,
    mean_off: Span,
    is_on: bool,
    until_ns: u64,
    dice: Dice,
}

impl Alternating {
    /// Never on if `mean_off` is 0.
    pub(super) fn new(
        (mean_on, mean_off): (Span, Span),
        seed: u64,
        purpose: Purpose,
        origin_ns: u64,
    ) -> Alternating {
        let mut dice = Dice::new(seed, purpose);
        let until_ns = match mean_off {
            Span::ZERO => u64::MAX,
            mean_off => after(origin_ns, mean_off, &mut dice),
        };
        Alternating {
            mean_on,
            mean_off,
            is_on: false,
            until_ns,
            dice,
        }
    }

    /// Times must not go back.
    pub(super) fn is_on_at(&mut self, now_ns: u64) -> bool {
        while self.until_ns <= now_ns && self.until_ns < u64::MAX {
            self.is_on = !self.is_on;
            let mean = if self.is_on {
                self.mean_on
            } else {
                self.mean_off
            };
            self.until_ns = after(self.until_ns, mean, &mut self.dice);
        }
        self.is_on
    }
}

/// A walk over the numbers 0 to `last`: after each time one up or one down, or where it is if that
/// is beyond the ends. It is everywhere for as long as anywhere else; it begins at the top.
#[derive(Debug)]
pub(super) struct Walk {
    last: usize,
    mean: Span,
    at: usize,
    until_ns: u64,
    dice: Dice,
}

impl Walk {
    pub(super) fn new(
        last: usize,
        mean: Span,
        seed: u64,
        purpose: Purpose,
        origin_ns: u64,
    ) -> Walk {
        let mut dice = Dice::new(seed, purpose);
        let until_ns = match last {
            0 => u64::MAX,
            _ => after(origin_ns, mean, &mut dice),
        };
        Walk {
            last,
            mean,
            at: last,
            until_ns,
            dice,
        }
    }

    /// Times must not go back.
    pub(super) fn at(&mut self, now_ns: u64) -> usize {
        while self.until_ns <= now_ns && self.until_ns < u64::MAX {
            self.at = match self.dice.up_to(1) {
                0 => self.at.saturating_sub(1),
                _ => (self.at + 1).min(self.last),
            };
            self.until_ns = after(self.until_ns, self.mean, &mut self.dice);
        }
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn it_is_on_for_its_share_of_the_time_whenever_it_is_asked() {
        let means = (Span::from_ns(10 * MS), Span::from_ns(30 * MS));
        let new = || Alternating::new(means, 7, Purpose::Bursts, 0);
        let (mut often, mut seldom) = (new(), new());
        let mut on = 0u64;
        for ms in 0..1_000_000u64 {
            let is_on = often.is_on_at(ms * MS);
            on += u64::from(is_on);
            if ms % 977 == 0 {
                assert_eq!(seldom.is_on_at(ms * MS), is_on);
            }
        }
        assert!((240_000..260_000).contains(&on), "{on}");
        let mut never = Alternating::new((means.0, Span::ZERO), 7, Purpose::Bursts, 0);
        assert!(!never.is_on_at(u64::MAX));
    }

    #[test]
    fn a_walk_is_everywhere_for_as_long() {
        let mut walk = Walk::new(4, Span::from_ns(10 * MS), 7, Purpose::RateWalk, 0);
        let mut seen = [0u32; 5];
        let mut before = 4;
        for ms in 0..1_000_000u64 {
            let at = walk.at(ms * MS);
            seen[at] += 1;
            if ms > 0 && ms % 100 != 0 {
                assert!(at.abs_diff(before) <= 4);
            }
            before = at;
        }
        assert!(
            seen.iter().all(|&ms| (180_000..220_000).contains(&ms)),
            "{seen:?}"
        );
        let mut still = Walk::new(0, Span::from_ns(MS), 7, Purpose::RateWalk, 0);
        assert_eq!(still.at(u64::MAX), 0);
    }
}
