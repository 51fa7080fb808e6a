//! Running a program as a prefix command does: found, or refused in words; its end, as a shell tells it.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use anyhow::anyhow;

use crate::failure::Failure;

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By itself, with this exit code.
    Exited(u8),
    /// By this signal, to it or to us.
    Signalled(i32),
}

impl Ending {
    pub(crate) fn of(status: ExitStatus) -> Ending {
        match status.signal() {
            Some(signal) => Ending::Signalled(signal),
            None => Ending::Exited(
                status
                    .code()
                    .and_then(|code| code.try_into().ok())
                    .unwrap_or(1),
            ),
        }
    }

    /// As a shell gives it: 128 and the number of the signal.
    pub(crate) fn code(self) -> u8 {
        match self {
            Ending::Exited(code) => code,
            Ending::Signalled(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}

/// Refuses a command that does not exist, before anything is set up.
pub(crate) fn check_exists(command: &[OsString]) -> Result<(), Failure> {
    let program = program_of(command)?;
    match which::which(program) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::Usage(anyhow!(
            "command {program:?} does not exist or is not executable: name a program on the PATH, \
             or the path to one"
        ))),
    }
}

/// The program of a command line.
pub(crate) fn program_of(command: &[OsString]) -> Result<&OsString, Failure> {
    command
        .first()
        .ok_or_else(|| Failure::Usage(anyhow!("no command given: write one after --")))
}

#[cfg(test)]
mod tests {
    use signal_hook::consts::{SIGINT, SIGTERM};

    use super::*;

    #[test]
    fn an_exit_code_is_passed_on_and_a_signal_is_128_and_its_number() {
        assert_eq!(Ending::of(ExitStatus::from_raw(7 << 8)).code(), 7);
        assert_eq!(Ending::of(ExitStatus::from_raw(0)).code(), 0);
        assert_eq!(Ending::of(ExitStatus::from_raw(9)).code(), 137);
        assert_eq!(Ending::Signalled(SIGINT).code(), 130);
        assert_eq!(Ending::Signalled(SIGTERM).code(), 143);
    }

    #[test]
    fn a_missing_command_is_wrong_usage() {
        let missing = check_exists(&["no-such-program".into()]).unwrap_err();
        assert!(
            matches!(missing, Failure::Usage(error) if error.to_string().contains("does not exist"))
        );
        assert!(check_exists(&["sh".into()]).is_ok());
        assert!(check_exists(&["/bin/sh".into()]).is_ok());
    }
}
