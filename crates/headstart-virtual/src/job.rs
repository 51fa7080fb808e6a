//! What the guest is to do: written by the host into its file system, read by its first process.

use serde::{Deserialize, Serialize};

/// The guest's folder whose content comes back to the host.
pub const OUT: &str = "/out";

/// A file in which a command may tell how far it is, as a decimal number; the host sees it.
pub const PROGRESS: &str = "/run/headstart-progress";

pub(crate) const JOB: &str = "/job.json";

/// The commands of one boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// In the order in which they are to run. All of them run, whatever the one before ended with.
    pub commands: Vec<GuestCommand>,
}

/// One command, as the guest runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestCommand {
    /// The program, as an absolute path, and its arguments.
    pub argv: Vec<String>,
    /// What is added to its environment.
    pub env: Vec<(String, String)>,
    /// The directory that it runs in; it is made if it is not there.
    pub directory: String,
}

impl GuestCommand {
    /// A command in the root directory, with nothing added to its environment.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> GuestCommand {
        GuestCommand {
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            directory: "/".to_owned(),
        }
    }
}

/// As [`Job`], with what the host adds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    /// Files of kernel modules, in the order in which they are to be loaded.
    pub(crate) modules: Vec<String>,
    pub(crate) job: Job,
}

/// The files in [`OUT`] that the first process itself writes.
pub(crate) fn stdout_of(command: usize) -> String {
    format!(".stdout-{command}")
}
pub(crate) fn stderr_of(command: usize) -> String {
    format!(".stderr-{command}")
}
pub(crate) const CODES: &str = ".codes.json";
