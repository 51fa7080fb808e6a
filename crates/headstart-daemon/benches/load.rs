//! What the daemon costs a server: nginx answers with 20 KB, a client asks as fast as it can over many connections at
//! once, and native cubic takes turns with the daemon's rules, with and without records. `scripts/bench.sh --only load`
//! runs it, as root, on a machine that does nothing else; traffic is in namespaces of its own. Arguments: the number of
//! rounds and the connections of a turn, if not these.
//!
//! One nginx serves all: each contestant has a port, and the ports that a rule names were opened in a cgroup to which
//! the daemon's policy is attached; connections have their cgroup from there. Native cubic's are of another, in which
//! nothing is attached (that something is attached elsewhere costs it a test for each packet). So nothing has to be
//! started or stopped between turns: they are short and many, their order within a round is by chance, and what is said
//! of a contestant is the median of its ratios to native cubic in the same round, with the interval in which that median
//! lies with 95 % by the bootstrap. A second native cubic is among the contestants: what it differs by from the first is
//! the benchmark's own error.
//!
//! CPU of the server is its cgroup's, of the client its process's, of the daemon its cgroup's; the kernel's work for a
//! connection is done in the name of one of them. After a turn with records the daemon has time to write them, and its
//! CPU until then is the turn's, but for what it takes when nothing happens. That time would also have been missing to
//! the traffic: for connections a second it is added to the turn, spread over the CPUs. Files are closed often enough
//! that making them is counted, too.

#![allow(clippy::unwrap_used, reason = "a failed step of a benchmark ends it")]

#[path = "../../headstart-kernel/benches/support/mod.rs"]
mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use headstart_kernel::Cgroup;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{Backlog, listen};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;
use parquet::file::reader::{FileReader, SerializedFileReader};
use support::{Network, SERVER, inside, ip, median};

const ROUNDS: usize = 40;
const CONNECTIONS: usize = 1500;
const TRANSFER_BYTES: usize = 20_000;
/// The first contestant's; the others' follow.
const PORT: u16 = 8080;
/// Connections that the client has open at the same time.
const AT_ONCE: usize = 16;
/// Of each contestant, before the first round: caches are warm and the path is known.
const WARM_UP: usize = 500;
/// The daemon writes once a second.
const SETTLE: Duration = Duration::from_millis(1150);
/// A server that answers no more ends the benchmark.
const PATIENCE: Duration = Duration::from_secs(10);
/// What records may cost, over native cubic.
const TARGET: f64 = 0.03;
/// Of the median, by the bootstrap.
const RESAMPLES: usize = 2000;

const NATIVE: &str = "cubic";

/// Who is measured: what the rule for its port says; without one no policy is attached to its connections.
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

fn port_of(index: usize) -> u16 {
    PORT + u16::try_from(index).unwrap()
}

/// What a turn was like. Times are of a connection.
struct Turn {
    wall_us: f64,
    set_up_p50_us: f64,
    set_up_p99_us: f64,
    server_cpu_us: f64,
    client_cpu_us: f64,
    daemon_cpu_us: f64,
    /// Of the daemon's, what came after the turn.
    late_cpu_us: f64,
}

/// The daemon's part, the mean of all turns: it closes a file now and then, of which a median would know nothing.
struct DaemonPart {
    cpu_us: f64,
    late_cpu_us: f64,
}

impl DaemonPart {
    fn of(turns: &[Turn]) -> DaemonPart {
        let mean =
            |what: fn(&Turn) -> f64| turns.iter().map(what).sum::<f64>() / turns.len() as f64;
        DaemonPart {
            cpu_us: mean(|turn| turn.daemon_cpu_us),
            late_cpu_us: mean(|turn| turn.late_cpu_us),
        }
    }

    fn connections_per_s(&self, turn: &Turn) -> f64 {
        1e6 / (turn.wall_us + self.late_cpu_us / cpus() as f64)
    }

    fn cpu_us(&self, turn: &Turn) -> f64 {
        turn.server_cpu_us + turn.client_cpu_us + self.cpu_us
    }
}

/// Chance that is the same in each run (SplitMix64, Steele et al. 2014).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((x ^ (x >> 31)) >> 33).unwrap() % bound
    }

    fn order(&mut self, number: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..number).collect();
        for last in (1..number).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}

