//! The server of a comparison: a real nginx in the server's namespace and in a cgroup of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use headstart_kernel::{Cgroup, Watch, WatchOptions};
use headstart_path::Namespace;

use crate::error::CompareError;

/// nginx's port. Each emulation has its own namespaces, so it is always free.
pub(crate) const PORT: u16 = 8080;

const PROGRAM: &str = "nginx";
const START_PATIENCE: Duration = Duration::from_secs(5);
const START_STEP: Duration = Duration::from_millis(5);

/// A running nginx. Dropping it ends the process and removes its cgroup and files.
pub(crate) struct NginxServer {
    child: Child,
    pub(crate) watch: Watch,
    _cgroup: Cgroup,
    _files: tempfile::TempDir,
}

/// Where nginx is, if it is installed.
pub(crate) fn find_nginx() -> Result<PathBuf, CompareError> {
    find_program(PROGRAM).ok_or(CompareError::NoProgram {
        program: PROGRAM,
        package: "nginx-light",
    })
}

/// A program on the PATH or in the system's directories, which a user's PATH may lack.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
}

/// The name under which a file of `bytes` bytes is served.
pub(crate) fn file_name(bytes: u64) -> String {
    format!("{bytes}.bin")
}

impl NginxServer {
    /// Starts nginx under the congestion control `congestion`, serving a file of each of `sizes` bytes.
    pub(crate) fn start(
        nginx: &Path,
        namespace: &Namespace,
        congestion: &str,
        sizes: &[u64],
    ) -> Result<NginxServer, CompareError> {
        let files = make_files(sizes)?;
        let cgroup = Cgroup::create()?;
        let options = WatchOptions {
            congestion: Some(congestion.to_owned()),
            samples: true,
        };
        let watch = Watch::attach(&cgroup, &options)?;
        let mut command = Command::new(nginx);
        command
            .arg("-p")
            .arg(files.path())
            .arg("-c")
            .arg(files.path().join("nginx.conf"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        cgroup.enter(&mut command)?;
        let child = namespace.spawn(command)?;
        let mut server = NginxServer {
            child,
            watch,
            _cgroup: cgroup,
            _files: files,
        };
        server.wait_until_it_listens(namespace)?;
        Ok(server)
    }

    fn wait_until_it_listens(&mut self, namespace: &Namespace) -> Result<(), CompareError> {
        let failed = |cause: String| CompareError::Server {
            program: PROGRAM,
            cause,
        };
        let mut waited = Duration::ZERO;
        while !namespace.listening_tcp_ports()?.contains(&PORT) {
            if let Ok(Some(status)) = self.child.try_wait() {
                let log = fs::read_to_string(self._files.path().join("error.log"));
                let log = log.unwrap_or_default();
                return Err(failed(format!("{status}: {}", log.trim())));
            }
            if waited >= START_PATIENCE {
                return Err(failed(format!(
                    "nothing listens on port {PORT} after {waited:?}"
                )));
            }
            sleep(START_STEP);
            waited += START_STEP;
        }
        Ok(())
    }
}

impl Drop for NginxServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory with the configuration and the files to serve.
fn make_files(sizes: &[u64]) -> Result<tempfile::TempDir, CompareError> {
    let directory = tempfile::Builder::new()
        .prefix("headstart-nginx-")
        .tempdir();
    let directory = directory.map_err(|cause| CompareError::File {
        path: std::env::temp_dir(),
        cause,
    })?;
    let write = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, content).map_err(|cause| CompareError::File { path, cause })
    };
    for &bytes in sizes {
        let content: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
        write(&file_name(bytes), &content)?;
    }
    write("nginx.conf", configuration().as_bytes())?;
    Ok(directory)
}

/// Paths are relative to nginx's prefix, the directory of the run.
fn configuration() -> String {
    format!(
        "daemon off;
master_process off;
pid nginx.pid;
error_log error.log warn;
events {{ worker_connections 64; }}
http {{
    access_log off;
    sendfile on;
    keepalive_timeout 1h;
    keepalive_time 1d;
    client_body_temp_path tmp-body;
    proxy_temp_path tmp-proxy;
    fastcgi_temp_path tmp-fastcgi;
    uwsgi_temp_path tmp-uwsgi;
    scgi_temp_path tmp-scgi;
    server {{
        listen {PORT};
        listen [::]:{PORT};
        root .;
    }}
}}
"
    )
}
