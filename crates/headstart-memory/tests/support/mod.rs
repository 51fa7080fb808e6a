//! A store of one's own, on a free port of the loopback device.

mod server;
mod table;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub(crate) use server::Server;

/// As `make test` counts them.
pub(crate) fn skipped() -> bool {
    if which("redis-server") && which("openssl") {
        return false;
    }
    println!(
        "SKIPPED: redis-server or openssl is not there (Debian: apt-get install redis-server openssl)"
    );
    true
}

fn which(program: &str) -> bool {
    let run = Command::new(program).arg("--version").output();
    run.is_ok()
}

pub(crate) struct Store {
    port: u16,
    options: Vec<String>,
    dir: tempfile::TempDir,
    process: Child,
    tls: bool,
    password: Option<&'static str>,
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl Store {
    pub(crate) fn start() -> Store {
        Store::with(&[], None, false)
    }

    pub(crate) fn with_password(password: &'static str) -> Store {
        Store::with(&["--requirepass", password], Some(password), false)
    }

    /// With a certificate that an authority of its own has signed, and no port without TLS.
    pub(crate) fn with_tls() -> Store {
        Store::with(&[], None, true)
    }

    fn with(options: &[&str], password: Option<&'static str>, tls: bool) -> Store {
        let dir = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut all: Vec<String> = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]
            .map(str::to_owned)
            .to_vec();
        all.extend(["--dir".to_owned(), dir.path().display().to_string()]);
        all.extend(options.iter().map(|option| (*option).to_owned()));
        let number = port.to_string();
        if tls {
            certify(dir.path());
            let file = |name: &str| dir.path().join(name).display().to_string();
            all.extend([
                "--port".to_owned(),
                "0".to_owned(),
                "--tls-port".to_owned(),
                number,
            ]);
            all.extend(["--tls-cert-file".to_owned(), file("server.pem")]);
            all.extend(["--tls-key-file".to_owned(), file("server.key")]);
            all.extend(["--tls-ca-cert-file".to_owned(), file("ca.pem")]);
            all.extend(["--tls-auth-clients".to_owned(), "no".to_owned()]);
        } else {
            all.extend(["--port".to_owned(), number]);
        }
        let process = spawn(&all);
        let store = Store {
            port,
            options: all,
            dir,
            process,
            tls,
            password,
        };
        store.wait();
        store
    }

    fn wait(&self) {
        let answers = || std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok();
        assert!(eventually(answers), "redis-server does not listen");
    }

    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let login = self.password.map(|word| format!(":{word}@"));
        let login = login.unwrap_or_default();
        // The certificate names the host.
        format!("{scheme}://{login}127.0.0.1:{}/0", self.port)
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().cast_signed()), signal).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Another process on the same port, which knows nothing.
    pub(crate) fn start_again(&mut self) {
        self.process = spawn(&self.options);
        self.wait();
    }

    pub(crate) fn say(&self, words: &[&str]) -> redis::Value {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_connection().unwrap();
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut connection).unwrap()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(options: &[String]) -> Child {
    let mut command = Command::new("redis-server");
    command.args(options).stdout(Stdio::null());
    command.spawn().unwrap()
}

/// An authority, and a certificate of it for 127.0.0.1.
fn certify(dir: &Path) {
    fs::write(dir.join("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    let new_key = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ];
    openssl(
        dir,
        "req -x509 -days 2 -subj /CN=authority -keyout ca.key -out ca.pem",
        &new_key,
    );
    openssl(
        dir,
        "req -subj /CN=store -keyout server.key -out server.csr",
        &new_key,
    );
    openssl(
        dir,
        "x509 -req -days 2 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names -out server.pem",
        &[],
    );
}

fn openssl(dir: &Path, words: &str, more: &[&str]) {
    let mut command = Command::new("openssl");
    command.args(words.split(' ')).args(more).current_dir(dir);
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Long enough for a machine that does much else.
pub(crate) fn eventually(mut done: impl FnMut() -> bool) -> bool {
    for _ in 0..600 {
        if done() {
            return true;
        }
        sleep(Duration::from_millis(100));
    }
    false
}
