//! A server, a client and a path of our own for the kernel tests: real sockets, an emulated wire, and what was
//! seen on that wire. What is asserted comes from the wire, never from our own records.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each test file uses its part of a private module"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's own tools may panic"
)]

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use headstart_core::{Params, Startup};
use headstart_kernel::{Attachment, Cgroup, Kernel, KernelError, Options, RecordLevel};
use headstart_link::LinkConfig;
use headstart_path::{Direction, Emulation, PacketFate, PacketRecord, PathConfig};
use nix::sys::socket::{setsockopt as set_option, sockopt};

/// DSCP 1, "lower effort": what the tests configure as low drop priority.
pub const LOW_PRIORITY_DSCP: u8 = 1;
const PORT: u16 = 8080;

/// Names of congestion controls are the machine's: one test at a time may register them, whichever process it
/// is in.
pub fn one_at_a_time() -> nix::fcntl::Flock<std::fs::File> {
    let file = std::env::temp_dir().join("headstart-tests.lock");
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .unwrap();
    nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusive).unwrap()
}

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
        ..Options::default()
    }
}

/// `su_fast_start` alone, with some parameters set.
pub fn fast_start(settings: &[(&str, u64)]) -> Options {
    let mut params = Params::new(Startup::named("su_fast_start").unwrap());
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
            forward: link(rate),
            reverse: link(reverse_rate),
            lane,
            log_packets: true,
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

/// Runs `make` with this process inside the cgroup: sockets that it opens are the cgroup's, whoever uses them.
pub fn inside<T>(cgroup: &Cgroup, make: impl FnOnce() -> T) -> T {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .unwrap();
    let root = cgroup.path().parent().unwrap().to_owned();
    let pid = std::process::id().to_string();
    std::fs::write(cgroup.path().join("cgroup.procs"), &pid).unwrap();
    let made = make();
    let back = root.join(own.trim_start_matches('/')).join("cgroup.procs");
    std::fs::write(back, &pid).unwrap();
    made
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
        writeln!(self.stream, "{bytes}").unwrap();
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
