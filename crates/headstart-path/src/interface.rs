//! Addresses, size limits and flags of the interfaces in the calling thread's network namespace.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

mod request {
    //! The kernel's calls, with the types that they take.
    nix::ioctl_read_bad!(get_index, libc::SIOCGIFINDEX, libc::ifreq);
    nix::ioctl_read_bad!(get_flags, libc::SIOCGIFFLAGS, libc::ifreq);
    nix::ioctl_write_ptr_bad!(set_flags, libc::SIOCSIFFLAGS, libc::ifreq);
    nix::ioctl_write_ptr_bad!(set_mtu, libc::SIOCSIFMTU, libc::ifreq);
    nix::ioctl_write_ptr_bad!(set_queue_len, libc::SIOCSIFTXQLEN, libc::ifreq);
    nix::ioctl_write_ptr_bad!(set_address, libc::SIOCSIFADDR, libc::ifreq);
    nix::ioctl_write_ptr_bad!(set_netmask, libc::SIOCSIFNETMASK, libc::ifreq);
    nix::ioctl_write_ptr_bad!(add_address_v6, libc::SIOCSIFADDR, libc::in6_ifreq);
}

/// A request about the interface of this name, all else zero.
pub(crate) fn named_request(name: &str) -> libc::ifreq {
    let mut ifr_name = [0; libc::IFNAMSIZ];
    for (to, from) in ifr_name
        .iter_mut()
        .zip(name.bytes().take(libc::IFNAMSIZ - 1))
    {
        *to = from.cast_signed() as libc::c_char;
    }
    // SAFETY: all of an ifreq's variants are integers, pointers and arrays of them: zero is valid.
    let ifr_ifru = unsafe { std::mem::zeroed() };
    libc::ifreq { ifr_name, ifr_ifru }
}

/// One interface, for as long as the calling thread stays in its namespace.
pub(crate) struct Interface {
    name: &'static str,
    socket: OwnedFd,
}

impl Interface {
    pub(crate) fn named(name: &'static str) -> io::Result<Interface> {
        let socket = control_socket(AddressFamily::Inet)?;
        Ok(Interface { name, socket })
    }

    pub(crate) fn index(&self) -> io::Result<u32> {
        let mut request = named_request(self.name);
        // SAFETY: an open socket, and an initialised ifreq that outlives the call.
        unsafe { request::get_index(self.socket.as_raw_fd(), &raw mut request) }?;
        // SAFETY: the kernel has just written this variant.
        let index = unsafe { request.ifr_ifru.ifru_ifindex };
        Ok(index.unsigned_abs())
    }

    /// Brings it up. It sends no multicast of its own accord (MLD, IGMP): nothing but the traffic
    /// of the programs shall be on the path.
    pub(crate) fn up(&self) -> io::Result<()> {
        let mut request = named_request(self.name);
        // SAFETY: an open socket, and an initialised ifreq that outlives the call.
        unsafe { request::get_flags(self.socket.as_raw_fd(), &raw mut request) }?;
        // SAFETY: the kernel has just written this variant.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        request.ifr_ifru.ifru_flags =
            (flags | libc::IFF_UP as libc::c_short) & !(libc::IFF_MULTICAST as libc::c_short);
        // SAFETY: as above.
        unsafe { request::set_flags(self.socket.as_raw_fd(), &raw const request) }?;
        Ok(())
    }

    pub(crate) fn set_mtu(&self, mtu_bytes: u16) -> io::Result<()> {
        let mut request = named_request(self.name);
        request.ifr_ifru.ifru_mtu = libc::c_int::from(mtu_bytes);
        // SAFETY: an open socket, and an initialised ifreq that outlives the call.
        unsafe { request::set_mtu(self.socket.as_raw_fd(), &raw const request) }?;
        Ok(())
    }

    /// How many packets may wait in the device to be read.
    pub(crate) fn set_queue_len(&self, pkts: u16) -> io::Result<()> {
        let mut request = named_request(self.name);
        request.ifr_ifru.ifru_metric = libc::c_int::from(pkts);
        // SAFETY: an open socket, and an initialised ifreq that outlives the call. The kernel reads
        // ifr_qlen, an int at the place of every other int of the union.
        unsafe { request::set_queue_len(self.socket.as_raw_fd(), &raw const request) }?;
        Ok(())
    }

    pub(crate) fn set_address(&self, address: Ipv4Addr, prefix_len: u8) -> io::Result<()> {
        let netmask = Ipv4Addr::from_bits(u32::MAX.unbounded_shl(32 - u32::from(prefix_len)));
        let (address, netmask) = (self.with_address(address), self.with_address(netmask));
        // SAFETY: an open socket, and an initialised ifreq that outlives the call.
        unsafe { request::set_address(self.socket.as_raw_fd(), &raw const address) }?;
        // SAFETY: as above.
        unsafe { request::set_netmask(self.socket.as_raw_fd(), &raw const netmask) }?;
        Ok(())
    }

    fn with_address(&self, address: Ipv4Addr) -> libc::ifreq {
        let mut request = named_request(self.name);
        let inet = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: 0,
            sin_addr: libc::in_addr {
                s_addr: u32::from_ne_bytes(address.octets()),
            },
            sin_zero: [0; 8],
        };
        // SAFETY: both are plain data of the same 16 bytes; AF_INET says which one it is.
        request.ifr_ifru.ifru_addr =
            unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(inet) };
        request
    }

    pub(crate) fn add_address_v6(&self, address: Ipv6Addr, prefix_len: u8) -> io::Result<()> {
        let socket = control_socket(AddressFamily::Inet6)?;
        let request = libc::in6_ifreq {
            ifr6_addr: libc::in6_addr {
                s6_addr: address.octets(),
            },
            ifr6_prefixlen: u32::from(prefix_len),
            ifr6_ifindex: self.index()?.cast_signed(),
        };
        // SAFETY: an open AF_INET6 socket, whose address request is an in6_ifreq.
        unsafe { request::add_address_v6(socket.as_raw_fd(), &raw const request) }?;
        Ok(())
    }
}

fn control_socket(family: AddressFamily) -> io::Result<OwnedFd> {
    Ok(socket(
        family,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?)
}
