//! An experiment of the daemon: who gets which arm, what the records say of it, and when it stops.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow_array::cast::AsArray;
use headstart_kernel::{SHARE_ONE, assign_connection, assign_slice, salt_of};
use nix::sys::signal::Signal;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use support::stage::*;
use support::*;

const SALT: &str = "fixed";

fn experiment(keys: &str, first_percent: u8, first: &str) -> String {
    format!(
        "[experiment]\nname = \"x\"\nsalt = \"{SALT}\"\n{keys}\n\
         [[experiment.arm]]\nname = \"first\"\nshare_percent = {first_percent}\n{first}\n\
         [[experiment.arm]]\nname = \"second\"\nshare_percent = {}\nstartup = \"su_standard\"\n\
         [[rule]]\nname = \"web\"\nports = \"8080\"\nstartup = \"experiment\"\n",
        100 - first_percent
    )
}

/// Of all rows of the closed files: the arm, and whether it is to be left out.
fn arms_in(stage: &Stage) -> BTreeMap<(String, bool), u32> {
    let mut counts = BTreeMap::new();
    for entry in std::fs::read_dir(stage.records()).unwrap().flatten() {
        let file = File::open(entry.path()).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            let arms = batch.column_by_name("arm").unwrap().as_string::<i32>();
            let burn_in = batch.column_by_name("burn_in").unwrap().as_boolean();
            for (arm, burn_in) in arms.iter().zip(burn_in) {
                let key = (arm.unwrap().to_owned(), burn_in.unwrap());
                *counts.entry(key).or_default() += 1;
            }
        }
    }
    counts
}

#[test]
fn each_connection_has_the_arm_that_its_hash_says_and_its_records_name_it() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let native = "startup = \"leave-alone\"";
    let mut stage = Stage::new(&experiment("unit = \"connection\"", 30, native));
    stage.start();
    let mut expected = BTreeMap::new();
    for _ in 0..60 {
        let mut pair = stage.connect();
        let client = pair.0.local_addr().unwrap();
        let place = assign_connection(salt_of(SALT), client.ip(), PORT, client.port());
        let first = place < SHARE_ONE * 30 / 100;
        assert_eq!(control(&pair.1) == "su_standard", !first, "{client}");
        Stage::transfer(&mut pair, 1000);
        let arm = if first { "first" } else { "second" };
        *expected.entry((arm.to_owned(), false)).or_default() += 1;
    }
    assert_eq!(
        expected.len(),
        2,
        "no chance but one in a billion: {expected:?}"
    );
    let explained = stage
        .told("explain", &["10.77.8.2", "--port", "8080"])
        .unwrap();
    assert!(
        explained.contains("arm first or second by connection: leave-alone or su_standard"),
        "{explained}"
    );
    assert!(eventually(|| stage.status()["records"]["recorded"] == 60));
    assert!(stage.end(Signal::SIGTERM).success());
    assert_eq!(arms_in(&stage), expected);
}

fn slice_of(length: Duration) -> (u64, Duration) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let number = now.as_micros() / length.as_micros();
    let since = now.as_micros() % length.as_micros();
    (
        u64::try_from(number).unwrap(),
        Duration::from_micros(u64::try_from(since).unwrap()),
    )
}

#[test]
fn a_slice_of_time_has_one_arm_and_what_begins_soon_after_a_switch_is_marked() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let length = Duration::from_secs(4);
    let keys = "unit = \"time\"\nslice = \"4s\"\nburn_in = \"1s\"";
    let text = experiment(keys, 50, "startup = \"leave-alone\"");
    let mut stage = Stage::new(&text);
    stage.start();
    // Of the same salt, by the clock alone.
    let arm_of = |number: u64| {
        let first = assign_slice(salt_of(SALT), number) < SHARE_ONE / 2;
        if first { "first" } else { "second" }
    };
    let mut settled: BTreeMap<&str, u32> = BTreeMap::new();
    let mut seen = 0;
    // Thirty slices with one arm: no chance but one in a billion.
    for _ in 0..240 {
        let before = slice_of(length);
        let mut pair = stage.connect();
        let control = control(&pair.1);
        Stage::transfer(&mut pair, 1000);
        let after = slice_of(length);
        // The switch may come a second late on a machine that is busy.
        if before.0 == after.0 && before.1 > Duration::from_millis(2500) {
            assert_eq!(control == "su_standard", arm_of(before.0) == "second");
            *settled.entry(arm_of(before.0)).or_default() += 1;
        }
        seen += 1;
        if settled.len() == 2 && settled.values().all(|count| *count > 2) {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(settled.len(), 2, "{settled:?}");
    let told = stage.told("status", &[]).unwrap();
    assert!(told.contains("Experiment: x by time, now "), "{told}");

    // An experiment that is over leaves all alone, and says so.
    stage.configure(&text.replace("unit =", "until = \"2026-01-01T00:00:00Z\"\nunit ="));
    stage.told("reload", &[]).unwrap();
    assert!(eventually(|| stage.status()["rules"][0]["state"] == "off"));
    assert_eq!(
        stage.status()["rules"][0]["why"],
        "the experiment has ended"
    );
    assert_ne!(control(&stage.connect().1), "su_standard");

    assert!(eventually(|| stage.status()["records"]["recorded"] == seen));
    assert!(stage.end(Signal::SIGTERM).success());
    let recorded = arms_in(&stage);
    let of = |burn_in: bool| -> u32 {
        let found = recorded
            .iter()
            .filter(|((_, left_out), _)| *left_out == burn_in);
        found.map(|(_, count)| count).sum()
    };
    assert!(
        of(true) > 0,
        "the first slice begins with the daemon: {recorded:?}"
    );
    for (arm, least) in settled {
        assert!(recorded[&(arm.to_owned(), false)] >= least, "{recorded:?}");
    }
    assert_eq!(of(true) + of(false), seen);
}

/// Both arms are start-ups, one of them with a window that the path cannot hold.
#[test]
fn an_arm_that_does_harm_stops_the_experiment() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let keys = "baseline = \"second\"\n\
                stop = { window = \"60s\", min_transfers = 5, retransmission_points = 3 }";
    let harmful = "startup = \"su_standard\"\nparams = { iw_pkts = 100 }";
    let mut stage = Stage::new(&experiment(keys, 50, harmful));
    many_clients(&stage);
    stage.start();
    assert!(
        load_until_off(&stage),
        "{}",
        stage.told("status", &[]).unwrap()
    );
    let why = stage.status()["rules"][0]["why"].to_string();
    assert!(
        why.contains("by the guard: arm first: retransmitted"),
        "{why}"
    );
    assert!(
        stage
            .log()
            .contains("the guard turned the rule web off: arm first")
    );
    assert!(!control(&stage.connect().1).starts_with("su_"));
}
