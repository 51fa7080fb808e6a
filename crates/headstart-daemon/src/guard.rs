//! The guard: a rule that is worse than what it is compared with is turned off.
//!
//! Compared are the transfers of the last window: those that a rule treats with those that it leaves alone, or those of
//! an arm with those of the baseline. Time is an argument.

use std::collections::VecDeque;

use hdrhistogram::Histogram;

use crate::config::Margins;

/// The window slides in this many steps.
const STEPS: u64 = 10;
/// Of a latency; a day in us.
const MOST_LATENCY_US: u64 = 86_400_000_000;
/// Of a latency in the histogram, in 10^-3.
const DIGITS: u8 = 2;

/// What the guard wants to know of a transfer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// It is of what is judged; else of what that is compared with.
    pub treated: bool,
    /// Acknowledged.
    pub bytes: u64,
    /// Sent again.
    pub retransmitted_bytes: u64,
    /// Timeouts.
    pub rto_count: u32,
    /// How long it took.
    pub latency_us: u64,
}

/// One side of the comparison.
#[derive(Clone, Debug)]
struct Side {
    transfers: u64,
    bytes: u64,
    retransmitted_bytes: u64,
    timeouts: u64,
    latency: Option<Histogram<u64>>,
}

impl Side {
    const fn new() -> Side {
        Side {
            transfers: 0,
            bytes: 0,
            retransmitted_bytes: 0,
            timeouts: 0,
            latency: None,
        }
    }

    fn add(&mut self, outcome: &Outcome) {
        self.transfers += 1;
        self.bytes += outcome.bytes;
        self.retransmitted_bytes += outcome.retransmitted_bytes;
        self.timeouts += u64::from(outcome.rto_count);
        if self.latency.is_none() {
            self.latency = Histogram::new_with_max(MOST_LATENCY_US, DIGITS).ok();
        }
        if let Some(latency) = &mut self.latency {
            latency.saturating_record(outcome.latency_us.max(1));
        }
    }

    fn merge(&mut self, other: &Side) {
        self.transfers += other.transfers;
        self.bytes += other.bytes;
        self.retransmitted_bytes += other.retransmitted_bytes;
        self.timeouts += other.timeouts;
        match (&mut self.latency, &other.latency) {
            (Some(ours), Some(theirs)) => drop(ours.add(theirs)),
            (None, Some(theirs)) => self.latency = Some(theirs.clone()),
            _ => {}
        }
    }

    fn retransmission_percent(&self) -> f64 {
        let sent = self.bytes + self.retransmitted_bytes;
        100.0 * self.retransmitted_bytes as f64 / sent.max(1) as f64
    }

    fn timeouts_in_100(&self) -> f64 {
        100.0 * self.timeouts as f64 / self.transfers.max(1) as f64
    }

    fn median_us(&self) -> u64 {
        self.latency
            .as_ref()
            .map_or(0, |latency| latency.value_at_quantile(0.5))
    }
}

#[derive(Debug)]
struct Step {
    number: u64,
    treated: Side,
    baseline: Side,
}

/// Compares one thing with another.
#[derive(Debug)]
pub struct Guard {
    config: Margins,
    steps: VecDeque<Step>,
}

impl Guard {
    /// Knows nothing yet.
    pub fn new(config: Margins) -> Guard {
        Guard {
            config,
            steps: VecDeque::new(),
        }
    }

    fn step_ns(&self) -> u64 {
        let window_ns = u64::try_from(self.config.window.as_nanos()).unwrap_or(u64::MAX);
        (window_ns / STEPS).max(1)
    }

    /// A transfer ended at `now_ns`, `CLOCK_MONOTONIC`.
    pub fn add(&mut self, now_ns: u64, outcome: &Outcome) {
        let number = now_ns / self.step_ns();
        if self.steps.back().is_none_or(|last| last.number < number) {
            self.steps.push_back(Step {
                number,
                treated: Side::new(),
                baseline: Side::new(),
            });
        }
        if let Some(step) = self.steps.back_mut() {
            let side = if outcome.treated {
                &mut step.treated
            } else {
                &mut step.baseline
            };
            side.add(outcome);
        }
    }

    /// Why it is worse, if it is, in words.
    pub fn verdict(&mut self, now_ns: u64) -> Option<String> {
        let oldest = (now_ns / self.step_ns()).saturating_sub(STEPS);
        while self.steps.front().is_some_and(|step| step.number < oldest) {
            self.steps.pop_front();
        }
        let (mut treated, mut baseline) = (Side::new(), Side::new());
        for step in &self.steps {
            treated.merge(&step.treated);
            baseline.merge(&step.baseline);
        }
        let enough = self.config.min_transfers;
        if treated.transfers < enough || baseline.transfers < enough {
            return None;
        }
        self.worse(&treated, &baseline)
    }

