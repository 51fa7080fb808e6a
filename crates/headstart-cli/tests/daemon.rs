//! `headstart run` and the verbs that talk to it, as an operator meets them: over an emulated path, with a server in
//! a cgroup.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use headstart_kernel::Cgroup;
use headstart_path::{Emulation, LinkConfig, PathConfig};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Pid;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;
use support::*;

const PORT: u16 = 8080;
/// Short enough that a window of 100 packets does not fit.
const QUEUE: &str = "drop-tail:40";

struct Stage {
    path: Emulation,
    cgroup: Cgroup,
    listener: TcpListener,
    dir: tempfile::TempDir,
    daemon: Option<Child>,
}

fn emulation() -> Emulation {
    let (rate, delay) = ("40mbit".parse().unwrap(), "10ms".parse().unwrap());
    let link = LinkConfig::new(rate, delay, QUEUE.parse().unwrap());
    Emulation::start(PathConfig {
        lane: 8,
        ..PathConfig::new(link.clone(), link)
    })
    .unwrap()
}

/// With this process in the cgroup: the sockets that it opens there are the cgroup's.
fn inside<T>(cgroup: &Cgroup, make: impl FnOnce() -> T) -> T {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .unwrap();
    let root = cgroup.path().parent().unwrap();
    let pid = std::process::id().to_string();
    fs::write(cgroup.path().join("cgroup.procs"), &pid).unwrap();
    let made = make();
    let back = root.join(own.trim_start_matches('/')).join("cgroup.procs");
    fs::write(back, &pid).unwrap();
    made
}

impl Stage {
    fn new(rules: &str) -> Stage {
        let path = emulation();
        let cgroup = Cgroup::create().unwrap();
        let listener = inside(&cgroup, || {
            path.server()
                .run(|| TcpListener::bind(("::", PORT)).unwrap())
                .unwrap()
        });
        let stage = Stage {
            path,
            cgroup,
            listener,
            dir: tempfile::tempdir().unwrap(),
            daemon: None,
        };
        stage.configure(rules);
        stage
    }

    fn configure(&self, rules: &str) {
        let at = self.dir.path().display();
        let cgroup = self.cgroup.path().file_name().unwrap().to_string_lossy();
        let text = format!(
            "[daemon]\ncgroup = \"{cgroup}\"\nrun_dir = \"{at}/run\"\nstate_dir = \"{at}/state\"\n{rules}"
        );
        let file = self.file();
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("headstart.toml")
    }

    fn records(&self) -> PathBuf {
        self.dir.path().join("state/records")
    }

