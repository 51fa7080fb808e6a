//! `headstart sim` as a user meets it: what it prints, writes and refuses. No root, no kernel.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const SCENARIO: &str = r#"
name = "small"
[path]
rate = "1mbit"
rtt = "100ms"
queue = "drop-tail:20"
[simulation]
until = "60s"
[compare]
startups = ["cubic", "su_hystart"]
repeat = 3
[[case]]
kind = "new-cold"
bytes = "20kB"
"#;

fn sim(directory: &Path, text: &str, arguments: &[&str]) -> Output {
    fs::write(directory.join("small.toml"), text).unwrap();
    Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(["sim", "small.toml"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

fn document(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_table_and_the_document_have_the_same_cells() {
    let directory = tempfile::tempdir().unwrap();
    let json = document(&sim(directory.path(), SCENARIO, &["--json"]));
    let cells = json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    let output = sim(directory.path(), SCENARIO, &[]);
    let table = String::from_utf8(output.stdout).unwrap();
    for cell in cells {
        let median_ms = cell["fct_ms"]["median"].as_f64().unwrap();
        assert!(table.contains(&format!("{median_ms:.1}")), "{table}");
        assert_eq!(cell["n"], 3);
    }
}

#[test]
fn transfers_that_were_not_over_are_counted_with_the_key_that_helps() {
    let directory = tempfile::tempdir().unwrap();
    let short = SCENARIO.replace("60s", "200ms");
    let output = sim(directory.path(), &short, &[]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("6 of 6 transfers are left out"), "{said}");
    assert!(said.contains("give [simulation] a later until"), "{said}");
    let warnings = document(&sim(directory.path(), &short, &["--json"]))["warnings"].clone();
    assert_eq!(warnings.as_array().unwrap().len(), 1, "{warnings}");
}

#[test]
fn the_same_seed_gives_the_same_files_with_any_number_of_threads() {
    let directory = tempfile::tempdir().unwrap();
    let run = |out: &str, threads: &str, seed: &str| {
        let arguments = ["--out", out, "--threads", threads, "--seed", seed, "--json"];
        document(&sim(directory.path(), SCENARIO, &arguments));
        fs::read(directory.path().join(out).join("packets.parquet")).unwrap()
    };
    let one = run("one", "1", "7");
    assert_eq!(one, run("two", "2", "7"));
    assert_ne!(one, run("other", "2", "8"));
}

#[test]
fn what_cannot_be_simulated_is_refused_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    for (from, to, expected) in [
        ("1mbit", "1mbot", "small.toml:4"),
        ("\"20kB\"", "\"20kB\"\nbtyes = 1", "unknown key \"btyes\""),
        ("su_hystart", "su_histart", "su_hystart"),
        ("repeat = 3", "repeat = 0", "small.toml:11"),
    ] {
        let output = sim(directory.path(), &SCENARIO.replace(from, to), &[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{to}: {said}");
        assert!(output.stdout.is_empty());
    }
}
