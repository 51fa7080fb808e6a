//! Debian's own kernel in virtual time: what the kernel's side does on it, exactly.
//!
//! `make test-kernels` runs this; a plain `cargo test` does not. It wants qemu and the kernel that
//! `headstart virtual fetch` gets. `ACCEPT=1` writes the snapshots anew.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod snapshots;

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use headstart_virtual::{
    Finished, GuestCommand, GuestFiles, INIT, Job, KernelImage, Machine, OUT, cache_dir,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Debian 12's, the oldest that is supported, and the one that the snapshots hold for.
const SERIES: &str = "6.1";

/// What the kernel's release begins with: `KERNEL=7.3 make test-kernels` takes another one that was fetched.
fn series() -> String {
    std::env::var("KERNEL")
        .ok()
        .filter(|series| !series.is_empty())
        .unwrap_or_else(|| SERIES.to_owned())
}

fn headstart() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_headstart"))
}

fn machine() -> Machine {
    let image =
        KernelImage::find(&cache_dir(), Some(&series())).unwrap_or_else(|error| panic!("{error}"));
    Machine::new(image, headstart().to_owned()).unwrap_or_else(|error| panic!("{error}"))
}

/// Leave to have a machine run. A machine keeps one CPU busy: there are as many at a time as CPUs, and not more than
/// four of 2 GiB each. The tests themselves all run at once, so that no CPU has to wait for the end of a test.
struct Turn;

static RUNNING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

impl Turn {
    fn take() -> Turn {
        let most = thread::available_parallelism().map_or(1, |cpus| cpus.get().min(4));
        let (running, ended) = &RUNNING;
        let mut running = ended
            .wait_while(running.lock().unwrap(), |running| *running >= most)
            .unwrap();
        *running += 1;
        Turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (running, ended) = &RUNNING;
        *running.lock().unwrap() -= 1;
        ended.notify_one();
    }
}

fn boot(commands: Vec<GuestCommand>, files: &GuestFiles) -> Finished {
    let _turn = Turn::take();
    machine()
        .run(&Job { commands }, files, |_| ControlFlow::Continue(()))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The compiled test programs of headstart-kernel with these names. They are compiled as one of the workspace, as
/// `cargo test --workspace` does it: on its own the crate has other features of its dependencies, and all of them
/// would be compiled once more.
fn kernel_tests(names: &[&str]) -> Vec<PathBuf> {
    let done = Command::new(env!("CARGO"))
        .args(["test", "--no-run", "--message-format=json"])
        .args(["--workspace", "--exclude", "headstart-python"])
        .args(names.iter().flat_map(|name| ["--test", name]))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| {
            message["profile"]["test"] == true
                && names.iter().any(|name| message["target"]["name"] == *name)
                && message["manifest_path"]
                    .as_str()
                    .is_some_and(|path| path.ends_with("headstart-kernel/Cargo.toml"))
        })
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .collect()
}

