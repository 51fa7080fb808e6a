//! A Debian kernel, fetched with apt and unpacked; never installed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::error::VirtualError;
use crate::modules::{self, ModuleIndex};

/// The package that always depends on the newest kernel of a Debian release.
const META_PACKAGE: &str = "linux-image-amd64";

const DESCRIPTION: &str = "image.json";
const VMLINUX: &str = "vmlinux";

/// A kernel that can be booted: a directory of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelImage {
    directory: PathBuf,
    description: Description,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Description {
    release: String,
    package: String,
    version: String,
    /// In the order in which they are to be loaded.
    modules: Vec<String>,
}

/// Where kernels are kept: `headstart/kernels` in the user's cache directory (the XDG Base Directory Specification).
#[must_use]
pub fn cache_dir() -> PathBuf {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path: &PathBuf| path.is_absolute())
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("headstart/kernels")
}

impl KernelImage {
    /// The kernel in `cache` whose release begins with `wanted`; of several the newest.
    ///
    /// # Errors
    /// [`VirtualError::NoKernel`] when there is none.
    pub fn find(cache: &Path, wanted: Option<&str>) -> Result<KernelImage, VirtualError> {
        let entries = fs::read_dir(cache).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| KernelImage::open(&entry.path()))
            .filter(|image| wanted.is_none_or(|wanted| image.release().starts_with(wanted)))
            .max_by_key(|image| {
                (
                    numbers(image.release()),
                    numbers(&image.description.version),
                )
            })
            .ok_or_else(|| VirtualError::NoKernel {
                cache: cache.to_owned(),
                wanted: wanted.map(str::to_owned),
            })
    }

    fn open(directory: &Path) -> Option<KernelImage> {
        let text = fs::read_to_string(directory.join(DESCRIPTION)).ok()?;
        Some(KernelImage {
            directory: directory.to_owned(),
            description: serde_json::from_str(&text).ok()?,
        })
    }

    /// The kernel's release, as `uname -r` prints it.
    #[must_use]
    pub fn release(&self) -> &str {
        &self.description.release
    }

    /// The Debian package that it came from, with its version.
    #[must_use]
    pub fn origin(&self) -> String {
        let Description {
            package, version, ..
        } = &self.description;
        format!("{package} {version}")
    }

    pub(crate) fn vmlinux(&self) -> PathBuf {
        self.directory.join(VMLINUX)
    }

    /// The files of its modules, in the order in which they are to be loaded.
    pub(crate) fn modules(&self) -> impl Iterator<Item = PathBuf> {
        let names = self.description.modules.iter();
        names.map(|name| self.directory.join(format!("{name}.ko")))
    }

    /// Fetches a kernel with apt from the sources that are configured here, which also checks it, and unpacks it into
    /// `cache`. `package` names it; without, it is the newest kernel of this Debian release. One that is there already
    /// is not fetched again. `say` is told what is done.
    ///
    /// # Errors
    /// [`VirtualError::NoPackage`], or the package could not be unpacked.
    pub fn fetch(
        cache: &Path,
        package: Option<&str>,
        mut say: impl FnMut(&str),
    ) -> Result<KernelImage, VirtualError> {
        let package = match package {
            Some(package) => package.to_owned(),
            None => newest_package()?,
        };
        let version = candidate_version(&package)?;
        let directory = cache.join(format!("{package}_{version}"));
        if let Some(image) = KernelImage::open(&directory) {
            return Ok(image);
        }
        fs::create_dir_all(cache).map_err(VirtualError::file(cache))?;
        let work = tempfile::Builder::new()
            .prefix(".fetching-")
            .tempdir_in(cache)
            .map_err(VirtualError::file(cache))?;
        say(&format!(
            "fetching {package} {version} with apt-get download"
        ));
        // As whom apt downloads does not matter here, and its own user may not write into this directory.
        run(Command::new("apt-get")
            .args(["-qq", "-o", "APT::Sandbox::User=root", "download"])
            .arg(format!("{package}={version}"))
            .current_dir(work.path()))
        .map_err(|error| no_package(&package, &error))?;
        say("unpacking it");
        let image = prepare(work.path(), package, version)?;
        fs::rename(&image.directory, &directory).map_err(VirtualError::file(&directory))?;
        Ok(KernelImage { directory, ..image })
    }
}

