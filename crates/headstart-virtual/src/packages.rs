//! Debian's packages of a kernel: found, fetched and unpacked with apt's own programs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::VirtualError;

/// The package that always depends on the newest kernel of a Debian release.
const META_PACKAGE: &str = "linux-image-amd64";

/// How the packages are called that have a kernel in them. Until 6.18 it is all in `linux-image-RELEASE`; from 6.19 on
/// that one depends on `linux-binary-RELEASE` and `linux-modules-RELEASE`.
const PARTS: [&str; 3] = ["linux-image-", "linux-binary-", "linux-modules-"];

/// The newest kernel's package of this Debian release.
pub(crate) fn newest_kernel() -> Result<String, VirtualError> {
    parts_of(META_PACKAGE)?
        .into_iter()
        .next()
        .ok_or_else(|| not_listed(META_PACKAGE))
}

/// The version of a package that apt would take.
pub(crate) fn candidate(package: &str) -> Result<String, VirtualError> {
    let told = run(Command::new("apt-cache").args(["policy", package]))
        .map_err(|error| no_package(package, &error))?;
    told.lines()
        .filter_map(|line| line.trim().strip_prefix("Candidate: "))
        .find(|version| *version != "(none)")
        .map(str::to_owned)
        .ok_or_else(|| not_listed(package))
}

/// The package itself, and those that it depends on for the rest of the kernel.
pub(crate) fn parts(package: &str) -> Result<Vec<String>, VirtualError> {
    let mut parts = vec![package.to_owned()];
    let mut at = 0;
    while let Some(part) = parts.get(at) {
        for more in parts_of(part)? {
            if !parts.contains(&more) {
                parts.push(more);
            }
        }
        at += 1;
    }
    Ok(parts)
}

fn parts_of(package: &str) -> Result<Vec<String>, VirtualError> {
    let told = run(Command::new("apt-cache").args(["depends", "--important", package]))
        .map_err(|error| no_package(package, &error))?;
    parts_told(&told).map_err(|missing| not_listed(&missing))
}

/// `Depends: linux-modules-RELEASE`; in angle brackets where no such package is in the lists, which is the error.
fn parts_told(told: &str) -> Result<Vec<String>, String> {
    let depends = told
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "));
    let mut parts = Vec::new();
    for name in depends {
        let bare = name.trim_matches(['<', '>']);
        if !PARTS.iter().any(|part| bare.starts_with(part)) {
            continue;
        }
        if bare != name {
            return Err(bare.to_owned());
        }
        parts.push(bare.to_owned());
    }
    Ok(parts)
}

/// Fetches a package into a directory; apt checks it.
pub(crate) fn download(package: &str, directory: &Path) -> Result<(), VirtualError> {
    // As whom apt downloads does not matter here, and its own user may not write into this directory.
    run(Command::new("apt-get")
        .args(["-qq", "-o", "APT::Sandbox::User=root", "download", package])
        .current_dir(directory))
    .map(drop)
    .map_err(|error| no_package(package, &error))
}

/// Unpacks all packages of a directory into another.
pub(crate) fn unpack(from: &Path, into: &Path) -> Result<(), VirtualError> {
    let entries = fs::read_dir(from).map_err(VirtualError::file(from))?;
    let files = entries.flatten().map(|entry| entry.path());
    for package in files.filter(|path| path.extension().is_some_and(|end| end == "deb")) {
        run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(into))?;
    }
    Ok(())
}

fn no_package(package: &str, error: &VirtualError) -> VirtualError {
    VirtualError::NoPackage {
        package: package.to_owned(),
        cause: error.to_string(),
    }
}

fn not_listed(package: &str) -> VirtualError {
    VirtualError::NoPackage {
        package: package.to_owned(),
        cause: "it is not in the lists".to_owned(),
    }
}

/// Runs a program to its end and gives what it printed.
fn run(command: &mut Command) -> Result<String, VirtualError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |cause: String| VirtualError::Program {
        program: program.clone(),
        cause,
    };
    let done = command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if done.status.success() {
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    } else {
        let words = String::from_utf8_lossy(&done.stderr);
        Err(failed(words.trim().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

    use super::*;

    #[test]
    fn a_kernel_in_several_packages_is_found_whole() {
        let told = "linux-image-7.3.4+deb13-amd64\n  PreDepends: linux-base\n |Depends: dracut\n  Depends: kmod\n  \
                    Depends: linux-binary-7.3.4+deb13-amd64\n  Depends: linux-modules-7.3.4+deb13-amd64\n";
        assert_eq!(
            parts_told(told).unwrap(),
            [
                "linux-binary-7.3.4+deb13-amd64",
                "linux-modules-7.3.4+deb13-amd64"
            ]
        );
        assert_eq!(
            parts_told("linux-image-6.1.0-56-amd64\n  Depends: kmod\n").unwrap(),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_part_that_is_no_longer_offered_is_named() {
        let told = "linux-image-7.1.13\n  Depends: linux-binary-7.1.13\n  Depends: <linux-modules-7.1.13>\n";
        assert_eq!(parts_told(told).unwrap_err(), "linux-modules-7.1.13");
    }
}