    fn start(&mut self) {
        let file = self.file();
        let mut command = headstart(&["run", "--config", file.to_str().unwrap()]);
        command.stderr(File::create(self.dir.path().join("log")).unwrap());
        self.daemon = Some(self.path.server().spawn(command).unwrap());
        let answers = || self.told("status", &["--json"]).is_ok();
        assert!(eventually(answers), "{}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.daemon.as_ref().unwrap().id().cast_signed())
    }

    fn end(&mut self, signal: Signal) -> std::process::ExitStatus {
        kill(self.pid(), signal).unwrap();
        self.daemon.take().unwrap().wait().unwrap()
    }

    fn told(&self, verb: &str, more: &[&str]) -> Result<String, String> {
        let run_dir = self.dir.path().join("run");
        let output = headstart(&[verb, "--run-dir", run_dir.to_str().unwrap()])
            .args(more)
            .output()
            .unwrap();
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).unwrap())
        } else {
            Err(words(&output))
        }
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.told("status", &["--json"]).unwrap()).unwrap()
    }

    /// Both ends of a new connection.
    fn connect(&self) -> (TcpStream, TcpStream) {
        let to = SocketAddr::new(self.path.server().addr_v4().into(), PORT);
        let client = self
            .path
            .client()
            .run(|| TcpStream::connect(to).unwrap())
            .unwrap();
        let (server, _) = self.listener.accept().unwrap();
        (client, server)
    }

    fn transfer((client, server): &mut (TcpStream, TcpStream), bytes: usize) {
        let data = vec![b'x'; bytes];
        std::thread::scope(|scope| {
            scope.spawn(|| server.write_all(&data).unwrap());
            let mut got = vec![0; bytes];
            client.read_exact(&mut got).unwrap();
        });
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn control(socket: &TcpStream) -> String {
    let name = getsockopt(socket, sockopt::TcpCongestion).unwrap();
    name.to_string_lossy().trim_end_matches('\0').to_owned()
}

fn rows_in(dir: &Path) -> i64 {
    let files = fs::read_dir(dir)
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    files
        .filter(|path| path.extension().is_some_and(|end| end == "parquet"))
        .map(|path| {
            let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
            reader.metadata().file_metadata().num_rows()
        })
        .sum()
}

const WEB: &str = "[[rule]]\nname = \"web\"\nports = \"8080\"\nstartup = \"su_standard\"\n";

#[test]
fn a_daemon_from_its_start_to_its_end() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let mut stage = Stage::new(WEB);
    stage.start();

    // It goes on with three capabilities, and nobody but root may ask it.
    let of_process = fs::read_to_string(format!("/proc/{}/status", stage.pid())).unwrap();
    let permitted = of_process
        .lines()
        .find_map(|line| line.strip_prefix("CapPrm:"))
        .unwrap();
    let permitted = u64::from_str_radix(permitted.trim(), 16).unwrap();
    assert_eq!(
        permitted,
        1 << 12 | 1 << 38 | 1 << 39,
        "NET_ADMIN, PERFMON, BPF"
    );
    let socket = stage.dir.path().join("run/control.sock");
    assert_eq!(
        fs::metadata(socket).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let mut pair = stage.connect();
    assert_eq!(control(&pair.1), "su_standard");
    Stage::transfer(&mut pair, 100_000);
    assert!(eventually(|| stage.status()["records"]["written"] == 1));
    let status = stage.status();
    assert_eq!(status["rules"][0]["matched"], 1);
    assert_eq!(status["live_connections"], 1);
    assert!(
        stage
            .told("top", &["--once"])
            .unwrap()
            .contains("web / all")
    );
    let explained = stage
        .told("explain", &["10.77.8.2", "--port", "8080"])
        .unwrap();
    assert!(
        explained.contains("rule web, arm all: su_standard"),
        "{explained}"
    );
    let explained = stage
        .told("explain", &["10.77.8.2", "--port", "22"])
        .unwrap();
    assert!(explained.contains("no rule matches"), "{explained}");

    // A reload leaves the open connection alone; a bad one leaves all as it was.
    stage.configure(&WEB.replace("su_standard", "su_fast_start"));
    stage.told("reload", &[]).unwrap();
    assert_eq!(control(&pair.1), "su_standard");
    let second = stage.connect();
    assert_eq!(control(&second.1), "su_fast_start");
    stage.configure(&WEB.replace("su_standard", "su_stand"));
    let refused = stage.told("reload", &[]).unwrap_err();
    assert!(
        refused.contains("headstart.toml:8:") && refused.contains("did you mean"),
        "{refused}"
    );
    assert_eq!(control(&stage.connect().1), "su_fast_start");

    // Off is for those that live as well, until told.
    let off = stage.told("off", &[]).unwrap();
    assert!(off.contains("connections moved back"), "{off}");
    assert!(!control(&pair.1).starts_with("su_"));
    assert!(!control(&stage.connect().1).starts_with("su_"));
    assert_eq!(stage.status()["rules"][0]["state"], "off");
    Stage::transfer(&mut pair, 100_000);
    stage.told("on", &[]).unwrap();
    assert_eq!(control(&stage.connect().1), "su_fast_start");

    // The last ACK may still be on its way.
    assert!(eventually(|| stage.status()["records"]["recorded"] == 2));
    assert!(stage.end(Signal::SIGTERM).success());
    assert_eq!(rows_in(&stage.records()), 2);
    assert!(eventually(|| registered().is_empty()));
    let nobody = stage.told("status", &[]).unwrap_err();
    assert!(nobody.contains("no daemon answers"), "{nobody}");
}

#[test]
fn after_a_kill_connections_live_on_and_what_was_recorded_is_in_a_file_after_the_next_start() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let mut stage = Stage::new(WEB);
    stage.start();
    let mut pair = stage.connect();
    for _ in 0..5 {
        Stage::transfer(&mut pair, 20_000);
        // Until its last ACK is back: what is sent before belongs to the same transfer.
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(
        eventually(|| stage.status()["records"]["written"] == 5),
        "{}",
        stage.status()
    );
    stage.end(Signal::SIGKILL);
    Stage::transfer(&mut pair, 200_000);
    assert_eq!(rows_in(&stage.records()), 0);
    if !has_struct_ops_links() {
        headstart(&["doctor", "--clean"]).status().unwrap();
    }
    assert!(eventually(|| registered().is_empty()));
    stage.start();
    assert_eq!(rows_in(&stage.records()), 5);
    Stage::transfer(&mut stage.connect(), 20_000);
    assert!(eventually(|| stage.status()["records"]["recorded"] == 1));
    assert!(stage.end(Signal::SIGTERM).success());
    assert_eq!(rows_in(&stage.records()), 6);
}

/// The arm that does harm begins with the largest window over a path that holds 10 packets: it loses, and waits.
#[test]
fn the_guard_turns_a_rule_off_that_does_harm_and_it_stays_off_until_told() {
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let harmful = "[guard]\nholdout_percent = 50\nwindow = \"60s\"\nmin_transfers = 5\nretransmission_points = 3\n\
                   [[rule]]\nname = \"web\"\nstartup = \"su_standard\"\nparams = { iw_pkts = 100 }\n";
    let mut stage = Stage::new(harmful);
    // Clients of many prefixes, on both sides of the comparison.
    for client in 0..16u8 {
        let ip = |arguments: &[&str]| {
            let mut command = std::process::Command::new("ip");
            command.args(arguments);
            command
        };
        let address = format!("10.66.{client}.1/32");
        let device = tun_of(&stage.path);
        let mut add = stage
            .path
            .client()
            .spawn(ip(&["addr", "add", &address, "dev", &device]))
            .unwrap();
        assert!(add.wait().unwrap().success());
    }
    let device = tun_of(&stage.path);
    let mut route = std::process::Command::new("ip");
    route.args(["route", "add", "10.66.0.0/16", "dev", &device]);
    assert!(
        stage
            .path
            .server()
            .spawn(route)
            .unwrap()
            .wait()
            .unwrap()
            .success()
    );
    stage.start();
    let mut tripped = false;
    for round in 0..12 {
        for client in 0..16u8 {
            let mut pair = connect_from(&stage, [10, 66, client, 1]);
            Stage::transfer(&mut pair, 120_000);
        }
        std::thread::sleep(Duration::from_millis(1200));
        tripped = stage.status()["rules"][0]["state"] == "off";
        if tripped {
            eprintln!(
                "off after {} rounds: {}",
                round + 1,
                stage.status()["rules"][0]["why"]
            );
            break;
        }
    }
    assert!(tripped, "{}", stage.told("status", &[]).unwrap());
    assert!(
        stage
            .log()
            .contains("the guard turned the rule web off: retransmitted")
    );
    stage.end(Signal::SIGTERM);
    stage.start();
    assert_eq!(stage.status()["rules"][0]["state"], "off");
    stage.told("on", &["--rule", "web"]).unwrap();
    assert_eq!(stage.status()["rules"][0]["state"], "active");
}

fn tun_of(path: &Emulation) -> String {
    let names = || -> Vec<String> {
        let list = nix::net::if_::if_nameindex().unwrap();
        list.iter()
            .map(|device| device.name().to_string_lossy().into_owned())
            .collect()
    };
    let names = path.client().run(names).unwrap();
    names.into_iter().find(|name| name != "lo").unwrap()
}

fn connect_from(stage: &Stage, from: [u8; 4]) -> (TcpStream, TcpStream) {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
    use std::os::fd::AsRawFd;
    let server = stage.path.server().addr_v4().octets();
    let client = stage
        .path
        .client()
        .run(|| {
            let fd = socket(
                AddressFamily::Inet,
                SockType::Stream,
                SockFlag::empty(),
                None,
            )
            .unwrap();
            bind(
                fd.as_raw_fd(),
                &SockaddrIn::new(from[0], from[1], from[2], from[3], 0),
            )
            .unwrap();
            let to = SockaddrIn::new(server[0], server[1], server[2], server[3], PORT);
            connect(fd.as_raw_fd(), &to).unwrap();
            TcpStream::from(fd)
        })
        .unwrap();
    let (accepted, _) = stage.listener.accept().unwrap();
    (client, accepted)
}
