//! The router thread: reads packets from one namespace, passes them through a link, writes them to
//! the other when they are due.

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use hdrhistogram::Histogram;
use headstart_link::{Fate, Link, LinkConfig, Packet, QueueSpecError};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::prctl::set_timerslack;
use nix::sys::signal::SigSet;

use crate::clock::{monotonic_ns, time_spec};
use crate::error::PathError;
use crate::header;
use crate::namespace::MTU_BYTES;
use crate::packets::{Direction, PacketFate, PacketRecord};
use crate::report::{DirectionStats, time_histogram};
use crate::tun::Tun;

/// Room for a packet: more than the MTU, so that a device with a raised MTU is noticed.
const BUFFER_BYTES: usize = MTU_BYTES as usize + 548;

/// Packets read of one direction before due packets are looked for again.
const READ_BURST_PKTS: usize = 32;

/// From this rate on the thread is near a full core, where the kernel throttles real-time threads
/// for tens of milliseconds: it then runs as an ordinary one with precedence.
const REAL_TIME_BELOW_BITS_PER_S: u64 = 400_000_000;

/// Real-time priority (`SCHED_FIFO`), and the nice value where that is not used.
const REAL_TIME_PRIORITY: i32 = 50;
const NICE: i32 = -15;

/// The log that the router fills and its owner takes from.
pub(crate) type PacketLog = Arc<Mutex<Vec<PacketRecord>>>;

/// Everything that the router has counted.
#[derive(Debug, Clone)]
pub(crate) struct RouterStats {
    pub(crate) forward: DirectionStats,
    pub(crate) reverse: DirectionStats,
}

/// The running router thread.
#[derive(Debug)]
pub(crate) struct Router {
    requests: mpsc::Sender<Request>,
    wake: Arc<EventFd>,
    thread: JoinHandle<RouterStats>,
}

/// What the owner asks of the thread.
enum Request {
    Stats(mpsc::Sender<RouterStats>),
    Stop,
}

impl Router {
    /// Starts carrying packets between the two devices. The thread is ready when this returns;
    /// what it could not get becomes a warning.
    pub(crate) fn start(
        name: String,
        [server, client]: [Tun; 2],
        [forward, reverse]: [Carrier; 2],
        log: Option<PacketLog>,
    ) -> io::Result<(Router, Vec<String>)> {
        let wake = Arc::new(EventFd::from_flags(
            EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK,
        )?);
        let (requests, received) = mpsc::channel();
        let (ready_here, ready) = mpsc::channel();
        let woken = Arc::clone(&wake);
        let frames = Frames {
            free: Vec::new(),
            log,
        };
        let worker = Worker {
            server,
            client,
            forward,
            reverse,
            frames,
            wake: woken,
            received,
        };
        let thread = thread::Builder::new()
            .name(name)
            .spawn(|| worker.run(ready_here))?;
        let warnings = ready.recv().map_err(io::Error::other)?;
        let router = Router {
            requests,
            wake,
            thread,
        };
        Ok((router, warnings))
    }

    /// What was counted so far.
    pub(crate) fn stats(&self) -> Result<RouterStats, PathError> {
        let (answer, answered) = mpsc::channel();
        self.request(Request::Stats(answer))?;
        answered.recv().map_err(|_| PathError::RouterDied)
    }

    /// Ends the thread; the devices are gone afterwards.
    pub(crate) fn stop(self) -> Result<RouterStats, PathError> {
        // A thread that is gone already is found out by joining it.
        let _ = self.request(Request::Stop);
        self.thread.join().map_err(|_| PathError::RouterDied)
    }

    fn request(&self, request: Request) -> Result<(), PathError> {
        self.requests
            .send(request)
            .map_err(|_| PathError::RouterDied)?;
        // Its counter cannot be full: the thread empties it.
        self.wake.write(1).map_err(|_| PathError::RouterDied)?;
        Ok(())
    }
}

/// A packet on its way through the router. Cloned only by a link that duplicates packets.
#[derive(Clone)]
struct Frame {
    bytes: Box<[u8]>,
    len: usize,
    /// Its entry for the packet log, if one is kept.
    record: Option<Box<PacketRecord>>,
}

