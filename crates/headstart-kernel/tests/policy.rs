//! A policy in force on connections of real sockets.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::thread::sleep;
use std::time::Duration;

use headstart_core::{Params, Startup, why_name};
use headstart_kernel::CgroupId;
use support::*;

#[test]
fn a_rule_chooses_by_port_prefix_and_cgroup_and_the_first_that_matches_decides() {
    let _lock = one_at_a_time();
    let Some(mut stage) = stage("20mbit", 20, 400) else {
        return;
    };
    let here = CgroupId::of(stage.cgroup.path()).unwrap();
    let elsewhere = CgroupId {
        id: here.id + 1,
        ..here
    };
    let mut by_cgroup = rule(1, Some("su_standard"));
    by_cgroup.cgroup = Some(elsewhere);
    let mut by_port = rule(2, Some("su_standard"));
    by_port.ports = (9000, 9999);
    let mut by_prefix = rule(3, Some("su_standard"));
    by_prefix.destination = Some(("10.78.0.0".parse().unwrap(), 16));
    let mut all_of_it = rule(4, Some("su_fast_start"));
    all_of_it.cgroup = Some(here);
    all_of_it.ports = (8080, 8080);
    all_of_it.destination = Some(("10.77.1.0".parse().unwrap(), 24));
    let rules = vec![by_cgroup, by_port, by_prefix, all_of_it, rule(5, None)];
    stage.policy.apply(&policy_of(rules)).unwrap();
    stage.lane.connect().fetch(5_000);
    let record = &stage.records(1)[0];
    assert_eq!(
        (record.rule_id, record.control.as_str()),
        (4, "su_fast_start")
    );
    let stats = stage.policy.rule_stats(4).unwrap();
    assert_eq!((stats.matched, stats.chosen, stats.app_chose), (1, 1, 0));
    assert_eq!(stage.policy.rule_stats(1).unwrap().matched, 0);
    let why = record.why.map(|(why, _)| why_name(why));
    assert!(why.is_some(), "{record:?}");
    // IPv6 falls through to the last rule, which leaves alone.
    stage.lane.connect_v6().fetch(5_000);
    let record = &stage.records(1)[0];
    assert_eq!(record.rule_id, 5);
    assert!(!record.control.starts_with("su_"));
}

#[test]
fn what_the_application_chose_itself_is_left_alone() {
    let Some(mut stage) = native_stage("20mbit", 20, 400) else {
        return;
    };
    stage
        .policy
        .apply(&policy_of(vec![rule(1, Some("reno"))]))
        .unwrap();
    // Also where it chose what it would have had anyway.
    for control in ["cubic", "reno", "bbr"] {
        stage.lane.server_uses(control);
        stage.lane.connect().fetch(5_000);
        assert_eq!(stage.records(1)[0].control, control);
    }
    let stats = stage.policy.rule_stats(1).unwrap();
    assert_eq!((stats.matched, stats.chosen, stats.app_chose), (3, 0, 3));
}

#[test]
fn two_rules_give_one_start_up_their_own_parameters_and_a_reload_leaves_open_connections_alone() {
    let _lock = one_at_a_time();
    let Some(mut stage) = stage("50mbit", 60, 400) else {
        return;
    };
    let with = |id: u32, iw_pkts: u64, port: u16| {
        let mut params = Params::new(Startup::named("su_standard").unwrap());
        params.set("iw_pkts", iw_pkts).unwrap();
        let mut rule = rule(id, Some("su_standard"));
        rule.arms[0].params = Some(params);
        rule.ports = (port, port);
        rule
    };
    stage
        .policy
        .apply(&policy_of(vec![with(1, 3, 8080), with(2, 20, 8081)]))
        .unwrap();
    let mut client = stage.lane.connect();
    client.fetch(50_000);
    assert_eq!(stage.records(1)[0].initial_cwnd_pkts, 3);
    stage
        .policy
        .apply(&policy_of(vec![with(3, 30, 8080)]))
        .unwrap();
    // Longer than the RTO: the window is cut to the restart window, which is the connection's own initial one.
    sleep(Duration::from_secs(3));
    client.fetch(50_000);
    let record = &stage.records(1)[0];
    assert_eq!((record.rule_id, record.initial_cwnd_pkts), (1, 3));
    stage.lane.connect().fetch(50_000);
    let record = &stage.records(1)[0];
    assert_eq!((record.rule_id, record.initial_cwnd_pkts), (3, 30));
}

#[test]
fn a_cap_is_above_every_window() {
    let Some(mut stage) = native_stage("50mbit", 60, 1000) else {
        return;
    };
    let mut capped = rule(1, Some("cubic"));
    capped.arms[0].cap_pkts = Some(16);
    stage.policy.apply(&policy_of(vec![capped])).unwrap();
    let mut client = stage.lane.connect();
    client.fetch(300_000);
    let record = &stage.records(1)[0];
    assert_eq!(record.control, "cubic");
    assert!(record.end_cwnd_pkts <= 16, "{record:?}");
}

#[test]
fn off_moves_live_connections_back_and_new_ones_are_left_alone() {
    let Some(mut stage) = native_stage("20mbit", 40, 400) else {
        return;
    };
    stage
        .policy
        .apply(&policy_of(vec![rule(1, Some("reno"))]))
        .unwrap();
    let mut client = stage.lane.connect();
    client.fetch(100_000);
    assert_eq!(stage.records(1)[0].control, "reno");
    assert_eq!(stage.policy.counts().unwrap().live(), 1);
    stage.policy.apply(&policy_of(Vec::new())).unwrap();
    // The walk sees the namespace that it is made in; here the connection is in another.
    stage.policy.move_back("cubic", None).unwrap();
    assert_eq!(stage.policy.counts().unwrap().moved, 0);
    let (policy, server) = (&stage.policy, stage.lane.emulation.server());
    in_namespace(server, || policy.move_back("cubic", None).unwrap());
    let counts = stage.policy.counts().unwrap();
    assert_eq!((counts.moved, counts.stayed, counts.live()), (1, 0, 0));
    client.fetch(100_000);
    assert_eq!(stage.records(1)[0].control, "cubic", "it is still recorded");
    stage.lane.connect().fetch(10_000);
    sleep(Duration::from_millis(200));
    assert!(stage.policy.take_transfers().unwrap().is_empty());
    drop(stage.kernel);
}

/// In the calling thread: what the policy holds stays on its thread.
fn in_namespace(namespace: &headstart_path::Namespace, work: impl FnOnce()) {
    let own = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
    let other = namespace
        .run(|| std::fs::File::open("/proc/thread-self/ns/net").unwrap())
        .unwrap();
    nix::sched::setns(other, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
    work();
    nix::sched::setns(own, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
}
