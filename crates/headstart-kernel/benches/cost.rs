//! What a start-up costs: many short transfers over loopback and over veth, each start-up against native cubic in
//! one interleaved run. `scripts/bench.sh` runs it, as root; traffic is in namespaces of its own. The arguments name
//! the start-ups, if not all are wanted.
//!
//! CPU is the whole process's: server, client, and the kernel's work for both, which Linux does in their name. A second
//! native cubic is among the contestants: what it differs by from the first is the benchmark's own error.

#![allow(clippy::unwrap_used, reason = "a failed step of a benchmark ends it")]

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Instant;

use headstart_core::{Params, Startup};
use headstart_kernel::{Kernel, MemoryOptions, Options};
use nix::sched::{CloneFlags, setns};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeValLike;

/// The transfer of the comparison.
const TRANSFER_BYTES: usize = 20_000;
/// Connections of one start-up in one round.
const CONNECTIONS: usize = 500;
const ROUNDS: usize = 20;
const NATIVE: &str = "cubic";
/// Native cubic once more, and once more with the marker on its device.
const AGAIN: &str = "cubic, again";
const MARKED: &str = "cubic, marker";
/// What a start-up may cost, over native cubic.
const TARGET: f64 = 1.05;

/// Two namespaces with a veth between them.
struct Network {
    names: [String; 2],
}

impl Network {
    fn new() -> Network {
        let names = ["s", "c"].map(|end| format!("hs-cost-{}-{end}", std::process::id()));
        let network = Network { names };
        let [server, client] = &network.names;
        for name in &network.names {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        ip(&[
            "-n", server, "link", "add", "v0", "type", "veth", "peer", "name", "v1",
        ]);
        ip(&["-n", server, "link", "set", "v1", "netns", client]);
        ip(&["-n", server, "addr", "add", "10.77.250.1/24", "dev", "v0"]);
        ip(&["-n", client, "addr", "add", "10.77.250.2/24", "dev", "v1"]);
        ip(&["-n", server, "link", "set", "v0", "up"]);
        ip(&["-n", client, "link", "set", "v1", "up"]);
        network
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

fn ip(arguments: &[&str]) {
    let done = Command::new("ip").args(arguments).status().unwrap();
    assert!(done.success(), "ip {} failed", arguments.join(" "));
}

/// Does `job` on a thread of its own in the namespace `name`. The thread has the name `who`: a profiler tells
/// contestants apart by it.
fn inside<T: Send>(name: &str, who: &str, job: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        thread::Builder::new()
            .name(who.to_owned())
            .spawn_scoped(scope, || {
                let file = File::open(format!("/run/netns/{name}")).unwrap();
                setns(file, CloneFlags::CLONE_NEWNET).unwrap();
                job()
            })
            .unwrap()
            .join()
            .unwrap()
    })
}

/// What a round cost.
#[derive(Clone, Copy)]
struct Cost {
    connections_per_s: f64,
    cpu_ms_per_mb: f64,
}

/// Who is measured.
struct Contestant {
    name: &'static str,
    control: &'static str,
    /// Its device has the marker.
    marked: bool,
}

impl Contestant {
    fn named(name: &'static str) -> Contestant {
        let native = name.starts_with(NATIVE);
        Contestant {
            name,
            control: if native { NATIVE } else { name },
            marked: name == MARKED || Startup::named(name).is_ok_and(Startup::marks),
        }
    }
}

fn cpu_us() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    (usage.user_time() + usage.system_time()).num_microseconds() as f64
}

