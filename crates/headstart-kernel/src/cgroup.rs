//! Control groups of our own (cgroup v2): what runs in one is under our start-up, and can be ended as a whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::error::KernelError;

/// Our cgroups are called `headstart-PID-N`: whose they are can be told after a crash.
pub(crate) const NAME_PREFIX: &str = "headstart-";

/// How long the kernel may take to end the processes of a cgroup.
const KILL_PATIENCE: Duration = Duration::from_secs(2);
const KILL_STEP: Duration = Duration::from_millis(5);

/// A cgroup. Dropping it ends all processes in it and removes it.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    directory: File,
}

/// Where cgroup v2 is mounted, if it is.
pub(crate) fn mount_point() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let (_device, path, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(path.replace("\\040", " ")))
    })
}

/// The root of cgroup v2.
///
/// # Errors
/// [`KernelError::CannotHere`] where it is not mounted.
pub fn cgroup_root() -> Result<PathBuf, KernelError> {
    mount_point().ok_or_else(|| KernelError::CannotHere {
        missing: vec!["cgroup v2 is not mounted (mount -t cgroup2 none /sys/fs/cgroup)".to_owned()],
    })
}

impl Cgroup {
    /// Makes a new, empty cgroup.
    ///
    /// # Errors
    /// [`KernelError::CannotHere`] without cgroup v2; else why it cannot be made.
    pub fn create() -> Result<Cgroup, KernelError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let root = cgroup_root()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = root.join(format!("{NAME_PREFIX}{}-{number}", std::process::id()));
        let failed = |error: io::Error| {
            KernelError::operation(format!("making the cgroup {}", path.display()), error)
        };
        fs::create_dir(&path).map_err(failed)?;
        let directory = File::open(&path).map_err(failed)?;
        Ok(Cgroup { path, directory })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Whether any process lives in it.
    ///
    /// # Errors
    /// When the cgroup cannot be read.
    pub fn is_populated(&self) -> Result<bool, KernelError> {
        let events = fs::read_to_string(self.path.join("cgroup.events")).map_err(|error| {
            KernelError::operation(format!("reading the cgroup {}", self.path.display()), error)
        })?;
        Ok(events.lines().any(|line| line == "populated 1"))
    }

    /// Makes `command` start inside the cgroup.
    ///
    /// # Errors
    /// When the cgroup cannot be opened for it.
    pub fn enter(&self, command: &mut Command) -> Result<(), KernelError> {
        let procs = self.path.join("cgroup.procs");
        let mut file = fs::OpenOptions::new()
            .write(true)
            .open(&procs)
            .map_err(|error| {
                KernelError::operation(format!("opening {}", procs.display()), error)
            })?;
        // SAFETY: between fork and exec only write(2) is called, on a descriptor opened before; it allocates
        // nothing and takes no lock.
        unsafe {
            command.pre_exec(move || file.write_all(b"0"));
        }
        Ok(())
    }
}

/// Ends every process of the cgroup and removes it.
fn remove(path: &Path) -> io::Result<()> {
    // cgroup.kill is there from Linux 5.14 on.
    fs::write(path.join("cgroup.kill"), "1")?;
    let mut waited = Duration::ZERO;
    loop {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && waited < KILL_PATIENCE => {
                sleep(KILL_STEP);
                waited += KILL_STEP;
            }
            done => return done,
        }
    }
}

/// Removes a cgroup and lets its processes live: they move to the parent.
pub(crate) fn dissolve(path: &Path) -> io::Result<()> {
    let procs = path.join("cgroup.procs");
    let parent = path.parent().unwrap_or(path).join("cgroup.procs");
    // Again and again: a process may have forked meanwhile.
    for _ in 0..100 {
        let pids = fs::read_to_string(&procs)?;
        for pid in pids.lines() {
            match fs::write(&parent, pid) {
                // It has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(nix::libc::ESRCH) => {}
                moved => moved?,
            }
        }
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => sleep(KILL_STEP),
            done => return done,
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!("cannot remove the cgroup {}: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_a_cgroup_ends_what_runs_in_it_and_removes_it() {
        if mount_point().is_none() || !nix::unistd::geteuid().is_root() {
            eprintln!("SKIPPED: needs root and cgroup v2");
            return;
        }
        let cgroup = Cgroup::create().unwrap();
        let path = cgroup.path().to_owned();
        let mut command = Command::new("sleep");
        command.arg("60");
        cgroup.enter(&mut command).unwrap();
        let mut child = command.spawn().unwrap();
        let inside = fs::read_to_string(path.join("cgroup.procs")).unwrap();
        assert_eq!(inside.trim(), child.id().to_string());
        drop(cgroup);
        assert!(!child.wait().unwrap().success());
        assert!(!path.exists());
    }
}
