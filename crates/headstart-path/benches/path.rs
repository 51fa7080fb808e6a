//! How fast and how true the emulator is on this machine: `scripts/bench.sh` runs it.
//!
//! Every figure is of real TCP or UDP sockets in the two namespaces. It prints a report, and with
//! `--json FILE` writes the same as one document.

#![allow(clippy::unwrap_used, reason = "a failed step of a benchmark ends it")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use headstart_path::{Emulation, LinkConfig, PathConfig, PathReport, QueueSpec, Rate, Span};
use nix::sys::socket::{setsockopt, sockopt};
use serde::Serialize;

/// TCP payload of a full packet: 1500 bytes less 20 of IP, 20 of TCP and 12 of time stamps.
const PAYLOAD_BYTES: f64 = 1448.0;
const PACKET_BYTES: f64 = 1500.0;

/// The addresses of the paths: this lane's, and those below it for paths side by side.
const LANE: u8 = 200;

/// What a transfer needs to leave slow start behind.
const SETTLE: Duration = Duration::from_secs(3);
const MEASURE: Duration = Duration::from_secs(8);

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

#[derive(Serialize)]
struct Setup {
    hosts: u16,
    up_ms: Vec<f64>,
    down_ms: Vec<f64>,
}

#[derive(Serialize)]
struct RoundTrip {
    configured_us: f64,
    excess_p50_us: f64,
    excess_p99_us: f64,
}

#[derive(Serialize)]
struct Most {
    bits_per_s: f64,
    forward_pkts_per_s: f64,
    all_pkts_per_s: f64,
    router_cpu_share: f64,
}

#[derive(Serialize)]
struct AtRate {
    rate: String,
    /// Of what the rate allows: rate x 1448 / 1500.
    goodput_share: f64,
    lateness_p50_us: f64,
    lateness_p99_us: f64,
    lateness_max_us: f64,
    router_cpu_share: f64,
    valid: bool,
    invalid_because: Vec<String>,
}

/// Several emulations of one rate at once.
#[derive(Serialize)]
struct Beside {
    paths: u8,
    rate: String,
    goodput_shares: Vec<f64>,
    lateness_p50_us: Vec<f64>,
    lateness_p99_us: Vec<f64>,
    valid: bool,
}

