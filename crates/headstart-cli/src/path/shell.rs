//! `--shell`: an interactive shell behind the path, whose prompt says so.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// The user's shell, or bash, or what every system has.
pub(super) fn command_line() -> Result<Vec<OsString>, Failure> {
    let named = std::env::var_os("SHELL").filter(|shell| which::which(shell).is_ok());
    let shell = named.unwrap_or_else(|| match which::which("bash") {
        Ok(bash) => bash.into(),
        Err(_) => "/bin/sh".into(),
    });
    Ok(vec![shell])
}

/// Has the shell's prompt show the lane. bash reads the user's own settings first; the file that
/// tells it to is gone with the value that is returned.
pub(super) fn prepare(
    command: &mut Command,
    line: &[OsString],
    lane: u8,
) -> Result<Option<NamedTempFile>, Failure> {
    let mark = format!("[path {lane}] ");
    let name = line.first().map(Path::new).and_then(Path::file_name);
    if name.is_none_or(|name| name != "bash") {
        // Shells that take the prompt from the environment.
        command.env("PS1", format!("{mark}$ "));
        return Ok(None);
    }
    let mut settings = NamedTempFile::new().context("cannot write the shell's settings")?;
    writeln!(
        settings,
        "[ ! -e ~/.bashrc ] || . ~/.bashrc\nPS1='{mark}'\"${{PS1:-\\\\w\\\\$ }}\""
    )
    .context("cannot write the shell's settings")?;
    command.arg("--rcfile").arg(settings.path()).arg("-i");
    Ok(Some(settings))
}
