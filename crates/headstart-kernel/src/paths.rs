//! The path memory, as user space sees it.

use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;
use std::time::Duration;

use headstart_core::Path;
use libbpf_rs::{MapCore, MapFlags};
use serde::{Deserialize, Serialize};

use crate::batch;
use crate::contract::{self, GROUP, RawPathEntry, RawPrefix};
use crate::error::KernelError;

/// How the local network as one group is written.
const GROUP_NAME: &str = "local-network";

/// The destinations that share an entry: those of a prefix, or the local network as one group.
///
/// Written `10.77.3.0/24`, `fd00::/8`, `10.0.0.1` (one host) or `local-network`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix(Inner);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Inner {
    Group,
    Of { addr: IpAddr, bits: u8 },
}

/// What is remembered of one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathEntry {
    /// The destinations it is for.
    pub prefix: Prefix,
    /// What was learnt; `age_us` is how long ago.
    pub path: Path,
}

/// An entry as the kernel holds it: with the moment at which it was learnt, or, where a start from it failed, at which it
/// was forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lesson {
    /// The destinations it is for.
    pub prefix: Prefix,
    /// What was learnt; `age_us` is what it was at `learnt_ns`: 0, unless it was learnt before this machine was started.
    /// Without a window: the path was forgotten.
    pub path: Path,
    /// When, by `CLOCK_BOOTTIME`, in ns.
    pub learnt_ns: u64,
}

impl Lesson {
    /// What `entry` says at the moment `now_ns`.
    pub fn of(entry: &PathEntry, now_ns: u64) -> Lesson {
        let since_boot_us = entry.path.age_us.min(now_ns / 1000);
        Lesson {
            prefix: entry.prefix,
            path: Path {
                age_us: entry.path.age_us - since_boot_us,
                ..entry.path
            },
            learnt_ns: now_ns - since_boot_us * 1000,
        }
    }

    /// A start from what was remembered failed.
    pub fn is_forgotten(&self) -> bool {
        self.path.cwnd_pkts == 0
    }

    /// The same with its age at the moment `now_ns`.
    pub fn entry(&self, now_ns: u64) -> PathEntry {
        let since_us = now_ns.saturating_sub(self.learnt_ns) / 1000;
        PathEntry {
            prefix: self.prefix,
            path: Path {
                age_us: self.path.age_us.saturating_add(since_us),
                ..self.path
            },
        }
    }

    fn from_raw(prefix: Prefix, raw: &RawPathEntry) -> Lesson {
        Lesson {
            prefix,
            path: raw.path,
            learnt_ns: raw.learnt_ns,
        }
    }
}

/// Why a text is no prefix.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// There is no address in it.
    #[error(
        "\"{0}\" is no address: write a prefix like 10.77.3.0/24 or fd00::/8, an address, or local-network"
    )]
    Address(String),
    /// The length does not fit the address.
    #[error("\"{text}\": an address of that kind has {most} bits")]
    Bits {
        /// What was given.
        text: String,
        /// How many bits there are.
        most: u8,
    },
}

impl Prefix {
    /// The prefix of `bits` bits in which `addr` lies; more bits than the address has count as all of them.
    pub fn of(addr: IpAddr, bits: u8) -> Prefix {
        match addr {
            IpAddr::V4(v4) => {
                let bits = bits.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                Prefix(Inner::Of {
                    addr: IpAddr::V4((v4.to_bits() & mask).into()),
                    bits,
                })
            }
            IpAddr::V6(v6) => {
                let bits = bits.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                Prefix(Inner::Of {
                    addr: IpAddr::V6((v6.to_bits() & mask).into()),
                    bits,
                })
            }
        }
    }

    /// The local network as one group, whatever prefixes it has.
    pub fn local_network() -> Prefix {
        Prefix(Inner::Group)
    }

    /// Its first address; `None` for the local network.
    pub fn addr(&self) -> Option<IpAddr> {
        match self.0 {
            Inner::Group => None,
            Inner::Of { addr, .. } => Some(addr),
        }
    }

    /// How many bits are given; `None` for the local network.
    pub fn bits(&self) -> Option<u8> {
        match self.0 {
            Inner::Group => None,
            Inner::Of { bits, .. } => Some(bits),
        }
    }

