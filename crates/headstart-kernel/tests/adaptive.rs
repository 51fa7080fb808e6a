//! Network Adaptive TCP Slow Start on the live kernel: which method is chosen, and what leaves.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::thread::sleep;
use std::time::Duration;

use headstart_core::{Ended, Params, Path, Startup, why_name};
use headstart_kernel::{Kernel, Options, PathEntry, Prefix};
use headstart_path::PacketRecord;
use support::*;

const RTT_MS: u64 = 100;
/// log2 32 = 5: maxpossible is 160 packets, 231,680 bytes.
const W_PKTS: u32 = 32;
/// 104 packets.
const SHORT: usize = 150_000;
/// 346 packets.
const LARGE: usize = 500_000;

fn adaptive(reno: u64, group: &[&str]) -> Options {
    let mut params = Params::new(Startup::named("su_adaptive").unwrap());
    params.set("reno", reno).unwrap();
    let mut options = Options {
        startups: vec![params],
        ..everything()
    };
    options.memory.group = group.iter().map(|prefix| prefix.parse().unwrap()).collect();
    options
}

fn path(ended: Ended) -> Path {
    let rtt_us = RTT_MS as u32 * 1000;
    Path {
        cwnd_pkts: W_PKTS,
        ending_mpkts: W_PKTS * 1000,
        ssthresh_pkts: W_PKTS,
        srtt_us: rtt_us,
        rttvar_us: 1000,
        min_rtt_us: rtt_us,
        min_rtt_mean_us: rtt_us,
        samples: 1,
        ended: ended as u8,
        ..Path::default()
    }
}

fn lane(kernel: &Kernel) -> Lane {
    let lane = Lane::new(kernel, 1, "50mbit", RTT_MS, 1000);
    lane.open_receiver();
    lane.server_uses("su_adaptive");
    lane
}

fn reasons(kernel: &Kernel) -> Vec<&'static str> {
    let records = kernel.take_records().unwrap();
    let said = records.iter().filter(|record| record.verdict.why != 0);
    said.map(|record| why_name(record.verdict.why)).collect()
}

/// The most packets that left within any one round trip.
fn most_in_a_round_trip(packets: &[PacketRecord]) -> usize {
    let all = data(packets);
    let within = |first: &&&PacketRecord| {
        all.iter()
            .filter(|packet| {
                packet.at_ns >= first.at_ns && ms_between(first, packet) < RTT_MS as f64
            })
            .count()
    };
    all.iter().map(|first| within(&first)).max().unwrap()
}

#[test]
fn a_short_transfer_after_congestion_avoidance_is_sent_at_w_a_round_trip() {
    let _lock = one_at_a_time();
    for reno in [0, 1] {
        let Some(kernel) = kernel(&adaptive(reno, &[])) else {
            return;
        };
        let lane = lane(&kernel);
        for v6 in [false, true] {
            remember(&kernel, &lane, path(Ended::Avoidance));
            let mut client = lane.connect_by(v6);
            client.fetch(SHORT);
            let packets = lane.wire(&client);
            let flight = first_flight(&packets).len();
            assert!(
                (28..=W_PKTS as usize).contains(&flight),
                "{flight} in the first flight"
            );
            // Slow start would have 64 in the second and 128 in the third. Linux' first ten are a burst.
            let most = most_in_a_round_trip(&packets);
            assert!(most <= W_PKTS as usize + 12, "{most} in one round trip");
            sleep(Duration::from_millis(300));
            let reasons = reasons(&kernel);
            assert_eq!(
                reasons,
                ["path-known", "constant-rate", "ack-clock", "validated"]
            );
        }
        // W stands for the next one, which takes it up again.
        let known = kernel.paths().unwrap();
        let known = known
            .iter()
            .find(|entry| entry.prefix.bits() == Some(24))
            .unwrap();
        assert_eq!(known.path.ended(), Ended::Avoidance);
        assert!(
            (31_000..=W_PKTS * 1000).contains(&known.path.ending_mpkts),
            "{known:?}"
        );
    }
}

