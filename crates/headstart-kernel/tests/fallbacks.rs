//! The ways for kernels without struct_ops links (before 6.4) and without tcx links (before 6.6), forced on this one:
//! they work as the links do, and what they leave behind after a crash is found.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use headstart_core::{INFINITE_SSTHRESH, Path};
use headstart_kernel::{Kernel, Leftover, Options, PathEntry, Prefix, Probe, leftovers};
use nix::sched::{CloneFlags, unshare};
use support::*;

const RTT_MS: u64 = 100;
/// Within the receive window of a new connection.
const WINDOW_PKTS: u32 = 40;
/// `lo` has this number in every network namespace.
const LOOPBACK: u32 = 1;
/// Set for the copy of this test binary that is to be killed.
const HOLDS: &str = "HEADSTART_TEST_HOLDS";

fn without_links() -> Options {
    Options {
        links: false,
        tcx: false,
        ..fast_start(&[])
    }
}

fn registered() -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap()
        .contains("su_")
}

/// How many packets of a fast start to a known path are marked, and whether the first one is.
fn fast_start_to_a_known_path(kernel: &Kernel, lane: &Lane) -> (usize, bool) {
    let path = Path {
        cwnd_pkts: WINDOW_PKTS,
        ssthresh_pkts: INFINITE_SSTHRESH,
        srtt_us: RTT_MS as u32 * 1000,
        rttvar_us: 1000,
        min_rtt_us: RTT_MS as u32 * 1000,
        samples: 1,
        ..Path::default()
    };
    let prefix = Prefix::of(lane.emulation.client().addr_v4().into(), 24);
    kernel.remember(&PathEntry { prefix, path }).unwrap();
    let mut client = lane.connect();
    client.fetch(100_000);
    let packets = lane.wire(&client);
    let all = data(&packets);
    let marked = all.iter().filter(|packet| is_low_priority(packet)).count();
    (marked, is_low_priority(all[0]))
}

#[test]
fn without_links_a_fast_start_is_marked_until_the_marker_is_dropped_and_goes_on_without_us() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&without_links()) else {
        return;
    };
    let mut lane = Lane::new(&kernel, 1, "20mbit", RTT_MS, 400);
    lane.server_uses("su_fast_start");
    let (marked, first) = fast_start_to_a_known_path(&kernel, &lane);
    assert!(!first, "the first packet is sent as always (3.3.1)");
    // A few may leave while the first ACK is on its way up the stack.
    let window = WINDOW_PKTS as usize;
    assert!(
        (window - 5..window + 4).contains(&marked),
        "{marked} packets are marked"
    );

    lane.unmark();
    assert_eq!(fast_start_to_a_known_path(&kernel, &lane), (0, false));

    let mut client = lane.connect();
    client.fetch(100_000);
    lane.server_uses("cubic");
    drop(kernel);
    assert!(!registered());
    client.fetch(100_000);
}

/// Not a test: the process that is killed. Its end of the pipe tells that it has what it is to leave behind.
#[test]
fn hold() {
    if std::env::var_os(HOLDS).is_none() {
        return;
    }
    let kernel = Kernel::load(&without_links()).unwrap();
    let _mark = kernel.marker().unwrap().attach(LOOPBACK).unwrap();
    println!("held");
    thread::sleep(Duration::from_secs(60));
}

/// Killed when the test ends, however it ends.
struct Holder(Child);

impl Holder {
    fn start() -> Holder {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["hold", "--exact", "--nocapture"])
            .env(HOLDS, "1")
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let told = BufReader::new(child.stdout.take().unwrap());
        let holder = Holder(child);
        // The test harness writes in front of the line.
        let held = told
            .lines()
            .any(|line| line.is_ok_and(|line| line.ends_with("held")));
        assert!(held, "the process ended");
        holder
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A test that fails half-way leaves nothing behind: the name would be taken for all tests after it.
struct Clean;

impl Drop for Clean {
    fn drop(&mut self) {
        for item in left_in_the_kernel() {
            let _ = item.remove();
        }
    }
}

/// Cgroups aside, which others on this machine may have left.
fn left_in_the_kernel() -> Vec<Leftover> {
    let mut left = leftovers();
    left.retain(|item| !matches!(item, Leftover::Cgroup { .. }));
    left
}

#[test]
fn what_a_killed_process_leaves_without_links_is_found_and_removed() {
    let _lock = one_at_a_time();
    if let Err(error) = Probe::run().require() {
        eprintln!("SKIPPED: {error}");
        return;
    }
    // A thread of its own, for a network namespace of its own.
    let in_namespace = || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        let _clean = Clean;
        let holder = Holder::start();
        assert!(registered());
        assert_eq!(left_in_the_kernel(), [], "it has an owner");

        drop(holder);
        assert!(registered());
        let left = left_in_the_kernel();
        assert!(
            matches!(
                left.as_slice(),
                [Leftover::Startup { name, .. }, Leftover::Marker { device, .. }]
                    if name == "su_fast_start" && device == "lo"
            ),
            "{left:?}"
        );

        for item in left {
            item.remove().unwrap();
        }
        assert!(!registered());
        assert_eq!(left_in_the_kernel(), []);
    };
    thread::scope(|scope| scope.spawn(in_namespace).join()).unwrap();
}
