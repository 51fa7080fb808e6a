//! The results document: what every verb that measures prints for `--json`.

use serde::{Deserialize, Serialize};

use crate::{CaseKind, Extremes, Ground, LinkCell, Summary, TrafficCell};

/// The version of the document. It grows when a field changes its meaning or goes; not when one is added.
pub const SCHEMA: u32 = 1;

/// One document for every verb that measures. See `docs/results-schema.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultsDocument {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The verb that measured: `compare`.
    pub verb: String,
    /// The scenario's name.
    pub scenario: String,
    /// The seed that was used.
    pub seed: u64,
    /// When the run started, as RFC 3339 with an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// Where it ran.
    pub machine: Machine,
    /// One cell for each start-up, ground, path, case and size.
    pub cells: Vec<Cell>,
    /// One for each start-up and `[[traffic]]` of a simulation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<TrafficCell>,
    /// One for each start-up and link beneath that traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkCell>,
    /// What the run itself took.
    pub run: Run,
    /// What a reader has to know about the run, in sentences.
    pub warnings: Vec<String>,
}

/// The machine that measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// CPUs that are on line.
    pub cpus: u32,
}

impl Machine {
    /// This machine.
    pub fn here() -> Machine {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Machine {
            kernel: kernel.trim().to_owned(),
            cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        }
    }
}

/// The transfers of one start-up in one case, summarised. Only valid transfers are counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The start-up's name.
    pub startup: String,
    /// Where it ran.
    pub on: Ground,
    /// The path's name, where the scenario names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What was asked of the connection.
    pub case: CaseKind,
    /// The size of the transfers in bytes.
    pub bytes: u64,
    /// How many valid transfers the summaries stand on.
    pub n: u32,
    /// How many transfers were left out because their measurement cannot be trusted.
    pub invalid: u32,
    /// Transfer times in ms. Absent when n is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fct_ms: Option<Summary>,
    /// The path's physical limit in ms (the median of the transfers').
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<f64>,
    /// The median transfer time over that of the kernel's own cubic in the same case of the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_to_native: Option<f64>,
    /// The median transfer time over the physical limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_to_limit: Option<f64>,
    /// Data packets sent again, a transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted_pkts: Option<Extremes>,
    /// Packets that the bottleneck's queue dropped, a transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router_drops: Option<Extremes>,
    /// How the start-up ended, most often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Whether all transfers of the cell could be trusted, and there was at least one.
    pub valid: bool,
}

/// How a start-up ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exit {
    /// The reason code that ended most of the transfers' start-ups.
    pub why: String,
    /// The congestion window in packets with which those ended (median, rounded to a whole packet).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwnd_pkts: Option<u32>,
}

/// What the run itself took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Duration of the simulation or measurement in s, without the start of the process.
    pub wall_s: f64,
    /// Packets that the bottleneck carried from server to client, the warming transfers included.
    pub packets: u64,
    /// Events that the emulator or simulator handled.
    pub events: u64,
}
