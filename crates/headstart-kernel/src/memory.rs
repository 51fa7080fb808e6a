//! How the path memory is kept: prefix lengths, the local network, room; and where a live one is found.

use headstart_core::MemoryParams;
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapHandle, MapType, OpenObject};
use std::os::fd::AsFd;

use crate::contract::{MAX_PREFIX_LENGTHS, NO_LENGTH, RawPathEntry, RawPrefix};
use crate::error::KernelError;
use crate::leftovers::open_ids;
use crate::paths::{self, Lesson, PathEntry, Prefix};

const MAP: &str = "hs_paths";

/// How paths are remembered.
#[derive(Clone, Debug)]
pub struct MemoryOptions {
    /// Weights, thresholds, lifetime, the largest window.
    pub params: MemoryParams,
    /// The prefix lengths under which a path is remembered, at most four.
    pub lengths_v4: PrefixLengths,
    /// As `lengths_v4`, for IPv6.
    pub lengths_v6: PrefixLengths,
    /// The local network, as one group for `su_adaptive`: at most eight prefixes of destinations.
    pub group: Vec<Prefix>,
    /// How many entries there is room for; the least recently used goes first.
    pub max_entries: u32,
    /// Use the memory of another headstart that runs, if there is one.
    pub shared: bool,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        MemoryOptions {
            params: MemoryParams::default(),
            // A host; a network as providers hand them out.
            lengths_v4: PrefixLengths(vec![32, 24]),
            lengths_v6: PrefixLengths(vec![128, 64, 48]),
            group: Vec::new(),
            max_entries: 65_536,
            shared: false,
        }
    }
}

impl MemoryOptions {
    /// /24 and /48 alone: what the lanes of a comparison and of the tests have to themselves.
    pub fn of_networks() -> MemoryOptions {
        MemoryOptions {
            lengths_v4: PrefixLengths(vec![24]),
            lengths_v6: PrefixLengths(vec![48]),
            ..MemoryOptions::default()
        }
    }

    pub(crate) fn prepare(&self, open: &mut OpenObject) -> Result<(), KernelError> {
        let failed = |error| KernelError::operation("preparing the path memory", error);
        for mut map in open.maps_mut() {
            if *map.name() != *MAP {
                continue;
            }
            match LiveMemory::find().filter(|_| self.shared) {
                Some(live) => map.reuse_fd(live.map.as_fd()).map_err(failed)?,
                None => map.set_max_entries(self.max_entries).map_err(failed)?,
            }
        }
        Ok(())
    }
}

/// Prefix lengths, in bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixLengths(Vec<u8>);

impl PrefixLengths {
    /// The lengths, which are tried from the longest on.
    pub fn new(mut bits: Vec<u8>) -> PrefixLengths {
        bits.sort_unstable_by(|a, b| b.cmp(a));
        bits.dedup();
        PrefixLengths(bits)
    }

    /// Whether prefixes of `bits` bits are asked for; no address has more than `most`.
    pub fn has(&self, bits: u8, most: u8) -> bool {
        self.0.iter().any(|length| (*length).min(most) == bits)
    }

    pub(crate) fn raw(&self, most: u8) -> Result<[u8; MAX_PREFIX_LENGTHS], KernelError> {
        let mut raw = [NO_LENGTH; MAX_PREFIX_LENGTHS];
        if self.0.len() > raw.len() {
            return Err(KernelError::TooMany {
                what: "prefix lengths",
                most: raw.len(),
            });
        }
        for (slot, bits) in raw.iter_mut().zip(&self.0) {
            *slot = (*bits).min(most);
        }
        Ok(raw)
    }
}

/// The path memory of a headstart that runs, found by its name in the kernel: nothing is pinned.
pub struct LiveMemory {
    map: MapHandle,
}

impl LiveMemory {
    /// That of start-ups that this process has loaded. It can be used from another thread, and holds the memory alone,
    /// not the start-ups.
    pub(crate) fn of(map: &libbpf_rs::Map<'_>) -> Result<LiveMemory, KernelError> {
        let map = MapHandle::try_from(map)
            .map_err(|error| KernelError::operation("opening the path memory", error))?;
        Ok(LiveMemory { map })
    }

    /// The one that a process holds. What only connections still hold is nobody's memory any more.
    pub fn find() -> Option<LiveMemory> {
        let (key, value) = (size_of::<RawPrefix>(), size_of::<RawPathEntry>());
        let mut ids: Vec<u32> = MapInfoIter::default()
            .filter(|map| map.ty == MapType::LruHash && *map.name.to_string_lossy() == *MAP)
            // Another version of headstart may have another layout.
            .filter(|map| map.key_size as usize == key && map.value_size as usize == value)
            .map(|map| map.id)
            .collect();
        if ids.is_empty() {
            return None;
        }
        let held = open_ids("map_id:");
        ids.retain(|id| held.contains(id));
        let id = ids.into_iter().min()?;
        MapHandle::from_map_id(id)
            .ok()
            .map(|map| LiveMemory { map })
    }

    /// What is remembered of all paths, in no order.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn paths(&self) -> Result<Vec<PathEntry>, KernelError> {
        paths::all(&self.map)
    }

    /// Every entry, also those that say that a path was forgotten, in no order.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn look(&self, each: impl FnMut(Lesson)) -> Result<(), KernelError> {
        paths::look(&self.map, each)
    }

    /// The entry of `prefix` itself.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn get(&self, prefix: Prefix) -> Result<Option<Lesson>, KernelError> {
        paths::get(&self.map, prefix)
    }

    /// Writes an entry as it is.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn put(&self, lesson: &Lesson) -> Result<(), KernelError> {
        paths::put(&self.map, lesson)
    }

    /// Now, by the clock of [`Lesson::learnt_ns`].
    pub fn now_ns() -> u64 {
        paths::now_ns()
    }

    /// Forgets what is remembered of `prefix`. True when there was something.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn forget(&self, prefix: Prefix) -> Result<bool, KernelError> {
        paths::forget(&self.map, prefix)
    }

    /// Writes an entry, as if it had been learnt `entry.path.age_us` ago.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn remember(&self, entry: &PathEntry) -> Result<(), KernelError> {
        paths::remember(&self.map, entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_lengths_are_tried_from_the_longest_on() {
        let lengths = PrefixLengths::new(vec![16, 32, 24, 32]);
        assert_eq!(lengths.raw(32).unwrap(), [32, 24, 16, NO_LENGTH]);
        let five = PrefixLengths::new(vec![8, 12, 16, 20, 24]);
        let error = five.raw(32).unwrap_err().to_string();
        assert_eq!(error, "at most 4 prefix lengths can be given");
    }
}
