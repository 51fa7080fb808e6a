//! What a killed emulation left behind: processes that outlived it in its namespaces.
//!
//! The namespaces, the devices and the programs that were started in them die with the process that
//! made them. Programs that *those* started do not, and they hold their namespace, now without a
//! way out. Each inherits a variable that says whose it is.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::str::FromStr;

/// The variable in the environment of every program in a namespace of ours.
pub(crate) const OWNER: &str = "HEADSTART_PATH";

/// The process that made an emulation, and one namespace of that. Numbers of processes are used
/// again: when it began, in clock ticks since boot, tells it from others. Another pid namespace
/// counts its processes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pid_namespace: u64,
    pid: i32,
    began_ticks: u64,
    network: u64,
}

impl Owner {
    /// Of a network namespace that this process has made.
    pub(crate) fn of_network(network: u64) -> Owner {
        let pid = std::process::id().cast_signed();
        Owner {
            pid_namespace: pid_namespace().unwrap_or(0),
            pid,
            began_ticks: began_ticks(pid).unwrap_or(0),
            network,
        }
    }

    /// Whether it is certain that it has ended.
    fn has_ended(self) -> bool {
        // In another pid namespace it cannot be seen from here, and is not ours to judge.
        pid_namespace() == Some(self.pid_namespace)
            && began_ticks(self.pid) != Some(self.began_ticks)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Owner {
            pid_namespace,
            pid,
            began_ticks,
            network,
        } = self;
        write!(f, "{pid_namespace}:{pid}:{began_ticks}:{network}")
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(text: &str) -> Result<Owner, ()> {
        let mut numbers = text.split(':');
        let mut next = || numbers.next().ok_or(());
        let owner = Owner {
            pid_namespace: next()?.parse().map_err(drop)?,
            pid: next()?.parse().map_err(drop)?,
            began_ticks: next()?.parse().map_err(drop)?,
            network: next()?.parse().map_err(drop)?,
        };
        numbers.next().map_or(Ok(owner), |_| Err(()))
    }
}

/// A process in the network namespace of an emulation that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftProcess {
    /// Its number.
    pub pid: i32,
    /// Its command line, as far as it is known.
    pub command: String,
    /// The number of its network namespace.
    pub network: u64,
    began_ticks: u64,
}

impl fmt::Display for LeftProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "process {} ({}) in the network namespace net:[{}] of an emulated path that is gone",
            self.pid, self.command, self.network
        )
    }
}

/// The processes that killed emulations left behind. Nothing is told by a name: a process is one
/// if it is in a network namespace that an owner made who has ended, and a process in there carries
/// the mark that says so. One that has gone into another namespace is not ours to end.
#[must_use]
pub fn left_processes() -> Vec<LeftProcess> {
    let abandoned: HashSet<u64> = all_pids()
        .filter_map(|pid| {
            let owner = owner_of(pid).filter(|owner| owner.has_ended())?;
            (network_of(pid) == Some(owner.network)).then_some(owner.network)
        })
        .collect();
    if abandoned.is_empty() {
        return Vec::new();
    }
    let left = all_pids().filter_map(|pid| {
        let network = network_of(pid).filter(|network| abandoned.contains(network))?;
        Some(LeftProcess {
            pid,
            command: command_of(pid),
            network,
            began_ticks: began_ticks(pid)?,
        })
    });
    left.collect()
}

impl LeftProcess {
    /// Kills it, if it is still the process that was found.
    ///
    /// # Errors
    /// Why the kernel would not.
    pub fn end(&self) -> io::Result<()> {
        // SAFETY: it takes integers only, and gives a descriptor that nobody else has.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid, 0) };
        let Ok(descriptor) = i32::try_from(descriptor).and_then(u32::try_from) else {
            return gone_is_well(io::Error::last_os_error());
        };
        // SAFETY: the kernel has just given it, to us alone.
        let process = unsafe { OwnedFd::from_raw_fd(descriptor.cast_signed()) };
        // The descriptor holds on to the process: what is true of its number now is true of it.
        if began_ticks(self.pid) != Some(self.began_ticks)
            || network_of(self.pid) != Some(self.network)
        {
            return Ok(());
        }
        // SAFETY: an open descriptor of a process, a signal, no information, no flags.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                std::os::fd::AsRawFd::as_raw_fd(&process),
                libc::SIGKILL,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        match sent {
            0 => Ok(()),
            _ => gone_is_well(io::Error::last_os_error()),
        }
    }
}

fn gone_is_well(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ESRCH) => Ok(()),
        _ => Err(error),
    }
}

/// The numbers of all processes.
pub(crate) fn all_pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The number of a process' network namespace, if it has one and we may know.
pub(crate) fn network_of(pid: i32) -> Option<u64> {
    fs::metadata(file_of(pid, "ns/net")).ok().map(|at| at.ino())
}

fn pid_namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").ok().map(|at| at.ino())
}

fn file_of(pid: i32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

fn owner_of(pid: i32) -> Option<Owner> {
    let environment = fs::read(file_of(pid, "environ")).ok()?;
    let value = environment
        .split(|&byte| byte == 0)
        .find_map(|variable| variable.strip_prefix(OWNER.as_bytes())?.strip_prefix(b"="))?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn command_of(pid: i32) -> String {
    let arguments = fs::read(file_of(pid, "cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&arguments).replace('\0', " ");
    text.trim().to_owned()
}

/// When a process began, in clock ticks since boot: the 22nd field of its `stat`. Its name, in
/// brackets, may hold anything. `None` also for one that has ended and was not waited for.
fn began_ticks(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(file_of(pid, "stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_read_as_it_is_written_and_is_alive_while_it_runs() {
        let own = Owner::of_network(77);
        assert!(own.began_ticks > 0 && own.pid_namespace > 0);
        assert_eq!(own.to_string().parse(), Ok(own));
        assert!(!own.has_ended());
        let reused = Owner {
            began_ticks: own.began_ticks - 1,
            ..own
        };
        assert!(
            reused.has_ended(),
            "the number now belongs to another process"
        );
        let elsewhere = Owner {
            pid_namespace: 1,
            ..reused
        };
        assert!(!elsewhere.has_ended(), "not seen from here");
        assert!("1:2:3".parse::<Owner>().is_err() && "1:2:3:4:5".parse::<Owner>().is_err());
    }
}
