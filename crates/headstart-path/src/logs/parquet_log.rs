//! One row a packet, in the order in which fates were decided.

use std::fs::File;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::Epoch;
use crate::capture::Batch;
use crate::packets::{PacketFate, PacketRecord};

/// Rows that are held in memory before they are written.
const ROW_GROUP_PKTS: usize = 65_536;

pub(crate) struct ParquetLog {
    writer: ArrowWriter<File>,
    rows: Vec<Row>,
}

/// A packet and where it came from and went to.
struct Row {
    packet: PacketRecord,
    from: String,
    to: String,
}

impl ParquetLog {
    pub(crate) fn new(file: File, epoch: Epoch, lane: u8) -> Result<ParquetLog, ParquetError> {
        let facts = [
            ("headstart.lane", u64::from(lane)),
            ("headstart.monotonic_ns", epoch.monotonic_ns),
            ("headstart.realtime_ns", epoch.realtime_ns),
        ];
        let facts = facts.map(|(key, value)| KeyValue::new(key.to_owned(), value.to_string()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(facts.to_vec()))
            .build();
        let schema = columns(&[])?.schema();
        let writer = ArrowWriter::try_new(file, schema, Some(properties))?;
        Ok(ParquetLog {
            writer,
            rows: Vec::new(),
        })
    }

    pub(crate) fn add(&mut self, batch: &Batch) -> Result<(), ParquetError> {
        for (captured, bytes) in batch.iter() {
            self.rows.push(Row {
                packet: PacketRecord::new(&captured.passage, bytes, captured.wire_bytes),
                from: captured.passage.from().to_string(),
                to: captured.passage.to().to_string(),
            });
        }
        match self.rows.len() >= ROW_GROUP_PKTS {
            true => self.write_group(),
            false => Ok(()),
        }
    }

    pub(crate) fn close(mut self) -> Result<(), ParquetError> {
        self.write_group()?;
        self.writer.close().map(drop)
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        self.writer.write(&columns(&self.rows)?)?;
        self.rows.clear();
        self.writer.flush()
    }
}

type Column = (&'static str, bool, ArrayRef);

/// A column of this type; `None` is null.
fn column<'a, A, T>(
    name: &'static str,
    rows: &'a [Row],
    of: impl Fn(&'a Row) -> Option<T>,
) -> Column
where
    A: Array + FromIterator<Option<T>> + 'static,
{
    let values: A = rows.iter().map(of).collect();
    (name, true, Arc::new(values))
}

/// A column without nulls.
fn full<'a, A, T>(name: &'static str, rows: &'a [Row], of: impl Fn(&'a Row) -> T) -> Column
where
    A: Array + FromIterator<Option<T>> + 'static,
{
    let (name, _, values) = column::<A, T>(name, rows, |row| Some(of(row)));
    (name, false, values)
}

/// The columns: name, type and where the value comes from, one line a column (docs/path.md).
fn columns(rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let columns: Vec<Column> = vec![
        full::<UInt64Array, _>("number", rows, |row| row.packet.number),
        full::<StringArray, _>("direction", rows, |row| row.packet.direction.name()),
        full::<StringArray, _>("from_host", rows, |row| row.from.as_str()),
        full::<StringArray, _>("to_host", rows, |row| row.to.as_str()),
        full::<UInt64Array, _>("at_ns", rows, |row| row.packet.at_ns),
        column::<UInt64Array, _>("started_ns", rows, |row| row.packet.started_ns),
        column::<UInt64Array, _>("due_ns", rows, |row| row.packet.due_ns),
        column::<UInt64Array, _>("left_ns", rows, |row| row.packet.left_ns),
        column::<UInt64Array, _>("dropped_ns", rows, |row| row.packet.dropped_ns),
        full::<StringArray, _>("fate", rows, |row| fate(row.packet.fate)),
        column::<StringArray, _>("drop_reason", rows, |row| drop_reason(row.packet.fate)),
        full::<UInt32Array, _>("queue_len_pkts", rows, |row| row.packet.queue_len_pkts),
        full::<UInt32Array, _>("wire_bytes", rows, |row| row.packet.wire_bytes),
        full::<UInt8Array, _>("ip_version", rows, |row| row.packet.ip_version),
        column::<StringArray, _>("src_addr", rows, |row| text(row.packet.src_addr)),
        column::<StringArray, _>("dst_addr", rows, |row| text(row.packet.dst_addr)),
        full::<UInt8Array, _>("protocol", rows, |row| row.packet.protocol),
        full::<UInt16Array, _>("src_port", rows, |row| row.packet.src_port),
        full::<UInt16Array, _>("dst_port", rows, |row| row.packet.dst_port),
        full::<UInt64Array, _>("flow_hash", rows, |row| row.packet.flow_hash),
        full::<UInt8Array, _>("dscp", rows, |row| row.packet.dscp),
        full::<UInt8Array, _>("ecn", rows, |row| row.packet.ecn),
        full::<BooleanArray, _>("marked", rows, |row| row.packet.marked),
        full::<BooleanArray, _>("is_copy", rows, |row| row.packet.is_copy),
        column::<UInt32Array, _>("tcp_seq", rows, |row| row.packet.tcp.map(|tcp| tcp.seq)),
        column::<UInt32Array, _>("tcp_ack", rows, |row| row.packet.tcp.map(|tcp| tcp.ack)),
        column::<UInt8Array, _>("tcp_flags", rows, |row| {
            row.packet.tcp.map(|tcp| tcp.flags.0)
        }),
        column::<UInt16Array, _>("tcp_window", rows, |row| {
            row.packet.tcp.map(|tcp| tcp.window)
        }),
        column::<UInt32Array, _>("payload_bytes", rows, |row| {
            row.packet.tcp.map(|tcp| tcp.payload_bytes)
        }),
    ];
    let field = |(name, nullable, values): &Column| {
        Field::new(*name, values.data_type().clone(), *nullable)
    };
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let values = columns.into_iter().map(|(_, _, values)| values).collect();
    RecordBatch::try_new(Arc::new(schema), values)
}

fn fate(fate: PacketFate) -> &'static str {
    match fate {
        PacketFate::Delivered => "delivered",
        PacketFate::Dropped(_) => "dropped",
        PacketFate::InFlight => "in-flight",
    }
}

fn drop_reason(fate: PacketFate) -> Option<String> {
    match fate {
        PacketFate::Dropped(reason) => Some(reason.to_string()),
        PacketFate::Delivered | PacketFate::InFlight => None,
    }
}

fn text(address: Option<std::net::IpAddr>) -> Option<String> {
    address.map(|address| address.to_string())
}
