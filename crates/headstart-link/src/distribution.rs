//! Amounts that are drawn by lot (delays, sizes, think times), as people write them: `exp:10ms`.

mod empirical;
mod number;

use std::fmt;
use std::str::FromStr;

use rand_distr::{Distribution as _, Exp, LogNormal, Normal, Pareto, StandardUniform, Uniform};
use rand_pcg::rand_core::Rng;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::Span;

pub use crate::dice::Draws;
pub use empirical::Empirical;
pub use number::Number;

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
    sampler: Sampler,
}

/// What draws.
#[derive(Debug, Clone)]
enum Sampler {
    Fixed(u64),
    Uniform(Uniform<u64>),
    Exponential(Exp<f64>),
    Normal(Normal<f64>),
    LogNormal(LogNormal<f64>, f64),
    Pareto(Pareto<f64>),
    BoundedPareto {
        scale: f64,
        shape: f64,
        /// How likely the unbounded one is to be below the bound.
        below: f64,
    },
    Empirical,
}

/// A distribution that cannot be, with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("distribution {text:?}: {why}; write it like {examples}")]
pub struct DistributionError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
    /// Texts that would do.
    pub examples: String,
}

/// For places where a distribution cannot be a file.
///
/// # Errors
/// Always: says so.
pub fn read_no_file(_file: &str) -> Result<String, String> {
    Err("a file cannot be read here".to_owned())
}

impl<Q: Quantity> Distribution<Q> {
    /// # Errors
    /// Parameters that make no distribution.
    pub fn new(law: Law<Q>) -> Result<Self, DistributionError> {
        let sampler = Sampler::of(&law).map_err(|why| error::<Q>(&law.to_string(), why))?;
        Ok(Distribution { law, sampler })
    }

    /// Always `amount`.
    pub fn fixed(amount: Q) -> Self {
        let (law, sampler) = (Law::Fixed(amount), Sampler::Fixed(amount.whole()));
        Distribution { law, sampler }
    }

