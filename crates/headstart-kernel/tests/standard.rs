//! `su_standard` on the live kernel: plain slow start, as native, with the initial window a parameter.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::thread::sleep;
use std::time::Duration;

use support::*;

const RTT_MS: u64 = 100;

#[test]
fn su_standard_sends_the_same_flights_as_native_cubic() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&everything()) else {
        return;
    };
    let lane = Lane::wide(&kernel, RTT_MS);
    let mut seen = Vec::new();
    for name in ["cubic", "su_standard"] {
        lane.server_uses(name);
        let mut client = lane.connect();
        client.fetch(400_000);
        seen.push(flights(&lane.wire(&client), RTT_MS));
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(
        seen[0],
        [10, 20, 40, 80, 127],
        "five round trips of plain slow start"
    );
}

#[test]
fn the_initial_window_is_a_parameter_on_a_new_connection_and_after_idle() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&only("su_standard", &[("iw_pkts", 30)])) else {
        return;
    };
    let lane = Lane::wide(&kernel, RTT_MS);
    lane.server_uses("su_standard");
    let mut client = lane.connect();
    client.fetch(200_000);
    assert_eq!(flights(&lane.wire(&client), RTT_MS)[0], 30);
    // Long enough for any window to have decayed to the restart window.
    sleep(Duration::from_secs(4));
    client.fetch(200_000);
    assert_eq!(flights(&lane.wire(&client), RTT_MS)[0], 30);
}

#[test]
fn after_idle_su_standard_restarts_as_native_cubic_does() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&everything()) else {
        return;
    };
    let lane = Lane::wide(&kernel, RTT_MS);
    for name in ["cubic", "su_standard"] {
        lane.server_uses(name);
        let mut client = lane.connect();
        client.fetch(100_000);
        lane.wire(&client);
        sleep(Duration::from_secs(4));
        client.fetch(100_000);
        assert_eq!(flights(&lane.wire(&client), RTT_MS)[0], 10, "{name}");
    }
}
