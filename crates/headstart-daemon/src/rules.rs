//! From the rules of the file to the policy of the kernel.

use std::sync::Arc;

use headstart_kernel::{Arm, CgroupId, PolicySpec, Rule, SHARE_ONE, salt_of};

use crate::config::{Action, ArmConfig, Config, RuleAction, RuleConfig, Unit};
use crate::kept::OffRules;

/// The prefixes that are assigned to an arm as a whole.
pub(crate) const ARM_BITS: (u8, u8) = (24, 48);

/// Numbers of rules. A rule that a reload does not change keeps its number; none is given twice.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// Number 1 is the first.
    known: Vec<Named>,
}

/// What a number stands for, also when its rule is gone: connections carry it on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named {
    pub(crate) rule: RuleConfig,
    pub(crate) arms: Vec<ArmConfig>,
    /// As records have them.
    pub(crate) name: Arc<str>,
    pub(crate) arm_names: Vec<Arc<str>>,
}

impl Numbers {
    pub(crate) fn of(&mut self, rule: &RuleConfig, arms: &[ArmConfig]) -> u32 {
        let known = self
            .known
            .iter()
            .position(|named| named.rule == *rule && named.arms == arms);
        if let Some(place) = known {
            return number_of(place);
        }
        let named = Named {
            rule: rule.clone(),
            arms: arms.to_vec(),
            name: rule.name.as_str().into(),
            arm_names: arms.iter().map(|arm| arm.name.as_str().into()).collect(),
        };
        self.known.push(named);
        number_of(self.known.len() - 1)
    }

    pub(crate) fn named(&self, number: u32) -> Option<&Named> {
        self.known.get((number as usize).checked_sub(1)?)
    }
}

fn number_of(place: usize) -> u32 {
    u32::try_from(place + 1).unwrap_or(u32::MAX)
}

/// A rule of the file as it stands now.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) number: u32,
    pub(crate) config: RuleConfig,
    pub(crate) arms: Vec<ArmConfig>,
    /// What it waits for: a cgroup or a device that is not there.
    pub(crate) waits_for: Option<String>,
    /// Why it is off.
    pub(crate) off: Option<String>,
}

/// The policy, and the rules that it is of. A rule that waits is not part of the policy: `places` are those that are.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) spec: PolicySpec,
    pub(crate) standing: Vec<Standing>,
    pub(crate) places: Vec<usize>,
    /// What was looked up: when it changes, the policy has to be made anew.
    pub(crate) looked_up: Vec<(Option<CgroupId>, Option<u32>)>,
}

/// Looks up what the rules name on this machine. `slice_arm` is the arm in force where an experiment is by time.
pub(crate) fn resolve(
    config: &Config,
    numbers: &mut Numbers,
    off: &OffRules,
    slice_arm: Option<usize>,
) -> Resolved {
    let unit = config.experiment.as_ref().map(|experiment| experiment.unit);
    let mut resolved = Resolved {
        spec: PolicySpec {
            salt: config
                .experiment
                .as_ref()
                .map_or(0, |experiment| salt_of(&experiment.salt)),
            sample: SHARE_ONE * u32::from(config.records.sample_percent) / 100,
            arm_bits_v4: ARM_BITS.0,
            arm_bits_v6: ARM_BITS.1,
            rules: Vec::new(),
        },
        standing: Vec::new(),
        places: Vec::new(),
        looked_up: look_up(config),
    };
    for (place, (rule, (cgroup, ifindex))) in
        config.rules.iter().zip(&resolved.looked_up).enumerate()
    {
        let arms = config.arms(rule);
        let number = numbers.of(rule, &arms);
        let reason = off.reason(&rule.name).map(str::to_owned);
        let waits_for = match (&rule.cgroup, cgroup, &rule.interface, ifindex) {
            (Some(path), None, _, _) => Some(format!("the cgroup {}", path.display())),
            (_, _, Some(name), None) => Some(format!("the device {name}")),
            _ => None,
        };
        if waits_for.is_none() {
            resolved.places.push(place);
            let experiment = rule.action == RuleAction::Experiment;
            let shares = |place: usize, arm: &ArmConfig| match slice_arm.filter(|_| experiment) {
                Some(in_force) => SHARE_ONE * u32::from(place == in_force),
                None => share_of(arm.share_percent),
            };
            resolved.spec.rules.push(Rule {
                id: number,
                cgroup: *cgroup,
                ifindex: *ifindex,
                ports: rule.ports,
                destination: rule.destination,
                records: rule.records,
                by_connection: experiment && unit == Some(Unit::Connection),
                arms: arms
                    .iter()
                    .enumerate()
                    .map(|(place, arm)| Arm {
                        share: shares(place, arm),
                        ..kernel_arm(arm, rule, reason.is_some())
                    })
                    .collect(),
            });
        }
        resolved.standing.push(Standing {
            number,
            config: rule.clone(),
            arms,
            waits_for,
            off: reason,
        });
    }
    resolved
}

/// What the rules name, as it is now.
pub(crate) fn look_up(config: &Config) -> Vec<(Option<CgroupId>, Option<u32>)> {
    let rules = config.rules.iter();
    rules
        .map(|rule| {
            let cgroup = rule.cgroup.as_deref().and_then(CgroupId::of);
            let ifindex = rule
                .interface
                .as_deref()
                .and_then(|name| nix::net::if_::if_nametoindex(name).ok());
            (cgroup, ifindex)
        })
        .collect()
}

/// A share of [`SHARE_ONE`].
pub(crate) fn share_of(percent: u8) -> u32 {
    SHARE_ONE * u32::from(percent) / 100
}

/// Without its share. A rule that is off matches and records as before: what it would have treated is left alone.
fn kernel_arm(arm: &ArmConfig, rule: &RuleConfig, off: bool) -> Arm {
    if off {
        return Arm::default();
    }
    let (control, params) = match &arm.action {
        Action::LeaveAlone => (None, None),
        Action::Native(name) => (Some(name.clone()), None),
        Action::Startup(params) => (Some(params.startup().name().to_owned()), Some(*params)),
    };
    Arm {
        share: 0,
        control,
        params,
        cap_pkts: rule.cap_pkts,
    }
}
