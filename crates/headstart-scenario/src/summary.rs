//! A handful of measurements in a few numbers.

use serde::{Deserialize, Serialize};

/// The middle and the spread of a set of measurements, in the unit of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The 0.5 quantile.
    pub median: f64,
    /// The 0.1 quantile.
    pub p10: f64,
    /// The 0.9 quantile.
    pub p90: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard error of the mean: the sample's standard deviation (n - 1) over the square root of n. Absent for a
    /// single measurement, which says nothing about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<f64>,
}

impl Summary {
    /// Summarises `values`. None if there are no values, or if one of them is not a finite number.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = sorted_finite(values)?;
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let stderr = (sorted.len() > 1).then(|| {
            let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / (n - 1.0)).sqrt() / n.sqrt()
        });
        Some(Self {
            median: quantile(&sorted, 0.5),
            p10: quantile(&sorted, 0.1),
            p90: quantile(&sorted, 0.9),
            mean,
            stderr,
        })
    }
}

/// The middle and the worst of a set of counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extremes {
    /// The 0.5 quantile, by the same definition as in [`Summary`]; between two counts it can be a half.
    pub median: f64,
    /// The largest count.
    pub max: u64,
}

impl Extremes {
    /// Summarises `counts`. None if there are none.
    pub fn of(counts: &[u64]) -> Option<Self> {
        let max = counts.iter().copied().max()?;
        let values: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
        let median = quantile(&sorted_finite(&values)?, 0.5);
        Some(Self { median, max })
    }
}

fn sorted_finite(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

/// The quantile `q` (0 to 1) of `sorted`, which holds at least one value: linear interpolation between the two values
/// around rank q (n - 1), which is numpy's default and type 7 of Hyndman and Fan.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = q * (sorted.len() - 1) as f64;
    let below = rank.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let part = rank - rank.floor();
    sorted[below] + part * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn quantiles_interpolate_linearly_as_numpy_does_by_default() {
        // numpy.percentile([10, 20, 30, 40, 50], [10, 50, 90]) = [14, 30, 46]
        let five = Summary::of(&[50.0, 10.0, 40.0, 20.0, 30.0]).expect("five values");
        close(five.p10, 14.0);
        close(five.median, 30.0);
        close(five.p90, 46.0);
        // numpy.percentile([1, 2, 3, 10], [10, 50, 90]) = [1.3, 2.5, 7.9]
        let four = Summary::of(&[1.0, 2.0, 3.0, 10.0]).expect("four values");
        close(four.p10, 1.3);
        close(four.median, 2.5);
        close(four.p90, 7.9);
    }

    #[test]
    fn the_standard_error_uses_the_sample_deviation() {
        // mean 3, squares 4+1+0+1+4 = 10, deviation sqrt(10/4), over sqrt(5): sqrt(0.5)
        let summary = Summary::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("five values");
        close(summary.mean, 3.0);
        close(
            summary.stderr.expect("five values have one"),
            0.5_f64.sqrt(),
        );
    }

    #[test]
    fn a_single_value_is_all_its_quantiles_and_has_no_standard_error() {
        let summary = Summary::of(&[447.1]).expect("one value");
        assert_eq!(
            (summary.p10, summary.median, summary.p90),
            (447.1, 447.1, 447.1)
        );
        assert_eq!(summary.stderr, None);
    }

    #[test]
    fn nothing_and_what_is_no_number_has_no_summary() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[1.0, f64::INFINITY]), None);
        assert_eq!(Extremes::of(&[]), None);
    }

    #[test]
    fn counts_are_told_by_median_and_maximum() {
        assert_eq!(
            Extremes::of(&[0, 4, 0, 1]),
            Some(Extremes {
                median: 0.5,
                max: 4
            })
        );
    }
}
