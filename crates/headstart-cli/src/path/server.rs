//! The server on the other side: started by a shell, waited for, and heard when it fails.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, PipeReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use headstart_path::Namespace;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::command::Events;
use crate::failure::Failure;

/// How long a server may take until it listens.
const LISTEN_PATIENCE: Duration = Duration::from_secs(10);

/// How often its port is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How long it may take to end after SIGTERM; then it is killed with its namespace.
const TERMINATE_PATIENCE: Duration = Duration::from_secs(1);

/// How many lines of its output an error shows.
const LAST_LINES: usize = 10;

/// A running server.
pub(super) struct Server {
    line: String,
    shell: Child,
    output: Output,
}

/// What the server says: passed on to standard error, the last lines kept.
struct Output {
    last_lines: Arc<Mutex<VecDeque<String>>>,
    reader: JoinHandle<()>,
}

impl Output {
    fn follow(pipe: PipeReader) -> std::io::Result<Output> {
        let last_lines = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&last_lines);
        let reader = thread::Builder::new()
            .name("server output".to_owned())
            .spawn(move || {
                for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                    let line = String::from_utf8_lossy(&line).into_owned();
                    eprintln!("{line}");
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.push_back(line);
                    if kept.len() > LAST_LINES {
                        kept.pop_front();
                    }
                }
            })?;
        Ok(Output { last_lines, reader })
    }

    /// For a server that has ended: waits a moment for what is still in the pipe.
    fn last_words(&self) -> String {
        let deadline = Instant::now() + Duration::from_millis(200);
        while !self.reader.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        let last_lines = self
            .last_lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last_lines.is_empty() {
            return "it said nothing".to_owned();
        }
        let lines: Vec<&str> = last_lines.iter().map(String::as_str).collect();
        format!("its last words:\n  {}", lines.join("\n  "))
    }
}

impl Server {
    /// Starts the shell command in the namespace, in a process group of its own: Ctrl-C is for the
    /// command on the other side, the server ends after it.
    pub(super) fn start(
        namespace: &Namespace,
        line: &str,
        environment: &[(&'static str, String)],
    ) -> Result<Server, Failure> {
        let (reader, writer) = std::io::pipe().context("cannot make a pipe for the server")?;
        let mut shell = Command::new("sh");
        shell
            .args(["-c", line])
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(
                writer
                    .try_clone()
                    .context("cannot share the server's pipe")?,
            )
            .stderr(writer)
            .process_group(0);
        let shell = namespace.spawn(shell)?;
        let output = Output::follow(reader).context("cannot follow the server's output")?;
        Ok(Server {
            line: line.to_owned(),
            shell,
            output,
        })
    }

    /// Waits until something listens on `port`, or on any port if none is given. `Some` is the
    /// signal that came first.
    pub(super) fn wait_for_port(
        &mut self,
        namespace: &Namespace,
        port: Option<u16>,
        events: &Events,
    ) -> Result<Option<i32>, Failure> {
        let deadline = Instant::now() + LISTEN_PATIENCE;
        loop {
            let ports = namespace.listening_tcp_ports()?;
            if port.map_or(!ports.is_empty(), |port| ports.contains(&port)) {
                return Ok(None);
            }
            // One that ends well may have left a daemon behind, which is yet to listen.
            if let Some(status) = self.ended().filter(|status| !status.success()) {
                return Err(self.failed(&format!("ended before it listened ({status})")));
            }
            if Instant::now() > deadline {
                let wanted =
                    port.map_or("any TCP port".to_owned(), |port| format!("TCP port {port}"));
                let seconds = LISTEN_PATIENCE.as_secs();
                return Err(self.failed(&format!("does not listen on {wanted} after {seconds} s")));
            }
            if let Some(signal) = events.signal_within(LOOK_EVERY) {
                return Ok(Some(signal));
            }
        }
    }

    /// Asks the server to end and waits a moment. Says what was wrong if it had ended before.
    pub(super) fn end(mut self) -> Option<String> {
        if let Some(status) = self.ended().filter(|status| !status.success()) {
            let line = &self.line;
            return Some(format!(
                "server `{line}` ended before the command did ({status})"
            ));
        }
        let group = Pid::from_raw(self.shell.id().cast_signed());
        let deadline = Instant::now() + TERMINATE_PATIENCE;
        // Whatever outlives this is killed when the namespace is closed.
        if killpg(group, Signal::SIGTERM).is_ok() {
            while self.ended().is_none() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(2));
            }
        }
        None
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.shell.try_wait().ok().flatten()
    }

    fn failed(&self, how: &str) -> Failure {
        Failure::Run(anyhow!(
            "server `{}` {how}; {}",
            self.line,
            self.output.last_words()
        ))
    }
}
