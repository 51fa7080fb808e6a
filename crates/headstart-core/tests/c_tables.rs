//! The tables of `core/tests/`: each is compiled with every C compiler that is here, and run.

#![allow(
    clippy::expect_used,
    reason = "helpers of tests: a failure here is a failure of the test"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const STRICT: [&str; 8] = [
    "-std=c11",
    "-ffreestanding",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wshadow",
    "-Wpedantic",
    "-Werror",
];
const UNDEFINED: [&str; 2] = ["-fsanitize=undefined", "-fno-sanitize-recover=all"];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core/tests")
}

/// Every `*_table.c`, by name.
fn tables() -> Vec<PathBuf> {
    let mut tables: Vec<_> = std::fs::read_dir(directory())
        .expect("core/tests is there")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.to_string_lossy().ends_with("_table.c"))
        .collect();
    tables.sort();
    tables
}

/// The C compiler as cargo's build scripts find it (CC, or the system's), and clang beside it.
fn compilers(scratch: &Path) -> Vec<(String, Vec<String>)> {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let usual = cc::Build::new()
        .target(&host)
        .host(&host)
        .opt_level(1)
        .out_dir(scratch)
        .cargo_metadata(false)
        .try_get_compiler()
        .expect("there is a C compiler: the crate itself was built with it");
    let mut found = vec![command_line(usual.path())];
    let clang = PathBuf::from("clang");
    if !usual.is_like_clang() && works(&clang, scratch, &[]) {
        found.push(command_line(&clang));
    }
    found
        .into_iter()
        .map(|name| {
            // Where its run-time library is missing, the tables run without it and say so.
            let flags: &[&str] = if works(Path::new(&name), scratch, &UNDEFINED) {
                &UNDEFINED
            } else {
                &[]
            };
            (name, flags.iter().map(|flag| (*flag).to_owned()).collect())
        })
        .collect()
}

fn command_line(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Whether a program that is compiled so runs.
fn works(compiler: &Path, scratch: &Path, flags: &[&str]) -> bool {
    let (source, program) = (scratch.join("probe.c"), scratch.join("probe"));
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("the scratch directory");
    let compiled = Command::new(compiler)
        .args(flags)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output();
    compiled.is_ok_and(|output| output.status.success())
        && Command::new(&program)
            .output()
            .is_ok_and(|output| output.status.success())
}

fn compile(compiler: &str, extra: &[String], source: &Path, program: &Path) -> Output {
    Command::new(compiler)
        .args(STRICT)
        .args(["-O1", "-g"])
        .args(extra)
        .arg(source)
        .arg("-o")
        .arg(program)
        .output()
        .expect("the compiler ran before")
}

#[test]
fn every_row_of_every_c_table_gives_the_verdict_that_was_computed_by_hand() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let tables = tables();
    assert!(!tables.is_empty(), "no tables in {}", directory().display());
    let mut failures = Vec::new();
    for (index, (compiler, extra)) in compilers(scratch.path()).iter().enumerate() {
        for source in &tables {
            let name = source.file_stem().expect("a file").to_string_lossy();
            println!("# {name}.c: {compiler} {}", extra.join(" "));
            let program = scratch.path().join(format!("{name}-{index}"));
            let compiled = compile(compiler, extra, source, &program);
            if !compiled.status.success() {
                let said = String::from_utf8_lossy(&compiled.stderr);
                failures.push(format!("{name}.c does not compile, {compiler}:\n{said}"));
                continue;
            }
            let run = Command::new(&program).output().expect("it was just built");
            let said = String::from_utf8_lossy(&run.stdout);
            println!("{said}{}", String::from_utf8_lossy(&run.stderr));
            if !run.status.success() {
                failures.push(format!("{name}, {compiler}:\n{}", wrong_lines(&said)));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The rows that failed and what was wrong with them.
fn wrong_lines(output: &str) -> String {
    let mut lines = Vec::new();
    let mut row_failed = false;
    for line in output.lines() {
        if line.starts_with("ok ") || line.starts_with("not ok ") {
            row_failed = line.starts_with("not ok ");
        }
        if row_failed {
            lines.push(line);
        }
    }
    lines.join("\n")
}

#[test]
fn every_start_up_of_the_registry_has_a_table() {
    let tables = tables();
    for startup in headstart_core::Startup::all() {
        let table = startup.name().replacen("su_", "", 1) + "_table.c";
        assert!(
            tables.iter().any(|path| path.ends_with(&table)),
            "core/tests/{table} is missing"
        );
    }
}
