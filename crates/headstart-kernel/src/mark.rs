//! Attaching the marker of low-drop-priority packets to network devices.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::Object;

use crate::clsact;
use crate::error::KernelError;
use crate::objects::BpfObject;

/// `ARPHRD_*` of devices that put an Ethernet header in front of a packet: Ethernet, loopback.
const ETHERNET_LIKE: [u32; 2] = [1, 772];

/// The marker: two programs, for devices with and without an Ethernet header.
#[derive(Debug)]
pub struct Marker {
    ether: OwnedFd,
    raw: OwnedFd,
    tcx: bool,
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
    Clsact(clsact::Attached),
}

impl Marker {
    pub(crate) fn new(object: &Object, tcx: bool) -> Result<Marker, KernelError> {
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
            tcx,
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
        if self.tcx {
            match attach_tcx(program, ifindex) {
                Ok(link) => {
                    return Ok(Attachment {
                        _how: How::Tcx(link),
                    });
                }
                Err(nix::Error::EINVAL | nix::Error::EOPNOTSUPP) => {}
                Err(error) => return Err(refused(ifindex, error)),
            }
        }
        let filter = clsact::attach(program, ifindex).map_err(|error| refused(ifindex, error))?;
        Ok(Attachment {
            _how: How::Clsact(filter),
        })
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
