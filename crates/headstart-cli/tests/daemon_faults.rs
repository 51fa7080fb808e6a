//! What may go wrong around the daemon, and that traffic and records live through it.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::cell::RefCell;
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::Signal;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use support::stage::*;
use support::*;

/// What the daemon says to these bytes; it closes the connection itself.
fn said_to(socket: &Path, bytes: &[u8], half_closed: bool) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    // A request that is too long is not read to its end.
    let _ = stream.write_all(bytes);
    if half_closed {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn requests() -> impl Strategy<Value = Vec<u8>> {
    let good = prop::sample::select(vec![
        "{\"verb\":\"status\"}",
        "{\"verb\":\"top\"}",
        "{\"verb\":\"explain\",\"addr\":\"10.1.2.3\",\"port\":443}",
        "{\"verb\":\"explain\",\"addr\":\"::1\",\"port\":65535,\"cgroup\":\"/../../x\"}",
        "{\"verb\":\"off\",\"rule\":\"nobody\"}",
        "{\"verb\":\"on\",\"rule\":\"\\u0000\"}",
        "{\"verb\":\"reload\"}",
    ]);
    let truncated = (good, any::<prop::sample::Index>()).prop_map(|(text, end)| {
        let bytes = text.as_bytes();
        bytes[..=end.index(bytes.len())].to_vec()
    });
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        truncated,
        (1usize..200_000, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]),
        (1usize..4000).prop_map(|depth| "[".repeat(depth).into_bytes()),
    ]
}

#[test]
fn whatever_comes_over_the_control_socket_the_next_request_is_answered() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let mut stage = Stage::new(WEB);
    stage.start();
    let socket = stage.dir.path().join("run/control.sock");
    let mut runner = TestRunner::new_with_rng(
        ProptestConfig {
            cases: 200,
            failure_persistence: None,
            ..ProptestConfig::default()
        },
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    runner
        .run(&requests(), |mut bytes| {
            // Or it is waited for, for five seconds: see below.
            bytes.push(b'\n');
            let answer = said_to(&socket, &bytes, true);
            // Of one that is too long the answer may be lost with the connection.
            let answered = answer.starts_with("{\"ok\":") || answer.starts_with("{\"error\":");
            prop_assert!(answered || bytes.len() > 4096, "{answer}");
            Ok(())
        })
        .unwrap();
    // Whoever says nothing, or a byte now and then, is not waited for: others are served.
    let silent = UnixStream::connect(&socket).unwrap();
    let mut slow = UnixStream::connect(&socket).unwrap();
    slow.write_all(b"{").unwrap();
    assert!(said_to(&socket, b"{\"verb\":\"status\"}\n", false).starts_with("{\"ok\":"));
    drop((silent, slow));
    assert_eq!(control(&stage.connect().1), "su_standard");
    assert_eq!(stage.status()["rules"][0]["state"], "active");
    assert!(stage.end(Signal::SIGTERM).success());
    assert!(!stage.log().contains("panicked"), "{}", stage.log());
}

/// Of 256 KiB, in memory.
struct SmallDisk {
    at: tempfile::TempDir,
}

impl SmallDisk {
    fn new() -> SmallDisk {
        let at = tempfile::tempdir().unwrap();
        let size = Some("size=256k");
        mount(
            Some("tmpfs"),
            at.path(),
            Some("tmpfs"),
            MsFlags::empty(),
            size,
        )
        .unwrap();
        SmallDisk { at }
    }

