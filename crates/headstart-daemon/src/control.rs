//! The control socket: for root alone, one request a connection, answered by the daemon's thread.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::daemon::{Message, now_ns};
use crate::protocol::{MAX_REQUEST_BYTES, Request, parse_request};

const SOCKET: &str = "control.sock";
/// Whoever says nothing is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Of an answer: a status with all rules is some KiB.
const MAX_ANSWER_BYTES: u64 = 4 << 20;

/// Why the daemon gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody listens.
    #[error(
        "no daemon answers at {}: {cause}; start it with `headstart run`, or name its folder with --run-dir",
        path.display()
    )]
    NoDaemon {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The answer is none.
    #[error("the daemon's answer cannot be read: {0}; see its log")]
    BadAnswer(String),
    /// The daemon would not.
    #[error("{0}")]
    Refused(String),
}

/// Asks the daemon whose folder is `run_dir`.
///
/// # Errors
/// [`ControlError`].
pub fn ask(run_dir: &Path, request: &Request) -> Result<Value, ControlError> {
    let path = run_dir.join(SOCKET);
    let no_daemon = |cause| ControlError::NoDaemon {
        path: path.clone(),
        cause,
    };
    let mut stream = UnixStream::connect(&path).map_err(no_daemon)?;
    let bad = |error: &dyn std::fmt::Display| ControlError::BadAnswer(error.to_string());
    let mut line = serde_json::to_vec(request).map_err(|error| bad(&error))?;
    line.push(b'\n');
    stream.write_all(&line).map_err(|error| bad(&error))?;
    let mut answer = String::new();
    stream
        .take(MAX_ANSWER_BYTES)
        .read_to_string(&mut answer)
        .map_err(|error| bad(&error))?;
    let mut answer: Value = serde_json::from_str(&answer).map_err(|error| bad(&error))?;
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(ControlError::Refused(error.to_owned())),
        None => Ok(answer["ok"].take()),
    }
}

/// The listening socket; its file goes with it.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    path: PathBuf,
}

impl ControlSocket {
    /// Listens in `run_dir`, which is made if it is not there, and brings requests to the daemon's thread.
    pub(crate) fn open(run_dir: &Path, to: Sender<Message>) -> io::Result<ControlSocket> {
        fs::create_dir_all(run_dir)?;
        let path = run_dir.join(SOCKET);
        if UnixStream::connect(&path).is_ok() {
            let text = "another daemon answers there; stop it first";
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Nobody else may connect, not even before the permissions are set.
        let before = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o177));
        let listener = UnixListener::bind(&path);
        nix::sys::stat::umask(before);
        let listener = listener?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        thread::Builder::new()
            .name("hs-control".to_owned())
            .spawn(move || {
                // One after the other: an operator asks, not a crowd.
                for stream in listener.incoming().flatten() {
                    if let Err(error) = serve(stream, &to) {
                        tracing::debug!("control socket: {error}");
                    }
                }
            })?;
        Ok(ControlSocket { path })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// What stands before the first newline or the end, but no more than tells that it is too long. All of it has to come in
/// time: a byte now and then does not keep others waiting.
fn read_line(mut stream: &UnixStream) -> io::Result<Vec<u8>> {
    let deadline_ns = now_ns().saturating_add(PATIENCE.as_nanos() as u64);
    let mut line = Vec::new();
    let mut some = [0; 512];
    loop {
        let left_ns = deadline_ns.saturating_sub(now_ns());
        if left_ns == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(Duration::from_nanos(left_ns)))?;
        let read = stream.read(&mut some)?;
        line.extend_from_slice(&some[..read]);
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            line.truncate(end);
            return Ok(line);
        }
        if read == 0 || line.len() > MAX_REQUEST_BYTES {
            return Ok(line);
        }
    }
}

fn serve(mut stream: UnixStream, to: &Sender<Message>) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let line = read_line(&stream)?;
    let answer = match parse_request(&line) {
        Ok(request) => {
            let (reply, answer) = channel();
            let asked = to.send(Message::Request(request, reply)).is_ok();
            let answer = asked
                .then(|| answer.recv_timeout(PATIENCE * 2).ok())
                .flatten();
            answer.unwrap_or_else(|| Err("the daemon is ending, or busy".to_owned()))
        }
        Err(error) => Err(error),
    };
    let answer = match answer {
        Ok(value) => json!({"ok": value}),
        Err(error) => json!({"error": error}),
    };
    stream.write_all(format!("{answer}\n").as_bytes())
}
