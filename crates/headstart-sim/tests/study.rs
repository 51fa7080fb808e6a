//! The scenarios that ship, and what a user may write wrong.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use std::path::Path;

use headstart_scenario::{CaseKind, Scenario};
use headstart_sim::study::{Control, Study, StudyOutcome};

fn shipped(name: &str) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    Scenario::load(&folder.join(name)).unwrap()
}

fn study(scenario: Scenario, repeat: u32, details: bool) -> Study {
    Study::new(scenario, None, Some(repeat), None, &[], details).unwrap()
}

fn run(study: &Study, threads: usize) -> StudyOutcome {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    pool.install(|| study.run(&Control::default(), &mut ()))
        .unwrap()
}

/// The medians that the kernel gave over the same path, in ms (README): 1 % is allowed.
#[test]
fn the_satellite_scenario_comes_out_as_on_the_kernel() {
    let outcome = run(&study(shipped("satellite.toml"), 1, false), 2);
    let expected = [
        ("cubic", CaseKind::ResumeWarm, 1210.9),
        ("su_standard", CaseKind::ResumeWarm, 1210.4),
        ("su_fast_start", CaseKind::ResumeWarm, 438.5),
        ("cubic", CaseKind::NewWarm, 1611.8),
        ("su_standard", CaseKind::NewWarm, 1611.4),
        ("su_fast_start", CaseKind::NewWarm, 838.3),
        ("cubic", CaseKind::NewCold, 1611.6),
        ("su_standard", CaseKind::NewCold, 1611.3),
        ("su_fast_start", CaseKind::NewCold, 1611.4),
    ];
    for (startup, case, kernel_ms) in expected {
        let of = |cell: &&headstart_scenario::Cell| cell.startup == startup && cell.case == case;
        let cell = outcome.cells.iter().find(of).unwrap();
        let median_ms = cell.fct_ms.unwrap().median;
        let what = format!("{startup} {case}: {median_ms} ms, kernel {kernel_ms} ms");
        assert!((median_ms / kernel_ms - 1.0).abs() < 0.01, "{what}");
        assert_eq!(cell.router_drops.unwrap().max, 0);
        assert!(cell.valid);
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let cases = study(shipped("satellite.toml"), 2, true);
    let (one, three) = (run(&cases, 1), run(&cases, 3));
    assert_eq!(one.transfers, three.transfers);
    assert_eq!(one.packets, three.packets);
    assert_eq!(one.windows, three.windows);
    let traffic = study(shipped("peer-b.toml"), 3, false);
    let (one, three) = (run(&traffic, 1), run(&traffic, 3));
    assert_eq!(one.traffic, three.traffic);
    assert_eq!(one.links, three.links);
}

#[test]
fn the_peers_scenarios_finish_what_they_are_asked_for() {
    let finished = |name: &str| {
        let outcome = run(&study(shipped(name), 1, false), 1);
        (outcome.traffic[0].transfers, outcome.traffic[0].unfinished)
    };
    assert_eq!(finished("peer-b.toml"), (300, 0));
    assert_eq!(finished("peer-c.toml"), (1000, 0));
    let outcome = run(&study(shipped("peer-a.toml"), 1, false), 1);
    assert!(outcome.links[0].utilisation > 0.98);
    assert!(outcome.links[0].longest_queue_pkts <= 850);
}

#[test]
fn a_study_that_is_ended_keeps_what_is_done_and_says_so() {
    let control = Control::default();
    control.stop();
    let outcome = study(shipped("peer-a.toml"), 1, false)
        .run(&control, &mut ())
        .unwrap();
    assert!(outcome.stopped);
    assert_eq!(outcome.traffic[0].runs, 0);
}

const GOOD: &str = r#"name = "t"
[path]
rate = "10mbit"
rtt = "40ms"
queue = "drop-tail:50"
[compare]
startups = ["cubic"]
repeat = 1
[transport]
recovery = "sack"
[[link]]
name = "far"
rate = "5mbit"
delay = "10ms"
queue = "drop-tail:20"
[[traffic]]
name = "web"
kind = "users"
users = 3
pages = 2
bytes = "exp:10kB"
think = "exp:1s"
route = ["forward", "far"]
"#;

fn complaint(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from));
    match Scenario::parse("t.toml", &GOOD.replace(from, to)) {
        Err(error) => error.to_string(),
        Ok(scenario) => Study::new(scenario, None, None, None, &[], false)
            .unwrap_err()
            .to_string(),
    }
}

#[test]
fn a_mistake_in_the_simulators_tables_is_named_with_its_line() {
    let scenario = Scenario::parse("t.toml", GOOD).unwrap();
    assert_eq!(run(&study(scenario, 1, false), 1).traffic[0].transfers, 6);
    for (from, to, expected) in [
        ("recovery", "recovry", "t.toml:10: unknown key \"recovry\""),
        ("\"sack\"", "\"sak\"", "did you mean \"sack\"?"),
        (
            "kind = \"users\"",
            "kind = \"usrs\"",
            "t.toml:18: kind \"usrs\"",
        ),
        ("think", "gap", "unknown key \"gap\""),
        ("\"exp:10kB\"", "\"exq:10kB\"", "t.toml:21:"),
        ("\"far\"]", "\"faar\"]", "did you mean \"far\"?"),
        ("users = 3", "users = 0", "give a whole number from 1"),
        ("name = \"far\"", "name = \"forward\"", "is there already"),
        ("users = 3", "startup = \"su_fast_strat\"", "su_fast_start"),
    ] {
        let complaint = complaint(from, to);
        assert!(complaint.contains(expected), "{from} -> {to}: {complaint}");
    }
}
