//! A TUN device: whole IP packets in and out of a network namespace.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::error::PathError;
use crate::interface::named_request;

/// The device's name in each namespace.
pub(crate) const TUN_NAME: &str = "tun0";

/// A non-persistent TUN device: it is gone when this is dropped. Plain: no packet information, no
/// offloads, so that each read gives one packet as it would be on the wire.
#[derive(Debug)]
pub(crate) struct Tun {
    device: File,
}

nix::ioctl_write_ptr_bad!(
    /// Makes an opened `/dev/net/tun` the device that the request describes.
    tun_set_iff,
    libc::TUNSETIFF,
    libc::ifreq
);

impl Tun {
    /// Makes the device in the calling thread's network namespace.
    pub(crate) fn open() -> Result<Tun, PathError> {
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(|cause| PathError::NoTunDevice { cause })?;
        let mut request = named_request(TUN_NAME);
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the descriptor is open, and the request is a fully initialised ifreq.
        unsafe { tun_set_iff(device.as_raw_fd(), &raw const request) }.map_err(|errno| {
            PathError::NotPermitted {
                action: "make a TUN device",
                cause: errno.into(),
            }
        })?;
        Ok(Tun { device })
    }

    /// The next packet that the namespace sent, its length; `None` if there is none now.
    pub(crate) fn read(&self, packet: &mut [u8]) -> Option<usize> {
        loop {
            match (&self.device).read(packet) {
                Ok(len) => return Some(len),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Nothing there, or the interface is down: then nothing will come either.
                Err(_) => return None,
            }
        }
    }

    /// Hands a packet to the namespace.
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.device).write(packet).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
