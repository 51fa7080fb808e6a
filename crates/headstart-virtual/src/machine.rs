//! The virtual machine: qemu, with a clock that counts instructions.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::error::VirtualError;
use crate::files::GuestFiles;
use crate::image::KernelImage;
use crate::job::{CODES, JOB, Job, Orders, stderr_of, stdout_of};
use crate::mailbox::{MAILBOX_BYTES, Mailbox};
use crate::place::Place;

const QEMU: &str = "qemu-system-x86_64";

/// The guest's memory; the initramfs is in it twice while it is unpacked.
const MEMORY_MIB: u32 = 2048;

/// How often the machine is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// The lines of its console that an error shows.
const CONSOLE_LINES: usize = 20;

/// Where the program that is the guest's first process lies in the guest; commands may name it as well.
pub const INIT: &str = "/headstart-init";

/// A virtual machine that can be started.
#[derive(Debug)]
pub struct Machine {
    qemu: PathBuf,
    image: KernelImage,
    init: PathBuf,
}

/// What a job's commands did.
#[derive(Debug)]
pub struct Finished {
    /// How each command ended, in the job's order.
    pub commands: Vec<Ended>,
    out: TempDir,
}

/// How one command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; 128 and the number of the signal that ended it.
    pub code: i32,
    /// What it printed on standard output.
    pub stdout: Vec<u8>,
    /// What it printed on standard error.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// The copy of the guest's [`crate::OUT`]; gone with this value.
    #[must_use]
    pub fn out(&self) -> &Path {
        self.out.path()
    }
}

impl Machine {
    /// A machine with this kernel. `init` is the program that the guest starts, with the arguments `virtual guest`, and
    /// which then has to call [`crate::guest::main`].
    ///
    /// # Errors
    /// [`VirtualError::NoProgram`] or [`VirtualError::NotX86`]: it cannot be had here.
    pub fn new(image: KernelImage, init: PathBuf) -> Result<Machine, VirtualError> {
        if std::env::consts::ARCH != "x86_64" {
            return Err(VirtualError::NotX86 {
                arch: std::env::consts::ARCH,
            });
        }
        let qemu = which::which(QEMU).map_err(|_| VirtualError::NoProgram {
            program: QEMU.to_owned(),
            package: "qemu-system-x86",
        })?;
        Ok(Machine { qemu, image, init })
    }

