//! What of a long comparison is done, in the folder of its results: one file for each path and repeat.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use headstart_scenario::{Scenario, TransferRecord};
use serde::{Deserialize, Serialize};

use super::CompareArgs;
use crate::failure::Failure;

/// One repeat over one path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    /// What it was measured under, but for the start-ups: another part is none of this comparison.
    asked: String,
    /// When its first piece began, as RFC 3339.
    pub(super) started: String,
    pub(super) wall_s: f64,
    /// Processes that wanted a CPU at the end of a piece, over the last minute: the most.
    pub(super) load: f64,
    pub(super) packets: u64,
    pub(super) transfers: Vec<TransferRecord>,
}

impl Part {
    pub(super) fn new(asked: &str) -> Part {
        Part {
            asked: asked.to_owned(),
            started: String::new(),
            wall_s: 0.0,
            load: 0.0,
            packets: 0,
            transfers: Vec::new(),
        }
    }

    /// Whether contestant `label` is in it.
    pub(super) fn has(&self, label: &str) -> bool {
        self.transfers
            .iter()
            .any(|transfer| transfer.startup == label)
    }
}

/// What all parts of one path have in common.
pub(super) fn asked(args: &CompareArgs, leg: &Scenario) -> String {
    let seed = args.seed.unwrap_or(leg.seed);
    let parameters: Vec<String> = leg
        .parameters
        .iter()
        .map(|parameter| {
            format!(
                "{}.{}={}",
                parameter.startup, parameter.name, parameter.value
            )
        })
        .chain(args.params.iter().cloned())
        .collect();
    format!("{:?} {:?} seed {seed} {parameters:?}", leg.path, leg.cases)
}

pub(super) fn file(dir: &Path, leg: &Scenario, repeat: u32) -> PathBuf {
    let name = leg.path_name.as_deref().unwrap_or("path");
    let name: String = name
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || ".-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    dir.join("parts").join(format!("{name}-{repeat}.json"))
}

/// The part in `file`, if it is there.
pub(super) fn read(file: &Path, asked: &str) -> Result<Option<Part>, Failure> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let error = anyhow::Error::from(error);
            return Err(error
                .context(format!("cannot read {}", file.display()))
                .into());
        }
    };
    let part: Part = serde_json::from_str(&text)
        .with_context(|| format!("{} is damaged; remove it", file.display()))?;
    if part.asked != asked {
        return Err(Failure::Usage(anyhow!(
            "{}: is of a comparison with another path, other cases, parameters or seed; give another --out, \
             or remove the folder",
            file.display()
        )));
    }
    Ok(Some(part))
}

/// Writes it whole, or not at all.
pub(super) fn write(file: &Path, part: &Part) -> Result<(), Failure> {
    let save = || -> anyhow::Result<()> {
        let dir = file.parent().context("it has no folder")?;
        fs::create_dir_all(dir)?;
        let mut temporary = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o666))
            .tempfile_in(dir)?;
        serde_json::to_writer(&mut temporary, part)?;
        temporary.as_file().sync_all()?;
        temporary.persist(file)?;
        Ok(())
    };
    Ok(save().with_context(|| format!("cannot write {}", file.display()))?)
}
