//! A daemon over an emulated path, with a server in a cgroup.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its part of a private module"
)]

#[path = "../../../headstart-kernel/tests/support/inside.rs"]
mod inside;

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

use super::{eventually, headstart, words};
use inside::inside;

pub const WEB: &str = "[[rule]]\nname = \"web\"\nports = \"8080\"\nstartup = \"su_standard\"\n";
pub const PORT: u16 = 8080;
/// Short enough that a window of 100 packets does not fit.
const QUEUE: &str = "drop-tail:40";

pub struct Stage {
    pub path: Emulation,
    pub cgroup: Cgroup,
    pub listener: TcpListener,
    pub dir: tempfile::TempDir,
    pub daemon: Option<Child>,
    /// What the daemon finds in its environment.
    pub env: Vec<(&'static str, String)>,
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

impl Stage {
    pub fn new(rules: &str) -> Stage {
        Stage::on(emulation(), "::", rules)
    }

    /// Over `path`, with a server that listens at the address `at`.
    pub fn on(path: Emulation, at: &str, rules: &str) -> Stage {
        let cgroup = Cgroup::create().unwrap();
        let listener = inside(&cgroup, || {
            path.server()
                .run(|| TcpListener::bind((at, PORT)).unwrap())
                .unwrap()
        });
        let stage = Stage {
            path,
            cgroup,
            listener,
            dir: tempfile::tempdir().unwrap(),
            daemon: None,
            env: Vec::new(),
        };
        stage.configure(rules);
        stage
    }

    pub fn configure(&self, rules: &str) {
        let at = self.dir.path().display();
        let cgroup = self.cgroup.path().file_name().unwrap().to_string_lossy();
        let text = format!(
            "[daemon]\ncgroup = \"{cgroup}\"\nrun_dir = \"{at}/run\"\nstate_dir = \"{at}/state\"\n{rules}"
        );
        let file = self.file();
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub fn file(&self) -> PathBuf {
        self.dir.path().join("headstart.toml")
    }

    pub fn records(&self) -> PathBuf {
        self.dir.path().join("state/records")
    }

    pub fn start(&mut self) {
        let file = self.file();
        let mut command = headstart(&["run", "--config", file.to_str().unwrap()]);
        command.envs(self.env.clone());
        command.stderr(File::create(self.dir.path().join("log")).unwrap());
        self.daemon = Some(self.path.server().spawn(command).unwrap());
        let answers = || self.told("status", &["--json"]).is_ok();
        // The kernel checks all programs first: seconds, and minutes on a machine whose time others have.
        assert!(
            eventually(answers) || eventually(answers) || eventually(answers),
            "{}",
            self.log()
        );
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.daemon.as_ref().unwrap().id().cast_signed())
    }

    pub fn end(&mut self, signal: Signal) -> std::process::ExitStatus {
        kill(self.pid(), signal).unwrap();
        self.daemon.take().unwrap().wait().unwrap()
    }

    pub fn told(&self, verb: &str, more: &[&str]) -> Result<String, String> {
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

    pub fn status(&self) -> Value {
        serde_json::from_str(&self.told("status", &["--json"]).unwrap()).unwrap()
    }

    /// Both ends of a new connection.
    pub fn connect(&self) -> (TcpStream, TcpStream) {
        let to = SocketAddr::new(self.path.server().addr_v4().into(), PORT);
        let client = self
            .path
            .client()
            .run(|| TcpStream::connect(to).unwrap())
            .unwrap();
        let (server, _) = self.listener.accept().unwrap();
        (client, server)
    }

    /// A connection of which `transfers` of 20 KB are written to the records.
    pub fn connect_and_record(&self, transfers: u64) -> (TcpStream, TcpStream) {
        let mut pair = self.connect();
        for _ in 0..transfers {
            Stage::transfer(&mut pair, 20_000);
            // Until its last ACK is back: what is sent before belongs to the same transfer.
            std::thread::sleep(Duration::from_millis(200));
        }
        let written = eventually(|| self.status()["records"]["written"] == transfers);
        assert!(written, "{}", self.status());
        pair
    }

    pub fn transfer((client, server): &mut (TcpStream, TcpStream), bytes: usize) {
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

pub fn control(socket: &TcpStream) -> String {
    let name = getsockopt(socket, sockopt::TcpCongestion).unwrap();
    name.to_string_lossy().trim_end_matches('\0').to_owned()
}

pub fn rows_in(dir: &Path) -> i64 {
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

/// The client has an address in each of 16 prefixes, of both sides of a comparison.
pub fn many_clients(stage: &Stage) {
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
}

/// 16 clients fetch 120 KB each, until the rule is off, or 12 times.
pub fn load_until_off(stage: &Stage) -> bool {
    let mut tripped = false;
    for round in 0..12 {
        for client in 0..16u8 {
            let mut pair = connect_from(stage, [10, 66, client, 1]);
            Stage::transfer(&mut pair, 120_000);
        }
        std::thread::sleep(std::time::Duration::from_millis(1200));
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
    tripped
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
