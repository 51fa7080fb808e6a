//! `headstart path` as its users meet it: exit codes, words, and nothing left behind.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Set for the copy of this test binary that is to be the server.
const SERVES: &str = "HEADSTART_TEST_SERVES";

/// The server's port.
const PORT: u16 = 8080;

fn headstart(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
    command.arg("path").args(arguments).stdin(Stdio::null());
    command
}

/// Behind a small path.
fn behind(options: &[&str], command: &[&str]) -> Command {
    let path = ["--rate", "10mbit", "--rtt", "20ms"];
    headstart(&[&path, options, &["--"], command].concat())
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether this machine can emulate a path; if not, the test that asks is skipped and says so.
fn skipped() -> bool {
    let output = behind(&[], &["true"]).output().unwrap();
    if output.status.code() == Some(3) {
        // Past the test harness, which hides what passing tests print.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {}", words(&output).trim());
    }
    output.status.code() == Some(3)
}

/// Starts a command that prints its process number and sleeps; that number, read.
fn sleeping(headstart: &mut Command) -> (Child, i32) {
    let mut running = headstart.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(running.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    (running, line.trim().parse().unwrap())
}

fn is_gone(pid: i32) -> bool {
    let deadline = Instant::now() + Duration::from_secs(5);
    let exe = Path::new("/proc").join(pid.to_string()).join("exe");
    while exe.exists() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    !exe.exists()
}

const SLEEPER: [&str; 3] = ["sh", "-c", "echo $$; exec sleep 1000"];

#[test]
fn what_cannot_be_is_refused_as_wrong_usage() {
    let refusals: [(&[&str], &str); 6] = [
        (
            &["--rate", "0mbit", "--rtt", "1ms", "--", "true"],
            "give at least 1bit",
        ),
        (&["--rate", "12", "--rtt", "1ms", "--", "true"], "12mbit"),
        (&["--rate", "1mbit", "--rtt", "1", "--", "true"], "400ms"),
        (
            &[
                "--rate",
                "1mbit",
                "--rtt",
                "1ms",
                "--queue",
                "drop-tail:0",
                "--",
                "true",
            ],
            "room for 0 packets",
        ),
        (
            &["--rate", "1mbit", "--rtt", "1ms", "--", "no-such-program"],
            "does not exist",
        ),
        (&["--rate", "1mbit", "--rtt", "1ms"], "<CMD>"),
    ];
    for (arguments, word) in refusals {
        let output = headstart(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            words(&output).contains(word),
            "{arguments:?}: {}",
            words(&output)
        );
    }
}

#[test]
fn the_exit_code_of_the_command_is_passed_on() {
    if skipped() {
        return;
    }
    let output = behind(&[], &["sh", "-c", "echo out; exit 7"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"out\n");
    assert!(
        words(&output).contains("headstart path: down 10mbit"),
        "{}",
        words(&output)
    );
    let killed = behind(&[], &["sh", "-c", "kill -9 $$"]).output().unwrap();
    assert_eq!(killed.status.code(), Some(137));
}

/// Not a test: the server of `a_server_is_waited_for_and_reached`.
#[test]
fn serve_one_connection() {
    if std::env::var_os(SERVES).is_none() {
        return;
    }
    // Late, so that a client that did not wait would fail.
    thread::sleep(Duration::from_millis(200));
    let address = std::env::var("HEADSTART_SERVER").unwrap();
    let (mut connection, _) = TcpListener::bind((address, PORT))
        .unwrap()
        .accept()
        .unwrap();
    connection.write_all(&[b'x'; 50_000]).unwrap();
}

/// Not a test: the client of `a_server_is_waited_for_and_reached`.
#[test]
fn receive_from_the_server() {
    let Ok(address) = std::env::var("HEADSTART_SERVER") else {
        return;
    };
    if std::env::var_os(SERVES).is_some() {
        return;
    }
    let mut received = Vec::new();
    let mut connection = TcpStream::connect((address, PORT)).unwrap();
    connection.read_to_end(&mut received).unwrap();
    assert_eq!(received.len(), 50_000);
}

#[test]
fn a_server_is_waited_for_and_reached() {
    if skipped() {
        return;
    }
    let own = std::env::current_exe().unwrap();
    let own = own.to_str().unwrap();
    let server = format!("{SERVES}=1 exec '{own}' --exact serve_one_connection");
    let options = ["--json", "--server", &server, "--server-port", "8080"];
    let client = [own, "--exact", "receive_from_the_server"];
    let output = behind(&options, &client).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    assert!(words(&output).contains("test receive_from_the_server ... ok"));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&document["schema"], &document["verb"]),
        (&1.into(), &"path".into())
    );
    assert!(document["path"]["forward"]["out_bytes"].as_u64().unwrap() > 50_000);
    assert!(document["run"]["packets"].as_u64().unwrap() >= 35);
    assert!(document["machine"]["cpus"].as_u64().unwrap() >= 1);
    assert!(document["warnings"].is_array() && document["path"]["valid"].is_boolean());
}

#[test]
fn a_server_that_dies_first_is_an_error_with_its_last_words() {
    if skipped() {
        return;
    }
    let server = ["--server", "echo no such page >&2; exit 9"];
    let output = behind(&server, &["true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let words = words(&output);
    assert!(words.contains("ended before it listened"), "{words}");
    assert!(words.contains("its last words:\n  no such page"), "{words}");
}

#[test]
fn an_interrupt_and_a_termination_end_the_command_and_say_so() {
    if skipped() {
        return;
    }
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let (mut running, pid) = sleeping(behind(&[], &SLEEPER).stderr(Stdio::null()));
        kill(Pid::from_raw(running.id().cast_signed()), signal).unwrap();
        assert_eq!(running.wait().unwrap().code(), Some(code));
        assert!(is_gone(pid));
    }
}

#[test]
fn nothing_outlives_a_kill() {
    if skipped() {
        return;
    }
    let (mut running, pid) = sleeping(behind(&[], &SLEEPER).stderr(Stdio::null()));
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(is_gone(pid), "the command ends with headstart");
}