/// Makes an image of the one package in `work`, in a directory there.
fn prepare(work: &Path, package: String, version: String) -> Result<KernelImage, VirtualError> {
    let deb = only_entry(work, |name| name.ends_with(".deb"))?;
    let (unpacked, directory) = (work.join("unpacked"), work.join("image"));
    run(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&unpacked))?;
    fs::create_dir(&directory).map_err(VirtualError::file(&directory))?;

    let vmlinuz = only_entry(&unpacked.join("boot"), |name| name.starts_with("vmlinuz-"))?;
    let release = vmlinuz
        .file_name()
        .map(|name| name.to_string_lossy().replacen("vmlinuz-", "", 1))
        .unwrap_or_default();
    let content = fs::read(&vmlinuz).map_err(VirtualError::file(&vmlinuz))?;
    let payload = payload(&content).map_err(|cause| VirtualError::Image {
        path: vmlinuz.clone(),
        cause: cause.to_owned(),
    })?;
    let vmlinux = unxz(payload)?;
    write(&directory.join(VMLINUX), &vmlinux)?;

    let below = ["lib/modules", "usr/lib/modules"]
        .map(|place| unpacked.join(place).join(&release).join("kernel"));
    let index = ModuleIndex::read(below.iter().find(|path| path.is_dir()).unwrap_or(&below[0]))?;
    let ordered = modules::in_order(&modules::WANTED, |name| match index.file(name) {
        Some(file) => {
            let bytes = fs::read(file).map_err(VirtualError::file(file))?;
            let packed = file.extension().is_some_and(|extension| extension == "xz");
            Ok(Some(if packed { unxz(&bytes)? } else { bytes }))
        }
        None => Ok::<_, VirtualError>(None),
    })?;
    let mut names = Vec::new();
    for (name, bytes) in ordered {
        write(&directory.join(format!("{name}.ko")), &bytes)?;
        names.push(name);
    }
    let description = Description {
        release,
        package,
        version,
        modules: names,
    };
    let text = serde_json::to_string_pretty(&description).map_err(|error| VirtualError::Image {
        path: directory.join(DESCRIPTION),
        cause: error.to_string(),
    })?;
    // Last: a directory that has it is whole.
    write(&directory.join(DESCRIPTION), text.as_bytes())?;
    Ok(KernelImage {
        directory,
        description,
    })
}

/// The compressed kernel inside of a bzImage (Documentation/arch/x86/boot.rst: setup_sects at 0x1f1, payload_offset at
/// 0x248 and payload_length at 0x24c since protocol 2.08). Its last four bytes are the length of what was compressed.
fn payload(bz_image: &[u8]) -> Result<&[u8], &'static str> {
    let word = |at: usize| -> Option<usize> {
        let bytes = bz_image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    if bz_image.get(0x202..0x206) != Some(b"HdrS") {
        return Err("this is no kernel for x86 (there is no HdrS)");
    }
    let setup_sectors = match bz_image.get(0x1f1) {
        Some(0) | None => 4,
        Some(sectors) => usize::from(*sectors),
    };
    let (Some(offset), Some(length)) = (word(0x248), word(0x24c)) else {
        return Err("the kernel's header is too short");
    };
    let from = (setup_sectors + 1) * 512 + offset;
    let payload = bz_image.get(from..from + length.saturating_sub(4));
    let payload = payload.ok_or("the kernel's header points outside of the file")?;
    if payload.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
        Ok(payload)
    } else {
        Err("the kernel is not compressed with xz, as Debian's are")
    }
}

fn unxz(packed: &[u8]) -> Result<Vec<u8>, VirtualError> {
    let mut child = Command::new("xz")
        .args(["-dc", "--single-stream"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|_| VirtualError::NoProgram {
            program: "xz".to_owned(),
            package: "xz-utils",
        })?;
    let stdin = child.stdin.take();
    let done = std::thread::scope(|scope| {
        // It ends by itself when it has enough; what it then does not take is no error.
        scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(packed)));
        child.wait_with_output()
    })
    .map_err(VirtualError::file("xz"))?;
    if done.status.success() {
        Ok(done.stdout)
    } else {
        Err(VirtualError::Program {
            program: "xz".to_owned(),
            cause: String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        })
    }
}

