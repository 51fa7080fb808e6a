//! The files of records: whole, and there, whatever happens to the daemon or the disk.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use headstart_daemon::{Records, Row, Store, Wall};
use headstart_kernel::Transfer;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::{FileReader, SerializedFileReader};

const S: u64 = 1_000_000_000;
const WALL_US: i64 = 1_700_000_000_000_000;

fn config(dir: &Path) -> Records {
    Records {
        dir: dir.to_owned(),
        sample_percent: 100,
        rotate: Duration::from_secs(3600),
        rotate_bytes: 1 << 30,
    }
}

fn row(number: u32) -> Row {
    let transfer = Transfer {
        start_ns: u64::from(number) * S,
        end_ns: u64::from(number) * S + 50_000_000,
        bytes: 1000 + u64::from(number),
        retransmitted_bytes: 0,
        retransmitted_pkts: 0,
        lost_pkts: 0,
        rto_count: 0,
        rate_bytes_per_s: None,
        rate_app_limited: false,
        min_rtt_us: Some(40_000),
        start_rtt_us: None,
        end_rtt_us: Some(41_000),
        initial_cwnd_pkts: 10,
        end_cwnd_pkts: 12,
        exit_cwnd_pkts: None,
        why: Some((1, 10)),
        peer_initial_window_bytes: 65_535,
        mss_bytes: 1448,
        index: 0,
        idle_ns: None,
        rule_id: 1,
        arm: 0,
        complete: true,
        app_limited: false,
        peer_limited: false,
        path_hit: false,
        passive: true,
        control: "su_standard".to_owned(),
        local_port: 443,
        remote_addr: "203.0.113.77".parse().unwrap(),
        remote_port: 50_000,
    };
    let wall = Wall::at(1_700_000_000 * S, 0);
    Row::new(transfer, &wall, "web".into(), "all".into(), (24, 48))
}

fn files(dir: &Path, end: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == end))
        .collect();
    found.sort();
    found
}

fn rows_in(dir: &Path) -> i64 {
    files(dir, "parquet")
        .iter()
        .map(|path| {
            let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
            reader.metadata().file_metadata().num_rows()
        })
        .sum()
}

#[test]
fn what_was_flushed_is_in_a_file_after_the_close_and_the_peers_address_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(config(dir.path())).unwrap();
    store.take((0..100).map(row));
    store.flush(S, WALL_US).unwrap();
    store.take((100..150).map(row));
    store.flush(2 * S, WALL_US).unwrap();
    store.close().unwrap();
    assert_eq!(rows_in(dir.path()), 150);
    assert!(files(dir.path(), "spool").is_empty());
    let path = &files(dir.path(), "parquet")[0];
    assert!(
        path.to_string_lossy()
            .contains("transfers-20231114T221320Z-")
    );
    let file = fs::File::open(path).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    assert_eq!(
        builder
            .schema()
            .metadata()
            .get("headstart.records")
            .unwrap(),
        "1"
    );
    let batch = builder.build().unwrap().next().unwrap().unwrap();
    let text = |name: &str| {
        let column = batch.column_by_name(name).unwrap();
        arrow_array::cast::as_string_array(column)
            .value(0)
            .to_owned()
    };
    assert_eq!(text("prefix"), "203.0.113.0/24");
    assert_eq!(text("exit_why"), "initial-window");
}

#[test]
fn a_file_is_closed_by_age_and_by_size() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(config(dir.path())).unwrap();
    store.take([row(1)]);
    store.flush(S, WALL_US).unwrap();
    store.flush(3600 * S, WALL_US).unwrap();
    assert_eq!(rows_in(dir.path()), 0);
    store.flush(3601 * S, WALL_US).unwrap();
    assert_eq!(rows_in(dir.path()), 1);
    store.configure(Records {
        rotate_bytes: 1,
        ..config(dir.path())
    });
    store.take([row(2)]);
    store.flush(3602 * S, WALL_US).unwrap();
    assert_eq!(
        rows_in(dir.path()),
        2,
        "the name is another, though the clock says the same"
    );
}

#[test]
fn what_a_killed_daemon_left_is_made_into_files_but_for_a_half_written_end() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(config(dir.path())).unwrap();
    store.take((0..100).map(row));
    store.flush(S, WALL_US).unwrap();
    store.take((100..200).map(row));
    store.flush(2 * S, WALL_US).unwrap();
    // Nothing runs any more: neither a close nor a drop.
    std::mem::forget(store);
    let spool = files(dir.path(), "spool").remove(0);
    let length = fs::metadata(&spool).unwrap().len();
    let cut = fs::OpenOptions::new().write(true).open(&spool).unwrap();
    cut.set_len(length - 100).unwrap();
    fs::write(spool.with_extension("partial"), "half a file").unwrap();
    let (store, error) = Store::open(config(dir.path())).unwrap();
    assert!(error.is_none());
    assert_eq!(rows_in(dir.path()), 100);
    assert!(files(dir.path(), "spool").is_empty() && files(dir.path(), "partial").is_empty());
    drop(store);
}

/// In a private mount namespace, on a disk of 1 MiB.
#[test]
fn a_full_disk_is_told_and_what_fits_later_is_written() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED: mounting needs root");
        return;
    }
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_owned();
    let checked = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS).unwrap();
        let nothing: Option<&str> = None;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(nothing, "/", nothing, private, nothing).unwrap();
        mount(
            Some("tmpfs"),
            &at,
            Some("tmpfs"),
            MsFlags::empty(),
            Some("size=1m"),
        )
        .unwrap();
        let (mut store, _) = Store::open(config(&at)).unwrap();
        store.take((0..20).map(row));
        store.flush(S, WALL_US).unwrap();
        let ballast = at.join("ballast");
        while fs::write(&ballast, vec![0; 4096]).is_ok()
            && fs::copy(
                &ballast,
                at.join(format!("b{}", fs::read_dir(&at).unwrap().count())),
            )
            .is_ok()
        {}
        store.take((20..500).map(row));
        let refused = store.flush(2 * S, WALL_US).unwrap_err().to_string();
        assert!(
            refused.contains("No space left") && refused.contains("check free space"),
            "{refused}"
        );
        assert_eq!(store.waiting(), 480);
        for entry in fs::read_dir(&at).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with('b') {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        store.flush(3 * S, WALL_US).unwrap();
        assert_eq!(store.waiting(), 0);
        store.close().unwrap();
        rows_in(&at)
    })
    .join()
    .unwrap();
    assert_eq!(checked, 500);
}

#[test]
fn rows_beyond_what_can_wait_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(config(dir.path())).unwrap();
    store.take(std::iter::repeat_n(row(1), 100_010));
    assert_eq!(
        (store.waiting(), store.counts().rows_dropped),
        (100_000, 10)
    );
}
