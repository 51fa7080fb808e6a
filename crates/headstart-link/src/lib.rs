//! The bottleneck link: a queue, a transmitter of a given rate, a delay line.
//!
//! No I/O and no clock: time is an argument, in nanoseconds. The path emulator drives a [`Link`]
//! in real time, the simulator in virtual time; the same arrivals meet the same fates in both.

#![forbid(unsafe_code)]

mod access;
mod dice;
mod distribution;
mod express;
mod line;
mod link;
mod options;
mod packet;
mod preset;
mod queue;
mod rate;
mod share;
mod size;
mod spec;
#[cfg(test)]
mod testing;
mod text;
mod transmitter;
mod units;
mod wire;

pub use access::{AccessSpec, DocsisSpec, WifiSpec};
pub use distribution::{
    Distribution, DistributionError, Draws, Empirical, Law, Number, Quantity, read_no_file,
};
pub use link::{Counters, Departed, DropCounts, Fate, Link, LinkConfig};
pub use packet::{FULL_PACKET_BYTES, Packet};
pub use preset::Preset;
pub use queue::{AnyQueue, DropReason, Dropped, Queue, Waiting};
pub use rate::{RateSchedule, RateSpec, RateSpecError, Trace};
pub use share::{Share, ShareError};
pub use size::{QueueSize, QueueSizeError};
pub use spec::{
    CodelSpec, DEFAULT_LOW_PRIORITY_DSCP, FqCodelSpec, QueueContext, QueueSpec, QueueSpecError,
    RedSpec,
};
pub use units::{Rate, Span, UnitError};
pub use wire::{GilbertElliott, ImpairmentError, JitterSpec, LossSpec, ReorderSpec};
