//! A server that writes the head of its answer at once and the body later, from a scenario's text.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use headstart_scenario::Scenario;
use headstart_sim::study::{Control, Study};

/// 100 ms and no bottleneck: what counts is whole round trips and the server's pause.
const PAGE: &str = r#"
name = "page"
[path]
rate = "100gbit"
rtt = "100ms"
queue = "drop-tail:10000"
[compare]
startups = ["cubic"]
repeat = 1
[transport]
mss_bytes = 1000
handshake = "none"
initial_window_pkts = 3
[[traffic]]
name = "page"
kind = "arrivals"
gap = "1s"
transfers = 1
bytes = "12kB"
head = "4kB"
body_after = "200ms"
"#;

fn scenario(text: &str) -> Result<Scenario, String> {
    Scenario::parse("page.toml", text).map_err(|error| error.to_string())
}

/// The transfer's time in whole milliseconds.
fn took_ms(text: &str) -> u64 {
    let study = Study::new(scenario(text).unwrap(), None, None, None, &[], false).unwrap();
    let outcome = study.run(&Control::default(), &mut ()).unwrap();
    outcome.traffic[0].fct_ms.unwrap().median as u64
}

#[test]
fn the_body_leaves_when_it_is_there_and_slow_start_has_grown_meanwhile() {
    // 3, 6 and 3 packets; the last of them are half a round trip on their way.
    let at_once = PAGE.replace("head = \"4kB\"\nbody_after = \"200ms\"\n", "");
    assert_eq!(took_ms(&at_once), 250);
    // 3 and 1 of the head; then 8 of the body, of which a window of 6 or 7 leaves at once.
    assert_eq!(took_ms(PAGE), 350);
    // The pause hides what a window of 3 needs for its head, not what it needs for the body.
    let ten = PAGE.replace("initial_window_pkts = 3", "initial_window_pkts = 10");
    assert_eq!(took_ms(&ten), 250);
    let later = PAGE.replace("200ms", "730ms");
    assert_eq!(took_ms(&later), 880);
}

#[test]
fn an_answer_that_fits_its_head_waits_for_nothing() {
    assert_eq!(took_ms(&PAGE.replace("12kB", "3kB")), 50);
    assert_eq!(took_ms(&PAGE.replace("12kB", "4kB")), 150);
}

#[test]
fn a_persistent_connection_does_not_mix_one_answer_with_the_next() {
    let burst = PAGE.replace(
        "gap = \"1s\"\ntransfers = 1",
        "gap = \"1ms\"\ntransfers = 5\nconnections = 1",
    );
    let study = Study::new(scenario(&burst).unwrap(), None, None, None, &[], true).unwrap();
    let outcome = study.run(&Control::default(), &mut ()).unwrap();
    assert_eq!(outcome.traffic[0].transfers, 5);
    // Each body comes 200 ms after its own head, and 50 ms later at the receiver; the next is served then.
    let mean_ms = outcome.traffic[0].fct_ms.unwrap().mean;
    assert!(mean_ms > 745.0, "{mean_ms} ms");
}

#[test]
fn the_two_keys_belong_together() {
    for key in ["head = \"4kB\"\n", "body_after = \"200ms\"\n"] {
        let complaint = scenario(&PAGE.replace(key, "")).unwrap_err();
        let name = key.split(' ').next().unwrap();
        assert!(complaint.contains(name), "{complaint}");
    }
}
