//! An emulated path in real time: a TUN router between a server's and a client's network namespace.
//!
//! [`Emulation::start`] makes both namespaces and a router thread that carries every packet through
//! a `headstart_link::Link` a direction. The namespaces have no name and are held by file
//! descriptors alone, so that nothing of them outlives the process, however it ends. No default of
//! the machine is read or changed.

pub mod background;
mod capture;
mod carrier;
mod clock;
mod emulation;
mod error;
mod feasible;
mod header;
mod hosts;
mod interface;
mod leftovers;
mod logs;
mod names;
mod namespace;
mod packets;
mod report;
mod router;
mod tun;

pub use clock::monotonic_ns;
pub use emulation::{Emulation, GlanceSource, PathConfig};
pub use error::PathError;
pub use feasible::{LEAST_RTT, LONGEST_PACKET};
pub use headstart_link::{DropReason, LinkConfig, QueueSpec, Rate, RateSpec, Span};
pub use hosts::{HostId, MAX_HOSTS, Side};
pub use leftovers::{LeftProcess, left_processes};
pub use logs::{LogFiles, LogReport, WHOLE_PACKET_BYTES};
pub use namespace::Namespace;
pub use packets::{Direction, PacketFate, PacketRecord, TcpFlags, TcpRecord};
pub use report::{DirectionReport, Glance, PathReport, Quantiles};
