//! How fast and how true the emulator is on this machine: `scripts/bench.sh` runs it.
//!
//! Every figure is of real TCP or UDP sockets in the two namespaces. It prints a report, and with
//! `--json FILE` writes the same as one document.

#![allow(clippy::unwrap_used, reason = "a failed step of a benchmark ends it")]

mod streams;
mod times;

use std::net::TcpListener;

use headstart_path::{Emulation, LinkConfig, PathConfig, QueueSpec, Rate, Span};
use nix::sys::socket::{setsockopt, sockopt};
use serde::Serialize;
use streams::{AtRate, Beside, Most, at_rate, beside, most};
use times::{Repeated, RoundTrip, Setup, repeated, round_trip, setup};

/// The addresses of the paths: this lane's, and those below it for paths side by side.
const LANE: u8 = 200;

#[derive(Serialize)]
struct Report {
    schema: u32,
    machine: Machine,
    setup: Vec<Setup>,
    round_trip: Vec<RoundTrip>,
    most: Most,
    rates: Vec<AtRate>,
    beside: Vec<Beside>,
    repeatability: Vec<Repeated>,
}

#[derive(Serialize)]
struct Machine {
    kernel: String,
    cpu: String,
    cpus: usize,
    load_before: String,
    load_after: String,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo bench` and `cargo test --benches` tell a harness which of the two it is.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let only = after("--only");
    let wanted = |name: &str| {
        only.as_ref()
            .is_none_or(|only| only.split(',').any(|o| o == name))
    };
    let load_before = load();
    let mut report = Report {
        schema: 1,
        machine: machine(load_before),
        setup: Vec::new(),
        round_trip: Vec::new(),
        most: Most::default(),
        rates: Vec::new(),
        beside: Vec::new(),
        repeatability: Vec::new(),
    };
    println!(
        "{}, {} CPUs ({}), load {}",
        report.machine.kernel, report.machine.cpus, report.machine.cpu, report.machine.load_before
    );
    if wanted("setup") {
        for (hosts, times) in [(1, 10), (16, 3)] {
            report.setup.push(setup(hosts, times));
        }
    }
    if wanted("rtt") {
        for rtt in ["200us", "1ms", "100ms"] {
            report.round_trip.push(round_trip(rtt));
        }
    }
    if wanted("rates") {
        for rate in ["1.5mbit", "10mbit", "100mbit", "400mbit", "1gbit"] {
            report.rates.push(at_rate(rate));
        }
    }
    if wanted("beside") {
        for paths in [1, 2, 4] {
            report.beside.push(beside(paths, "10mbit"));
        }
    }
    if wanted("most") {
        report.most = most();
    }
    if wanted("repeat") {
        for bytes in [100_000, 1_000_000] {
            report.repeatability.push(repeated(bytes));
        }
    }
    report.machine.load_after = load();
    println!("load afterwards {}", report.machine.load_after);
    if let Some(file) = after("--json") {
        let text = serde_json::to_string_pretty(&report).unwrap();
        std::fs::write(&file, text + "\n").unwrap();
        println!("written to {file}");
    }
}

fn machine(load_before: String) -> Machine {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let names: Vec<&str> = cpus
        .lines()
        .filter_map(|line| {
            line.strip_prefix("model name")?
                .split_once(": ")
                .map(|(_, name)| name)
        })
        .collect();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    Machine {
        kernel: format!("Linux {}", kernel.trim()),
        cpu: names.first().copied().unwrap_or("unknown").to_owned(),
        cpus: names.len(),
        load_before,
        load_after: String::new(),
    }
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap();
    text.split(' ').next().unwrap().to_owned()
}

/// The same in both directions.
fn path(rate: &str, rtt: &str, queue_pkts: u32) -> PathConfig {
    let rate: Rate = rate.parse().unwrap();
    let rtt: Span = rtt.parse().unwrap();
    let delay = Span::from_ns(rtt.as_ns() / 2);
    let link = LinkConfig::new(rate, delay, QueueSpec::drop_tail(queue_pkts));
    PathConfig {
        lane: LANE,
        ..PathConfig::new(link.clone(), link)
    }
}

/// On the server, by native CUBIC.
fn listener(emulation: &Emulation) -> TcpListener {
    let server = emulation.server();
    let listener = server
        .run(|| TcpListener::bind((server.addr_v4(), 0)).unwrap())
        .unwrap();
    setsockopt(&listener, sockopt::TcpCongestion, &"cubic".into()).unwrap();
    listener
}
