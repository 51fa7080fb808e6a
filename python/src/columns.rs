//! What the tables of a simulation hold: one line a column. Names and units are those of the Parquet
//! files that `headstart sim --out` writes (docs/results-schema.md); `variant` says which scenario of a sweep.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use headstart_core::{INFINITE_SSTHRESH, why_name};
use headstart_scenario::{PacketRow, TransferRecord, WindowRow, record_batch};
use headstart_sim::{PacketKind, QueueSample, TransferDone, WindowSample};

use crate::observe::{LinkTotal, PacketSeen};

/// Which run rows are of.
pub(crate) struct RunName<'a> {
    /// The how manieth scenario of the sweep.
    pub(crate) variant: u32,
    /// The start-up that was compared.
    pub(crate) startup: &'a str,
    /// Which repeat.
    pub(crate) repeat: u32,
    /// The names of its groups, and of its links.
    pub(crate) groups: &'a [String],
    pub(crate) links: &'a [String],
}

impl RunName<'_> {
    fn group(&self, number: u32) -> &str {
        self.groups.get(number as usize).map_or("", String::as_str)
    }

    fn link(&self, number: u32) -> &str {
        self.links.get(number as usize).map_or("", String::as_str)
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

pub(crate) fn transfers(
    run: &RunName<'_>,
    rows: &[TransferDone],
) -> Result<RecordBatch, ArrowError> {
    record_batch! { rows;
        "variant" false UInt32Array from_iter_values |_| run.variant;
        "startup" false StringArray from_iter_values |_| run.startup;
        "group" false StringArray from_iter_values |row| run.group(row.group);
        "repeat" false UInt32Array from_iter_values |_| run.repeat;
        "user" true UInt32Array from_iter |row| row.user;
        "conn" false UInt32Array from_iter_values |row| row.conn;
        "turn" false UInt32Array from_iter_values |row| row.turn;
        "start_ms" false Float64Array from_iter_values |row| ms(row.start_ns);
        "connect_ms" true Float64Array from_iter
            |row| row.connected_ns.map(|at_ns| ms(at_ns - row.start_ns));
        "fct_ms" false Float64Array from_iter_values |row| ms(row.duration_ns());
        "bytes" false UInt64Array from_iter_values |row| row.bytes;
        "delivered_bytes" false UInt64Array from_iter_values |row| row.delivered_bytes;
        "finished" false BooleanArray from_iter |row| Some(row.finished);
        "round_trips" true Float64Array from_iter |row| row.round_trips();
        "retransmitted_pkts" false UInt64Array from_iter_values |row| row.retransmitted_pkts;
        "dropped_pkts" false UInt64Array from_iter_values |row| row.dropped_pkts;
        "sack_walk_pkts" false UInt64Array from_iter_values |row| row.sack_walk_pkts;
        "timeouts" false UInt32Array from_iter_values |row| row.timeouts;
        "exit_why" true StringArray from_iter |row| row.exit.map(|exit| why_name(exit.why));
        "exit_cwnd_pkts" true UInt32Array from_iter |row| row.exit.map(|exit| exit.cwnd_pkts);
        "slow_start_end_ms" true Float64Array from_iter
            |row| row.slow_start_end.map(|end| ms(end.at_ns));
        "slow_start_end_cwnd_pkts" true UInt32Array from_iter
            |row| row.slow_start_end.map(|end| end.cwnd_pkts);
    }
}

pub(crate) fn flows(run: &RunName<'_>, rows: &[WindowSample]) -> Result<RecordBatch, ArrowError> {
    record_batch! { rows;
        "variant" false UInt32Array from_iter_values |_| run.variant;
        "startup" false StringArray from_iter_values |_| run.startup;
        "group" false StringArray from_iter_values |row| run.group(row.group);
        "repeat" false UInt32Array from_iter_values |_| run.repeat;
        "conn" false UInt32Array from_iter_values |row| row.conn;
        "t_ms" false Float64Array from_iter_values |row| ms(row.at_ns);
        "cwnd_pkts" false UInt32Array from_iter_values |row| row.cwnd_pkts;
        "ssthresh_pkts" true UInt32Array from_iter
            |row| (row.ssthresh_pkts < INFINITE_SSTHRESH).then_some(row.ssthresh_pkts);
        "srtt_ms" false Float64Array from_iter_values |row| f64::from(row.srtt_us) / 1e3;
        "inflight_pkts" false UInt32Array from_iter_values |row| row.inflight_pkts;
    }
}

pub(crate) fn queues(run: &RunName<'_>, rows: &[QueueSample]) -> Result<RecordBatch, ArrowError> {
    record_batch! { rows;
        "variant" false UInt32Array from_iter_values |_| run.variant;
        "startup" false StringArray from_iter_values |_| run.startup;
        "repeat" false UInt32Array from_iter_values |_| run.repeat;
        "link" false StringArray from_iter_values |row| run.link(row.link);
        "t_ms" false Float64Array from_iter_values |row| ms(row.at_ns);
        "len_pkts" false UInt32Array from_iter_values |row| row.len_pkts;
        "dropped_pkts" false UInt64Array from_iter_values |row| row.counters.dropped_pkts.total();
        "out_pkts" false UInt64Array from_iter_values |row| row.counters.out_pkts;
        "busy_ms" false Float64Array from_iter_values |row| ms(row.counters.busy_ns);
    }
}

fn kind_name(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Data => "data",
        PacketKind::Ack => "ack",
        PacketKind::Syn => "syn",
        PacketKind::SynAck => "syn-ack",
        PacketKind::Request => "request",
        PacketKind::HandshakeAck => "handshake-ack",
        PacketKind::RequestAck => "request-ack",
    }
}

