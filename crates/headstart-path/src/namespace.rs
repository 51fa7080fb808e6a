//! A network namespace without a name: held by a descriptor and a thread, gone with the process.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};

use crate::error::PathError;
use crate::hosts::HostId;
use crate::leftovers::{self, OWNER, Owner};
use crate::tun::{TUN_NAME, Tun};

mod setup;

pub(crate) use setup::MTU_BYTES;
use setup::{Made, enter_new, failed, write_sysctl};

/// How long processes that were killed may take to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// The stack of a thread that only moves bytes.
const THREAD_STACK_BYTES: usize = 256 * 1024;

type Job = Box<dyn FnOnce() + Send>;

/// One host of an emulated path.
#[derive(Debug)]
pub struct Namespace {
    host: HostId,
    addr_v4: Ipv4Addr,
    addr_v6: Ipv6Addr,
    tun_ifindex: u32,
    /// The number by which `/proc/PID/ns/net` names it.
    inode: u64,
    alive: Option<Alive>,
}

/// What exists until the emulation stops.
#[derive(Debug)]
struct Alive {
    namespace: OwnedFd,
    /// Jobs for the holder thread, which lives in the namespace as long as this sender.
    jobs: mpsc::Sender<Job>,
    holder: JoinHandle<()>,
}

/// A namespace that its holder thread is making.
pub(crate) struct Beginning {
    host: HostId,
    lane: u8,
    made: mpsc::Receiver<Result<Made, PathError>>,
    jobs: mpsc::Sender<Job>,
    holder: JoinHandle<()>,
}

impl Beginning {
    /// Waits until it is made. The device's packets are the caller's to carry.
    pub(crate) fn finish(self) -> Result<(Namespace, Tun, Vec<String>), PathError> {
        let Beginning {
            host, lane, jobs, ..
        } = self;
        let made = self.made.recv().map_err(|_| PathError::RouterDied)??;
        let inode = made
            .namespace
            .metadata()
            .map_err(failed(host, "identify it"))?
            .ino();
        let (addr_v4, addr_v6) = host.addresses(lane);
        let namespace = Namespace {
            host,
            addr_v4,
            addr_v6,
            tun_ifindex: made.tun_ifindex,
            inode,
            alive: Some(Alive {
                namespace: made.namespace.into(),
                jobs,
                holder: self.holder,
            }),
        };
        Ok((namespace, made.tun, made.warnings))
    }
}

impl Namespace {
    /// Begins to make the namespace of a host, with its TUN device. Its programs find the other
    /// hosts by the lines of `hosts_file`.
    pub(crate) fn begin(host: HostId, lane: u8, hosts_file: &str) -> Result<Beginning, PathError> {
        let (made_here, made) = mpsc::channel();
        let (jobs, jobs_here) = mpsc::channel::<Job>();
        let hosts_file = hosts_file.to_owned();
        let holder = thread::Builder::new()
            .name(format!("hs-{host}-{lane}"))
            .spawn(move || {
                let _ = made_here.send(enter_new(host, lane, &hosts_file));
                jobs_here.into_iter().for_each(|job| job());
            })
            .map_err(|cause| failed(host, "start its thread")(cause))?;
        Ok(Beginning {
            host,
            lane,
            made,
            jobs,
            holder,
        })
    }

    /// Which host it is.
    #[must_use]
    pub fn host(&self) -> HostId {
        self.host
    }

    /// The emulation's lane.
    #[must_use]
    pub fn lane(&self) -> u8 {
        self.addr_v4.octets()[2]
    }

    /// Where other programs of root can enter it (`nsenter --net=PATH`), while it exists.
    ///
    /// # Errors
    /// [`PathError::Stopped`].
    pub fn entrance(&self) -> Result<String, PathError> {
        let descriptor = self.alive()?.namespace.as_raw_fd();
        Ok(format!("/proc/{}/fd/{descriptor}", std::process::id()))
    }

    /// Its IPv4 address on the path.
    #[must_use]
    pub fn addr_v4(&self) -> Ipv4Addr {
        self.addr_v4
    }

    /// Its IPv6 address on the path.
    #[must_use]
    pub fn addr_v6(&self) -> Ipv6Addr {
        self.addr_v6
    }

    /// The number of its end of the path, the device `tun0`; valid inside the namespace.
    #[must_use]
    pub fn tun_ifindex(&self) -> u32 {
        self.tun_ifindex
    }

