//! One connection of the cross-traffic: who connects, who sends, and how it ends.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, listen as nix_listen,
    setsockopt, socket, sockopt,
};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::{BackgroundConfig, Shared, Traffic};
use crate::packets::Direction;

/// Bytes given to the kernel, or taken from it, at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// How long a thread that only waits goes without looking for the end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long a user waits before trying again when a connection has failed.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// A full packet's payload, and what it takes in memory when it comes from a TUN device: 2048 bytes
/// of data and its bookkeeping, and 256 of `struct sk_buff`.
const FULL_PAYLOAD_BYTES: usize = 1448;
const PACKET_MEMORY_BYTES: usize = 2304;

/// What a request asks for where there is no end.
const ENDLESS: u64 = u64::MAX;

/// The draws of one user.
pub(super) struct Lot(Pcg64Mcg);

impl Lot {
    pub(super) fn new(seed: u64, source: u64, flow: u64) -> Lot {
        let mut state = [0; 16];
        state[..8].copy_from_slice(&seed.to_le_bytes());
        state[8..12].copy_from_slice(&(source as u32).to_le_bytes());
        state[12..].copy_from_slice(&(flow as u32).to_le_bytes());
        let mut first = Pcg64Mcg::from_seed(state);
        // Neighbouring seeds become unlike ones.
        first.fill_bytes(&mut state);
        Lot(Pcg64Mcg::from_seed(state))
    }

    /// From the exponential distribution of this mean: -ln(1 - u) of a uniform u.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        // A double holds 53 bits exactly.
        let uniform = (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        -mean * (1.0 - uniform).ln()
    }
}

/// A listening socket of the calling thread's namespace.
pub(super) fn listen(address: Ipv4Addr, config: &BackgroundConfig) -> io::Result<TcpListener> {
    let socket = tcp_socket()?;
    prepare_server(&socket, config)?;
    let address = SockaddrIn::from(std::net::SocketAddrV4::new(address, 0));
    bind(socket.as_raw_fd(), &address)?;
    nix_listen(&socket, Backlog::new(BACKLOG)?)?;
    Ok(TcpListener::from(socket))
}

