//! What every start-up does over fixed paths, written down: for a kernel in virtual time, where it is the same each
//! time (`make test-kernels`; the other half is `headstart-cli/tests/kernels`).
//!
//! For each start-up of the registry, and for native CUBIC to hold them against, into the directory that
//! `HEADSTART_TRACE_DIR` names:
//!
//! - `NAME.trace`: every packet with its times in ns, every event with its verdict;
//! - `NAME.txt`: what one looks at, one transfer a paragraph.
//!
//! On an ordinary kernel it runs as well, and its times are those of a machine with other things to do.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use headstart_core::{INFINITE_SSTHRESH, Params, Startup, why_name};
use headstart_kernel::{Kernel, Options, Prefix, Record};
use headstart_path::PacketRecord;
use support::*;

/// A path, and what is asked of the server over it, in this order.
struct Scene {
    /// Scenes with the same lane have the same addresses: what was learnt in one is known in the next.
    lane: u8,
    rate: &'static str,
    rtt_ms: u64,
    queue_pkts: u32,
    transfers: &'static [Transfer],
}

enum Transfer {
    /// A new connection, nothing known of the path.
    Cold(usize),
    /// A new connection; the memory is as the transfers before have left it.
    Warm(usize),
    /// The connection of the transfer before, after a rest.
    Resumed(usize, Duration),
}

use Transfer::{Cold, Resumed, Warm};

const SCENES: [Scene; 4] = [
    // One BDP of queue: where HyStart has to find the end of slow start.
    Scene {
        lane: 1,
        rate: "100mbit",
        rtt_ms: 102,
        queue_pkts: 850,
        transfers: &[
            Cold(10_000),
            Cold(100_000),
            Cold(2_000_000),
            Warm(100_000),
            Resumed(100_000, Duration::from_secs(5)),
        ],
    },
    // A satellite, one BDP of queue.
    Scene {
        lane: 2,
        rate: "12mbit",
        rtt_ms: 400,
        queue_pkts: 400,
        transfers: &[Cold(51_200), Cold(1_000_000), Warm(51_200)],
    },
    // The satellite's memory over a path that has become twelve times slower: a start that fails.
    Scene {
        lane: 2,
        rate: "1mbit",
        rtt_ms: 400,
        queue_pkts: 8,
        transfers: &[Warm(51_200)],
    },
    // A fifth of a BDP of queue: slow start overshoots at once.
    Scene {
        lane: 3,
        rate: "1.5mbit",
        rtt_ms: 100,
        queue_pkts: 3,
        transfers: &[Cold(100_000), Warm(100_000)],
    },
];

/// The prefix length of the path memory; a lane is a prefix.
const PREFIX_BITS: u8 = 24;

/// What is written of one start-up.
#[derive(Default)]
struct Written {
    summary: String,
    trace: String,
}

#[test]
fn every_start_up_over_fixed_paths() {
    let directory = match std::env::var_os("HEADSTART_TRACE_DIR") {
        Some(directory) => PathBuf::from(directory),
        None => std::env::temp_dir().join(format!("headstart-exact-{}", std::process::id())),
    };
    fs::create_dir_all(&directory).unwrap();
    let _lock = one_at_a_time();
    let ours = Startup::all().map(|startup| (startup.name(), startup));
    let native = ("cubic", Startup::named("su_standard").unwrap());
    for (name, loaded) in std::iter::once(native).chain(ours) {
        // Each alone, so that another one in the registry changes nothing for this one.
        let options = Options {
            startups: vec![Params::new(loaded)],
            ..everything()
        };
        let Some(kernel) = kernel(&options) else {
            return;
        };
        let mut written = Written::default();
        for scene in &SCENES {
            written.play(scene, name, &kernel);
        }
        fs::write(directory.join(format!("{name}.txt")), &written.summary).unwrap();
        fs::write(directory.join(format!("{name}.trace")), &written.trace).unwrap();
    }
    println!("written into {}", directory.display());
}

