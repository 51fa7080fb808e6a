//! Start-ups in the kernel: loaded, configured, taken away.

use std::collections::HashSet;
use std::os::fd::AsFd;

use headstart_core::{ParamWords, Params};
use libbpf_rs::{Link, MapCore, MapFlags, Object};

use crate::contract::{self, Counter, MAX_ALGS, RawConfig, RecordLevel};
use crate::error::KernelError;
use crate::mark::Marker;
use crate::objects::BpfObject;
use crate::paths::{self, PathEntry, Prefix};
use crate::probe::{Probe, STRUCT_OPS_LINKS};
use crate::records::{self, Record};

/// How the start-ups are to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The start-ups to register, with their parameters; each at most once.
    pub startups: Vec<Params>,
    /// What goes into the ring buffer.
    pub record_level: RecordLevel,
    /// The DSCP of packets with low drop priority, 0 to 63. The default is 1, "lower effort" (RFC 8622): the
    /// codepoint whose packets a router that knows it drops first.
    pub dscp: u8,
    /// The path memory's prefix length for IPv4, 0 to 32.
    pub prefix_bits_v4: u8,
    /// The path memory's prefix length for IPv6, 0 to 128.
    pub prefix_bits_v6: u8,
    /// Room for records of transfers that user space has not taken yet: a power of 2, at least a page. They are made
    /// under a [`crate::Policy`] only.
    pub transfer_room_bytes: u32,
    /// Register by struct_ops links, where the kernel has them. False: as on a kernel without (Linux before 6.4).
    pub links: bool,
    /// Attach the marker by tcx links, where the kernel has them. False: as on a kernel without (Linux before 6.6).
    pub tcx: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            startups: Vec::new(),
            record_level: RecordLevel::Nothing,
            dscp: 1,
            prefix_bits_v4: 24,
            prefix_bits_v6: 48,
            transfer_room_bytes: 1 << 12,
            links: true,
            tcx: true,
        }
    }
}

/// The start-ups, as long as this value lives.
///
/// Dropping it takes them away: the names are gone from `tcp_available_congestion_control` at once, and the
/// programs with the last connection that uses them.
pub struct Kernel {
    // The links go first: no new connection may come while the maps are taken down.
    _links: Vec<Link>,
    startup: Object,
    mark: Object,
    tcx: bool,
}

impl Kernel {
    /// Loads the programs and registers the start-ups as congestion controls.
    ///
    /// # Errors
    /// [`KernelError::CannotHere`] when the machine lacks something, [`KernelError::NameTaken`] when a start-up
    /// is registered already, else what the kernel refused.
    pub fn load(options: &Options) -> Result<Kernel, KernelError> {
        let probe = Probe::run();
        probe.require()?;
        refuse_taken(options)?;
        let links = options.links && probe.has(STRUCT_OPS_LINKS);
        let wanted: HashSet<&str> = options
            .startups
            .iter()
            .map(|params| params.startup().name())
            .collect();

        let mut open = BpfObject::Startup.open()?;
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if name.starts_with("su_") && !wanted.contains(name.as_str()) {
                map.set_autocreate(false).map_err(|error| {
                    KernelError::operation(format!("leaving out {name}"), error)
                })?;
            } else if name == "hs_transfers" {
                map.set_max_entries(options.transfer_room_bytes)
                    .map_err(|error| KernelError::operation("making room for records", error))?;
            } else if name.starts_with("su_") && !links {
                map.set_map_flags(0).map_err(|error| {
                    KernelError::operation(format!("registering {name} without a link"), error)
                })?;
            }
        }
        let mut startup = BpfObject::Startup.load(open)?;
        write_config(&startup, options)?;

