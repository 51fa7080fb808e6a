//! Where the file is, if nobody says.

use std::env;
use std::path::PathBuf;

const FILE: &str = "headstart/paths.sqlite";

/// `$XDG_STATE_HOME/headstart/paths.sqlite`; without that `/var/lib` for root, as the memory is the machine's, and
/// `~/.local/state` for others. `None`: there is no home either.
pub fn default_file() -> Option<PathBuf> {
    let directory = |name: &str| {
        let value = env::var_os(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let state = directory("XDG_STATE_HOME");
    let machine = || {
        nix::unistd::geteuid()
            .is_root()
            .then(|| PathBuf::from("/var/lib"))
    };
    let home = || directory("HOME").map(|home| home.join(".local/state"));
    state
        .or_else(machine)
        .or_else(home)
        .map(|base| base.join(FILE))
}
