//! Watching the connections of a cgroup, under any congestion control, and choosing theirs.

use std::net::IpAddr;
use std::os::fd::AsRawFd;

use libbpf_rs::{Link, MapCore, MapFlags, Object};

use crate::cgroup::Cgroup;
use crate::contract::{self, RawSample};
use crate::error::KernelError;
use crate::objects::BpfObject;
use crate::records::drain;

/// A look at a connection, at one of the kernel's RTT samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, on `CLOCK_MONOTONIC`, in ns.
    pub at_ns: u64,
    /// The peer.
    pub remote_addr: IpAddr,
    /// The peer's port.
    pub remote_port: u16,
    /// Our port.
    pub local_port: u16,
    /// Cumulative, since the connection opened.
    pub acked_bytes: u64,
    /// The congestion window.
    pub cwnd_pkts: u32,
    /// Infinite is [`headstart_core::INFINITE_SSTHRESH`].
    pub ssthresh_pkts: u32,
    /// Smoothed.
    pub srtt_us: u32,
    /// Sent, and neither acknowledged nor thought lost.
    pub inflight_pkts: u32,
    /// Since the connection opened.
    pub total_retrans_pkts: u32,
}

/// What to do with the connections of the cgroup.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// The congestion control of connections that are established from now on; `None` leaves them as they are.
    pub congestion: Option<String>,
    /// Take samples.
    pub samples: bool,
}

/// Holds until it is dropped, or the process ends.
pub struct Watch {
    _link: Link,
    object: Object,
}

impl Watch {
    /// Watches `cgroup` and what is below it.
    ///
    /// # Errors
    /// When the kernel refuses the program or the attachment.
    pub fn attach(cgroup: &Cgroup, options: &WatchOptions) -> Result<Watch, KernelError> {
        let mut open = BpfObject::Watch.open()?;
        for mut map in open.maps_mut() {
            if map.name().to_string_lossy().ends_with(".rodata")
                && let Some(bytes) = map.initial_value_mut()
            {
                write_rodata(bytes, options);
            }
        }
        let object = BpfObject::Watch.load(open)?;
        let link = {
            let program = object
                .progs_mut()
                .find(|program| *program.name() == *"hs_watch")
                .ok_or_else(|| KernelError::no_part(BpfObject::Watch, "hs_watch"))?;
            program
                .attach_cgroup(cgroup.as_fd().as_raw_fd())
                .map_err(|error| {
                    KernelError::operation(
                        format!("watching the cgroup {}", cgroup.path().display()),
                        error,
                    )
                })?
        };
        Ok(Watch {
            _link: link,
            object,
        })
    }

    /// Connections for which the kernel refused the chosen congestion control: they run under another.
    ///
    /// # Errors
    /// When the counter cannot be read.
    pub fn refused(&self) -> Result<u64, KernelError> {
        self.counter(REFUSED)
    }

    /// Samples that found the ring buffer full.
    ///
    /// # Errors
    /// When the counter cannot be read.
    pub fn samples_lost(&self) -> Result<u64, KernelError> {
        self.counter(SAMPLES_LOST)
    }

    fn counter(&self, counter: u32) -> Result<u64, KernelError> {
        let map = self.map("hs_watch_counters")?;
        let value = map
            .lookup(&counter.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| KernelError::operation("reading the watch's counters", error))?;
        Ok(value
            .and_then(|bytes| contract::from_bytes(&bytes))
            .unwrap_or(0))
    }

    /// Takes the samples since the last call, oldest first.
    ///
    /// # Errors
    /// When the ring buffer cannot be read.
    pub fn take_samples(&self) -> Result<Vec<Sample>, KernelError> {
        let map = self.map("hs_samples")?;
        drain(&map, |bytes| {
            let raw: RawSample = contract::from_bytes(bytes)?;
            Some(Sample {
                at_ns: raw.at_ns,
                remote_addr: contract::address(raw.family, raw.remote_addr),
                remote_port: raw.remote_port,
                local_port: raw.local_port,
                acked_bytes: raw.acked_bytes,
                cwnd_pkts: raw.cwnd_pkts,
                ssthresh_pkts: raw.ssthresh_pkts,
                srtt_us: raw.srtt_us,
                inflight_pkts: raw.inflight_pkts,
                total_retrans_pkts: raw.total_retrans_pkts,
            })
        })
    }

    fn map(&self, name: &str) -> Result<libbpf_rs::Map<'_>, KernelError> {
        let found = self.object.maps().find(|map| *map.name() == *name);
        found.ok_or_else(|| KernelError::no_part(BpfObject::Watch, name))
    }
}

/// `enum hs_watch_counter`.
const SAMPLES_LOST: u32 = 0;
const REFUSED: u32 = 2;

/// `struct hs_watch_config` of watch.bpf.c: the name in 16 bytes, then the switch.
fn write_rodata(bytes: &mut [u8], options: &WatchOptions) {
    let name = options.congestion.as_deref().unwrap_or_default().as_bytes();
    let (name_bytes, rest) = bytes.split_at_mut(16.min(bytes.len()));
    for (to, from) in name_bytes.iter_mut().take(15).zip(name) {
        *to = *from;
    }
    if let Some(switch) = rest.get_mut(..4) {
        switch.copy_from_slice(&u32::from(options.samples).to_ne_bytes());
    }
}