    /// Reads a distribution. `read` gives the text of the file that `empirical:FILE` names, or says
    /// why it cannot.
    ///
    /// # Errors
    /// What is wrong with the text, and what to write instead.
    pub fn parse_with(
        text: &str,
        read: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Self, DistributionError> {
        law(text.trim(), read)
            .map_err(|why| error::<Q>(text, why))
            .and_then(Distribution::new)
    }

    /// Its kind and parameters.
    pub fn law(&self) -> &Law<Q> {
        &self.law
    }

    /// Draws an amount.
    pub fn sample<R: Rng + ?Sized>(&self, draws: &mut R) -> Q {
        // A cast saturates: what is below 0 is 0.
        let whole = |amount: f64| amount.round() as u64;
        Q::from_whole(match &self.sampler {
            Sampler::Fixed(whole) => *whole,
            Sampler::Uniform(uniform) => uniform.sample(draws),
            Sampler::Exponential(exponential) => whole(exponential.sample(draws)),
            Sampler::Normal(normal) => whole(normal.sample(draws)),
            Sampler::LogNormal(normal, median) => whole(normal.sample(draws) * median),
            Sampler::Pareto(pareto) => whole(pareto.sample(draws)),
            Sampler::BoundedPareto {
                scale,
                shape,
                below,
            } => {
                // The inverse of its distribution function; rand_distr has no bounded one.
                let unit: f64 = StandardUniform.sample(draws);
                whole(scale * (1.0 - unit * below).powf(-1.0 / shape))
            }
            Sampler::Empirical => match &self.law {
                Law::Empirical(empirical) | Law::Model(empirical) => {
                    return empirical.at(StandardUniform.sample(draws));
                }
                _ => 0,
            },
        })
    }
}

impl Sampler {
    /// Or why there is none.
    fn of<Q: Quantity>(law: &Law<Q>) -> Result<Sampler, String> {
        let float = |amount: &Q| amount.whole() as f64;
        let said = |cause: &dyn fmt::Display| cause.to_string();
        Ok(match law {
            Law::Fixed(amount) => Sampler::Fixed(amount.whole()),
            Law::Uniform(low, high) => {
                let uniform = Uniform::new_inclusive(low.whole(), high.whole());
                Sampler::Uniform(uniform.map_err(|_| format!("{low} is more than {high}"))?)
            }
            Law::Exponential(mean) if mean.whole() == 0 => Sampler::Fixed(0),
            Law::Exponential(mean) => {
                Sampler::Exponential(Exp::new(1.0 / float(mean)).map_err(|e| said(&e))?)
            }
            Law::Normal(mean, sd) => {
                let normal = Normal::new(float(mean), float(sd));
                Sampler::Normal(normal.map_err(|e| said(&e))?)
            }
            Law::LogNormal(median, sigma) => {
                let normal = LogNormal::new(0.0, sigma.as_f64()).map_err(|e| said(&e))?;
                Sampler::LogNormal(normal, float(median))
            }
            Law::Pareto { scale, shape, most } => {
                if scale.whole() == 0 || shape.as_f64() == 0.0 {
                    return Err("SCALE and SHAPE have to be more than 0".to_owned());
                }
                let (scale_f64, shape) = (float(scale), shape.as_f64());
                match most {
                    None => Sampler::Pareto(Pareto::new(scale_f64, shape).map_err(|e| said(&e))?),
                    Some(most) if most <= scale => {
                        return Err(format!("max has to be more than {scale} (got {most})"));
                    }
                    Some(most) => Sampler::BoundedPareto {
                        scale: scale_f64,
                        shape,
                        below: 1.0 - (scale_f64 / float(most)).powf(shape),
                    },
                }
            }
            Law::Empirical(_) | Law::Model(_) => Sampler::Empirical,
        })
    }
}

fn error<Q: Quantity>(text: &str, why: String) -> DistributionError {
    let [small, middle, large] = Q::EXAMPLES;
    DistributionError {
        text: text.to_owned(),
        why,
        examples: format!(
            "\"fixed:{middle}\", \"uniform:{small},{large}\", \"exp:{middle}\", \
             \"normal:{middle},{small}\", \"lognormal:{middle},0.5\", \
             \"pareto:{small},1.2,max={large}\" or \"empirical:FILE\""
        ),
    }
}

fn law<Q: Quantity>(
    text: &str,
    read: impl FnOnce(&str) -> Result<String, String>,
) -> Result<Law<Q>, String> {
    let (kind, rest) = text.split_once(':').unwrap_or(("fixed", text));
    let kind = kind.trim_end();
    if kind == "empirical" {
        let file = rest.trim();
        let found = read(file).map_err(|why| format!("{file}: {why}"))?;
        return Empirical::parse(file, &found).map(Law::Empirical);
    }
    if kind == "model" {
        let name = rest.trim();
        let found = Q::MODELS.iter().find(|(known, _)| *known == name);
        return match found {
            Some((_, table)) => Empirical::parse(name, table).map(Law::Model),
            None => {
                let known: Vec<&str> = Q::MODELS.iter().map(|(known, _)| *known).collect();
                Err(format!(
                    "no model {name:?} of this: known are {}",
                    known.join(", ")
                ))
            }
        };
    }
    let words: Vec<&str> = rest.split(',').map(str::trim).collect();
    let amount = |text: &str| text.parse::<Q>().map_err(|why| why.to_string());
    let number = |text: &str| text.parse::<Number>();
    match (kind, words.as_slice()) {
        ("fixed", [it]) => Ok(Law::Fixed(amount(it)?)),
        ("uniform", [low, high]) => Ok(Law::Uniform(amount(low)?, amount(high)?)),
        ("exp", [mean]) => Ok(Law::Exponential(amount(mean)?)),
        ("normal", [mean, sd]) => Ok(Law::Normal(amount(mean)?, amount(sd)?)),
        ("lognormal", [median, sigma]) => Ok(Law::LogNormal(amount(median)?, number(sigma)?)),
        ("pareto", [scale, shape, bound @ ..]) if bound.len() <= 1 => {
            let most = |word: &&str| match word.split_once('=') {
                Some(("max", most)) => amount(most),
                _ => Err(format!("no option {word:?}: the only one is max")),
            };
            Ok(Law::Pareto {
                scale: amount(scale)?,
                shape: number(shape)?,
                most: bound.first().map(most).transpose()?,
            })
        }
        ("fixed" | "exp", _) => Err(format!("{kind} has one parameter")),
        ("uniform" | "normal" | "lognormal" | "pareto", _) => {
            Err(format!("{kind} has two parameters"))
        }
        _ => Err(format!(
            "no kind {kind:?}: known are fixed, uniform, exp, normal, lognormal, pareto, empirical, model"
        )),
    }
}

impl<Q: Quantity> fmt::Display for Law<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Law::Fixed(amount) => write!(f, "fixed:{amount}"),
            Law::Uniform(low, high) => write!(f, "uniform:{low},{high}"),
            Law::Exponential(mean) => write!(f, "exp:{mean}"),
            Law::Normal(mean, sd) => write!(f, "normal:{mean},{sd}"),
            Law::LogNormal(median, sigma) => write!(f, "lognormal:{median},{sigma}"),
            Law::Pareto { scale, shape, most } => {
                write!(f, "pareto:{scale},{shape}")?;
                match most {
                    Some(most) => write!(f, ",max={most}"),
                    None => Ok(()),
                }
            }
            Law::Empirical(empirical) => write!(f, "empirical:{}", empirical.name()),
            Law::Model(empirical) => write!(f, "model:{}", empirical.name()),
        }
    }
}

