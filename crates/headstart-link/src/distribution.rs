//! Amounts that are drawn by lot (delays, sizes, think times), as people write them: `exp:10ms`.

mod empirical;
mod number;
mod sampler;
mod text;

use std::fmt;
use std::str::FromStr;

use rand_pcg::rand_core::Rng;

use crate::Span;
use sampler::Sampler;

pub use crate::dice::Draws;
pub use empirical::Empirical;
pub use number::Number;
pub use text::{DistributionError, read_no_file};

/// What can be drawn: an amount of some unit, as a whole number of the smallest unit.
pub trait Quantity:
    Copy + Eq + Ord + fmt::Debug + fmt::Display + FromStr<Err: fmt::Display>
{
    /// Texts that would do, for messages: three amounts, from small to large.
    const EXAMPLES: [&'static str; 3];
    /// The models of [`Law::Model`] in this unit: name, and table as in [`Empirical`].
    const MODELS: &'static [(&'static str, &'static str)] = &[];
    /// From the smallest unit.
    fn from_whole(whole: u64) -> Self;
    /// In the smallest unit.
    fn whole(self) -> u64;
}

impl Quantity for Span {
    const EXAMPLES: [&'static str; 3] = ["5ms", "10ms", "1s"];
    const MODELS: &'static [(&'static str, &'static str)] = &[
        (
            "mah-1997",
            include_str!("distribution/models/mah-1997.think.csv"),
        ),
        ("surge", include_str!("distribution/models/surge.think.csv")),
    ];

    fn from_whole(ns: u64) -> Span {
        Span::from_ns(ns)
    }

    fn whole(self) -> u64 {
        self.as_ns()
    }
}

/// The kinds of distribution, with their parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Law<Q> {
    /// Always the same: `fixed:X`, or `X` alone.
    Fixed(Q),
    /// Anything from the first to the second, both possible, all equally likely: `uniform:A,B`.
    Uniform(Q, Q),
    /// `exp:MEAN`.
    Exponential(Q),
    /// `normal:MEAN,SD`. What would be below 0 is 0, so the mean of what is drawn is a little
    /// higher: by 0.4 % of the mean where SD is half of it, by 8 % where SD is as large.
    Normal(Q, Q),
    /// `lognormal:MEDIAN,SIGMA`: the natural logarithm has the standard deviation SIGMA. The mean is
    /// MEDIAN * exp(SIGMA^2 / 2).
    LogNormal(Q, Number),
    /// `pareto:SCALE,SHAPE`: never below SCALE, above X with probability (SCALE / X)^SHAPE. With
    /// `,max=M` the bounded Pareto distribution: as it is below M, given that it is below M.
    Pareto {
        /// The least that is drawn.
        scale: Q,
        /// "alpha"; with 1 and less an unbounded one has no mean.
        shape: Number,
        /// The most that is drawn.
        most: Option<Q>,
    },
    /// As measured: `empirical:FILE`, see [`Empirical`].
    Empirical(Empirical<Q>),
    /// As the literature has it: `model:NAME`. What is drawn tells which of the model's distributions it
    /// is: the sizes of files, their number, or a pause.
    Model(Empirical<Q>),
}

/// A distribution of amounts. What is drawn is rounded to whole numbers of the smallest unit.
///
/// The same draws of the generator give the same amounts. `exp` and `normal` are drawn by
/// multiplications but for their far tails; those tails, `lognormal` and `pareto` go through the
/// machine's exp, log and pow, whose last bit may differ from one C library to another: that shows
/// after rounding about once in 10^8 draws.
#[derive(Debug, Clone)]
pub struct Distribution<Q> {
    law: Law<Q>,
    sampler: Sampler<Q>,
}

impl<Q: Quantity> Distribution<Q> {
    /// # Errors
    /// Parameters that make no distribution.
    pub fn new(law: Law<Q>) -> Result<Self, DistributionError> {
        let sampler =
            Sampler::of(&law).map_err(|why| DistributionError::new::<Q>(&law.to_string(), why))?;
        Ok(Distribution { law, sampler })
    }

    /// Always `amount`.
    pub fn fixed(amount: Q) -> Self {
        let (law, sampler) = (Law::Fixed(amount), Sampler::Fixed(amount.whole()));
        Distribution { law, sampler }
    }

    /// Its kind and parameters.
    pub fn law(&self) -> &Law<Q> {
        &self.law
    }

    /// Draws an amount.
    pub fn sample<R: Rng + ?Sized>(&self, draws: &mut R) -> Q {
        self.sampler.sample(draws)
    }
}

impl<Q: Quantity> PartialEq for Distribution<Q> {
    fn eq(&self, other: &Self) -> bool {
        self.law == other.law
    }
}

impl<Q: Quantity> Eq for Distribution<Q> {}
