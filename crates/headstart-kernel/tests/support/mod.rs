//! A server, a client and a path of our own for the kernel tests: real sockets, an emulated wire, and what was
//! seen on that wire. What is asserted comes from the wire, never from our own records.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    missing_docs,
    reason = "each test file uses its part of a private module"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's own tools may panic"
)]

mod inside;
mod lock;
mod rules;
mod stage;
mod together;

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use headstart_core::{Params, Startup, why_name};
use headstart_kernel::{
    Attachment, Kernel, KernelError, MemoryOptions, Options, Record, RecordLevel,
};
use headstart_link::LinkConfig;
use headstart_path::{Direction, Emulation, PacketFate, PacketRecord, PathConfig};
use nix::sys::socket::{setsockopt as set_option, sockopt};

pub use inside::*;
pub use lock::*;
pub use rules::*;
pub use stage::*;
pub use together::*;

/// DSCP 1, "lower effort": what the tests configure as low drop priority.
pub const LOW_PRIORITY_DSCP: u8 = 1;
const PORT: u16 = 8080;

/// Says that a test is skipped and why, where this machine cannot run it. `None`: it was skipped.
pub fn kernel(options: &Options) -> Option<Kernel> {
    match Kernel::load(options) {
        Ok(kernel) => Some(kernel),
        Err(error @ KernelError::CannotHere { .. }) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// All start-ups with their defaults, every event recorded.
pub fn everything() -> Options {
    Options {
        startups: Startup::all().map(Params::new).collect(),
        record_level: RecordLevel::Events,
        dscp: LOW_PRIORITY_DSCP,
        memory: MemoryOptions::of_networks(),
        ..Options::default()
    }
}

/// `su_fast_start` alone, with some parameters set.
pub fn fast_start(settings: &[(&str, u64)]) -> Options {
    only("su_fast_start", settings)
}

/// One start-up alone, with some parameters set.
pub fn only(name: &str, settings: &[(&str, u64)]) -> Options {
    let mut params = Params::new(Startup::named(name).unwrap());
    for (name, value) in settings {
        params.set(name, *value).unwrap();
    }
    Options {
        startups: vec![params],
        ..everything()
    }
}

/// A path with a server on it, which sends as many bytes as it is asked for.
pub struct Lane {
    pub emulation: Emulation,
    marker: Option<Attachment>,
    pub server: SocketAddr,
    listener: Arc<TcpListener>,
}

impl Lane {
    /// `rate` and `rtt` as on the command line; the queue is `queue_pkts` long in both directions.
    pub fn new(kernel: &Kernel, lane: u8, rate: &str, rtt_ms: u64, queue_pkts: u32) -> Lane {
        Lane::asymmetric(kernel, lane, rate, rate, rtt_ms, queue_pkts)
    }

    /// A path so fast that a round trip's packets leave together, and slow start is not left before 400 KB; a
    /// receiver whose window does not stand in the way.
    pub fn wide(kernel: &Kernel, rtt_ms: u64) -> Lane {
        let lane = Lane::new(kernel, 1, "400mbit", rtt_ms, 1000);
        lane.open_receiver();
        lane
    }

    pub fn asymmetric(
        kernel: &Kernel,
        lane: u8,
        rate: &str,
        reverse_rate: &str,
        rtt_ms: u64,
        queue_pkts: u32,
    ) -> Lane {
        let link = |rate: &str| {
            let delay = format!("{}us", rtt_ms * 500).parse().unwrap();
            let queue = format!("drop-tail:{queue_pkts}").parse().unwrap();
            LinkConfig::new(rate.parse().unwrap(), delay, queue)
        };
        let config = PathConfig {
            lane,
            log_packets: true,
            ..PathConfig::new(link(rate), link(reverse_rate))
        };
        let emulation = Emulation::start(config).unwrap();
        let marker = kernel.marker().unwrap();
        let ifindex = emulation.server().tun_ifindex();
        let attachment = emulation
            .server()
            .run(|| marker.attach(ifindex))
            .unwrap()
            .unwrap();
        let server = SocketAddr::new(IpAddr::V4(emulation.server().addr_v4()), PORT);
        let listener = emulation
            .server()
            .run(|| TcpListener::bind(("::", PORT)).unwrap())
            .unwrap();
        let listener = Arc::new(listener);
        let accepting = Arc::clone(&listener);
        thread::spawn(move || serve(&accepting));
        Lane {
            emulation,
            marker: Some(attachment),
            server,
            listener,
        }
    }

    /// A receiver whose window does not stand in the way.
    pub fn open_receiver(&self) {
        self.emulation
            .client()
            .set_sysctl("net.ipv4.tcp_rmem", "4096 8388608 67108864")
            .unwrap();
    }

    /// The congestion control of connections that the server accepts from now on.
    pub fn server_uses(&self, name: &str) {
        let name = OsString::from(name);
        set_option(&*self.listener, sockopt::TcpCongestion, &name).unwrap();
    }

    /// SO_MAX_PACING_RATE of connections that the server accepts from now on, in bytes/s.
    pub fn limit_pacing(&self, bytes_per_s: u32) {
        // SAFETY: the descriptor is the listener's, the value a live u32 of the size that is told.
        let done = unsafe {
            nix::libc::setsockopt(
                self.listener.as_raw_fd(),
                nix::libc::SOL_SOCKET,
                nix::libc::SO_MAX_PACING_RATE,
                (&raw const bytes_per_s).cast(),
                4,
            )
        };
        assert_eq!(done, 0);
    }

    /// Takes the marker off the server's device.
    pub fn unmark(&mut self) {
        self.marker = None;
    }

    pub fn connect(&self) -> Client {
        self.connect_to(self.server)
    }

    pub fn connect_v6(&self) -> Client {
        let addr = IpAddr::V6(self.emulation.server().addr_v6());
        self.connect_to(SocketAddr::new(addr, PORT))
    }

    /// By IPv4 or IPv6.
    pub fn connect_by(&self, v6: bool) -> Client {
        if v6 {
            self.connect_v6()
        } else {
            self.connect()
        }
    }

    fn connect_to(&self, to: SocketAddr) -> Client {
        let stream = self
            .emulation
            .client()
            .run(|| TcpStream::connect(to).unwrap())
            .unwrap();
        Client {
            port: stream.local_addr().unwrap().port(),
            stream,
        }
    }

    /// The packets of the connection since the last call for any connection, as they came to the router.
    pub fn wire(&self, client: &Client) -> Vec<PacketRecord> {
        let mut packets = self.emulation.take_packets();
        packets.retain(|packet| packet.src_port == client.port || packet.dst_port == client.port);
        packets
    }
}

/// A path whose queue holds one bandwidth-delay product, and a receiver whose window does not stand in the way.
pub struct Bdp {
    pub lane: Lane,
    /// What the path itself holds; its queue holds as much again.
    pub pkts: u32,
}

impl Bdp {
    pub fn new(kernel: &Kernel, mbit_per_s: u32, rtt_ms: u64) -> Bdp {
        let bits = u64::from(mbit_per_s) * 1000 * rtt_ms;
        let pkts = u32::try_from(bits / (8 * 1500)).unwrap();
        let lane = Lane::new(kernel, 1, &format!("{mbit_per_s}mbit"), rtt_ms, pkts);
        lane.open_receiver();
        Bdp { lane, pkts }
    }
}

/// The records of one connection, in order.
pub fn of_socket(records: &[Record], port: u16) -> Vec<Record> {
    let of_port = |record: &&Record| record.remote_port == port;
    records.iter().filter(of_port).copied().collect()
}

/// A connection to the server.
pub struct Client {
    pub stream: TcpStream,
    pub port: u16,
}

impl Client {
    /// Asks for `bytes` and reads them. Returns how long it took.
    pub fn fetch(&mut self, bytes: usize) -> Duration {
        let started = Instant::now();
        // In one segment: a second one would wait for the first one's ACK (RFC 896).
        self.stream
            .write_all(format!("{bytes}\n").as_bytes())
            .unwrap();
        let mut left = bytes;
        let mut buffer = vec![0; 1 << 16];
        while left > 0 {
            let want = left.min(buffer.len());
            let got = self.stream.read(&mut buffer[..want]).unwrap();
            assert!(got > 0, "the server closed with {left} bytes to go");
            left -= got;
        }
        started.elapsed()
    }
}

fn serve(listener: &TcpListener) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { return };
        thread::spawn(move || {
            let mut requests = BufReader::new(stream.try_clone().unwrap());
            let mut stream = stream;
            let mut line = String::new();
            while requests.read_line(&mut line).is_ok_and(|read| read > 0) {
                let bytes: usize = line.trim().parse().unwrap();
                line.clear();
                if stream.write_all(&vec![b'x'; bytes]).is_err() {
                    return;
                }
            }
        });
    }
}

