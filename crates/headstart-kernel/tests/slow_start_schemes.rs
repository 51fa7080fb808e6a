//! The schemes with which the HyStart paper compares (5.2), on the live kernel: limited, adaptive (Westwood),
//! packet-pair and Vegas' slow start.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::thread::sleep;
use std::time::Duration;

use headstart_core::{EventKind, Params, Phase, Startup, why_name};
use headstart_kernel::{Kernel, Options, Record};
use support::*;

const MBIT_PER_S: u32 = 20;
const RTT_MS: u64 = 100;
const SCHEMES: [&str; 5] = [
    "su_hystart",
    "su_limited",
    "su_westwood",
    "su_packet_pair",
    "su_vegas",
];

/// The first verdict with this reason.
fn first<'a>(records: &'a [Record], reason: &str) -> &'a Record {
    let is = |record: &&Record| why_name(record.verdict.why) == reason;
    records
        .iter()
        .find(is)
        .unwrap_or_else(|| panic!("no verdict says {reason}"))
}

/// RFC 3742, 2, with `max_ssthresh` 20: 20 by doubling, then half of 20 more in each round trip.
#[test]
fn limited_slow_start_grows_by_half_of_max_ssthresh_a_round_trip() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&only("su_limited", &[("max_ssthresh_pkts", 20)])) else {
        return;
    };
    let lane = Lane::wide(&kernel, RTT_MS);
    lane.server_uses("su_limited");
    let mut client = lane.connect();
    client.fetch(300_000);
    let flights = flights(&lane.wire(&client), RTT_MS);
    assert_eq!(flights[..2], [10, 20], "{flights:?}");
    // int(MSS / K) loses up to a packet in each.
    for (round, flight) in flights[2..5].iter().enumerate() {
        let whole = 30 + 10 * round;
        assert!(
            (whole - 2 - round..=whole + 1).contains(flight),
            "{flights:?}"
        );
    }
}

/// "exponential growth only every other RTT". The threshold is far, so that the delays of a loaded machine end nothing.
#[test]
fn vegas_doubles_its_window_every_other_round_trip() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&only("su_vegas", &[("gamma_pkts", 1000)])) else {
        return;
    };
    let lane = Lane::wide(&kernel, RTT_MS);
    lane.server_uses("su_vegas");
    let mut client = lane.connect();
    client.fetch(250_000);
    let flights = flights(&lane.wire(&client), RTT_MS);
    assert_eq!(flights, [10, 20, 20, 40, 40, 43]);
}

#[test]
fn vegas_leaves_slow_start_before_the_queue_is_full() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&everything()) else {
        return;
    };
    let path = Bdp::new(&kernel, MBIT_PER_S, RTT_MS);
    path.lane.server_uses("su_vegas");
    let mut client = path.lane.connect();
    client.fetch(1_500_000);
    let records = of_socket(&kernel.take_records().unwrap(), client.port);
    let exit = first(&records, "rate-below-expected");
    assert_eq!(exit.verdict.ssthresh_pkts, exit.event.cwnd_pkts);
    assert!(exit.event.cwnd_pkts < 2 * path.pkts);
    assert_eq!(dropped(&path.lane.wire(&client)), 0);
}

/// The ACKs of the first ten packets are spaced by the bottleneck: 166 packets in 100 ms.
#[test]
fn a_packet_pair_sets_the_threshold_near_what_the_path_holds() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&everything()) else {
        return;
    };
    let path = Bdp::new(&kernel, MBIT_PER_S, RTT_MS);
    path.lane.server_uses("su_packet_pair");
    let mut client = path.lane.connect();
    client.fetch(1_500_000);
    let records = of_socket(&kernel.take_records().unwrap(), client.port);
    let estimate = first(&records, "packet-pair");
    assert!(
        estimate.event.acked_bytes <= 10 * 1448,
        "of the first flight"
    );
    let threshold = estimate.verdict.ssthresh_pkts;
    assert!(
        (path.pkts / 2..2 * path.pkts).contains(&threshold),
        "{threshold} of {}",
        path.pkts
    );
    // Slow start goes there, and no further.
    let left = first(&records, "ssthresh");
    assert_eq!(left.event.cwnd_pkts, threshold);
    assert_eq!(dropped(&path.lane.wire(&client)), 0);
}

#[test]
fn the_adaptive_start_raises_its_threshold_by_the_rate_of_the_acks() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&everything()) else {
        return;
    };
    let path = Bdp::new(&kernel, MBIT_PER_S, RTT_MS);
    path.lane.server_uses("su_westwood");
    let mut client = path.lane.connect();
    client.fetch(1_500_000);
    let records = of_socket(&kernel.take_records().unwrap(), client.port);
    assert_eq!(first(&records, "slow-start").verdict.ssthresh_pkts, 32);
    assert_eq!(first(&records, "ssthresh").event.cwnd_pkts, 32);
    let raised: Vec<_> = records
        .iter()
        .filter(|record| why_name(record.verdict.why) == "rate-estimate")
        .map(|record| record.verdict.ssthresh_pkts)
        .collect();
    assert!(raised.iter().all(|pkts| *pkts > 32), "{raised:?}");
    assert!(raised.is_sorted(), "{raised:?}");
    assert!(!raised.is_empty(), "never raised");
}

/// All with the parameter `reno`.
fn on_reno(reno: u64) -> Options {
    let params = SCHEMES.map(|name| {
        let mut params = Params::new(Startup::named(name).unwrap());
        params.set("reno", reno).unwrap();
        params
    });
    Options {
        startups: params.to_vec(),
        ..everything()
    }
}

/// Each on CUBIC and on Reno, IPv4 and IPv6, on a new connection and after a pause.
#[test]
fn every_scheme_owns_slow_start_on_both_stacks_and_after_a_pause() {
    let _lock = one_at_a_time();
    for reno in [0, 1] {
        let Some(kernel) = kernel(&on_reno(reno)) else {
            return;
        };
        let lane = Lane::new(&kernel, 1, "20mbit", 40, 400);
        for name in SCHEMES {
            lane.server_uses(name);
            for mut client in [lane.connect(), lane.connect_v6()] {
                starts_by_itself(&kernel, &lane, &mut client, name);
                sleep(Duration::from_millis(1000));
                starts_by_itself(&kernel, &lane, &mut client, name);
            }
        }
    }
}

fn starts_by_itself(kernel: &Kernel, lane: &Lane, client: &mut Client, name: &str) {
    client.fetch(100_000);
    let records = of_socket(&kernel.take_records().unwrap(), client.port);
    let sent = records
        .iter()
        .find(|record| record.event.kind == EventKind::Send as u8)
        .unwrap();
    assert_eq!(sent.event.cwnd_pkts, 10, "{name}");
    assert_eq!(sent.verdict.phase(), Some(Phase::SlowStart), "{name}");
    let grown = records.iter().filter(|record| record.verdict.cwnd_pkts > 0);
    assert!(grown.count() > 5, "{name}");
    assert_eq!(dropped(&lane.wire(client)), 0, "{name}");
}
