//! Closed files on their way to a bucket, on a thread of its own: nobody waits for it.
//!
//! What is to go is what lies in the folder, so that a restart needs no memory of it. A file is removed, or put aside,
//! only when the store has said that it has it. A store that does not answer is asked again less and less often; what
//! does not fit into the backlog meanwhile is dropped, oldest first, and counted.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use parquet::file::reader::{FileReader, SerializedFileReader};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::bucket::{Bucket, BucketError};
use crate::config::BucketConfig;
use crate::protocol::BucketStatus;
use crate::store::CLOSED;

/// How often the folder is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// After 1, 2, 3, ... failures the next try is after 1, 2, 4, ... looks, and at most after 2 to this: 4 minutes.
const MOST_DOUBLINGS: u32 = 8;
/// At the end of the daemon: for the file that was closed last. A service manager waits longer.
const LAST_PATIENCE: Duration = Duration::from_secs(10);
/// Where files go that are kept.
const KEPT: &str = "uploaded";

/// Uploads the closed files of a folder until it is ended.
#[derive(Debug)]
pub struct Uploads {
    status: Arc<Mutex<BucketStatus>>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Uploads {
    /// Starts the thread. `host` is the machine's name, under which its files stand in the bucket.
    ///
    /// # Errors
    /// When there can be no thread. All else is tried again, and told by [`Uploads::status`].
    pub fn start(dir: &Path, config: &BucketConfig, host: &str) -> io::Result<Uploads> {
        let status = Arc::new(Mutex::new(BucketStatus {
            url: config.url.clone(),
            ..BucketStatus::default()
        }));
        let courier = Courier {
            dir: dir.to_owned(),
            config: config.clone(),
            host: host.to_owned(),
            bucket: None,
            status: Arc::clone(&status),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("hs-uploads".to_owned())
            .spawn(move || runtime.block_on(work(courier, ended)))?;
        Ok(Uploads {
            status,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// How it goes.
    pub fn status(&self) -> BucketStatus {
        locked(&self.status).clone()
    }
}

/// Gives what is closed ten seconds more. What is left then goes after the next start.
impl Drop for Uploads {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A thread that ended in the middle of an update leaves numbers, not a structure, behind.
fn locked(status: &Mutex<BucketStatus>) -> MutexGuard<'_, BucketStatus> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn work(mut courier: Courier, ended: oneshot::Receiver<()>) {
    tokio::select! {
        () = courier.run() => {}
        _ = ended => {}
    }
    // What was under way is begun anew: half an upload is none.
    if let Ok(Err(error)) = timeout(LAST_PATIENCE, courier.carry()).await {
        tracing::warn!("{error}");
    }
    if let Err(error) = courier.look() {
        tracing::warn!("{error}");
    }
    let left = locked(&courier.status).waiting_files;
    if left > 0 {
        tracing::warn!("{left} files of records are uploaded after the next start");
    }
}

struct Courier {
    dir: PathBuf,
    config: BucketConfig,
    host: String,
    bucket: Option<Bucket>,
    status: Arc<Mutex<BucketStatus>>,
}

impl Courier {
    async fn run(&mut self) {
        let mut in_a_row = 0;
        loop {
            match self.carry().await {
                Ok(()) => in_a_row = 0,
                Err(error) => {
                    let mut status = locked(&self.status);
                    status.failures += 1;
                    status.error = Some(error.to_string());
                    in_a_row += 1;
                }
            }
            // The backlog is bounded and shown while the store is not asked.
            for _ in 0..looks_after(in_a_row) {
                sleep(LOOK).await;
                if let Err(error) = self.look() {
                    locked(&self.status).error = Some(error.to_string());
                }
            }
        }
    }

    /// Takes all closed files to the bucket, or the first that does not go says why.
    async fn carry(&mut self) -> Result<(), BucketError> {
        loop {
            let waiting = self.look()?;
            let Some(file) = waiting.first() else {
                locked(&self.status).error = None;
                return Ok(());
            };
            let bucket = match &self.bucket {
                Some(bucket) => bucket,
                None => self.bucket.insert(Bucket::open(&self.config, &self.host)?),
            };
            let length = bucket.put(file).await?;
            self.put_aside(file)?;
            let mut status = locked(&self.status);
            status.uploaded_files += 1;
            status.uploaded_bytes += length;
            status.error = None;
        }
    }

    fn put_aside(&self, file: &Path) -> Result<(), BucketError> {
        let aside = || {
            if !self.config.keep {
                return fs::remove_file(file);
            }
            let kept = self.dir.join(KEPT);
            fs::create_dir_all(&kept)?;
            fs::rename(file, kept.join(file.file_name().unwrap_or_default()))
        };
        aside().map_err(|cause| of_file(file, cause))
    }

    /// The closed files, oldest first, once those are dropped that the backlog has no room for.
    fn look(&self) -> Result<Vec<PathBuf>, BucketError> {
        let failed = |cause| of_file(&self.dir, cause);
        let mut waiting = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|end| end == CLOSED) {
                let length = fs::metadata(&path).map_err(failed)?.len();
                waiting.push((path, length));
            }
        }
        // Their names begin with the time.
        waiting.sort();
        let mut bytes: u64 = waiting.iter().map(|(_, length)| length).sum();
        let mut waiting = waiting.into_iter();
        while bytes > self.config.backlog_bytes
            && let Some((path, length)) = waiting.next()
        {
            let rows = rows_in(&path);
            fs::remove_file(&path).map_err(|cause| of_file(&path, cause))?;
            bytes -= length;
            let mut status = locked(&self.status);
            status.dropped_files += 1;
            status.dropped_rows += rows;
        }
        let waiting: Vec<PathBuf> = waiting.map(|(path, _)| path).collect();
        let mut status = locked(&self.status);
        status.waiting_files = waiting.len() as u64;
        status.waiting_bytes = bytes;
        Ok(waiting)
    }
}

/// Until the next try, after so many failures in a row.
fn looks_after(failures: u32) -> u32 {
    1 << failures.saturating_sub(1).min(MOST_DOUBLINGS)
}

fn of_file(file: &Path, cause: io::Error) -> BucketError {
    BucketError::File {
        file: file.display().to_string(),
        cause,
    }
}

/// 0 where it cannot be read: then it was no file of ours.
fn rows_in(file: &Path) -> u64 {
    let open = File::open(file).ok();
    let reader = open.and_then(|open| SerializedFileReader::new(open).ok());
    reader.map_or(0, |reader| {
        u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_fails_is_asked_less_and_less_often_but_every_few_minutes() {
        let looks: Vec<u32> = (0..5).map(looks_after).collect();
        assert_eq!(looks, [1, 1, 2, 4, 8]);
        assert_eq!(looks_after(9), 256);
        assert_eq!(looks_after(u32::MAX), 256);
    }
}
