//! Distributions as people write them: `exp:10ms`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{Distribution, Empirical, Law, Number, Quantity};

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

impl DistributionError {
    pub(super) fn new<Q: Quantity>(text: &str, why: String) -> Self {
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
}

/// For places where a distribution cannot be a file.
///
/// # Errors
/// Always: says so.
pub fn read_no_file(_file: &str) -> Result<String, String> {
    Err("a file cannot be read here".to_owned())
}

impl<Q: Quantity> Distribution<Q> {
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
            .map_err(|why| DistributionError::new::<Q>(text, why))
            .and_then(Distribution::new)
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
    use crate::{Draws, Span};
    use proptest::prelude::*;

    fn delays(text: &str) -> Distribution<Span> {
        text.parse().unwrap()
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
