//! The transmitter: how long a packet occupies the wire, without ever drifting from the rate.

mod chance;
pub(crate) mod docsis;
pub(crate) mod steady;
mod trace;
pub(crate) mod wifi;

use crate::{AccessSpec, RateSpec};
use docsis::Docsis;
use steady::Steady;
use trace::TraceReader;
use wifi::Wifi;

/// Sends one packet after the other.
///
/// When it begins with a packet is decided by what came before that time alone: never by when it is
/// asked.
#[derive(Debug)]
pub(crate) enum Transmitter {
    /// At a rate that lasts: fixed, or by a schedule.
    Steady(Steady),
    /// At the opportunities of a trace.
    Trace(TraceReader),
    /// Over a radio.
    Wifi(Box<Wifi>),
    /// When it is granted.
    Docsis(Box<Docsis>),
}

impl Transmitter {
    /// One whose schedule or trace begins at `origin_ns`.
    pub(crate) fn new(rate: &RateSpec, seed: u64, origin_ns: u64) -> Self {
        match rate {
            RateSpec::Fixed(rate) => Transmitter::Steady(Steady::fixed(*rate)),
            RateSpec::Schedule(schedule) => {
                Transmitter::Steady(Steady::scheduled(schedule, origin_ns))
            }
            RateSpec::Trace(trace) => Transmitter::Trace(TraceReader::new(trace, origin_ns)),
            RateSpec::Access(AccessSpec::Wifi(spec)) => {
                Transmitter::Wifi(Box::new(Wifi::new(spec, seed, origin_ns)))
            }
            RateSpec::Access(AccessSpec::Docsis(spec)) => {
                Transmitter::Docsis(Box::new(Docsis::new(spec, seed, origin_ns)))
            }
        }
    }

    /// The first whole nanosecond at which it can begin with the next packet that waits.
    #[inline]
    pub(crate) fn free_ns(&self) -> u64 {
        match self {
            Transmitter::Steady(steady) => steady.free_ns(),
            Transmitter::Trace(reader) => reader.free_ns(),
            Transmitter::Wifi(wifi) => wifi.free_ns(),
            Transmitter::Docsis(docsis) => docsis.free_ns(),
        }
    }

    /// A packet came and waits; whether it is the only one that does.
    #[inline]
    pub(crate) fn waits(&mut self, now_ns: u64, wire_bytes: u32, is_only_one: bool) {
        match self {
            // Without one to send it was idle until now.
            Transmitter::Steady(steady) if is_only_one => steady.idle_until(now_ns),
            Transmitter::Trace(reader) if is_only_one => reader.idle_until(now_ns),
            Transmitter::Wifi(wifi) if is_only_one => wifi.idle_until(now_ns),
            Transmitter::Docsis(docsis) => {
                if is_only_one {
                    docsis.idle_until(now_ns);
                }
                docsis.waits(now_ns, wire_bytes);
            }
            _ => {}
        }
    }

    /// Sends a packet as soon as it is free; `waiting_bytes` wait behind it. Returns when the last
    /// bit has left, in whole nanoseconds, rounded up.
    #[inline]
    pub(crate) fn send(&mut self, wire_bytes: u32, waiting_bytes: u64) -> u64 {
        match self {
            Transmitter::Steady(steady) => steady.send(wire_bytes),
            Transmitter::Trace(reader) => reader.send(wire_bytes),
            Transmitter::Wifi(wifi) => wifi.send(wire_bytes, waiting_bytes),
            Transmitter::Docsis(docsis) => docsis.send(wire_bytes, waiting_bytes),
        }
    }

    /// How long it has been sending in all, the packet in transmission included as a whole. For a
    /// trace: how long its mean rate would have taken; for a radio: with all attempts; for a modem:
    /// how long the subscriber's rate would have taken.
    pub(crate) fn busy_ns(&self) -> u64 {
        match self {
            Transmitter::Steady(steady) => steady.busy_ns(),
            Transmitter::Trace(reader) => reader.busy_ns(),
            Transmitter::Wifi(wifi) => wifi.busy_ns(),
            Transmitter::Docsis(docsis) => docsis.busy_ns(),
        }
    }
}
