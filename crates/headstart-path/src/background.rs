//! Cross-traffic through the same queues: long transfers, and users who load pages.
//!
//! Plain TCP sockets in the namespaces, driven by threads. With several hosts it runs between the
//! pairs from the second on, in turn, else between the only pair.

mod flow;
mod spec;

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use headstart_link::Span;
use serde::Serialize;

use crate::emulation::Emulation;
use crate::error::PathError;
use crate::namespace::Namespace;
use crate::packets::Direction;

pub use spec::BackgroundSpecError;

/// The most flows or users of one source: each takes two threads.
pub const MOST_FLOWS: u16 = 1000;

/// One source of cross-traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundConfig {
    /// What it does.
    pub traffic: Traffic,
    /// Which way its data goes; the client connects in any case.
    pub direction: Direction,
    /// The most that a receiver offers, in bytes; without it the kernel's own choice.
    pub window_bytes: Option<u32>,
    /// The senders' congestion control; without it the machine's default.
    pub congestion: Option<String>,
    /// When it begins, after the start of the background.
    pub start: Span,
}

/// What a source does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// So many connections that send without end.
    Bulk {
        /// At least 1, at most [`MOST_FLOWS`].
        flows: u16,
    },
    /// So many users, each of whom loads a page over a new connection, waits, and loads the next.
    /// Both the size and the time are drawn from exponential distributions.
    Web {
        /// At least 1, at most [`MOST_FLOWS`].
        users: u16,
        /// The mean size of a page, in bytes.
        mean_bytes: u64,
        /// The mean time from the end of one page to the request for the next.
        mean_think: Span,
    },
}

impl Traffic {
    fn flows(self) -> u16 {
        match self {
            Traffic::Bulk { flows } => flows,
            Traffic::Web { users, .. } => users,
        }
    }
}

/// What one source has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackgroundReport {
    /// The source, as it is written.
    pub spec: String,
    /// Bytes that its receivers have got.
    pub received_bytes: u64,
    /// Connections that came about.
    pub connections: u64,
    /// Pages that were received whole.
    pub pages: u64,
    /// Connections that failed while the background ran.
    pub failures: u64,
}

/// What the threads of one source share.
#[derive(Debug, Default)]
struct Shared {
    received_bytes: AtomicU64,
    connections: AtomicU64,
    pages: AtomicU64,
    failures: AtomicU64,
    ended: AtomicBool,
    /// Every open socket, so that the end wakes whoever waits for it.
    open: Mutex<Sockets>,
}

#[derive(Debug, Default)]
struct Sockets {
    listeners: Vec<TcpListener>,
    /// By a number of its own, so that one that has ended can be taken out.
    streams: std::collections::HashMap<u64, TcpStream>,
    numbered: u64,
}

impl Shared {
    fn ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Lets the end of the background find a socket, as long as the guard lives. `None`: it has
    /// ended already.
    fn register(&self, stream: &TcpStream) -> Option<Registered<'_>> {
        let stream = stream.try_clone().ok()?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ended() {
            return None;
        }
        let number = open.numbered;
        open.numbered += 1;
        open.streams.insert(number, stream);
        Some(Registered {
            shared: self,
            number,
        })
    }

    fn end(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.ended.store(true, Ordering::SeqCst);
        for stream in open.streams.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for listener in &open.listeners {
            flow::shut_down(listener);
        }
    }

    fn report(&self, config: &BackgroundConfig) -> BackgroundReport {
        BackgroundReport {
            spec: config.to_string(),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            connections: self.connections.load(Ordering::Relaxed),
            pages: self.pages.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
        }
    }
}

/// A socket that the end of the background finds.
struct Registered<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let mut open = self
            .shared
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        open.streams.remove(&self.number);
    }
}

/// Running cross-traffic. It ends when this is dropped, or with its path.
#[derive(Debug)]
pub struct Background {
    sources: Vec<(BackgroundConfig, Arc<Shared>)>,
    threads: Vec<JoinHandle<Option<()>>>,
}

impl Background {
    /// Starts the sources. What is drawn by lot comes from `seed`, apart for each source and user.
    ///
    /// # Errors
    /// [`PathError::Background`]: a congestion control that is not there, too many flows, or no
    /// thread or socket was left.
    pub fn start(
        emulation: &Emulation,
        configs: &[BackgroundConfig],
        seed: u64,
    ) -> Result<Background, PathError> {
        let mut background = Background {
            sources: Vec::new(),
            threads: Vec::new(),
        };
        for (number, config) in (0u64..).zip(configs) {
            let shared = Arc::new(Shared::default());
            background
                .sources
                .push((config.clone(), Arc::clone(&shared)));
            let refused = |cause: String| PathError::Background {
                spec: config.to_string(),
                cause,
            };
            config.check().map_err(refused)?;
            background.start_source(emulation, config, &shared, (seed, number))?;
        }
        Ok(background)
    }

    fn start_source(
        &mut self,
        emulation: &Emulation,
        config: &BackgroundConfig,
        shared: &Arc<Shared>,
        (seed, source): (u64, u64),
    ) -> Result<(), PathError> {
        let failed = |cause: std::io::Error| PathError::Background {
            spec: config.to_string(),
            cause: cause.to_string(),
        };
        let (servers, clients) = (emulation.servers(), emulation.clients());
        // The first pair is the measured one, if there are others.
        let first = usize::from(servers.len() > 1);
        let pairs: Vec<(&Namespace, &Namespace)> =
            servers[first..].iter().zip(&clients[first..]).collect();
        let used = &pairs[..pairs.len().min(usize::from(config.traffic.flows()))];
        let mut addresses = Vec::new();
        for (server, client) in used {
            let listener = server.run(|| flow::listen(server.addr_v4(), config))?;
            let listener = listener.map_err(failed)?;
            addresses.push(listener.local_addr().map_err(failed)?);
            client.run(|| flow::try_client(config))?.map_err(failed)?;
            let kept = listener.try_clone().map_err(failed)?;
            let mut open = shared.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.listeners.push(kept);
            drop(open);
            let (config, shared) = (config.clone(), Arc::clone(shared));
            let accept = move || flow::accept_all(&listener, &config, &shared);
            self.threads
                .push(server.start_thread("hs-bg-server", accept)?);
        }
        for flow in 0..config.traffic.flows() {
            let (_, client) = used[usize::from(flow) % used.len()];
            let address = addresses[usize::from(flow) % used.len()];
            let lot = flow::Lot::new(seed, source, u64::from(flow));
            let (config, shared) = (config.clone(), Arc::clone(shared));
            let run = move || flow::run_client(address, &config, &shared, lot);
            self.threads.push(client.start_thread("hs-bg-client", run)?);
        }
        Ok(())
    }

    /// What each source has done so far.
    #[must_use]
    pub fn reports(&self) -> Vec<BackgroundReport> {
        let sources = self.sources.iter();
        sources
            .map(|(config, shared)| shared.report(config))
            .collect()
    }

    /// Ends all flows and waits until their threads have gone.
    pub fn stop(mut self) -> Vec<BackgroundReport> {
        self.end();
        self.reports()
    }

    fn end(&mut self) {
        for (_, shared) in &self.sources {
            shared.end();
        }
        for thread in self.threads.drain(..) {
            // One that panicked has been seen on standard error.
            let _ = thread.join();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.end();
    }
}
