//! The client of a comparison: a real curl in the client's namespace.

use std::fs::OpenOptions;
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use headstart_path::Namespace;

use crate::error::CompareError;
use crate::run::Control;
use crate::server::{PORT, file_name, find_program};

const PROGRAM: &str = "curl";
/// One line a transfer: what we ask curl to tell.
const TELL: &str =
    "%{time_total} %{time_connect} %{num_connects} %{http_code} %{size_download} %{local_port}\\n";
const STEP: Duration = Duration::from_millis(10);
/// A transfer that takes longer than this is given up.
const TRANSFER_PATIENCE: Duration = Duration::from_secs(120);

/// What curl measured of one transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fetched {
    /// From curl's start on the transfer to the last byte.
    pub(crate) total_ms: f64,
    /// The handshake's part of it; 0 on a connection that was open.
    pub(crate) connect_ms: f64,
    /// Connections that curl opened for it.
    pub(crate) connects: u32,
    /// Bytes of the response's body.
    pub(crate) bytes: u64,
    /// The client's port.
    pub(crate) port: u16,
}

/// Where curl is, if it is installed.
pub(crate) fn find_curl() -> Result<PathBuf, CompareError> {
    find_program(PROGRAM).ok_or(CompareError::NoProgram {
        program: PROGRAM,
        package: "curl",
    })
}

/// A client on the path.
pub(crate) struct CurlClient<'a> {
    pub(crate) curl: &'a Path,
    pub(crate) namespace: &'a Namespace,
    pub(crate) server: IpAddr,
    pub(crate) control: &'a Control,
}

impl CurlClient<'_> {
    /// Fetches `bytes` on a fresh connection.
    pub(crate) fn fetch(&self, bytes: u64) -> Result<Fetched, CompareError> {
        let mut child = self.start(&[self.url(bytes)])?;
        let fetched = self.finish(&mut child)?;
        let last = fetched
            .last()
            .copied()
            .ok_or_else(|| failed("it told nothing".to_owned()))?;
        check(last, bytes, 1)
    }

    /// Fetches `warm_bytes`, rests for `idle`, and fetches `bytes` on the same connection.
    ///
    /// curl cannot rest by itself. It is given a FIFO to read between the two transfers, which we keep open for as
    /// long as it is to rest; that it opens it tells us that the first transfer is over.
    pub(crate) fn fetch_rest_fetch(
        &self,
        warm_bytes: u64,
        idle: Duration,
        bytes: u64,
    ) -> Result<Fetched, CompareError> {
        let directory = tempfile::Builder::new().prefix("headstart-curl-").tempdir();
        let directory = directory.map_err(|cause| CompareError::File {
            path: std::env::temp_dir(),
            cause,
        })?;
        let fifo = directory.path().join("rest");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).map_err(|errno| {
            CompareError::File {
                path: fifo.clone(),
                cause: errno.into(),
            }
        })?;
        let rest = format!("file://{}", fifo.display());
        let mut child = self.start(&[self.url(warm_bytes), rest, self.url(bytes)])?;
        self.hold_open(&fifo, idle, &mut child)?;
        let fetched = self.finish(&mut child)?;
        let [warm, _rest, measured] = fetched[..] else {
            return Err(failed(format!(
                "it told of {} transfers, not of 3",
                fetched.len()
            )));
        };
        check(warm, warm_bytes, 1)?;
        check(measured, bytes, 0)
    }

    fn url(&self, bytes: u64) -> String {
        let name = file_name(bytes);
        match self.server {
            IpAddr::V4(v4) => format!("http://{v4}:{PORT}/{name}"),
            IpAddr::V6(v6) => format!("http://[{v6}]:{PORT}/{name}"),
        }
    }

    fn start(&self, urls: &[String]) -> Result<Child, CompareError> {
        let mut command = Command::new(self.curl);
        // -q first: the user's own .curlrc is not part of the measurement.
        command.args([
            "-q",
            "--silent",
            "--show-error",
            "--fail",
            "--noproxy",
            "*",
            "--write-out",
            TELL,
        ]);
        for url in urls {
            command.args(["--output", "/dev/null"]).arg(url);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(self.namespace.spawn(command)?)
    }

    /// Waits until curl reads the FIFO, and lets it wait for `idle`.
    fn hold_open(
        &self,
        fifo: &Path,
        idle: Duration,
        child: &mut Child,
    ) -> Result<(), CompareError> {
        let deadline = Instant::now() + TRANSFER_PATIENCE;
        let file = loop {
            // Without a reader this fails at once: curl is still busy with its first transfer.
            let opened = OpenOptions::new()
                .write(true)
                .custom_flags(nix::libc::O_NONBLOCK)
                .open(fifo);
            match opened {
                Ok(file) => break file,
                Err(_) if matches!(child.try_wait(), Ok(None)) => {
                    self.pause(STEP, deadline, child)?;
                }
                // It has ended; `finish` says why.
                Err(_) => return Ok(()),
            }
        };
        let until = Instant::now() + idle;
        while Instant::now() < until {
            self.pause(
                STEP.min(until - Instant::now()),
                until + TRANSFER_PATIENCE,
                child,
            )?;
        }
        drop(file);
        Ok(())
    }

    fn finish(&self, child: &mut Child) -> Result<Vec<Fetched>, CompareError> {
        let deadline = Instant::now() + TRANSFER_PATIENCE;
        let status = loop {
            match child
                .try_wait()
                .map_err(|error| failed(error.to_string()))?
            {
                Some(status) => break status,
                None => self.pause(STEP, deadline, child)?,
            }
        };
        let mut told = String::new();
        let mut words = String::new();
        if let (Some(stdout), Some(stderr)) = (&mut child.stdout, &mut child.stderr) {
            stdout
                .read_to_string(&mut told)
                .map_err(|error| failed(error.to_string()))?;
            stderr
                .read_to_string(&mut words)
                .map_err(|error| failed(error.to_string()))?;
        }
        // The terminal interrupts curl as well.
        if self.control.stopped() {
            return Err(CompareError::Interrupted);
        }
        if !status.success() {
            return Err(failed(format!("{status}: {}", words.trim())));
        }
        told.lines()
            .map(|line| parse(line).ok_or_else(|| failed(format!("it told \"{line}\""))))
            .collect()
    }

    fn pause(
        &self,
        step: Duration,
        deadline: Instant,
        child: &mut Child,
    ) -> Result<(), CompareError> {
        let error = if self.control.stopped() {
            CompareError::Interrupted
        } else if Instant::now() > deadline {
            failed(format!(
                "no answer within {} s",
                TRANSFER_PATIENCE.as_secs()
            ))
        } else {
            sleep(step);
            return Ok(());
        };
        let _ = child.kill();
        let _ = child.wait();
        Err(error)
    }
}

