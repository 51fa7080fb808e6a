//! What the simulator tells of a scenario's traffic: rows of its Parquet files, cells of the document.

use serde::{Deserialize, Serialize};

use crate::{Extremes, Summary};

/// One transfer of simulated traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct SimTransferRow {
    /// The start-up that was compared.
    pub startup: String,
    /// The `[[traffic]]` that it is of.
    pub group: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Which user, among those of all groups; none in open-loop traffic.
    pub user: Option<u32>,
    /// The slot of its connection; one-shot connections use slots again.
    pub conn: u32,
    /// The how manieth transfer of its connection, from 0.
    pub turn: u32,
    /// When it was asked for, in ms since the run began.
    pub start_ms: f64,
    /// How long its connection took to open, in ms; none where it was open or opens at once.
    pub connect_ms: Option<f64>,
    /// How long it took, in ms; of one that is not finished, until the run ended.
    pub fct_ms: f64,
    /// Its size.
    pub bytes: u64,
    /// How much of it came.
    pub delivered_bytes: u64,
    /// Whether all of it came.
    pub finished: bool,
    /// Its time in the shortest round trips that its sender saw.
    pub round_trips: Option<f64>,
    /// Data packets sent again.
    pub retransmitted_pkts: u64,
    /// Its packets that links dropped, in both directions.
    pub dropped_pkts: u64,
    /// How far a linked list of what is out would have been walked for the SACK blocks of its
    /// connection, in packets.
    pub sack_walk_pkts: u64,
    /// How often its connection's retransmission timer has expired.
    pub timeouts: u32,
    /// The start-up's last word on it.
    pub exit_why: Option<String>,
    /// The congestion window then.
    pub exit_cwnd_pkts: Option<u32>,
    /// When slow start of its connection first ended, in ms since the run began.
    pub slow_start_end_ms: Option<f64>,
    /// The congestion window then.
    pub slow_start_end_cwnd_pkts: Option<u32>,
}

/// A simulated sender at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SimWindowRow {
    /// The start-up that was compared.
    pub startup: String,
    /// The `[[traffic]]` that it is of.
    pub group: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// The slot of the connection.
    pub conn: u32,
    /// When, in ms since the run began.
    pub t_ms: f64,
    /// Congestion window.
    pub cwnd_pkts: u32,
    /// Slow-start threshold; none while it is unlimited.
    pub ssthresh_pkts: Option<u32>,
    /// Smoothed round trip in ms.
    pub srtt_ms: f64,
    /// In flight.
    pub inflight_pkts: u32,
}

/// A simulated queue at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SimQueueRow {
    /// The start-up that was compared.
    pub startup: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// The link.
    pub link: String,
    /// When, in ms since the run began.
    pub t_ms: f64,
    /// Packets that wait.
    pub len_pkts: u32,
    /// Packets dropped so far.
    pub dropped_pkts: u64,
    /// Packets that have passed so far.
    pub out_pkts: u64,
    /// How long it was sending so far, in ms.
    pub busy_ms: f64,
}

/// The transfers of one `[[traffic]]` under one start-up, summarised over all repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficCell {
    /// The start-up that was compared.
    pub startup: String,
    /// The `[[traffic]]`.
    pub group: String,
    /// Repeats that were simulated.
    pub runs: u32,
    /// Transfers that were finished, in all of them.
    pub transfers: u64,
    /// Transfers that were not when a run ended.
    pub unfinished: u64,
    /// Times of the finished ones in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fct_ms: Option<Summary>,
    /// Data packets sent again, a finished transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted_pkts: Option<Extremes>,
    /// Bytes that came, of finished and unfinished transfers.
    pub delivered_bytes: u64,
    /// These over the simulated time, in bit/s.
    pub goodput_bit_per_s: f64,
}

/// A link under one start-up, over all repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkCell {
    /// The start-up that was compared.
    pub startup: String,
    /// The link's name.
    pub link: String,
    /// Packets that passed.
    pub out_pkts: u64,
    /// Packets dropped.
    pub dropped_pkts: u64,
    /// The longest that the queue ever was.
    pub longest_queue_pkts: u32,
    /// The share of the time in which it was sending, 0 to 1.
    pub utilisation: f64,
}
