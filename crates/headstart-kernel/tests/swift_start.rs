//! Swift Start on the live kernel. What is asserted of packets was seen on the wire; what is asserted of an estimate
//! follows from the times of the ACKs that it was made from, so that a busy machine only makes it another one.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use headstart_core::EventKind;
use headstart_kernel::{Kernel, Record};
use support::*;

const RTT_MS: u64 = 100;
/// 20 Mbit/s for 100 ms, in packets of 1500 bytes.
const CAPACITY_PKTS: u32 = 166;

fn lane(kernel: &Kernel) -> Lane {
    roomy_lane(kernel, "su_swift_start")
}

/// The estimate, recomputed from the events: gamma, and over how many segments it was measured. `None`: over what the
/// ACKs of the burst delivered, and no more than the delay of the last one says.
fn window_of(records: &[Record], gamma: u64, pkts: Option<u64>) -> u32 {
    let sent = that_says(records, "started").event;
    let first = that_says(records, "ack-clock").event;
    let estimate = that_says(records, "estimated");
    let delivered = u64::from(estimate.event.delivered_pkts - first.delivered_pkts);
    let rtt_us = first.now_us - sent.now_us;
    let gap_us = estimate.event.now_us - first.now_us;
    let slope = pkts.unwrap_or(delivered) * rtt_us / (gap_us * gamma);
    let longer_us = estimate.event.now_us - sent.now_us - u64::from(estimate.event.min_rtt_us);
    let all = u64::from(estimate.event.delivered_pkts - sent.delivered_pkts);
    let window = match pkts {
        None => slope.min(all * rtt_us / (longer_us * gamma)),
        Some(_) => slope,
    };
    assert_eq!(u64::from(estimate.verdict.cwnd_pkts), window);
    estimate.verdict.cwnd_pkts
}

#[test]
fn four_segments_measure_the_path_and_the_window_leaves_evenly_over_a_round_trip() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&only("su_swift_start", &[])) else {
        return;
    };
    let lane = lane(&kernel);
    for v6 in [false, true] {
        let mut client = lane.connect_by(v6);
        client.fetch(300_000);
        let packets = lane.wire(&client);
        let records = kernel.take_records().unwrap();
        let burst = first_flight(&packets);
        assert_eq!(burst.len(), 4);
        assert!(
            ms_between(burst[0], burst[3]) < 0.2 * RTT_MS as f64,
            "back to back"
        );

        let window = window_of(&records, 2, None);
        let true_window = CAPACITY_PKTS / 2;
        assert!(
            (true_window / 2..=2 * true_window).contains(&window),
            "a window of {window}, the path has {true_window}"
        );
        // The burst makes the receiver's window grow from 45 packets to 53 on Linux 6.1, later to more than this one.
        let peer = that_says(&records, "estimated").event;
        let most = window.min(peer.peer_window_bytes / peer.mss_bytes);
        let rounds = by_round_trip(&packets, RTT_MS);
        assert!(
            (0.75..=1.2).contains(&(rounds[1] as f64 / f64::from(most))),
            "{rounds:?} for a window of {window}, {most} of it the receiver's"
        );
        assert_spread(&packets, RTT_MS, 1);
        assert_eq!(dropped(&packets), 0);
    }
}

/// Pairs of packets, behind the 10 that Linux does not pace and the one that it sends before it looks at the clock.
#[test]
fn at_most_two_segments_leave_at_a_time() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&only("su_swift_start", &[("gamma", 4)])) else {
        return;
    };
    let lane = lane(&kernel);
    let mut client = lane.connect();
    client.fetch(70_000);
    let packets = lane.wire(&client);
    let paced = &data(&packets)[13..];
    // A window of about 42: two each 5 ms.
    let (mut bursts, mut larger, mut burst) = (1, 0, 1);
    for pair in paced.windows(2) {
        if ms_between(pair[0], pair[1]) < 1.0 {
            burst += 1;
            larger += usize::from(burst == 3);
        } else {
            bursts += 1;
            burst = 1;
        }
    }
    assert!(bursts >= 8, "{bursts} bursts of {} packets", paced.len());
    // A timer that comes late sends what is due at once.
    assert!(
        2 * larger <= bursts,
        "{larger} of {bursts} bursts are larger"
    );
}