fn failed(cause: String) -> CompareError {
    CompareError::Client {
        program: PROGRAM,
        cause,
    }
}

fn parse(line: &str) -> Option<Fetched> {
    let mut fields = line.split(' ');
    let seconds = |field: &str| field.parse::<f64>().ok().map(|seconds| seconds * 1000.0);
    let total_ms = seconds(fields.next()?)?;
    let connect_ms = seconds(fields.next()?)?;
    let connects = fields.next()?.parse().ok()?;
    let _http_code = fields.next()?;
    let bytes = fields.next()?.parse().ok()?;
    // -1 where there is no connection: the FIFO.
    let port: i32 = fields.next()?.parse().ok()?;
    let port = u16::try_from(port).unwrap_or(0);
    Some(Fetched {
        total_ms,
        connect_ms,
        connects,
        bytes,
        port,
    })
}

/// That it was what was asked for: all bytes, and on the connection that was meant.
fn check(fetched: Fetched, bytes: u64, connects: u32) -> Result<Fetched, CompareError> {
    if fetched.bytes != bytes {
        return Err(failed(format!("{} bytes came, not {bytes}", fetched.bytes)));
    }
    if fetched.connects != connects {
        return Err(failed(format!(
            "it opened {} connections for a transfer that was to open {connects}",
            fetched.connects
        )));
    }
    Ok(fetched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_curl_is_read_with_its_units() {
        let fetched = parse("0.435210 0.000000 0 200 51200 43210").unwrap();
        assert!((fetched.total_ms - 435.21).abs() < 1e-9);
        assert_eq!(
            (fetched.connects, fetched.bytes, fetched.port),
            (0, 51200, 43210)
        );
        assert_eq!(parse("10.000104 0.000000 0 000 0 -1").unwrap().port, 0);
        assert!(parse("curl: (7) Failed to connect").is_none());
    }

    #[test]
    fn a_transfer_on_the_wrong_connection_is_no_measurement() {
        let fetched = parse("0.4 0.2 1 200 51200 43210").unwrap();
        assert!(check(fetched, 51200, 1).is_ok());
        assert!(
            check(fetched, 51200, 0)
                .unwrap_err()
                .to_string()
                .contains("opened 1 connections")
        );
        assert!(check(fetched, 51201, 1).is_err());
    }
}