impl Written {
    fn play(&mut self, scene: &Scene, name: &str, kernel: &Kernel) {
        let Scene {
            rate,
            rtt_ms,
            queue_pkts,
            ..
        } = scene;
        let mut lane = Lane::new(kernel, scene.lane, rate, *rtt_ms, *queue_pkts);
        lane.server_uses(name);
        // The kernel takes away what the scene before has left: that is work for the one CPU.
        sleep(Duration::from_secs(2));
        let prefix = Prefix::of(lane.emulation.client().addr_v4().into(), PREFIX_BITS);
        writeln!(
            self.summary,
            "{rate}, {rtt_ms} ms there and back, queue of {queue_pkts}"
        )
        .unwrap();
        let mut connected: Option<Client> = None;
        for transfer in scene.transfers {
            let (what, bytes) = match transfer {
                Cold(bytes) => {
                    connected = None;
                    // What the connection before has learnt it tells when it is released.
                    settle(scene);
                    kernel.forget(prefix).unwrap();
                    ("cold", *bytes)
                }
                Warm(bytes) => {
                    connected = None;
                    ("warm", *bytes)
                }
                Resumed(bytes, rest) => {
                    sleep(*rest);
                    ("resumed", *bytes)
                }
            };
            settle(scene);
            let _before = lane.emulation.take_packets();
            kernel.take_records().unwrap();
            let began = Instant::now();
            let client = connected.get_or_insert_with(|| lane.connect());
            client.fetch(bytes);
            let took = began.elapsed();
            settle(scene);
            let packets = lane.wire(client);
            let port = client.port;
            let mut records = kernel.take_records().unwrap();
            records.retain(|record| record.remote_port == port);
            self.transfer(what, bytes, took, &packets, &records, *rtt_ms);
        }
        drop(connected);
        // Its connections have ended: what they learn when they are released is learnt before the next scene.
        settle(scene);
        lane.unmark();
    }

    fn transfer(
        &mut self,
        what: &str,
        bytes: usize,
        took: Duration,
        packets: &[PacketRecord],
        records: &[Record],
        rtt_ms: u64,
    ) {
        let all = data(packets);
        let (summary, trace) = (&mut self.summary, &mut self.trace);
        writeln!(
            summary,
            "  {what} {bytes} bytes: {:.1}ms",
            took.as_secs_f64() * 1e3
        )
        .unwrap();
        writeln!(
            summary,
            "    packets {}, again {}, dropped {}, low priority {}",
            all.len(),
            again(&all),
            dropped(packets),
            all.iter().filter(|packet| is_low_priority(packet)).count(),
        )
        .unwrap();
        let flights: Vec<String> = flights(&all, rtt_ms).iter().map(usize::to_string).collect();
        writeln!(summary, "    a round trip: {}", flights.join(" ")).unwrap();
        for line in decisions(records) {
            writeln!(summary, "    {line}").unwrap();
        }
        writeln!(trace, "== {what} {bytes} {took:?}").unwrap();
        for packet in packets {
            writeln!(trace, "{packet:?}").unwrap();
        }
        for record in records {
            writeln!(trace, "{record:?}").unwrap();
        }
    }
}

/// Lets the last ACKs and the closing of connections cross the path.
fn settle(scene: &Scene) {
    sleep(Duration::from_millis(scene.rtt_ms * 3));
}

/// Packets with a first byte that had been sent before.
fn again(all: &[&PacketRecord]) -> usize {
    let mut end: Option<u32> = None;
    let mut count = 0;
    for tcp in all.iter().filter_map(|packet| packet.tcp) {
        let after = tcp.seq.wrapping_add(tcp.payload_bytes);
        match end {
            Some(end) if (tcp.seq.wrapping_sub(end) as i32) < 0 => count += 1,
            _ => end = Some(after),
        }
    }
    count
}

/// Data packets in each round trip since the first. The cut is a tenth before the full round trip: an unpaced flight
/// begins just after it, and what the queue delays comes later still.
fn flights(all: &[&PacketRecord], rtt_ms: u64) -> Vec<usize> {
    let mut flights = Vec::new();
    for packet in all {
        let since_ms = ms_between(all[0], packet);
        let trip = (since_ms / rtt_ms as f64 + 0.1) as usize;
        if flights.len() <= trip {
            flights.resize(trip + 1, 0);
        }
        flights[trip] += 1;
    }
    flights
}

/// What the start-up decided, in order; the same reason again is counted, and stands with its first windows.
fn decisions(records: &[Record]) -> Vec<String> {
    let mut lines: Vec<(u8, usize, String)> = Vec::new();
    for record in records.iter().filter(|record| record.verdict.why != 0) {
        let (event, verdict) = (&record.event, &record.verdict);
        if let Some((_, count, _)) = lines.last_mut().filter(|(why, ..)| *why == verdict.why) {
            *count += 1;
            continue;
        }
        let or = |set: u32, is: u32| if set == 0 { is } else { set };
        let cwnd = or(verdict.cwnd_pkts, event.cwnd_pkts);
        let ssthresh = match or(verdict.ssthresh_pkts, event.ssthresh_pkts) {
            infinite if infinite >= INFINITE_SSTHRESH => "-".to_owned(),
            ssthresh => ssthresh.to_string(),
        };
        let phase = verdict
            .phase()
            .map_or("?".to_owned(), |phase| format!("{phase:?}"));
        lines.push((
            verdict.why,
            1,
            format!(
                "{} {phase} cwnd {cwnd} ssthresh {ssthresh}",
                why_name(verdict.why)
            ),
        ));
    }
    lines
        .into_iter()
        .map(|(_, count, line)| match count {
            1 => line,
            count => format!("{line} ({count} times)"),
        })
        .collect()
}
