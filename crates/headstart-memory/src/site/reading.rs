//! What a site knows, for whoever wants to look: nothing is told to it, and nothing taken into a memory of our own.

use std::collections::BTreeMap;

use headstart_core::{MemoryParams, Path};
use headstart_kernel::{PathEntry, Prefix, PrefixLengths};

use super::link::{Link, LinkError, SiteUrl};
use super::text::{Incoming, Limits, read};

/// Entries that are asked for at once.
const BATCH: usize = 500;
/// The most that `max_window_pkts` of any server may be: a window above it is nobody's, and shown as this one.
const MOST_WINDOW_PKTS: u32 = 65_535;

/// Why a site's memory cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {cause}; check the address, the password and that the store runs")]
pub struct SiteError {
    /// Without the password.
    url: String,
    cause: LinkError,
}

/// What stands in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SitePaths {
    /// By prefix. A path that was forgotten is not among them.
    pub paths: Vec<PathEntry>,
    /// How many entries are none.
    pub rejected: u64,
}

impl SitePaths {
    /// Reads all of it, whatever the lengths of the prefixes and the ages.
    ///
    /// # Errors
    /// When the store does not answer, or refuses.
    pub fn read(url: &SiteUrl) -> Result<SitePaths, SiteError> {
        let failed = |cause| SiteError {
            url: url.to_string(),
            cause,
        };
        let limits = Limits {
            max_window_pkts: MOST_WINDOW_PKTS,
            lifetime_us: u64::MAX,
            ..Limits::new(
                &MemoryParams::default(),
                PrefixLengths::new((0..=32).collect()),
                PrefixLengths::new((0..=128).collect()),
            )
        };
        let mut link = Link::connect(url).map_err(failed)?;
        let (mut epoch, mut after) = (String::new(), "0".to_owned());
        // A prefix that changes meanwhile comes again.
        let mut found: BTreeMap<Prefix, Option<Path>> = BTreeMap::new();
        let mut rejected = 0;
        loop {
            let changes = link.pull(&epoch, &after, BATCH).map_err(failed)?;
            if changes.epoch != epoch {
                // It was emptied meanwhile, or this is the first look.
                (found, rejected) = (BTreeMap::new(), 0);
            }
            (epoch, after) = (changes.epoch, changes.last);
            for (prefix, text) in &changes.entries {
                match read(prefix, text, changes.now_us, &limits) {
                    Incoming::Entry { prefix, path, .. } => {
                        found.insert(prefix, (path.cwnd_pkts != 0).then_some(path));
                    }
                    Incoming::Garbage(_) => rejected += 1,
                    Incoming::Unwanted => {}
                }
            }
            if changes.entries.len() < BATCH {
                break;
            }
        }
        let paths = found.into_iter();
        Ok(SitePaths {
            paths: paths
                .filter_map(|(prefix, path)| path.map(|path| PathEntry { prefix, path }))
                .collect(),
            rejected,
        })
    }
}