#[derive(Serialize)]
struct Repeated {
    bytes: usize,
    median_ms: f64,
    sd_ms: f64,
    each_ms: Vec<f64>,
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
        most: Most {
            bits_per_s: 0.0,
            forward_pkts_per_s: 0.0,
            all_pkts_per_s: 0.0,
            router_cpu_share: 0.0,
        },
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

/// The same in both directions; `queue` packets.
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

fn setup(hosts: u16, times: usize) -> Setup {
    let mut setup = Setup {
        hosts,
        up_ms: Vec::new(),
        down_ms: Vec::new(),
    };
    for _ in 0..times {
        let began = Instant::now();
        let config = PathConfig {
            hosts,
            ..path("10mbit", "10ms", 100)
        };
        let mut emulation = Emulation::start(config).unwrap();
        let up = began.elapsed();
        emulation.stop().unwrap();
        setup.up_ms.push(ms(up));
        setup.down_ms.push(ms(began.elapsed() - up));
    }
    println!(
        "{hosts:>3} pair(s): up in {:.0} ms, down in {:.0} ms (medians of {times})",
        median(&setup.up_ms),
        median(&setup.down_ms)
    );
    setup
}

/// How much longer than configured a round trip of a small datagram takes.
fn round_trip(rtt: &str) -> RoundTrip {
    let emulation = Emulation::start(path("100mbit", rtt, 100)).unwrap();
    let (server, client) = (emulation.server(), emulation.client());
    let echo = server
        .run(|| UdpSocket::bind((server.addr_v4(), 7)).unwrap())
        .unwrap();
    let socket = client
        .run(|| UdpSocket::bind((client.addr_v4(), 0)).unwrap())
        .unwrap();
    socket.connect((server.addr_v4(), 7)).unwrap();
    echo.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let times = 200;
    let answering = thread::spawn(move || {
        let mut datagram = [0; 64];
        for _ in 0..times {
            let (len, from) = echo.recv_from(&mut datagram).unwrap();
            echo.send_to(&datagram[..len], from).unwrap();
        }
    });
    let configured_us = rtt.parse::<Span>().unwrap().as_ns() as f64 / 1e3;
    // Each of the 28 + 16 bytes takes its time on both links, too.
    let sending_us = 2.0 * 44.0 * 8.0 / 100.0;
    let mut excess_us = Vec::new();
    for _ in 0..times {
        thread::sleep(Duration::from_millis(2));
        let began = Instant::now();
        socket.send(&[0; 16]).unwrap();
        socket.recv(&mut [0; 64]).unwrap();
        excess_us.push(began.elapsed().as_nanos() as f64 / 1e3 - configured_us - sending_us);
    }
    answering.join().unwrap();
    let result = RoundTrip {
        configured_us,
        excess_p50_us: quantile(&excess_us, 0.5),
        excess_p99_us: quantile(&excess_us, 0.99),
    };
    println!(
        "round trip of {rtt}: longer by {:.0} us (p50), {:.0} us (p99)",
        result.excess_p50_us, result.excess_p99_us
    );
    result
}

/// One connection that sends for so long; bytes and time at the client, after it has settled.
fn stream(emulation: &Emulation, settle: Duration, measure: Duration) -> (u64, Duration) {
    let (server, client) = (emulation.server(), emulation.client());
    let listener = server
        .run(|| TcpListener::bind((server.addr_v4(), 0)).unwrap())
        .unwrap();
    setsockopt(&listener, sockopt::TcpCongestion, &"cubic".into()).unwrap();
    let address = listener.local_addr().unwrap();
    let mut connection = client.run(|| TcpStream::connect(address).unwrap()).unwrap();
    let (mut sender, _) = listener.accept().unwrap();
    let sending = thread::spawn(move || {
        let chunk = [0; 65_536];
        while sender.write_all(&chunk).is_ok() {}
    });
    let mut chunk = vec![0; 262_144];
    let began = Instant::now();
    let (mut first, mut last, mut bytes) = (None, began, 0);
    while began.elapsed() < settle + measure {
        let more = connection.read(&mut chunk).unwrap();
        let now = Instant::now();
        match first {
            None if now - began >= settle => first = Some(now),
            None => {}
            Some(_) => {
                bytes += more as u64;
                last = now;
            }
        }
    }
    // The sender hears of it.
    drop(connection);
    sending.join().unwrap();
    (bytes, last - first.unwrap())
}

/// A stream of its own over each of so many emulations.
fn beside(paths: u8, rate: &str) -> Beside {
    let all: Vec<Carried> = thread::scope(|scope| {
        let running: Vec<_> = (0..paths)
            .map(|place| scope.spawn(move || carried(rate, LANE - place)))
            .collect();
        running
            .into_iter()
            .map(|carried| carried.join().unwrap())
            .collect()
    });
    let of = |what: fn(&PathReport) -> f64| all.iter().map(|one| what(&one.report)).collect();
    let result = Beside {
        paths,
        rate: rate.to_owned(),
        goodput_shares: all.iter().map(|one| one.goodput_share).collect(),
        lateness_p50_us: of(|report| report.forward.lateness_us.p50),
        lateness_p99_us: of(|report| report.forward.lateness_us.p99),
        valid: all.iter().all(|one| one.report.valid),
    };
    let worst = |figures: &[f64]| figures.iter().copied().fold(0.0, f64::max);
    println!(
        "{paths} path(s) of {rate} side by side: the least goodput {:.3} % of what the rate allows; late by at most \
         {:.0} us (p50), {:.0} us (p99); valid: {}",
        100.0 * result.goodput_shares.iter().copied().fold(1.0, f64::min),
        worst(&result.lateness_p50_us),
        worst(&result.lateness_p99_us),
        result.valid
    );
    result
}

/// What came of one stream over a path.
struct Carried {
    /// Of what the rate allows.
    goodput_share: f64,
    /// Of all the process' router threads.
    router_cpu_share: f64,
    report: PathReport,
}

fn carried(rate: &str, lane: u8) -> Carried {
    let bits_per_s = rate.parse::<Rate>().unwrap().bits_per_s() as f64;
    // One bandwidth-delay product of 20 ms, and not less than 50 packets.
    let queue_pkts = ((bits_per_s * 0.02 / 8.0 / PACKET_BYTES) as u32).max(50);
    let config = PathConfig {
        lane,
        ..path(rate, "20ms", queue_pkts)
    };
    let mut emulation = Emulation::start(config).unwrap();
    let (cpu, began) = (router_cpu(), Instant::now());
    let (bytes, took) = stream(&emulation, SETTLE, MEASURE);
    // Before the thread is gone.
    let router_cpu_share = (router_cpu() - cpu) / began.elapsed().as_secs_f64();
    let allowed = bits_per_s * PAYLOAD_BYTES / PACKET_BYTES;
    Carried {
        goodput_share: bytes as f64 * 8.0 / took.as_secs_f64() / allowed,
        router_cpu_share,
        report: emulation.stop().unwrap(),
    }
}

fn at_rate(rate: &str) -> AtRate {
    let Carried {
        goodput_share,
        router_cpu_share,
        report,
    } = carried(rate, LANE);
    let result = AtRate {
        rate: rate.to_owned(),
        goodput_share,
        lateness_p50_us: report.forward.lateness_us.p50,
        lateness_p99_us: report.forward.lateness_us.p99,
        lateness_max_us: report.forward.lateness_us.max,
        router_cpu_share,
        valid: report.valid,
        invalid_because: report.invalid_because,
    };
    println!(
        "{rate:>8}: goodput {:.3} % of what the rate allows; late by {:.0} us (p50), {:.0} us (p99), {:.0} us (most); \
         router {:.0} % of a core; {}",
        result.goodput_share * 100.0,
        result.lateness_p50_us,
        result.lateness_p99_us,
        result.lateness_max_us,
        result.router_cpu_share * 100.0,
        match result.valid {
            true => "valid".to_owned(),
            false => format!("invalid: {}", result.invalid_because.join("; ")),
        }
    );
    result
}

fn most() -> Most {
    let mut emulation = Emulation::start(path("20gbit", "1ms", 4000)).unwrap();
    let settle = Duration::from_secs(1);
    let (cpu, began) = (router_cpu(), Instant::now());
    let (bytes, took) = stream(&emulation, settle, MEASURE);
    let all_s = began.elapsed().as_secs_f64();
    let router_cpu_share = (router_cpu() - cpu) / all_s;
    let report = emulation.stop().unwrap();
    let forward_pkts_per_s = report.forward.out_pkts as f64 / all_s;
    let result = Most {
        bits_per_s: bytes as f64 * 8.0 / took.as_secs_f64() * PACKET_BYTES / PAYLOAD_BYTES,
        forward_pkts_per_s,
        all_pkts_per_s: forward_pkts_per_s + report.reverse.out_pkts as f64 / all_s,
        router_cpu_share,
    };
    println!(
        "most: {:.2} Gbit/s on the wire, {:.0} packets/s with the ACKs; router {:.0} % of a core; valid: {}",
        result.bits_per_s / 1e9,
        result.all_pkts_per_s,
        result.router_cpu_share * 100.0,
        report.valid
    );
    result
}

/// Fresh connections, from the handshake to the last byte, with a request in between.
fn repeated(bytes: usize) -> Repeated {
    let mut emulation = Emulation::start(path("100mbit", "102ms", 850)).unwrap();
    let (server, client) = (emulation.server(), emulation.client());
    let listener = server
        .run(|| TcpListener::bind((server.addr_v4(), 0)).unwrap())
        .unwrap();
    setsockopt(&listener, sockopt::TcpCongestion, &"cubic".into()).unwrap();
    let address = listener.local_addr().unwrap();
    let times = 10;
    let serving = thread::spawn(move || {
        let response = vec![0; bytes];
        for _ in 0..times {
            let (mut connection, _) = listener.accept().unwrap();
            connection.read_exact(&mut [0; 1]).unwrap();
            connection.write_all(&response).unwrap();
        }
    });
    let fetch = || {
        let began = Instant::now();
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(&[0]).unwrap();
        let mut response = vec![0; bytes];
        connection.read_exact(&mut response).unwrap();
        ms(began.elapsed())
    };
    let each_ms: Vec<f64> = client
        .run(|| (0..times).map(|_| fetch()).collect())
        .unwrap();
    serving.join().unwrap();
    let report = emulation.stop().unwrap();
    let mean = each_ms.iter().sum::<f64>() / each_ms.len() as f64;
    let squares: f64 = each_ms.iter().map(|each| (each - mean).powi(2)).sum();
    let result = Repeated {
        bytes,
        median_ms: median(&each_ms),
        sd_ms: (squares / (each_ms.len() - 1) as f64).sqrt(),
        each_ms,
    };
    println!(
        "{bytes} bytes, cubic, 100 Mbit/s, 102 ms, 850 packets: median {:.1} ms, sd {:.2} ms ({times} times; valid: {})",
        result.median_ms, result.sd_ms, report.valid
    );
    result
}

/// CPU time of this process' router threads so far, in s.
fn router_cpu() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of = |task: std::path::PathBuf| {
        let name = std::fs::read_to_string(task.join("comm")).ok()?;
        let times = std::fs::read_to_string(task.join("schedstat")).ok()?;
        let spent_ns: f64 = times.split(' ').next()?.parse().ok()?;
        name.starts_with("hs-router").then_some(spent_ns / 1e9)
    };
    tasks.flatten().filter_map(|task| of(task.path())).sum()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value at this share of the sorted ones, between neighbours in proportion.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = share * (sorted.len() - 1) as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] * (1.0 - part) + sorted[high] * part
}