pub(crate) fn packets(run: &RunName<'_>, rows: &[PacketSeen]) -> Result<RecordBatch, ArrowError> {
    record_batch! { rows;
        "variant" false UInt32Array from_iter_values |_| run.variant;
        "startup" false StringArray from_iter_values |_| run.startup;
        "group" false StringArray from_iter_values |row| run.group(row.group);
        "repeat" false UInt32Array from_iter_values |_| run.repeat;
        "conn" false UInt32Array from_iter_values |row| row.packet.connection().0;
        "life" false UInt32Array from_iter_values |row| u32::from(row.packet.connection().1);
        "t_ms" false Float64Array from_iter_values |row| ms(row.at_ns);
        "kind" false StringArray from_iter_values |row| kind_name(row.packet.kind);
        "fate" false StringArray from_iter_values |row| row.fate_name();
        "seq" false UInt64Array from_iter_values |row| row.packet.seq;
        "payload_bytes" false UInt32Array from_iter_values
            |row| u32::from(row.packet.payload_bytes);
        "low_priority" false BooleanArray from_iter |row| Some(row.packet.is_low_priority());
        "retransmission" false BooleanArray from_iter |row| Some(row.packet.is_retransmission());
    }
}

pub(crate) fn links(run: &RunName<'_>, rows: &[LinkTotal]) -> Result<RecordBatch, ArrowError> {
    record_batch! { rows;
        "variant" false UInt32Array from_iter_values |_| run.variant;
        "startup" false StringArray from_iter_values |_| run.startup;
        "repeat" false UInt32Array from_iter_values |_| run.repeat;
        "link" false StringArray from_iter_values |row| run.link(row.number);
        "in_pkts" false UInt64Array from_iter_values |row| row.counters.in_pkts;
        "out_pkts" false UInt64Array from_iter_values |row| row.counters.out_pkts;
        "out_bytes" false UInt64Array from_iter_values |row| row.counters.out_bytes;
        "dropped_pkts" false UInt64Array from_iter_values |row| row.counters.dropped_pkts.total();
        "longest_queue_pkts" false UInt32Array from_iter_values
            |row| row.counters.longest_queue_pkts;
        "busy_ms" false Float64Array from_iter_values |row| ms(row.counters.busy_ns);
        "run_ms" false Float64Array from_iter_values |row| ms(row.run_ns);
    }
}

pub(crate) fn case_transfers(
    variant: u32,
    rows: &[TransferRecord],
) -> Result<RecordBatch, ArrowError> {
    record_batch! { rows;
        "variant" false UInt32Array from_iter_values |_| variant;
        "startup" false StringArray from_iter_values |row| &row.startup;
        "case" false StringArray from_iter_values |row| row.case.name();
        "bytes" false UInt64Array from_iter_values |row| row.bytes;
        "repeat" false UInt32Array from_iter_values |row| row.repeat;
        "fct_ms" false Float64Array from_iter_values |row| row.fct_ms;
        "connect_ms" false Float64Array from_iter_values |row| row.connect_ms;
        "limit_ms" false Float64Array from_iter_values |row| row.limit_ms;
        "retransmitted_pkts" false UInt64Array from_iter_values |row| row.retransmitted_pkts;
        "router_drops" false UInt64Array from_iter_values |row| row.router_drops;
        "exit_why" true StringArray from_iter |row| row.exit_why.as_deref();
        "exit_cwnd_pkts" true UInt32Array from_iter |row| row.exit_cwnd_pkts;
        "valid" false BooleanArray from_iter |row| Some(row.valid);
        "invalid_reason" true StringArray from_iter |row| row.invalid_reason.as_deref();
    }
}

pub(crate) fn case_packets(variant: u32, rows: &[PacketRow]) -> Result<RecordBatch, ArrowError> {
    record_batch! { rows;
        "variant" false UInt32Array from_iter_values |_| variant;
        "startup" false StringArray from_iter_values |row| &row.startup;
        "case" false StringArray from_iter_values |row| row.case.name();
        "bytes" false UInt64Array from_iter_values |row| row.bytes;
        "repeat" false UInt32Array from_iter_values |row| row.repeat;
        "t_ms" false Float64Array from_iter_values |row| row.t_ms;
        "direction" false StringArray from_iter_values |row| row.direction.name();
        "from_byte" false UInt64Array from_iter_values |row| row.from_byte;
        "to_byte" false UInt64Array from_iter_values |row| row.to_byte;
        "low_priority" false BooleanArray from_iter |row| Some(row.low_priority);
        "retransmission" false BooleanArray from_iter |row| Some(row.retransmission);
        "dropped" false BooleanArray from_iter |row| Some(row.dropped);
    }
}

pub(crate) fn case_windows(variant: u32, rows: &[WindowRow]) -> Result<RecordBatch, ArrowError> {
    record_batch! { rows;
        "variant" false UInt32Array from_iter_values |_| variant;
        "startup" false StringArray from_iter_values |row| &row.startup;
        "case" false StringArray from_iter_values |row| row.case.name();
        "bytes" false UInt64Array from_iter_values |row| row.bytes;
        "repeat" false UInt32Array from_iter_values |row| row.repeat;
        "t_ms" false Float64Array from_iter_values |row| row.t_ms;
        "cwnd_pkts" false UInt32Array from_iter_values |row| row.cwnd_pkts;
        "ssthresh_pkts" true UInt32Array from_iter |row| row.ssthresh_pkts;
        "srtt_ms" false Float64Array from_iter_values |row| row.srtt_ms;
        "inflight_pkts" false UInt32Array from_iter_values |row| row.inflight_pkts;
    }
}
