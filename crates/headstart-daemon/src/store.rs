//! The files of records.
//!
//! Rows are appended once a second, or as soon as they are a batch, to a spool, an Arrow IPC stream, which is in the
//! kernel's hands after each write: a killed daemon loses less than a second. When the spool is old or large enough it
//! becomes a Parquet file: written under another name, flushed to the disk, renamed. That takes seconds for a large
//! one, in which the kernel's buffer would overflow: a thread of its own does it. What a killed daemon left is made
//! into files at the next start.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use crate::clock::is_full;
use crate::columns::{batch_of, schema};
use crate::config::Records;
use crate::row::Row;

/// Rows that wait for a disk that is full. More are dropped, and counted.
const MOST_WAITING_ROWS: usize = 100_000;
/// So many rows are written at once. Far below what may wait: rows of a disk that takes them are never dropped.
const BATCH_ROWS: usize = 10_000;
const SPOOL: &str = "spool";
const PARTIAL: &str = "partial";
/// Keys of a file's metadata.
const LOST: &str = "headstart.lost";
const DROPPED: &str = "headstart.dropped";
/// How the name of a file ends that is whole.
pub(crate) const CLOSED: &str = "parquet";

/// Why the files cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: records cannot be written: {cause}; check free space and permissions", path.display())]
pub struct StoreError {
    path: PathBuf,
    cause: Cause,
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What has been written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Rows that are in closed files or in the spool.
    pub rows_written: u64,
    /// Rows that were dropped because the disk took none for too long.
    pub rows_dropped: u64,
    /// Files closed.
    pub files_closed: u64,
}

/// Records that are in no file, though they were made while a file was written or since the one before it. The file
/// says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Missing {
    /// They found no room in the kernel.
    lost: u64,
    /// The disk took none for too long.
    dropped: u64,
}

/// A spool to be closed. `None`: an earlier daemon's, who took what was missing with it.
struct Left {
    spool: PathBuf,
    missing: Option<Missing>,
}

/// Writes the files of one folder.
pub struct Store {
    config: Records,
    spool: Option<Spool>,
    waiting: Vec<Row>,
    /// The disk did not take the rows when they were last written.
    refused: bool,
    /// Spools to be closed.
    left: Vec<Left>,
    closing: Option<Closing>,
    counts: StoreCounts,
    /// Records that the kernel had no room for, of all time.
    lost: u64,
    /// What closed files say, or will.
    told: Missing,
    sequence: u32,
}

/// A spool that is being closed.
struct Closing {
    left: Left,
    /// True when it had rows, and there is a file.
    thread: JoinHandle<Result<bool, Cause>>,
}

struct Spool {
    path: PathBuf,
    writer: StreamWriter<File>,
    begun_ns: u64,
    bytes: u64,
}

impl Store {
    /// Opens the folder, which is made if it is not there, and closes what an earlier daemon left open.
    ///
    /// # Errors
    /// When the folder cannot be made or read. That a spool cannot be closed now is told beside the store, which tries
    /// again.
    pub fn open(config: Records) -> Result<(Store, Option<StoreError>), StoreError> {
        let failed = |cause: io::Error| StoreError {
            path: config.dir.clone(),
            cause: cause.into(),
        };
        fs::create_dir_all(&config.dir).map_err(failed)?;
        let mut left = Vec::new();
        for entry in fs::read_dir(&config.dir).map_err(failed)?.flatten() {
            match entry.path().extension().and_then(|end| end.to_str()) {
                Some(SPOOL) => left.push(entry.path()),
                // Half a Parquet file: its spool is still there.
                Some(PARTIAL) => drop(fs::remove_file(entry.path())),
                _ => {}
            }
        }
        left.sort();
        let left = left.into_iter().map(|spool| Left {
            spool,
            missing: None,
        });
        let mut store = Store {
            config,
            spool: None,
            waiting: Vec::new(),
            refused: false,
            left: left.collect(),
            closing: None,
            counts: StoreCounts::default(),
            lost: 0,
            told: Missing::default(),
            sequence: 0,
        };
        let error = store.close_left().err();
        Ok((store, error))
    }

    /// Takes other limits; the folder stays.
    pub fn configure(&mut self, config: Records) {
        let dir = std::mem::take(&mut self.config.dir);
        self.config = Records { dir, ..config };
    }

    /// What has been written.
    pub fn counts(&self) -> StoreCounts {
        self.counts
    }

    /// How many records the kernel has had no room for since it began.
    pub fn lost(&mut self, records: u64) {
        self.lost = records;
    }

