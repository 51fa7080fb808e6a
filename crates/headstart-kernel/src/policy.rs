//! The policy in force: which connections get which start-up, and the records of their transfers.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use headstart_core::{ParamWords, Params};
use libbpf_rs::{Iter, Link, MapCore, MapFlags, Object, OpenObject, ProgramInput, ProgramMut};

use crate::assign::SHARE_ONE;
use crate::contract;
use crate::error::KernelError;
use crate::kernel::Kernel;
use crate::objects::BpfObject;
use crate::policy_layout::{
    FlowCounter, MAX_ARMS, MAX_RULES, PARAM_SETS, RULE_STATS, RawArm, RawExplain, RawFlowKey,
    RawMove, RawPolicy, RawRule, RawRuleStats, octets,
};
use crate::policy_spec::{FlowCounts, FlowKey, PolicySpec, Rule, RuleStats};
use crate::records::RingReader;
use crate::transfer::{Transfer, control_bytes};

/// The policy in force. Nothing of it is left when it is dropped, or the process ends.
pub struct Policy {
    // The links go first: no callback may come while the maps are taken down.
    _attached: Link,
    /// Looks at every packet that arrives in the cgroup: attached when the first rule records.
    arrivals: Option<Link>,
    cgroup: File,
    move_back: Link,
    flush: Link,
    transfers: RingReader<'static, Transfer>,
    policy: Object,
    param_sets: Vec<ParamWords>,
    /// The numbers of the rules that are counted for, by their places in the map.
    counted: Vec<u32>,
    in_force: u32,
}

impl Policy {
    /// Attaches an empty policy to the cgroup whose directory is `cgroup`, and all below it.
    ///
    /// # Errors
    /// When the kernel refuses a program or the attachment.
    pub fn attach(kernel: &Kernel, cgroup: &Path) -> Result<Policy, KernelError> {
        let directory = File::open(cgroup).map_err(|error| {
            KernelError::operation(format!("opening the cgroup {}", cgroup.display()), error)
        })?;
        let mut open = BpfObject::Policy.open()?;
        share(&mut open, kernel.startup_object())?;
        let policy = BpfObject::Policy.load(open)?;
        let failed = |error| {
            KernelError::operation(
                format!("attaching the policy to {}", cgroup.display()),
                error,
            )
        };
        let attached = program(&policy, "hs_policy")?
            .attach_cgroup(directory.as_fd().as_raw_fd())
            .map_err(failed)?;
        let move_back = program(&policy, "hs_move_back")?
            .attach()
            .map_err(|error| KernelError::operation("preparing to move connections", error))?;
        let flush = {
            let flows = policy.maps().find(|map| *map.name() == *"hs_flows");
            let flows = flows.ok_or_else(|| KernelError::no_part(BpfObject::Policy, "hs_flows"))?;
            program(&policy, "hs_flush")?
                .attach_iter(flows.as_fd())
                .map_err(|error| KernelError::operation("preparing to flush records", error))?
        };
        let transfers = {
            let map = policy.maps().find(|map| *map.name() == *"hs_transfers");
            let map = map.ok_or_else(|| KernelError::no_part(BpfObject::Policy, "hs_transfers"))?;
            RingReader::new(&map, Transfer::read)?
        };
        Ok(Policy {
            transfers,
            _attached: attached,
            arrivals: None,
            cgroup: directory,
            move_back,
            flush,
            policy,
            param_sets: vec![ParamWords::default()],
            counted: Vec::new(),
            in_force: 0,
        })
    }

