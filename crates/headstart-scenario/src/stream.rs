//! The Parquet files of simulated traffic, written row group by row group: a run of any length takes
//! little memory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::{ResultsError, SimQueueRow, SimTransferRow, SimWindowRow, record_batch};

/// The files, by name.
const TRANSFERS: &str = "sim_transfers.parquet";
const WINDOWS: &str = "sim_windows.parquet";
const QUEUES: &str = "sim_queues.parquet";

fn of_transfers(rows: &[SimTransferRow]) -> Result<RecordBatch, ArrowError> {
    record_batch! { rows;
        "startup" false StringArray from_iter_values |row| &row.startup;
        "group" false StringArray from_iter_values |row| &row.group;
        "repeat" false UInt32Array from_iter_values |row| row.repeat;
        "user" true UInt32Array from_iter |row| row.user;
        "conn" false UInt32Array from_iter_values |row| row.conn;
        "turn" false UInt32Array from_iter_values |row| row.turn;
        "start_ms" false Float64Array from_iter_values |row| row.start_ms;
        "connect_ms" true Float64Array from_iter |row| row.connect_ms;
        "fct_ms" false Float64Array from_iter_values |row| row.fct_ms;
        "bytes" false UInt64Array from_iter_values |row| row.bytes;
        "delivered_bytes" false UInt64Array from_iter_values |row| row.delivered_bytes;
        "finished" false BooleanArray from_iter |row| Some(row.finished);
        "round_trips" true Float64Array from_iter |row| row.round_trips;
        "retransmitted_pkts" false UInt64Array from_iter_values |row| row.retransmitted_pkts;
        "dropped_pkts" false UInt64Array from_iter_values |row| row.dropped_pkts;
        "sack_walk_pkts" false UInt64Array from_iter_values |row| row.sack_walk_pkts;
        "timeouts" false UInt32Array from_iter_values |row| row.timeouts;
        "exit_why" true StringArray from_iter |row| row.exit_why.as_deref();
        "exit_cwnd_pkts" true UInt32Array from_iter |row| row.exit_cwnd_pkts;
        "slow_start_end_ms" true Float64Array from_iter |row| row.slow_start_end_ms;
        "slow_start_end_cwnd_pkts" true UInt32Array from_iter |row| row.slow_start_end_cwnd_pkts;
    }
}

fn of_windows(rows: &[SimWindowRow]) -> Result<RecordBatch, ArrowError> {
    record_batch! { rows;
        "startup" false StringArray from_iter_values |row| &row.startup;
        "group" false StringArray from_iter_values |row| &row.group;
        "repeat" false UInt32Array from_iter_values |row| row.repeat;
        "conn" false UInt32Array from_iter_values |row| row.conn;
        "t_ms" false Float64Array from_iter_values |row| row.t_ms;
        "cwnd_pkts" false UInt32Array from_iter_values |row| row.cwnd_pkts;
        "ssthresh_pkts" true UInt32Array from_iter |row| row.ssthresh_pkts;
        "srtt_ms" false Float64Array from_iter_values |row| row.srtt_ms;
        "inflight_pkts" false UInt32Array from_iter_values |row| row.inflight_pkts;
    }
}

fn of_queues(rows: &[SimQueueRow]) -> Result<RecordBatch, ArrowError> {
    record_batch! { rows;
        "startup" false StringArray from_iter_values |row| &row.startup;
        "repeat" false UInt32Array from_iter_values |row| row.repeat;
        "link" false StringArray from_iter_values |row| &row.link;
        "t_ms" false Float64Array from_iter_values |row| row.t_ms;
        "len_pkts" false UInt32Array from_iter_values |row| row.len_pkts;
        "dropped_pkts" false UInt64Array from_iter_values |row| row.dropped_pkts;
        "out_pkts" false UInt64Array from_iter_values |row| row.out_pkts;
        "busy_ms" false Float64Array from_iter_values |row| row.busy_ms;
    }
}

/// One file that grows under a temporary name and has its own when it is whole.
struct Growing {
    path: PathBuf,
    partial: PathBuf,
    writer: ArrowWriter<File>,
}

impl Growing {
    fn create(dir: &Path, name: &str, first: &RecordBatch) -> Result<Growing, ResultsError> {
        let (path, partial) = (dir.join(name), dir.join(format!(".{name}.partial")));
        let open = || -> Result<ArrowWriter<File>, Box<dyn std::error::Error + Send + Sync>> {
            let properties = WriterProperties::builder()
                .set_compression(Compression::SNAPPY)
                .build();
            let file = File::create(&partial)?;
            Ok(ArrowWriter::try_new(
                file,
                first.schema(),
                Some(properties),
            )?)
        };
        let writer = open().map_err(|cause| ResultsError::File {
            path: path.clone(),
            cause,
        })?;
        Ok(Growing {
            path,
            partial,
            writer,
        })
    }

    fn finish(self) -> Result<(), ResultsError> {
        let Growing {
            path,
            partial,
            writer,
        } = self;
        let close = || -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            writer.close()?;
            fs::rename(&partial, &path)?;
            Ok(())
        };
        close().map_err(|cause| ResultsError::File { path, cause })
    }
}

/// Writes `sim_transfers.parquet`, `sim_windows.parquet` and `sim_queues.parquet` into a folder as their
/// rows come. A file without rows is not written.
pub struct SimFiles {
    dir: PathBuf,
    files: [Option<Growing>; 3],
}

impl SimFiles {
    /// Into the folder `dir`, which is created if it is not there.
    ///
    /// # Errors
    /// [`ResultsError::Folder`].
    pub fn create(dir: &Path) -> Result<SimFiles, ResultsError> {
        fs::create_dir_all(dir).map_err(|cause| ResultsError::Folder {
            dir: dir.into(),
            cause,
        })?;
        Ok(SimFiles {
            dir: dir.into(),
            files: [None, None, None],
        })
    }

    fn write(
        &mut self,
        index: usize,
        name: &'static str,
        rows: Result<RecordBatch, ArrowError>,
    ) -> Result<(), ResultsError> {
        let failed = |path: PathBuf, cause: Box<dyn std::error::Error + Send + Sync>| {
            ResultsError::File { path, cause }
        };
        let path = self.dir.join(name);
        let rows = rows.map_err(|cause| failed(path.clone(), cause.into()))?;
        let file = match &mut self.files[index] {
            Some(file) => file,
            none => none.insert(Growing::create(&self.dir, name, &rows)?),
        };
        file.writer
            .write(&rows)
            .map_err(|cause| failed(path, cause.into()))
    }

    /// More transfers.
    ///
    /// # Errors
    /// [`ResultsError::File`].
    pub fn transfers(&mut self, rows: &[SimTransferRow]) -> Result<(), ResultsError> {
        self.write(0, TRANSFERS, of_transfers(rows))
    }

    /// More windows.
    ///
    /// # Errors
    /// [`ResultsError::File`].
    pub fn windows(&mut self, rows: &[SimWindowRow]) -> Result<(), ResultsError> {
        self.write(1, WINDOWS, of_windows(rows))
    }

    /// More queues.
    ///
    /// # Errors
    /// [`ResultsError::File`].
    pub fn queues(&mut self, rows: &[SimQueueRow]) -> Result<(), ResultsError> {
        self.write(2, QUEUES, of_queues(rows))
    }

    /// No more come: the files are whole.
    ///
    /// # Errors
    /// [`ResultsError::File`].
    pub fn finish(self) -> Result<(), ResultsError> {
        self.files
            .into_iter()
            .flatten()
            .try_for_each(Growing::finish)
    }
}
