//! How much gets through, and how late: streams of one TCP connection each.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use headstart_path::{Emulation, PathConfig, PathReport, Rate};
use serde::Serialize;

use crate::{LANE, listener, path};

/// TCP payload of a full packet: 1500 bytes less 20 of IP, 20 of TCP and 12 of time stamps.
const PAYLOAD_BYTES: f64 = 1448.0;
const PACKET_BYTES: f64 = 1500.0;

/// What a transfer needs to leave slow start behind.
const SETTLE: Duration = Duration::from_secs(3);
const MEASURE: Duration = Duration::from_secs(8);

#[derive(Default, Serialize)]
pub(crate) struct Most {
    bits_per_s: f64,
    forward_pkts_per_s: f64,
    all_pkts_per_s: f64,
    router_cpu_share: f64,
}

pub(crate) fn most() -> Most {
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

#[derive(Serialize)]
pub(crate) struct AtRate {
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

pub(crate) fn at_rate(rate: &str) -> AtRate {
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

/// Several emulations of one rate at once.
#[derive(Serialize)]
pub(crate) struct Beside {
    paths: u8,
    rate: String,
    goodput_shares: Vec<f64>,
    lateness_p50_us: Vec<f64>,
    lateness_p99_us: Vec<f64>,
    valid: bool,
}

/// A stream of its own over each of so many emulations.
pub(crate) fn beside(paths: u8, rate: &str) -> Beside {
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

/// One connection that sends for so long; bytes and time at the client, after it has settled.
fn stream(emulation: &Emulation, settle: Duration, measure: Duration) -> (u64, Duration) {
    let (listener, client) = (listener(emulation), emulation.client());
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
