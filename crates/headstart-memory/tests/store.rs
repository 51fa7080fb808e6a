//! The path memory on disk: what is saved comes back, and no accident takes the previous state away.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use std::io::{BufRead, BufReader};
use std::path::Path as FilePath;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use headstart_core::Path;
use headstart_kernel::{PathEntry, Prefix};
use headstart_memory::{Now, Store, StoreError};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use proptest::prelude::*;

/// Set for the copy of this test binary that is to be killed while it saves.
const SAVES: &str = "HEADSTART_TEST_SAVES";

fn at(boot_us: u64) -> Now {
    Now {
        boot_id: "a".to_owned(),
        boot_us,
        unix_us: boot_us + 1_000_000_000,
    }
}

/// `count` hosts, all with this window.
fn entries(count: u32, cwnd_pkts: u32) -> Vec<PathEntry> {
    let entry = |host: u32| PathEntry {
        prefix: Prefix::of(std::net::Ipv4Addr::from_bits(0x0a00_0000 + host).into(), 32),
        path: Path {
            cwnd_pkts,
            samples: 1,
            ..Path::default()
        },
    };
    (0..count).map(entry).collect()
}

/// The windows that are saved: one, if every entry is of the same state.
fn windows(store: &Store) -> Vec<u32> {
    let saved = store.load(&at(0)).unwrap();
    let mut windows: Vec<u32> = saved.iter().map(|entry| entry.path.cwnd_pkts).collect();
    windows.dedup();
    windows
}

fn any_entry() -> impl Strategy<Value = PathEntry> {
    let prefix = prop_oneof![
        (any::<u32>(), 0u8..=32)
            .prop_map(|(addr, bits)| Prefix::of(std::net::Ipv4Addr::from_bits(addr).into(), bits)),
        (any::<u128>(), 0u8..=128)
            .prop_map(|(addr, bits)| Prefix::of(std::net::Ipv6Addr::from_bits(addr).into(), bits)),
        Just(Prefix::local_network()),
    ];
    let words = proptest::array::uniform12(any::<u32>());
    (prefix, words, 0u64..1 << 50, 0u64..1 << 50, 0u8..4).prop_map(
        |(prefix, words, age_us, rate_bytes_per_s, ended)| PathEntry {
            prefix,
            path: Path {
                age_us,
                rate_bytes_per_s,
                cwnd_pkts: words[0],
                ssthresh_pkts: words[1],
                srtt_us: words[2],
                rttvar_us: words[3],
                min_rtt_us: words[4],
                ending_mpkts: words[5],
                window_mean_mpkts: words[6],
                window_dev_mpkts: words[7],
                min_rtt_mean_us: words[8],
                min_rtt_dev_us: words[9],
                lost_pkts: words[10],
                samples: words[11],
                ended,
                ..Path::default()
            },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_is_saved_comes_back_older_by_the_time_that_passed(
        list in prop::collection::vec(any_entry(), 0..40),
        passed_us in 0u64..1 << 50,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("deep/down/paths.sqlite");
        // A prefix has one entry: the last one written.
        let mut wanted: std::collections::BTreeMap<String, PathEntry> = std::collections::BTreeMap::new();
        for entry in &list {
            wanted.insert(entry.prefix.to_string(), *entry);
        }
        Store::open(&file).unwrap().save(&list, &at(7)).unwrap();
        let loaded = Store::open(&file).unwrap().load(&at(7 + passed_us)).unwrap();
        let wanted: Vec<PathEntry> = wanted
            .into_values()
            .map(|mut entry| { entry.path.age_us += passed_us; entry })
            .collect();
        prop_assert_eq!(loaded, wanted);
    }
}

#[test]
fn after_a_reboot_with_a_clock_that_stands_earlier_nothing_is_believed() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(&directory.path().join("paths.sqlite")).unwrap();
    store.save(&entries(3, 40), &at(1000)).unwrap();
    let reboot = |unix_us| Now {
        boot_id: "b".to_owned(),
        boot_us: 1,
        unix_us,
    };
    let saved_at = at(1000).unix_us;
    assert_eq!(store.load(&reboot(saved_at - 1)).unwrap(), []);
    let loaded = store.load(&reboot(saved_at + 60)).unwrap();
    assert_eq!(loaded.len(), 3);
    assert!(loaded.iter().all(|entry| entry.path.age_us == 60));
}

#[test]
fn a_file_of_someone_else_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    fs::write(
        &text,
        "not a database at all, but long enough to look like one ".repeat(40),
    )
    .unwrap();
    let before = fs::read(&text).unwrap();
    let error = Store::open(&text).unwrap_err();
    assert!(error.to_string().contains("no SQLite file"), "{error}");
    assert_eq!(fs::read(&text).unwrap(), before);

    let newer = directory.path().join("newer.sqlite");
    drop(Store::open(&newer).unwrap());
    rusqlite::Connection::open(&newer)
        .unwrap()
        .pragma_update(None, "user_version", 2)
        .unwrap();
    let error = Store::open(&newer).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("schema is 2"), "{error}");

    let other = directory.path().join("other.sqlite");
    rusqlite::Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE x (y)")
        .unwrap();
    let error = Store::open(&other).unwrap_err();
    assert!(error.to_string().contains("another program"), "{error}");
}

