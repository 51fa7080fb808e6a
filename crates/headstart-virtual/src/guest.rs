//! The guest's side: the first process of a virtual machine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};

use crate::job::{CODES, GuestCommand, JOB, OUT, Orders, PROGRESS, stderr_of, stdout_of};
use crate::mailbox::Mailbox;

/// How often the first process looks whether its command has ended, in the guest's own time.
const LOOK: Duration = Duration::from_millis(20);

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
                sleep(LOOK);
            }
            WaitStatus::Exited(pid, code) if pid == child => return Ok(code),
            WaitStatus::Signaled(pid, signal, _) if pid == child => {
                return Ok(128 + signal as i32);
            }
            _ => {}
        }
    }
}

fn naming(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