/// nginx in a cgroup and a namespace, and the daemon in a cgroup beside it. What is dropped first holds the others'
/// processes.
struct Stage {
    // The daemon ends before its cgroup does.
    running: Option<Daemon>,
    server: Cgroup,
    daemon: Cgroup,
    ruled: Cgroup,
    network: Network,
    dir: tempfile::TempDir,
    /// What the daemon takes of the CPU when nothing happens.
    idle_us_per_s: f64,
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
        // nginx's workers are nobody's.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(dir.path(), open).unwrap();
        let mut stage = Stage {
            running: None,
            server: Cgroup::create().unwrap(),
            daemon: Cgroup::create().unwrap(),
            ruled: Cgroup::create().unwrap(),
            network,
            dir,
            idle_us_per_s: 0.0,
        };
        stage.start_nginx();
        stage.running = Some(stage.start_daemon());
        thread::sleep(Duration::from_secs(1));
        let before = cpu_us(&stage.daemon);
        thread::sleep(Duration::from_secs(3));
        stage.idle_us_per_s = (cpu_us(&stage.daemon) - before) / 3.0;
        stage
    }

    fn start_nginx(&self) {
        let listens = (0..CONTESTANTS.len())
            .map(|index| format!("listen {} backlog=4096;", port_of(index)))
            .collect::<String>();
        let nginx = format!(
            "daemon off; worker_processes auto; worker_cpu_affinity auto; pid {dir}/pid; error_log stderr warn;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; keepalive_timeout 0; sendfile on;\n\
             server {{ {listens} root {dir}; }} }}\n",
            dir = self.dir.path().display(),
        );
        let file = self.dir.path().join("nginx.conf");
        fs::write(&file, nginx).unwrap();
        // As nginx hands its own listeners on when it is replaced: their descriptors, by this name.
        let sockets = self.listeners();
        let handed: String = sockets
            .iter()
            .map(|socket| format!("{};", socket.as_raw_fd()))
            .collect();
        let mut nginx = self.in_server_namespace("nginx");
        nginx.args(["-p", "/", "-c"]).arg(&file);
        nginx.env("NGINX", handed).stderr(Stdio::null());
        self.server.enter(&mut nginx).unwrap();
        // It ends with its cgroup.
        drop(nginx.spawn().unwrap());
        drop(sockets);
        let deadline = Instant::now() + Duration::from_secs(10);
        let answers = |port| {
            inside(&self.network.names[0], "wait", || {
                get("127.0.0.1", port).is_ok()
            })
        };
        for index in 0..CONTESTANTS.len() {
            while !answers(port_of(index)) {
                assert!(Instant::now() < deadline, "nginx does not answer");
                thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// A listener for each contestant, in its cgroup.
    fn listeners(&self) -> Vec<TcpListener> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = own
            .lines()
            .find_map(|line| line.strip_prefix("0::"))
            .unwrap();
        let root = self.ruled.path().parent().unwrap();
        let home = root.join(own.trim_start_matches('/'));
        let pid = std::process::id().to_string();
        let of = |(index, contestant): (usize, &Contestant)| {
            let cgroup = contestant.rule.map_or(&*home, |_| self.ruled.path());
            fs::write(cgroup.join("cgroup.procs"), &pid).unwrap();
            inside(&self.network.names[0], "listen", || {
                TcpListener::bind(("0.0.0.0", port_of(index))).unwrap()
            })
        };
        let sockets: Vec<TcpListener> = CONTESTANTS.iter().enumerate().map(of).collect();
        fs::write(home.join("cgroup.procs"), &pid).unwrap();
        for socket in &sockets {
            listen(socket, Backlog::new(4096).unwrap()).unwrap();
            // As nginx's own are: of two workers that are told of a connection, one would wait for the next.
            socket.set_nonblocking(true).unwrap();
            fcntl(socket, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
        }
        sockets
    }

    fn in_server_namespace(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        let namespace = format!("--net=/run/netns/{}", self.network.names[0]);
        command.arg(namespace).arg("--").arg(program);
        command
    }

    fn start_daemon(&self) -> Daemon {
        let dir = tempfile::tempdir_in(self.dir.path()).unwrap();
        let root = self.ruled.path().parent().unwrap();
        let cgroup = self.ruled.path().strip_prefix(root).unwrap();
        let mut config = format!(
            "[daemon]\ncgroup = \"{cgroup}\"\nrun_dir = \"{dir}/run\"\nstate_dir = \"{dir}/state\"\n\
             [records]\ndir = \"{dir}/records\"\nrotate_bytes = \"4MiB\"\n\
             [memory]\nfile = \"{dir}/paths.sqlite\"\n",
            cgroup = cgroup.display(),
            dir = dir.path().display(),
        );
        for (index, contestant) in CONTESTANTS.iter().enumerate() {
            if let Some(rule) = contestant.rule {
                config += &format!(
                    "[[rule]]\nname = \"{}\"\nports = \"{}\"\nstartup = \"{rule}\"\nrecords = {}\n",
                    contestant.name.replace(", ", "-"),
                    port_of(index),
                    contestant.records
                );
            }
        }
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
    fn ask(&self, index: usize, over_veth: bool, connections: usize) -> [f64; 4] {
        let [server, client] = &self.network.names;
        let (namespace, addr) = match over_veth {
            true => (client, SERVER),
            false => (server, "127.0.0.1"),
        };
        let numbers = [port_of(index).to_string(), connections.to_string()];
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["client", namespace, addr])
            .args(numbers)
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

    fn turn(&self, index: usize, over_veth: bool, connections: usize) -> Turn {
        let contestant = &CONTESTANTS[index];
        let before = [cpu_us(&self.server), cpu_us(&self.daemon)];
        let began = Instant::now();
        let [took_s, p50, p99, client] = self.ask(index, over_veth, connections);
        let idle_us = |since: Instant| since.elapsed().as_secs_f64() * self.idle_us_per_s;
        let (settling, meanwhile) = (Instant::now(), cpu_us(&self.daemon));
        if contestant.records {
            thread::sleep(SETTLE);
        }
        let after = [cpu_us(&self.server), cpu_us(&self.daemon)];
        let each = |us: f64| us / connections as f64;
        // Of connections that it does not record the daemon hears nothing.
        let own = |us: f64| if contestant.records { each(us) } else { 0.0 };
        Turn {
            wall_us: each(took_s * 1e6),
            set_up_p50_us: p50,
            set_up_p99_us: p99,
            server_cpu_us: each(after[0] - before[0]),
            client_cpu_us: each(client),
            daemon_cpu_us: own(after[1] - before[1] - idle_us(began)),
            late_cpu_us: own(after[1] - meanwhile - idle_us(settling)),
        }
    }
}

fn cpus() -> usize {
    thread::available_parallelism().unwrap().get()
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
fn get(addr: &str, port: u16) -> std::io::Result<Duration> {
    let began = Instant::now();
    let mut connection = TcpStream::connect((addr, port))?;
    let set_up = began.elapsed();
    connection.set_read_timeout(Some(PATIENCE))?;
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
/// us, and its CPU time in us. Its threads stay on their CPUs: where the scheduler puts them is no contestant's merit.
fn client(namespace: &str, addr: &str, port: u16, connections: usize) {
    let (ready, all) = (Barrier::new(AT_ONCE + 1), Barrier::new(AT_ONCE + 1));
    thread::scope(|scope| {
        let (ready, all) = (&ready, &all);
        let threads: Vec<_> = (0..AT_ONCE)
            .map(|number| {
                let mine = connections / AT_ONCE + usize::from(number < connections % AT_ONCE);
                let ask = move || {
                    let mut cpu = CpuSet::new();
                    cpu.set(number % cpus()).unwrap();
                    // Where it may not, it goes without.
                    let _ = sched_setaffinity(Pid::from_raw(0), &cpu);
                    ready.wait();
                    let set_up_us = || match get(addr, port) {
                        Ok(set_up) => set_up.as_secs_f64() * 1e6,
                        // The others would wait for this thread for ever.
                        Err(error) => {
                            eprintln!("{addr}:{port}: {error}");
                            std::process::exit(1);
                        }
                    };
                    let set_ups: Vec<f64> = (0..mine).map(|_| set_up_us()).collect();
                    all.wait();
                    set_ups
                };
                scope.spawn(move || inside(namespace, "client", ask))
            })
            .collect();
        ready.wait();
        let (began, before) = (Instant::now(), own_cpu_us());
        all.wait();
        let (took_s, cpu) = (began.elapsed().as_secs_f64(), own_cpu_us() - before);
        let mut set_ups: Vec<f64> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        set_ups.sort_by(f64::total_cmp);
        let quantile =
            |percent: usize| set_ups[(set_ups.len() * percent / 100).min(set_ups.len() - 1)];
        println!("{took_s} {} {} {cpu}", quantile(50), quantile(99));
    });
}

fn own_cpu_us() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    (usage.user_time() + usage.system_time()).num_microseconds() as f64
}

/// A median, and the interval in which it lies with 95 %.
struct Ratio {
    median: f64,
    low: f64,
    high: f64,
}

impl Ratio {
    fn of(values: Vec<f64>, chance: &mut Chance) -> Ratio {
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let again = values.iter().map(|_| values[chance.below(values.len())]);
                median(again.collect())
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        Ratio {
            median: median(values),
            low: medians[RESAMPLES / 40],
            high: medians[RESAMPLES - 1 - RESAMPLES / 40],
        }
    }

    /// Where `worse` is what may be had.
    fn verdict(&self, worse: f64) -> &'static str {
        let beyond = |value: f64| match worse > 1.0 {
            true => value > worse,
            false => value < worse,
        };
        match (beyond(self.low), beyond(self.high)) {
            (false, false) => "met",
            (true, true) => "missed",
            _ => "open",
        }
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!(
            "{:.3} ({:.3}-{:.3})",
            self.median, self.low, self.high
        ))
    }
}

fn measure(
    stage: &Stage,
    over_veth: bool,
    rounds: usize,
    connections: usize,
    chance: &mut Chance,
) -> usize {
    for index in 0..CONTESTANTS.len() {
        stage.ask(index, over_veth, WARM_UP);
    }
    thread::sleep(2 * SETTLE);
    let mut turns: Vec<Vec<Turn>> = CONTESTANTS.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for index in chance.order(CONTESTANTS.len()) {
            turns[index].push(stage.turn(index, over_veth, connections));
        }
    }
    println!(
        "\n{:23} {:>6} {:>8} {:>8}  {:>6} {:>6} {:>6}  {:19}  {:19}  {:19}  at most 3 % worse",
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
    let native = DaemonPart::of(&turns[0]);
    for (contestant, mine) in CONTESTANTS.iter().zip(&turns) {
        let of = |what: &dyn Fn(&Turn) -> f64| median(mine.iter().map(what).collect());
        let daemon = DaemonPart::of(mine);
        let mut ratio = |what: &dyn Fn(&DaemonPart, &Turn) -> f64| {
            let pairs = mine.iter().zip(&turns[0]);
            let ratios = pairs.map(|(mine, theirs)| what(&daemon, mine) / what(&native, theirs));
            Ratio::of(ratios.collect(), chance)
        };
        let per_s = ratio(&DaemonPart::connections_per_s);
        let p99 = ratio(&|_, turn| turn.set_up_p99_us);
        let cpu = ratio(&DaemonPart::cpu_us);
        println!(
            "{:23} {:6.0} {:8.0} {:8.0}  {:6.1} {:6.1} {:6.2}  {per_s:19}  {p99:19}  {cpu:19}  {} {} {}",
            contestant.name,
            of(&|turn| daemon.connections_per_s(turn)),
            of(&|turn| turn.set_up_p50_us),
            of(&|turn| turn.set_up_p99_us),
            of(&|turn| turn.server_cpu_us),
            of(&|turn| turn.client_cpu_us),
            daemon.cpu_us,
            per_s.verdict(1.0 - TARGET),
            p99.verdict(1.0 + TARGET),
            cpu.verdict(1.0 + TARGET),
        );
    }
    let recorded = CONTESTANTS.iter().filter(|contestant| contestant.records);
    recorded.count() * (WARM_UP + rounds * connections)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["daemon", file] => headstart_daemon::run(Path::new(file)).unwrap(),
        ["client", namespace, addr, port, connections] => client(
            namespace,
            addr,
            port.parse().unwrap(),
            connections.parse().unwrap(),
        ),
        _ => {
            let numbers: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
            let rounds = numbers.first().copied().unwrap_or(ROUNDS);
            let connections = numbers.get(1).copied().unwrap_or(CONNECTIONS);
            let load = fs::read_to_string("/proc/loadavg").unwrap();
            let mut stage = Stage::new();
            println!(
                "nginx, {connections} connections of {TRANSFER_BYTES} bytes a turn, {AT_ONCE} at once, {rounds} rounds, \
                 their order by chance; medians of rounds;\nratios: median of those within a round (95 % of the \
                 bootstrap); CPU of a connection in us; load {};\nthe daemon takes {:.0} us of a second when nothing \
                 happens",
                load.split(' ').next().unwrap(),
                stage.idle_us_per_s
            );
            let mut chance = Chance(1);
            let mut wanted = 0;
            for over_veth in [false, true] {
                wanted += measure(&stage, over_veth, rounds, connections, &mut chance);
            }
            let rows = stage.running.take().map(Daemon::end);
            assert_eq!(rows, Some(wanted), "records");
        }
    }
}
