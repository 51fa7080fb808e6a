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

/// A download of 20 kB beside one without end.
const ENDS: &str = r#"
name = "ends"
[path]
rate = "10mbit"
rtt = "100ms"
queue = "drop-tail:50"
[simulation]
until = "60s"
ends_with = ["short"]
[compare]
startups = ["su_fast_start"]
repeat = 1
[[traffic]]
name = "endless"
kind = "bulk"
startup = "reno"
destination = 1
[[traffic]]
name = "short"
kind = "arrivals"
start = "2s"
gap = "exp:1s"
transfers = 3
bytes = "20kB"
"#;

fn traffic_of(text: &str) -> StudyOutcome {
    let scenario = Scenario::parse("ends.toml", text).unwrap();
    run(&study(scenario, 1, false), 1)
}

#[test]
fn a_run_ends_with_the_traffic_that_it_is_told_to_end_with() {
    let ended = traffic_of(ENDS);
    let short = ended.traffic.iter().find(|cell| cell.group == "short");
    assert_eq!(short.unwrap().transfers, 3);
    let whole = traffic_of(&ENDS.replace("ends_with = [\"short\"]\n", ""));
    let (early_pkts, whole_pkts) = (ended.links[0].out_pkts, whole.links[0].out_pkts);
    assert!(early_pkts * 2 < whole_pkts, "{early_pkts} of {whole_pkts}");
    let error = Scenario::parse("ends.toml", &ENDS.replace("[\"short\"]", "[\"shrot\"]"));
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("ends.toml:9") && error.contains("short"),
        "{error}"
    );
}

#[test]
fn a_path_that_is_known_at_the_start_is_started_from() {
    let cold = ENDS.replace("20kB", "200kB");
    let warm = format!("{cold}[[memory]]\nwindow_pkts = 60\nrtt = \"100ms\"\n");
    let exits = |text: &str| traffic_of(text).traffic;
    let mean_ms = |text: &str| {
        let cells = exits(text);
        let cell = cells.iter().find(|cell| cell.group == "short").unwrap();
        cell.fct_ms.unwrap().mean
    };
    assert!(
        mean_ms(&warm) < mean_ms(&cold),
        "{} {}",
        mean_ms(&warm),
        mean_ms(&cold)
    );
    let twice = format!("{warm}[[memory]]\nwindow_pkts = 6\nrtt = \"1s\"\n");
    let error = Scenario::parse("ends.toml", &twice)
        .unwrap_err()
        .to_string();
    assert!(error.contains("destination"), "{error}");
    let none = warm.replace("window_pkts", "window_packets");
    let error = Scenario::parse("ends.toml", &none).unwrap_err().to_string();
    assert!(error.contains("window_pkts"), "{error}");
}

/// RFC 6675, NextSeg, rule (3): of six packets the second and the fourth are lost; two come after the
/// fourth, too few to call it lost, and there is no new data. It is sent again all the same, where a
/// timer would take a second.
#[test]
fn what_may_be_lost_is_sent_again_where_there_is_nothing_else_to_send() {
    let text = r#"
name = "rule-3"
[path]
rate = "10mbit"
rtt = "100ms"
queue = "drop-tail:50"
loss = "packets:2,4"
[transport]
model = "sack"
initial_window_pkts = 6
min_rto = "1s"
[compare]
startups = ["reno"]
repeat = 1
[[traffic]]
name = "one"
kind = "bulk"
bytes = "6kB"
"#;
    let cell = &traffic_of(text).traffic[0];
    let took_ms = cell.fct_ms.unwrap().mean;
    assert_eq!(cell.retransmitted_pkts.unwrap().max, 2);
    assert!((200.0..400.0).contains(&took_ms), "{took_ms} ms");
}