impl Frame {
    fn packet(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Packet for Frame {
    fn wire_bytes(&self) -> u32 {
        u32::try_from(self.len).unwrap_or(u32::MAX)
    }

    fn dscp(&self) -> u8 {
        header::dscp(self.packet())
    }

    fn flow_hash(&self) -> u64 {
        header::flow_hash(self.packet())
    }

    fn ecn_capable(&self) -> bool {
        header::ecn_capable(self.packet())
    }

    fn mark_congestion(&mut self) {
        header::mark_congestion(&mut self.bytes[..self.len]);
    }
}

/// Where frames come from and end: used again, and logged.
struct Frames {
    free: Vec<Box<[u8]>>,
    log: Option<PacketLog>,
}

impl Frames {
    fn take(&mut self) -> Box<[u8]> {
        self.free
            .pop()
            .unwrap_or_else(|| Box::new([0; BUFFER_BYTES]))
    }

    /// A frame has met its fate.
    fn finish(&mut self, frame: Frame, fate: PacketFate, left_ns: Option<u64>) {
        self.free.push(frame.bytes);
        if let (Some(log), Some(record)) = (&self.log, frame.record) {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.push(PacketRecord {
                fate,
                left_ns,
                ..*record
            });
        }
    }
}

/// One direction of the router: its link and what is measured of it.
pub(crate) struct Carrier {
    direction: Direction,
    config: LinkConfig,
    link: Link<Frame>,
    lateness_ns: Histogram<u64>,
    queue_delay_ns: Histogram<u64>,
    first_in_ns: Option<u64>,
    last_out_ns: Option<u64>,
    failed_writes: u64,
}

impl Carrier {
    pub(crate) fn new(direction: Direction, config: LinkConfig) -> Result<Carrier, QueueSpecError> {
        Ok(Carrier {
            direction,
            link: Link::starting_at(&config, monotonic_ns())?,
            config,
            lateness_ns: time_histogram(),
            queue_delay_ns: time_histogram(),
            first_in_ns: None,
            last_out_ns: None,
            failed_writes: 0,
        })
    }

    /// Takes in what the device has, up to a burst. Tells whether there was anything.
    fn receive(&mut self, from: &Tun, frames: &mut Frames) -> bool {
        for count in 0..READ_BURST_PKTS {
            let mut bytes = frames.take();
            let Some(len) = from.read(&mut bytes) else {
                frames.free.push(bytes);
                return count > 0;
            };
            let now_ns = monotonic_ns();
            self.first_in_ns.get_or_insert(now_ns);
            let record = frames.log.is_some().then(|| {
                Box::new(PacketRecord::on_arrival(
                    now_ns,
                    self.direction,
                    &bytes[..len],
                ))
            });
            if let Fate::Dropped(_) = self.link.arrive(now_ns, Frame { bytes, len, record }) {
                self.finish_dropped(frames);
            }
        }
        true
    }

    /// Hands over what is due. Tells whether there was anything.
    fn deliver(&mut self, to: &Tun, frames: &mut Frames) -> bool {
        let mut any = false;
        // The clock is read once for each packet: after it has left.
        let mut now_ns = monotonic_ns();
        while let Some(departed) = self.link.pop_due(now_ns) {
            any = true;
            if to.write(departed.packet.packet()).is_err() {
                self.failed_writes += 1;
            }
            now_ns = monotonic_ns();
            self.last_out_ns = Some(now_ns);
            self.lateness_ns
                .saturating_record(now_ns.saturating_sub(departed.due_ns));
            self.queue_delay_ns
                .saturating_record(departed.started_ns - departed.arrived_ns);
            let mut frame = departed.packet;
            if let Some(record) = &mut frame.record {
                record.queue_len_pkts = departed.queue_len_pkts;
            }
            frames.finish(frame, PacketFate::Delivered, Some(now_ns));
            if departed.is_copy {
                // Its buffer was made by the link and is one too many.
                frames.free.pop();
            }
        }
        self.finish_dropped(frames);
        any
    }

    fn finish_dropped(&mut self, frames: &mut Frames) {
        for dropped in self.link.take_dropped() {
            let mut frame = dropped.waiting.packet;
            if let Some(record) = &mut frame.record {
                record.queue_len_pkts = dropped.waiting.queue_len_pkts;
            }
            frames.finish(frame, PacketFate::Dropped(dropped.reason), None);
        }
    }

    /// Logs what is still in the link at the end.
    fn finish_in_flight(&mut self, frames: &mut Frames) {
        for waiting in self.link.drain() {
            let mut frame = waiting.packet;
            if let Some(record) = &mut frame.record {
                record.queue_len_pkts = waiting.queue_len_pkts;
            }
            frames.finish(frame, PacketFate::InFlight, None);
        }
        self.finish_dropped(frames);
    }

    fn stats(&self) -> DirectionStats {
        DirectionStats {
            config: self.config.clone(),
            counters: self.link.counters(),
            lateness_ns: self.lateness_ns.clone(),
            queue_delay_ns: self.queue_delay_ns.clone(),
            first_in_ns: self.first_in_ns,
            last_out_ns: self.last_out_ns,
            failed_writes: self.failed_writes,
        }
    }
}

/// All that the thread owns.
struct Worker {
    server: Tun,
    client: Tun,
    forward: Carrier,
    reverse: Carrier,
    frames: Frames,
    wake: Arc<EventFd>,
    received: mpsc::Receiver<Request>,
}

impl Worker {
    fn run(mut self, ready: mpsc::Sender<Vec<String>>) -> RouterStats {
        // The owner waits for this and for nothing else.
        let _ = ready.send(self.take_precedence());
        loop {
            match self.received.try_recv() {
                // An owner that no longer waits for the answer has no use for it.
                Ok(Request::Stats(answer)) => drop(answer.send(self.stats())),
                Ok(Request::Stop) | Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {}
            }
            let frames = &mut self.frames;
            let busy = self.forward.receive(&self.server, frames)
                | self.reverse.receive(&self.client, frames)
                | self.forward.deliver(&self.client, frames)
                | self.reverse.deliver(&self.server, frames);
            if !busy {
                self.wait();
            }
        }
        let stats = self.stats();
        self.forward.finish_in_flight(&mut self.frames);
        self.reverse.finish_in_flight(&mut self.frames);
        stats
    }

    fn stats(&self) -> RouterStats {
        RouterStats {
            forward: self.forward.stats(),
            reverse: self.reverse.stats(),
        }
    }

    /// Sleeps until a packet comes, one is due, or the owner asks for something.
    fn wait(&self) {
        let due_ns = [&self.forward, &self.reverse].map(|carrier| carrier.link.next_due_ns());
        let timeout = due_ns
            .into_iter()
            .flatten()
            .min()
            .map(|due_ns| time_spec(due_ns.saturating_sub(monotonic_ns())));
        let readable = PollFlags::POLLIN;
        let mut events = [
            PollFd::new(self.server.as_fd(), readable),
            PollFd::new(self.client.as_fd(), readable),
            PollFd::new(self.wake.as_fd(), readable),
        ];
        // It fails only when interrupted, and then the loop looks at everything again.
        if ppoll(&mut events, timeout, None).is_ok() && events[2].any() == Some(true) {
            let _ = self.wake.read();
        }
    }

    /// Makes the thread punctual: exact timers, precedence over other programs, no signals. What
    /// the kernel refuses becomes a warning.
    fn take_precedence(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |what: &str, done: Result<(), Errno>| {
            if let Err(errno) = done {
                warnings.push(format!(
                    "the router could not get {what} ({errno}): it may be late"
                ));
            }
        };
        warn("to be free of signals", SigSet::all().thread_block());
        warn("timers of 1 ns slack", set_timerslack(1));
        let [forward, reverse] = [&self.forward, &self.reverse].map(|c| c.config.rate.fastest());
        let fastest = forward.max(reverse);
        if fastest.bits_per_s() < REAL_TIME_BELOW_BITS_PER_S {
            warn(
                "real-time priority",
                set_real_time_priority(REAL_TIME_PRIORITY),
            );
        } else {
            warn("a nice value of -15", set_nice(NICE));
        }
        warnings
    }
}

/// Real-time scheduling for the calling thread.
fn set_real_time_priority(priority: i32) -> Result<(), Errno> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: 0 is the calling thread, and the parameters outlive the call.
    let done = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    Errno::result(done).map(drop)
}

/// A nice value for the calling thread; on Linux it is the thread's own.
fn set_nice(nice: i32) -> Result<(), Errno> {
    // SAFETY: it takes integers only; 0 is the calling thread.
    let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    Errno::result(done).map(drop)
}
