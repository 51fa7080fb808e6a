//! The guest's side: the first process of a virtual machine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::mem;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};

use crate::job::{CODES, GuestCommand, JOB, OUT, Orders, PROGRESS, stderr_of, stdout_of};
use crate::mailbox::Mailbox;

/// How often the first process tells how far its command is, in ms of the guest's own time. Each time wakes a guest
/// that may be waiting, which costs the host more than the look: 20 ms were a tenth of a run that waits much.
const LOOK_MS: u16 = 500;

/// The rest of its file system is the initramfs, which can be written to.
const MOUNTS: [(&str, &str, &str); 5] = [
    ("proc", "/proc", "proc"),
    ("sysfs", "/sys", "sysfs"),
    ("devtmpfs", "/dev", "devtmpfs"),
    ("cgroup2", "/sys/fs/cgroup", "cgroup2"),
    ("bpf", "/sys/fs/bpf", "bpf"),
];

/// Carries out the job in the guest's file system, hands over what came of it, and switches the machine off. Returns
/// only where it is not the first process of a virtual machine.
pub fn main() -> io::Error {
    if getpid() != Pid::from_raw(1) {
        return io::Error::other("this is for the first process of a virtual machine only");
    }
    if let Err(error) = carry_out() {
        // The console; the host shows it because there is no archive.
        eprintln!("headstart: {error}");
    }
    match reboot(RebootMode::RB_POWER_OFF) {
        Ok(never) => match never {},
        Err(errno) => errno.into(),
    }
}

fn carry_out() -> io::Result<()> {
    for (what, place, kind) in MOUNTS {
        fs::create_dir_all(place)?;
        mount(
            Some(what),
            place,
            Some(kind),
            MsFlags::empty(),
            None::<&str>,
        )
        .map_err(|errno| naming(place, errno.into()))?;
    }
    bring_up_loopback().map_err(|error| naming("lo", error))?;
    let orders: Orders = serde_json::from_slice(&fs::read(JOB)?)?;
    for module in &orders.modules {
        load(Path::new(module)).map_err(|error| naming(module, error))?;
    }
    let mut mailbox = Mailbox::find()?;
    let mut codes = Vec::new();
    for (number, command) in orders.job.commands.iter().enumerate() {
        let code = run(number, command, &mailbox)
            .map_err(|error| naming(command.argv.first().map_or("", String::as_str), error))?;
        codes.push(code);
    }
    fs::write(Path::new(OUT).join(CODES), serde_json::to_vec(&codes)?)?;
    mailbox.send(Path::new(OUT))
}

/// As on any machine: the kernel makes the device, and somebody has to switch it on.
fn bring_up_loopback() -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: an ifreq is made of integers, for which zero is valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(*b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    // SAFETY: the request is a live ifreq, which the operation reads.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn load(module: &Path) -> io::Result<()> {
    finit_module(File::open(module)?, c"", ModuleInitFlags::empty())?;
    Ok(())
}

/// Runs one command to its end, with its words in files, and gives its exit code as a shell does.
fn run(number: usize, command: &GuestCommand, mailbox: &Mailbox) -> io::Result<i32> {
    let Some((program, arguments)) = command.argv.split_first() else {
        return Err(io::Error::other("a command without a program"));
    };
    fs::create_dir_all(&command.directory)?;
    let environment: BTreeMap<&str, &str> = [
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ),
        ("HOME", "/root"),
        ("LC_ALL", "C"),
    ]
    .into_iter()
    .chain(
        command
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    )
    .collect();
    let ends = ends_of_children()?;
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment)
        .current_dir(&command.directory)
        .stdin(Stdio::null())
        .stdout(File::create(Path::new(OUT).join(stdout_of(number)))?)
        .stderr(File::create(Path::new(OUT).join(stderr_of(number)))?)
        .spawn()?;
    let child = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    loop {
        // All that has ended: the first process inherits the children of others.
        match waitpid(None, Some(WaitPidFlag::WNOHANG))? {
            WaitStatus::StillAlive => {
                if let Some(progress) = fs::read_to_string(PROGRESS)
                    .ok()
                    .and_then(|text| text.trim().parse().ok())
                {
                    mailbox.tell_progress(progress);
                }
                let mut ended = [PollFd::new(ends.as_fd(), PollFlags::POLLIN)];
                poll(&mut ended, LOOK_MS)?;
                while ends.read_signal()?.is_some() {}
            }
            WaitStatus::Exited(pid, code) if pid == child => return Ok(code),
            WaitStatus::Signaled(pid, signal, _) if pid == child => {
                return Ok(128 + signal as i32);
            }
            _ => {}
        }
    }
}

/// Can be read when a child has ended.
fn ends_of_children() -> io::Result<SignalFd> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    // Not for the children: std gives them an empty mask.
    signals.thread_block()?;
    Ok(SignalFd::with_flags(
        &signals,
        SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
    )?)
}

fn naming(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