    /// Rows that are not in the spool yet.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether so many rows wait that they are to be written now, and not only with the next second. A disk that took
    /// none is not asked again for each batch.
    pub fn has_batch(&self) -> bool {
        self.waiting.len() >= BATCH_ROWS && !self.refused
    }

    /// Takes rows; they are written by [`Store::flush`], which is due once a second and when [`Store::has_batch`].
    pub fn take(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            if self.waiting.len() < MOST_WAITING_ROWS {
                self.waiting.push(row);
            } else {
                self.counts.rows_dropped += 1;
            }
        }
    }

    /// Writes what was taken, and begins to close the file if it is full. `wall_us` names a new file, `now_ns` is
    /// `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// When the disk does not take it: the rows wait, and the next call tries again.
    pub fn flush(&mut self, now_ns: u64, wall_us: i64) -> Result<(), StoreError> {
        if !self.waiting.is_empty() {
            let appended = self.append(now_ns, wall_us);
            self.refused = appended.is_err();
            appended?;
        }
        let full = self.spool.as_ref().is_some_and(|spool| {
            let Records {
                rotate,
                rotate_bytes,
                ..
            } = self.config;
            is_full(spool.begun_ns, now_ns, spool.bytes, rotate, rotate_bytes)
        });
        if full {
            self.leave();
        }
        let closed = match &self.closing {
            Some(closing) if !closing.thread.is_finished() => return Ok(()),
            _ => self.settle(),
        };
        self.begin_closing();
        closed
    }

    /// Waits until the file that is being closed is whole, if there is one.
    ///
    /// # Errors
    /// When the disk did not take it: the spool stays, and the next flush tries again.
    pub fn settle(&mut self) -> Result<(), StoreError> {
        let Some(Closing { left, thread }) = self.closing.take() else {
            return Ok(());
        };
        let closed = thread
            .join()
            .unwrap_or_else(|_| Err("the thread that closes it ended".into()));
        self.count_closed(left, closed)
    }

    /// What is in the spool is to be closed.
    fn leave(&mut self) {
        let Some(spool) = self.spool.take() else {
            return;
        };
        let now = Missing {
            lost: self.lost,
            dropped: self.counts.rows_dropped,
        };
        let missing = Missing {
            lost: now.lost.saturating_sub(self.told.lost),
            dropped: now.dropped.saturating_sub(self.told.dropped),
        };
        self.told = now;
        self.left.push(Left {
            spool: spool.path,
            missing: Some(missing),
        });
    }

    fn begin_closing(&mut self) {
        let Some(left) = self.left.pop() else {
            return;
        };
        let (dir, path, missing) = (self.config.dir.clone(), left.spool.clone(), left.missing);
        let thread = std::thread::Builder::new().name("hs-close".to_owned());
        match thread.spawn(move || close_spool(&dir, &path, missing)) {
            Ok(thread) => self.closing = Some(Closing { left, thread }),
            // The next flush tries again.
            Err(_) => self.left.push(left),
        }
    }

    fn count_closed(&mut self, left: Left, closed: Result<bool, Cause>) -> Result<(), StoreError> {
        match closed {
            Ok(there_is_a_file) => {
                self.counts.files_closed += u64::from(there_is_a_file);
                Ok(())
            }
            Err(cause) => {
                let path = left.spool.clone();
                self.left.insert(0, left);
                Err(StoreError { path, cause })
            }
        }
    }

    fn append(&mut self, now_ns: u64, wall_us: i64) -> Result<(), StoreError> {
        if self.spool.is_none() {
            self.spool = Some(self.begin(now_ns, wall_us)?);
        }
        let Some(spool) = &mut self.spool else {
            return Ok(());
        };
        let appended = batch_of(&self.waiting)
            .map_err(Cause::from)
            .and_then(|batch| append_whole(spool, &batch));
        match appended {
            Ok(()) => {
                self.counts.rows_written += self.waiting.len() as u64;
                self.waiting.clear();
                Ok(())
            }
            Err(cause) => {
                let path = spool.path.clone();
                // What is in the spool is whole again; the writer may not be.
                self.leave();
                Err(StoreError { path, cause })
            }
        }
    }

    fn begin(&mut self, now_ns: u64, wall_us: i64) -> Result<Spool, StoreError> {
        let at = jiff::Timestamp::from_microsecond(wall_us).unwrap_or_default();
        let time = at.strftime("%Y%m%dT%H%M%SZ").to_string();
        // The process and the number tell files apart whose clock says the same; and no closed file is ever replaced,
        // whatever clock and process number were at another start.
        let path = loop {
            self.sequence += 1;
            let name = format!(
                "transfers-{time}-{}-{}.{SPOOL}",
                std::process::id(),
                self.sequence
            );
            let path = self.config.dir.join(name);
            if !path.with_extension(CLOSED).exists() {
                break path;
            }
        };
        let begin = || -> Result<StreamWriter<File>, Cause> {
            let file = OpenOptions::new()
                .create_new(true)
                .read(true)
                .write(true)
                .open(&path)?;
            Ok(StreamWriter::try_new(file, &schema())?)
        };
        match begin() {
            Ok(writer) => Ok(Spool {
                path,
                writer,
                begun_ns: now_ns,
                bytes: 0,
            }),
            Err(cause) => {
                let _ = fs::remove_file(&path);
                Err(StoreError { path, cause })
            }
        }
    }

    /// Makes all that was written Parquet files, and returns when they are whole.
    ///
    /// # Errors
    /// When the disk does not take it: the spool stays, and the next flush or start tries again.
    pub fn close(&mut self) -> Result<(), StoreError> {
        self.leave();
        self.settle()?;
        self.close_left()
    }

    /// Those that the disk did not take before.
    fn close_left(&mut self) -> Result<(), StoreError> {
        while let Some(left) = self.left.pop() {
            let closed = close_spool(&self.config.dir, &left.spool, left.missing);
            self.count_closed(left, closed)?;
        }
        Ok(())
    }
}

