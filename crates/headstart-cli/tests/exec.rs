//! `headstart exec`: a server under a start-up, and what is left when headstart ends, however it ends.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use headstart_path::{Emulation, LinkConfig, PathConfig};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Pid;
use sha2::{Digest, Sha256};
use support::*;

/// Set for the copy of this test binary that is to be the server.
const SERVES: &str = "HEADSTART_TEST_SERVES";
const PORT: u16 = 8080;
const BYTES: usize = 10_000_000;

/// Bytes without a pattern that a shifted or repeated segment could hide in.
fn payload() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..BYTES / 8).flat_map(|_| next().to_le_bytes()).collect()
}

/// Not a test: the server. Tells its own number, then the congestion control of each connection.
#[test]
fn serve() {
    if std::env::var_os(SERVES).is_none() {
        return;
    }
    let listener = TcpListener::bind(("::", PORT)).unwrap();
    let payload = payload();
    println!("pid {}", std::process::id());
    for connection in listener.incoming() {
        let mut connection = connection.unwrap();
        let control = getsockopt(&connection, sockopt::TcpCongestion).unwrap();
        println!(
            "control {}",
            control.to_string_lossy().trim_end_matches('\0')
        );
        std::io::stdout().flush().unwrap();
        let _ = connection.write_all(&payload);
    }
}

fn path() -> Emulation {
    let (rate, delay) = ("40mbit".parse().unwrap(), "10ms".parse().unwrap());
    let link = LinkConfig::new(rate, delay, "drop-tail:300".parse().unwrap());
    let config = PathConfig {
        lane: 9,
        ..PathConfig::new(link.clone(), link)
    };
    Emulation::start(config).unwrap()
}

/// The next line of the server that begins with `word`, without it.
fn told(lines: &mut BufReader<ChildStdout>, word: &str) -> String {
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the server ended");
        // The test harness writes in front of the first line.
        if let Some((_, rest)) = line.split_once(&format!("{word} ")) {
            return rest.trim().to_owned();
        }
    }
}

fn connect(path: &Emulation) -> TcpStream {
    let to = SocketAddr::new(path.server().addr_v4().into(), PORT);
    path.client()
        .run(|| TcpStream::connect(to).unwrap())
        .unwrap()
}

#[test]
fn a_kill_in_the_middle_of_a_transfer_leaves_the_bytes_whole_and_the_kernel_as_before() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let path = path();
    let server = std::env::current_exe().unwrap();
    let mut command = headstart(&["exec", "--startup", "su_fast_start", "--"]);
    command
        .arg(server)
        .args(["serve", "--exact", "--nocapture"])
        .env(SERVES, "1");
    command.stdout(Stdio::piped());
    let mut running = path.server().spawn(command).unwrap();
    let headstart_pid = running.id();
    let mut lines = BufReader::new(running.stdout.take().unwrap());
    let server_pid: i32 = told(&mut lines, "pid").parse().unwrap();
    assert_eq!(registered(), ["su_fast_start"]);

    let mut connection = connect(&path);
    assert_eq!(told(&mut lines, "control"), "su_fast_start");
    let mut received = vec![0; BYTES / 4];
    connection.read_exact(&mut received).unwrap();
    kill(Pid::from_raw(headstart_pid.cast_signed()), Signal::SIGKILL).unwrap();
    running.wait().unwrap();
    connection
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut rest = vec![0; BYTES - received.len()];
    connection.read_exact(&mut rest).unwrap();
    received.extend(rest);
    assert_eq!(Sha256::digest(&received), Sha256::digest(payload()));

    // Before Linux 6.4 a name stays until it is cleaned away.
    if !has_struct_ops_links() {
        assert!(
            headstart(&["doctor", "--clean"])
                .status()
                .unwrap()
                .success()
        );
    }
    assert!(eventually(|| registered().is_empty()), "{:?}", registered());
    drop(connection);
    let _second = connect(&path);
    let control = told(&mut lines, "control");
    assert!(
        !control.starts_with("su_"),
        "a new connection is under {control}"
    );

    // The server is the user's, so it runs on; its cgroup is found by doctor, which lets it live.
    if has_struct_ops_links() {
        assert_eq!(cgroups_of(headstart_pid).len(), 1);
        let found = headstart(&["doctor"]).output().unwrap();
        let name = format!("headstart-{headstart_pid}-0");
        assert!(String::from_utf8_lossy(&found.stdout).contains(&name));
    }
    assert!(
        headstart(&["doctor", "--clean"])
            .status()
            .unwrap()
            .success()
    );
    assert!(cgroups_of(headstart_pid).is_empty());
    kill(Pid::from_raw(server_pid), Signal::SIGKILL).expect("the server lives");
}

