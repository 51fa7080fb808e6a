//! What the start-ups recorded: events with their verdicts.

use std::net::IpAddr;

use headstart_core::{Event, Path, Startup, Verdict};
use libbpf_rs::{MapCore, RingBufferBuilder};

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
pub(crate) fn drain<T>(
    map: &dyn MapCore,
    read: impl Fn(&[u8]) -> Option<T>,
) -> Result<Vec<T>, KernelError> {
    let mut taken = Vec::new();
    {
        let mut builder = RingBufferBuilder::new();
        let failed = |error| KernelError::operation("reading a ring buffer", error);
        builder
            .add(map, |bytes: &[u8]| {
                taken.extend(read(bytes));
                0
            })
            .map_err(failed)?;
        builder.build().map_err(failed)?.consume().map_err(failed)?;
    }
    Ok(taken)
}