    /// Puts `spec` into force, as a whole: a connection sees the old policy or the new one. Open connections keep
    /// what they have, with the parameters that they have.
    ///
    /// # Errors
    /// When there are too many rules or arms, or a map cannot be written.
    pub fn apply(&mut self, spec: &PolicySpec) -> Result<(), KernelError> {
        if spec.rules.len() > MAX_RULES {
            return Err(KernelError::operation(
                "putting the policy into force",
                format!("it has {} rules, at most {MAX_RULES} go", spec.rules.len()),
            ));
        }
        let mut raw = RawPolicy {
            salt: spec.salt,
            rules: u32::try_from(spec.rules.len()).unwrap_or(0),
            sample: spec.sample.min(SHARE_ONE),
            arm_bits_v4: spec.arm_bits_v4.min(32),
            arm_bits_v6: spec.arm_bits_v6.min(128),
            names_cgroups: u8::from(spec.rules.iter().any(|rule| rule.cgroup.is_some())),
            names_devices: u8::from(spec.rules.iter().any(|rule| rule.ifindex.is_some())),
            ..RawPolicy::default()
        };
        for (slot, rule) in raw.rule.iter_mut().zip(&spec.rules) {
            *slot = self.raw_rule(rule)?;
            slot.stats_place = self.count_rule(rule.id, &spec.rules)?;
        }
        // Before anything is chosen: what it lets begin is seen from its beginning.
        if self.arrivals.is_none() && spec.rules.iter().any(|rule| rule.records) {
            let attached =
                program(&self.policy, "hs_arrives")?.attach_cgroup(self.cgroup.as_raw_fd());
            let failed = |error| KernelError::operation("attaching the look at packets", error);
            self.arrivals = Some(attached.map_err(failed)?);
        }
        let next = 1 - self.in_force;
        self.write("hs_policies", next, contract::bytes_of(&raw))?;
        self.write("hs_policy_in_force", 0, &next.to_ne_bytes())?;
        self.in_force = next;
        Ok(())
    }

    fn raw_rule(&mut self, rule: &Rule) -> Result<RawRule, KernelError> {
        if rule.arms.is_empty() || rule.arms.len() > MAX_ARMS {
            return Err(KernelError::operation(
                "putting the policy into force",
                format!("a rule has {} arms, 1 to {MAX_ARMS} go", rule.arms.len()),
            ));
        }
        let mut raw = RawRule {
            cgroup_id: rule.cgroup.map_or(0, |cgroup| cgroup.id),
            cgroup_level: rule.cgroup.map_or(0, |cgroup| cgroup.level),
            ifindex: rule.ifindex.unwrap_or(0),
            rule_id: rule.id,
            port_from: rule.ports.0,
            port_to: rule.ports.1,
            arms: u8::try_from(rule.arms.len()).unwrap_or(0),
            records: u8::from(rule.records),
            by_connection: u8::from(rule.by_connection),
            ..RawRule::default()
        };
        if let Some((addr, bits)) = rule.destination {
            (raw.family, raw.addr) = octets(addr);
            raw.bits = bits;
        }
        let mut upto = 0u32;
        for (slot, arm) in raw.arm.iter_mut().zip(&rule.arms) {
            upto = upto.saturating_add(arm.share).min(SHARE_ONE);
            *slot = RawArm {
                upto,
                cap_pkts: arm.cap_pkts.unwrap_or(0),
                param_set: self.param_set(arm.params.as_ref())?,
                changes_control: u8::from(arm.control.is_some()),
                control: control_bytes(arm.control.as_deref().unwrap_or_default()),
                ..RawArm::default()
            };
        }
        Ok(raw)
    }

    /// A set is never written again while it may be in use: after as many different ones as there are places the
    /// oldest is, and connections as old as that would go on with others' parameters.
    fn param_set(&mut self, params: Option<&Params>) -> Result<u16, KernelError> {
        let Some(params) = params else { return Ok(0) };
        // Words of two start-ups may be equal: they may share a set.
        let words = *params.words();
        let places = PARAM_SETS as usize - 1;
        let newest_first = self.param_sets.iter().enumerate().skip(1).rev();
        let known = newest_first
            .take(places)
            .find(|(_, set)| **set == words)
            .map(|(index, _)| index);
        let index = match known {
            Some(index) => index,
            None => {
                self.param_sets.push(words);
                self.param_sets.len() - 1
            }
        };
        let place = u16::try_from(1 + (index - 1) % places).unwrap_or(0);
        if known.is_none() {
            self.write(
                "hs_param_sets",
                u32::from(place),
                contract::bytes_of(&words),
            )?;
        }
        Ok(place)
    }

