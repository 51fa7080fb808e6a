//! The file itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use headstart_kernel::{PathEntry, Prefix};
use rusqlite::{Connection, OpenFlags, Row, params};

use crate::clock::Now;

/// "HSpm", so that `file` and we know it from other SQLite files.
const APPLICATION_ID: i32 = 0x4853_706d;
/// The layout; docs/path-memory.md describes it.
const SCHEMA: i32 = 1;
/// Two processes may save at once.
const PATIENCE: Duration = Duration::from_secs(5);

const TABLES: &str = "
CREATE TABLE saved (
    boot_id TEXT NOT NULL,
    boot_us INTEGER NOT NULL,
    unix_us INTEGER NOT NULL
) STRICT;
CREATE TABLE path (
    prefix TEXT PRIMARY KEY,
    age_us INTEGER NOT NULL,
    cwnd_pkts INTEGER NOT NULL,
    ssthresh_pkts INTEGER NOT NULL,
    srtt_us INTEGER NOT NULL,
    rttvar_us INTEGER NOT NULL,
    min_rtt_us INTEGER NOT NULL,
    rate_bytes_per_s INTEGER NOT NULL,
    ending_mpkts INTEGER NOT NULL,
    window_mean_mpkts INTEGER NOT NULL,
    window_dev_mpkts INTEGER NOT NULL,
    min_rtt_mean_us INTEGER NOT NULL,
    min_rtt_dev_us INTEGER NOT NULL,
    lost_pkts INTEGER NOT NULL,
    samples INTEGER NOT NULL,
    ended INTEGER NOT NULL
) STRICT;
";

/// What can go wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite said so.
    #[error("the path memory {}: {what}: {cause}", file.display())]
    Sqlite {
        /// The file.
        file: PathBuf,
        /// What was tried.
        what: &'static str,
        /// SQLite's words.
        cause: rusqlite::Error,
    },
    /// It is another program's, or another version's.
    #[error("{} is no path memory that this version can read: {why}; name another file with --memory", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Its directory cannot be made.
    #[error("the path memory {}: cannot make its directory: {cause}", file.display())]
    Directory {
        /// The file.
        file: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
}

/// A path memory on disk.
#[derive(Debug)]
pub struct Store {
    file: PathBuf,
    database: Connection,
}

impl Store {
    /// Opens the file; makes it, and its directory, where there is none.
    ///
    /// # Errors
    /// When it cannot be made or is not ours.
    pub fn open(file: &Path) -> Result<Store, StoreError> {
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory).map_err(|cause| StoreError::Directory {
                file: file.to_owned(),
                cause,
            })?;
        }
        Store::with_flags(
            file,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        )
    }

    /// Opens the file if it is there.
    ///
    /// # Errors
    /// When it cannot be read or is not ours.
    pub fn open_existing(file: &Path) -> Result<Option<Store>, StoreError> {
        if !file.exists() {
            return Ok(None);
        }
        Store::with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE).map(Some)
    }

    fn with_flags(file: &Path, flags: OpenFlags) -> Result<Store, StoreError> {
        let failed = |what| {
            let file = file.to_owned();
            move |cause| StoreError::Sqlite { file, what, cause }
        };
        let mut database =
            Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
                .map_err(failed("opening it"))?;
        database
            .busy_timeout(PATIENCE)
            .map_err(failed("opening it"))?;
        prepare(file, &mut database)?;
        // One file, and a journal only while it is written: what is on disk is whole at every moment, also
        // after a power cut (https://sqlite.org/atomiccommit.html).
        database
            .pragma_update(None, "journal_mode", "DELETE")
            .and_then(|()| database.pragma_update(None, "synchronous", "FULL"))
            .map_err(failed("opening it"))?;
        Ok(Store {
            file: file.to_owned(),
            database,
        })
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What was saved, with its age now. What was saved by a clock that stood later than it does now is left out:
    /// how old it is cannot be known.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn load(&self, now: &Now) -> Result<Vec<PathEntry>, StoreError> {
        self.read(now)
            .map_err(|cause| self.failed("reading it", cause))
    }

    fn read(&self, now: &Now) -> rusqlite::Result<Vec<PathEntry>> {
        let mut saved = self
            .database
            .prepare("SELECT boot_id, boot_us, unix_us FROM saved")?;
        let saved = saved.query_map([], |row| {
            Ok(Now {
                boot_id: row.get(0)?,
                boot_us: unsigned(row, 1)?,
                unix_us: unsigned(row, 2)?,
            })
        })?;
        let Some(then) = saved.last().transpose()? else {
            return Ok(Vec::new());
        };
        let Some(since_us) = now.since(&then) else {
            return Ok(Vec::new());
        };
        let mut rows = self
            .database
            .prepare("SELECT * FROM path ORDER BY prefix")?;
        let rows = rows.query_map([], |row| entry(row, since_us))?;
        // A prefix that cannot be read is of no use to anyone.
        rows.filter_map(Result::transpose).collect()
    }

    /// Puts `entries` in the place of all that was saved: all of them, or, on any error, none.
    ///
    /// # Errors
    /// When they cannot be written; then the file is as it was.
    pub fn save(&mut self, entries: &[PathEntry], now: &Now) -> Result<(), StoreError> {
        write(&mut self.database, entries, now).map_err(|cause| self.failed("writing it", cause))
    }

    fn failed(&self, what: &'static str, cause: rusqlite::Error) -> StoreError {
        StoreError::Sqlite {
            file: self.file.clone(),
            what,
            cause,
        }
    }
}

