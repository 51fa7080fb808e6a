//! What is left of a path when it ends: nothing, however it ends.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{comes_true, namespace_is_held, start_or_skip, symmetric};
use headstart_path::PathError;

/// Set for the copy of this test binary that is to be killed.
const HOLD: &str = "HEADSTART_TEST_HOLDS_A_PATH";

fn sleeper() -> Command {
    let mut command = Command::new("sleep");
    command.arg("1000").stdout(Stdio::null());
    command
}

/// Other tests of this process have paths on other lanes.
fn threads_of_lane(lane: u8) -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|name| name.trim().starts_with("hs-") && name.trim().ends_with(&format!("-{lane}")))
        .count()
}

#[test]
fn a_stopped_path_leaves_no_thread_no_process_and_no_namespace() {
    let Some(mut path) = start_or_skip(symmetric("10mbit", "1ms", "drop-tail:10", 20)) else {
        return;
    };
    assert_eq!(
        threads_of_lane(20),
        3,
        "a holder a namespace and the router"
    );
    let inodes = [path.server().inode(), path.client().inode()];
    assert!(inodes.iter().all(|&inode| namespace_is_held(inode)));
    let mut sleeping = path.client().spawn(sleeper()).unwrap();
    // A grandchild: its own parent does not end it.
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "setsid sleep 1000 & wait"])
        .stdout(Stdio::null());
    let mut shell = path.server().spawn(shell).unwrap();

    let report = path.stop().unwrap();
    assert_eq!(
        path.stop().unwrap(),
        report,
        "stopping twice is stopping once"
    );
    assert!(!sleeping.wait().unwrap().success());
    assert!(!shell.wait().unwrap().success());
    // A thread that has been joined may still be on its way out of its namespaces.
    assert!(comes_true(|| threads_of_lane(20) == 0));
    assert!(comes_true(|| !inodes
        .iter()
        .any(|&inode| namespace_is_held(inode))));
    assert!(matches!(path.server().run(|| ()), Err(PathError::Stopped)));
    assert!(
        !Path::new("/sys/class/net/tun0").exists(),
        "the device was never the machine's"
    );
}

/// Not a test: the process that `a_killed_process_leaves_nothing` kills.
#[test]
fn hold_a_path_until_killed() {
    if std::env::var_os(HOLD).is_none() {
        return;
    }
    let path = start_or_skip(symmetric("10mbit", "1ms", "drop-tail:10", 21)).unwrap();
    let (server, client) = (path.server(), path.client());
    let (one, two) = (
        server.spawn(sleeper()).unwrap(),
        client.spawn(sleeper()).unwrap(),
    );
    println!(
        "\nheld: {} {} {} {}",
        server.inode(),
        client.inode(),
        one.id(),
        two.id()
    );
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_killed_process_leaves_nothing() {
    if start_or_skip(symmetric("10mbit", "1ms", "drop-tail:10", 22)).is_none() {
        return;
    }
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "hold_a_path_until_killed",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(HOLD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let held = lines.map_while(Result::ok).find_map(|line| {
        line.strip_prefix("held: ").map(|held| {
            held.split(' ')
                .map(|n| n.parse::<u64>().unwrap())
                .collect::<Vec<_>>()
        })
    });
    let held = held.unwrap();
    let (inodes, pids) = held.split_at(2);
    let running = |pid: &u64| {
        Path::new("/proc")
            .join(pid.to_string())
            .join("exe")
            .exists()
    };
    assert!(inodes.iter().all(|&inode| namespace_is_held(inode)) && pids.iter().all(running));

    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(
        comes_true(|| !pids.iter().any(running)),
        "the commands died with their parent"
    );
    assert!(comes_true(|| !inodes
        .iter()
        .any(|&inode| namespace_is_held(inode))));
}