    fn fill(&self) -> PathBuf {
        let ballast = self.at.path().join("ballast");
        let mut file = fs::File::create(&ballast).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = umount2(self.at.path(), MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_full_disk_is_told_traffic_goes_on_and_the_records_are_written_when_there_is_room() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    // Before the namespaces of the path, which have a copy of the mounts.
    let disk = SmallDisk::new();
    let dir = disk.at.path().display();
    let mut stage = Stage::new(&format!("[records]\ndir = \"{dir}\"\n{WEB}"));
    stage.start();
    let ballast = disk.fill();
    for _ in 0..5 {
        let mut pair = stage.connect();
        assert_eq!(control(&pair.1), "su_standard");
        Stage::transfer(&mut pair, 20_000);
    }
    let fails = || stage.status()["records"]["error"].is_string();
    assert!(eventually(
        || fails() && stage.status()["records"]["recorded"] == 5
    ));
    let told = stage.told("status", &[]).unwrap();
    assert!(
        told.contains("RECORDS FAIL") && told.contains("No space left"),
        "{told}"
    );
    assert_eq!(stage.status()["records"]["dropped"], 0);

    fs::remove_file(ballast).unwrap();
    assert!(eventually(|| stage.status()["records"]["written"] == 5));
    assert!(!fails());
    assert!(stage.end(Signal::SIGTERM).success());
    assert_eq!(rows_in(disk.at.path()), 5);
}

/// A cgroup whose processes may ask for no more memory: the next page that one needs is one too many. cgroup v2, or v1
/// where the machine has its memory controller there.
struct NoMemory {
    at: PathBuf,
    v2: bool,
}

impl NoMemory {
    /// `None` where the memory controller is in neither.
    fn new() -> Option<NoMemory> {
        let root = headstart_kernel::cgroup_root().unwrap();
        let has = |file: &str| {
            let controllers = fs::read_to_string(root.join(file)).unwrap_or_default();
            controllers.split_whitespace().any(|name| name == "memory")
        };
        let v2 = has("cgroup.controllers");
        if v2 && !has("cgroup.subtree_control") {
            fs::write(root.join("cgroup.subtree_control"), "+memory").unwrap();
        }
        let v1 = PathBuf::from("/sys/fs/cgroup/memory");
        if !v2 && !v1.join("memory.limit_in_bytes").exists() {
            return None;
        }
        let name = format!("headstart-no-memory-{}", std::process::id());
        let at = if v2 { root } else { v1 }.join(name);
        fs::create_dir(&at).unwrap();
        Some(NoMemory { at, v2 })
    }

    fn holds(&self, pid: nix::unistd::Pid) {
        let limit = ["memory.limit_in_bytes", "memory.max"][usize::from(self.v2)];
        fs::write(self.at.join(limit), "4096").unwrap();
        fs::write(self.at.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    /// How many processes the kernel has ended for it.
    fn kills(&self) -> u32 {
        let events = ["memory.oom_control", "memory.events"][usize::from(self.v2)];
        let text = fs::read_to_string(self.at.join(events)).unwrap();
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.unwrap().trim().parse().unwrap()
    }
}

impl Drop for NoMemory {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.at);
    }
}

#[test]
fn out_of_memory_the_kernel_ends_the_daemon_connections_live_on_and_what_was_recorded_is_kept() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let Some(memory) = NoMemory::new() else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no memory controller");
        return;
    };
    let mut stage = Stage::new(WEB);
    stage.start();
    let pair = stage.connect_and_record(5);
    memory.holds(stage.pid());
    let pair = RefCell::new(pair);
    assert!(
        eventually(|| {
            Stage::transfer(&mut pair.borrow_mut(), 20_000);
            // A request needs memory for its connection.
            let _ = stage.told("top", &["--once"]);
            memory.kills() > 0
        }),
        "{}",
        stage.log()
    );
    let status = stage.daemon.take().unwrap().wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::SIGKILL as i32));
    assert_eq!(memory.kills(), 1);

    Stage::transfer(&mut pair.borrow_mut(), 200_000);
    if !has_struct_ops_links() {
        headstart(&["doctor", "--clean"]).status().unwrap();
    }
    assert!(eventually(|| registered().is_empty()));
    stage.start();
    // What was recorded less than a second before may be missing.
    assert!(rows_in(&stage.records()) >= 5);
    Stage::transfer(&mut stage.connect(), 20_000);
    assert!(eventually(|| stage.status()["records"]["recorded"] == 1));
    assert!(stage.end(Signal::SIGTERM).success());
}

#[test]
fn a_configuration_that_others_can_write_is_refused_at_the_start_and_at_a_reload() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let mut stage = Stage::new(WEB);
    stage.start();
    let file = stage.file();
    let others = "others than its owner can write it; chmod go-w it";
    for mode in [0o666, 0o620, 0o602] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let refused = stage.told("reload", &[]).unwrap_err();
        assert!(refused.contains(others), "{mode:o}: {refused}");
        let output = headstart(&["run", "--check", "--config", file.to_str().unwrap()])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(words(&output).contains(others), "{}", words(&output));
    }
    // Readable: the daemon has no capability that would read what is another's alone.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
    let refused = stage.told("reload", &[]).unwrap_err();
    assert!(
        refused.contains("it belongs to the user 65534; chown it to root"),
        "{refused}"
    );
    std::os::unix::fs::chown(&file, Some(0), None).unwrap();
    stage.told("reload", &[]).unwrap();
    assert_eq!(control(&stage.connect().1), "su_standard");
}

/// Those of a thread are its own: all are looked at, with everything on that has threads.
#[test]
fn no_thread_of_the_daemon_has_more_than_three_capabilities() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let rules = "[records.bucket]\nurl = \"s3://logs\"\noptions = { endpoint = \"http://127.0.0.1:1\" }\n\
                 [metrics]\nlisten = \"127.0.0.1:9870\"\n";
    let mut stage = Stage::new(&format!("{rules}{WEB}"));
    stage.start();
    // NET_ADMIN, PERFMON, BPF (include/uapi/linux/capability.h).
    let needed: u64 = 1 << 12 | 1 << 38 | 1 << 39;
    let mut names = Vec::new();
    for task in fs::read_dir(format!("/proc/{}/task", stage.pid())).unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().to_owned()
        };
        let name = field("Name:");
        let set = |name: &str| u64::from_str_radix(&field(name), 16).unwrap();
        assert_eq!(set("CapPrm:"), needed, "{name}");
        assert_eq!(set("CapEff:"), needed, "{name}");
        assert_eq!(set("CapBnd:"), needed, "{name}");
        assert_eq!((set("CapInh:"), set("CapAmb:")), (0, 0), "{name}");
        names.push(name);
    }
    for thread in ["hs-uploads", "hs-control", "hs-metrics", "hs-signals"] {
        assert!(names.iter().any(|name| name == thread), "{names:?}");
    }
}
