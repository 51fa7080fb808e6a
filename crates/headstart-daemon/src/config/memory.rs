//! What the table `[memory]` says.

use std::path::{Path, PathBuf};

use headstart_core::MemoryParams;
use headstart_memory::SiteUrl;
use headstart_scenario::reader::Table;
use headstart_scenario::{Fault, ScenarioError};

use super::keys::*;
use super::read::{path_of, table_of};

/// How paths are remembered.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryConfig {
    /// The file that keeps the memory over restarts; `None`: there is none.
    pub file: Option<PathBuf>,
    /// How many paths the kernel has room for; the least recently used goes first.
    pub max_paths: u32,
    /// The memory's parameters.
    pub params: MemoryParams,
    /// The store that shares it with the other servers of the site.
    pub site: Option<SiteUrl>,
}

/// Says that there is no file.
const NO_FILE: &str = "none";

pub(super) fn memory(top: &Table<'_>, state_dir: &Path) -> Result<MemoryConfig, ScenarioError> {
    let mut memory = MemoryConfig {
        file: Some(state_dir.join("paths.sqlite")),
        max_paths: 65_536,
        params: MemoryParams::default(),
        site: None,
    };
    let Some(table) = table_of(top, MEMORY)? else {
        return Ok(memory);
    };
    table.only(&[FILE, MAX_PATHS, PARAMS, URL, AUTHORITIES])?;
    if let Some(file) = path_of(Some(&table), FILE)? {
        memory.file = Some(file).filter(|file| file.as_os_str() != NO_FILE);
    }
    if let Some(value) = table.get(MAX_PATHS) {
        let most = value.whole(1_000, 4_000_000)?;
        memory.max_paths = u32::try_from(most).unwrap_or(u32::MAX);
    }
    if let Some(params) = table.get(PARAMS) {
        let params = params.table("in params".to_owned())?;
        for (name, value) in params.entries("1800") {
            let number = value.whole(0, u64::from(u32::MAX))?;
            memory.params.set(&name, number).map_err(|cause| {
                value.error(Fault::BadParameter {
                    startup: MEMORY.name.to_owned(),
                    parameter: name.clone(),
                    cause: cause.to_string(),
                })
            })?;
        }
    }
    let authorities = path_of(Some(&table), AUTHORITIES)?;
    match table.get(URL) {
        Some(url) => {
            let site = SiteUrl::parse(url.words(URL)?, authorities.as_deref());
            memory.site = Some(site.map_err(|cause| url.bad(URL, &cause))?);
        }
        None if authorities.is_some() => {
            let cause = "there is no url whose certificate they could vouch for";
            return Err(table.need(AUTHORITIES)?.bad(AUTHORITIES, &cause));
        }
        None => {}
    }
    Ok(memory)
}