#[test]
fn doctor_names_what_the_kernel_lacks_and_that_start_ups_can_run() {
    let finished = boot(
        vec![GuestCommand::new([INIT, "doctor", "--json"])],
        &GuestFiles::new(),
    );
    let ended = &finished.commands[0];
    assert_eq!(ended.code, 0, "{}", String::from_utf8_lossy(&ended.stderr));
    let found: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(found["can_run_startups"], true);
    let limited: Vec<&str> = found["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["verdict"] != "ok")
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    let lacks: &[&str] = match series().as_str() {
        SERIES => &["struct_ops links", "tc links (tcx)"],
        _ => &[],
    };
    assert_eq!(limited, lacks);
}

#[test]
fn the_tests_of_the_live_kernel_pass() {
    let names = test_names();
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let programs = kernel_tests(&wanted);
    assert_eq!(programs.len(), names.len());
    // Each file has a machine of its own.
    let finished: Vec<Finished> = thread::scope(|scope| {
        let all: Vec<_> = programs
            .iter()
            .map(|program| scope.spawn(|| test_in_guest(program)))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let ended: Vec<_> = finished.iter().flat_map(|run| &run.commands).collect();
    // All of them say what they have to say before one of them fails the test.
    for ended in &ended {
        let words = String::from_utf8_lossy(&ended.stdout);
        println!("{words}{}", String::from_utf8_lossy(&ended.stderr));
    }
    for ended in &ended {
        let words = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.code, 0);
        assert!(!words.contains("SKIPPED") && !ended.stderr.starts_with(b"SKIPPED"));
    }
}

fn test_in_guest(program: &Path) -> Finished {
    let mut files = GuestFiles::new();
    files.program(program, program).unwrap();
    let mut command = GuestCommand::new([program.to_string_lossy(), "--show-output".into()]);
    // Random cases are the same there as here.
    if let Ok(seed) = std::env::var(SEED) {
        command.env.push((SEED.into(), seed));
    }
    boot(vec![command], &files)
}

/// Of the property tests (.cargo/config.toml).
const SEED: &str = "PROPTEST_RNG_SEED";

/// What runs in the guest every time: the life of a start-up in the kernel. The others
/// take minutes there: `ALL=1 make test-kernels` runs them too.
const EVERY_TIME: [&str; 2] = ["fallbacks", "load"];

/// Not among them: what writes traces, which has a test of its own, and what wants a qdisc that the guest has no module for.
const NEVER: [&str; 2] = ["exact", "local_drop"];

/// The test files of headstart-kernel to run in the guest.
fn test_names() -> Vec<String> {
    if std::env::var_os("ALL").is_none() {
        return EVERY_TIME.map(String::from).to_vec();
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../headstart-kernel/tests");
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| !NEVER.contains(&name.as_str()))
        .collect();
    names.sort();
    names
}

#[test]
fn two_boots_agree_in_every_byte_and_with_the_snapshots() {
    let programs = kernel_tests(&["exact"]);
    let program = programs.first().unwrap();
    let mut files = GuestFiles::new();
    files.program(program, program).unwrap();
    let mut command = GuestCommand::new([program.to_string_lossy()]);
    command.env.push(("HEADSTART_TRACE_DIR".into(), OUT.into()));
    let play = || {
        let finished = boot(vec![command.clone()], &files);
        let ended = &finished.commands[0];
        let words = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.code, 0, "{words}");
        finished
    };
    let (first, second) = thread::scope(|scope| {
        let other = scope.spawn(play);
        (play(), other.join().unwrap())
    });

    let names = names_in(first.out());
    assert!(!names.is_empty());
    assert_eq!(names, names_in(second.out()));
    for name in &names {
        let [one, two] = [&first, &second].map(|run| fs::read(run.out().join(name)).unwrap());
        assert!(
            one == two,
            "two boots differ in {name}, at byte {:?}",
            differ_at(&one, &two)
        );
    }
    if series() == SERIES {
        snapshots::compare(first.out(), &names);
    }
}

/// `headstart compare --on virtual` of a small scenario, with its folder of results.
fn compare(temporary: &Path, out: &Path) -> Command {
    let mut command = Command::new(headstart());
    command
        .args([
            "compare",
            "--on",
            "virtual",
            "--kernel",
            &series(),
            "--json",
            "tests/small.toml",
            "--out",
        ])
        .arg(out)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("TMPDIR", temporary)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
fn a_comparison_gives_the_same_bytes_twice() {
    let directory = tempfile::tempdir().unwrap();
    let run = |name: &str| -> (Output, PathBuf) {
        let out = directory.path().join(name);
        let _turn = Turn::take();
        (compare(directory.path(), &out).output().unwrap(), out)
    };
    let ((first, first_out), (second, second_out)) = thread::scope(|scope| {
        let other = scope.spawn(|| run("second"));
        (run("first"), other.join().unwrap())
    });
    assert_eq!(
        first.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&first.stderr)
    );
    assert!(first.stdout == second.stdout);
    let names = names_in(&first_out);
    let expected = [
        "packets.parquet",
        "results.json",
        "scenario.toml",
        "transfers.parquet",
        "windows.parquet",
    ];
    assert!(names.iter().eq(expected), "{names:?}");
    for name in &names {
        let [one, two] = [&first_out, &second_out].map(|out| fs::read(out.join(name)).unwrap());
        assert!(
            one == two,
            "{name} differs, at byte {:?}",
            differ_at(&one, &two)
        );
    }
    let document: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    assert!(
        document["machine"]["kernel"]
            .as_str()
            .unwrap()
            .starts_with(&series())
    );
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4 * 3);
    for cell in cells {
        assert_eq!(
            (&cell["on"], &cell["valid"]),
            (&"virtual".into(), &true.into()),
            "{cell}"
        );
    }
}

#[test]
fn an_interrupt_ends_the_machine_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let temporary = directory.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let _turn = Turn::take();
    let child = compare(&temporary, &out).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(300);
    while machines_in(&temporary) == 0 {
        assert!(Instant::now() < deadline, "no machine was started");
        thread::sleep(Duration::from_millis(20));
    }
    kill(
        Pid::from_raw(i32::try_from(child.id()).unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(machines_in(&temporary), 0);
    assert!(names_in(&temporary).is_empty());
    assert!(!out.exists());
}

/// Processes whose command line names the directory, other than ours.
fn machines_in(directory: &Path) -> usize {
    let wanted = directory.to_string_lossy().into_owned();
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| {
            let line = String::from_utf8_lossy(line);
            line.contains("qemu-system") && line.contains(&wanted)
        })
        .count()
}

fn names_in(directory: &Path) -> BTreeSet<String> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

fn differ_at(one: &[u8], two: &[u8]) -> Option<usize> {
    one.iter().zip(two).position(|(a, b)| a != b)
}
