//! The columns of the Parquet files: name, type and where the value comes from, one line a column.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema};

use crate::{PacketRow, TransferRecord, WindowRow};

/// One column: its name, whether it may be null, and its values.
type Column = (&'static str, Null, ArrayRef);

/// Whether a column may hold nulls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Null {
    Never,
    Allowed,
}

/// `transfers.parquet`.
pub(crate) fn of_transfers(rows: &[TransferRecord]) -> Result<RecordBatch, ArrowError> {
    batch(vec![
        texts("startup", rows, |row| &row.startup),
        texts("on", rows, |row| row.on.name()),
        maybe_texts("path", rows, |row| row.path.as_deref()),
        texts("case", rows, |row| row.case.name()),
        counts("repeat", rows, |row| row.repeat),
        counts("order", rows, |row| row.order),
        counts("lane", rows, |row| row.lane),
        large_counts("bytes", rows, |row| row.bytes),
        numbers("fct_ms", rows, |row| row.fct_ms),
        numbers("connect_ms", rows, |row| row.connect_ms),
        numbers("limit_ms", rows, |row| row.limit_ms),
        large_counts("retransmitted_pkts", rows, |row| row.retransmitted_pkts),
        large_counts("router_drops", rows, |row| row.router_drops),
        maybe_texts("exit_why", rows, |row| row.exit_why.as_deref()),
        maybe_counts("exit_cwnd_pkts", rows, |row| row.exit_cwnd_pkts),
        flags("valid", rows, |row| row.valid),
        maybe_texts("invalid_reason", rows, |row| row.invalid_reason.as_deref()),
    ])
}

/// `packets.parquet`.
pub(crate) fn of_packets(rows: &[PacketRow]) -> Result<RecordBatch, ArrowError> {
    batch(vec![
        texts("startup", rows, |row| &row.startup),
        texts("on", rows, |row| row.on.name()),
        maybe_texts("path", rows, |row| row.path.as_deref()),
        texts("case", rows, |row| row.case.name()),
        large_counts("bytes", rows, |row| row.bytes),
        counts("repeat", rows, |row| row.repeat),
        numbers("t_ms", rows, |row| row.t_ms),
        texts("direction", rows, |row| row.direction.name()),
        large_counts("from_byte", rows, |row| row.from_byte),
        large_counts("to_byte", rows, |row| row.to_byte),
        flags("low_priority", rows, |row| row.low_priority),
        flags("retransmission", rows, |row| row.retransmission),
        flags("dropped", rows, |row| row.dropped),
    ])
}

/// `windows.parquet`.
pub(crate) fn of_windows(rows: &[WindowRow]) -> Result<RecordBatch, ArrowError> {
    batch(vec![
        texts("startup", rows, |row| &row.startup),
        texts("on", rows, |row| row.on.name()),
        maybe_texts("path", rows, |row| row.path.as_deref()),
        texts("case", rows, |row| row.case.name()),
        large_counts("bytes", rows, |row| row.bytes),
        counts("repeat", rows, |row| row.repeat),
        numbers("t_ms", rows, |row| row.t_ms),
        counts("cwnd_pkts", rows, |row| row.cwnd_pkts),
        maybe_counts("ssthresh_pkts", rows, |row| row.ssthresh_pkts),
        numbers("srtt_ms", rows, |row| row.srtt_ms),
        counts("inflight_pkts", rows, |row| row.inflight_pkts),
    ])
}

fn batch(columns: Vec<Column>) -> Result<RecordBatch, ArrowError> {
    let field = |(name, null, values): &Column| {
        Field::new(*name, values.data_type().clone(), *null == Null::Allowed)
    };
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let values = columns.into_iter().map(|(_, _, values)| values).collect();
    RecordBatch::try_new(Arc::new(schema), values)
}

fn texts<'a, R>(name: &'static str, rows: &'a [R], of: impl Fn(&'a R) -> &'a str) -> Column {
    (
        name,
        Null::Never,
        Arc::new(StringArray::from_iter_values(rows.iter().map(of))),
    )
}

fn maybe_texts<'a, R>(
    name: &'static str,
    rows: &'a [R],
    of: impl Fn(&'a R) -> Option<&'a str>,
) -> Column {
    (
        name,
        Null::Allowed,
        Arc::new(StringArray::from_iter(rows.iter().map(of))),
    )
}

fn counts<R>(name: &'static str, rows: &[R], of: impl Fn(&R) -> u32) -> Column {
    (
        name,
        Null::Never,
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(of))),
    )
}

fn maybe_counts<R>(name: &'static str, rows: &[R], of: impl Fn(&R) -> Option<u32>) -> Column {
    (
        name,
        Null::Allowed,
        Arc::new(UInt32Array::from_iter(rows.iter().map(of))),
    )
}

fn large_counts<R>(name: &'static str, rows: &[R], of: impl Fn(&R) -> u64) -> Column {
    (
        name,
        Null::Never,
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(of))),
    )
}

fn numbers<R>(name: &'static str, rows: &[R], of: impl Fn(&R) -> f64) -> Column {
    (
        name,
        Null::Never,
        Arc::new(Float64Array::from_iter_values(rows.iter().map(of))),
    )
}

fn flags<R>(name: &'static str, rows: &[R], of: impl Fn(&R) -> bool) -> Column {
    let values: BooleanArray = rows.iter().map(|row| Some(of(row))).collect();
    (name, Null::Never, Arc::new(values))
}
