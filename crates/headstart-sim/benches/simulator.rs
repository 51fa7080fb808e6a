//! How fast the simulator is: `cargo bench -p headstart-sim`. Each scenario runs several times; the median
//! and the range of the wall time are printed, and packets (of data and all others) a second by the median.
//!
//! `cargo bench -p headstart-sim -- NAME` runs those whose names begin so. Where ns-2 is installed (Debian
//! package ns2) it runs scenario A as well (`scripts/ns2/dumbbell.tcl`, SACK and delayed ACKs), in turn with ours,
//! as `ns2-a`.

#![allow(clippy::unwrap_used, reason = "a bench that cannot be built may stop")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use common::{group, ms, road};
use headstart_link::{Distribution, Law, Span};
use headstart_scenario::{ByteSize, Count};
use headstart_sim::{
    Arrivals, AvoidanceSpec, Group, HandshakeSpec, Outcome, Runner, SimSpec, Simulation, Sizes,
    Traffic, Transport, Users,
};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

fn native(transport: Transport, traffic: Traffic) -> Group {
    group(transport, Runner::Native, traffic)
}

fn dumbbell(rate: &str, rtt_ms: u64, queue_pkts: u32, groups: Vec<Group>, until: Span) -> SimSpec {
    SimSpec {
        groups,
        until,
        ..road(rate, rtt_ms, queue_pkts)
    }
}

/// Two bulk flows, the second from 10 s; 100 Mbit/s, 102 ms, 850 packets, 60 s.
fn peer_a(avoidance: AvoidanceSpec) -> SimSpec {
    let transport = Transport {
        avoidance,
        ..Transport::linux()
    };
    let groups = [0, 10]
        .map(|start_s| native(transport, Traffic::Users(Users::bulk(ms(start_s * 1000)))))
        .to_vec();
    dumbbell("100mbit", 102, 850, groups, ms(60_000))
}

/// 30 users with 10 transfers of 40 KB each, 10 s between them.
fn peer_b() -> SimSpec {
    let users = Users {
        users: 30,
        start: Distribution::fixed(Span::ZERO),
        stagger: ms(100),
        pages: Some(10),
        objects: Distribution::fixed(Count(1)),
        index_first: false,
        bytes: Sizes::Drawn(Distribution::fixed(ByteSize::from_bytes(40_000))),
        parallel: 1,
        persistent: false,
        think: Distribution::fixed(ms(10_000)),
    };
    let group = native(Transport::linux(), Traffic::Users(users));
    dumbbell("1.6mbit", 50, 20, vec![group], ms(600_000))
}

/// 1000 transfers of 100 KB, Poisson over 20 s; 1 Gbit/s, 40 ms.
fn peer_c() -> SimSpec {
    let arrivals = Arrivals {
        start: Span::ZERO,
        transfers: Some(1000),
        gap: Distribution::new(Law::Exponential(ms(20))).unwrap(),
        bytes: Distribution::fixed(ByteSize::from_bytes(100_000)),
        connections: None,
    };
    let group = native(Transport::linux(), Traffic::Arrivals(arrivals));
    dumbbell("1gbit", 40, 3333, vec![group], ms(60_000))
}

/// One flow at 10 Gbit/s and 100 ms: slow start overshoots by a whole bandwidth-delay product.
fn big_window() -> SimSpec {
    let mut transport = Transport {
        avoidance: AvoidanceSpec::Cubic,
        ..Transport::linux()
    };
    transport.receiver.window = headstart_sim::WindowSpec::Fixed(1 << 30);
    let group = native(transport, Traffic::Users(Users::bulk(Span::ZERO)));
    dumbbell("10gbit", 100, 83_333, vec![group], ms(3000))
}

/// 1,000,000 transfers of 20 KB over 100,000 connections.
fn million() -> SimSpec {
    let arrivals = Arrivals {
        start: Span::ZERO,
        transfers: Some(1_000_000),
        gap: Distribution::new(Law::Exponential(Span::from_ns(20_000))).unwrap(),
        bytes: Distribution::fixed(ByteSize::from_bytes(20_000)),
        connections: Some(100_000),
    };
    let transport = Transport {
        handshake: HandshakeSpec::ThreeWay,
        ..Transport::linux()
    };
    let group = native(transport, Traffic::Arrivals(arrivals));
    dumbbell("10gbit", 40, 33_333, vec![group], ms(60_000))
}

