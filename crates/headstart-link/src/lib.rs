//! The bottleneck link: a queue, a transmitter of a given rate, a delay line.
//!
//! No I/O and no clock: time is an argument, in nanoseconds. The path emulator drives a [`Link`]
//! in real time, the simulator in virtual time; the same arrivals meet the same fates in both.

#![forbid(unsafe_code)]

mod link;
mod queue;
mod spec;
mod transmitter;
mod units;

pub use link::{Counters, Departed, DropCounts, Fate, Link, LinkConfig};
pub use queue::{DropReason, DropTail, Dropped, Packet, Queue, Waiting};
pub use spec::{QueueSpec, QueueSpecError};
pub use units::{Rate, Span, UnitError};
