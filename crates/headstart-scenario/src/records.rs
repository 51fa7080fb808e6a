//! Single transfers, and what was seen of them: the rows of the Parquet files.

use serde::{Deserialize, Serialize};

use crate::CaseKind;

/// Where a measurement ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    /// The live kernel, over an emulated path.
    Kernel,
    /// The simulator.
    Sim,
    /// Debian's kernel in virtual time, over an emulated path.
    Virtual,
}

impl Ground {
    /// The name as it stands in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Sim => "sim",
            Self::Virtual => "virtual",
        }
    }
}

/// One measured transfer. `startup`, `on`, `path`, `case`, `bytes` and `repeat` name it; the packet and window rows carry the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferRecord {
    /// The start-up's name.
    pub startup: String,
    /// Where it ran.
    pub on: Ground,
    /// The path's name, where the scenario names it.
    pub path: Option<String>,
    /// What was asked of the connection.
    pub case: CaseKind,
    /// Which repeat of the cell it is, from 0.
    pub repeat: u32,
    /// Its position in the interleaved order of all transfers of the run, from 0.
    pub order: u32,
    /// Which of the paths that run side by side carried it, from 0.
    pub lane: u32,
    /// The size of the transfer in bytes.
    pub bytes: u64,
    /// The transfer time in ms, by the client's clock: from its start on the transfer to the last byte
    /// of the response.
    pub fct_ms: f64,
    /// The part of it that the handshake took, in ms; 0 on a connection that was open already.
    pub connect_ms: f64,
    /// The path's physical limit for this transfer in ms: a handshake's round trip where there is one, a round trip, and the
    /// size over the rate.
    pub limit_ms: f64,
    /// Data packets sent again.
    pub retransmitted_pkts: u64,
    /// Packets of this transfer that the path's queues dropped, in both directions.
    pub router_drops: u64,
    /// Why the start-up ended, as its reason code; none if it did not end, or if the start-up tells nothing (native ones).
    pub exit_why: Option<String>,
    /// The congestion window with which it ended, in packets.
    pub exit_cwnd_pkts: Option<u32>,
    /// Whether the measurement can be trusted.
    pub valid: bool,
    /// Why not, if not.
    pub invalid_reason: Option<String>,
}

/// Which way a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From server to client, with data.
    Data,
    /// From client to server, acknowledging.
    Ack,
}

impl Direction {
    /// The name as it stands in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Ack => "ack",
        }
    }
}

/// One packet of a measured transfer, as the emulated path saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketRow {
    /// The start-up's name.
    pub startup: String,
    /// Where it ran.
    pub on: Ground,
    /// The path's name, where the scenario names it.
    pub path: Option<String>,
    /// What was asked of the connection.
    pub case: CaseKind,
    /// The size of the transfer in bytes.
    pub bytes: u64,
    /// Which repeat of the cell, from 0.
    pub repeat: u32,
    /// When it was seen, in ms since the transfer's SYN on a fresh connection, else since its request, came to the path.
    pub t_ms: f64,
    /// Data or acknowledgement.
    pub direction: Direction,
    /// The first byte carried, as an offset in the transfer; in an acknowledgement, the same as `to_byte`.
    pub from_byte: u64,
    /// One past the last byte carried, as an offset in the transfer; in an acknowledgement, the offset acknowledged.
    pub to_byte: u64,
    /// Whether it was marked as the first to drop.
    pub low_priority: bool,
    /// Whether any of its bytes had been sent before.
    pub retransmission: bool,
    /// Whether the bottleneck's queue dropped it.
    pub dropped: bool,
}

/// The sender's state at one moment of a measured transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowRow {
    /// The start-up's name.
    pub startup: String,
    /// Where it ran.
    pub on: Ground,
    /// The path's name, where the scenario names it.
    pub path: Option<String>,
    /// What was asked of the connection.
    pub case: CaseKind,
    /// The size of the transfer in bytes.
    pub bytes: u64,
    /// Which repeat of the cell, from 0.
    pub repeat: u32,
    /// When, in ms since the transfer's SYN on a fresh connection, else since its request, came to the path.
    pub t_ms: f64,
    /// The congestion window in packets.
    pub cwnd_pkts: u32,
    /// The slow-start threshold in packets; none while it is unlimited.
    pub ssthresh_pkts: Option<u32>,
    /// The smoothed round trip time in ms.
    pub srtt_ms: f64,
    /// Packets in flight.
    pub inflight_pkts: u32,
}
