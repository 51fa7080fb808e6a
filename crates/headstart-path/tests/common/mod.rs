//! What the tests on the real kernel share.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use headstart_path::{Emulation, LinkConfig, Namespace, PathConfig};

/// The same in both directions, with a log of all packets.
pub(crate) fn symmetric(rate: &str, delay: &str, queue: &str, lane: u8) -> PathConfig {
    let (rate, delay) = (rate.parse().unwrap(), delay.parse().unwrap());
    let link = LinkConfig::new(rate, delay, queue.parse().unwrap());
    PathConfig {
        lane,
        log_packets: true,
        ..PathConfig::new(link.clone(), link)
    }
}

/// Starts the path, or says on the terminal why this machine cannot: then the test is skipped.
pub(crate) fn start_or_skip(config: PathConfig) -> Option<Emulation> {
    match Emulation::start(config) {
        Err(error) if error.cannot_here() => {
            // Past the test harness, which hides what passing tests print.
            let _ = writeln!(std::io::stderr(), "SKIPPED: {error}");
            None
        }
        started => Some(started.unwrap()),
    }
}

/// A socket of the host that waits for a datagram half a second at most.
pub(crate) fn udp(host: &Namespace, port: u16) -> UdpSocket {
    let socket = host
        .run(|| UdpSocket::bind((host.addr_v4(), port)).unwrap())
        .unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    socket
}

/// The numbers that the datagrams begin with, until no more comes.
pub(crate) fn numbers_received(receiver: &UdpSocket) -> Vec<u32> {
    let mut buffer = [0; 2048];
    std::iter::from_fn(|| receiver.recv(&mut buffer).ok().map(|_| buffer))
        .map(|datagram| u32::from_be_bytes(datagram[..4].try_into().unwrap()))
        .collect()
}

/// One TCP transfer from the server to the client, as the client saw it.
pub(crate) struct Transfer {
    pub(crate) connect: Duration,
    /// From the first byte to the last.
    pub(crate) flow: Duration,
    pub(crate) bytes: usize,
}

/// Sends `bytes` bytes from the server to the client.
pub(crate) fn transfer(emulation: &Emulation, server: IpAddr, bytes: usize) -> Transfer {
    let listener = emulation
        .server()
        .run(|| TcpListener::bind((server, 0)).unwrap())
        .unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            connection.write_all(&vec![b'x'; bytes]).unwrap();
        });
        emulation.client().run(|| receive(address)).unwrap()
    })
}

fn receive(from: SocketAddr) -> Transfer {
    let asked = Instant::now();
    let mut connection = TcpStream::connect_timeout(&from, Duration::from_secs(20)).unwrap();
    connection
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let connect = asked.elapsed();
    let mut buffer = vec![0; 65_536];
    let mut bytes = connection.read(&mut buffer).unwrap();
    let first = Instant::now();
    loop {
        match connection.read(&mut buffer).unwrap() {
            0 => {
                return Transfer {
                    connect,
                    flow: first.elapsed(),
                    bytes,
                };
            }
            more => bytes += more,
        }
    }
}

/// Whether any thread is in the namespace, or any descriptor holds it.
pub(crate) fn namespace_is_held(inode: u64) -> bool {
    let same = |path: &std::path::Path| fs::metadata(path).is_ok_and(|at| at.ino() == inode);
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let entry = entry.ok()?;
        entry
            .file_name()
            .to_str()?
            .parse::<u32>()
            .ok()
            .map(|_| entry.path())
    });
    let names_it = |path: &std::path::Path| {
        fs::read_link(path).is_ok_and(|link| link.to_string_lossy() == format!("net:[{inode}]"))
    };
    let listed = |path: std::path::PathBuf| {
        fs::read_dir(path)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .map(|entry| entry.path())
    };
    processes.into_iter().any(|process| {
        listed(process.join("task")).any(|task| same(&task.join("ns/net")))
            || listed(process.join("fd")).any(|descriptor| names_it(&descriptor))
    })
}

/// Waits until the condition holds, at most 5 s, and tells whether it does.
pub(crate) fn comes_true(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}
