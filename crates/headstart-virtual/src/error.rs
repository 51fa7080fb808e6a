//! What can go wrong with a virtual kernel.

use std::path::PathBuf;

/// Why a virtual kernel could not be had, or did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum VirtualError {
    /// The guest runs this machine's programs, and its kernel is Debian's for x86-64.
    #[error(
        "a virtual kernel runs the programs of this machine, and they are not of x86-64 ({arch}): run it on an \
         x86-64 machine"
    )]
    NotX86 {
        /// What this machine is.
        arch: &'static str,
    },
    /// A program that is run on this machine is not installed.
    #[error("{program} is not installed; Debian: apt-get install {package}")]
    NoProgram {
        /// The program.
        program: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// There is no kernel to boot.
    #[error(
        "there is no kernel{} in {}: `headstart virtual fetch` gets Debian's with apt, and installs nothing",
        .wanted.as_deref().map(|wanted| format!(" {wanted}")).unwrap_or_default(),
        .cache.display()
    )]
    NoKernel {
        /// Where it would be.
        cache: PathBuf,
        /// The beginning of its release, where one was asked for.
        wanted: Option<String>,
    },
    /// apt does not have such a kernel.
    #[error(
        "apt does not have the kernel {package}: {cause}; `apt-get update` refreshes its lists"
    )]
    NoPackage {
        /// The package.
        package: String,
        /// What apt said.
        cause: String,
    },
    /// A program that was run failed.
    #[error("{program} failed: {cause}")]
    Program {
        /// The program.
        program: String,
        /// Its last words.
        cause: String,
    },
    /// The package is not what a kernel's package is.
    #[error("{}: {cause}", .path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A file could not be read or written.
    #[error("{}: {cause}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// The guest did not come to its end.
    #[error("the virtual kernel {release} did not finish its job: {cause}{}", told(.console))]
    Guest {
        /// The kernel.
        release: String,
        /// What is known of it.
        cause: String,
        /// The last lines of its console.
        console: String,
    },
    /// It was told to stop.
    #[error("interrupted; nothing is left behind")]
    Interrupted,
}

impl VirtualError {
    /// This machine lacks something: exit code 3.
    #[must_use]
    pub fn cannot_here(&self) -> bool {
        matches!(
            self,
            VirtualError::NotX86 { .. }
                | VirtualError::NoProgram { .. }
                | VirtualError::NoKernel { .. }
                | VirtualError::NoPackage { .. }
        )
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> VirtualError {
        let path = path.into();
        move |cause| VirtualError::File { path, cause }
    }
}

fn told(console: &str) -> String {
    if console.is_empty() {
        String::new()
    } else {
        format!("; its console's last lines:\n{console}")
    }
}