fn newest_package() -> Result<String, VirtualError> {
    let told = run(Command::new("apt-cache").args(["depends", "--important", META_PACKAGE]))
        .map_err(|error| no_package(META_PACKAGE, &error))?;
    told.lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|name| name.starts_with("linux-image-"))
        .map(str::to_owned)
        .ok_or_else(|| VirtualError::NoPackage {
            package: META_PACKAGE.to_owned(),
            cause: "it is not in the lists".to_owned(),
        })
}

fn candidate_version(package: &str) -> Result<String, VirtualError> {
    let told = run(Command::new("apt-cache").args(["policy", package]))
        .map_err(|error| no_package(package, &error))?;
    told.lines()
        .filter_map(|line| line.trim().strip_prefix("Candidate: "))
        .find(|version| *version != "(none)")
        .map(str::to_owned)
        .ok_or_else(|| VirtualError::NoPackage {
            package: package.to_owned(),
            cause: "it is not in the lists".to_owned(),
        })
}

fn no_package(package: &str, error: &VirtualError) -> VirtualError {
    VirtualError::NoPackage {
        package: package.to_owned(),
        cause: error.to_string(),
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

fn only_entry(directory: &Path, wanted: impl Fn(&str) -> bool) -> Result<PathBuf, VirtualError> {
    let entries = fs::read_dir(directory).map_err(VirtualError::file(directory))?;
    let found = entries.flatten().map(|entry| entry.path()).find(|path| {
        path.file_name()
            .is_some_and(|name| wanted(&name.to_string_lossy()))
    });
    found.ok_or_else(|| VirtualError::Image {
        path: directory.to_owned(),
        cause: "the package does not have in it what a kernel's package has".to_owned(),
    })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), VirtualError> {
    File::create(path)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(VirtualError::file(path))
}

/// The numbers in a version, to compare it by.
fn numbers(version: &str) -> Vec<u64> {
    version
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

    use super::*;

    fn with_images(releases: &[&str]) -> tempfile::TempDir {
        let cache = tempfile::tempdir().unwrap();
        for release in releases {
            let directory = cache.path().join(format!("p_{release}"));
            fs::create_dir(&directory).unwrap();
            let description = Description {
                release: (*release).to_owned(),
                package: format!("linux-image-{release}"),
                version: "1".to_owned(),
                modules: Vec::new(),
            };
            let text = serde_json::to_string(&description).unwrap();
            fs::write(directory.join(DESCRIPTION), text).unwrap();
        }
        // One that was never finished.
        fs::create_dir(cache.path().join("p_9.9.9")).unwrap();
        cache
    }

    #[test]
    fn the_newest_kernel_is_taken_or_the_newest_of_the_series_asked_for() {
        let cache = with_images(&["6.1.0-9-amd64", "6.1.0-56-amd64", "6.12.3-amd64"]);
        let release = |wanted| {
            let image = KernelImage::find(cache.path(), wanted);
            image
                .map(|image| image.release().to_owned())
                .map_err(|error| error.to_string())
        };
        assert_eq!(release(None).unwrap(), "6.12.3-amd64");
        assert_eq!(release(Some("6.1.")).unwrap(), "6.1.0-56-amd64");
        let error = release(Some("5.10")).unwrap_err();
        assert!(
            error.contains("no kernel 5.10") && error.contains("headstart virtual fetch"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_kernel_is_refused_in_words() {
        assert!(payload(&[0; 1024]).unwrap_err().contains("HdrS"));
        let mut image = vec![0; 1024];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x24c..0x250].copy_from_slice(&5000u32.to_le_bytes());
        assert!(payload(&image).unwrap_err().contains("outside"));
    }

    #[test]
    fn the_payload_is_found_by_the_header() {
        let xz = [0xfd, b'7', b'z', b'X', b'Z', 0, 1, 2];
        let mut image = vec![0; 2 * 512];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&12u32.to_le_bytes());
        image.extend([0; 16]);
        image.extend(xz);
        image.extend([9; 4]);
        assert_eq!(payload(&image).unwrap(), xz);
    }
}
