//! The files of records: whole, and there, whatever happens to the daemon or the disk.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::fs;
use std::path::Path;

use headstart_daemon::{Records, Store};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::{FileReader, SerializedFileReader};
use support::{S, WALL_US, config, files, row};

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
    store.settle().unwrap();
    assert_eq!(rows_in(dir.path()), 1);
    store.configure(Records {
        rotate_bytes: 1,
        ..config(dir.path())
    });
    store.take([row(2)]);
    store.flush(3602 * S, WALL_US).unwrap();
    store.settle().unwrap();
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

/// More than may wait, between two flushes of the clock.
#[test]
fn a_disk_that_takes_them_never_makes_rows_dropped_however_many_come_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(config(dir.path())).unwrap();
    let mut most_waiting = 0;
    for number in 0..250_000_u32 {
        store.take([row(number % 1000)]);
        most_waiting = most_waiting.max(store.waiting());
        if store.has_batch() {
            store.flush(S, WALL_US).unwrap();
        }
    }
    assert_eq!(most_waiting, 10_000);
    store.flush(2 * S, WALL_US).unwrap();
    store.close().unwrap();
    let counts = store.counts();
    assert_eq!((counts.rows_written, counts.rows_dropped), (250_000, 0));
    assert_eq!(rows_in(dir.path()), 250_000);
}

#[test]
fn a_disk_that_took_none_is_asked_once_a_second_and_not_for_each_batch() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("records");
    let (mut store, _) = Store::open(config(&at)).unwrap();
    // Nothing can be made in a folder that is gone.
    fs::remove_dir(&at).unwrap();
    store.take(std::iter::repeat_n(row(1), 10_000));
    assert!(store.has_batch());
    store.flush(S, WALL_US).unwrap_err();
    store.take(std::iter::repeat_n(row(1), 10_000));
    assert!(!store.has_batch());
    fs::create_dir(&at).unwrap();
    store.flush(2 * S, WALL_US).unwrap();
    assert_eq!((store.waiting(), store.counts().rows_written), (0, 20_000));
    store.take(std::iter::repeat_n(row(1), 10_000));
    assert!(store.has_batch());
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

#[test]
fn a_file_says_how_many_records_are_missing_since_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(config(dir.path())).unwrap();
    let missing = |file: usize| {
        let file = fs::File::open(&files(dir.path(), "parquet")[file]).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let pairs = reader.metadata().file_metadata().key_value_metadata();
        let of = |key: &str| -> Option<u64> {
            let pair = pairs?.iter().find(|pair| pair.key == key)?;
            Some(pair.value.as_ref()?.parse().unwrap())
        };
        (of("headstart.lost"), of("headstart.dropped"))
    };
    store.take(std::iter::repeat_n(row(1), 100_010));
    store.lost(7);
    store.flush(S, WALL_US).unwrap();
    store.close().unwrap();
    store.take([row(1)]);
    store.lost(12);
    store.flush(2 * S, WALL_US + 1_000_000).unwrap();
    store.close().unwrap();
    assert_eq!(missing(0), (Some(7), Some(10)));
    assert_eq!(missing(1), (Some(5), Some(0)));
    // Nobody knows what a daemon lost that was killed.
    store.take([row(1)]);
    store.flush(3 * S, WALL_US + 2_000_000).unwrap();
    std::mem::forget(store);
    drop(Store::open(config(dir.path())).unwrap());
    assert_eq!(missing(2), (None, None));
}

/// A process number that comes again, in a container, and a clock that stands.
#[test]
fn no_closed_file_is_ever_replaced() {
    let dir = tempfile::tempdir().unwrap();
    for start in 1..=3 {
        let (mut store, _) = Store::open(config(dir.path())).unwrap();
        store.take([row(start)]);
        store.flush(S, WALL_US).unwrap();
        store.close().unwrap();
        assert_eq!(rows_in(dir.path()), i64::from(start));
    }
}