/// The data packets from the server, in the order in which they came to the router.
pub fn data(packets: &[PacketRecord]) -> Vec<&PacketRecord> {
    packets
        .iter()
        .filter(|packet| packet.direction == Direction::Forward)
        .filter(|packet| packet.tcp.is_some_and(|tcp| tcp.payload_bytes > 0))
        .collect()
}

/// Data packets that were sent before the first ACK for any of them came back through the router.
pub fn first_flight(packets: &[PacketRecord]) -> Vec<&PacketRecord> {
    let all = data(packets);
    let Some(first) = all.first().and_then(|packet| packet.tcp) else {
        return Vec::new();
    };
    let first_ack_ns = packets
        .iter()
        .filter(|packet| packet.direction == Direction::Reverse)
        .filter(|packet| {
            packet
                .tcp
                .is_some_and(|tcp| tcp.flags.ack() && tcp.ack.wrapping_sub(first.seq) as i32 > 0)
        })
        .filter_map(|packet| packet.left_ns)
        .min()
        .unwrap_or(u64::MAX);
    all.into_iter()
        .filter(|packet| packet.at_ns < first_ack_ns)
        .collect()
}

/// How many data packets left in each round trip: a flight ends where nothing leaves for half an RTT.
pub fn flights(packets: &[PacketRecord], rtt_ms: u64) -> Vec<usize> {
    let all = data(packets);
    let mut flights = vec![1];
    for pair in all.windows(2) {
        if ms_between(pair[0], pair[1]) > 0.5 * rtt_ms as f64 {
            flights.push(0);
        }
        if let Some(last) = flights.last_mut() {
            *last += 1;
        }
    }
    flights
}

