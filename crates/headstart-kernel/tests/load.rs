//! The programs load; the names come and go; connections live on.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::time::Duration;

use headstart_kernel::{Kernel, KernelError, Options, RecordLevel};
use support::*;

fn available() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default()
}

#[test]
fn start_ups_are_registered_while_the_value_lives_and_gone_after() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&everything()) else {
        return;
    };
    assert!(available().contains("su_fast_start"));
    drop(kernel);
    assert!(!available().contains("su_"));
}

#[test]
fn only_the_start_ups_that_were_asked_for_are_registered() {
    let _lock = one_at_a_time();
    let Some(_kernel) = kernel(&fast_start(&[])) else {
        return;
    };
    assert!(available().contains("su_fast_start"));
    assert!(!available().contains("su_standard"));
}

#[test]
fn a_name_that_is_taken_is_refused_in_words() {
    let _lock = one_at_a_time();
    let Some(_kernel) = kernel(&fast_start(&[])) else {
        return;
    };
    let refused = Kernel::load(&everything());
    assert!(matches!(refused, Err(KernelError::NameTaken { .. })));
}

#[test]
fn a_transfer_goes_on_whole_when_the_start_ups_are_taken_away_in_its_middle() {
    let _lock = one_at_a_time();
    let Some(loaded) = kernel(&fast_start(&[])) else {
        return;
    };
    let lane = Lane::new(&loaded, 1, "20mbit", 40, 400);
    lane.server_uses("su_fast_start");
    let mut client = lane.connect();
    let fetch = std::thread::spawn(move || {
        client.fetch(2_000_000);
        client.fetch(100_000);
        client
    });
    std::thread::sleep(Duration::from_millis(300));
    lane.server_uses("cubic");
    drop(loaded);
    assert!(!available().contains("su_"));
    fetch.join().unwrap();
}

#[test]
fn with_recording_off_nothing_is_recorded() {
    let _lock = one_at_a_time();
    let quiet = Options {
        record_level: RecordLevel::Nothing,
        ..fast_start(&[])
    };
    let Some(kernel) = kernel(&quiet) else { return };
    let lane = Lane::new(&kernel, 1, "20mbit", 20, 400);
    lane.server_uses("su_fast_start");
    lane.connect().fetch(100_000);
    assert!(kernel.take_records().unwrap().is_empty());
}
