//! A proxy at the earth station of a satellite: an unchanged HAProxy in a cgroup of the daemon's, between a server on
//! the ground and a client in the sky's shadow. Neither of them knows of it; the client's page comes sooner.

#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use headstart_kernel::Cgroup;
use headstart_path::{Emulation, LinkConfig, Namespace, PathConfig};
use serde_json::Value;
use support::*;

const ORIGIN_PORT: u16 = 8000;
const PROXY_PORT: u16 = 8080;
const PAGE_BYTES: usize = 120_000;
const REPEATS: usize = 3;
/// A round trip of the satellite path is 550 ms; two of them are saved.
const SAVED: Duration = Duration::from_millis(400);

fn path(lane: u8, rate: &str, one_way: &str) -> Emulation {
    let queue = "drop-tail:300".parse().unwrap();
    let link = LinkConfig::new(rate.parse().unwrap(), one_way.parse().unwrap(), queue);
    Emulation::start(PathConfig {
        lane,
        ..PathConfig::new(link.clone(), link)
    })
    .unwrap()
}

fn ip(at: &Namespace, arguments: &str) {
    let mut command = Command::new("ip");
    command.args(arguments.split(' '));
    let status = at.spawn(command).unwrap().wait().unwrap();
    assert!(status.success(), "ip {arguments}");
}

fn device_of(at: &Namespace) -> String {
    let names = || -> Vec<String> {
        let devices = nix::net::if_::if_nameindex().unwrap();
        let names = devices.iter().map(|device| device.name().to_string_lossy());
        names.map(|name| name.into_owned()).collect()
    };
    let names = at.run(names).unwrap();
    names.into_iter().find(|name| name != "lo").unwrap()
}

/// Gives the earth station the near end of the path on the ground.
fn join(ground: &Emulation, sky: &Emulation) {
    let (near, station) = (ground.client(), sky.server());
    let device = device_of(near);
    let entrance = station.entrance().unwrap();
    ip(
        near,
        &format!("link set {device} netns {entrance} name ground"),
    );
    ip(
        station,
        &format!("addr add {}/24 dev ground", near.addr_v4()),
    );
    ip(station, "link set ground up");
}

/// Answers each request with a page. It runs until the process ends.
fn serve_pages(listener: TcpListener) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        thread::spawn(move || -> std::io::Result<()> {
            let page = vec![b'x'; PAGE_BYTES];
            let mut lines = BufReader::new(stream.try_clone()?).lines();
            while let Some(line) = lines.next().transpose()? {
                if line.is_empty() {
                    let header = format!("HTTP/1.1 200 OK\r\nContent-Length: {PAGE_BYTES}\r\n\r\n");
                    stream.write_all(header.as_bytes())?;
                    stream.write_all(&page)?;
                }
            }
            Ok(())
        });
    }
}

/// Asks for the page, and takes it to its last byte.
fn fetch(connection: &mut TcpStream) {
    connection
        .write_all(b"GET /page HTTP/1.1\r\nHost: origin\r\n\r\n")
        .unwrap();
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "no answer");
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    assert_eq!(length, PAGE_BYTES);
    let mut page = vec![0; length];
    reader.read_exact(&mut page).unwrap();
}

struct Station {
    sky: Emulation,
    // Its near end is the station's; it goes on for as long as this lives.
    _ground: Emulation,
    // Killed before the cgroup is removed.
    processes: Vec<Child>,
    cgroup: Cgroup,
    dir: tempfile::TempDir,
}

impl Station {
    fn new() -> Station {
        let ground = path(23, "100mbit", "20ms");
        let sky = path(22, "10mbit", "275ms");
        join(&ground, &sky);
        let listener = ground
            .server()
            .run(|| TcpListener::bind(("0.0.0.0", ORIGIN_PORT)).unwrap())
            .unwrap();
        thread::spawn(move || serve_pages(listener));
        let origin = ground.server().addr_v4();
        let mut station = Station {
            sky,
            _ground: ground,
            processes: Vec::new(),
            cgroup: Cgroup::create().unwrap(),
            dir: tempfile::tempdir().unwrap(),
        };
        station.start_proxy(origin);
        station
    }

