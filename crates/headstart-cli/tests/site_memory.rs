//! The daemon's path memory beside the kernel's: over restarts, and shared with another server of the site through a
//! real store, which traffic does not notice whatever happens to it.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;
#[path = "../../headstart-memory/tests/support/table.rs"]
mod table;

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

use headstart_core::{MemoryParams, Path};
use headstart_kernel::{Lesson, LiveMemory, Prefix, PrefixLengths};
use headstart_memory::{Local, Site, SiteConfig, SiteUrl};
use headstart_path::{Emulation, LinkConfig, PathConfig};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use support::stage::Stage;
use support::*;
use table::Table;

const URL: &str = "redis://:of-the-site@127.0.0.1:6399/0";

/// Where the daemon is to be started, and the store through which it then shares what it learns.
fn stage() -> (Stage, Store) {
    let queue = "drop-tail:200".parse().unwrap();
    let link = LinkConfig::new("40mbit".parse().unwrap(), "20ms".parse().unwrap(), queue);
    let path = Emulation::start(PathConfig {
        lane: 24,
        ..PathConfig::new(link.clone(), link)
    });
    let rules = format!(
        "[memory]\nurl = \"{URL}\"\n[[rule]]\nname = \"web\"\nstartup = \"su_fast_start\"\n"
    );
    let stage = Stage::on(path.unwrap(), "0.0.0.0", &rules);
    let store = Store::beside(&stage);
    (stage, store)
}

struct Store(Child);

impl Store {
    /// In the server's network: the daemon is there, and each network namespace has its own loopback device.
    fn beside(stage: &Stage) -> Store {
        let mut command = Command::new("redis-server");
        command.args(["--save", "", "--appendonly", "no"]);
        command.args(["--bind", "0.0.0.0", "--protected-mode", "no"]);
        command.args(["--requirepass", "of-the-site", "--port", "6399"]);
        command.arg("--dir").arg(stage.dir.path());
        command.stdout(Stdio::null());
        let server = stage.path.server();
        let store = Store(server.spawn(command).unwrap());
        let listens = || server.listening_tcp_ports().unwrap().contains(&6399);
        assert!(eventually(listens), "redis-server does not listen");
        store
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).unwrap();
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
fn site_gets(stage: &Stage, state: &str) {
    let there = || stage.status()["memory"]["site"]["state"] == state;
    assert!(eventually(there), "{}\n{}", stage.status(), stage.log());
}

/// Another server that shares the store, in the same network: its memory has no kernel beneath it.
fn other(stage: &Stage) -> (Table, Site) {
    let other = Table::default();
    let config = SiteConfig {
        url: SiteUrl::parse(URL, None).unwrap(),
        params: MemoryParams::default(),
        lengths_v4: PrefixLengths::new(vec![24, 32]),
        lengths_v6: PrefixLengths::new(vec![48]),
    };
    // A thread that is started there stays there.
    let server = stage.path.server();
    let site = server.run(|| Site::share(config, other.clone()).unwrap());
    (other, site.unwrap())
}

/// A response of so many bytes over a new connection, which is closed then.
fn serve(stage: &Stage, bytes: usize) {
    Stage::transfer(&mut stage.connect(), bytes);
}

/// What `headstart paths` says of the site's memory.
fn site_paths(stage: &Stage, words: &[&str]) -> (bool, String) {
    let [said, log] = ["paths", "paths-log"].map(|name| stage.dir.path().join(name));
    let mut command = headstart(&["paths", "--url", URL]);
    command.args(words).stdout(File::create(&said).unwrap());
    command.stderr(File::create(&log).unwrap());
    let mut child = stage.path.server().spawn(command).unwrap();
    let done = child.wait().unwrap().success();
    let file = if done { said } else { log };
    (done, fs::read_to_string(file).unwrap())
}

fn explained(stage: &Stage, addr: &str) -> String {
    stage.told("explain", &[addr, "--port", "8080"]).unwrap()
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
    let (mut stage, store) = stage();
    stage.start();
    site_gets(&stage, "shared");
    let (other, site) = other(&stage);

    // What a connection of ours teaches, the other server knows.
    let client: Prefix = "10.77.24.0/24".parse().unwrap();
    serve(&stage, 400_000);
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
    let taken = || explained(&stage, "203.0.113.9").contains("initial window: 77 pkts");
    assert!(eventually(taken), "{}", explained(&stage, "203.0.113.9"));
    // Never above the cap of this server.
    other.put(&lesson(60_000, LiveMemory::now_ns())).unwrap();
    let capped = || explained(&stage, "203.0.113.9").contains("window 2000 pkts");
    assert!(eventually(capped), "{}", explained(&stage, "203.0.113.9"));

    // Anybody with the password can look at what the site knows, as it stands there.
    let (done, listed) = site_paths(&stage, &["list"]);
    assert!(
        done && listed.contains("10.77.24.0/24") && listed.contains("(site memory)"),
        "{listed}"
    );
    let (_, shown) = site_paths(&stage, &["show", "203.0.113.9", "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["source"], "site");
    assert_eq!(shown["paths"][0]["path"]["cwnd_pkts"], 60_000);
    let (done, refused) = site_paths(&stage, &["forget", "--all"]);
    assert!(
        !done && refused.contains("can be listed, shown and exported"),
        "{refused}"
    );

    // The store hangs: connections come and go as ever, and it is said.
    store.signal(Signal::SIGSTOP);
    site_gets(&stage, "unreachable");
    for _ in 0..5 {
        serve(&stage, 100_000);
    }
    let status = stage.told("status", &[]).unwrap();
    assert!(status.contains("NOT SHARED: no answer"), "{status}");
    assert!(!status.contains("of-the-site"), "{status}");
    let (done, refused) = site_paths(&stage, &["list"]);
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
    assert!(explained(&stage, "203.0.113.9").contains("window 2000 pkts"));

    // Over a restart without the store, the file remembers.
    assert!(stage.end(Signal::SIGTERM).success());
    let saved = stage.log();
    stage.start();
    let explained = explained(&stage, "203.0.113.9");
    assert!(
        explained.contains("window 2000 pkts"),
        "{explained}\n{saved}"
    );
    serve(&stage, 100_000);
    store.signal(Signal::SIGCONT);
    site_gets(&stage, "shared");
    drop(site);
    assert!(stage.end(Signal::SIGTERM).success());
}
