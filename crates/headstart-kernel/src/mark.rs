//! Attaching the marker of low-drop-priority packets to network devices.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::{Object, TC_EGRESS, TcHookBuilder};
use nix::sched::{CloneFlags, setns};

use crate::error::KernelError;
use crate::objects::BpfObject;

/// `ARPHRD_*` of devices that put an Ethernet header in front of a packet: Ethernet, loopback.
const ETHERNET_LIKE: [u32; 2] = [1, 772];

/// The marker: two programs, for devices with and without an Ethernet header.
#[derive(Debug)]
pub struct Marker {
    ether: OwnedFd,
    raw: OwnedFd,
}

/// A marker on a device. Dropping it takes the marker off.
#[derive(Debug)]
pub struct Attachment {
    _how: How,
}

#[derive(Debug)]
#[expect(dead_code, reason = "held for what dropping it does")]
enum How {
    /// Linux 6.6: a link, which the kernel takes away with the process.
    Tcx(OwnedFd),
    /// Before: a filter of the device, which has to be taken off.
    Clsact(Clsact),
}

/// A clsact filter, and what it takes to remove it: the namespace of its device may not be the dropper's.
#[derive(Debug)]
struct Clsact {
    namespace: File,
    program: OwnedFd,
    ifindex: u32,
    handle: u32,
    priority: u32,
}

impl Clsact {
    fn detach(&self) -> Result<(), String> {
        setns(&self.namespace, CloneFlags::CLONE_NEWNET).map_err(|error| error.to_string())?;
        let mut hook = TcHookBuilder::new(self.program.as_fd())
            .ifindex(self.ifindex.cast_signed())
            .handle(self.handle)
            .priority(self.priority)
            .hook(TC_EGRESS);
        hook.detach().map_err(|error| error.to_string())
    }
}

impl Drop for Clsact {
    fn drop(&mut self) {
        let done = std::thread::scope(|scope| scope.spawn(|| self.detach()).join());
        // The device may be gone, and the filter with it.
        if let Ok(Err(error)) = done {
            tracing::debug!("taking the marker off the device {}: {error}", self.ifindex);
        }
    }
}

impl Marker {
    pub(crate) fn new(object: &Object) -> Result<Marker, KernelError> {
        let program = |name: &str| {
            let found = object.progs().find(|program| *program.name() == *name);
            let program = found.ok_or_else(|| KernelError::no_part(BpfObject::Mark, name))?;
            program
                .as_fd()
                .try_clone_to_owned()
                .map_err(|error| KernelError::operation(format!("keeping {name}"), error))
        };
        Ok(Marker {
            ether: program("hs_mark_ether")?,
            raw: program("hs_mark_raw")?,
        })
    }

    /// Marks what leaves through the device `ifindex` of the calling thread's network namespace.
    ///
    /// # Errors
    /// When there is no such device, or the kernel refuses.
    pub fn attach(&self, ifindex: u32) -> Result<Attachment, KernelError> {
        let kind = device_kind(ifindex)?;
        let program = if ETHERNET_LIKE.contains(&kind) {
            &self.ether
        } else {
            &self.raw
        };
        match attach_tcx(program, ifindex) {
            Ok(link) => Ok(Attachment {
                _how: How::Tcx(link),
            }),
            Err(nix::Error::EINVAL | nix::Error::EOPNOTSUPP) => attach_clsact(program, ifindex)
                .map(|hook| Attachment {
                    _how: How::Clsact(hook),
                }),
            Err(error) => Err(refused(ifindex, error)),
        }
    }
}

fn refused(ifindex: u32, error: impl std::fmt::Display) -> KernelError {
    KernelError::operation(
        format!("marking packets on the device with index {ifindex}"),
        error,
    )
}

fn attach_tcx(program: &OwnedFd, ifindex: u32) -> Result<OwnedFd, nix::Error> {
    // SAFETY: the descriptor is of a loaded program; the options are absent; the result is checked.
    let fd = unsafe {
        libbpf_sys::bpf_link_create(
            program.as_raw_fd(),
            ifindex.cast_signed(),
            libbpf_sys::BPF_TCX_EGRESS,
            std::ptr::null(),
        )
    };
    if fd < 0 {
        return Err(nix::Error::from_raw(-fd));
    }
    // SAFETY: the kernel has just made this descriptor for us; nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The clsact qdisc is made where there is none, and left in place, empty: another program may have come to
/// use it since.
fn attach_clsact(program: &OwnedFd, ifindex: u32) -> Result<Clsact, KernelError> {
    let namespace =
        File::open("/proc/thread-self/ns/net").map_err(|error| refused(ifindex, error))?;
    let program = program
        .try_clone()
        .map_err(|error| refused(ifindex, error))?;
    let mut hook = TcHookBuilder::new(program.as_fd())
        .ifindex(ifindex.cast_signed())
        .hook(TC_EGRESS);
    hook.create().map_err(|error| refused(ifindex, error))?;
    let hook = hook.attach().map_err(|error| refused(ifindex, error))?;
    let (handle, priority) = (hook.get_handle(), hook.get_priority());
    Ok(Clsact {
        namespace,
        program,
        ifindex,
        handle,
        priority,
    })
}

/// The device's `ARPHRD_*` number, asked of the calling thread's namespace: sysfs shows only that in which it
/// was mounted.
fn device_kind(ifindex: u32) -> Result<u32, KernelError> {
    let mut name = [0 as libc::c_char; libc::IF_NAMESIZE];
    // SAFETY: the buffer has IF_NAMESIZE bytes, as the function wants.
    if unsafe { libc::if_indextoname(ifindex, name.as_mut_ptr()) }.is_null() {
        return Err(refused(ifindex, nix::Error::last()));
    }
    let socket = nix::sys::socket::socket(
        nix::sys::socket::AddressFamily::Inet,
        nix::sys::socket::SockType::Datagram,
        nix::sys::socket::SockFlag::SOCK_CLOEXEC,
        None,
    )
    .map_err(|error| refused(ifindex, error))?;
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name = name;
    // SAFETY: the request is a live ifreq with a terminated name, which SIOCGIFHWADDR fills in.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) } != 0 {
        return Err(refused(ifindex, nix::Error::last()));
    }
    // SAFETY: SIOCGIFHWADDR has just written this member of the union.
    Ok(u32::from(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family }))
}
