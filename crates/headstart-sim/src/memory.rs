//! What senders remember of paths, one entry a destination group. What is learnt and when it is
//! believed is `core/path_memory.h`'s.

use headstart_core::{Event, Learnt, MemoryParams, Path, Proof};

const NS_PER_US: u64 = 1000;

/// The path memory of all senders of a run.
#[derive(Debug, Default)]
pub struct PathMemory {
    /// By number of the destination group; with when it was learnt.
    entries: Vec<Option<(Path, u64)>>,
    params: MemoryParams,
}

impl PathMemory {
    /// Empty; it learns by these parameters.
    pub fn new(params: MemoryParams) -> PathMemory {
        PathMemory {
            entries: Vec::new(),
            params,
        }
    }

    /// What is known of `destination` at `now_ns`.
    pub fn recall(&self, destination: u32, now_ns: u64) -> Option<Path> {
        let (path, learnt_ns) = (*self.entries.get(destination as usize)?)?;
        Some(Path {
            // What was put in place has an age of its own.
            age_us: path.age_us + now_ns.saturating_sub(learnt_ns) / NS_PER_US,
            ..path
        })
    }

    /// Folds a connection as it stands into what is known.
    pub(crate) fn learn(&mut self, destination: u32, now_ns: u64, event: &Event, proof: Proof) {
        let index = destination as usize;
        let mut path = match self.entries.get(index) {
            Some(Some((path, _))) => *path,
            _ => Path::default(),
        };
        if self.params.learn(&mut path, event, proof) == Learnt::Nothing {
            return;
        }
        if self.entries.len() <= index {
            self.entries.resize(index + 1, None);
        }
        self.entries[index] = Some((path, now_ns));
    }

    /// Puts an entry in place, learnt at time 0 less its age.
    pub fn put(&mut self, destination: u32, path: Path) {
        let index = destination as usize;
        if self.entries.len() <= index {
            self.entries.resize(index + 1, None);
        }
        self.entries[index] = Some((path, 0));
    }

    /// Forgets what is known of `destination`.
    pub fn forget(&mut self, destination: u32) {
        if let Some(entry) = self.entries.get_mut(destination as usize) {
            *entry = None;
        }
    }
}
