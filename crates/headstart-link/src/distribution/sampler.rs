//! How an amount is drawn from each kind of distribution.

use std::fmt;

use rand_distr::{Distribution as _, Exp, LogNormal, Normal, Pareto, StandardUniform, Uniform};
use rand_pcg::rand_core::Rng;

use super::{Empirical, Law, Quantity};

/// What draws.
#[derive(Debug, Clone)]
pub(super) enum Sampler<Q> {
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
    Empirical(Empirical<Q>),
}

impl<Q: Quantity> Sampler<Q> {
    /// Or why there is none.
    pub(super) fn of(law: &Law<Q>) -> Result<Sampler<Q>, String> {
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
            Law::Empirical(empirical) | Law::Model(empirical) => {
                Sampler::Empirical(empirical.clone())
            }
        })
    }

    /// Draws an amount.
    pub(super) fn sample<R: Rng + ?Sized>(&self, draws: &mut R) -> Q {
        // A cast saturates: what is below 0 is 0.
        let whole = |amount: f64| amount.round() as u64;
        Q::from_whole(match self {
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
            Sampler::Empirical(empirical) => return empirical.at(StandardUniform.sample(draws)),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::distribution::Distribution;
    use crate::{Draws, Span};

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
}