impl<Q: Quantity> fmt::Display for Distribution<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.law.to_string())
    }
}

/// Without files: use [`Distribution::parse_with`] where `empirical:FILE` can be read.
impl<Q: Quantity> FromStr for Distribution<Q> {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Self, DistributionError> {
        Distribution::parse_with(text, read_no_file)
    }
}

impl<Q: Quantity> PartialEq for Distribution<Q> {
    fn eq(&self, other: &Self) -> bool {
        self.law == other.law
    }
}

impl<Q: Quantity> Eq for Distribution<Q> {}

impl<Q: Quantity> Serialize for Distribution<Q> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, Q: Quantity> Deserialize<'de> for Distribution<Q> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn delays(text: &str) -> Distribution<Span> {
        text.parse().unwrap()
    }

    /// Sorted, in ms.
    fn drawn_ms(text: &str) -> Vec<f64> {
        let (delays, mut draws) = (delays(text), Draws::new(7, 0));
        let mut drawn: Vec<f64> = (0..100_000)
            .map(|_| delays.sample(&mut draws).as_ms_f64())
            .collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    fn mean(drawn: &[f64]) -> f64 {
        drawn.iter().sum::<f64>() / drawn.len() as f64
    }

    /// Within 2 %: four standard errors of each of the figures below, or more.
    fn about(value: f64, expected: f64) {
        assert!(
            (value / expected - 1.0).abs() < 0.02,
            "{value}, not {expected}"
        );
    }

    #[test]
    fn what_is_drawn_has_the_mean_and_the_quantiles_of_its_law() {
        assert!(drawn_ms("fixed:10ms").iter().all(|&ms| ms == 10.0));
        let uniform = drawn_ms("uniform:5ms,15ms");
        about(mean(&uniform), 10.0);
        assert!(uniform[0] >= 5.0 && uniform[99_999] <= 15.0);
        let exponential = drawn_ms("exp:10ms");
        about(mean(&exponential), 10.0);
        about(exponential[50_000], 10.0 * 2f64.ln());
        let normal = drawn_ms("normal:100ms,10ms");
        about(mean(&normal), 100.0);
        // One standard deviation above the mean.
        about(normal[84_134] - mean(&normal), 10.0);
        let lognormal = drawn_ms("lognormal:10ms,0.5");
        about(lognormal[50_000], 10.0);
        about(mean(&lognormal), 10.0 * 0.125f64.exp());
        let pareto = drawn_ms("pareto:10ms,2");
        assert!(pareto[0] >= 10.0);
        about(pareto[75_000], 20.0);
    }

    #[test]
    fn a_normal_one_is_cut_at_0() {
        let drawn = drawn_ms("normal:10ms,10ms");
        let none = drawn.iter().filter(|&&ms| ms == 0.0).count() as f64;
        // One standard deviation below the mean: 15.87 % of all.
        about(none / 1e5, 0.1587);
        about(mean(&drawn), 10.833);
    }

    #[test]
    fn a_bounded_pareto_one_has_the_shape_of_the_unbounded_one_below_its_bound() {
        let drawn = drawn_ms("pareto:10ms,1,max=40ms");
        assert!(drawn[0] >= 10.0 && drawn[99_999] <= 40.0);
        // F(x) = (1 - 10/x) / (1 - 10/40): half of them are below 16 ms.
        about(drawn[50_000], 16.0);
    }

    #[test]
    fn a_seed_means_the_same_draws() {
        let first = |text: &str, seed| delays(text).sample(&mut Draws::new(seed, 0));
        for text in ["uniform:0s,1s", "exp:1s", "normal:1s,1ms", "lognormal:1s,1"] {
            assert_eq!(first(text, 1), first(text, 1));
            assert_ne!(first(text, 1), first(text, 2), "{text}");
        }
    }

    #[test]
    fn a_distribution_is_written_as_it_is_read() {
        for text in [
            "fixed:10ms",
            "uniform:0s,10ms",
            "exp:10ms",
            "normal:10ms,2ms",
            "lognormal:10ms,0.5",
            "pareto:10ms,1.2",
            "pareto:10ms,1.2,max=1s",
        ] {
            assert_eq!(delays(text).to_string(), text);
            let json = serde_json::to_string(&delays(text)).unwrap();
            assert_eq!(json, format!("{text:?}"));
            let read: Distribution<Span> = serde_json::from_str(&json).unwrap();
            assert_eq!(read, delays(text));
        }
        assert_eq!(delays("10ms"), delays("fixed:10ms"));
        assert_eq!(delays("exp:0ms").sample(&mut Draws::new(1, 0)), Span::ZERO);
    }

    #[test]
    fn a_distribution_that_cannot_be_is_refused_with_the_next_step() {
        let error = |text: &str| text.parse::<Distribution<Span>>().unwrap_err().to_string();
        assert!(error("exp:10").contains("duration \"10\" is not a number with a unit"));
        assert!(error("exp:10").contains("write it like \"fixed:10ms\", \"uniform:5ms,1s\""));
        assert!(error("exp:10ms,2ms").contains("exp has one parameter"));
        assert!(error("normal:10ms").contains("normal has two parameters"));
        assert!(error("gamma:10ms").contains("no kind \"gamma\": known are fixed, uniform"));
        assert!(error("uniform:10ms,5ms").contains("10ms is more than 5ms"));
        assert!(error("lognormal:10ms,x").contains("\"x\" is no number"));
        assert!(error("pareto:0ms,1").contains("more than 0"));
        assert!(error("pareto:1ms,0").contains("more than 0"));
        assert!(error("pareto:1ms,1,max=1ms").contains("more than 1ms (got 1ms)"));
        assert!(error("pareto:1ms,1,most=1ms").contains("no option \"most=1ms\""));
        assert!(error("empirical:x.csv").contains("x.csv: a file cannot be read here"));
    }

    #[test]
    fn a_file_is_read_by_whoever_can() {
        let read = |file: &str| match file {
            "rtt.csv" => Ok("10ms\n20ms\n".to_owned()),
            _ => Err("no such file".to_owned()),
        };
        let delays = Distribution::<Span>::parse_with("empirical:rtt.csv", read).unwrap();
        assert_eq!(delays.to_string(), "empirical:rtt.csv");
        let mut draws = Draws::new(1, 0);
        let drawn: Vec<f64> = (0..1000)
            .map(|_| delays.sample(&mut draws).as_ms_f64())
            .collect();
        let tens = drawn.iter().filter(|&&ms| ms == 10.0).count();
        assert!((400..600).contains(&tens), "{tens}");
        assert!(drawn.iter().all(|&ms| ms == 10.0 || ms == 20.0));
        let error = Distribution::<Span>::parse_with("empirical:none.csv", read).unwrap_err();
        assert!(error.to_string().contains("none.csv: no such file"));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back_the_same_and_draws_the_same(
            a in 1u64..1 << 50, b in 1u64..1 << 50, millionths in 1u32.., kind in 0..7, seed: u64,
        ) {
            let span = Span::from_ns;
            let (low, high) = (span(a.min(b)), span(a.max(b) + 1));
            let number = Number::from_millionths(millionths);
            let law = match kind {
                0 => Law::Fixed(low),
                1 => Law::Uniform(low, high),
                2 => Law::Exponential(low),
                3 => Law::Normal(low, high),
                4 => Law::LogNormal(low, number),
                5 => Law::Pareto { scale: low, shape: number, most: None },
                _ => Law::Pareto { scale: low, shape: number, most: Some(high) },
            };
            let one = Distribution::new(law).unwrap();
            let other: Distribution<Span> = one.to_string().parse().unwrap();
            prop_assert_eq!(&one, &other);
            let drawn = one.sample(&mut Draws::new(seed, 0));
            prop_assert_eq!(drawn, other.sample(&mut Draws::new(seed, 0)));
            match kind {
                0 => prop_assert_eq!(drawn, low),
                1 => prop_assert!((low..=high).contains(&drawn)),
                5 => prop_assert!(drawn >= low),
                // Rounding may lift it by one.
                6 => prop_assert!((low..=span(high.as_ns() + 1)).contains(&drawn)),
                _ => {}
            }
        }
    }
}
