//! The columns of the files: name, type and where the value comes from, one line a column. `docs/records.md` says
//! what they mean.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};

use crate::row::Row;

/// The longest of IPv4: `255.255.255.0/24`.
const PREFIX_BYTES: usize = 16;

type Column = (&'static str, bool, ArrayRef);

/// The rows as a table.
pub fn batch_of(rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let columns = columns(rows);
    let schema = schema_of(&columns);
    RecordBatch::try_new(schema, columns.into_iter().map(|column| column.2).collect())
}

/// The columns of a table without rows.
pub fn schema() -> SchemaRef {
    schema_of(&columns(&[]))
}

fn schema_of(columns: &[Column]) -> SchemaRef {
    let field =
        |(name, null, values): &Column| Field::new(*name, values.data_type().clone(), *null);
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let version = HashMap::from([("headstart.records".to_owned(), "1".to_owned())]);
    Arc::new(Schema::new_with_metadata(fields, version))
}

fn columns(rows: &[Row]) -> Vec<Column> {
    let start = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.start_us));
    vec![
        ("start", false, Arc::new(start.with_timezone("UTC"))),
        u64s("latency_us", rows, |row| row.transfer.latency_us()),
        u64s("bytes", rows, |row| row.transfer.bytes),
        flags("complete", rows, |row| row.transfer.complete),
        u64s("retransmitted_bytes", rows, |row| {
            row.transfer.retransmitted_bytes
        }),
        u32s("retransmitted_pkts", rows, |row| {
            row.transfer.retransmitted_pkts
        }),
        u32s("lost_pkts", rows, |row| row.transfer.lost_pkts),
        u32s("rto_count", rows, |row| row.transfer.rto_count),
        maybe_u32s("rtt_min_us", rows, |row| row.transfer.min_rtt_us),
        maybe_u32s("rtt_start_us", rows, |row| row.transfer.start_rtt_us),
        maybe_u32s("rtt_end_us", rows, |row| row.transfer.end_rtt_us),
        u32s("initial_cwnd_pkts", rows, |row| {
            row.transfer.initial_cwnd_pkts
        }),
        maybe_u32s("exit_cwnd_pkts", rows, |row| row.transfer.exit_cwnd_pkts),
        u32s("end_cwnd_pkts", rows, |row| row.transfer.end_cwnd_pkts),
        maybe_texts("exit_why", rows, Row::why),
        maybe_u32s("exit_why_cwnd_pkts", rows, |row| {
            row.transfer.why.map(|(_, cwnd)| cwnd)
        }),
        maybe_u64s("delivery_rate_bytes_per_s", rows, |row| {
            row.transfer.rate_bytes_per_s
        }),
        flags("delivery_rate_app_limited", rows, |row| {
            row.transfer.rate_app_limited
        }),
        flags("app_limited", rows, |row| row.transfer.app_limited),
        flags("receiver_limited", rows, |row| row.transfer.peer_limited),
        u32s("receiver_initial_window_bytes", rows, |row| {
            row.transfer.peer_initial_window_bytes
        }),
        u32s("mss_bytes", rows, |row| row.transfer.mss_bytes),
        prefixes("prefix", rows),
        u16s("local_port", rows, |row| row.transfer.local_port),
        flags("passive", rows, |row| row.transfer.passive),
        u32s("transfer_index", rows, |row| row.transfer.index),
        maybe_u64s("idle_us", rows, |row| {
            row.transfer.idle_ns.map(|ns| ns / 1000)
        }),
        texts("rule", rows, |row| &row.rule),
        texts("arm", rows, |row| &row.arm),
        texts("control", rows, |row| &row.transfer.control),
        flags("path_hit", rows, |row| row.transfer.path_hit),
        flags("burn_in", rows, |row| row.burn_in),
    ]
}

fn texts<'a>(name: &'static str, rows: &'a [Row], of: impl Fn(&'a Row) -> &'a str) -> Column {
    let values = StringArray::from_iter_values(rows.iter().map(of));
    (name, false, Arc::new(values))
}

fn prefixes(name: &'static str, rows: &[Row]) -> Column {
    let mut values = StringBuilder::with_capacity(rows.len(), rows.len() * PREFIX_BYTES);
    for row in rows {
        // It writes into memory, and cannot fail.
        let _ = write!(values, "{}", row.prefix);
        values.append_value("");
    }
    (name, false, Arc::new(values.finish()))
}

fn maybe_texts(
    name: &'static str,
    rows: &[Row],
    of: impl Fn(&Row) -> Option<&'static str>,
) -> Column {
    (
        name,
        true,
        Arc::new(StringArray::from_iter(rows.iter().map(of))),
    )
}

fn u16s(name: &'static str, rows: &[Row], of: impl Fn(&Row) -> u16) -> Column {
    let values = UInt16Array::from_iter_values(rows.iter().map(of));
    (name, false, Arc::new(values))
}

fn u32s(name: &'static str, rows: &[Row], of: impl Fn(&Row) -> u32) -> Column {
    let values = UInt32Array::from_iter_values(rows.iter().map(of));
    (name, false, Arc::new(values))
}

fn maybe_u32s(name: &'static str, rows: &[Row], of: impl Fn(&Row) -> Option<u32>) -> Column {
    (
        name,
        true,
        Arc::new(UInt32Array::from_iter(rows.iter().map(of))),
    )
}

fn u64s(name: &'static str, rows: &[Row], of: impl Fn(&Row) -> u64) -> Column {
    let values = UInt64Array::from_iter_values(rows.iter().map(of));
    (name, false, Arc::new(values))
}

fn maybe_u64s(name: &'static str, rows: &[Row], of: impl Fn(&Row) -> Option<u64>) -> Column {
    (
        name,
        true,
        Arc::new(UInt64Array::from_iter(rows.iter().map(of))),
    )
}

fn flags(name: &'static str, rows: &[Row], of: impl Fn(&Row) -> bool) -> Column {
    let values: BooleanArray = rows.iter().map(|row| Some(of(row))).collect();
    (name, false, Arc::new(values))
}
