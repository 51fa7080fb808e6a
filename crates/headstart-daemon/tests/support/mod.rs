//! What the tests of the daemon share.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its part of a private module"
)]

pub mod s3;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headstart_daemon::{Records, Row, Wall};
use headstart_kernel::Transfer;

pub const S: u64 = 1_000_000_000;
pub const WALL_US: i64 = 1_700_000_000_000_000;

/// Records in `dir`, closed by nothing but a call.
pub fn config(dir: &Path) -> Records {
    Records {
        dir: dir.to_owned(),
        sample_percent: 100,
        rotate: Duration::from_secs(3600),
        rotate_bytes: 1 << 30,
        bucket: None,
    }
}

pub fn row(number: u32) -> Row {
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
        control: "su_standard".into(),
        local_port: 443,
        remote_addr: "203.0.113.77".parse().unwrap(),
        remote_port: 50_000,
    };
    let wall = Wall::at(1_700_000_000 * S, 0);
    Row::new(transfer, &wall, "web".into(), "all".into(), (24, 48))
}

/// The files of `dir` whose names end so, in order.
pub fn files(dir: &Path, end: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == end))
        .collect();
    found.sort();
    found
}

/// Waits until `condition` holds, for a minute at most.
pub fn eventually(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    condition()
}
