//! Where the load is: nginx, the daemon and the listeners, each in its cgroup, and a turn of a contestant on them.

use std::fs;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use headstart_kernel::Cgroup;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{Backlog, listen};
use nix::unistd::Pid;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::cgroup;
use crate::client::get;
use crate::support::{Network, SERVER, inside, ip};
use crate::{CONTESTANTS, Contestant, NATIVE, TRANSFER_BYTES};

/// The daemon writes once a second.
pub(crate) const SETTLE: Duration = Duration::from_millis(1150);
/// The first contestant's; the others' follow.
const PORT: u16 = 8080;

fn port_of(index: usize) -> u16 {
    PORT + u16::try_from(index).unwrap()
}

/// What a turn was like. Times are of a connection.
pub(crate) struct Turn {
    pub(crate) wall_us: f64,
    pub(crate) set_up_p50_us: f64,
    pub(crate) set_up_p99_us: f64,
    pub(crate) server_cpu_us: f64,
    pub(crate) client_cpu_us: f64,
    pub(crate) daemon_cpu_us: f64,
    /// Of the daemon's, what came after the turn.
    pub(crate) late_cpu_us: f64,
}

/// nginx in a cgroup and a namespace, and the daemon in a cgroup beside it. What is dropped first holds the others'
/// processes.
pub(crate) struct Stage {
    // The daemon ends before its cgroup does.
    pub(crate) running: Option<Daemon>,
    server: Cgroup,
    daemon: Cgroup,
    ruled: Cgroup,
    network: Network,
    dir: tempfile::TempDir,
    /// What the daemon takes of the CPU when nothing happens.
    pub(crate) idle_us_per_s: f64,
}

impl Stage {
    pub(crate) fn new() -> Stage {
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
        let of = |(index, contestant): (usize, &Contestant)| {
            let bind = || {
                inside(&self.network.names[0], "listen", || {
                    TcpListener::bind(("0.0.0.0", port_of(index))).unwrap()
                })
            };
            match contestant.rule {
                Some(_) => cgroup::inside(&self.ruled, bind),
                None => bind(),
            }
        };
        let sockets: Vec<TcpListener> = CONTESTANTS.iter().enumerate().map(of).collect();
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
    pub(crate) fn ask(&self, index: usize, over_veth: bool, connections: usize) -> [f64; 4] {
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

    pub(crate) fn turn(&self, index: usize, over_veth: bool, connections: usize) -> Turn {
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

pub(crate) struct Daemon {
    child: Child,
    dir: tempfile::TempDir,
}

impl Daemon {
    /// How many transfers it has recorded.
    pub(crate) fn end(mut self) -> usize {
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
