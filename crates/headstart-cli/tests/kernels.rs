//! Debian's own kernel in virtual time: what the kernel's side does on it, exactly.
//!
//! `make test-kernels` runs this; a plain `cargo test` does not. It wants qemu and the kernel that
//! `headstart virtual fetch` gets. `ACCEPT=1` writes the snapshots anew.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use headstart_virtual::{
    Finished, GuestCommand, GuestFiles, INIT, Job, KernelImage, Machine, OUT, cache_dir,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Debian 12's, the oldest that is supported.
const SERIES: &str = "6.1.";

/// Times of a snapshot may differ by this much in ms: another compiler's program takes another number of instructions,
/// and an instruction is a nanosecond. Between two runs of the same programs they may not differ at all.
const BUILDS_DIFFER_MS: f64 = 1.5;

fn headstart() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_headstart"))
}

fn machine() -> Machine {
    let image =
        KernelImage::find(&cache_dir(), Some(SERIES)).unwrap_or_else(|error| panic!("{error}"));
    Machine::new(image, headstart().to_owned()).unwrap_or_else(|error| panic!("{error}"))
}

fn boot(commands: Vec<GuestCommand>, files: &GuestFiles) -> Finished {
    machine()
        .run(&Job { commands }, files, |_| ControlFlow::Continue(()))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The compiled test programs of headstart-kernel whose names cargo is given.
fn kernel_tests(which: &[&str]) -> Vec<PathBuf> {
    let done = Command::new(env!("CARGO"))
        .args([
            "test",
            "--no-run",
            "--message-format=json",
            "-p",
            "headstart-kernel",
        ])
        .args(which)
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
        .filter(|message| message["profile"]["test"] == true)
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .collect()
}

#[test]
fn doctor_names_what_linux_6_1_lacks_and_that_start_ups_can_run() {
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
    assert_eq!(limited, ["struct_ops links", "tc links (tcx)"]);
}

#[test]
fn the_tests_of_the_live_kernel_pass() {
    let mut files = GuestFiles::new();
    let mut commands = Vec::new();
    let names = test_names();
    let wanted: Vec<&str> = names.iter().flat_map(|name| ["--test", name]).collect();
    for program in kernel_tests(&wanted) {
        files.program(&program, &program).unwrap();
        commands.push(GuestCommand::new([
            program.to_string_lossy(),
            "--show-output".into(),
        ]));
    }
    assert_eq!(commands.len(), names.len());
    let finished = boot(commands, &files);
    for ended in &finished.commands {
        let words = String::from_utf8_lossy(&ended.stdout);
        println!("{words}{}", String::from_utf8_lossy(&ended.stderr));
        assert_eq!(ended.code, 0);
        assert!(!words.contains("SKIPPED") && !ended.stderr.starts_with(b"SKIPPED"));
    }
}

/// What runs in the guest every time: the life of a start-up in the kernel. The others
/// take minutes there: `ALL=1 make test-kernels` runs them too.
const EVERY_TIME: [&str; 4] = ["fallbacks", "fast_start", "load", "standard"];

/// The test files of headstart-kernel to run in the guest, never the one that writes traces.
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
        .filter(|name| name != "exact")
        .collect();
    names.sort();
    names
}

#[test]
fn two_boots_agree_in_every_byte_and_with_the_snapshots() {
    let programs = kernel_tests(&["--test", "exact"]);
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
    compare_with_snapshots(first.out(), &names);
}

/// `headstart compare --on virtual` of a small scenario, with its folder of results.
fn compare(temporary: &Path, out: &Path) -> Command {
    let mut command = Command::new(headstart());
    command
        .args([
            "compare",
            "--on",
            "virtual",
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
            .starts_with(SERIES)
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
    let child = compare(&temporary, &out).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
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

fn compare_with_snapshots(out: &Path, names: &BTreeSet<String>) {
    let snapshots = Path::new(env!("CARGO_MANIFEST_DIR")).join("../headstart-kernel/tests/exact");
    let summaries: BTreeSet<&String> = names.iter().filter(|name| name.ends_with(".txt")).collect();
    if std::env::var_os("ACCEPT").is_some_and(|accept| !accept.is_empty()) {
        fs::create_dir_all(&snapshots).unwrap();
        for name in &summaries {
            fs::copy(out.join(name), snapshots.join(name)).unwrap();
        }
        return;
    }
    let mut differences = Vec::new();
    for name in &summaries {
        let now = fs::read_to_string(out.join(name)).unwrap();
        match fs::read_to_string(snapshots.join(name)) {
            Ok(then) => differences.extend(
                differences_of(&then, &now)
                    .into_iter()
                    .map(|what| format!("{name}:{what}")),
            ),
            Err(_) => differences.push(format!("{name}: there is no snapshot yet; now:\n{now}")),
        }
    }
    for name in names_in(&snapshots) {
        if !names.contains(&name) {
            differences.push(format!("{name}: a snapshot of a start-up that is no more"));
        }
    }
    assert!(
        differences.is_empty(),
        "{}\nIf this is as it should be: make test-kernels ACCEPT=1, and look at what git diff shows",
        differences.join("\n")
    );
}

/// On this path a microsecond decides which packet finds the queue full, so that another build may lose another one:
/// two boots of one build agree on it, a snapshot does not hold for it.
const UNSETTLED: &str = "1mbit, 400 ms there and back, queue of 8";

/// The lines of a summary but for those of the path that no snapshot holds for.
fn settled(summary: &str) -> Vec<&str> {
    let mut kept = true;
    summary
        .lines()
        .filter(|line| {
            if !line.starts_with(' ') {
                kept = *line != UNSETTLED;
            }
            kept
        })
        .collect()
}

/// Lines that differ, with their numbers. Words that are times may differ a little.
fn differences_of(then: &str, now: &str) -> Vec<String> {
    let (then, now) = (settled(then), settled(now));
    let line = |lines: &[&str], at: usize| lines.get(at).copied().unwrap_or("(nothing)").to_owned();
    (0..then.len().max(now.len()))
        .map(|at| (at + 1, line(&then, at), line(&now, at)))
        .filter(|(_, then, now)| !same(then, now))
        .map(|(number, then, now)| format!("{number}: was {then:?}, is {now:?}"))
        .collect()
}

fn same(then: &str, now: &str) -> bool {
    let (then, now): (Vec<&str>, Vec<&str>) = (
        then.split_whitespace().collect(),
        now.split_whitespace().collect(),
    );
    then.len() == now.len()
        && then.iter().zip(&now).all(|(then, now)| {
            let ms = |word: &str| {
                word.strip_suffix("ms")
                    .and_then(|ms| ms.parse::<f64>().ok())
            };
            match (ms(then), ms(now)) {
                (Some(then), Some(now)) => (then - now).abs() <= BUILDS_DIFFER_MS,
                _ => then == now,
            }
        })
}

#[test]
fn a_snapshot_differs_by_any_count_and_by_more_than_a_little_time() {
    let then = "cold 10 bytes: 100.4ms\n  packets 7, again 0";
    assert!(differences_of(then, "cold 10 bytes: 101.8ms\n  packets 7, again 0").is_empty());
    let differences = differences_of(then, "cold 10 bytes: 102.0ms\n  packets 7, again 1\nmore");
    assert_eq!(differences.len(), 3, "{differences:?}");
}