    /// The place in which the rule is counted for. A new one has a place of its own, or that of a rule which is no more.
    fn count_rule(&mut self, id: u32, rules: &[Rule]) -> Result<u16, KernelError> {
        let place_of =
            |wanted: &dyn Fn(u32) -> bool| self.counted.iter().position(|id| wanted(*id));
        let place = match place_of(&|known| known == id) {
            Some(place) => place,
            None => {
                let gone = |known: u32| rules.iter().all(|rule| rule.id != known);
                let place = match self.counted.len() {
                    RULE_STATS.. => place_of(&gone).unwrap_or(0),
                    place => place,
                };
                let zero = RawRuleStats::default();
                let key = u32::try_from(place).unwrap_or(0);
                self.write("hs_rule_stats", key, contract::bytes_of(&zero))?;
                if place == self.counted.len() {
                    self.counted.push(id);
                } else {
                    self.counted[place] = id;
                }
                place
            }
        };
        Ok(u16::try_from(place).unwrap_or(0))
    }

    /// What the policy in force says of a connection like `key`: the places of rule and arm. The kernel's own answer.
    ///
    /// # Errors
    /// When the program cannot be run.
    pub fn explain(&self, key: &FlowKey) -> Result<Option<(usize, usize)>, KernelError> {
        let mut raw = RawExplain {
            key: RawFlowKey {
                ifindex: key.ifindex,
                local_port: key.local_port,
                remote_port: key.remote_port,
                ..RawFlowKey::default()
            },
            ..RawExplain::default()
        };
        for (slot, id) in raw.key.cgroup_ids.iter_mut().zip(&key.cgroups) {
            *slot = *id;
        }
        (raw.key.family, raw.key.addr) = octets(key.remote_addr);
        let mut context = contract::bytes_of(&raw).to_vec();
        let failed = |error: &dyn std::fmt::Display| {
            KernelError::operation("asking the policy", error.to_string())
        };
        let returned = program(&self.policy, "hs_explain")?
            .test_run(ProgramInput {
                context_in: Some(&mut context),
                ..Default::default()
            })
            .map_err(|error| failed(&error))?
            .return_value;
        let after: Option<RawExplain> = contract::from_bytes(&context);
        match after {
            Some(after) if returned == 0 => {
                let (rule, arm) = (after.rule as usize, after.arm as usize);
                Ok((rule < MAX_RULES).then_some((rule, arm)))
            }
            _ => Err(failed(&"there is no policy")),
        }
    }

    /// Moves the connections of this process's network namespace that were given a congestion control to `control`: those
    /// of one rule, or all.
    ///
    /// [`Policy::counts`] says how many went, and how many are left: those of other network namespaces.
    ///
    /// # Errors
    /// When the kernel cannot walk its connections.
    pub fn move_back(&self, control: &str, rule: Option<u32>) -> Result<(), KernelError> {
        let raw = RawMove {
            control: control_bytes(control),
            rule_id: rule.unwrap_or(0),
        };
        self.write("hs_moves", 0, contract::bytes_of(&raw))?;
        let failed = |error: &dyn std::fmt::Display| {
            KernelError::operation("moving connections back", error)
        };
        walk(&self.move_back).map_err(|error| failed(&error))
    }

    /// The transfers that were recorded since the last call, oldest first.
    ///
    /// # Errors
    /// When the ring buffer cannot be read.
    pub fn take_transfers(&self) -> Result<Vec<Transfer>, KernelError> {
        self.transfers.take()
    }

