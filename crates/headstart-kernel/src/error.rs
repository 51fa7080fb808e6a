//! What can go wrong between us and the kernel.

use crate::objects::BpfObject;

/// An error of the kernel's side.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// This machine cannot do it. The text says what is missing and how to get it.
    #[error("this machine cannot run start-ups in its kernel: {}", .missing.join("; "))]
    CannotHere {
        /// One entry a missing thing: what, and how to get it.
        missing: Vec<String>,
    },
    /// The kernel refused a BPF object.
    #[error(
        "the kernel did not take bpf/{object}: {cause}; HEADSTART_LOG=libbpf=debug shows all of the verifier's words"
    )]
    Load {
        /// The source file of the object.
        object: &'static str,
        /// What libbpf said.
        cause: String,
    },
    /// A congestion control of that name is registered already.
    #[error(
        "{name} is registered in the kernel already, by another headstart that runs or one that crashed; `headstart doctor` shows which"
    )]
    NameTaken {
        /// The start-up.
        name: String,
    },
    /// More of something than there is room for in the configuration.
    #[error("at most {most} {what} can be given")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        most: usize,
    },
    /// A part of a loaded object is not there. A defect of ours.
    #[error("bpf/{object} has no {part}; this is a defect of headstart")]
    NoSuchPart {
        /// The source file of the object.
        object: &'static str,
        /// The map or program.
        part: String,
    },
    /// An operation on a map, a link or a program failed.
    #[error("{what}: {cause}")]
    Operation {
        /// What was tried, on what.
        what: String,
        /// What the kernel said.
        cause: String,
    },
}

impl KernelError {
    pub(crate) fn no_part(object: BpfObject, part: &str) -> Self {
        KernelError::NoSuchPart {
            object: object.source(),
            part: part.to_owned(),
        }
    }

    pub(crate) fn operation(what: impl Into<String>, cause: impl std::fmt::Display) -> Self {
        KernelError::Operation {
            what: what.into(),
            cause: cause.to_string(),
        }
    }
}
