//! The command on the client's side: checked, started, waited for, ended on a signal.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use headstart_path::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::process::{Ending, program_of};

/// How long a command that the terminal has interrupted may take to end by itself.
const INTERRUPT_PATIENCE: Duration = Duration::from_millis(500);

/// How long it may take after SIGTERM, before it is killed with everything else in its namespace.
const TERMINATE_PATIENCE: Duration = Duration::from_secs(2);

/// What may happen while the command runs.
enum Event {
    Signal(i32),
    Ended(io::Result<ExitStatus>),
}

/// Signals to this process and the end of the command, in the order in which they come.
pub(super) struct Events {
    sender: mpsc::Sender<Event>,
    events: mpsc::Receiver<Event>,
}

impl Events {
    /// From now on SIGINT, SIGTERM and SIGHUP are events and end nothing by themselves.
    pub(super) fn watch() -> io::Result<Events> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let (sender, events) = mpsc::channel();
        let signalled = sender.clone();
        // The thread ends with the process: there is nothing to clean up in it.
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for signal in signals.forever() {
                    if signalled.send(Event::Signal(signal)).is_err() {
                        break;
                    }
                }
            })?;
        Ok(Events { sender, events })
    }

    /// The signal that has come, or comes within `patience`.
    pub(super) fn signal_within(&self, patience: Duration) -> Option<i32> {
        match self.events.recv_timeout(patience) {
            Ok(Event::Signal(signal)) => Some(signal),
            Ok(Event::Ended(_)) | Err(_) => None,
        }
    }

    /// The end of the command, if it comes within `patience`; more signals are not heard.
    fn end_within(&self, patience: Duration) -> Option<io::Result<ExitStatus>> {
        match self.events.recv_timeout(patience) {
            Ok(Event::Ended(status)) => Some(status),
            Ok(Event::Signal(_)) => self.end_within(patience),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }
}

/// The command with our own standard streams; with its output on standard error where standard
/// output is for the results.
pub(super) fn prepare(command: &[OsString], output_to_stderr: bool) -> Result<Command, Failure> {
    let mut prepared = Command::new(program_of(command)?);
    prepared.args(&command[1..]);
    if output_to_stderr {
        let stderr = io::stderr().as_fd().try_clone_to_owned();
        prepared.stdout(Stdio::from(stderr.context("cannot share standard error")?));
    }
    Ok(prepared)
}

/// Starts the command and waits for its end, or for a signal to us, which ends it.
pub(super) fn run_to_end(
    namespace: &Namespace,
    command: Command,
    events: &Events,
    is_shell: bool,
) -> Result<Ending, Failure> {
    let mut child = namespace.spawn(command)?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let ended = events.sender.clone();
    thread::Builder::new()
        .name("wait".to_owned())
        .spawn(move || {
            // Nobody listens any more when we are past waiting.
            let _ = ended.send(Event::Ended(child.wait()));
        })
        .context("cannot start a thread to wait for the command")?;
    loop {
        match events
            .events
            .recv()
            .context("nothing waits for the command any more")?
        {
            Event::Ended(status) => {
                return Ok(Ending::of(status.context("cannot wait for the command")?));
            }
            // The terminal's interrupt is for what runs in the shell, and not for us.
            Event::Signal(SIGINT) if is_shell => {}
            Event::Signal(signal) => {
                // A terminal sends SIGINT to the command as well. Others may have told only us.
                let ended = signal == SIGINT && events.end_within(INTERRUPT_PATIENCE).is_some();
                if !ended && kill(pid, Signal::SIGTERM).is_ok() {
                    let _ = events.end_within(TERMINATE_PATIENCE);
                }
                return Ok(Ending::Signalled(signal));
            }
        }
    }
}