    /// Whether all of `other` lies in it.
    pub fn contains(&self, other: &Prefix) -> bool {
        match (self.0, other.0) {
            (Inner::Group, Inner::Group) => true,
            (
                Inner::Of { addr, bits },
                Inner::Of {
                    addr: theirs,
                    bits: longer,
                },
            ) => {
                addr.is_ipv4() == theirs.is_ipv4()
                    && bits <= longer
                    && Prefix::of(theirs, bits) == *self
            }
            _ => false,
        }
    }

    pub(crate) fn raw(&self) -> RawPrefix {
        let mut raw = RawPrefix::default();
        match self.0 {
            Inner::Group => raw.family = GROUP,
            Inner::Of { addr, bits } => {
                raw.bits = bits;
                match addr {
                    IpAddr::V4(v4) => {
                        raw.family = 4;
                        raw.addr[..4].copy_from_slice(&v4.octets());
                    }
                    IpAddr::V6(v6) => {
                        raw.family = 6;
                        raw.addr = v6.octets();
                    }
                }
            }
        }
        raw
    }

    fn from_raw(raw: &RawPrefix) -> Prefix {
        match raw.family {
            GROUP => Prefix::local_network(),
            family => Prefix::of(contract::address(family, raw.addr), raw.bits),
        }
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == GROUP_NAME {
            return Ok(Prefix::local_network());
        }
        let (addr, bits) = match text.split_once('/') {
            Some((addr, bits)) => (addr, Some(bits)),
            None => (text, None),
        };
        let addr: IpAddr = addr
            .parse()
            .map_err(|_| PrefixError::Address(text.to_owned()))?;
        let most = if addr.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| {
            let bits = bits.parse().ok().filter(|bits| *bits <= most);
            bits.ok_or_else(|| PrefixError::Bits {
                text: text.to_owned(),
                most,
            })
        });
        Ok(Prefix::of(addr, bits?))
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Inner::Group => f.write_str(GROUP_NAME),
            Inner::Of {
                addr: IpAddr::V4(addr),
                bits,
            } => f.write_str(DottedPrefix::of(addr, bits).as_str()),
            Inner::Of { addr, bits } => write!(f, "{addr}/{bits}"),
        }
    }
}

/// An IPv4 prefix as text. By hand: each record of a transfer has one, and the standard library's way, number by
/// number through a formatter, takes longer than the rest of the row.
struct DottedPrefix {
    /// The longest: `255.255.255.255/32`.
    text: [u8; 18],
    bytes: usize,
}

impl DottedPrefix {
    fn of(addr: Ipv4Addr, bits: u8) -> DottedPrefix {
        let mut prefix = DottedPrefix {
            text: [0; 18],
            bytes: 0,
        };
        for (place, octet) in addr.octets().into_iter().enumerate() {
            if place > 0 {
                prefix.push(b'.');
            }
            prefix.push_number(octet);
        }
        prefix.push(b'/');
        prefix.push_number(bits);
        prefix
    }

    fn push_number(&mut self, number: u8) {
        if number >= 100 {
            self.push(b'0' + number / 100);
        }
        if number >= 10 {
            self.push(b'0' + number / 10 % 10);
        }
        self.push(b'0' + number % 10);
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.text.get_mut(self.bytes) {
            *place = byte;
            self.bytes += 1;
        }
    }

    fn as_str(&self) -> &str {
        // Digits, dots and a slash.
        std::str::from_utf8(&self.text[..self.bytes]).unwrap_or_default()
    }
}

impl Serialize for Prefix {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// `CLOCK_BOOTTIME` in nanoseconds: the clock of `bpf_ktime_get_boot_ns`, which goes on while the machine sleeps.
fn boottime_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME);
    now.map_or(0, |time| {
        u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX)
    })
}

/// Now, by the clock of [`Lesson::learnt_ns`].
pub(crate) fn now_ns() -> u64 {
    boottime_ns()
}

