//! What can go wrong with an emulated path.
//!
//! Each message holds its cause, so that none is a chain of errors that would print it twice.

use std::io;
use std::path::PathBuf;

use headstart_link::QueueSpecError;

use crate::hosts::HostId;

/// An emulated path could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The process may not make network namespaces or devices.
    #[error(
        "may not {action} ({cause}): an emulated path needs CAP_SYS_ADMIN and CAP_NET_ADMIN; run \
         it as root (sudo), in a container with --privileged"
    )]
    NotPermitted {
        /// What was refused.
        action: &'static str,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// There is no TUN driver to be had.
    #[error(
        "cannot open /dev/net/tun ({cause}): load the driver with `modprobe tun`; in a container \
         add --device /dev/net/tun"
    )]
    NoTunDevice {
        /// The kernel's answer.
        cause: io::Error,
    },
    /// This kernel makes no network namespace.
    #[error(
        "this kernel makes no network namespace ({cause}): it needs CONFIG_NET_NS=y and \
         /proc/sys/user/max_net_namespaces above the number in use"
    )]
    NoNamespaces {
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The queue of a direction cannot be.
    #[error("the path's {direction} direction: {cause}")]
    BadQueue {
        /// `forward` or `reverse`.
        direction: &'static str,
        /// What is wrong with it.
        cause: QueueSpecError,
    },
    /// A path that this emulator cannot make true.
    #[error("{0}")]
    CannotBe(String),
    /// A log file cannot be written.
    #[error("cannot write the log {}: {cause}", path.display())]
    LogFile {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
    /// Cross-traffic could not be started.
    #[error("background traffic {spec:?}: {cause}")]
    Background {
        /// What was asked for.
        spec: String,
        /// Why not.
        cause: String,
    },
    /// Setting up or using a namespace failed.
    #[error("{namespace} namespace: cannot {action}: {cause}")]
    Namespace {
        /// The host whose it is.
        namespace: HostId,
        /// What was attempted.
        action: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// A kernel setting of a namespace could not be written.
    #[error("{namespace} namespace: cannot set {name} to {value:?}: {cause}")]
    Sysctl {
        /// The host whose it is.
        namespace: HostId,
        /// The setting, with dots.
        name: String,
        /// What it should have become.
        value: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// A command could not be started inside a namespace.
    #[error("{namespace} namespace: cannot start {program:?}: {cause}")]
    Command {
        /// The host whose it is.
        namespace: HostId,
        /// The program.
        program: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The router thread could not be started.
    #[error("cannot start the router thread: {cause}")]
    Router {
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The router thread ended by itself; its report is lost.
    #[error("the router thread ended by itself: please report this as a bug of headstart")]
    RouterDied,
    /// The emulation was stopped before.
    #[error("the emulated path was stopped before: start another one")]
    Stopped,
}

impl PathError {
    /// Whether the path that was asked for cannot be, on any machine.
    #[must_use]
    pub fn cannot_be(&self) -> bool {
        matches!(
            self,
            PathError::BadQueue { .. } | PathError::CannotBe(_) | PathError::LogFile { .. }
        )
    }

    /// Whether this machine, or this user on it, cannot emulate a path at all: nothing about the
    /// path that was asked for would change that.
    #[must_use]
    pub fn cannot_here(&self) -> bool {
        matches!(
            self,
            PathError::NotPermitted { .. }
                | PathError::NoTunDevice { .. }
                | PathError::NoNamespaces { .. }
        )
    }
}
