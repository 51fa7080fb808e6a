//! `headstart paths` and the memory of `headstart exec`: live, saved, and from one to the other.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use headstart_path::{Emulation, LinkConfig, PathConfig};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use support::*;

/// 32 packets each 100 ms: maxpossible is 160 packets.
fn export(prefix: &str, ended: &str) -> String {
    let ended = match ended {
        "slow-start" => 1,
        _ => 2,
    };
    let path = json!({
        "age_us": 1_000_000, "rate_bytes_per_s": 463_360, "cwnd_pkts": 32, "ssthresh_pkts": 32,
        "srtt_us": 100_000, "rttvar_us": 1000, "min_rtt_us": 100_000, "ending_mpkts": 32_000,
        "window_mean_mpkts": 32_000, "window_dev_mpkts": 0, "min_rtt_mean_us": 100_000,
        "min_rtt_dev_us": 0, "lost_pkts": 0, "samples": 3, "ended": ended,
    });
    let entry = json!({ "prefix": prefix, "path": path });
    json!({ "schema": 1, "verb": "paths export", "source": "saved", "paths": [entry] }).to_string()
}

/// What the verb printed; it must succeed.
fn paths(memory: &Path, arguments: &[&str]) -> String {
    let mut command = headstart(&["paths"]);
    let output = command
        .args(arguments)
        .arg("--memory")
        .arg(memory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", words(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn what_is_imported_is_listed_shown_exported_and_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let memory = directory.path().join("paths.sqlite");
    assert!(paths(&memory, &["list"]).contains("nothing is remembered"));
    let file = directory.path().join("export.json");
    for (prefix, bits) in [
        ("10.77.1.0/24", 32),
        ("10.77.0.0/16", 24),
        ("fd77::/48", 48),
    ] {
        let text = export(prefix, "avoidance").replace("32_000", &bits.to_string());
        fs::write(&file, text).unwrap();
        assert!(paths(&memory, &["import", file.to_str().unwrap()]).contains("imported: 1"));
    }
    let list = paths(&memory, &["list"]);
    assert!(
        list.contains("10.77.1.0/24") && list.contains("3 entries (saved memory)"),
        "{list}"
    );
    // The longest prefix answers.
    let shown = document(&paths(&memory, &["show", "10.77.1.9", "--json"]));
    assert_eq!(shown["paths"][0]["prefix"], "10.77.1.0/24");
    let shown = document(&paths(&memory, &["show", "10.77.9.9", "--json"]));
    assert_eq!(shown["paths"][0]["prefix"], "10.77.0.0/16");
    assert!(paths(&memory, &["show", "fd77::1"]).contains("last loss-free window"));

    let all = paths(&memory, &["export"]);
    assert_eq!(document(&all)["paths"].as_array().unwrap().len(), 3);
    assert!(paths(&memory, &["forget", "10.77.0.0/16"]).contains("forgotten: 2"));
    let gone = headstart(&["paths", "show", "10.77.1.9", "--memory"])
        .arg(&memory)
        .output()
        .unwrap();
    assert_eq!(gone.status.code(), Some(1));
    assert!(
        words(&gone).contains("nothing is remembered of 10.77.1.9/32"),
        "{}",
        words(&gone)
    );

    let mut import = headstart(&["paths", "import", "-", "--memory"]);
    let mut child = import
        .arg(&memory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(all.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
    let forgotten = document(&paths(&memory, &["forget", "--all", "--json"]));
    assert_eq!(forgotten["forgotten"], 3);
}

#[test]
fn what_is_no_export_or_no_prefix_is_refused_in_words() {
    let directory = tempfile::tempdir().unwrap();
    let memory = directory.path().join("paths.sqlite");
    let file = directory.path().join("export.json");
    let refused = |text: &str| {
        fs::write(&file, text).unwrap();
        let mut command = headstart(&["paths", "import"]);
        let output = command
            .arg(&file)
            .arg("--memory")
            .arg(&memory)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        words(&output)
    };
    assert!(refused("{}").contains("is no export of headstart"));
    let newer = export("10.0.0.0/8", "avoidance").replace("\"schema\":1", "\"schema\":2");
    assert!(refused(&newer).contains("its schema is 2"));
    assert!(refused(&export("10.0.0.0/33", "avoidance")).contains("32 bits"));
    let output = headstart(&["paths", "show", "there"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        words(&output).contains("is no address"),
        "{}",
        words(&output)
    );
}

const PORT: u16 = 8080;
/// An ordinary program: says how much it will send, if it is asked to, sends a little, and then the rest.
const SERVER: &str = "
import socket, struct, sys
listener = socket.create_server(('', 8080))
print('up', flush=True)
while True:
    connection, peer = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    announced, sent = map(int, connection.makefile().readline().split())
    if announced:
        connection.setsockopt(socket.IPPROTO_TCP, 0x4853, struct.pack('=Q', announced))
    connection.sendall(b'x' * sent)
    connection.close()
";

fn path() -> Emulation {
    let (rate, delay) = ("20mbit".parse().unwrap(), "50ms".parse().unwrap());
    let link = LinkConfig::new(rate, delay, "drop-tail:300".parse().unwrap());
    let config = PathConfig {
        lane: 9,
        ..PathConfig::new(link.clone(), link)
    };
    Emulation::start(config).unwrap()
}

/// The Python server under a start-up, with this memory.
fn serve(path: &Emulation, memory: &Path, startup: &str) -> (Child, BufReader<impl Read + use<>>) {
    let mut command = headstart(&["exec", "--startup", startup, "--verbose", "--memory"]);
    command.arg(memory).args(["--", "python3", "-c", SERVER]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = path.server().spawn(command).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "up\n");
    let said = BufReader::new(child.stderr.take().unwrap());
    (child, said)
}

fn fetch(path: &Emulation, announced: usize, bytes: usize) {
    let to = SocketAddr::new(path.server().addr_v4().into(), PORT);
    let mut stream = path
        .client()
        .run(|| TcpStream::connect(to).unwrap())
        .unwrap();
    writeln!(stream, "{announced} {bytes}").unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert_eq!(got.len(), bytes);
}

/// Reads what the start-up decides until one of the words comes.
fn decision(said: &mut impl BufRead, words: &[&'static str]) -> &'static str {
    loop {
        let mut line = String::new();
        assert!(said.read_line(&mut line).unwrap() > 0, "headstart ended");
        if let Some(word) = words
            .iter()
            .find(|word| line.contains(&format!(": {word}")))
        {
            return word;
        }
    }
}

fn end(mut child: Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
    child.wait().unwrap();
}

fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: there is no python3");
    }
    found
}

#[test]
fn an_ordinary_program_says_how_large_its_transfer_is() {
    let _lock = one_at_a_time();
    if skipped() || !has_python() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let memory = directory.path().join("paths.sqlite");
    let file = directory.path().join("export.json");
    let path = path();
    fs::write(&file, export("10.77.9.0/24", "avoidance")).unwrap();
    paths(&memory, &["import", file.to_str().unwrap()]);
    let (child, mut said) = serve(&path, &memory, "su_adaptive");
    let methods = ["constant-rate", "half-window", "transfer-large"];
    fetch(&path, 0, 20_000);
    assert_eq!(
        decision(&mut said, &methods),
        "constant-rate",
        "14 packets are queued"
    );
    // It says 10 MB, of which it has queued as much as before.
    fetch(&path, 10_000_000, 20_000);
    assert_eq!(decision(&mut said, &methods), "transfer-large");
    // The one before ended in slow start.
    fetch(&path, 20_000, 20_000);
    assert_eq!(decision(&mut said, &methods), "half-window");
    end(child, Signal::SIGTERM);
}

#[test]
fn the_memory_of_one_run_is_there_in_the_next_and_in_the_hands_of_paths_meanwhile() {
    let _lock = one_at_a_time();
    if skipped() || !has_python() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let memory = directory.path().join("paths.sqlite");
    let path = path();
    let (child, mut said) = serve(&path, &memory, "su_fast_start");
    fetch(&path, 0, 400_000);
    assert_eq!(
        decision(&mut said, &["path-known", "path-unknown"]),
        "path-unknown"
    );
    // The last ACK, and what it teaches, comes after the client has its last byte.
    let live = || {
        document(
            &String::from_utf8(
                headstart(&["paths", "list", "--json"])
                    .output()
                    .unwrap()
                    .stdout,
            )
            .unwrap(),
        )
    };
    let known = |document: &Value| {
        document["paths"]
            .as_array()
            .unwrap()
            .iter()
            .any(|entry| entry["prefix"] == "10.77.9.0/24")
    };
    assert!(eventually(|| known(&live())), "{}", live());
    assert_eq!(live()["source"], "live");
    end(child, Signal::SIGTERM);
    assert_eq!(live()["source"], "saved");

    let saved = document(&paths(&memory, &["list", "--json"]));
    assert!(known(&saved), "{saved}");
    let (child, mut said) = serve(&path, &memory, "su_fast_start");
    fetch(&path, 0, 100_000);
    assert_eq!(
        decision(&mut said, &["path-known", "path-unknown"]),
        "path-known"
    );

    // Forgotten while it runs: the next connection is started as usual.
    sleep(Duration::from_millis(500));
    assert!(
        headstart(&["paths", "forget", "--all"])
            .status()
            .unwrap()
            .success()
    );
    fetch(&path, 0, 10_000);
    assert_eq!(
        decision(&mut said, &["path-known", "path-unknown"]),
        "path-unknown"
    );
    end(child, Signal::SIGKILL);
    let _ = headstart(&["doctor", "--clean"]).output();
    // A kill loses what was not yet saved, and nothing else.
    assert!(known(&document(&paths(&memory, &["list", "--json"]))));
}

#[test]
fn a_memory_that_cannot_be_opened_is_an_error_if_it_was_asked_for() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let foreign = directory.path().join("notes");
    fs::write(
        &foreign,
        "this is no database, and it is long enough to tell ".repeat(50),
    )
    .unwrap();
    let mut command = headstart(&["exec", "--startup", "su_standard", "--memory"]);
    let output = command.arg(&foreign).args(["--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        words(&output).contains("no path memory"),
        "{}",
        words(&output)
    );
    let mut command = headstart(&["exec", "--startup", "su_standard"]);
    let output = command
        .args(["--memory", "none", "--", "true"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", words(&output));
}