    /// As [`Policy::take_transfers`], in the place of what is in `transfers`: whoever takes some ten times a second
    /// keeps the room for them.
    ///
    /// # Errors
    /// When the ring buffer cannot be read.
    pub fn take_transfers_into(&self, transfers: &mut Vec<Transfer>) -> Result<(), KernelError> {
        self.transfers.take_into(transfers)
    }

    /// Makes the records of transfers that have ended for half a second and that no event of their connection has
    /// made yet. Few need it, and it walks all connections: worth it where [`FlowCounts::pending`] stays above 0.
    ///
    /// # Errors
    /// When the kernel cannot walk its connections.
    pub fn flush(&self) -> Result<(), KernelError> {
        let failed = |error: &dyn std::fmt::Display| {
            KernelError::operation("flushing records of transfers", error.to_string())
        };
        walk(&self.flush).map_err(|error| failed(&error))?;
        program(&self.policy, "hs_flush_slots")?
            .test_run(ProgramInput::default())
            .map(drop)
            .map_err(|error| failed(&error))
    }

    /// What the rule has done.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn rule_stats(&self, id: u32) -> Result<RuleStats, KernelError> {
        let place = self.counted.iter().position(|known| *known == id);
        let raw: RawRuleStats = match place.map(u32::try_from) {
            Some(Ok(place)) => self.read("hs_rule_stats", place)?.unwrap_or_default(),
            _ => RawRuleStats::default(),
        };
        Ok(RuleStats {
            matched: raw.matched,
            chosen: raw.chosen,
            app_chose: raw.app_chose,
            refused: raw.refused,
        })
    }

    /// What has happened since the load.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn counts(&self) -> Result<FlowCounts, KernelError> {
        let count = |counter: FlowCounter| {
            self.read::<u64>("hs_flow_counters", counter as u32)
                .map(Option::unwrap_or_default)
        };
        Ok(FlowCounts {
            recorded: count(FlowCounter::Recorded)?,
            records_lost: count(FlowCounter::RecordsLost)?,
            opened: count(FlowCounter::Opened)?,
            closed: count(FlowCounter::Closed)?,
            moved: count(FlowCounter::Moved)?,
            stayed: count(FlowCounter::Stayed)?,
            pending: count(FlowCounter::Pending)?,
        })
    }

    fn read<T: Copy>(&self, map: &str, key: u32) -> Result<Option<T>, KernelError> {
        let value = self
            .map(map)?
            .lookup(&key.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| KernelError::operation(format!("reading {map}"), error))?;
        Ok(value.and_then(|bytes| contract::from_bytes(&bytes)))
    }

    fn write(&self, map: &str, key: u32, value: &[u8]) -> Result<(), KernelError> {
        self.map(map)?
            .update(&key.to_ne_bytes(), value, MapFlags::ANY)
            .map_err(|error| KernelError::operation(format!("writing {map}"), error))
    }

    fn map(&self, name: &str) -> Result<libbpf_rs::Map<'_>, KernelError> {
        let found = self.policy.maps().find(|map| *map.name() == *name);
        found.ok_or_else(|| KernelError::no_part(BpfObject::Policy, name))
    }
}

fn walk(link: &Link) -> Result<(), Box<dyn std::error::Error>> {
    let mut nothing = Vec::new();
    Iter::new(link)?.read_to_end(&mut nothing)?;
    Ok(())
}

/// Gives the maps of `open` that `other` has as well those of `other`.
fn share(open: &mut OpenObject, other: &Object) -> Result<(), KernelError> {
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        // Constants belong to their object.
        if name.contains(".rodata") {
            continue;
        }
        if let Some(shared) = other.maps().find(|other| *other.name() == *name) {
            map.reuse_fd(shared.as_fd())
                .map_err(|error| KernelError::operation(format!("sharing {name}"), error))?;
        }
    }
    Ok(())
}

fn program<'o>(object: &'o Object, name: &str) -> Result<ProgramMut<'o>, KernelError> {
    let found = object.progs_mut().find(|program| *program.name() == *name);
    found.ok_or_else(|| KernelError::no_part(BpfObject::Policy, name))
}