#[test]
fn the_window_grows_by_the_factor_each_round_trip() {
    let _lock = one_at_a_time();
    for (percent, factors) in [(150, 1.15..1.8), (200, 1.55..2.5)] {
        let settings = [("growth_percent", percent), ("gamma", 8)];
        let Some(kernel) = kernel(&only("su_swift_start", &settings)) else {
            return;
        };
        let lane = lane(&kernel);
        let mut client = lane.connect();
        client.fetch(400_000);
        let rounds = by_round_trip(&lane.wire(&client), RTT_MS);
        for pair in rounds[1..4].windows(2) {
            let factor = pair[1] as f64 / pair[0] as f64;
            assert!(factors.contains(&factor), "{percent} %: {rounds:?}");
        }
    }
}

#[test]
fn the_reports_pair_measures_one_segment_over_one_gap() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&only("su_swift_start", &[("slope_acks", 0)])) else {
        return;
    };
    let lane = lane(&kernel);
    let mut client = lane.connect();
    client.fetch(100_000);
    let records = kernel.take_records().unwrap();
    window_of(&records, 2, Some(1));
    // The second ACK of the burst, and no later one.
    let acks: Vec<_> = records
        .iter()
        .filter(|record| record.event.kind == EventKind::Ack as u8)
        .take(2)
        .map(|record| record.verdict.why)
        .collect();
    let reasons = ["ack-clock", "estimated"].map(|why| that_says(&records, why).verdict.why);
    assert_eq!(acks, reasons);
}

#[test]
fn a_clock_of_10_ms_lets_two_segments_go_each_10_ms() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&only("su_swift_start", &[("clock_us", 10_000)])) else {
        return;
    };
    let lane = lane(&kernel);
    let mut client = lane.connect();
    client.fetch(100_000);
    let packets = lane.wire(&client);
    // 6 or so until all of the burst is acknowledged, then up to the tenth unpaced, then 2 each 10 ms.
    let second = by_round_trip(&packets, RTT_MS)[1];
    assert!(
        (12..=34).contains(&second),
        "{second} packets in the second round trip"
    );
    assert_spread(&packets, RTT_MS, 2);
}

#[test]
fn at_a_loss_the_native_control_takes_over_cubic_or_reno() {
    let _lock = one_at_a_time();
    assert_native_takes_over_at_a_loss("su_swift_start");
}

#[test]
fn a_response_too_short_to_measure_leaves_the_stacks_own_window() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&only("su_swift_start", &[])) else {
        return;
    };
    let lane = lane(&kernel);
    let mut client = lane.connect();
    client.fetch(2_000);
    lane.wire(&client);
    client.fetch(100_000);
    assert_eq!(first_flight(&lane.wire(&client)).len(), 10);
    let records = kernel.take_records().unwrap();
    assert_eq!(that_says(&records, "burst-short").verdict.cwnd_pkts, 10);
}

#[test]
fn after_idle_the_stack_restarts_as_native_cubic_does() {
    let _lock = one_at_a_time();
    assert_native_restarts_after_idle("su_swift_start");
}

/// Footnote 5: standard slow start, CUBIC's with its HyStart, takes over when the paced window is acknowledged.
#[test]
fn pacing_may_be_for_the_first_round_trip_only() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&only("su_swift_start", &[("first_round_only", 1)])) else {
        return;
    };
    let lane = lane(&kernel);
    let mut client = lane.connect();
    client.fetch(400_000);
    assert_spread(&lane.wire(&client), RTT_MS, 1);
    let records = kernel.take_records().unwrap();
    let (ended, window) = (
        that_says(&records, "first-round"),
        window_of(&records, 2, None),
    );
    let delivered = ended.event.delivered_pkts;
    assert!(
        (window..window + 8).contains(&delivered),
        "{window} packets, {delivered} delivered"
    );
    let later = records.iter().filter(|record| record.at_ns > ended.at_ns);
    assert!(later.clone().count() > 10);
    assert!(
        later
            .clone()
            .all(|record| record.verdict.owns_slow_start == 0)
    );
}
