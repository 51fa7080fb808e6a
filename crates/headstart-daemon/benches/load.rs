//! What the daemon costs a server: nginx answers with 20 KB, a client asks as fast as it can over many connections at
//! once, and native cubic with nothing attached takes turns with the daemon's rules, with and without records.
//! `scripts/bench.sh --only load` runs it, as root, on a machine that does nothing else; traffic is in namespaces of its
//! own. Arguments: the number of rounds and the connections of a turn, if not these.
//!
//! CPU of the server is its cgroup's, of the client its process's, of the daemon its cgroup's; the kernel's work for a
//! connection is done in the name of one of them. Files are closed often enough that making them is counted, too. A
//! second native cubic is among the contestants: what it differs by from the first is the benchmark's own error.

#![allow(clippy::unwrap_used, reason = "a failed step of a benchmark ends it")]

#[path = "../../headstart-kernel/benches/support/mod.rs"]
mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use headstart_kernel::Cgroup;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;
use parquet::file::reader::{FileReader, SerializedFileReader};
use support::{Network, SERVER, inside, ip, median};

const TRANSFER_BYTES: usize = 20_000;
const PORT: u16 = 8080;
/// Connections that the client has open at the same time.
const AT_ONCE: usize = 16;
/// Before each turn, so that caches are warm and the path is known.
const WARM_UP: usize = 500;
/// What records may cost, over native cubic.
const TARGET: f64 = 1.03;

const NATIVE: &str = "cubic";

/// Who is measured: what the configuration's only rule says; without one there is no daemon.
struct Contestant {
    name: &'static str,
    rule: Option<&'static str>,
    records: bool,
}

const CONTESTANTS: [Contestant; 8] = [
    contestant(NATIVE, None, false),
    contestant("cubic, again", None, false),
    contestant("daemon", Some("leave-alone"), false),
    contestant("daemon, records", Some("leave-alone"), true),
    contestant("su_standard", Some("su_standard"), false),
    contestant("su_standard, records", Some("su_standard"), true),
    contestant("su_fast_start", Some("su_fast_start"), false),
    contestant("su_fast_start, records", Some("su_fast_start"), true),
];

const fn contestant(name: &'static str, rule: Option<&'static str>, records: bool) -> Contestant {
    Contestant {
        name,
        rule,
        records,
    }
}

/// What a turn was like.
struct Turn {
    connections_per_s: f64,
    set_up_p50_us: f64,
    set_up_p99_us: f64,
    /// CPU of a connection, us.
    server_us: f64,
    client_us: f64,
    daemon_us: f64,
}

impl Turn {
    fn cpu_us(&self) -> f64 {
        self.server_us + self.client_us + self.daemon_us
    }
}

/// nginx in a cgroup and a namespace, and a cgroup for the daemon beside it. What is dropped first holds the others'
/// processes.
struct Stage {
    server: Cgroup,
    daemon: Cgroup,
    network: Network,
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Stage {
        let network = Network::new("load");
        for name in &network.names {
            inside(name, "set", || {
                fs::write("/proc/sys/net/ipv4/ip_local_port_range", "10000 65000").unwrap();
            });
        }
        // A namespace may not be given cubic as its default where the machine's default is another; a route may.
        let server = &network.names[0];
        for route in [
            "local 127.0.0.1 dev lo table local",
            "10.77.250.0/24 dev v0",
        ] {
            let words = route.split(' ').chain(["congctl", NATIVE]);
            let arguments = ["-n", server, "route", "replace"].into_iter().chain(words);
            ip(&arguments.collect::<Vec<_>>());
        }
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("page"), [b'x'; TRANSFER_BYTES]).unwrap();
        let nginx = format!(
            "daemon off; worker_processes 2; pid {dir}/pid; error_log stderr warn; events {{ worker_connections 4096; }}\n\
             http {{ access_log off; keepalive_timeout 0; sendfile on;\n\
             server {{ listen {PORT} backlog=4096; root {dir}; }} }}\n",
            dir = dir.path().display(),
        );
        let file = dir.path().join("nginx.conf");
        fs::write(&file, nginx).unwrap();
        // nginx's workers are nobody's.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(dir.path(), open).unwrap();
        let stage = Stage {
            server: Cgroup::create().unwrap(),
            daemon: Cgroup::create().unwrap(),
            network,
            dir,
        };
        let mut nginx = stage.in_server_namespace("nginx");
        nginx.args(["-p", "/", "-c"]).arg(&file);
        stage.server.enter(&mut nginx).unwrap();
        // It ends with its cgroup.
        drop(nginx.stderr(Stdio::inherit()).spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(10);
        let answers = || inside(&stage.network.names[0], "wait", || get("127.0.0.1").is_ok());
        while !answers() {
            assert!(Instant::now() < deadline, "nginx does not answer");
            thread::sleep(Duration::from_millis(50));
        }
        stage
    }

