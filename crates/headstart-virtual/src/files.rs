//! The guest's file system: an initramfs with programs of this machine and what they need.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cpio::newc::{Builder, ModeFileType, trailer};

use crate::error::VirtualError;

/// What a guest's first process finds. Directories are made as they are needed.
#[derive(Clone, Debug, Default)]
pub struct GuestFiles {
    files: BTreeMap<PathBuf, Entry>,
}

#[derive(Clone, Debug)]
enum Entry {
    Copy { of: PathBuf, executable: bool },
    Bytes(Vec<u8>),
}

/// The users that programs look up by name, and no others.
const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n\
                      www-data:x:33:33:www-data:/:/bin/false\n";
const GROUP: &str = "root:x:0:\nnogroup:x:65534:\nwww-data:x:33:\n";

impl GuestFiles {
    /// The least that programs expect of a system.
    #[must_use]
    pub fn new() -> GuestFiles {
        let mut files = GuestFiles::default();
        files.bytes("/etc/passwd", PASSWD);
        files.bytes("/etc/group", GROUP);
        files
    }

    /// A file of this content.
    pub fn bytes(&mut self, guest: impl Into<PathBuf>, content: impl Into<Vec<u8>>) {
        self.files
            .insert(guest.into(), Entry::Bytes(content.into()));
    }

    /// A copy of a file of this machine.
    ///
    /// # Errors
    /// When it is not there.
    pub fn copy(
        &mut self,
        host: impl AsRef<Path>,
        guest: impl Into<PathBuf>,
    ) -> Result<(), VirtualError> {
        let host = host.as_ref();
        let meta = fs::metadata(host).map_err(VirtualError::file(host))?;
        let entry = Entry::Copy {
            of: host.to_owned(),
            executable: meta.permissions().mode() & 0o111 != 0,
        };
        self.files.insert(guest.into(), entry);
        Ok(())
    }

    /// A program of this machine, at `guest`, with the shared libraries that it is linked to.
    ///
    /// # Errors
    /// When it is not there, or its libraries cannot be found.
    pub fn program(
        &mut self,
        host: impl AsRef<Path>,
        guest: impl Into<PathBuf>,
    ) -> Result<(), VirtualError> {
        let host = host.as_ref();
        self.copy(host, guest)?;
        for library in libraries(host)? {
            self.copy(&library, &library)?;
        }
        Ok(())
    }

    /// The program of that name on this machine's PATH or in its system directories, at the same place in the guest.
    ///
    /// # Errors
    /// [`VirtualError::NoProgram`] when it is not installed; `package` is the Debian package that has it.
    pub fn installed(
        &mut self,
        name: &str,
        package: &'static str,
    ) -> Result<PathBuf, VirtualError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&path)
            .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
        let found = places
            .map(|directory| directory.join(name))
            .find(|program| program.is_file());
        let Some(program) = found else {
            return Err(VirtualError::NoProgram {
                program: name.to_owned(),
                package,
            });
        };
        self.program(&program, &program)?;
        Ok(program)
    }

    /// Writes them as the kernel wants its initramfs, in an order and with times that do not depend on this machine.
    pub(crate) fn write(&self, mut to: impl Write) -> Result<(), VirtualError> {
        let mut number = 0;
        let mut entry = |to: &mut dyn Write, path: &Path, kind, mode, content: &[u8]| {
            number += 1;
            // Names are relative to the root.
            let name = path.strip_prefix("/").unwrap_or(path);
            let size = u32::try_from(content.len())
                .map_err(|_| io::Error::other("too large for an initramfs"))?;
            let mut file = Builder::new(&name.to_string_lossy())
                .ino(number)
                .mode(mode)
                .set_mode_file_type(kind)
                .write(to, size);
            file.write_all(content)?;
            file.finish().map(drop)
        };
        for directory in self.directories() {
            entry(&mut to, &directory, ModeFileType::Directory, 0o755, &[])
                .map_err(VirtualError::file(&directory))?;
        }
        for (path, file) in &self.files {
            let (content, mode) = match file {
                Entry::Bytes(bytes) => (bytes.clone(), 0o644),
                Entry::Copy { of, executable } => (
                    fs::read(of).map_err(VirtualError::file(of))?,
                    if *executable { 0o755 } else { 0o644 },
                ),
            };
            entry(&mut to, path, ModeFileType::Regular, mode, &content)
                .map_err(VirtualError::file(path))?;
        }
        trailer(&mut to)
            .and_then(|to| to.flush())
            .map_err(VirtualError::file("the initramfs"))
    }

    fn directories(&self) -> BTreeSet<PathBuf> {
        let own = ["/dev", "/proc", "/sys", "/tmp", "/run", "/root", "/out"].map(PathBuf::from);
        let above = self.files.keys().flat_map(|path| path.ancestors().skip(1));
        above
            .map(Path::to_owned)
            .chain(own)
            .filter(|path| path.parent().is_some())
            .collect()
    }
}

/// What the dynamic linker would load for it, by the linker's own word. Nothing for a static program.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, VirtualError> {
    let done = Command::new("ldd")
        .arg(program)
        .env("LC_ALL", "C")
        .output()
        .map_err(VirtualError::file("ldd"))?;
    let told = String::from_utf8_lossy(&done.stdout).into_owned();
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    if told.contains("statically linked") || words.contains("not a dynamic executable") {
        return Ok(Vec::new());
    }
    if !done.status.success() || told.contains("not found") {
        return Err(VirtualError::Program {
            program: format!("ldd {}", program.display()),
            cause: format!("{} {}", told.trim(), words.trim()),
        });
    }
    Ok(libraries_told(&told))
}

/// `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)`, or a bare path for the linker itself.
fn libraries_told(told: &str) -> Vec<PathBuf> {
    told.lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

    use super::*;

    #[test]
    fn the_linkers_words_are_read() {
        let told = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(
            libraries_told(told),
            [
                "/lib/x86_64-linux-gnu/libc.so.6",
                "/lib64/ld-linux-x86-64.so.2"
            ]
            .map(PathBuf::from)
        );
    }

    #[test]
    fn an_image_has_the_files_with_their_directories_and_is_the_same_each_time() {
        let image = || {
            let mut files = GuestFiles::new();
            files.bytes("/a/b/c", "words");
            let mut image = Vec::new();
            files.write(&mut image).unwrap();
            image
        };
        let first = image();
        assert_eq!(first, image());
        let mut names = Vec::new();
        let mut rest = &first[..];
        loop {
            let entry = cpio::newc::Reader::new(rest).unwrap();
            if entry.entry().is_trailer() {
                break;
            }
            names.push((entry.entry().name().to_owned(), entry.entry().file_size()));
            rest = entry.finish().unwrap();
        }
        assert!(names.contains(&("a/b/c".to_owned(), 5)));
        let place = |wanted: &str| names.iter().position(|(name, _)| name == wanted).unwrap();
        assert!(place("a") < place("a/b") && place("a/b") < place("a/b/c"));
    }

    #[test]
    fn a_program_brings_its_libraries() {
        let mut files = GuestFiles::default();
        let program = files.installed("sh", "dash").unwrap();
        assert!(files.files.contains_key(&program));
        assert!(
            files
                .files
                .keys()
                .any(|path| path.to_string_lossy().contains("libc.so"))
        );
        let error = files.installed("no-such-program", "nothing").unwrap_err();
        assert!(error.cannot_here());
    }
}