        let mut open = BpfObject::Mark.open()?;
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if let Some(shared) = startup.maps().find(|other| *other.name() == *name) {
                map.reuse_fd(shared.as_fd())
                    .map_err(|error| KernelError::operation(format!("sharing {name}"), error))?;
            }
        }
        let mark = BpfObject::Mark.load(open)?;

        let mut registered = Vec::new();
        for mut map in startup.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if wanted.contains(name.as_str()) {
                registered.push(map.attach_struct_ops().map_err(|error| {
                    KernelError::operation(format!("registering {name}"), error)
                })?);
            }
        }
        Ok(Kernel {
            _links: registered,
            startup,
            mark,
            tcx: options.tcx,
        })
    }

    /// The marker of low-drop-priority packets, to be attached to devices. It may be sent to another thread, and
    /// so into another network namespace.
    ///
    /// # Errors
    /// Only when the process is out of file descriptors.
    pub fn marker(&self) -> Result<Marker, KernelError> {
        Marker::new(&self.mark, self.tcx)
    }

    /// What is remembered of all paths, in no order.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn paths(&self) -> Result<Vec<PathEntry>, KernelError> {
        paths::all(&self.map("hs_paths")?)
    }

    /// Forgets what is remembered of `prefix`. True when there was something.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn forget(&self, prefix: Prefix) -> Result<bool, KernelError> {
        paths::forget(&self.map("hs_paths")?, prefix)
    }

    /// Writes an entry, as if it had been learnt `entry.path.age_us` ago.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn remember(&self, entry: &PathEntry) -> Result<(), KernelError> {
        paths::remember(&self.map("hs_paths")?, entry)
    }

    /// Takes what was recorded since the last call out of the ring buffer, oldest first.
    ///
    /// # Errors
    /// When the ring buffer cannot be read.
    pub fn take_records(&self) -> Result<Vec<Record>, KernelError> {
        records::take(&self.map("hs_records")?)
    }

    /// A counter's value since the load.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn counter(&self, counter: Counter) -> Result<u64, KernelError> {
        let key = (counter as u32).to_ne_bytes();
        let value = self
            .map("hs_counters")?
            .lookup(&key, MapFlags::ANY)
            .map_err(|error| KernelError::operation("reading the counters", error))?;
        Ok(value
            .and_then(|bytes| contract::from_bytes(&bytes))
            .unwrap_or(0))
    }

    /// The object whose maps the policy shares.
    pub(crate) fn startup_object(&self) -> &Object {
        &self.startup
    }

    fn map(&self, name: &str) -> Result<libbpf_rs::Map<'_>, KernelError> {
        let found = self.startup.maps().find(|map| *map.name() == *name);
        found.ok_or_else(|| KernelError::no_part(BpfObject::Startup, name))
    }
}

fn write_config(startup: &Object, options: &Options) -> Result<(), KernelError> {
    let mut config = RawConfig {
        params: [ParamWords::default(); MAX_ALGS],
        record_level: options.record_level as u32,
        dscp: options.dscp & 0x3f,
        prefix_bits_v4: options.prefix_bits_v4.min(32),
        prefix_bits_v6: options.prefix_bits_v6.min(128),
        reserved: 0,
    };
    for params in &options.startups {
        if let Some(slot) = config.params.get_mut(params.startup().number() as usize) {
            *slot = *params.words();
        }
    }
    let map = startup
        .maps()
        .find(|map| *map.name() == *"hs_configs")
        .ok_or_else(|| KernelError::no_part(BpfObject::Startup, "hs_configs"))?;
    map.update(
        &0u32.to_ne_bytes(),
        contract::bytes_of(&config),
        MapFlags::ANY,
    )
    .map_err(|error| KernelError::operation("writing the configuration", error))
}

/// The kernel would answer with a bare "file exists".
fn refuse_taken(options: &Options) -> Result<(), KernelError> {
    let there = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default();
    for params in &options.startups {
        let name = params.startup().name();
        if there.split_whitespace().any(|other| other == name) {
            return Err(KernelError::NameTaken {
                name: name.to_owned(),
            });
        }
    }
    Ok(())
}
