//! Who is compared with whom: a rule's start-up with what it leaves alone, or an experiment's arms with its baseline.

use std::collections::BTreeMap;

use crate::config::{Action, ArmConfig, Config, Margins, RuleAction, RuleConfig};
use crate::guard::{Guard, Outcome};

#[derive(Debug)]
struct Watch {
    /// What goes before the verdict's words: the arm, where there are several.
    of: String,
    treated: Vec<usize>,
    baseline: Vec<usize>,
    guard: Guard,
}

/// The guards of all rules.
#[derive(Debug, Default)]
pub struct Watches(BTreeMap<String, Vec<Watch>>);

impl Watches {
    /// None knows anything yet.
    pub fn of(config: &Config) -> Watches {
        let rules = config.rules.iter();
        Watches(
            rules
                .map(|rule| (rule.name.clone(), watches(config, rule)))
                .collect(),
        )
    }

    /// A transfer of an arm of a rule has ended at `now_ns`, `CLOCK_MONOTONIC`.
    pub fn add(&mut self, now_ns: u64, rule: &str, arm: usize, outcome: &Outcome) {
        for watch in self.0.get_mut(rule).into_iter().flatten() {
            let treated = watch.treated.contains(&arm);
            if treated || watch.baseline.contains(&arm) {
                watch.guard.add(
                    now_ns,
                    &Outcome {
                        treated,
                        ..*outcome
                    },
                );
            }
        }
    }

    /// The rules that have to be turned off, with why.
    pub fn verdicts(&mut self, now_ns: u64) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (rule, watches) in &mut self.0 {
            let worse = watches.iter_mut().find_map(|watch| {
                let why = watch.guard.verdict(now_ns)?;
                Some(format!("{}{why}", watch.of))
            });
            found.extend(worse.map(|why| (rule.clone(), why)));
        }
        found
    }
}

fn watches(config: &Config, rule: &RuleConfig) -> Vec<Watch> {
    let arms = config.arms(rule);
    match (&rule.action, &config.experiment) {
        (RuleAction::Experiment, Some(experiment)) if experiment.stop.is_some() => {
            let margins = experiment.stop.unwrap_or_default();
            let others = (0..arms.len()).filter(|arm| *arm != experiment.baseline);
            others
                .map(|arm| Watch {
                    of: format!("arm {}: ", arms[arm].name),
                    treated: vec![arm],
                    baseline: vec![experiment.baseline],
                    guard: Guard::new(margins),
                })
                .collect()
        }
        _ => config
            .guard
            .map(|guard| start_ups(&arms, guard.margins))
            .into_iter()
            .collect(),
    }
}

/// The arms with a start-up, against those without.
fn start_ups(arms: &[ArmConfig], margins: Margins) -> Watch {
    let (treated, baseline) =
        (0..arms.len()).partition(|arm| matches!(arms[*arm].action, Action::Startup(_)));
    Watch {
        of: String::new(),
        treated,
        baseline,
        guard: Guard::new(margins),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const EXPERIMENT: &str = "[experiment]\nname = \"x\"\nsalt = \"y\"\nbaseline = \"iw3\"\n\
        [experiment.stop]\nwindow = \"60s\"\nmin_transfers = 50\ntimeout_points = 3\n\
        [[experiment.arm]]\nname = \"iw10\"\nshare_percent = 40\nstartup = \"su_standard\"\n\
        [[experiment.arm]]\nname = \"iw3\"\nshare_percent = 40\nstartup = \"su_standard\"\nparams = { iw_pkts = 3 }\n\
        [[experiment.arm]]\nname = \"iw100\"\nshare_percent = 20\nstartup = \"su_standard\"\nparams = { iw_pkts = 100 }\n\
        [[rule]]\nname = \"web\"\nstartup = \"experiment\"\n\
        [[rule]]\nname = \"rest\"\nstartup = \"su_standard\"\n";

    fn of(text: &str) -> Watches {
        Watches::of(&Config::parse("headstart.toml", text, &[]).unwrap())
    }

    fn feed(watches: &mut Watches, arm: usize, rto_count: u32) {
        for _ in 0..60 {
            let outcome = Outcome {
                bytes: 10_000,
                latency_us: 100_000,
                rto_count,
                ..Outcome::default()
            };
            watches.add(S, "web", arm, &outcome);
            watches.add(S, "rest", 0, &outcome);
        }
    }

    #[test]
    fn an_arm_that_is_worse_than_the_baseline_stops_the_experiment_and_is_named() {
        let mut watches = of(EXPERIMENT);
        feed(&mut watches, 0, 0);
        feed(&mut watches, 1, 0);
        feed(&mut watches, 2, 1);
        let verdicts = watches.verdicts(S);
        assert_eq!(
            verdicts.len(),
            1,
            "a rule without a guard is not judged: {verdicts:?}"
        );
        assert_eq!(verdicts[0].0, "web");
        assert!(
            verdicts[0]
                .1
                .starts_with("arm iw100: 100.00 timeouts in 100 transfers against 0.00")
        );
    }

    #[test]
    fn a_baseline_that_is_worse_than_all_stops_nothing() {
        let mut watches = of(EXPERIMENT);
        feed(&mut watches, 0, 0);
        feed(&mut watches, 1, 1);
        feed(&mut watches, 2, 0);
        assert!(watches.verdicts(S).is_empty());
    }

    #[test]
    fn alike_arms_stop_nothing() {
        let mut watches = of(EXPERIMENT);
        for arm in 0..3 {
            feed(&mut watches, arm, 1);
        }
        assert!(watches.verdicts(S).is_empty());
    }

    /// The first arm is the baseline where none is named.
    #[test]
    fn the_first_arm_is_what_others_are_compared_with() {
        let mut watches = of(&EXPERIMENT.replace("baseline = \"iw3\"\n", ""));
        feed(&mut watches, 0, 0);
        feed(&mut watches, 1, 1);
        assert!(watches.verdicts(S)[0].1.starts_with("arm iw3: "));
    }
}