pub fn is_low_priority(packet: &PacketRecord) -> bool {
    packet.dscp == LOW_PRIORITY_DSCP
}

pub fn dropped(packets: &[PacketRecord]) -> usize {
    packets
        .iter()
        .filter(|packet| matches!(packet.fate, PacketFate::Dropped(_)))
        .count()
}

pub fn ms_between(first: &PacketRecord, last: &PacketRecord) -> f64 {
    (last.at_ns - first.at_ns) as f64 / 1e6
}

/// The most of these packets that came to the router within `ms`.
pub fn largest_burst(packets: &[&PacketRecord], ms: f64) -> usize {
    let within = |(at, first): (usize, &&PacketRecord)| {
        let later = packets[at..].iter();
        later
            .take_while(|packet| ms_between(first, packet) < ms)
            .count()
    };
    packets.iter().enumerate().map(within).max().unwrap_or(0)
}

/// The round trip in which a packet left, as a fraction, counted from the first packet's arrival at the router. One
/// is taken as 1 ms longer than the path's, which is what the hosts and a packet's own time on the wire add, and to
/// begin 2 ms early, so that its first packets do not fall on the edge.
fn round_trip_of(first: &PacketRecord, packet: &PacketRecord, rtt_ms: u64) -> f64 {
    (ms_between(first, packet) + 2.0) / (rtt_ms + 1) as f64
}

/// How many data packets left in each round trip.
pub fn by_round_trip(packets: &[PacketRecord], rtt_ms: u64) -> Vec<usize> {
    let all = data(packets);
    let mut counts = Vec::new();
    for packet in &all {
        let round = round_trip_of(all[0], packet, rtt_ms) as usize;
        counts.resize(counts.len().max(round + 1), 0);
        counts[round] += 1;
    }
    counts
}

/// The data packets of one such round trip, in each quarter of it.
pub fn by_quarter(packets: &[PacketRecord], rtt_ms: u64, round: usize) -> [usize; 4] {
    let all = data(packets);
    let mut counts = [0; 4];
    for packet in &all {
        let quarter = (4.0 * round_trip_of(all[0], packet, rtt_ms)) as usize;
        let place = quarter.checked_sub(4 * round);
        if let Some(count) = place.and_then(|quarter| counts.get_mut(quarter)) {
            *count += 1;
        }
    }
    counts
}

/// That the packets of a round trip are spread over it: no quarter of it has more than 60 % of them. A busy machine
/// may hold all back for a quarter; slow start has them all in the first (`paced.rs`).
pub fn assert_spread(packets: &[PacketRecord], rtt_ms: u64, round: usize) {
    let quarters = by_quarter(packets, rtt_ms, round);
    let all: usize = quarters.iter().sum();
    assert!(
        all > 0 && quarters.iter().all(|count| 10 * count <= 6 * all),
        "round trip {round}, packets in each quarter: {quarters:?}"
    );
}

/// The records of the verdicts that say why.
pub fn that_say_why(records: &[Record]) -> Vec<(&'static str, &Record)> {
    let said = records.iter().filter(|record| record.verdict.why != 0);
    said.map(|record| (why_name(record.verdict.why), record))
        .collect()
}

/// The record with that reason.
pub fn that_says<'a>(records: &'a [Record], why: &str) -> &'a Record {
    let said = that_say_why(records);
    let found = said.iter().find(|(name, _)| *name == why);
    found
        .unwrap_or_else(|| panic!("nothing says {why}: {said:?}"))
        .1
}