/// Every element, those that say that a path was forgotten too.
pub(crate) fn look(map: &impl MapCore, mut each: impl FnMut(Lesson)) -> Result<(), KernelError> {
    batch::for_each(map, |key, value| {
        if let (Some(prefix), Some(entry)) = (
            contract::from_bytes::<RawPrefix>(key),
            contract::from_bytes::<RawPathEntry>(value),
        ) {
            each(Lesson::from_raw(Prefix::from_raw(&prefix), &entry));
        }
    })
    .map_err(|error| KernelError::operation("reading the path memory", error))
}

pub(crate) fn all(map: &impl MapCore) -> Result<Vec<PathEntry>, KernelError> {
    let now_ns = boottime_ns();
    let mut entries = Vec::new();
    look(map, |lesson| {
        if !lesson.is_forgotten() {
            entries.push(lesson.entry(now_ns));
        }
    })?;
    Ok(entries)
}

pub(crate) fn get(map: &impl MapCore, prefix: Prefix) -> Result<Option<Lesson>, KernelError> {
    let value = map
        .lookup(contract::bytes_of(&prefix.raw()), MapFlags::ANY)
        .map_err(|error| KernelError::operation(format!("looking up {prefix}"), error))?;
    let entry = value.and_then(|value| contract::from_bytes::<RawPathEntry>(&value));
    Ok(entry.map(|entry| Lesson::from_raw(prefix, &entry)))
}

pub(crate) fn forget(map: &impl MapCore, prefix: Prefix) -> Result<bool, KernelError> {
    let known = get(map, prefix)?.is_some_and(|lesson| !lesson.is_forgotten());
    match map.delete(contract::bytes_of(&prefix.raw())) {
        Ok(()) => Ok(known),
        Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(KernelError::operation(
            format!("forgetting {prefix}"),
            error,
        )),
    }
}

pub(crate) fn remember(map: &impl MapCore, entry: &PathEntry) -> Result<(), KernelError> {
    put(map, &Lesson::of(entry, boottime_ns()))
}

pub(crate) fn put(map: &impl MapCore, lesson: &Lesson) -> Result<(), KernelError> {
    let raw = RawPathEntry {
        path: lesson.path,
        learnt_ns: lesson.learnt_ns,
    };
    map.update(
        contract::bytes_of(&lesson.prefix.raw()),
        contract::bytes_of(&raw),
        MapFlags::ANY,
    )
    .map_err(|error| KernelError::operation(format!("remembering {}", lesson.prefix), error))
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

    /// What was saved before the machine was started is older than its clock.
    #[test]
    fn an_entry_keeps_an_age_above_the_time_since_the_boot() {
        let minutes_us = |minutes: u64| minutes * 60_000_000;
        for age_us in [0, minutes_us(5), minutes_us(50)] {
            let path = Path {
                age_us,
                ..Path::default()
            };
            let prefix = Prefix::of("10.77.3.0".parse().unwrap(), 24);
            let now_ns = minutes_us(10) * 1000;
            let lesson = Lesson::of(&PathEntry { prefix, path }, now_ns);
            assert!(lesson.learnt_ns <= now_ns);
            assert_eq!(lesson.entry(now_ns).path.age_us, age_us);
            let later = lesson.entry(now_ns + minutes_us(1) * 1000);
            assert_eq!(later.path.age_us, age_us + minutes_us(1));
        }
    }

    #[test]
    fn a_prefix_is_read_as_it_is_written_and_knows_what_lies_in_it() {
        let prefix = |text: &str| text.parse::<Prefix>().unwrap();
        for text in [
            "10.77.3.0/24",
            "fd77:0:3::/48",
            "0.0.0.0/0",
            "local-network",
        ] {
            assert_eq!(prefix(text).to_string(), text);
            assert_eq!(Prefix::from_raw(&prefix(text).raw()), prefix(text));
        }
        assert_eq!(prefix("10.77.3.9"), prefix("10.77.3.9/32"));
        assert!(prefix("10.77.0.0/16").contains(&prefix("10.77.3.0/24")));
        assert!(!prefix("10.77.3.0/24").contains(&prefix("10.77.0.0/16")));
        assert!(!prefix("0.0.0.0/0").contains(&prefix("::/0")));
        assert!(!prefix("0.0.0.0/0").contains(&prefix("local-network")));
        let error = "10.0.0.0/33".parse::<Prefix>().unwrap_err().to_string();
        assert!(error.contains("32 bits"), "{error}");
    }
}
