//! The router thread: reads packets from the namespaces of one side, passes them through a link,
//! writes them to the other side when they are due.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::prctl::set_timerslack;
use nix::sys::signal::SigSet;

use crate::carrier::{Carrier, Frames, Port};
use crate::clock::{monotonic_ns, time_spec};
use crate::error::PathError;
use crate::hosts::Routes;
use crate::report::{DirectionStats, Glance};
use crate::tun::Tun;

/// Above this rate the thread is near a full core, where the kernel throttles real-time threads
/// for tens of milliseconds: it then runs as an ordinary one with precedence. At this rate it takes
/// about 60 % of a core (docs/path.md).
const REAL_TIME_UP_TO_BITS_PER_S: u64 = 400_000_000;

/// Real-time priority (`SCHED_FIFO`), and the nice value where that is not used.
const REAL_TIME_PRIORITY: i32 = 50;
const NICE: i32 = -15;

/// Up to this rate the thread wakes early and polls until the packet is due: a processor that has gone to sleep takes
/// 40 to 90 us to wake (docs/path.md). A faster path keeps it awake, and polling would take most of a core there.
const WAKES_EARLY_UP_TO_BITS_PER_S: u64 = 50_000_000;
const WAKES_EARLY_BY_NS: u64 = 60_000;

/// Everything that the router has counted.
#[derive(Debug, Clone)]
pub(crate) struct RouterStats {
    pub(crate) forward: DirectionStats,
    pub(crate) reverse: DirectionStats,
}

/// The running router thread.
#[derive(Debug)]
pub(crate) struct Router {
    asker: Asker,
    thread: JoinHandle<RouterStats>,
}

/// A way to ask the thread something.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    requests: mpsc::Sender<Request>,
    wake: Arc<EventFd>,
}

/// What the owner asks of the thread.
#[derive(Debug)]
enum Request {
    Stats(mpsc::Sender<RouterStats>),
    Glance(mpsc::Sender<(Glance, Glance)>),
    Stop,
}

impl Router {
    /// Starts carrying packets between the devices of both sides. The thread is ready when this returns;
    /// what it could not get becomes a warning.
    pub(crate) fn start(
        name: String,
        [servers, clients]: [Vec<Tun>; 2],
        [forward, reverse]: [Carrier; 2],
        routes: Routes,
        frames: Frames,
    ) -> io::Result<(Router, Vec<String>)> {
        let wake = Arc::new(EventFd::from_flags(
            EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK,
        )?);
        let (requests, received) = mpsc::channel();
        let (ready_here, ready) = mpsc::channel();
        let woken = Arc::clone(&wake);
        let ports = |tuns: Vec<Tun>| tuns.into_iter().map(Port::new).collect();
        let descriptors = servers.iter().chain(&clients).map(Tun::as_fd);
        let events = descriptors.chain([wake.as_fd()]).map(poll_entry).collect();
        let fastest = [&forward, &reverse]
            .map(|carrier| carrier.config().rate.fastest().bits_per_s())
            .into_iter()
            .max();
        let is_slow = fastest.is_some_and(|rate| rate <= WAKES_EARLY_UP_TO_BITS_PER_S);
        let worker = Worker {
            wakes_early_by_ns: if is_slow { WAKES_EARLY_BY_NS } else { 0 },
            events,
            servers: ports(servers),
            clients: ports(clients),
            forward,
            reverse,
            routes,
            frames,
            wake: woken,
            received,
        };
        let thread = thread::Builder::new()
            .name(name)
            .spawn(|| worker.run(ready_here))?;
        let warnings = ready.recv().map_err(io::Error::other)?;
        let asker = Asker { requests, wake };
        let router = Router { asker, thread };
        Ok((router, warnings))
    }

    /// What was counted so far.
    pub(crate) fn stats(&self) -> Result<RouterStats, PathError> {
        let (answer, answered) = mpsc::channel();
        self.asker.request(Request::Stats(answer))?;
        answered.recv().map_err(|_| PathError::RouterDied)
    }

    /// For others who want to ask.
    pub(crate) fn asker(&self) -> Asker {
        self.asker.clone()
    }

    /// Ends the thread; the devices are gone afterwards.
    pub(crate) fn stop(self) -> Result<RouterStats, PathError> {
        // A thread that is gone already is found out by joining it.
        let _ = self.asker.request(Request::Stop);
        self.thread.join().map_err(|_| PathError::RouterDied)
    }
}

