//! What outlives the daemon: which rules are off, and why.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Rules that are off, with the reason. "*" is all of them.
#[derive(Debug)]
pub(crate) struct OffRules {
    file: PathBuf,
    off: BTreeMap<String, String>,
}

pub(crate) const ALL: &str = "*";

impl OffRules {
    pub(crate) fn load(state_dir: &Path) -> io::Result<OffRules> {
        fs::create_dir_all(state_dir)?;
        let file = state_dir.join("off.json");
        let off = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                // Safe is off: an operator turns it on again.
                BTreeMap::from([(
                    ALL.to_owned(),
                    format!("{} cannot be read: {error}", file.display()),
                )])
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(OffRules { file, off })
    }

    /// Why `rule` is off, if it is.
    pub(crate) fn reason(&self, rule: &str) -> Option<&str> {
        let found = self.off.get(ALL).or_else(|| self.off.get(rule));
        found.map(String::as_str)
    }

    /// In force at once, and on the disk if the disk takes it.
    pub(crate) fn turn_off(&mut self, rule: &str, reason: &str) -> io::Result<()> {
        self.off.insert(rule.to_owned(), reason.to_owned());
        self.save()
    }

    /// True when it was off.
    pub(crate) fn turn_on(&mut self, rule: Option<&str>) -> io::Result<bool> {
        let was = match rule {
            Some(rule) => self.off.remove(rule).is_some(),
            None => !std::mem::take(&mut self.off).is_empty(),
        };
        self.save()?;
        Ok(was)
    }

    fn save(&self) -> io::Result<()> {
        let dir = self.file.parent().unwrap_or(Path::new("."));
        let mut temporary = tempfile::NamedTempFile::new_in(dir)?;
        temporary.write_all(serde_json::to_string(&self.off)?.as_bytes())?;
        temporary.as_file().sync_all()?;
        temporary.persist(&self.file).map_err(|error| error.error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_turned_off_is_off_after_a_restart_until_told() {
        let dir = tempfile::tempdir().unwrap();
        let mut off = OffRules::load(dir.path()).unwrap();
        off.turn_off("web", "worse").unwrap();
        let mut off = OffRules::load(dir.path()).unwrap();
        assert_eq!(off.reason("web"), Some("worse"));
        assert_eq!(off.reason("api"), None);
        assert!(off.turn_on(Some("web")).unwrap());
        assert_eq!(OffRules::load(dir.path()).unwrap().reason("web"), None);
    }

    #[test]
    fn a_file_that_cannot_be_read_turns_all_off() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("off.json"), "{").unwrap();
        let off = OffRules::load(dir.path()).unwrap();
        assert!(off.reason("any").is_some());
    }
}
