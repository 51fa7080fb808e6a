//! The files of a run: every packet's fate as Parquet, and both sides' packets as pcapng.

mod parquet_log;
mod pcap;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use serde::Serialize;

use crate::capture::{self, Capture, Captures};
use crate::clock::{monotonic_ns, realtime_ns};
use crate::error::PathError;
use parquet_log::ParquetLog;
use pcap::PcapLog;

/// Bytes that a pcapng keeps of a packet if nothing else is asked for: all of them.
pub const WHOLE_PACKET_BYTES: u32 = 65_535;

/// Which files to write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFiles {
    /// Every packet's fate, as Parquet.
    pub parquet: Option<PathBuf>,
    /// The packets of both sides, as pcapng.
    pub pcap: Option<PathBuf>,
    /// Bytes that the pcapng keeps of each packet; 0 is all. At least 128 are kept.
    pub snap_bytes: u32,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LogReport {
    /// Packets in the files, copies among them.
    pub written_pkts: u64,
    /// Packets that are not in the files, because writing was too slow.
    pub lost_pkts: u64,
    /// Files that are not whole, and why.
    pub failures: Vec<String>,
}

/// The thread that writes.
#[derive(Debug)]
pub(crate) struct Writer {
    thread: JoinHandle<LogReport>,
}

/// When the path began, on both clocks: what makes one from the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Epoch {
    pub(crate) monotonic_ns: u64,
    pub(crate) realtime_ns: u64,
}

impl Epoch {
    fn now() -> Epoch {
        Epoch {
            monotonic_ns: monotonic_ns(),
            realtime_ns: realtime_ns(),
        }
    }

    /// The wall clock's time at a time of the router.
    fn realtime_of(self, at_ns: u64) -> u64 {
        (self.realtime_ns + at_ns).saturating_sub(self.monotonic_ns)
    }
}

/// A file in the making. One that fails is not tried again, and says why at the end.
struct Output<L> {
    path: PathBuf,
    log: Result<L, String>,
}

impl<L> Output<L> {
    fn create<E: ToString>(
        path: &Path,
        open: impl FnOnce(File) -> Result<L, E>,
    ) -> Result<Output<L>, PathError> {
        let failed = |cause| PathError::LogFile {
            path: path.to_owned(),
            cause,
        };
        let file = File::create(path).map_err(failed)?;
        let log = open(file).map_err(|error| failed(io::Error::other(error.to_string())))?;
        Ok(Output {
            path: path.to_owned(),
            log: Ok(log),
        })
    }

    fn update<E: ToString>(&mut self, write: impl FnOnce(&mut L) -> Result<(), E>) {
        if let Ok(log) = &mut self.log {
            if let Err(error) = write(log) {
                self.log = Err(error.to_string());
            }
        }
    }

    fn finish<E: ToString>(self, close: impl FnOnce(L) -> Result<(), E>) -> Option<String> {
        let done = self
            .log
            .and_then(|log| close(log).map_err(|error| error.to_string()));
        done.err()
            .map(|cause| format!("{} is not whole: {cause}", self.path.display()))
    }
}

impl Writer {
    /// Creates the files and starts the thread; the router's end of the way to it.
    pub(crate) fn start(
        files: &LogFiles,
        lane: u8,
        pairs: u8,
    ) -> Result<(Writer, Capture), PathError> {
        let epoch = Epoch::now();
        let snap_bytes = match files.snap_bytes {
            0 => WHOLE_PACKET_BYTES,
            some => some,
        };
        let parquet = files.parquet.as_deref();
        let parquet = parquet
            .map(|path| Output::create(path, |file| ParquetLog::new(file, epoch, lane)))
            .transpose()?;
        let pcap = files.pcap.as_deref();
        let pcap = pcap
            .map(|path| Output::create(path, |file| PcapLog::new(file, epoch, pairs, snap_bytes)))
            .transpose()?;
        let kept_bytes = if pcap.is_some() { snap_bytes } else { 0 };
        let (capture, captures) = capture::channel(kept_bytes as usize);
        let thread = thread::Builder::new()
            .name(format!("hs-log-{lane}"))
            .spawn(move || write_all(captures, parquet, pcap))
            .map_err(|cause| PathError::Router { cause })?;
        Ok((Writer { thread }, capture))
    }

    /// Waits until everything is written. The router has ended before.
    pub(crate) fn finish(self) -> LogReport {
        self.thread.join().unwrap_or_else(|_| LogReport {
            failures: vec!["the thread that writes the logs ended by itself".to_owned()],
            ..LogReport::default()
        })
    }
}

fn write_all(
    captures: Captures,
    mut parquet: Option<Output<ParquetLog>>,
    mut pcap: Option<Output<PcapLog>>,
) -> LogReport {
    let mut report = LogReport::default();
    captures.for_each(|batch| {
        report.written_pkts += batch.packets.len() as u64;
        report.lost_pkts += batch.lost.len() as u64;
        if let Some(parquet) = &mut parquet {
            parquet.update(|log| log.add(batch));
        }
        if let Some(pcap) = &mut pcap {
            pcap.update(|log| log.add(batch));
        }
    });
    let parquet = parquet.and_then(|parquet| parquet.finish(ParquetLog::close));
    let pcap = pcap.and_then(|pcap| pcap.finish(PcapLog::close));
    report.failures = parquet.into_iter().chain(pcap).collect();
    report
}
