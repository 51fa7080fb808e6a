//! The layouts of `bpf/contract.h`.

use headstart_core::{Event, MemoryWords, ParamWords, Path, StateWords, Verdict};

pub(crate) const MAX_ALGS: usize = 16;
pub(crate) const MAX_PREFIX_LENGTHS: usize = 4;
pub(crate) const MAX_GROUP_PREFIXES: usize = 8;
/// No more prefix lengths.
pub(crate) const NO_LENGTH: u8 = 255;
/// The family of the local network as one group.
pub(crate) const GROUP: u8 = 1;

/// How much of what happens is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum RecordLevel {
    /// Nothing.
    #[default]
    Nothing = 0,
    /// Verdicts that say something.
    Decisions = 1,
    /// Every event with its verdict; can be replayed.
    Events = 2,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawConfig {
    pub(crate) params: [ParamWords; MAX_ALGS],
    pub(crate) memory: MemoryWords,
    pub(crate) record_level: u32,
    pub(crate) group_prefixes: u32,
    pub(crate) dscp: u8,
    pub(crate) windows: u8,
    pub(crate) reserved: [u8; 6],
    pub(crate) prefix_bits_v4: [u8; MAX_PREFIX_LENGTHS],
    pub(crate) prefix_bits_v6: [u8; MAX_PREFIX_LENGTHS],
    pub(crate) group: [RawPrefix; MAX_GROUP_PREFIXES],
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct RawPrefix {
    pub(crate) family: u8,
    pub(crate) bits: u8,
    pub(crate) reserved: [u8; 2],
    pub(crate) addr: [u8; 16],
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawPathEntry {
    pub(crate) path: Path,
    pub(crate) learnt_ns: u64,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawWindowKey {
    pub(crate) match_bits: u32,
    pub(crate) family: u8,
    pub(crate) reserved: u8,
    pub(crate) local_port: u16,
    pub(crate) addr: [u8; 16],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawRecord {
    pub(crate) at_ns: u64,
    pub(crate) socket: u64,
    pub(crate) alg: u32,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) family: u8,
    pub(crate) path_known: u8,
    pub(crate) reserved: [u8; 6],
    pub(crate) remote_addr: [u8; 16],
    pub(crate) path: Path,
    pub(crate) event: Event,
    pub(crate) verdict: Verdict,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawSample {
    pub(crate) at_ns: u64,
    pub(crate) acked_bytes: u64,
    pub(crate) cwnd_pkts: u32,
    pub(crate) ssthresh_pkts: u32,
    pub(crate) srtt_us: u32,
    pub(crate) inflight_pkts: u32,
    pub(crate) total_retrans_pkts: u32,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) family: u8,
    pub(crate) reserved: [u8; 7],
    pub(crate) remote_addr: [u8; 16],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawReplay {
    pub(crate) params: ParamWords,
    pub(crate) state: StateWords,
    pub(crate) path: Path,
    pub(crate) event: Event,
    pub(crate) verdict: Verdict,
    pub(crate) alg: u32,
    pub(crate) path_known: u32,
}

/// Keys of the counters map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Counter {
    /// Records that found the ring buffer full.
    RecordsLost = 0,
    /// Packets (before segmentation) that left with low drop priority.
    MarkedPkts = 1,
}

// bpf/contract.h asserts the same numbers.
const _: () = assert!(size_of::<RawConfig>() == 1244);
const _: () = assert!(size_of::<RawPrefix>() == 20);
const _: () = assert!(size_of::<RawPathEntry>() == 80);
const _: () = assert!(size_of::<RawWindowKey>() == 24);
const _: () = assert!(size_of::<RawRecord>() == 280);
const _: () = assert!(size_of::<RawSample>() == 64);
const _: () = assert!(size_of::<RawReplay>() == 432);

/// The bytes of a plain structure of this module.
pub(crate) fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: the structures of this module are `repr(C)`, made of integers, without padding (their sizes are
    // asserted to be the sums of their fields), so that every byte is initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Reads a plain structure of this module out of bytes that the kernel wrote; `None` when there are too few.
pub(crate) fn from_bytes<T: Copy>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: the length was checked; the structures of this module are made of integers, for which every bit
    // pattern is valid; the read does not assume alignment.
    Some(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}

/// The address of a peer, from the 16 bytes that the kernel's side writes.
pub(crate) fn address(family: u8, addr: [u8; 16]) -> std::net::IpAddr {
    if family == 4 {
        std::net::Ipv4Addr::new(addr[0], addr[1], addr[2], addr[3]).into()
    } else {
        std::net::Ipv6Addr::from(addr).into()
    }
}