/// Not a test: the process that is killed. Saves a state of 1 and then one state after the other, each larger than
/// SQLite's page cache, so that the file itself is written to before the commit.
#[test]
fn save_for_ever() {
    let Some(file) = env::var_os(SAVES) else {
        return;
    };
    let mut store = Store::open(FilePath::new(&file)).unwrap();
    for state in 1.. {
        store.save(&entries(30_000, state), &at(0)).unwrap();
        if state == 1 {
            println!("saved");
        }
    }
}

#[test]
fn a_kill_in_the_middle_of_saving_leaves_one_whole_state() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("paths.sqlite");
    let mut in_the_middle = 0;
    for wait_ms in (0..12).map(|step| 3 + 17 * step) {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["save_for_ever", "--exact", "--nocapture"])
            .env(SAVES, &file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let told = BufReader::new(child.stdout.take().unwrap());
        assert!(
            told.lines()
                .any(|line| line.is_ok_and(|line| line.ends_with("saved")))
        );
        thread::sleep(Duration::from_millis(wait_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        // SQLite's journal is there only while the file is being written.
        in_the_middle += u32::from(file.with_extension("sqlite-journal").exists());
        let store = Store::open(&file).unwrap();
        assert_eq!(store.load(&at(0)).unwrap().len(), 30_000);
        assert_eq!(windows(&store).len(), 1, "two states are mixed");
    }
    assert!(in_the_middle > 0, "no kill came while the file was written");
}

#[test]
fn a_full_disk_is_an_error_and_leaves_the_previous_state() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED: needs root, for a small file system of its own");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let on_a_small_disk = || {
        // A mount namespace of this thread: nobody else sees the disk.
        unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS).unwrap();
        let none: Option<&str> = None;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        mount(
            Some("tmpfs"),
            directory.path(),
            Some("tmpfs"),
            MsFlags::empty(),
            Some("size=256k"),
        )
        .unwrap();
        let file = directory.path().join("paths.sqlite");
        let mut store = Store::open(&file).unwrap();
        store.save(&entries(200, 11), &at(0)).unwrap();
        let error = store.save(&entries(30_000, 22), &at(0)).unwrap_err();
        assert!(error.to_string().contains("full"), "{error}");
        assert_eq!(windows(&store), [11]);
        drop(store);
        // Also for whoever comes next; and when there is room again it goes on.
        let mut store = Store::open(&file).unwrap();
        assert_eq!(windows(&store), [11]);
        assert_eq!(store.load(&at(0)).unwrap().len(), 200);
        store.save(&entries(100, 33), &at(0)).unwrap();
        assert_eq!(windows(&store), [33]);
    };
    thread::scope(|scope| scope.spawn(on_a_small_disk).join()).unwrap();
}