/// Makes the tables of a new file; refuses one that is not ours.
fn prepare(file: &Path, database: &mut Connection) -> Result<(), StoreError> {
    let failed = |cause| StoreError::Sqlite {
        file: file.to_owned(),
        what: "reading it",
        cause,
    };
    let number =
        |name: &str| database.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0));
    let foreign = |why: String| StoreError::Foreign {
        file: file.to_owned(),
        why,
    };
    let application = match number("application_id") {
        Err(rusqlite::Error::SqliteFailure(error, _))
            if error.code == rusqlite::ErrorCode::NotADatabase =>
        {
            return Err(foreign("it is no SQLite file".to_owned()));
        }
        application => application.map_err(failed)?,
    };
    let schema = number("user_version").map_err(failed)?;
    let tables: i64 = database
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    match (application, schema, tables) {
        (APPLICATION_ID, SCHEMA, _) => Ok(()),
        (0, 0, 0) => create(database).map_err(failed),
        (APPLICATION_ID, other, _) => Err(foreign(format!(
            "its schema is {other}, and this one is {SCHEMA}"
        ))),
        _ => Err(foreign("it is another program's database".to_owned())),
    }
}

fn create(database: &mut Connection) -> rusqlite::Result<()> {
    let transaction =
        database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let made: i32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if made == 0 {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA)?;
    }
    transaction.commit()
}

fn write(database: &mut Connection, entries: &[PathEntry], now: &Now) -> rusqlite::Result<()> {
    let transaction =
        database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    transaction.execute_batch("DELETE FROM path; DELETE FROM saved;")?;
    transaction.execute(
        "INSERT INTO saved VALUES (?1, ?2, ?3)",
        params![now.boot_id, signed(now.boot_us), signed(now.unix_us)],
    )?;
    {
        let mut insert = transaction.prepare(
            "INSERT OR REPLACE INTO path VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        )?;
        for PathEntry { prefix, path } in entries {
            insert.execute(params![
                prefix.to_string(),
                signed(path.age_us),
                path.cwnd_pkts,
                path.ssthresh_pkts,
                path.srtt_us,
                path.rttvar_us,
                path.min_rtt_us,
                signed(path.rate_bytes_per_s),
                path.ending_mpkts,
                path.window_mean_mpkts,
                path.window_dev_mpkts,
                path.min_rtt_mean_us,
                path.min_rtt_dev_us,
                path.lost_pkts,
                path.samples,
                path.ended,
            ])?;
        }
    }
    transaction.commit()
}

/// SQLite's integers are signed. No age and no rate comes near the bound.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

fn entry(row: &Row<'_>, since_us: u64) -> rusqlite::Result<Option<PathEntry>> {
    let Ok(prefix) = row.get::<_, String>(0)?.parse::<Prefix>() else {
        return Ok(None);
    };
    let path = headstart_core::Path {
        age_us: unsigned(row, 1)?.saturating_add(since_us),
        cwnd_pkts: row.get(2)?,
        ssthresh_pkts: row.get(3)?,
        srtt_us: row.get(4)?,
        rttvar_us: row.get(5)?,
        min_rtt_us: row.get(6)?,
        rate_bytes_per_s: unsigned(row, 7)?,
        ending_mpkts: row.get(8)?,
        window_mean_mpkts: row.get(9)?,
        window_dev_mpkts: row.get(10)?,
        min_rtt_mean_us: row.get(11)?,
        min_rtt_dev_us: row.get(12)?,
        lost_pkts: row.get(13)?,
        samples: row.get(14)?,
        ended: row.get(15)?,
        ..headstart_core::Path::default()
    };
    Ok(Some(PathEntry { prefix, path }))
}