/// Wakes whoever waits in `accept`.
pub(super) fn shut_down(listener: &TcpListener) {
    // SAFETY: an open socket. What it says does not matter: the socket is at its end.
    let _ = unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Serves every connection, each in a thread of its own, until the end.
pub(super) fn accept_all(listener: &TcpListener, config: &BackgroundConfig, shared: &Arc<Shared>) {
    let mut threads = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        if shared.ended() {
            break;
        }
        threads.retain(|thread: &thread::JoinHandle<()>| !thread.is_finished());
        let (config, here) = (config.clone(), Arc::clone(shared));
        let serve = move || {
            let registered = here.register(&stream);
            if registered.is_some() {
                // How it went is counted by the client.
                let _ = serve(stream, &config, &here);
            }
        };
        let thread = thread::Builder::new()
            .name("hs-bg-serve".to_owned())
            .stack_size(2 * CHUNK_BYTES)
            .spawn(serve);
        match thread {
            Ok(thread) => threads.push(thread),
            Err(_) => {
                shared.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// The server's part: eight bytes say how much, then it goes one way or the other.
fn serve(mut stream: TcpStream, config: &BackgroundConfig, shared: &Shared) -> io::Result<()> {
    let mut asked = [0; 8];
    stream.read_exact(&mut asked)?;
    match config.direction {
        Direction::Forward => send(&mut stream, u64::from_be_bytes(asked)),
        Direction::Reverse => receive(&mut stream, shared).map(drop),
    }
}

/// The client's part, again and again for a user, until the end.
pub(super) fn run_client(
    server: SocketAddr,
    config: &BackgroundConfig,
    shared: &Shared,
    mut lot: Lot,
) {
    sleep(Duration::from_nanos(config.start.as_ns()), shared);
    // Users do not begin all at once.
    if let Traffic::Web { mean_think, .. } = config.traffic {
        sleep(think(&mut lot, mean_think.as_ns()), shared);
    }
    while !shared.ended() {
        let wanted = match config.traffic {
            Traffic::Bulk { .. } => ENDLESS,
            Traffic::Web { mean_bytes, .. } => (lot.exponential(mean_bytes as f64) as u64).max(1),
        };
        let done = transfer(server, wanted, config, shared);
        if shared.ended() {
            return;
        }
        match (done, config.traffic) {
            (Ok(bytes), Traffic::Web { mean_think, .. }) if bytes == wanted => {
                shared.pages.fetch_add(1, Ordering::Relaxed);
                sleep(think(&mut lot, mean_think.as_ns()), shared);
            }
            _ => {
                shared.failures.fetch_add(1, Ordering::Relaxed);
                sleep(AGAIN_AFTER, shared);
            }
        }
    }
}

fn think(lot: &mut Lot, mean_ns: u64) -> Duration {
    Duration::from_nanos(lot.exponential(mean_ns as f64) as u64)
}

/// Whether a client's socket of the calling thread's namespace can be had as it is wanted.
pub(super) fn try_client(config: &BackgroundConfig) -> io::Result<()> {
    prepare_client(&tcp_socket()?, config)
}

/// One connection. Bytes that were carried.
fn transfer(
    server: SocketAddr,
    wanted: u64,
    config: &BackgroundConfig,
    shared: &Shared,
) -> io::Result<u64> {
    let socket = tcp_socket()?;
    prepare_client(&socket, config)?;
    let mut stream = TcpStream::from(socket);
    let Some(_registered) = shared.register(&stream) else {
        return Ok(0);
    };
    if let SocketAddr::V4(server) = server {
        connect(stream.as_raw_fd(), &SockaddrIn::from(server))?;
    }
    shared.connections.fetch_add(1, Ordering::Relaxed);
    stream.write_all(&wanted.to_be_bytes())?;
    match config.direction {
        Direction::Forward => receive(&mut stream, shared),
        Direction::Reverse => {
            send(&mut stream, wanted)?;
            stream.shutdown(std::net::Shutdown::Write)?;
            // The server closes when it has everything.
            let mut nothing = [0; 1];
            let _ = stream.read(&mut nothing)?;
            Ok(wanted)
        }
    }
}

fn send(stream: &mut TcpStream, bytes: u64) -> io::Result<()> {
    let chunk = [0; CHUNK_BYTES];
    let mut left = bytes;
    while left > 0 {
        let now = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        stream.write_all(&chunk[..now])?;
        if bytes != ENDLESS {
            left -= now as u64;
        }
    }
    Ok(())
}

fn receive(stream: &mut TcpStream, shared: &Shared) -> io::Result<u64> {
    let mut chunk = [0; CHUNK_BYTES];
    let mut received = 0;
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(received),
            Ok(more) => {
                received += more as u64;
                shared
                    .received_bytes
                    .fetch_add(more as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sleeps, but not beyond the end.
fn sleep(time: Duration, shared: &Shared) {
    let until = Instant::now() + time;
    while !shared.ended() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(LOOK_EVERY));
    }
}

fn tcp_socket() -> io::Result<OwnedFd> {
    let (family, flags) = (AddressFamily::Inet, SockFlag::SOCK_CLOEXEC);
    Ok(socket(family, SockType::Stream, flags, None)?)
}

fn prepare_server(socket: &OwnedFd, config: &BackgroundConfig) -> io::Result<()> {
    match config.direction {
        Direction::Forward => prepare_sender(socket, config),
        Direction::Reverse => prepare_receiver(socket, config),
    }
}

fn prepare_client(socket: &OwnedFd, config: &BackgroundConfig) -> io::Result<()> {
    match config.direction {
        Direction::Forward => prepare_receiver(socket, config),
        Direction::Reverse => prepare_sender(socket, config),
    }
}

fn prepare_sender(socket: &OwnedFd, config: &BackgroundConfig) -> io::Result<()> {
    let Some(name) = &config.congestion else {
        return Ok(());
    };
    setsockopt(socket, sockopt::TcpCongestion, &name.into()).map_err(|errno| {
        let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let known = known.unwrap_or_default();
        io::Error::other(format!(
            "the congestion control {name:?} is not to be had here ({errno}); there are: {}",
            known.trim()
        ))
    })
}

/// A listener hands it on to its connections.
fn prepare_receiver(socket: &OwnedFd, config: &BackgroundConfig) -> io::Result<()> {
    let Some(bytes) = config.window_bytes else {
        return Ok(());
    };
    // The clamp alone does not last: when the kernel learns how much memory a packet takes, it sets
    // it to what the buffer has room for (tcp_measure_rcv_mss, net/ipv4/tcp_input.c). So the buffer is
    // as large as the window's full packets are in memory, and fixed. The kernel doubles what it is
    // told. Forced: not bound by the machine's rmem_max.
    let room = (bytes as usize).saturating_mul(PACKET_MEMORY_BYTES) / FULL_PAYLOAD_BYTES;
    setsockopt(socket, sockopt::RcvBufForce, &(room / 2))?;
    let clamp = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // SAFETY: an open socket, and an int that outlives the call.
    let set = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            (&raw const clamp).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match set {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
