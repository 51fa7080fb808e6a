//! The path memory of a run: its options, loaded at the start, saved at intervals and at the end.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use clap::Args;
use headstart_core::{Assignment, MemoryParams};
use headstart_kernel::{Kernel, LiveMemory, MemoryOptions, PathEntry, Prefix, PrefixLengths};
use headstart_memory::{Now, Store, StoreError, default_file};

use crate::failure::Failure;

/// What a kill -9 can lose at the most.
const SAVE_EVERY: Duration = Duration::from_secs(30);

/// The path memory.
#[derive(Args)]
pub(crate) struct MemoryArgs {
    /// Where the path memory is kept between runs; `none`: nowhere. Default: headstart/paths.sqlite under
    /// $XDG_STATE_HOME, else /var/lib for root.
    #[arg(long = "memory", value_name = "FILE")]
    file: Option<PathBuf>,
    /// A parameter of the path memory; may be given several times. `headstart list` names them.
    #[arg(long = "memory-param", value_name = "NAME=VALUE")]
    memory_params: Vec<String>,
    /// The prefix lengths for IPv4 under which paths are remembered, at most four; the longest known answers.
    #[arg(long, value_name = "BITS", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(0..=32))]
    prefixes_v4: Option<Vec<u8>>,
    /// As --prefixes-v4, for IPv6.
    #[arg(long, value_name = "BITS", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(0..=128))]
    prefixes_v6: Option<Vec<u8>>,
    /// Destinations that are the local network, as one group for su_adaptive; may be given up to eight times.
    #[arg(long = "local-network", value_name = "PREFIX")]
    group: Vec<Prefix>,
}

impl MemoryArgs {
    /// The options as the kernel's side wants them; what is wrong with them is wrong usage.
    pub(crate) fn options(&self) -> Result<MemoryOptions, anyhow::Error> {
        let mut params = MemoryParams::default();
        for text in &self.memory_params {
            Assignment::parse(text)
                .and_then(|given| Ok(params.set(given.name, given.value)?))
                .with_context(|| format!("--memory-param {text}"))?;
        }
        let usual = MemoryOptions::default();
        let lengths = |given: &Option<Vec<u8>>, usual| {
            given
                .as_ref()
                .map_or(usual, |bits| PrefixLengths::new(bits.clone()))
        };
        if self.group.iter().any(|prefix| prefix.bits().is_none()) {
            return Err(anyhow!("--local-network: write a prefix, e.g. 10.0.0.0/8"));
        }
        Ok(MemoryOptions {
            params,
            lengths_v4: lengths(&self.prefixes_v4, usual.lengths_v4),
            lengths_v6: lengths(&self.prefixes_v6, usual.lengths_v6),
            group: self.group.clone(),
            shared: true,
            ..MemoryOptions::default()
        })
    }

    /// Takes what was saved into the kernel. Where another headstart runs, its memory is in use and has been loaded.
    pub(crate) fn load(&self, kernel: &Kernel, joined: bool) -> Result<Keeper, Failure> {
        let store = match open_for_run(self.file.as_ref()) {
            Ok(store) => store,
            // Nobody asked for a file: a start-up without a memory of yesterday is no failure.
            Err(error) if self.file.is_none() => {
                tracing::warn!("{error}; what is learnt is forgotten at the end");
                None
            }
            Err(error) => return Err(Failure::Run(error.into())),
        };
        let mut keeper = Keeper {
            store,
            saved_at: Instant::now(),
            complained: false,
        };
        if let Some(store) = keeper.store.as_mut().filter(|_| !joined) {
            match store.load(&Now::here()) {
                Ok(entries) => entries
                    .iter()
                    .try_for_each(|entry| kernel.remember(entry))
                    .context("taking up the saved path memory")?,
                Err(error) => {
                    tracing::warn!("{error}; the path memory begins empty, and nothing is saved");
                    keeper.store = None;
                }
            }
        }
        Ok(keeper)
    }
}

/// `--memory`; `None` is `--memory none`, or a machine without a place for it.
pub(crate) fn file_of(given: Option<&PathBuf>) -> Option<PathBuf> {
    match given {
        Some(file) if file.as_os_str() == "none" => None,
        Some(file) => Some(file.clone()),
        None => default_file(),
    }
}

fn open_for_run(given: Option<&PathBuf>) -> Result<Option<Store>, StoreError> {
    file_of(given).map(|file| Store::open(&file)).transpose()
}

/// Whether another headstart holds a path memory that a new one would share.
pub(crate) fn is_held() -> bool {
    LiveMemory::find().is_some()
}

/// Saves the memory of a run.
pub(crate) struct Keeper {
    store: Option<Store>,
    saved_at: Instant,
    complained: bool,
}

impl Keeper {
    /// Saves if it is time to.
    pub(crate) fn tick(&mut self, paths: impl FnOnce() -> Option<Vec<PathEntry>>) {
        if self.saved_at.elapsed() >= SAVE_EVERY {
            self.save(paths);
        }
    }

    /// Saves. A save that fails leaves the file as it was, and the run goes on; it is said once.
    pub(crate) fn save(&mut self, paths: impl FnOnce() -> Option<Vec<PathEntry>>) {
        self.saved_at = Instant::now();
        let (Some(store), Some(paths)) = (self.store.as_mut(), paths()) else {
            return;
        };
        match store.save(&paths, &Now::here()) {
            Err(error) if !self.complained => {
                eprintln!("headstart: {error}; what was saved before is whole");
                self.complained = true;
            }
            done => self.complained = done.is_err(),
        }
    }
}