/// What this process has used of a CPU, in ms: on a busy machine it says more than the wall clock.
fn cpu_ms() -> f64 {
    let used = nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap();
    std::time::Duration::from(used).as_secs_f64() * 1e3
}

/// The most memory that this process ever had, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kib: Option<u64> = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    kib.unwrap_or(0) / 1024
}

/// One run of scenario A in ns-2: wall and CPU time in ms. `None` where it is not installed.
fn ns2_a() -> Option<(f64, f64)> {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scripts/ns2/dumbbell.tcl"
    );
    let children_ms = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
        [usage.user_time(), usage.system_time()]
            .iter()
            .map(|time| time.num_microseconds() as f64 / 1e3)
            .sum::<f64>()
    };
    let (began, cpu_before_ms) = (Instant::now(), children_ms());
    let mut command = std::process::Command::new("ns");
    let status = command.args([script, "Sack1"]).status().ok()?;
    let took = (
        began.elapsed().as_secs_f64() * 1e3,
        children_ms() - cpu_before_ms,
    );
    status.success().then_some(took)
}

/// Times of one scenario, in ms.
#[derive(Default)]
struct Times {
    walls: Vec<f64>,
    cpus: Vec<f64>,
}

impl Times {
    fn add(&mut self, (wall, cpu): (f64, f64)) {
        self.walls.push(wall);
        self.cpus.push(cpu);
    }

    /// Median wall time, its range, median CPU time.
    fn judged(&mut self) -> (f64, String, f64) {
        self.walls.sort_by(f64::total_cmp);
        self.cpus.sort_by(f64::total_cmp);
        let (first, last) = (self.walls[0], self.walls[self.walls.len() - 1]);
        let middle = self.walls.len() / 2;
        let range = format!("{first:.2}-{last:.2}");
        (self.walls[middle], range, self.cpus[middle])
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let scenarios: [(&str, u32, &dyn Fn() -> SimSpec); 6] = [
        ("peer-a", 9, &|| peer_a(AvoidanceSpec::Cubic)),
        ("peer-a-hystart", 9, &|| peer_a(AvoidanceSpec::CubicHystart)),
        ("peer-b", 9, &peer_b),
        ("peer-c", 9, &peer_c),
        ("big-window", 3, &big_window),
        ("million", 1, &million),
    ];
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load at the beginning (1, 5, 15 minutes): {}", load.trim());
    println!(
        "{:<16} {:>9} {:>17} {:>9} {:>11} {:>9} {:>11} {:>8} {:>8}",
        "scenario",
        "wall ms",
        "range ms",
        "cpu ms",
        "bottleneck",
        "ns/packet",
        "M packets/s",
        "drops",
        "peak MiB"
    );
    for (name, times, spec) in scenarios {
        if !wanted.is_empty()
            && !wanted
                .iter()
                .any(|wanted| name.starts_with(wanted.as_str()))
        {
            continue;
        }
        let (mut ours, mut ns2) = (Times::default(), Times::default());
        let mut outcome = Outcome::default();
        for _ in 0..times {
            let simulation = Simulation::new(spec(), 1).unwrap();
            let (began, cpu_before_ms) = (Instant::now(), cpu_ms());
            outcome = simulation.run(&mut ());
            ours.add((
                began.elapsed().as_secs_f64() * 1e3,
                cpu_ms() - cpu_before_ms,
            ));
            if name == "peer-a"
                && let Some(took) = ns2_a()
            {
                ns2.add(took);
            }
        }
        let (wall_ms, range_ms, cpu_ms) = ours.judged();
        let bottleneck_pkts = outcome.links[0].out_pkts;
        println!(
            "{name:<16} {wall_ms:>9.2} {:>17} {cpu_ms:>9.2} {bottleneck_pkts:>11} {:>9.1} {:>11.2} {:>8} {:>8}",
            range_ms,
            cpu_ms * 1e6 / bottleneck_pkts as f64,
            outcome.sent_pkts as f64 / cpu_ms / 1e3,
            outcome.dropped_pkts,
            peak_mib(),
        );
        if !ns2.walls.is_empty() {
            let (ns2_wall_ms, range_ms, ns2_cpu_ms) = ns2.judged();
            println!(
                "{:<16} {ns2_wall_ms:>9.2} {range_ms:>17} {ns2_cpu_ms:>9.2} {:>11}",
                "ns2-a",
                format!("{:.1}x", ns2_cpu_ms / cpu_ms)
            );
        }
    }
}
