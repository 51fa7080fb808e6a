//! What the start-ups recorded: events with their verdicts.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

use headstart_core::{Event, Path, Startup, Verdict};
use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};

use crate::contract::{self, RawRecord};
use crate::error::KernelError;

/// One event of one connection, and what its start-up said to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, on `CLOCK_MONOTONIC`, in ns.
    pub at_ns: u64,
    /// Distinguishes connections while they live.
    pub socket: u64,
    /// The start-up.
    pub startup: Startup,
    /// Our port.
    pub local_port: u16,
    /// The peer's port.
    pub remote_port: u16,
    /// The peer.
    pub remote_addr: IpAddr,
    /// What was remembered of the path: at `Open` and `Idle`.
    pub path: Option<Path>,
    /// What happened.
    pub event: Event,
    /// The answer.
    pub verdict: Verdict,
}

pub(crate) fn take(map: &dyn MapCore) -> Result<Vec<Record>, KernelError> {
    drain(map, |bytes| {
        let raw: RawRecord = contract::from_bytes(bytes)?;
        Some(Record {
            at_ns: raw.at_ns,
            socket: raw.socket,
            startup: Startup::all().find(|startup| startup.number() == raw.alg)?,
            local_port: raw.local_port,
            remote_port: raw.remote_port,
            remote_addr: contract::address(raw.family, raw.remote_addr),
            path: (raw.path_known != 0).then_some(raw.path),
            event: raw.event,
            verdict: raw.verdict,
        })
    })
}

/// Reads a ring buffer until it is empty; what `read` cannot make sense of is left out.
pub(crate) fn drain<'read, T: 'read>(
    map: &dyn MapCore,
    read: impl Fn(&[u8]) -> Option<T> + 'read,
) -> Result<Vec<T>, KernelError> {
    RingReader::new(map, read)?.take()
}

/// Reads a ring buffer again and again. It stays mapped: to map 16 MiB for each look costs more than the look.
pub(crate) struct RingReader<'read, T> {
    ring: RingBuffer<'read>,
    taken: Rc<RefCell<Vec<T>>>,
}

impl<'read, T: 'read> RingReader<'read, T> {
    /// What `read` cannot make sense of is left out.
    pub(crate) fn new(
        map: &dyn MapCore,
        read: impl Fn(&[u8]) -> Option<T> + 'read,
    ) -> Result<RingReader<'read, T>, KernelError> {
        let taken = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&taken);
        let mut builder = RingBufferBuilder::new();
        builder
            .add(map, move |bytes: &[u8]| {
                into.borrow_mut().extend(read(bytes));
                0
            })
            .map_err(failed)?;
        Ok(RingReader {
            ring: builder.build().map_err(failed)?,
            taken,
        })
    }

    /// What has come since the last call.
    pub(crate) fn take(&self) -> Result<Vec<T>, KernelError> {
        let mut taken = Vec::new();
        self.take_into(&mut taken)?;
        Ok(taken)
    }

    /// Puts what has come since the last call into `taken`, in the place of what is there.
    pub(crate) fn take_into(&self, taken: &mut Vec<T>) -> Result<(), KernelError> {
        taken.clear();
        std::mem::swap(&mut *self.taken.borrow_mut(), taken);
        let consumed = self.ring.consume();
        std::mem::swap(&mut *self.taken.borrow_mut(), taken);
        consumed.map(drop).map_err(failed)
    }
}

fn failed(error: libbpf_rs::Error) -> KernelError {
    KernelError::operation("reading a ring buffer", error)
}
