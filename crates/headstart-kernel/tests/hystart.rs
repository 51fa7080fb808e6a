//! HyStart on the live kernel: where it leaves slow start, and why (Ha and Rhee, 2011, 4.1 and 5.2).

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::ops::Range;
use std::thread;
use std::time::Duration;

use headstart_core::why_name;
use headstart_kernel::{Kernel, Record};
use support::*;

const MBIT_PER_S: u32 = 20;
const RTT_MS: u64 = 100;

/// A transfer that the machine has disturbed is made again: one that is busy for some milliseconds breaks the train, or
/// delays eight ACKs in a row.
const TRIES: usize = 3;

/// The verdict that ended slow start.
fn exit_of(records: &[Record]) -> &Record {
    records
        .iter()
        .find(|record| record.verdict.ssthresh_pkts > 0)
        .unwrap_or_else(|| panic!("slow start was left by no verdict"))
}

/// 4.1: a safe exit is above half of what the path holds, and below what path and queue hold.
fn safe_windows(path_pkts: u32) -> Range<u32> {
    path_pkts / 2..2 * path_pkts
}

#[test]
fn alone_on_a_path_it_leaves_by_the_ack_train_within_the_safe_bounds() {
    let _lock = one_at_a_time();
    for reno in [0, 1] {
        let options = only("su_hystart", &[("reno", reno)]);
        let Some(kernel) = kernel(&options) else {
            return;
        };
        let path = Bdp::new(&kernel, MBIT_PER_S, RTT_MS);
        path.lane.server_uses("su_hystart");
        for v6 in [false, true] {
            assert_leaves_safely_by_the_train(&kernel, &path, v6, 1_500_000);
        }
    }
}

/// The path of the paper's 5.2: 100 Mbit/s, 102 ms, a queue of one bandwidth-delay product.
#[test]
fn alone_on_100_mbit_per_s_it_leaves_by_the_ack_train_within_the_safe_bounds() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&only("su_hystart", &[])) else {
        return;
    };
    let path = Bdp::new(&kernel, 100, 102);
    path.lane.server_uses("su_hystart");
    assert_leaves_safely_by_the_train(&kernel, &path, false, 6_000_000);
}

fn assert_leaves_safely_by_the_train(kernel: &Kernel, path: &Bdp, v6: bool, bytes: usize) {
    let tries: Vec<String> = (0..TRIES)
        .map_while(|_| leaves_safely_by_the_train(kernel, path, v6, bytes).err())
        .collect();
    assert!(tries.len() < TRIES, "v6={v6}: {tries:?}");
}

/// One transfer that is to leave by the ACK train, safely, without a drop; or what it did.
fn leaves_safely_by_the_train(
    kernel: &Kernel,
    path: &Bdp,
    v6: bool,
    bytes: usize,
) -> Result<(), String> {
    let mut client = path.lane.connect_by(v6);
    client.fetch(bytes);
    let records = of_socket(&kernel.take_records().unwrap(), client.port);
    let exit = exit_of(&records);
    let (why, window) = (why_name(exit.verdict.why), exit.event.cwnd_pkts);
    let lost = dropped(&path.lane.wire(&client));
    assert_eq!(exit.verdict.ssthresh_pkts, window);
    match why == "ack-train" && safe_windows(path.pkts).contains(&window) && lost == 0 {
        true => Ok(()),
        false => Err(format!("left by {why} at {window}, {lost} packets dropped")),
    }
}

/// The same path and the same bytes, without a safe exit: the queue overflows.
#[test]
fn without_its_detectors_slow_start_overflows_the_queue() {
    let _lock = one_at_a_time();
    for (name, off) in [
        ("su_hystart", &[("ack_train", 0), ("delay_increase", 0)][..]),
        ("su_standard", &[("hystart", 0)]),
    ] {
        let Some(kernel) = kernel(&only(name, off)) else {
            return;
        };
        let path = Bdp::new(&kernel, MBIT_PER_S, RTT_MS);
        path.lane.server_uses(name);
        let mut client = path.lane.connect();
        client.fetch(1_500_000);
        let lost = dropped(&path.lane.wire(&client));
        assert!(lost > 50, "{name}: {lost} packets dropped");
    }
}

/// 5.2: "The second flow uses a delay increase to gauge the congestion on the path caused by the first flow".
#[test]
fn joining_a_path_that_is_in_use_it_leaves_by_the_delay() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&only("su_hystart", &[])) else {
        return;
    };
    let path = Bdp::new(&kernel, MBIT_PER_S, RTT_MS);
    path.lane.server_uses("su_hystart");
    let mut first = path.lane.connect();
    let first = thread::spawn(move || first.fetch(8_000_000));
    // The first has filled the path, and is in congestion avoidance.
    let left = |record: &Record| record.verdict.ssthresh_pkts > 0;
    while !kernel.take_records().unwrap().iter().any(left) {
        thread::sleep(Duration::from_millis(5));
    }
    let mut second = path.lane.connect();
    second.fetch(800_000);
    let records = of_socket(&kernel.take_records().unwrap(), second.port);
    let exit = exit_of(&records);
    assert_eq!(why_name(exit.verdict.why), "delay-increase", "{exit:?}");
    assert!((16..2 * path.pkts).contains(&exit.event.cwnd_pkts));
    first.join().unwrap();
}
