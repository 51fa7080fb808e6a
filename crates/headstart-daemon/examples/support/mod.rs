//! What the daemon's one thread does with the kernel's records, for the examples that measure it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use headstart_daemon::{Records, Row, Stats, Store, StoreCounts, Wall};
use headstart_kernel::Transfer;

/// How often `daemon.rs` empties the kernel's buffer, and how often it writes what is less than a batch.
pub(crate) const STEPS_PER_S: u64 = 10;
const S: u64 = 1_000_000_000;

/// Makes rows of transfers, counts them, and writes them into a folder that is gone with this.
pub(crate) struct Writer {
    _dir: tempfile::TempDir,
    store: Store,
    stats: Stats,
    wall: Wall,
    /// Of the rule and the arm.
    names: [Arc<str>; 2],
}

impl Writer {
    /// Below `parent`, which is made if it is not there.
    pub(crate) fn below(parent: Option<String>) -> Result<Writer, Box<dyn Error>> {
        let parent = parent.map_or_else(std::env::temp_dir, PathBuf::from);
        std::fs::create_dir_all(&parent)?;
        let dir = tempfile::tempdir_in(parent)?;
        Ok(Writer {
            store: Store::open(records_in(dir.path()))?.0,
            stats: Stats::default(),
            wall: Wall::at(1_700_000_000 * S, 0),
            names: ["web".into(), "all".into()],
            _dir: dir,
        })
    }

    /// One step of the loop, the `step`th.
    pub(crate) fn step(
        &mut self,
        step: u64,
        transfers: Vec<Transfer>,
    ) -> Result<(), Box<dyn Error>> {
        let now_ns = step * (S / STEPS_PER_S);
        for transfer in transfers {
            let [rule, arm] = self.names.clone();
            let row = Row::new(transfer, &self.wall, rule, arm, (24, 48));
            self.stats.add(now_ns, &row);
            self.store.take([row]);
            if self.store.has_batch() {
                self.store.flush(now_ns, self.wall.us(now_ns))?;
            }
        }
        if step.is_multiple_of(STEPS_PER_S) {
            self.store.flush(now_ns, self.wall.us(now_ns))?;
        }
        Ok(())
    }

    /// Writes the rest.
    pub(crate) fn close(&mut self) -> Result<StoreCounts, Box<dyn Error>> {
        self.store.flush(u64::MAX, self.wall.us(0))?;
        self.store.close()?;
        Ok(self.store.counts())
    }
}

fn records_in(dir: &Path) -> Records {
    Records {
        dir: dir.to_owned(),
        sample_percent: 100,
        rotate: Duration::from_secs(3600),
        rotate_bytes: 256 << 20,
        bucket: None,
    }
}
