//! A million prefixes: the kernel's memory stays within its bound, and what is done with all of it takes seconds.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use std::fs;
use std::net::Ipv4Addr;
use std::time::Instant;

use headstart_core::Path;
use headstart_kernel::{
    Kernel, KernelError, LiveMemory, MemoryOptions, Options, PathEntry, Prefix,
};
use headstart_memory::{Now, Store};

const PATHS: u32 = 1_000_000;
/// What the kernel may hold a path: key, value, the table's own, and its share of the buckets.
const BYTES_PER_PATH: u64 = 256;

fn entry(host: u32) -> PathEntry {
    PathEntry {
        prefix: Prefix::of(Ipv4Addr::from_bits(0x0a00_0000 + host).into(), 32),
        path: Path {
            cwnd_pkts: 10 + host % 1000,
            ssthresh_pkts: 500,
            srtt_us: 60_000,
            min_rtt_us: 50_000,
            samples: 1,
            ..Path::default()
        },
    }
}

/// What the kernel says that the maps of this process take, the largest.
fn largest_map_bytes() -> u64 {
    let files = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let sizes = files.filter_map(|file| {
        let text = fs::read_to_string(file.path()).ok()?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("memlock:"))?;
        line.trim().parse().ok()
    });
    sizes.max().unwrap()
}

fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib * 1024
}

fn kernel(max_entries: u32) -> Option<Kernel> {
    // No start-up is registered: the names are the machine's.
    let options = Options {
        memory: MemoryOptions {
            max_entries,
            ..MemoryOptions::default()
        },
        ..Options::default()
    };
    match Kernel::load(&options) {
        Ok(kernel) => Some(kernel),
        Err(error @ KernelError::CannotHere { .. }) => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn timed<T>(what: &str, job: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let done = job();
    let mib = resident_bytes() / (1 << 20);
    println!(
        "{what}: {:.2} s, resident {mib} MiB",
        begin.elapsed().as_secs_f64()
    );
    done
}

#[test]
fn a_million_prefixes_are_kept_within_the_bound_and_come_back_from_the_disk() {
    let Some(first) = kernel(PATHS) else {
        return;
    };
    timed("remembered in the kernel one by one", || {
        for host in 0..PATHS {
            first.remember(&entry(host)).unwrap();
        }
    });
    let memory = first.path_memory().unwrap();
    let mut there = 0u32;
    timed("counted", || memory.look(|_| there += 1).unwrap());
    // The kernel gives its free entries to processors in portions, and may throw out some before the last is used.
    assert!((PATHS * 95 / 100..=PATHS).contains(&there), "{there}");
    let bytes = largest_map_bytes();
    println!(
        "{there} entries, {bytes} bytes in the kernel, {} an entry",
        bytes / u64::from(PATHS)
    );
    assert!(bytes <= u64::from(PATHS) * BYTES_PER_PATH, "{bytes}");

    // Twice as many do not take more, and the newest are there.
    for host in PATHS..2 * PATHS {
        first.remember(&entry(host)).unwrap();
    }
    there = 0;
    memory.look(|_| there += 1).unwrap();
    assert!(there <= PATHS, "{there}");
    assert_eq!(largest_map_bytes(), bytes);
    let newest = entry(2 * PATHS - 1);
    assert!(memory.get(newest.prefix).unwrap().is_some());
    timed("looked up 100,000 from user space", || {
        for host in 2 * PATHS - 100_000..2 * PATHS {
            let _: Option<_> = memory.get(entry(host).prefix).unwrap();
        }
    });

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("paths.sqlite");
    let paths = timed("read out of the kernel", || memory.paths().unwrap());
    let mut store = Store::open(&file).unwrap();
    timed("saved", || store.save(&paths, &Now::here()).unwrap());
    println!("the file has {} bytes", fs::metadata(&file).unwrap().len());
    let mut loaded = timed("loaded", || store.load(&Now::here()).unwrap());
    assert_eq!(loaded.len(), paths.len());
    drop((memory, first));

    let second = kernel(PATHS).unwrap();
    timed("taken into another kernel's memory", || {
        loaded.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.path.age_us));
        for entry in &loaded {
            second.remember(entry).unwrap();
        }
    });
    let again: LiveMemory = second.path_memory().unwrap();
    there = 0;
    again.look(|_| there += 1).unwrap();
    assert!(
        there as usize >= loaded.len() * 95 / 100,
        "{there} of {}",
        loaded.len()
    );
}