fn round(network: &Network, over_veth: bool, contestant: &Contestant) -> Cost {
    let who = contestant.name;
    let [server, client] = &network.names;
    let (client, addr) = match over_veth {
        true => (client, "10.77.250.1:0"),
        false => (server, "127.0.0.1:0"),
    };
    let listener = inside(server, who, || TcpListener::bind(addr).unwrap());
    setsockopt(
        &listener,
        sockopt::TcpCongestion,
        &OsString::from(contestant.control),
    )
    .unwrap();
    let addr = listener.local_addr().unwrap();
    let (began, cpu) = (Instant::now(), cpu_us());
    thread::scope(|scope| {
        let serve = || {
            let body = [0u8; TRANSFER_BYTES];
            for _ in 0..CONNECTIONS {
                let (mut connection, _) = listener.accept().unwrap();
                connection.write_all(&body).unwrap();
            }
        };
        let named = thread::Builder::new().name(who.to_owned());
        named.spawn_scoped(scope, serve).unwrap();
        inside(client, who, || {
            let mut body = Vec::with_capacity(TRANSFER_BYTES);
            for _ in 0..CONNECTIONS {
                body.clear();
                let mut connection = TcpStream::connect(addr).unwrap();
                connection.read_to_end(&mut body).unwrap();
                assert_eq!(body.len(), TRANSFER_BYTES);
            }
        });
    });
    let megabytes = (CONNECTIONS * TRANSFER_BYTES) as f64 / 1e6;
    Cost {
        connections_per_s: CONNECTIONS as f64 / began.elapsed().as_secs_f64(),
        cpu_ms_per_mb: (cpu_us() - cpu) / 1000.0 / megabytes,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

fn main() {
    let options = Options {
        startups: Startup::all().map(Params::new).collect(),
        memory: MemoryOptions::of_networks(),
        ..Options::default()
    };
    let kernel = Kernel::load(&options).unwrap();
    let network = Network::new();
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let contestants: Vec<Contestant> = [NATIVE, AGAIN, MARKED]
        .into_iter()
        .chain(Startup::all().map(Startup::name))
        .filter(|name| {
            !name.starts_with("su_")
                || wanted.is_empty()
                || wanted.iter().any(|other| other == name)
        })
        .map(Contestant::named)
        .collect();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    println!(
        "{CONNECTIONS} connections of {TRANSFER_BYTES} bytes a round, {ROUNDS} rounds, interleaved; medians of rounds,\n\
         ratios within a round; load {}",
        load.split(' ').next().unwrap()
    );
    for (over_veth, medium) in [(false, "loopback"), (true, "veth")] {
        let device = if over_veth { "v0" } else { "lo" };
        let mut costs: Vec<Vec<Cost>> = vec![Vec::new(); contestants.len()];
        // A first round of each warms caches and path memory, and is not counted.
        for round_number in 0..=ROUNDS {
            for turn in 0..contestants.len() {
                let index = (turn + round_number) % contestants.len();
                let contestant = &contestants[index];
                let marker = contestant.marked.then(|| {
                    let marker = kernel.marker().unwrap();
                    inside(&network.names[0], contestant.name, move || {
                        let ifindex = nix::net::if_::if_nametoindex(device).unwrap();
                        marker.attach(ifindex).unwrap()
                    })
                });
                let cost = round(&network, over_veth, contestant);
                drop(marker);
                if round_number > 0 {
                    costs[index].push(cost);
                }
            }
        }
        println!("\n{medium:16} connections/s  CPU ms/MB  CPU x cubic  time x cubic");
        for (contestant, mine) in contestants.iter().zip(&costs) {
            let ratio = |of: fn(&Cost) -> f64| {
                let pairs = mine.iter().zip(&costs[0]);
                median(pairs.map(|(mine, native)| of(mine) / of(native)).collect())
            };
            let cpu = ratio(|cost| cost.cpu_ms_per_mb);
            println!(
                "{:16} {:13.0}  {:9.3}  {cpu:11.3}  {:12.3}{}",
                contestant.name,
                median(mine.iter().map(|cost| cost.connections_per_s).collect()),
                median(mine.iter().map(|cost| cost.cpu_ms_per_mb).collect()),
                ratio(|cost| 1.0 / cost.connections_per_s),
                if cpu > TARGET { "  above 1.05" } else { "" },
            );
        }
    }
}