    fn in_server_namespace(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        let namespace = format!("--net=/run/netns/{}", self.network.names[0]);
        command.arg(namespace).arg("--").arg(program);
        command
    }

    fn start_daemon(&self, rule: &str, records: bool) -> Daemon {
        let dir = tempfile::tempdir_in(self.dir.path()).unwrap();
        let root = self.server.path().parent().unwrap();
        let cgroup = self.server.path().strip_prefix(root).unwrap();
        let config = format!(
            "[daemon]\ncgroup = \"{cgroup}\"\nrun_dir = \"{dir}/run\"\nstate_dir = \"{dir}/state\"\n\
             [records]\ndir = \"{dir}/records\"\nrotate_bytes = \"1MiB\"\n\
             [memory]\nfile = \"{dir}/paths.sqlite\"\n\
             [[rule]]\nname = \"web\"\nports = \"{PORT}\"\nstartup = \"{rule}\"\nrecords = {records}\n",
            cgroup = cgroup.display(),
            dir = dir.path().display(),
        );
        let file = dir.path().join("headstart.toml");
        fs::write(&file, config).unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let mut command = self.in_server_namespace(std::env::current_exe().unwrap());
        command.arg("daemon").arg(&file);
        self.daemon.enter(&mut command).unwrap();
        let mut daemon = Daemon {
            child: command.spawn().unwrap(),
            dir,
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        let socket = daemon.dir.path().join("run/control.sock");
        while UnixStream::connect(&socket).is_err() {
            let ended = daemon.child.try_wait().unwrap().is_some();
            assert!(
                !ended && Instant::now() < deadline,
                "the daemon does not answer"
            );
            thread::sleep(Duration::from_millis(20));
        }
        daemon
    }

    /// The client is a process of its own: its CPU is told apart from all else.
    fn ask(&self, over_veth: bool, connections: usize) -> [f64; 4] {
        let [server, client] = &self.network.names;
        let (namespace, addr) = match over_veth {
            true => (client, SERVER),
            false => (server, "127.0.0.1"),
        };
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["client", namespace, addr, &connections.to_string()])
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "the client failed");
        let text = String::from_utf8(output.stdout).unwrap();
        let numbers: Vec<f64> = text
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect();
        numbers.try_into().unwrap()
    }

    fn turn(&self, contestant: &Contestant, over_veth: bool, connections: usize) -> Turn {
        let daemon = contestant
            .rule
            .map(|rule| self.start_daemon(rule, contestant.records));
        self.ask(over_veth, WARM_UP);
        // What the kernel does late for the daemon's start is done.
        thread::sleep(Duration::from_millis(500));
        let before = [cpu_us(&self.server), cpu_us(&self.daemon)];
        let [took_s, p50, p99, client] = self.ask(over_veth, connections);
        // The last records are taken and written.
        thread::sleep(Duration::from_millis(1200));
        let after = [cpu_us(&self.server), cpu_us(&self.daemon)];
        if let Some(daemon) = daemon {
            let rows = daemon.end();
            let wanted = if contestant.records {
                WARM_UP + connections
            } else {
                0
            };
            assert_eq!(rows, wanted, "{}: records", contestant.name);
        }
        let each = |us: f64| us / connections as f64;
        Turn {
            connections_per_s: connections as f64 / took_s,
            set_up_p50_us: p50,
            set_up_p99_us: p99,
            server_us: each(after[0] - before[0]),
            client_us: each(client),
            daemon_us: each(after[1] - before[1]),
        }
    }
}

struct Daemon {
    child: Child,
    dir: tempfile::TempDir,
}

