//! A distribution as it was measured.

use std::sync::Arc;

use super::Quantity;

/// A distribution from a file: a list of values, or points of the cumulative distribution function.
///
/// A line is a value (`12ms`), each as likely as any other, in any order; or a value and the
/// probability that an amount is not larger (`12ms,0.75`), both rising up to a probability of 1.
/// Between two points the amount is interpolated linearly. Nothing lies below the first point, so
/// its probability is that of exactly its value. Empty lines and what follows `#` do not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Empirical<Q> {
    name: Arc<str>,
    points: Points<Q>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Points<Q> {
    Values(Arc<[Q]>),
    /// A value, and its cumulative probability in units of 2^-53.
    Cumulative(Arc<[(Q, u64)]>),
}

/// What a probability of 1 is: a double holds all whole numbers up to this.
const ONE: u64 = 1 << 53;

impl<Q: Quantity> Empirical<Q> {
    /// Reads the text of a file. `name` is for messages and reports: the file's name.
    ///
    /// # Errors
    /// The line and what is wrong with it.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let (mut values, mut cumulative) = (Vec::new(), Vec::<(Q, u64)>::new());
        for (number, line) in (1..).zip(text.lines()) {
            let error = |why: String| format!("{name}:{number}: {why}");
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (value, share) = match line.split_once(',') {
                Some((value, share)) => (value.trim_end(), Some(share.trim_start())),
                None => (line, None),
            };
            let value: Q = value
                .parse()
                .map_err(|why: Q::Err| error(why.to_string()))?;
            match share {
                None => values.push(value),
                Some(share) => {
                    let point = (value, probability(share).map_err(error)?);
                    if cumulative
                        .last()
                        .is_some_and(|last| *last > point || last.1 > point.1)
                    {
                        return Err(error("value and probability have to rise".to_owned()));
                    }
                    cumulative.push(point);
                }
            }
            if !values.is_empty() && !cumulative.is_empty() {
                let why = "either every line has a probability or none has";
                return Err(error(why.to_owned()));
            }
        }
        let points = match (values.is_empty(), cumulative.last()) {
            (false, _) => Points::Values(values.into()),
            (true, Some((_, ONE))) => Points::Cumulative(cumulative.into()),
            (true, Some(_)) => return Err(format!("{name}: the last probability has to be 1")),
            (true, None) => return Err(format!("{name}: there is no value in it")),
        };
        let name = name.into();
        Ok(Empirical { name, points })
    }

    /// The file's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The amount below which the share `unit` of all lies; `unit` is of [0, 1).
    pub(super) fn at(&self, unit: f64) -> Q {
        match &self.points {
            Points::Values(values) => {
                let index = (unit * values.len() as f64) as usize;
                values[index.min(values.len() - 1)]
            }
            Points::Cumulative(points) => {
                let wanted = (unit * ONE as f64) as u64;
                // The first point that is not below; the last one never is.
                let above = points.partition_point(|&(_, share)| share <= wanted);
                let (high, high_share) = points[above.min(points.len() - 1)];
                let Some(&(low, low_share)) = above.checked_sub(1).and_then(|at| points.get(at))
                else {
                    return high;
                };
                let step = u128::from(high.whole() - low.whole());
                let part = u128::from(wanted - low_share);
                let into = step * part / u128::from((high_share - low_share).max(1));
                // At most `step`, which has 64 bits.
                Q::from_whole(low.whole() + into as u64)
            }
        }
    }
}

fn probability(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok((share * ONE as f64) as u64),
        _ => Err(format!("{text:?} is no probability from 0 to 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use proptest::prelude::*;

    fn empirical(text: &str) -> Result<Empirical<Span>, String> {
        Empirical::parse("f.csv", text)
    }

    fn at_us(text: &str, unit: f64) -> u64 {
        empirical(text).unwrap().at(unit).as_ns() / 1000
    }

    #[test]
    fn each_value_of_a_list_is_as_likely_as_any_other() {
        let list = "# measured\n30ms\n10ms # twice\n10ms\n\n20ms\n";
        let drawn = [0.0, 0.249, 0.25, 0.5, 0.75, 0.999].map(|unit| at_us(list, unit));
        assert_eq!(drawn, [30_000, 30_000, 10_000, 10_000, 20_000, 20_000]);
    }

    #[test]
    fn between_the_points_of_a_distribution_function_it_is_linear() {
        let points = "10ms,0.25\n20ms, 0.5\n100ms,1\n";
        let drawn = [0.0, 0.2, 0.25, 0.375, 0.5, 0.75].map(|unit| at_us(points, unit));
        assert_eq!(drawn, [10_000, 10_000, 10_000, 15_000, 20_000, 60_000]);
        assert!((99_999..=100_000).contains(&at_us(points, 1.0 - f64::EPSILON)));
        // A step: two points of one value.
        let step = "0ms,0\n10ms,0.5\n10ms,0.75\n20ms,1\n";
        assert_eq!([0.5, 0.6, 0.7].map(|unit| at_us(step, unit)), [10_000; 3]);
    }

    #[test]
    fn a_file_that_is_no_distribution_is_refused_with_its_line() {
        let error = |text: &str| empirical(text).unwrap_err();
        assert!(error("").contains("f.csv: there is no value"));
        assert!(error("10ms\n20\n").contains("f.csv:2: duration \"20\""));
        assert!(error("10ms,0.5\n5ms,1\n").contains("f.csv:2: value and probability"));
        assert!(error("10ms,0.5\n15ms,0.4\n").contains("f.csv:2: value and probability"));
        assert!(error("10ms,0.5\n").contains("last probability has to be 1"));
        assert!(error("10ms,0.5\n11ms\n").contains("f.csv:2: either every line"));
        assert!(error("10ms,2\n").contains("f.csv:1: \"2\" is no probability"));
    }

    proptest! {
        #[test]
        fn a_larger_share_never_has_a_smaller_amount(
            mut points in prop::collection::vec((0u64..1 << 60, 0u32..1000), 1..20),
            one in 0.0f64..1.0, other in 0.0f64..1.0,
        ) {
            points.sort_unstable();
            let mut shares: Vec<u32> = points.iter().map(|point| point.1).collect();
            shares.sort_unstable();
            let mut text = String::new();
            for ((value, _), share) in points.iter().zip(shares) {
                text += &format!("{value}ns,0.{share:03}\n");
            }
            text += &format!("{}ns,1\n", points[points.len() - 1].0);
            let empirical = empirical(&text).unwrap();
            let (low, high) = (empirical.at(one.min(other)), empirical.at(one.max(other)));
            prop_assert!(low <= high);
            prop_assert!(points[0].0 <= low.as_ns());
        }
    }
}
