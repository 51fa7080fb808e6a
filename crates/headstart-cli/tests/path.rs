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
        words(&output).contains("headstart path:\n  down 10mbit"),
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

#[test]
fn a_path_that_cannot_be_is_refused_with_the_reason() {
    if skipped() {
        return;
    }
    let refusals: [(&[&str], &str); 7] = [
        (
            &["--rate", "10mbit", "--rtt", "100us"],
            "cannot do less than 200us",
        ),
        (
            &["--rate", "1kbit", "--rtt", "10ms"],
            "give at least 1200bit",
        ),
        (
            &["--rate", "10mbit", "--rtt", "10ms", "--hosts", "128"],
            "there can be 1 to 127",
        ),
        (
            &["--rate", "10mbit", "--rtt", "10ms", "--lane", "256"],
            "0..=255",
        ),
        (
            &["--rate", "10mbit", "--rtt", "10ms", "--background", "ftp:1"],
            "only bulk and web",
        ),
        (
            &[
                "--rate",
                "10mbit",
                "--rtt",
                "10ms",
                "--background",
                "bulk:1,congestion=nope",
            ],
            "there are: ",
        ),
        (
            &[
                "--rate",
                "10mbit",
                "--rtt",
                "10ms",
                "--log",
                "/no/such/folder/log",
            ],
            "cannot write the log /no/such/folder/log",
        ),
    ];
    for (options, word) in refusals {
        let output = headstart(&[options, &["--", "true"]].concat())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        let words = words(&output);
        assert!(words.contains(word), "{options:?}: {words}");
    }
}

#[test]
fn the_hosts_are_in_the_environment_and_known_by_name() {
    if skipped() {
        return;
    }
    let script = "echo $HEADSTART_SERVERS; echo $HEADSTART_CLIENTS6; echo $HEADSTART_LANE; \
                  getent hosts client2; set -- $HEADSTART_NS_SERVERS; \
                  test $(stat -L -c %i $2) != $(stat -L -c %i /proc/self/ns/net) && echo another";
    let options = ["--hosts", "2", "--lane", "71"];
    let output = behind(&options, &["sh", "-c", script]).output().unwrap();
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[..3],
        ["10.77.71.1 10.77.71.3", "fd77:0:47::2 fd77:0:47::4", "71"]
    );
    assert!(lines[3].starts_with("10.77.71.4 "), "{said}");
    assert_eq!(lines[4], "another");
}

#[test]
fn cross_traffic_and_logs_are_in_the_results() {
    if skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (log, pcap) = (file("fates.parquet"), file("both.pcapng"));
    let options = [
        "--lane",
        "72",
        "--hosts",
        "2",
        "--background",
        "bulk:2",
        "--background",
        "bulk:1,up",
        "--log",
        &log,
        "--pcap",
        &pcap,
        "--snaplen",
        "128",
        "--json",
    ];
    let output = behind(&options, &["sleep", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let background = document["background"].as_array().unwrap();
    assert_eq!(background.len(), 2);
    assert_eq!(background[1]["spec"], "bulk:1,up");
    assert!(
        background
            .iter()
            .all(|source| source["received_bytes"].as_u64().unwrap() > 50_000)
    );
    let path = &document["path"];
    assert_eq!(path["hosts"], 2);
    assert!(path["forward"]["goodput_bits_per_s"].as_f64().unwrap() > 1e6);
    let written = path["log"]["written_pkts"].as_u64().unwrap();
    let came = |direction: &str| path[direction]["in_pkts"].as_u64().unwrap();
    assert_eq!(written, came("forward") + came("reverse"));
    assert_eq!(path["log"]["lost_pkts"], 0);
    // Magic numbers of the two formats: "PAR1", and the section header block.
    assert_eq!(&std::fs::read(log).unwrap()[..4], b"PAR1");
    assert_eq!(std::fs::read(pcap).unwrap()[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
}

#[test]
fn quiet_says_nothing() {
    if skipped() {
        return;
    }
    let output = behind(&["--quiet"], &["true"]).output().unwrap();
    assert_eq!(
        (output.status.code(), words(&output).as_str()),
        (Some(0), "")
    );
}

#[test]
fn a_shell_runs_on_the_clients_side_and_its_prompt_shows_the_lane() {
    if skipped() {
        return;
    }
    let shell = |named: &str| {
        let mut running = headstart(&[
            "--rate", "10mbit", "--rtt", "20ms", "--lane", "73", "--shell",
        ])
        .env("SHELL", named)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
        let mut input = running.stdin.take().unwrap();
        input
            .write_all(b"echo $HEADSTART_CLIENT; echo \"$PS1\"; exit 5\n")
            .unwrap();
        drop(input);
        let output = running.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(5));
        String::from_utf8(output.stdout).unwrap()
    };
    let said = shell("/bin/sh");
    assert!(said.contains("10.77.73.2\n[path 73] "), "{said}");
    if Path::new("/bin/bash").exists() {
        let said = shell("/bin/bash");
        assert!(said.contains("10.77.73.2\n[path 73] "), "{said}");
    }
}

#[test]
fn a_grandchild_that_outlives_a_kill_is_found_and_ended() {
    if skipped() {
        return;
    }
    // Two that the kernel does not end with us, one of them without our mark in its environment.
    let script = "setsid sh -c 'echo $$; exec sleep 1001' & setsid env -i sleep 1002 & wait";
    let options = ["--lane", "74"];
    let command = ["sh", "-c", script];
    let (mut running, grandchild) = sleeping(behind(&options, &command).stderr(Stdio::null()));
    thread::sleep(Duration::from_millis(300));
    running.kill().unwrap();
    running.wait().unwrap();
    // A path of somebody else that runs at the same time is not touched.
    let (mut other, others) = sleeping(behind(&["--lane", "75"], &SLEEPER).stderr(Stdio::null()));
    let next = behind(&["--lane", "76"], &["true"]).output().unwrap();
    let said = words(&next);
    // Another test's path may have come first and ended it; then that one said so.
    if said.contains("left behind") {
        assert!(
            said.contains(&format!("process {grandchild} (sleep 1001)")),
            "{said}"
        );
        assert!(said.contains("(sleep 1002)"), "{said}");
    }
    assert!(is_gone(grandchild));
    assert!(
        Path::new("/proc")
            .join(others.to_string())
            .join("exe")
            .exists()
    );
    kill(Pid::from_raw(other.id().cast_signed()), Signal::SIGTERM).unwrap();
    other.wait().unwrap();
}