    fn start_proxy(&mut self, origin: Ipv4Addr) {
        let at = self.sky.server().addr_v4();
        let file = self.dir.path().join("haproxy.cfg");
        let text = format!(
            "defaults\n  mode http\n  timeout connect 10s\n  timeout client 60s\n  timeout server 60s\n\
             frontend sky\n  bind {at}:{PROXY_PORT}\n  default_backend ground\n\
             backend ground\n  server origin {origin}:{ORIGIN_PORT}\n"
        );
        fs::write(&file, text).unwrap();
        let mut proxy = Command::new("sh");
        proxy.args([
            "-c",
            "echo $$ > \"$0/cgroup.procs\" && exec haproxy -db -f \"$1\"",
        ]);
        proxy
            .arg(self.cgroup.path())
            .arg(file)
            .stdout(Stdio::null());
        self.processes.push(self.sky.server().spawn(proxy).unwrap());
        let listens = || {
            self.sky
                .server()
                .listening_tcp_ports()
                .unwrap()
                .contains(&PROXY_PORT)
        };
        assert!(eventually(listens), "haproxy does not listen");
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join("headstart.toml")
    }

    /// What the connections to the clients get; those to the server are left alone.
    fn configure(&self, startup: &str) {
        let (at, lane) = (self.dir.path().display(), self.sky.server().lane());
        let cgroup = self.cgroup.path().file_name().unwrap().to_string_lossy();
        let text = format!(
            "[daemon]\ncgroup = \"{cgroup}\"\nrun_dir = \"{at}/run\"\nstate_dir = \"{at}/state\"\n\
             [[rule]]\nname = \"sky\"\ndestination = \"10.77.{lane}.0/24\"\nstartup = \"{startup}\"\n\
             [[rule]]\nname = \"ground\"\nstartup = \"leave-alone\"\n"
        );
        fs::write(self.config(), text).unwrap();
        fs::set_permissions(self.config(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn start_daemon(&mut self) {
        let config = self.config();
        let log = self.dir.path().join("log");
        let mut daemon = headstart(&["run", "--config", config.to_str().unwrap()]);
        daemon.stderr(File::create(&log).unwrap());
        self.processes
            .push(self.sky.server().spawn(daemon).unwrap());
        let answers = || self.told("status", &["--json"]).is_some();
        assert!(eventually(answers), "{}", fs::read_to_string(log).unwrap());
    }

    fn told(&self, verb: &str, more: &[&str]) -> Option<String> {
        let run_dir = self.dir.path().join("run");
        let mut command = headstart(&[verb, "--run-dir", run_dir.to_str().unwrap()]);
        let output = command.args(more).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        output.status.success().then_some(text)
    }

    fn gives(&self, startup: &str) {
        self.configure(startup);
        self.told("reload", &[]).unwrap();
    }

    /// A page over a new connection, from its first SYN.
    fn visit(&self) -> Duration {
        let to = SocketAddr::new(self.sky.server().addr_v4().into(), PROXY_PORT);
        let begin = Instant::now();
        let connect = || TcpStream::connect(to).unwrap();
        fetch(&mut self.sky.client().run(connect).unwrap());
        begin.elapsed()
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
fn an_unchanged_proxy_brings_the_page_sooner_to_an_unchanged_client() {
    if !Path::new("/usr/sbin/haproxy").exists() {
        eprintln!("SKIPPED: haproxy is not there (Debian: apt-get install haproxy)");
        return;
    }
    let _lock = one_at_a_time();
    if skipped() {
        return;
    }
    let mut station = Station::new();
    station.configure("su_fast_start");
    station.start_daemon();
    // What the proxy then knows of the client's prefix, from serving it.
    station.visit();
    let (mut native, mut fast) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        // Named: a machine may have another one as its default.
        station.gives("cubic");
        native.push(station.visit());
        station.gives("su_fast_start");
        fast.push(station.visit());
    }
    let (native, fast) = (median(native), median(fast));
    eprintln!(
        "{} ms native, {} ms with su_fast_start",
        native.as_millis(),
        fast.as_millis()
    );
    assert!(native > fast + SAVED, "{native:?} and {fast:?}");
    // The proxy's own connections to the server were seen, and left alone.
    let status: Value =
        serde_json::from_str(&station.told("status", &["--json"]).unwrap()).unwrap();
    let rules = status["rules"].as_array().unwrap();
    assert!(rules[0]["chosen"].as_u64().unwrap() > 0, "{status}");
    assert!(rules[1]["matched"].as_u64().unwrap() > 0, "{status}");
    assert_eq!(rules[1]["chosen"], 0, "{status}");
}
