//! The kernel's rules: its answer is the one that the file of rules would give, and its assignment the one that
//! user space computes.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::net::IpAddr;

use headstart_kernel::{
    Arm, Cgroup, CgroupId, FlowKey, Kernel, Options, Policy, PolicySpec, Rule, SHARE_ONE, assign,
    assign_connection,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

fn addresses() -> impl Strategy<Value = IpAddr> {
    // Few values, so that prefixes meet.
    let v4 =
        (0u8..3, 0u8..3, 0u8..3, any::<u8>()).prop_map(|(a, b, c, d)| IpAddr::from([a, b, c, d]));
    let v6 = (0u16..3, 0u16..3, any::<u16>())
        .prop_map(|(a, b, c)| IpAddr::from([0x2001, a, b, 0, 0, 0, 0, c]));
    prop_oneof![v4, v6]
}

fn rules() -> impl Strategy<Value = Rule> {
    let cgroup =
        prop::option::of((1u64..4, 1u32..4).prop_map(|(id, level)| CgroupId { id, level }));
    let destination = prop::option::of(
        (addresses(), any::<u8>())
            .prop_map(|(addr, bits)| (addr, bits % if addr.is_ipv4() { 33 } else { 129 })),
    );
    let ports = (0u16..4, 0u16..4).prop_map(|(first, more)| (first, first + more));
    let arms = prop::collection::vec(0u32..SHARE_ONE, 1..=4);
    let by_connection = any::<bool>();
    (
        cgroup,
        prop::option::of(1u32..3),
        ports,
        destination,
        arms,
        by_connection,
    )
        .prop_map(
            |(cgroup, ifindex, ports, destination, shares, by_connection)| Rule {
                id: 1,
                cgroup,
                ifindex,
                ports,
                destination,
                records: false,
                by_connection,
                arms: shares
                    .into_iter()
                    .map(|share| Arm {
                        share,
                        ..Arm::default()
                    })
                    .collect(),
            },
        )
}

fn keys() -> impl Strategy<Value = FlowKey> {
    (
        prop::collection::vec(0u64..4, 0..5),
        0u32..3,
        0u16..8,
        addresses(),
        any::<u16>(),
    )
        .prop_map(
            |(cgroups, ifindex, local_port, remote_addr, remote_port)| FlowKey {
                cgroups,
                ifindex,
                local_port,
                remote_addr,
                remote_port,
            },
        )
}

fn within(addr: IpAddr, (prefix, bits): (IpAddr, u8)) -> bool {
    let number = |addr: IpAddr| match addr {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), 32u32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    };
    let ((ours, width), (theirs, other)) = (number(addr), number(prefix));
    width == other
        && (ours ^ theirs)
            .checked_shr(width - u32::from(bits))
            .unwrap_or(0)
            == 0
}

fn matches(rule: &Rule, key: &FlowKey) -> bool {
    let in_cgroup = |cgroup: CgroupId| key.cgroups.get(cgroup.level as usize) == Some(&cgroup.id);
    rule.cgroup.is_none_or(in_cgroup)
        && rule.ifindex.is_none_or(|ifindex| ifindex == key.ifindex)
        && (rule.ports.0..=rule.ports.1).contains(&key.local_port)
        && rule
            .destination
            .is_none_or(|prefix| within(key.remote_addr, prefix))
}

fn arm_of(rule: &Rule, salt: u64, key: &FlowKey) -> usize {
    let bits = if key.remote_addr.is_ipv4() { 24 } else { 48 };
    let place = if rule.by_connection {
        assign_connection(salt, key.remote_addr, key.local_port, key.remote_port)
    } else {
        assign(salt, key.remote_addr, bits)
    };
    let mut upto = 0u32;
    let within = |arm: &Arm| {
        upto = upto.saturating_add(arm.share).min(SHARE_ONE);
        place < upto
    };
    let found = rule.arms.iter().position(within);
    found.unwrap_or(rule.arms.len() - 1)
}

#[test]
fn the_kernels_choice_is_the_first_rule_that_matches_and_the_arm_that_user_space_computes() {
    // No name is registered: no lock is needed.
    let Some(kernel): Option<Kernel> = support::kernel(&Options::default()) else {
        return;
    };
    let cgroup = Cgroup::create().unwrap();
    let policy = Policy::attach(&kernel, cgroup.path()).unwrap();
    let policy = std::cell::RefCell::new(policy);
    let given = (
        any::<u64>(),
        prop::collection::vec(rules(), 0..6),
        prop::collection::vec(keys(), 1..20),
    );
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let mut matched = 0;
    let matched_ref = std::cell::RefCell::new(&mut matched);
    runner
        .run(&given, |(salt, rules, keys)| {
            let spec = PolicySpec {
                salt,
                ..support::policy_of(rules)
            };
            policy.borrow_mut().apply(&spec).unwrap();
            for key in keys {
                let first = spec.rules.iter().position(|rule| matches(rule, &key));
                let expected = first.map(|place| (place, arm_of(&spec.rules[place], salt, &key)));
                let answer = policy.borrow().explain(&key).unwrap();
                prop_assert_eq!(answer, expected, "{:?}", key);
                **matched_ref.borrow_mut() += u32::from(answer.is_some());
            }
            Ok(())
        })
        .unwrap();
    assert!(
        matched > 300,
        "too few rules matched: the test shows little"
    );
}
