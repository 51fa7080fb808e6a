//! `headstart virtual`: a kernel in virtual time, fetched and run.

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use headstart_virtual::{
    GuestCommand, GuestFiles, INIT, Job, KernelImage, Machine, VirtualError, cache_dir, guest,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;
use crate::output;

/// Debian's kernel in an emulated machine whose clock counts instructions: every run of the same is the same, byte
/// for byte, however busy this machine is.
#[derive(Args)]
#[command(after_help = "Examples:
  headstart virtual fetch                                 get Debian's kernel with apt; nothing is installed
  headstart virtual run -- headstart doctor               what that kernel can do
  headstart virtual run --with trace.txt -- wc trace.txt  a program of this machine, and a file, in the guest
  headstart virtual run --out there -- sh -c 'cat /proc/version > /out/version'

`headstart compare --on virtual SCENARIO` compares start-ups there. Needs qemu-system-x86_64; no KVM, no root.")]
pub(crate) struct VirtualArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Get a kernel with apt, from the sources that are configured here, and unpack it into the cache.
    Fetch(FetchArgs),
    /// Run one command of this machine in the guest, as root, and pass its words and its exit code on.
    Run(RunArgs),
    /// The guest's first process.
    #[command(hide = true)]
    Guest,
}

#[derive(Args)]
struct FetchArgs {
    /// The Debian package of the kernel; without, the newest of this Debian release.
    #[arg(long, value_name = "LINUX-IMAGE-...")]
    package: Option<String>,
}

#[derive(Args)]
struct RunArgs {
    /// The beginning of the kernel's release; without, the newest that was fetched.
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// A file or program that the guest has as well, at the same place; may be given several times.
    #[arg(long = "with", value_name = "FILE")]
    with: Vec<PathBuf>,
    /// The folder for what the command leaves in the guest's /out.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(args: &VirtualArgs) -> Result<(), Failure> {
    match &args.what {
        What::Fetch(args) => fetch(args),
        What::Run(args) => run_in_guest(args),
        What::Guest => Err(Failure::Usage(guest::main().into())),
    }
}

fn fetch(args: &FetchArgs) -> Result<(), Failure> {
    let cache = cache_dir();
    let say = |what: &str| eprintln!("headstart: {what}");
    let image = KernelImage::fetch(&cache, args.package.as_deref(), say)?;
    output::print(&format!(
        "Linux {}, of {}, in {}",
        image.release(),
        image.origin(),
        cache.display()
    ))
}

fn run_in_guest(args: &RunArgs) -> Result<(), Failure> {
    let machine = machine(args.kernel.as_deref())?;
    let mut files = GuestFiles::new();
    for file in &args.with {
        let place = std::path::absolute(file).context("there is no current directory")?;
        files.program(file, place)?;
    }
    let (program, arguments) = args
        .command
        .split_first()
        .ok_or_else(|| Failure::Usage(anyhow!("no command given: write one after --")))?;
    let program = in_guest(&mut files, program)?;
    let mut command = GuestCommand::new([program]);
    command.argv.extend(arguments.iter().cloned());
    command.directory = here()?;
    let job = Job {
        commands: vec![command],
    };
    let stop = Interruption::watch()?;
    let finished = machine.run(&job, &files, |_| stop.look())?;
    let ended = finished
        .commands
        .first()
        .context("the guest told nothing of the command")?;
    if let Some(out) = &args.out {
        copy_folder(finished.out(), out)?;
    }
    let mut stderr = std::io::stderr();
    stderr
        .write_all(&ended.stderr)
        .context("cannot write to standard error")?;
    output::print(String::from_utf8_lossy(&ended.stdout).trim_end_matches('\n'))?;
    match ended.code {
        0 => Ok(()),
        code => Err(Failure::Command(u8::try_from(code).unwrap_or(u8::MAX))),
    }
}

/// A machine with this program in it, and the kernel that begins with `wanted`.
pub(crate) fn machine(wanted: Option<&str>) -> Result<Machine, Failure> {
    let image = KernelImage::find(&cache_dir(), wanted)?;
    let ourselves = std::env::current_exe().context("cannot find this program")?;
    Ok(Machine::new(image, ourselves)?)
}

/// Copies what is in a folder into another, which is made if it is not there.
fn copy_folder(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let entries = fs::read_dir(from).context("what the guest left cannot be read")?;
    for entry in entries {
        let entry = entry.context("what the guest left cannot be read")?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_folder(&from, &to)?;
        } else {
            fs::copy(&from, &to).with_context(|| format!("cannot write {}", to.display()))?;
        }
    }
    Ok(())
}

/// The current directory, where the guest's commands run as well: relative paths mean the same in their messages.
pub(crate) fn here() -> Result<String, Failure> {
    let here = std::env::current_dir().context("there is no current directory")?;
    Ok(here.to_string_lossy().into_owned())
}

/// Puts the program of this machine into the guest and gives its place there.
fn in_guest(files: &mut GuestFiles, program: &str) -> Result<String, Failure> {
    let ourselves = std::env::current_exe().ok();
    let found = which::which(program)
        .or_else(|error| match &ourselves {
            Some(path) if program == "headstart" => Ok(path.clone()),
            _ => Err(error),
        })
        .map_err(|_| {
            Failure::Usage(anyhow!(
                "command {program:?} does not exist or is not executable: name a program on the PATH, or the path to one"
            ))
        })?;
    let canonical = |path: &Path| path.canonicalize().ok();
    if ourselves.as_deref().and_then(canonical) == canonical(&found) {
        return Ok(INIT.to_owned());
    }
    let place = std::path::absolute(&found).context("there is no current directory")?;
    files.program(&found, &place)?;
    Ok(place.to_string_lossy().into_owned())
}

/// SIGINT, SIGTERM and SIGHUP, to be looked for.
pub(crate) struct Interruption {
    came: Arc<AtomicBool>,
}

impl Interruption {
    pub(crate) fn watch() -> Result<Interruption, Failure> {
        let came = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&came))
                .context("cannot watch for signals")?;
        }
        Ok(Interruption { came })
    }

    pub(crate) fn look(&self) -> ControlFlow<()> {
        if self.came.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl From<VirtualError> for Failure {
    fn from(error: VirtualError) -> Failure {
        if let VirtualError::Interrupted = error {
            eprintln!("headstart: {error}");
            return Failure::Command(130);
        }
        if error.cannot_here() {
            Failure::CannotHere(error.into())
        } else {
            Failure::Run(error.into())
        }
    }
}
