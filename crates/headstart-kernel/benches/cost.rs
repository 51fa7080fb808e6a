//! What a start-up costs: many short transfers over loopback and over veth, each start-up against native cubic in
//! one interleaved run. `scripts/bench.sh` runs it, as root; traffic is in namespaces of its own. The arguments name
//! the start-ups, if not all are wanted; and `least_rtt_us=0` makes them start where they would not.
//!
//! CPU is the whole process's: server, client, and the kernel's work for both, which Linux does in their name. A second
//! native cubic is among the contestants: what it differs by from the first is the benchmark's own error.

#![allow(clippy::unwrap_used, reason = "a failed step of a benchmark ends it")]

mod support;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use headstart_core::{Assignment, Params, Startup};
use headstart_kernel::{Kernel, MemoryOptions, Options};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeValLike;
use support::{Network, SERVER, inside, median};

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
        true => (client, SERVER),
        false => (server, "127.0.0.1"),
    };
    let listener = inside(server, who, || TcpListener::bind((addr, 0)).unwrap());
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

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let (settings, wanted): (Vec<&String>, Vec<&String>) = arguments
        .iter()
        .partition(|argument| argument.contains('='));
    let configured = |startup| {
        let mut params = Params::new(startup);
        for setting in &settings {
            let assignment = Assignment::parse(setting).unwrap();
            params.set(assignment.name, assignment.value).unwrap();
        }
        params
    };
    let options = Options {
        startups: Startup::all().map(configured).collect(),
        memory: MemoryOptions::of_networks(),
        ..Options::default()
    };
    let kernel = Kernel::load(&options).unwrap();
    let network = Network::new("cost");
    let contestants: Vec<Contestant> = [NATIVE, AGAIN, MARKED]
        .into_iter()
        .chain(Startup::all().map(Startup::name))
        .filter(|name| {
            !name.starts_with("su_")
                || wanted.is_empty()
                || wanted.iter().any(|other| *other == name)
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
