//! What can go wrong in a comparison.

use std::path::PathBuf;

use headstart_kernel::KernelError;
use headstart_path::PathError;
use headstart_scenario::ScenarioError;

/// Why a comparison could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The scenario, or what was said instead of it on the command line, is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// An option of the command line is wrong.
    #[error("{0}")]
    Option(String),
    /// A program that the scenario names is not installed.
    #[error("{program} is not installed; Debian: apt-get install {package}")]
    NoProgram {
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// The kernel's side failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The emulated path failed.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The server did not start.
    #[error("the server {program} did not start: {cause}")]
    Server {
        /// The program.
        program: &'static str,
        /// Its last words, or what we waited for.
        cause: String,
    },
    /// The client did not get what it asked for.
    #[error("the client {program} failed: {cause}")]
    Client {
        /// The program.
        program: &'static str,
        /// Its last words.
        cause: String,
    },
    /// A file of the run could not be written.
    #[error("{}: {cause}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// It was told to stop.
    #[error("interrupted; nothing is left behind")]
    Interrupted,
}

impl CompareError {
    /// This machine lacks something: exit code 3.
    pub fn cannot_here(&self) -> bool {
        match self {
            CompareError::NoProgram { .. }
            | CompareError::Kernel(KernelError::CannotHere { .. }) => true,
            CompareError::Path(error) => error.cannot_here(),
            _ => false,
        }
    }

    /// The input is wrong: exit code 2.
    pub fn bad_input(&self) -> bool {
        matches!(self, CompareError::Scenario(_) | CompareError::Option(_))
    }
}