    /// Boots, carries out the job and switches off. `look` is called every now and then with what the commands tell of
    /// their progress, and may end it.
    ///
    /// # Errors
    /// [`VirtualError::Interrupted`], or [`VirtualError::Guest`] with the last lines of the console. Nothing runs and
    /// no file is left in either case.
    pub fn run(
        &self,
        job: &Job,
        files: &GuestFiles,
        mut look: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Finished, VirtualError> {
        let temporary = std::env::temp_dir();
        let work = tempfile::Builder::new()
            .prefix("headstart-virtual-")
            .tempdir()
            .map_err(VirtualError::file(&temporary))?;
        let [initramfs, shared, console, words] =
            ["initramfs", "mailbox", "console", "qemu"].map(|name| work.path().join(name));
        self.write_initramfs(&initramfs, job, files)?;
        let mailbox = Mailbox::create(&shared).map_err(VirtualError::file(&shared))?;
        let stderr = File::create(&words).map_err(VirtualError::file(&words))?;
        let place = Place::take();
        let mut command = self.command(&initramfs, &shared, &console, place.cpu);
        command.stderr(stderr);
        let mut running = Running(command.spawn().map_err(VirtualError::file(&self.qemu))?);
        let status = loop {
            if let Some(status) = running.0.try_wait().map_err(VirtualError::file(QEMU))? {
                break status;
            }
            if look(mailbox.progress()).is_break() {
                return Err(VirtualError::Interrupted);
            }
            sleep(LOOK);
        };
        // The terminal interrupts qemu as well.
        if look(mailbox.progress()).is_break() {
            return Err(VirtualError::Interrupted);
        }
        let failed = |cause: String| VirtualError::Guest {
            release: self.image.release().to_owned(),
            cause,
            console: tail(&console),
        };
        let out = tempfile::Builder::new()
            .prefix("headstart-virtual-out-")
            .tempdir()
            .map_err(VirtualError::file(&temporary))?;
        match mailbox.receive(out.path()) {
            Ok(true) => {}
            Ok(false) => return Err(failed(format!("qemu ended ({status}) {}", tail(&words)))),
            Err(error) => return Err(failed(format!("what it sent cannot be read: {error}"))),
        }
        let commands = ended(out.path(), job.commands.len()).map_err(failed)?;
        Ok(Finished { commands, out })
    }

    fn write_initramfs(
        &self,
        path: &Path,
        job: &Job,
        files: &GuestFiles,
    ) -> Result<(), VirtualError> {
        let mut files = files.clone();
        files.program(&self.init, INIT)?;
        let mut modules = Vec::new();
        for module in self.image.modules() {
            let name = module
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let guest = format!("/modules/{name}");
            files.copy(&module, &guest)?;
            modules.push(guest);
        }
        let orders = Orders {
            modules,
            job: job.clone(),
        };
        let text = serde_json::to_vec_pretty(&orders).map_err(|error| VirtualError::File {
            path: JOB.into(),
            cause: error.into(),
        })?;
        files.bytes(JOB, text);
        let file = File::create(path).map_err(VirtualError::file(path))?;
        files.write(BufWriter::new(file))
    }

    /// What makes it repeatable: one CPU of a fixed model, whose clock advances by 1 ns an instruction and jumps to
    /// the next timer where the guest would wait; no device whose answers take time of this machine; all random
    /// numbers from a fixed seed; a fixed date.
    fn command(
        &self,
        initramfs: &Path,
        shared: &Path,
        console: &Path,
        cpu: Option<CpuSet>,
    ) -> Command {
        // In an option's value qemu takes a comma for the end.
        let value = |path: &Path| path.to_string_lossy().replace(',', ",,");
        let mut command = Command::new(&self.qemu);
        command
            .args([
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-no-reboot",
            ])
            .args([
                "-M",
                "q35",
                "-accel",
                "tcg,thread=single",
                "-cpu",
                "qemu64",
                "-smp",
                "1",
            ])
            .args(["-m", &MEMORY_MIB.to_string()])
            .args([
                "-icount",
                "shift=0,sleep=off",
                "-rtc",
                "base=2026-01-01,clock=vm",
            ])
            .args(["-seed", "1"])
            .args(["-serial", &format!("file:{}", value(console))])
            .arg("-object")
            .arg(format!(
                "memory-backend-file,id=mailbox,share=on,size={MAILBOX_BYTES},mem-path={}",
                value(shared)
            ))
            .args(["-device", "ivshmem-plain,memdev=mailbox"])
            .arg("-kernel")
            .arg(self.image.vmlinux())
            .arg("-initrd")
            .arg(initramfs)
            .arg("-append")
            .arg(format!(
                "console=ttyS0 panic=-1 quiet loglevel=3 rdinit={INIT} -- virtual guest"
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        // SAFETY: between fork and exec it only makes system calls. It does not outlive us, whatever ends us.
        unsafe {
            command.pre_exec(move || {
                set_pdeathsig(Signal::SIGKILL)?;
                give_main_thread_precedence(cpu.as_ref())
            });
        }
        command
    }
}

/// Puts qemu on one CPU, its main thread before the thread that executes the guest.
///
/// Where the guest waits, qemu's main thread lets the clock jump to the next timer, from the last known count of
/// instructions, and it looks whether the guest waits without a lock (`icount_start_warp_timer`, qemu 7.2). If it does so
/// between the guest's HLT and the account of what was executed before it, the jump is too long by some microseconds. On
/// two CPUs that was seen in one of twelve runs on a loaded machine. It looks after each event, all of which the guest
/// causes: a main thread that takes the CPU at once has looked before the guest goes on.
///
/// Without root the precedence is refused; the rare jump remains.
fn give_main_thread_precedence(cpu: Option<&CpuSet>) -> io::Result<()> {
    if let Some(cpu) = cpu {
        sched_setaffinity(Pid::from_raw(0), cpu)?;
    }
    let parameters = libc::sched_param { sched_priority: 1 };
    // The threads that it makes are ordinary ones again.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread, and the parameters outlive the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    Ok(())
}

/// The machine is switched off when this goes.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ended(out: &Path, number: usize) -> Result<Vec<Ended>, String> {
    let read = |name: String| {
        let content = fs::read(out.join(&name)).map_err(|error| format!("{name}: {error}"));
        // They are not part of what the commands left.
        let _ = fs::remove_file(out.join(&name));
        content
    };
    let codes: Vec<i32> =
        serde_json::from_slice(&read(CODES.to_owned())?).map_err(|error| error.to_string())?;
    if codes.len() != number {
        return Err(format!(
            "it told how {} of {number} commands ended",
            codes.len()
        ));
    }
    codes
        .into_iter()
        .enumerate()
        .map(|(command, code)| {
            Ok(Ended {
                code,
                stdout: read(stdout_of(command))?,
                stderr: read(stderr_of(command))?,
            })
        })
        .collect()
}

fn tail(file: &Path) -> String {
    let content = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&content);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
}
