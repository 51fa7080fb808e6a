//! The path memory, as user space sees it.

use std::net::IpAddr;
use std::time::Duration;

use headstart_core::Path;
use libbpf_rs::{MapCore, MapFlags};
use serde::Serialize;

use crate::contract::{self, RawPathEntry, RawPrefix};
use crate::error::KernelError;

/// A destination prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Prefix {
    addr: IpAddr,
    bits: u8,
}

/// What is remembered of one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PathEntry {
    /// The destinations it is for.
    pub prefix: Prefix,
    /// What was learnt; `age_us` is how long ago.
    pub path: Path,
}

impl Prefix {
    /// The prefix of `bits` bits in which `addr` lies; more bits than the address has count as all of them.
    pub fn of(addr: IpAddr, bits: u8) -> Prefix {
        match addr {
            IpAddr::V4(v4) => {
                let bits = bits.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                Prefix {
                    addr: IpAddr::V4((v4.to_bits() & mask).into()),
                    bits,
                }
            }
            IpAddr::V6(v6) => {
                let bits = bits.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                Prefix {
                    addr: IpAddr::V6((v6.to_bits() & mask).into()),
                    bits,
                }
            }
        }
    }

    fn raw(self) -> RawPrefix {
        let mut raw = RawPrefix {
            bits: self.bits,
            ..RawPrefix::default()
        };
        match self.addr {
            IpAddr::V4(v4) => {
                raw.family = 4;
                raw.addr[..4].copy_from_slice(&v4.octets());
            }
            IpAddr::V6(v6) => {
                raw.family = 6;
                raw.addr = v6.octets();
            }
        }
        raw
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.addr, self.bits)
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds: the clock of `bpf_ktime_get_ns`.
pub(crate) fn monotonic_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    now.map_or(0, |time| {
        u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX)
    })
}

pub(crate) fn all(map: &impl MapCore) -> Result<Vec<PathEntry>, KernelError> {
    let now_ns = monotonic_ns();
    let mut entries = Vec::new();
    for key in map.keys() {
        let value = map
            .lookup(&key, MapFlags::ANY)
            .map_err(|error| KernelError::operation("reading the path memory", error))?;
        // Gone between the listing and the look-up: the map is alive.
        let Some(value) = value else { continue };
        let (Some(prefix), Some(entry)) = (
            contract::from_bytes::<RawPrefix>(&key),
            contract::from_bytes::<RawPathEntry>(&value),
        ) else {
            continue;
        };
        let addr = contract::address(prefix.family, prefix.addr);
        let age_us = now_ns.saturating_sub(entry.learnt_ns) / 1000;
        entries.push(PathEntry {
            prefix: Prefix {
                addr,
                bits: prefix.bits,
            },
            path: Path {
                age_us,
                ..entry.path
            },
        });
    }
    Ok(entries)
}

pub(crate) fn forget(map: &impl MapCore, prefix: Prefix) -> Result<bool, KernelError> {
    match map.delete(contract::bytes_of(&prefix.raw())) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(KernelError::operation(
            format!("forgetting {prefix}"),
            error,
        )),
    }
}

pub(crate) fn remember(map: &impl MapCore, entry: &PathEntry) -> Result<(), KernelError> {
    let learnt_ns = monotonic_ns().saturating_sub(entry.path.age_us.saturating_mul(1000));
    let raw = RawPathEntry {
        path: Path {
            age_us: 0,
            ..entry.path
        },
        learnt_ns,
    };
    map.update(
        contract::bytes_of(&entry.prefix.raw()),
        contract::bytes_of(&raw),
        MapFlags::ANY,
    )
    .map_err(|error| KernelError::operation(format!("remembering {}", entry.prefix), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_keeps_its_bits_and_clears_the_rest() {
        let prefix = Prefix::of("10.77.3.200".parse().unwrap(), 24);
        assert_eq!(prefix.to_string(), "10.77.3.0/24");
        let prefix = Prefix::of("fd77:0:3:ffff::9".parse().unwrap(), 48);
        assert_eq!(prefix.to_string(), "fd77:0:3::/48");
        assert_eq!(
            Prefix::of("10.1.2.3".parse().unwrap(), 0).to_string(),
            "0.0.0.0/0"
        );
        assert_eq!(
            Prefix::of("10.1.2.3".parse().unwrap(), 60).to_string(),
            "10.1.2.3/32"
        );
    }
}
