//! The daemon's path memory beside the kernel's: over restarts, and shared with another server of the site through a
//! real store, which traffic does not notice whatever happens to it.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use headstart_core::{MemoryParams, Path};
use headstart_kernel::{Cgroup, KernelError, Lesson, LiveMemory, Prefix, PrefixLengths};
use headstart_memory::{Local, Site, SiteConfig, SiteUrl};
use headstart_path::{Emulation, LinkConfig, PathConfig};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use support::stage::inside;
use support::*;

const PORT: u16 = 8080;

/// The other server of the site: its memory has no kernel beneath it.
#[derive(Clone, Default)]
struct Other(Arc<Mutex<HashMap<Prefix, Lesson>>>);

impl Local for Other {
    fn now_ns(&self) -> u64 {
        LiveMemory::now_ns()
    }

    fn look(&self, each: &mut dyn FnMut(Lesson)) -> Result<(), KernelError> {
        self.0.lock().unwrap().values().copied().for_each(each);
        Ok(())
    }

    fn get(&self, prefix: Prefix) -> Result<Option<Lesson>, KernelError> {
        Ok(self.0.lock().unwrap().get(&prefix).copied())
    }

    fn put(&self, lesson: &Lesson) -> Result<(), KernelError> {
        self.0.lock().unwrap().insert(lesson.prefix, *lesson);
        Ok(())
    }
}

fn signal(process: &Child, signal: Signal) {
    kill(Pid::from_raw(process.id().cast_signed()), signal).unwrap();
}

struct Stage {
    path: Emulation,
    cgroup: Cgroup,
    listener: TcpListener,
    dir: tempfile::TempDir,
    store: Child,
    daemon: Option<Child>,
}

