//! Paced slow start on the live kernel. What is asserted of packets was seen on the wire.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use headstart_kernel::Kernel;
use headstart_path::PacketRecord;
use support::*;

const RTT_MS: u64 = 100;

/// 20 Mbit/s hold 166 packets in flight.
fn fetch(kernel: &Kernel, startup: &str, v6: bool) -> Vec<PacketRecord> {
    let lane = roomy_lane(kernel, startup);
    let mut client = lane.connect_by(v6);
    client.fetch(250_000);
    lane.wire(&client)
}

/// 4, 8, 16, 32, 64: those beyond Linux' first 10 spread over their round trip, where slow start sends the 64 within
/// the 19 ms in which the ACKs of 32 packets come (4.2: "the typical slow-start pattern of (vertical) bursts").
#[test]
fn the_window_doubles_each_round_trip_and_is_spread_over_it() {
    let _lock = one_at_a_time();
    for v6 in [false, true] {
        let Some(kernel) = kernel(&only("su_paced", &[])) else {
            return;
        };
        let packets = fetch(&kernel, "su_paced", v6);
        let rounds = by_round_trip(&packets, RTT_MS);
        assert_eq!(first_flight(&packets).len(), 4);
        for pair in rounds[..5].windows(2) {
            // Of a window that fills its round trip the end comes in the next where the machine is busy.
            let factor = pair[1] as f64 / pair[0] as f64;
            assert!((1.4..=2.6).contains(&factor), "{rounds:?}");
        }
        assert_spread(&packets, RTT_MS, 4);
    }
    let Some(kernel) = kernel(&only("su_standard", &[("iw_pkts", 4)])) else {
        return;
    };
    let packets = fetch(&kernel, "su_standard", false);
    let [first, ..] = by_quarter(&packets, RTT_MS, 4);
    let all = by_round_trip(&packets, RTT_MS)[4];
    assert!(
        4 * first > 3 * all,
        "slow start is a burst: {first} of {all}"
    );
}

#[test]
fn initial_window_and_growth_are_parameters() {
    let _lock = one_at_a_time();
    let settings = [("iw_pkts", 10), ("growth_percent", 150)];
    let Some(kernel) = kernel(&only("su_paced", &settings)) else {
        return;
    };
    let packets = fetch(&kernel, "su_paced", false);
    assert_eq!(first_flight(&packets).len(), 10);
    let rounds = by_round_trip(&packets, RTT_MS);
    for pair in rounds[..5].windows(2) {
        let factor = pair[1] as f64 / pair[0] as f64;
        assert!((1.15..=1.9).contains(&factor), "{rounds:?}");
    }
}

#[test]
fn at_a_loss_the_native_control_takes_over_cubic_or_reno() {
    let _lock = one_at_a_time();
    assert_native_takes_over_at_a_loss("su_paced");
}

#[test]
fn after_idle_the_stack_restarts_as_native_cubic_does() {
    let _lock = one_at_a_time();
    assert_native_restarts_after_idle("su_paced");
}