    fn worse(&self, treated: &Side, baseline: &Side) -> Option<String> {
        let of = format!(
            "over {} s, {} transfers against {}",
            self.config.window.as_secs(),
            treated.transfers,
            baseline.transfers
        );
        let (ours, theirs) = (
            treated.retransmission_percent(),
            baseline.retransmission_percent(),
        );
        if let Some(margin) = self.config.retransmission_points
            && ours > theirs + f64::from(margin)
        {
            return Some(format!(
                "retransmitted {ours:.2} % of its bytes against {theirs:.2} % ({of})"
            ));
        }
        let (ours, theirs) = (treated.timeouts_in_100(), baseline.timeouts_in_100());
        if let Some(margin) = self.config.timeout_points
            && ours > theirs + f64::from(margin)
        {
            return Some(format!(
                "{ours:.2} timeouts in 100 transfers against {theirs:.2} ({of})"
            ));
        }
        let (ours, theirs) = (treated.median_us(), baseline.median_us());
        if let Some(margin) = self.config.latency_percent
            && ours as f64 > theirs as f64 * (1.0 + f64::from(margin) / 100.0)
        {
            return Some(format!(
                "median latency {:.1} ms against {:.1} ms ({of})",
                ours as f64 / 1000.0,
                theirs as f64 / 1000.0
            ));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const S: u64 = 1_000_000_000;

    fn config() -> Margins {
        Margins {
            window: Duration::from_secs(60),
            min_transfers: 50,
            retransmission_points: Some(2),
            timeout_points: Some(3),
            latency_percent: Some(25),
        }
    }

    fn feed(guard: &mut Guard, at_ns: u64, count: u32, treated: Outcome, baseline: Outcome) {
        for _ in 0..count {
            guard.add(
                at_ns,
                &Outcome {
                    treated: true,
                    ..treated
                },
            );
            guard.add(
                at_ns,
                &Outcome {
                    treated: false,
                    ..baseline
                },
            );
        }
    }

    fn plain() -> Outcome {
        Outcome {
            bytes: 10_000,
            latency_us: 100_000,
            ..Outcome::default()
        }
    }

    #[test]
    fn alike_is_not_worse() {
        let mut guard = Guard::new(config());
        feed(&mut guard, S, 1000, plain(), plain());
        assert_eq!(guard.verdict(S), None);
    }

    #[test]
    fn each_of_the_three_margins_is_seen_and_named() {
        let worse = [
            (
                Outcome {
                    retransmitted_bytes: 300,
                    ..plain()
                },
                "retransmitted",
            ),
            (
                Outcome {
                    rto_count: 1,
                    ..plain()
                },
                "timeouts",
            ),
            (
                Outcome {
                    latency_us: 130_000,
                    ..plain()
                },
                "median latency",
            ),
        ];
        for (treated, word) in worse {
            let mut guard = Guard::new(config());
            feed(&mut guard, S, 100, treated, plain());
            assert!(guard.verdict(S).unwrap().contains(word));
        }
    }

    #[test]
    fn within_the_margins_nothing_is_turned_off() {
        let near = Outcome {
            retransmitted_bytes: 190,
            latency_us: 120_000,
            ..plain()
        };
        let mut guard = Guard::new(config());
        feed(&mut guard, S, 100, near, plain());
        assert_eq!(guard.verdict(S), None);
    }

    #[test]
    fn few_transfers_say_nothing() {
        let bad = Outcome {
            rto_count: 5,
            ..plain()
        };
        let mut guard = Guard::new(config());
        feed(&mut guard, S, 49, bad, plain());
        assert_eq!(guard.verdict(S), None);
        feed(&mut guard, S, 1, bad, plain());
        assert!(guard.verdict(S).is_some());
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let bad = Outcome {
            rto_count: 5,
            ..plain()
        };
        let mut guard = Guard::new(config());
        feed(&mut guard, 10 * S, 100, bad, plain());
        assert!(guard.verdict(60 * S).is_some());
        assert_eq!(guard.verdict(90 * S), None);
    }

    #[test]
    fn better_is_not_worse() {
        let bad = Outcome {
            rto_count: 5,
            latency_us: 900_000,
            ..plain()
        };
        let mut guard = Guard::new(config());
        feed(&mut guard, S, 100, plain(), bad);
        assert_eq!(guard.verdict(S), None);
    }
}
