//! A results folder: the document, the scenario and the Parquet files, each whole or not there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use tempfile::NamedTempFile;

use crate::{
    PacketRow, ResultsDocument, ResultsError, Scenario, TransferRecord, WindowRow, columns,
};

/// The name of the results document. It is written last: a folder that has it has all the others.
const DOCUMENT: &str = "results.json";

/// Writes a run into the folder `dir`, which is created if it is not there: `results.json`, `scenario.toml` (the scenario's
/// text as it was read), `transfers.parquet`, `packets.parquet` and `windows.parquet`.
///
/// Each file is written under a temporary name, flushed to the disk and renamed, and `results.json` comes last (one that is
/// there already is removed first). So a crash leaves no half file and no document that belongs to other data.
///
/// # Errors
/// A [`ResultsError`] that names the file: the folder cannot be created or written to, or the disk is full.
pub fn write_results(
    dir: &Path,
    document: &ResultsDocument,
    scenario: &Scenario,
    transfers: &[TransferRecord],
    packets: &[PacketRow],
    windows: &[WindowRow],
) -> Result<(), ResultsError> {
    fs::create_dir_all(dir).map_err(|cause| ResultsError::Folder {
        dir: dir.into(),
        cause,
    })?;
    remove_old_document(&dir.join(DOCUMENT))?;
    write_whole(dir, "scenario.toml", |file| {
        Ok(file.write_all(scenario.source().as_bytes())?)
    })?;
    write_whole(dir, "transfers.parquet", |file| {
        write_parquet(file, &columns::of_transfers(transfers)?)
    })?;
    write_whole(dir, "packets.parquet", |file| {
        write_parquet(file, &columns::of_packets(packets)?)
    })?;
    write_whole(dir, "windows.parquet", |file| {
        write_parquet(file, &columns::of_windows(windows)?)
    })?;
    write_whole(dir, DOCUMENT, |file| {
        serde_json::to_writer_pretty(&mut *file, document)?;
        Ok(file.write_all(b"\n")?)
    })
}

/// Why the content of a file could not be written. Only its text matters.
type Cause = Box<dyn std::error::Error + Send + Sync>;

fn remove_old_document(path: &Path) -> Result<(), ResultsError> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(ResultsError::File {
            path: path.into(),
            cause: cause.into(),
        }),
        _ => Ok(()),
    }
}

fn write_whole(
    dir: &Path,
    name: &str,
    fill: impl FnOnce(&mut File) -> Result<(), Cause>,
) -> Result<(), ResultsError> {
    let path: PathBuf = dir.join(name);
    let write = || -> Result<(), Cause> {
        let mut temporary = temporary_in(dir, name)?;
        fill(temporary.as_file_mut())?;
        temporary.as_file().sync_all()?;
        temporary.persist(&path).map_err(|failed| failed.error)?;
        Ok(())
    };
    write().map_err(|cause| ResultsError::File {
        path: path.clone(),
        cause,
    })
}

/// A temporary file that others may read, as the umask allows, once it has its name.
fn temporary_in(dir: &Path, name: &str) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .suffix(".partial")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(dir)
}

fn write_parquet(file: &mut File, batch: &RecordBatch) -> Result<(), Cause> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties))?;
    writer.write(batch)?;
    writer.close()?;
    Ok(())
}
