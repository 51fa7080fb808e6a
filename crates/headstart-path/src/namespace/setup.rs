//! What a fresh namespace is made of: its settings, its device, its addresses.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};

use crate::error::PathError;
use crate::hosts::HostId;
use crate::interface::Interface;
use crate::names;
use crate::tun::{TUN_NAME, Tun};

/// The largest packet on the emulated wire, IP header included.
pub(crate) const MTU_BYTES: u16 = 1500;

/// Packets that may wait for the router to read them. The device's own queue must never be the
/// path's bottleneck, so it holds more than any burst.
const TUN_QUEUE_PKTS: u16 = 32_767;

/// Settings of a fresh namespace: windows that a long path needs, and no memory of earlier
/// connections, so that repeats are alike. Initial buffer sizes are the kernel's defaults.
const SYSCTLS: [(&str, &str); 3] = [
    ("net.ipv4.tcp_rmem", "4096 131072 67108864"),
    ("net.ipv4.tcp_wmem", "4096 16384 67108864"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
];

/// IPv6 settings of the device: the address is usable at once (no duplicate address detection), and
/// the kernel sends nothing of its own accord (no link-local address, no router solicitation).
const SYSCTLS_V6: [(&str, &str); 4] = [
    ("disable_ipv6", "0"),
    ("accept_dad", "0"),
    ("addr_gen_mode", "1"),
    ("accept_ra", "0"),
];

/// What the holder thread made.
pub(super) struct Made {
    pub(super) namespace: File,
    pub(super) tun: Tun,
    pub(super) tun_ifindex: u32,
    pub(super) warnings: Vec<String>,
}

/// Moves the calling thread into a new namespace and makes its end of the path.
pub(super) fn enter_new(host: HostId, lane: u8, hosts_file: &str) -> Result<Made, PathError> {
    let (v4, v6) = host.addresses(lane);
    unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| match errno {
        Errno::EPERM | Errno::EACCES => {
            let action = "make a network namespace";
            PathError::NotPermitted {
                action,
                cause: errno.into(),
            }
        }
        _ => PathError::NoNamespaces {
            cause: errno.into(),
        },
    })?;
    let namespace = File::open("/proc/thread-self/ns/net").map_err(failed(host, "hold it"))?;
    let tun = Tun::open()?;
    for (setting, value) in SYSCTLS {
        write_sysctl(host, setting, value)?;
    }
    let mut warnings = Vec::new();
    let has_ipv6 = Path::new("/proc/sys/net/ipv6/conf").exists();
    if has_ipv6 {
        for (setting, value) in SYSCTLS_V6 {
            write_sysctl(host, &format!("net.ipv6.conf.{TUN_NAME}.{setting}"), value)?;
        }
    } else {
        warnings.push(format!(
            "{host} namespace: this kernel has no IPv6; IPv4 only"
        ));
    }
    if let Err(cause) = names::know_hosts(hosts_file) {
        warnings.push(format!(
            "{host} namespace: the names of the hosts are not known in it ({cause}): use the \
             addresses in the environment"
        ));
    }
    let configure = || -> io::Result<u32> {
        Interface::named("lo")?.up()?;
        let tun = Interface::named(TUN_NAME)?;
        tun.set_mtu(MTU_BYTES)?;
        tun.set_queue_len(TUN_QUEUE_PKTS)?;
        tun.set_address(v4, 24)?;
        tun.up()?;
        if has_ipv6 {
            tun.add_address_v6(v6, 64)?;
        }
        tun.index()
    };
    let tun_ifindex = configure().map_err(failed(host, "configure its interfaces"))?;
    Ok(Made {
        namespace,
        tun,
        tun_ifindex,
        warnings,
    })
}

/// Writes a setting of the calling thread's network namespace.
pub(super) fn write_sysctl(namespace: HostId, name: &str, value: &str) -> Result<(), PathError> {
    let refused = |cause| {
        let (name, value) = (name.to_owned(), value.to_owned());
        PathError::Sysctl {
            namespace,
            name,
            value,
            cause,
        }
    };
    if !name.starts_with("net.") || name.contains('/') {
        let why = "only settings below net. belong to a network namespace, written with dots";
        return Err(refused(io::Error::new(io::ErrorKind::InvalidInput, why)));
    }
    let path = Path::new("/proc/sys").join(name.replace('.', "/"));
    fs::write(path, value).map_err(refused)
}

/// The error of a failed action in this namespace.
pub(super) fn failed(host: HostId, action: &'static str) -> impl Fn(io::Error) -> PathError {
    move |cause| PathError::Namespace {
        namespace: host,
        action: action.to_owned(),
        cause,
    }
}