    /// The number by which `/proc/PID/ns/net` names it: `net:[NUMBER]`.
    #[must_use]
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Runs `job` in a fresh thread inside the namespace and waits for it. Sockets made there stay
    /// in the namespace, wherever they are used afterwards.
    ///
    /// # Errors
    /// [`PathError::Stopped`], or the thread could not be started or not enter.
    ///
    /// # Panics
    /// When `job` does.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> Result<T, PathError> {
        let namespace = self.alive()?.namespace.as_fd();
        let inside = || setns(namespace, CloneFlags::CLONE_NEWNET).map(|()| job());
        thread::scope(|scope| {
            let thread = thread::Builder::new()
                .name("hs-job".to_owned())
                .spawn_scoped(scope, inside)
                .map_err(failed(self.host, "start a thread in it"))?;
            match thread.join() {
                Ok(done) => done.map_err(|errno| failed(self.host, "enter it")(errno.into())),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Starts a thread that lives in the namespace: every socket that it makes is there.
    ///
    /// # Errors
    /// [`PathError::Stopped`], or the thread could not be started or not enter.
    pub fn start_thread<T: Send + 'static>(
        &self,
        name: &str,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<Option<T>>, PathError> {
        let namespace = self.alive()?.namespace.try_clone();
        let namespace = namespace.map_err(failed(self.host, "share it"))?;
        let (entered_here, entered) = mpsc::channel();
        let inside = move || {
            let entry = setns(&namespace, CloneFlags::CLONE_NEWNET);
            drop(namespace);
            let may_go_on = entry.is_ok();
            let _ = entered_here.send(entry);
            may_go_on.then(job)
        };
        let outer = thread::Builder::new()
            .name(name.to_owned())
            // They hold sockets and counters, no more.
            .stack_size(THREAD_STACK_BYTES)
            .spawn(inside)
            .map_err(failed(self.host, "start a thread in it"))?;
        match entered.recv() {
            Ok(Ok(())) => Ok(outer),
            Ok(Err(errno)) => Err(failed(self.host, "enter it")(errno.into())),
            Err(_) => Err(PathError::RouterDied),
        }
    }

    /// Starts `command` inside the namespace. It finds the hosts by name. It is killed when the emulation stops or this process
    /// dies, however it dies.
    ///
    /// # Errors
    /// [`PathError::Command`] when it cannot be started, or [`PathError::Stopped`].
    pub fn spawn(&self, mut command: Command) -> Result<Child, PathError> {
        let alive = self.alive()?;
        command.env(OWNER, Owner::of_network(self.inode).to_string());
        let program = command.get_program().to_string_lossy().into_owned();
        die_with_parent(&mut command);
        // The holder thread does it: the kernel sends the death signal when the thread that
        // started the child ends, and the holder ends with the emulation and not before.
        let (spawned_here, spawned) = mpsc::channel();
        let job = move || drop(spawned_here.send(command.spawn()));
        alive
            .jobs
            .send(Box::new(job))
            .map_err(|_| PathError::Stopped)?;
        let child = spawned.recv().map_err(|_| PathError::Stopped)?;
        child.map_err(|cause| PathError::Command {
            namespace: self.host,
            program,
            cause,
        })
    }

    /// Prepares `command` to run inside the namespace when the caller starts it. It is killed when
    /// the *thread* that starts it ends; [`Namespace::spawn`] has no such snare.
    ///
    /// # Errors
    /// [`PathError::Stopped`], or no descriptor was left for the namespace.
    pub fn command(&self, command: &mut Command) -> Result<(), PathError> {
        let namespace = self
            .alive()?
            .namespace
            .try_clone()
            .map_err(failed(self.host, "share it"))?;
        let enter = move || Ok(setns(&namespace, CloneFlags::CLONE_NEWNET)?);
        command.env(OWNER, Owner::of_network(self.inode).to_string());
        // SAFETY: between fork and exec it makes one system call and allocates nothing.
        unsafe { command.pre_exec(enter) };
        die_with_parent(command);
        Ok(())
    }

    /// Sets a kernel setting such as `net.ipv4.tcp_congestion_control`, in this namespace only.
    /// The kernel has no machine-wide settings inside a namespace, so none can be hit by mistake.
    ///
    /// # Errors
    /// [`PathError::Sysctl`] when there is no such setting here or the kernel refuses the value.
    pub fn set_sysctl(&self, name: &str, value: &str) -> Result<(), PathError> {
        self.run(|| write_sysctl(self.host, name, value))?
    }

    /// The TCP ports on which something listens, IPv4 and IPv6, sorted.
    ///
    /// # Errors
    /// As [`Namespace::run`], or the kernel's table could not be read.
    pub fn listening_tcp_ports(&self) -> Result<Vec<u16>, PathError> {
        let tables = self.run(|| {
            // Not /proc/net, which shows the namespace of the process' first thread.
            let v6 = fs::read_to_string("/proc/thread-self/net/tcp6").unwrap_or_default();
            fs::read_to_string("/proc/thread-self/net/tcp").map(|v4| v4 + &v6)
        })?;
        let tables = tables.map_err(failed(self.host, "read its table of TCP sockets"))?;
        let mut ports: Vec<u16> = tables.lines().filter_map(listening_port).collect();
        ports.sort_unstable();
        ports.dedup();
        Ok(ports)
    }

    /// Packets that the TUN device dropped because they were not read in time.
    pub(crate) fn tun_dropped_pkts(&self) -> Result<u64, PathError> {
        let table = self.run(|| fs::read_to_string("/proc/thread-self/net/dev"))?;
        let table = table.map_err(failed(self.host, "read its device counters"))?;
        Ok(table.lines().find_map(transmit_drops).unwrap_or(0))
    }

    /// Ends the holder thread and lets go of the namespace. What runs inside has been killed by
    /// [`kill_processes`].
    pub(crate) fn close(&mut self) {
        let Some(Alive {
            namespace,
            jobs,
            holder,
        }) = self.alive.take()
        else {
            return;
        };
        drop(jobs);
        // A job that panicked has already told its caller, by dropping the answer.
        let _ = holder.join();
        drop(namespace);
    }

    fn alive(&self) -> Result<&Alive, PathError> {
        self.alive.as_ref().ok_or(PathError::Stopped)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.alive.is_some() {
            kill_processes(&[&*self]);
            self.close();
        }
    }
}

/// Kills every process inside the namespaces, and waits a moment until they are gone.
pub(crate) fn kill_processes(namespaces: &[&Namespace]) {
    for namespace in namespaces {
        // Connections that nobody will answer any more hold the namespace in the kernel, without
        // this for two minutes. That it cannot be set costs only time.
        let _ = namespace.set_sysctl("net.ipv4.tcp_orphan_retries", "1");
    }
    let inodes: Vec<u64> = namespaces.iter().map(|namespace| namespace.inode).collect();
    let deadline = Instant::now() + KILL_PATIENCE;
    while kill_all_inside(&inodes) > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(2));
    }
}

/// Sends SIGKILL to every process inside, and says how many there were. One that has ended but was
/// not waited for is in no namespace any more.
fn kill_all_inside(inodes: &[u64]) -> usize {
    let own = std::process::id().cast_signed();
    let inside = leftovers::all_pids().filter(|&pid| {
        pid != own && leftovers::network_of(pid).is_some_and(|inode| inodes.contains(&inode))
    });
    inside
        .filter(|&pid| kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok())
        .count()
}

/// Has the kernel kill the child when the thread that starts it ends.
fn die_with_parent(command: &mut Command) {
    let parent = Pid::this();
    let prepare = move || {
        set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have died before the line above.
        if getppid() == parent {
            Ok(())
        } else {
            Err(Errno::ESRCH.into())
        }
    };
    // SAFETY: between fork and exec it makes two system calls and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// The local port of a line of `/proc/net/tcp` whose socket listens (state 0A).
fn listening_port(line: &str) -> Option<u16> {
    let mut columns = line.split_ascii_whitespace().skip(1);
    let (local, state) = (columns.next()?, columns.nth(1)?);
    let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
    (state == "0A").then_some(port)
}

/// The transmit drops of the TUN device in its line of `/proc/net/dev`.
fn transmit_drops(line: &str) -> Option<u64> {
    let (device, columns) = line.split_once(':')?;
    // Eight columns of receive counters, then bytes, packets, errors, drops.
    let drops = columns.split_ascii_whitespace().nth(11)?;
    if device.trim() == TUN_NAME {
        drops.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_sockets_count() {
        let listening = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 0";
        let connected = "   1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 0";
        let v6 =
            "   0: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A";
        assert_eq!(listening_port(listening), Some(8080));
        assert_eq!(listening_port(connected), None);
        assert_eq!(listening_port(v6), Some(80));
        assert_eq!(
            listening_port("  sl  local_address rem_address   st tx_queue"),
            None
        );
    }

    #[test]
    fn the_drops_of_the_tun_device_are_found() {
        let line = "  tun0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16";
        assert_eq!(transmit_drops(line), Some(12));
        assert_eq!(transmit_drops(&line.replace("tun0", "lo")), None);
        assert_eq!(transmit_drops(" face |bytes    packets errs drop"), None);
    }
}