/// True when there were rows, and there is a file now.
fn close_spool(dir: &Path, spool: &Path, missing: Option<Missing>) -> Result<bool, Cause> {
    let partial = spool.with_extension(PARTIAL);
    let closed = write_parquet(spool, &partial, missing).and_then(|rows| {
        if rows == 0 {
            fs::remove_file(&partial)?;
        } else {
            fs::rename(&partial, spool.with_extension(CLOSED))?;
            // The name is on the disk before the spool is gone.
            File::open(dir)?.sync_all()?;
        }
        Ok(rows > 0)
    });
    match closed {
        Ok(there_is_a_file) => {
            fs::remove_file(spool)?;
            Ok(there_is_a_file)
        }
        Err(cause) => {
            let _ = fs::remove_file(&partial);
            Err(cause)
        }
    }
}

/// Half a batch is cut off again.
fn append_whole(spool: &mut Spool, batch: &RecordBatch) -> Result<(), Cause> {
    let before = spool.writer.get_mut().stream_position()?;
    let written = spool
        .writer
        .write(batch)
        .and_then(|()| spool.writer.flush());
    let file = spool.writer.get_mut();
    match written {
        Ok(()) => {
            spool.bytes = file.stream_position()?;
            Ok(())
        }
        Err(cause) => {
            file.set_len(before)?;
            file.seek(SeekFrom::Start(before))?;
            Err(cause.into())
        }
    }
}

/// Numbers as differences, packed: a dictionary of values that are mostly various is half of the work of making the
/// file, and the file is larger with it. Texts are few, and have one. Beyond level 1 of zstd little is left to gain.
fn properties_for(columns: &Schema) -> Result<WriterProperties, Cause> {
    let mut properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?));
    for field in columns.fields() {
        let kind = field.data_type();
        if kind.is_integer() || matches!(kind, DataType::Timestamp(_, _)) {
            let column = ColumnPath::from(field.name().as_str());
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(properties.build())
}

/// Writes the whole batches of a spool as a Parquet file, and says how many rows they have. What a crash left half
/// written at the spool's end is left out.
fn write_parquet(spool: &Path, to: &Path, missing: Option<Missing>) -> Result<usize, Cause> {
    let mut file = File::create(to)?;
    let reader = StreamReader::try_new(BufReader::new(File::open(spool)?), None).ok();
    // The spool's own: it may be an older version's.
    let columns = reader.as_ref().map_or_else(schema, StreamReader::schema);
    let properties = properties_for(&columns)?;
    let mut writer = ArrowWriter::try_new(&mut file, columns, Some(properties))?;
    let mut rows = 0;
    if let Some(reader) = reader {
        for batch in reader.map_while(Result::ok) {
            writer.write(&batch)?;
            rows += batch.num_rows();
        }
    }
    if let Some(Missing { lost, dropped }) = missing {
        for (key, count) in [(LOST, lost), (DROPPED, dropped)] {
            writer.append_key_value_metadata(KeyValue::new(key.to_owned(), count.to_string()));
        }
    }
    writer.close()?;
    file.flush()?;
    file.sync_all()?;
    Ok(rows)
}
