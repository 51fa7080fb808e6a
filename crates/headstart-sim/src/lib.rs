//! A packet-level TCP simulator in virtual time, on the links of `headstart-link` and the very start-up
//! files of `core/`.
//!
//! [`SimSpec`] says what is simulated, [`Simulation`] runs it, an [`Observer`] is told of it. No clock,
//! no I/O, no global state: the same specification and seed give the same run.

#![forbid(unsafe_code)]

mod avoidance;
mod connection;
mod memory;
mod network;
mod observe;
mod out_of_order;
mod packet;
mod receive_window;
mod receiver;
mod rtt;
mod runner;
mod scoreboard;
mod sender;
mod simulation;
mod spec;
pub mod study;
mod timetable;
mod traffic;

pub use memory::PathMemory;
pub use network::Route;
pub use observe::{
    Observer, Outcome, PacketFate, QueueSample, SlowStartEnd, TransferDone, WindowSample,
};
pub use packet::{PacketKind, SimPacket};
pub use runner::Runner;
pub use sender::Exit;
pub use simulation::Simulation;
pub use spec::{Group, SimError, SimSpec};

pub use headstart_core::MemoryParams;
pub use headstart_scenario::{
    AckSpec, Arrivals, AvoidanceSpec, ENDLESS, GrowthSpec, HandshakeSpec, IdleSpec, LINUX_IW_PKTS,
    PacingSpec, ReceiverSpec, RecoverySpec, RtoSpec, SackSpec, Sizes, Traffic, Transport, Users,
    WindowSpec,
};
