//! An emulated path in real time: a TUN router between a server's and a client's network namespace.
//!
//! [`Emulation::start`] makes both namespaces and a router thread that carries every packet through
//! a `headstart_link::Link` a direction. The namespaces have no name and are held by file
//! descriptors alone, so that nothing of them outlives the process, however it ends. No default of
//! the machine is read or changed.

mod clock;
mod emulation;
mod error;
mod header;
mod interface;
mod namespace;
mod packets;
mod report;
mod router;
mod tun;

pub use clock::monotonic_ns;
pub use emulation::{Emulation, PathConfig};
pub use error::PathError;
pub use headstart_link::{DropReason, LinkConfig, QueueSpec, Rate, RateSpec, Span};
pub use namespace::Namespace;
pub use packets::{Direction, PacketFate, PacketRecord, TcpFlags, TcpRecord};
pub use report::{DirectionReport, PathReport, Quantiles};
