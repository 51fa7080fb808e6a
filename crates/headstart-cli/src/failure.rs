//! How a verb ends: the exit codes of the command line and the words that go with them.

use std::process::ExitCode;

/// Why a verb did not succeed. The exit code says whose move it is.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The run itself failed: exit code 1.
    Run(anyhow::Error),
    /// Wrong usage or input: exit code 2.
    Usage(anyhow::Error),
    /// This machine cannot do it: exit code 3. The text says what is missing and how to get it.
    CannotHere(anyhow::Error),
    /// A command that we ran as a prefix ended with this code, which is passed on as it is.
    Command(u8),
}

impl Failure {
    /// Prints the reason on standard error and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let (code, error) = match self {
            Failure::Run(error) => (1, error),
            Failure::Usage(error) => (2, error),
            Failure::CannotHere(error) => (3, error),
            Failure::Command(code) => return ExitCode::from(*code),
        };
        eprintln!("headstart: {error:#}");
        ExitCode::from(code)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Run(error)
    }
}