impl Asker {
    /// A few numbers of the moment: forward, reverse.
    pub(crate) fn glance(&self) -> Result<(Glance, Glance), PathError> {
        let (answer, answered) = mpsc::channel();
        self.request(Request::Glance(answer))?;
        answered.recv().map_err(|_| PathError::RouterDied)
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

/// All that the thread owns.
struct Worker {
    servers: Vec<Port>,
    clients: Vec<Port>,
    forward: Carrier,
    reverse: Carrier,
    routes: Routes,
    frames: Frames,
    wake: Arc<EventFd>,
    received: mpsc::Receiver<Request>,
    /// What to poll: the servers' devices, the clients', the owner's wake-up.
    events: Vec<libc::pollfd>,
    /// How long before the next packet is due the thread stops sleeping, in ns.
    wakes_early_by_ns: u64,
}

impl Worker {
    fn run(mut self, ready: mpsc::Sender<Vec<String>>) -> RouterStats {
        // The owner waits for this and for nothing else.
        let _ = ready.send(self.take_precedence());
        loop {
            Worker::receive(
                &mut self.forward,
                &mut self.servers,
                self.routes,
                &mut self.frames,
            );
            Worker::receive(
                &mut self.reverse,
                &mut self.clients,
                self.routes,
                &mut self.frames,
            );
            self.forward.deliver(&self.clients, &mut self.frames);
            self.reverse.deliver(&self.servers, &mut self.frames);
            if self.wait() && !self.answer() {
                break;
            }
        }
        let stats = self.stats();
        self.forward.finish_in_flight(&mut self.frames);
        self.reverse.finish_in_flight(&mut self.frames);
        stats
    }

    fn receive(carrier: &mut Carrier, ports: &mut [Port], routes: Routes, frames: &mut Frames) {
        // Places are below MAX_HOSTS.
        for (place, port) in (0u8..).zip(ports).filter(|(_, port)| port.ready) {
            carrier.receive(place, port, routes, frames);
        }
    }

    /// Answers what the owner has asked; `false` if it is to end.
    fn answer(&mut self) -> bool {
        while let Ok(request) = self.received.try_recv() {
            // An owner that no longer waits for the answer has no use for it.
            match request {
                Request::Stats(answer) => drop(answer.send(self.stats())),
                Request::Glance(answer) => {
                    let _ = answer.send((self.forward.glance(), self.reverse.glance()));
                }
                Request::Stop => return false,
            }
        }
        true
    }

    fn stats(&self) -> RouterStats {
        RouterStats {
            forward: self.forward.stats(),
            reverse: self.reverse.stats(),
        }
    }

    /// Finds out which devices have something, and sleeps until one has, a packet is due, or the
    /// owner asks for something: then it tells so.
    fn wait(&mut self) -> bool {
        let now_ns = monotonic_ns();
        let log_due_ns = self.frames.capture.as_mut().and_then(|capture| {
            capture.hand_over_if_due(now_ns);
            capture.due_ns()
        });
        let due_ns = [
            self.forward.next_due_ns(),
            self.reverse.next_due_ns(),
            log_due_ns,
        ];
        let is_busy = self
            .servers
            .iter()
            .chain(&self.clients)
            .any(|port| port.ready);
        let sleep_ns = match is_busy {
            true => Some(0),
            false => due_ns
                .into_iter()
                .flatten()
                .min()
                .map(|due_ns| due_ns.saturating_sub(now_ns + self.wakes_early_by_ns)),
        };
        let timeout = sleep_ns.map(time_spec);
        let timeout = timeout
            .as_ref()
            .map_or(std::ptr::null(), |timeout| timeout.as_ref());
        // SAFETY: the array and the timeout outlive the call, which changes only `revents`; the
        // descriptors are of devices that `self` owns. No signal mask is given.
        let found = unsafe {
            libc::ppoll(
                self.events.as_mut_ptr(),
                self.events.len() as libc::nfds_t,
                timeout,
                std::ptr::null(),
            )
        };
        // It fails only when interrupted, and then the loop looks at everything again.
        if found < 0 {
            return true;
        }
        let ports = self.servers.iter_mut().chain(&mut self.clients);
        for (port, event) in ports.zip(&self.events) {
            port.is_ready(event.revents != 0);
        }
        let is_woken = self.events.last().is_some_and(|event| event.revents != 0);
        if is_woken {
            let _ = self.wake.read();
        }
        is_woken
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
        let [forward, reverse] = [&self.forward, &self.reverse].map(|c| c.config().rate.fastest());
        let fastest = forward.max(reverse);
        if fastest.bits_per_s() <= REAL_TIME_UP_TO_BITS_PER_S {
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

/// Asks whether there is something to read.
fn poll_entry(descriptor: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
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
