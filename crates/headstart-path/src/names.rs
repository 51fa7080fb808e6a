//! Names of the hosts, for the programs that we start and for nobody else.
//!
//! A thread gets a mount namespace of its own, in which `/etc/hosts` is another file. That file is
//! gone with the last process that sees it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

const HOSTS: &str = "/etc/hosts";
const NSSWITCH: &str = "/etc/nsswitch.conf";

/// Where the name service cache listens: its socket would answer with what the machine knows.
const NSCD: &str = "/run/nscd";

/// Gives the calling thread, and the programs that it starts, the host names of `lines` besides
/// those of the machine.
pub(crate) fn know_hosts(lines: &str) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    // What the machine mounts later is seen here, what we mount is seen nowhere else.
    let propagation = MsFlags::MS_SLAVE | MsFlags::MS_REC;
    mount(None::<&str>, "/", None::<&str>, propagation, None::<&str>)?;
    let machine = fs::read_to_string(HOSTS)?;
    cover(HOSTS, &format!("{lines}{machine}"))?;
    if let Ok(order) = fs::read_to_string(NSSWITCH) {
        if let Some(order) = with_files_first(&order) {
            cover(NSSWITCH, &order)?;
        }
    }
    if Path::new(NSCD).is_dir() {
        mount(
            Some("none"),
            NSCD,
            Some("tmpfs"),
            MsFlags::empty(),
            None::<&str>,
        )?;
    }
    Ok(())
}

/// Puts a file with this text in place of `path`, in this mount namespace. The file has a name only
/// until it is there: the kernel does not mount one without.
fn cover(path: &str, text: &str) -> io::Result<()> {
    // Others may read it.
    let permissions = fs::Permissions::from_mode(0o644);
    let mut file = tempfile::Builder::new()
        .prefix("headstart-")
        .permissions(permissions)
        .tempfile()?;
    file.write_all(text.as_bytes())?;
    mount(
        Some(file.path()),
        path,
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    )?;
    Ok(())
}

/// `nsswitch.conf` with the hosts file asked first; `None` if it is already.
fn with_files_first(order: &str) -> Option<String> {
    let is_hosts = |line: &&str| line.trim_start().starts_with("hosts:");
    let line = order.lines().find(is_hosts)?;
    let services = line.split_once(':')?.1;
    if services.split_whitespace().next() == Some("files") {
        return None;
    }
    Some(order.replace(line, &format!("hosts: files {}", services.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_file_is_asked_before_anybody_else() {
        let debian = "passwd: files\nhosts:          files dns\n";
        assert_eq!(with_files_first(debian), None);
        let resolved = "hosts: mymachines resolve [!UNAVAIL=return] files dns\nnetworks: files\n";
        let order = with_files_first(resolved).unwrap();
        assert!(
            order.starts_with("hosts: files mymachines resolve"),
            "{order}"
        );
        assert!(order.ends_with("\nnetworks: files\n"));
        assert_eq!(with_files_first("passwd: files\n"), None);
    }
}
