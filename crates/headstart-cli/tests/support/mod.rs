//! What the tests of the kernel verbs share.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "each test file uses its part of a private module"
)]

#[path = "../../../headstart-kernel/tests/support/lock.rs"]
mod lock;
#[cfg(feature = "kernel")]
pub mod stage;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub use lock::one_at_a_time;

/// The program under test.
pub fn headstart(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
    // The machine's own path memory is none of a test's business.
    let state =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("state-{}", std::process::id()));
    command.env("XDG_STATE_HOME", state);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// What it said on standard error.
pub fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether this machine cannot run start-ups; then the test that asks is skipped and says so.
pub fn skipped() -> bool {
    let output = headstart(&["doctor"]).output().unwrap();
    if output.status.code() == Some(3) {
        // Past the test harness, which hides what passing tests print.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {}", words(&output).trim());
    }
    output.status.code() == Some(3)
}

/// Whether a killed process leaves no registration behind (Linux 6.4).
pub fn has_struct_ops_links() -> bool {
    let output = headstart(&["doctor"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .any(|line| line.trim_start().starts_with("ok") && line.contains("struct_ops links"))
}

/// Waits until `condition` holds, for a minute at most.
pub fn eventually(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() && Instant::now() < deadline {
        sleep(Duration::from_millis(20));
    }
    condition()
}

/// Congestion controls of ours that the kernel offers.
pub fn registered() -> Vec<String> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    text.split_whitespace()
        .filter(|name| name.starts_with("su_"))
        .map(str::to_owned)
        .collect()
}

/// Cgroups that the process `pid` made.
pub fn cgroups_of(pid: u32) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let root = mounts.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let path = fields.next()?;
        (fields.next()? == "cgroup2").then_some(path)
    });
    let prefix = format!("headstart-{pid}-");
    fs::read_dir(root.unwrap())
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path())
        .collect()
}

/// BPF programs of ours that the kernel holds, by name. A connection that closes late holds its start-up a while.
pub fn programs() -> Vec<String> {
    let ours = ["hs_", "standard_", "fast_start_", "adaptive_"];
    libbpf_rs::query::ProgInfoIter::default()
        .map(|program| program.name.to_string_lossy().into_owned())
        .filter(|name| ours.iter().any(|prefix| name.starts_with(prefix)))
        .collect()
}
