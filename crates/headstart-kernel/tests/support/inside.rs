//! This process in a cgroup, for a while.

#![allow(clippy::unwrap_used, reason = "a tool of tests and measurements")]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "whoever takes in this file uses its part"
)]

use std::fs;
use std::path::PathBuf;

use headstart_kernel::Cgroup;

/// This process is in a cgroup, until the value is dropped: sockets that it opens then are the cgroup's, whoever uses
/// them, and so are the connections of its listeners.
pub struct Inside {
    home: PathBuf,
}

impl Inside {
    pub fn of(cgroup: &Cgroup) -> Inside {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = own
            .lines()
            .find_map(|line| line.strip_prefix("0::"))
            .unwrap();
        let root = cgroup.path().parent().unwrap();
        let pid = std::process::id().to_string();
        fs::write(cgroup.path().join("cgroup.procs"), pid).unwrap();
        Inside {
            home: root.join(own.trim_start_matches('/')),
        }
    }
}

/// Or the end of the cgroup would be that of this process.
impl Drop for Inside {
    fn drop(&mut self) {
        let pid = std::process::id().to_string();
        fs::write(self.home.join("cgroup.procs"), pid).unwrap();
    }
}

/// Runs `make` inside the cgroup.
pub fn inside<T>(cgroup: &Cgroup, make: impl FnOnce() -> T) -> T {
    let _inside = Inside::of(cgroup);
    make()
}