#[test]
fn a_short_transfer_after_slow_start_begins_with_half_of_w() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&adaptive(0, &[])) else {
        return;
    };
    let lane = lane(&kernel);
    remember(&kernel, &lane, path(Ended::SlowStart));
    let mut client = lane.connect();
    client.fetch(SHORT);
    let packets = lane.wire(&client);
    let flight = first_flight(&packets).len();
    assert!((14..=16).contains(&flight), "{flight} in the first flight");
    assert!(most_in_a_round_trip(&packets) > 28, "slow start goes on");
    assert_eq!(
        reasons(&kernel)[..3],
        ["path-known", "half-window", "ack-clock"]
    );
}

#[test]
fn a_transfer_that_is_large_from_the_first_packet_on_is_normal_tcp() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&adaptive(0, &[])) else {
        return;
    };
    let lane = lane(&kernel);
    // 7 log2 7 = 19 packets, fewer than are queued when the first one leaves: on Linux 6.1, whose receivers begin with
    // 64 KB, it leaves when half of that is there, 22 packets.
    let prefix = Prefix::of(lane.emulation.client().addr_v4().into(), 24);
    let path = Path {
        cwnd_pkts: 7,
        ending_mpkts: 7000,
        ..path(Ended::Avoidance)
    };
    kernel.remember(&PathEntry { prefix, path }).unwrap();
    let mut client = lane.connect();
    client.fetch(SHORT);
    let packets = lane.wire(&client);
    assert_eq!(first_flight(&packets).len(), 10);
    assert!(most_in_a_round_trip(&packets) > 32, "slow start");
    assert_eq!(reasons(&kernel), ["path-known", "transfer-large"]);
}

#[test]
fn a_transfer_that_turns_out_to_be_large_leaves_the_constant_rate() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&adaptive(0, &[])) else {
        return;
    };
    let lane = lane(&kernel);
    remember(&kernel, &lane, path(Ended::Avoidance));
    let mut client = lane.connect();
    client.fetch(LARGE);
    // Without a hint no more can be seen than fits the send buffer.
    let reasons = reasons(&kernel);
    assert_eq!(reasons[0], "path-known");
    assert_eq!(*reasons.last().unwrap(), "transfer-grew", "{reasons:?}");
}

#[test]
fn after_a_pause_the_next_file_is_decided_on_anew() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&adaptive(0, &[])) else {
        return;
    };
    let lane = lane(&kernel);
    remember(&kernel, &lane, path(Ended::Avoidance));
    let mut client = lane.connect();
    client.fetch(SHORT);
    sleep(Duration::from_millis(1500));
    lane.wire(&client);
    kernel.take_records().unwrap();
    client.fetch(SHORT);
    let packets = lane.wire(&client);
    let flight = first_flight(&packets).len();
    assert!(
        (28..=W_PKTS as usize).contains(&flight),
        "{flight} after the pause"
    );
    let most = most_in_a_round_trip(&packets);
    assert!(
        most <= W_PKTS as usize + 4,
        "{most}: after a pause all are paced"
    );
    assert_eq!(reasons(&kernel)[..2], ["path-known", "constant-rate"]);
}

#[test]
fn the_local_network_is_one_group_and_all_its_hosts_teach_it() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&adaptive(0, &["10.77.0.0/16"])) else {
        return;
    };
    let lane = lane(&kernel);
    let mut client = lane.connect();
    client.fetch(SHORT);
    assert_eq!(reasons(&kernel)[0], "path-unknown");
    sleep(Duration::from_millis(300));
    let group = Prefix::local_network();
    let known = kernel.paths().unwrap();
    assert!(known.iter().any(|entry| entry.prefix == group), "{known:?}");

    // A host of the group of whose own prefix nothing is known.
    for entry in &known {
        kernel.forget(entry.prefix).unwrap();
    }
    let path = path(Ended::SlowStart);
    kernel
        .remember(&PathEntry {
            prefix: group,
            path,
        })
        .unwrap();
    let mut client = lane.connect();
    client.fetch(SHORT);
    assert_eq!(reasons(&kernel)[..2], ["path-known", "half-window"]);
    // IPv6 is not in it.
    let mut client = lane.connect_v6();
    client.fetch(SHORT);
    assert_eq!(reasons(&kernel)[0], "path-unknown");
}
