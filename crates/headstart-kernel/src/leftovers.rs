//! What a crash left behind: found by name and by whose it was, and removed.

use std::collections::HashSet;
use std::path::PathBuf;
use std::{fs, io};

use headstart_core::Startup;
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

use crate::cgroup;
use crate::clsact::{self, Filter};
use crate::error::KernelError;

/// Something of ours without an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// A congestion control that is still registered, though no process holds it (Linux before 6.4).
    Startup {
        /// Its name.
        name: String,
        /// The id of its struct_ops map.
        map_id: u32,
    },
    /// A packet marker on a device of this network namespace, though no process holds it (Linux before 6.6).
    Marker {
        /// The device's name.
        device: String,
        /// The device's number.
        ifindex: u32,
        /// The clsact filter's handle.
        handle: u32,
        /// The clsact filter's priority.
        priority: u32,
        /// The id of its program.
        program_id: u32,
    },
    /// A cgroup of a process that is gone. What still runs in it is not ours to end: it is moved out.
    Cgroup {
        /// Its directory.
        path: PathBuf,
    },
}

impl std::fmt::Display for Leftover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Leftover::Startup { name, map_id } => {
                write!(f, "the congestion control {name} (struct_ops map {map_id})")
            }
            Leftover::Marker {
                device, priority, ..
            } => write!(
                f,
                "the packet marker on {device} (clsact filter, priority {priority})"
            ),
            Leftover::Cgroup { path } => write!(f, "the cgroup {}", path.display()),
        }
    }
}

/// Everything of ours that has no owner any more. What a running headstart holds is not among it.
pub fn leftovers() -> Vec<Leftover> {
    let mut found = stale_startups();
    found.extend(stale_markers());
    found.extend(stale_cgroups());
    found
}

impl Leftover {
    /// Removes it.
    ///
    /// # Errors
    /// Why the kernel would not.
    pub fn remove(&self) -> Result<(), KernelError> {
        let failed = |error: &dyn std::fmt::Display| {
            KernelError::operation(format!("removing {self}"), error)
        };
        match self {
            Leftover::Startup { map_id, .. } => {
                let map = MapHandle::from_map_id(*map_id).map_err(|error| failed(&error))?;
                map.delete(&0u32.to_ne_bytes())
                    .map_err(|error| failed(&error))
            }
            Leftover::Marker {
                ifindex,
                handle,
                priority,
                program_id,
                ..
            } => Filter {
                ifindex: *ifindex,
                handle: *handle,
                priority: *priority,
                program_id: *program_id,
            }
            .remove()
            .map_err(|error| failed(&error)),
            Leftover::Cgroup { path } => match cgroup::dissolve(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&error)),
                _ => Ok(()),
            },
        }
    }
}

/// A struct_ops map of ours, in use, that no process has open. Connections may still use a start-up whose owner
/// has gone: then its map is there, but no longer registered.
fn stale_startups() -> Vec<Leftover> {
    let ours: HashSet<&str> = Startup::all().map(Startup::name).collect();
    let registered = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default();
    let registered: HashSet<&str> = registered.split_whitespace().collect();
    let mut held: Option<HashSet<u32>> = None;
    MapInfoIter::default()
        .filter(|map| map.ty == MapType::StructOps)
        .filter_map(|map| {
            let name = map.name.to_string_lossy().into_owned();
            let stale = ours.contains(name.as_str())
                && registered.contains(name.as_str())
                && is_registered(map.id)
                && !held
                    .get_or_insert_with(|| open_ids("map_id:"))
                    .contains(&map.id);
            stale.then_some(Leftover::Startup {
                name,
                map_id: map.id,
            })
        })
        .collect()
}

/// `struct bpf_struct_ops_common_value` begins with a reference count and the state; 1 is "in use", which only
/// registrations without a link have.
fn is_registered(map_id: u32) -> bool {
    let value = MapHandle::from_map_id(map_id)
        .and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY));
    let Ok(Some(bytes)) = value else { return false };
    bytes
        .get(4..8)
        .is_some_and(|state| state == 1u32.to_ne_bytes())
}

/// A filter of ours whose program no process has open.
fn stale_markers() -> Vec<Leftover> {
    // Only root sees what other processes have open.
    if !nix::unistd::geteuid().is_root() {
        return Vec::new();
    }
    let mut held: Option<HashSet<u32>> = None;
    let mut found = Vec::new();
    for device in nix::net::if_::if_nameindex().iter().flatten() {
        for filter in clsact::markers_on(device.index()).unwrap_or_default() {
            let held = held.get_or_insert_with(|| open_ids("prog_id:"));
            if !held.contains(&filter.program_id) {
                found.push(Leftover::Marker {
                    device: device.name().to_string_lossy().into_owned(),
                    ifindex: filter.ifindex,
                    handle: filter.handle,
                    priority: filter.priority,
                    program_id: filter.program_id,
                });
            }
        }
    }
    found
}

/// The ids of all BPF maps (`map_id:`) or programs (`prog_id:`) that some process has open, from `/proc/*/fdinfo`.
pub(crate) fn open_ids(key: &str) -> HashSet<u32> {
    let mut ids = HashSet::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        for info in fs::read_dir(process.path().join("fdinfo"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let text = fs::read_to_string(info.path()).unwrap_or_default();
            let id = text.lines().find_map(|line| line.strip_prefix(key));
            ids.extend(id.and_then(|id| id.trim().parse::<u32>().ok()));
        }
    }
    ids
}

/// `headstart-PID-N` where no process PID lives.
fn stale_cgroups() -> Vec<Leftover> {
    let Some(root) = cgroup::mount_point() else {
        return Vec::new();
    };
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let pid = name.strip_prefix(cgroup::NAME_PREFIX)?.split('-').next()?;
            let pid: u32 = pid.parse().ok()?;
            let gone = !PathBuf::from(format!("/proc/{pid}")).exists();
            gone.then(|| Leftover::Cgroup { path: entry.path() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_of_a_dead_process_is_found_and_removed_and_one_of_a_live_process_is_not() {
        let root = cgroup::mount_point();
        let Some(root) = root.filter(|_| nix::unistd::geteuid().is_root()) else {
            eprintln!("SKIPPED: needs root and cgroup v2");
            return;
        };
        // Beyond the greatest pid that Linux gives (2^22).
        let dead = root.join("headstart-4194999-0");
        fs::create_dir(&dead).unwrap();
        let ours = crate::Cgroup::create().unwrap();
        let found = leftovers();
        assert!(found.contains(&Leftover::Cgroup { path: dead.clone() }));
        assert!(!found.contains(&Leftover::Cgroup {
            path: ours.path().to_owned()
        }));
        Leftover::Cgroup { path: dead.clone() }.remove().unwrap();
        assert!(!dead.exists());
    }
}