#[test]
fn the_exit_code_is_passed_on_and_nothing_is_left() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let mut child = headstart(&[
        "exec",
        "--startup",
        "su_standard",
        "--",
        "sh",
        "-c",
        "exit 7",
    ])
    .spawn()
    .unwrap();
    let pid = child.id();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    assert!(registered().is_empty());
    assert!(cgroups_of(pid).is_empty());
}

#[test]
fn it_waits_for_a_program_that_puts_itself_into_the_background() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let started = std::time::Instant::now();
    let script = "(sleep 1; true) >/dev/null 2>&1 & exit 0";
    let status = headstart(&["exec", "--startup", "su_standard", "--", "sh", "-c", script])
        .status()
        .unwrap();
    assert!(status.success());
    assert!(
        started.elapsed() >= Duration::from_secs(1),
        "it did not wait for the background"
    );
}

#[test]
fn an_interrupt_reaches_the_program_and_nothing_is_left() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let script = ["sh", "-c", "echo up; exec sleep 1000"];
    let mut command = headstart(&["exec", "--startup", "su_standard", "--"]);
    let mut child = command.args(script).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(registered(), ["su_standard"]);
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(registered().is_empty());
    assert!(cgroups_of(child.id()).is_empty());
}

#[test]
fn a_second_owner_of_a_name_is_refused_in_words() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let script = ["sh", "-c", "echo up; exec sleep 1000"];
    let mut command = headstart(&["exec", "--startup", "su_standard", "--"]);
    let mut first = command.args(script).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(first.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let second = headstart(&["exec", "--startup", "su_standard", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(
        words(&second).contains("registered in the kernel already"),
        "{}",
        words(&second)
    );
    kill(Pid::from_raw(first.id().cast_signed()), Signal::SIGTERM).unwrap();
    first.wait().unwrap();
}

#[test]
fn what_cannot_be_is_refused_as_wrong_usage_before_anything_is_loaded() {
    let refusals: [(&[&str], &str); 6] = [
        (
            &["--startup", "su_fast_strat", "--", "true"],
            "did you mean \"su_fast_start\"?",
        ),
        (
            &["--startup", "su_fast_start", "--", "no-such-program"],
            "does not exist",
        ),
        (
            &[
                "--startup",
                "su_fast_start",
                "--param",
                "maxburst=2",
                "--",
                "true",
            ],
            "did you mean \"maxburst_pkts\"?",
        ),
        (
            &[
                "--startup",
                "su_standard",
                "--param",
                "iw_pkts=0",
                "--",
                "true",
            ],
            "must be 1 to 100 pkts (got 0)",
        ),
        (
            &["--startup", "su_standard", "--dscp", "64", "--", "true"],
            "0..=63",
        ),
        (&["--startup", "su_standard"], "<CMD>"),
    ];
    for (arguments, word) in refusals {
        let output = headstart(&["exec"]).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            words(&output).contains(word),
            "{arguments:?}: {}",
            words(&output)
        );
    }
}

#[test]
fn without_root_it_ends_with_exit_code_3_and_the_words_of_doctor() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let as_nobody = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--clear-groups",
            env!("CARGO_BIN_EXE_headstart"),
        ]);
        command.args(arguments).output().unwrap()
    };
    for arguments in [
        &["exec", "--startup", "su_standard", "--", "true"][..],
        &["doctor"],
    ] {
        let output = as_nobody(arguments);
        // The build directory may be out of nobody's reach.
        if output.status.code() == Some(127) || output.status.code() == Some(126) {
            return;
        }
        assert_eq!(
            output.status.code(),
            Some(3),
            "{arguments:?}: {}",
            words(&output)
        );
        assert!(
            words(&output).contains("privilege: not root"),
            "{}",
            words(&output)
        );
    }
    assert_eq!(
        as_nobody(&["list"]).status.code(),
        Some(0),
        "what can run without root does"
    );
}
