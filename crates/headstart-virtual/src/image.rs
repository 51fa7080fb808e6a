//! A Debian kernel, fetched with apt and unpacked; never installed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::VirtualError;
use crate::modules::{self, ModuleIndex};
use crate::{compressed, packages};

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
    /// The kernel in `cache` whose release begins with `wanted`, in whole numbers: 6.12 does not begin with 6.1. Of
    /// several the newest.
    ///
    /// # Errors
    /// [`VirtualError::NoKernel`] when there is none.
    pub fn find(cache: &Path, wanted: Option<&str>) -> Result<KernelImage, VirtualError> {
        let entries = fs::read_dir(cache).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| KernelImage::open(&entry.path()))
            .filter(|image| wanted.is_none_or(|wanted| begins_with(image.release(), wanted)))
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
            None => packages::newest_kernel()?,
        };
        let version = packages::candidate(&package)?;
        let directory = cache.join(format!("{package}_{version}"));
        if let Some(image) = KernelImage::open(&directory) {
            return Ok(image);
        }
        fs::create_dir_all(cache).map_err(VirtualError::file(cache))?;
        let work = tempfile::Builder::new()
            .prefix(".fetching-")
            .tempdir_in(cache)
            .map_err(VirtualError::file(cache))?;
        for part in packages::parts(&package)? {
            say(&format!("fetching {part} with apt-get download"));
            packages::download(&part, work.path())?;
        }
        say("unpacking it");
        let image = prepare(work.path(), package, version)?;
        fs::rename(&image.directory, &directory).map_err(VirtualError::file(&directory))?;
        Ok(KernelImage { directory, ..image })
    }
}

/// Makes an image of the packages in `work`, in a directory there.
fn prepare(work: &Path, package: String, version: String) -> Result<KernelImage, VirtualError> {
    let (unpacked, directory) = (work.join("unpacked"), work.join("image"));
    packages::unpack(work, &unpacked)?;
    fs::create_dir(&directory).map_err(VirtualError::file(&directory))?;

    let no_kernel = |path: PathBuf| VirtualError::Image {
        path,
        cause: "the package does not have in it what a kernel's package has".to_owned(),
    };
    let below = ["lib/modules", "usr/lib/modules"]
        .iter()
        .find_map(|place| first_entry(&unpacked.join(place)))
        .ok_or_else(|| no_kernel(unpacked.clone()))?;
    let release = below
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let places = [
        unpacked.join("boot").join(format!("vmlinuz-{release}")),
        below.join("vmlinuz"),
    ];
    let vmlinuz = places
        .iter()
        .find(|place| place.is_file())
        .ok_or_else(|| no_kernel(unpacked.clone()))?;
    let content = fs::read(vmlinuz).map_err(VirtualError::file(vmlinuz))?;
    let vmlinux = compressed::payload(&content)
        .map_err(|cause| VirtualError::Image {
            path: vmlinuz.clone(),
            cause: cause.to_owned(),
        })
        .and_then(compressed::unpack)?;
    write(&directory.join(VMLINUX), &vmlinux)?;

    let index = ModuleIndex::read(&below.join("kernel"))?;
    let ordered = modules::in_order(&modules::WANTED, |name| match index.file(name) {
        Some(file) => {
            let bytes = fs::read(file).map_err(VirtualError::file(file))?;
            Ok(Some(compressed::unpack(&bytes)?))
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

/// The first entry of a directory that has one.
fn first_entry(directory: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(directory).ok()?.flatten();
    entries.next().map(|entry| entry.path())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), VirtualError> {
    fs::write(path, bytes).map_err(VirtualError::file(path))
}

fn begins_with(release: &str, wanted: &str) -> bool {
    let digit = |c: char| c.is_ascii_digit();
    release
        .strip_prefix(wanted)
        .is_some_and(|rest| !(wanted.ends_with(digit) && rest.starts_with(digit)))
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
        for wanted in ["6.1", "6.1.", "6.1.0-56"] {
            assert_eq!(release(Some(wanted)).unwrap(), "6.1.0-56-amd64");
        }
        let error = release(Some("5.10")).unwrap_err();
        assert!(
            error.contains("no kernel 5.10") && error.contains("headstart virtual fetch"),
            "{error}"
        );
    }
}
