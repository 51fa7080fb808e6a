//! The transmitter: how long a packet occupies the wire, without ever drifting from the rate.

mod steady;
mod trace;

use crate::RateSpec;
use steady::Steady;
use trace::TraceReader;

/// Sends one packet after the other.
#[derive(Debug)]
pub(crate) enum Transmitter {
    /// At a rate that lasts: fixed, or by a schedule.
    Steady(Steady),
    /// At the opportunities of a trace.
    Trace(TraceReader),
}

impl Transmitter {
    /// One whose schedule or trace begins at `origin_ns`.
    pub(crate) fn new(rate: &RateSpec, origin_ns: u64) -> Self {
        match rate {
            RateSpec::Fixed(rate) => Transmitter::Steady(Steady::fixed(*rate)),
            RateSpec::Schedule(schedule) => {
                Transmitter::Steady(Steady::scheduled(schedule, origin_ns))
            }
            RateSpec::Trace(trace) => Transmitter::Trace(TraceReader::new(trace, origin_ns)),
        }
    }

    /// The first whole nanosecond at which it can begin with another packet.
    pub(crate) fn free_ns(&self) -> u64 {
        match self {
            Transmitter::Steady(steady) => steady.free_ns(),
            Transmitter::Trace(reader) => reader.free_ns(),
        }
    }

    /// It had nothing to do until `now_ns`.
    pub(crate) fn idle_until(&mut self, now_ns: u64) {
        match self {
            Transmitter::Steady(steady) => steady.idle_until(now_ns),
            Transmitter::Trace(reader) => reader.idle_until(now_ns),
        }
    }

    /// Sends a packet as soon as it is free. Returns when the last bit has left, in whole
    /// nanoseconds, rounded up.
    pub(crate) fn send(&mut self, wire_bytes: u32) -> u64 {
        match self {
            Transmitter::Steady(steady) => steady.send(wire_bytes),
            Transmitter::Trace(reader) => reader.send(wire_bytes),
        }
    }

    /// How long it has been sending in all, the packet in transmission included as a whole. For a
    /// trace: how long its mean rate would have taken.
    pub(crate) fn busy_ns(&self) -> u64 {
        match self {
            Transmitter::Steady(steady) => steady.busy_ns(),
            Transmitter::Trace(reader) => reader.busy_ns(),
        }
    }
}
