//! A local server of the S3 protocol (moto, which scripts/setup.sh installs into build/tools), and what it holds.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its part of a private module"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The bucket that [`Server::start`] makes.
pub const BUCKET: &str = "logs";

/// Ends with the value.
pub struct Server {
    process: Child,
    pub at: SocketAddr,
}

/// `None`, and a line that says so, where the server is not installed.
pub fn program() -> Option<PathBuf> {
    let tools = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../build/tools");
    let program = tools.join("moto/bin/moto_server");
    if !program.exists() {
        // Past the test harness, which hides what passing tests print.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: there is no {}: scripts/setup.sh test installs it",
            program.display()
        );
        return None;
    }
    Some(program)
}

/// An address of loopback where nobody listens.
pub fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

impl Server {
    /// With the bucket [`BUCKET`]. `checked`: from then on it asks for credentials, and knows none.
    pub fn start(program: &std::path::Path, at: SocketAddr, checked: bool) -> Server {
        let mut command = Command::new(program);
        command
            .args(["-H", &at.ip().to_string(), "-p", &at.port().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if checked {
            command.env("INITIAL_NO_AUTH_ACTION_COUNT", "1");
        }
        let server = Server {
            process: command.spawn().unwrap(),
            at,
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(at).is_err() {
            assert!(Instant::now() < deadline, "the S3 server does not come up");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(server.make(BUCKET), 200);
        server
    }

    pub fn make(&self, bucket: &str) -> u16 {
        self.http("PUT", &format!("/{bucket}")).0
    }

    /// The names of all objects, in order.
    pub fn objects(&self) -> Vec<String> {
        let (status, body) = self.http("GET", &format!("/{BUCKET}?list-type=2"));
        assert_eq!(status, 200);
        let text = String::from_utf8(body).unwrap();
        let keys = text.split("<Key>").skip(1);
        let mut names: Vec<String> = keys
            .filter_map(|rest| rest.split_once("</Key>"))
            .map(|(key, _)| key.to_owned())
            .collect();
        names.sort();
        names
    }

    pub fn object(&self, name: &str) -> Vec<u8> {
        let (status, body) = self.http("GET", &format!("/{BUCKET}/{name}"));
        assert_eq!(status, 200, "{name}");
        body
    }

    /// HTTP 1.0: the answer ends with the connection, and comes in one piece.
    fn http(&self, verb: &str, path: &str) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(self.at).unwrap();
        // Whoever is somebody may read: it does not check who, unless it is told to.
        let somebody = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";
        let request = format!(
            "{verb} {path} HTTP/1.0\r\nHost: {}\r\nAuthorization: {somebody}\r\n\r\n",
            self.at
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer[end + 4..].to_vec())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