impl Daemon {
    /// How many transfers it has recorded.
    fn end(mut self) -> usize {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        kill(pid, Signal::SIGTERM).unwrap();
        assert!(self.child.wait().unwrap().success());
        rows_in(&self.dir.path().join("records"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rows_in(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let rows = files.map(|file: PathBuf| {
        let reader = SerializedFileReader::new(fs::File::open(file).unwrap()).unwrap();
        usize::try_from(reader.metadata().file_metadata().num_rows()).unwrap()
    });
    rows.sum()
}

fn cpu_us(cgroup: &Cgroup) -> f64 {
    let text = fs::read_to_string(cgroup.path().join("cpu.stat")).unwrap();
    let usage = text
        .lines()
        .find_map(|line| line.strip_prefix("usage_usec "));
    usage.unwrap().parse().unwrap()
}

/// Fetches the page, and says how long the handshake took.
fn get(addr: &str) -> std::io::Result<Duration> {
    let began = Instant::now();
    let mut connection = TcpStream::connect((addr, PORT))?;
    let set_up = began.elapsed();
    connection.write_all(b"GET /page HTTP/1.0\r\n\r\n")?;
    let (mut buffer, mut got) = ([0; 65_536], 0);
    loop {
        match connection.read(&mut buffer)? {
            0 => break,
            read => got += read,
        }
    }
    assert!(got >= TRANSFER_BYTES, "{got} bytes came");
    Ok(set_up)
}

/// The client: asks for the page `connections` times, and prints seconds, median and 99th percentile of the set-up in
/// us, and its CPU time in us.
fn client(namespace: &str, addr: &str, connections: usize) {
    let (began, before) = (Instant::now(), own_cpu_us());
    let threads: Vec<_> = (0..AT_ONCE)
        .map(|number| {
            let (namespace, addr) = (namespace.to_owned(), addr.to_owned());
            let mine = connections / AT_ONCE + usize::from(number < connections % AT_ONCE);
            thread::spawn(move || {
                inside(&namespace, "client", || {
                    (0..mine)
                        .map(|_| get(&addr).unwrap().as_secs_f64() * 1e6)
                        .collect::<Vec<f64>>()
                })
            })
        })
        .collect();
    let mut set_ups: Vec<f64> = threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap())
        .collect();
    let (took_s, cpu) = (began.elapsed().as_secs_f64(), own_cpu_us() - before);
    set_ups.sort_by(f64::total_cmp);
    let quantile = |percent: usize| set_ups[(set_ups.len() * percent / 100).min(set_ups.len() - 1)];
    println!("{took_s} {} {} {cpu}", quantile(50), quantile(99));
}

fn own_cpu_us() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    (usage.user_time() + usage.system_time()).num_microseconds() as f64
}

/// Median, and the quartiles between which half of the rounds lie.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let quarter = values.len() / 4;
    let (low, high) = (values[quarter], values[values.len() - 1 - quarter]);
    format!("{:.3} ({low:.3}-{high:.3})", median(values))
}

fn measure(stage: &Stage, over_veth: bool, rounds: usize, connections: usize) {
    let mut turns: Vec<Vec<Turn>> = CONTESTANTS.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..CONTESTANTS.len() {
            let index = (turn + round) % CONTESTANTS.len();
            turns[index].push(stage.turn(&CONTESTANTS[index], over_veth, connections));
        }
    }
    println!(
        "\n{:23} {:>6} {:>8} {:>8}  {:>6} {:>6} {:>6}  {:19}  {:19}  {:19}",
        if over_veth { "veth" } else { "loopback" },
        "conn/s",
        "p50, us",
        "p99, us",
        "server",
        "client",
        "daemon",
        "conn/s x cubic",
        "p99 x cubic",
        "CPU x cubic",
    );
    for (contestant, mine) in CONTESTANTS.iter().zip(&turns) {
        let of = |what: fn(&Turn) -> f64| median(mine.iter().map(what).collect());
        let ratios = |what: fn(&Turn) -> f64| -> Vec<f64> {
            let pairs = mine.iter().zip(&turns[0]);
            pairs
                .map(|(mine, native)| what(mine) / what(native))
                .collect()
        };
        let cpu = ratios(Turn::cpu_us);
        let above = if median(cpu.clone()) > TARGET {
            "  above 1.03"
        } else {
            ""
        };
        println!(
            "{:23} {:6.0} {:8.0} {:8.0}  {:6.1} {:6.1} {:6.1}  {:19}  {:19}  {:19}{above}",
            contestant.name,
            of(|turn| turn.connections_per_s),
            of(|turn| turn.set_up_p50_us),
            of(|turn| turn.set_up_p99_us),
            of(|turn| turn.server_us),
            of(|turn| turn.client_us),
            of(|turn| turn.daemon_us),
            spread(ratios(|turn| turn.connections_per_s)),
            spread(ratios(|turn| turn.set_up_p99_us)),
            spread(cpu),
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["daemon", file] => headstart_daemon::run(Path::new(file)).unwrap(),
        ["client", namespace, addr, connections] => {
            client(namespace, addr, connections.parse().unwrap());
        }
        _ => {
            let numbers: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
            let rounds = numbers.first().copied().unwrap_or(10);
            let connections = numbers.get(1).copied().unwrap_or(10_000);
            let load = fs::read_to_string("/proc/loadavg").unwrap();
            println!(
                "nginx, {connections} connections of {TRANSFER_BYTES} bytes a turn, {AT_ONCE} at once, {rounds} rounds, \
                 interleaved; medians of rounds;\nratios within a round, with quartiles; CPU of a connection in us; \
                 load {}",
                load.split(' ').next().unwrap()
            );
            let stage = Stage::new();
            for over_veth in [false, true] {
                measure(&stage, over_veth, rounds, connections);
            }
        }
    }
}