impl Stage {
    fn new() -> Stage {
        let queue = "drop-tail:200".parse().unwrap();
        let link = LinkConfig::new("40mbit".parse().unwrap(), "20ms".parse().unwrap(), queue);
        let path = Emulation::start(PathConfig {
            lane: 24,
            ..PathConfig::new(link.clone(), link)
        })
        .unwrap();
        let cgroup = Cgroup::create().unwrap();
        let bind = || TcpListener::bind(("0.0.0.0", PORT)).unwrap();
        let listener = inside(&cgroup, || path.server().run(bind).unwrap());
        let dir = tempfile::tempdir().unwrap();
        // On a socket file too: the daemon is in another network namespace than this process, and each has its own
        // loopback device.
        let mut store = Command::new("redis-server");
        store.args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--bind",
            "0.0.0.0",
            "--protected-mode",
            "no",
        ]);
        store.args(["--requirepass", "of-the-site", "--port", "6399"]);
        store.arg("--dir").arg(dir.path()).stdout(Stdio::null());
        let store = path.server().spawn(store).unwrap();
        let stage = Stage {
            path,
            cgroup,
            listener,
            dir,
            store,
            daemon: None,
        };
        let listens = || {
            stage
                .path
                .server()
                .listening_tcp_ports()
                .unwrap()
                .contains(&6399)
        };
        assert!(eventually(listens), "redis-server does not listen");
        stage.configure();
        stage
    }

    fn url() -> &'static str {
        "redis://:of-the-site@127.0.0.1:6399/0"
    }

    fn configure(&self) {
        let at = self.dir.path().display();
        let cgroup = self.cgroup.path().file_name().unwrap().to_string_lossy();
        let text = format!(
            "[daemon]\ncgroup = \"{cgroup}\"\nrun_dir = \"{at}/run\"\nstate_dir = \"{at}/state\"\n\
             [memory]\nurl = \"{}\"\n\
             [[rule]]\nname = \"web\"\nstartup = \"su_fast_start\"\n",
            Stage::url()
        );
        let file = self.dir.path().join("headstart.toml");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn start(&mut self) {
        let file = self.dir.path().join("headstart.toml");
        let mut command = headstart(&["run", "--config", file.to_str().unwrap()]);
        command.stderr(File::create(self.dir.path().join("log")).unwrap());
        self.daemon = Some(self.path.server().spawn(command).unwrap());
        assert!(eventually(|| self.status().is_some()), "{}", self.log());
    }

    fn end(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        signal(&daemon, Signal::SIGTERM);
        assert!(daemon.wait().unwrap().success());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn told(&self, verb: &str, more: &[&str]) -> Option<String> {
        let run_dir = self.dir.path().join("run");
        let mut command = headstart(&[verb, "--run-dir", run_dir.to_str().unwrap()]);
        let output = command.args(more).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        output.status.success().then_some(text)
    }

    fn status(&self) -> Option<Value> {
        serde_json::from_str(&self.told("status", &["--json"])?).ok()
    }

    #[track_caller]
    fn site_gets(&self, state: &str) {
        let there = || self.status().unwrap()["memory"]["site"]["state"] == state;
        assert!(eventually(there), "{:?}\n{}", self.status(), self.log());
    }

    /// Another server that shares the store, in the same network.
    fn other(&self) -> (Other, Site) {
        let other = Other::default();
        let config = SiteConfig {
            url: SiteUrl::parse(Stage::url(), None).unwrap(),
            params: MemoryParams::default(),
            lengths_v4: PrefixLengths::new(vec![24, 32]),
            lengths_v6: PrefixLengths::new(vec![48]),
        };
        // A thread that is started there stays there.
        let site = self
            .path
            .server()
            .run(|| Site::share(config, other.clone()).unwrap());
        (other, site.unwrap())
    }

    /// A response of so many bytes over a new connection, which is closed then.
    fn serve(&self, bytes: usize) {
        let to = SocketAddr::new(self.path.server().addr_v4().into(), PORT);
        let connect = || TcpStream::connect(to).unwrap();
        let mut client = self.path.client().run(connect).unwrap();
        let (mut server, _) = self.listener.accept().unwrap();
        let data = vec![b'x'; bytes];
        std::thread::scope(|scope| {
            scope.spawn(|| server.write_all(&data).unwrap());
            let mut got = vec![0; bytes];
            client.read_exact(&mut got).unwrap();
        });
    }

    /// What `headstart paths` says of the site's memory.
    fn site_paths(&self, words: &[&str]) -> (bool, String) {
        let file = self.dir.path().join("paths");
        let mut command = headstart(&["paths", "--url", Stage::url()]);
        command.args(words).stdout(File::create(&file).unwrap());
        command.stderr(File::create(self.dir.path().join("paths-log")).unwrap());
        let mut child = self.path.server().spawn(command).unwrap();
        let done = child.wait().unwrap().success();
        let file = if done {
            file
        } else {
            self.dir.path().join("paths-log")
        };
        (done, fs::read_to_string(file).unwrap())
    }

    fn explained(&self, addr: &str) -> String {
        self.told("explain", &[addr, "--port", "8080"]).unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for process in self.daemon.iter_mut().chain([&mut self.store]) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

#[test]
fn a_daemon_shares_what_it_learns_and_takes_no_notice_of_a_store_in_trouble() {
    if Command::new("redis-server")
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("SKIPPED: redis-server is not there (Debian: apt-get install redis-server)");
        return;
    }
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let mut stage = Stage::new();
    stage.start();
    stage.site_gets("shared");
    let (other, site) = stage.other();

    // What a connection of ours teaches, the other server knows.
    let client: Prefix = "10.77.24.0/24".parse().unwrap();
    stage.serve(400_000);
    let knows = || {
        other
            .get(client)
            .unwrap()
            .is_some_and(|lesson| lesson.path.cwnd_pkts > 10)
    };
    assert!(
        eventually(knows),
        "{:?} {:?}",
        stage.status(),
        site.status()
    );

    // What the other server knows, a connection of ours begins with.
    let path = Path {
        cwnd_pkts: 77,
        ssthresh_pkts: 70,
        srtt_us: 80_000,
        rttvar_us: 1_000,
        min_rtt_us: 80_000,
        rate_bytes_per_s: 1_400_000,
        ending_mpkts: 77_000,
        window_mean_mpkts: 77_000,
        min_rtt_mean_us: 80_000,
        samples: 3,
        ended: 2,
        ..Path::default()
    };
    let lesson = |window, learnt_ns| Lesson {
        prefix: "203.0.113.0/24".parse().unwrap(),
        path: Path {
            cwnd_pkts: window,
            ..path
        },
        learnt_ns,
    };
    other.put(&lesson(77, LiveMemory::now_ns())).unwrap();
    let taken = || {
        stage
            .explained("203.0.113.9")
            .contains("initial window: 77 pkts")
    };
    assert!(eventually(taken), "{}", stage.explained("203.0.113.9"));
    // Never above the cap of this server.
    other.put(&lesson(60_000, LiveMemory::now_ns())).unwrap();
    let capped = || stage.explained("203.0.113.9").contains("window 2000 pkts");
    assert!(eventually(capped), "{}", stage.explained("203.0.113.9"));

    // Anybody with the password can look at what the site knows, as it stands there.
    let (done, listed) = stage.site_paths(&["list"]);
    assert!(
        done && listed.contains("10.77.24.0/24") && listed.contains("(site memory)"),
        "{listed}"
    );
    let (_, shown) = stage.site_paths(&["show", "203.0.113.9", "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["source"], "site");
    assert_eq!(shown["paths"][0]["path"]["cwnd_pkts"], 60_000);
    let (done, refused) = stage.site_paths(&["forget", "--all"]);
    assert!(
        !done && refused.contains("can be listed, shown and exported"),
        "{refused}"
    );

    // The store hangs: connections come and go as ever, and it is said.
    signal(&stage.store, Signal::SIGSTOP);
    stage.site_gets("unreachable");
    for _ in 0..5 {
        stage.serve(100_000);
    }
    let status = stage.told("status", &[]).unwrap();
    assert!(status.contains("NOT SHARED: no answer"), "{status}");
    assert!(!status.contains("of-the-site"), "{status}");
    let (done, refused) = stage.site_paths(&["list"]);
    assert!(
        !done && refused.contains("redis://127.0.0.1:6399/0: no answer"),
        "{refused}"
    );
    assert!(!refused.contains("of-the-site"), "{refused}");
    assert!(
        stage
            .log()
            .contains("the shared memory redis://127.0.0.1:6399/0: no answer")
    );
    assert!(stage.explained("203.0.113.9").contains("window 2000 pkts"));

    // Over a restart without the store, the file remembers.
    stage.end();
    let saved = stage.log();
    stage.start();
    let explained = stage.explained("203.0.113.9");
    assert!(
        explained.contains("window 2000 pkts"),
        "{explained}\n{saved}"
    );
    stage.serve(100_000);
    signal(&stage.store, Signal::SIGCONT);
    stage.site_gets("shared");
    drop(site);
    stage.end();
}
