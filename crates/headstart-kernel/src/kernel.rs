//! Start-ups in the kernel: loaded, configured, taken away.

use std::collections::HashSet;
use std::os::fd::{AsFd, AsRawFd};

use headstart_core::{ParamWords, Params, Startup};
use libbpf_rs::btf::Btf;
use libbpf_rs::{Link, MapCore, MapFlags, Object, OpenObject};

use crate::callbacks;
use crate::cgroup::Cgroup;
use crate::contract::{
    self, Counter, MAX_ALGS, MAX_GROUP_PREFIXES, RawConfig, RawPrefix, RecordLevel,
};
use crate::error::KernelError;
use crate::mark::Marker;
use crate::memory::{LiveMemory, MemoryOptions};
use crate::objects::BpfObject;
use crate::paths::{self, PathEntry, Prefix};
use crate::probe::{Probe, STRUCT_OPS_LINKS};
use crate::records::{self, Record};
use crate::windows::WindowRule;

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
    /// The path memory.
    pub memory: MemoryOptions,
    /// Initial windows of destinations and listeners, for `su_standard`.
    pub windows: Vec<WindowRule>,
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
            memory: MemoryOptions::default(),
            windows: Vec::new(),
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
    hint: Object,
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
        let wanted: HashSet<&str> = names(options);
        let open = prepare(options, &probe)?;
        let mut startup = BpfObject::Startup.load(open)?;
        write_config(&startup, options)?;
        let mark = load_beside(&startup, BpfObject::Mark)?;
        let hint = load_beside(&startup, BpfObject::Hint)?;

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
            hint,
            tcx: options.tcx,
        })
    }

    /// Lets the programs of `cgroup` say how large their next transfer is: `setsockopt(IPPROTO_TCP,`
    /// [`HINT_OPTION`](crate::HINT_OPTION)`, bytes)`, eight bytes in the machine's order. Until the link is dropped.
    ///
    /// # Errors
    /// When the kernel refuses the attachment.
    pub fn take_hints(&self, cgroup: &Cgroup) -> Result<Link, KernelError> {
        let program = self
            .hint
            .progs_mut()
            .find(|program| *program.name() == *"hs_hint")
            .ok_or_else(|| KernelError::no_part(BpfObject::Hint, "hs_hint"))?;
        program
            .attach_cgroup(cgroup.as_fd().as_raw_fd())
            .map_err(|error| {
                KernelError::operation(
                    format!("taking hints in {}", cgroup.path().display()),
                    error,
                )
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

    /// The path memory by itself, for another thread.
    ///
    /// # Errors
    /// Only when the process is out of file descriptors.
    pub fn path_memory(&self) -> Result<LiveMemory, KernelError> {
        LiveMemory::of(&self.map("hs_paths")?)
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

    /// Sets the initial window of a destination or a listener, for connections that open or resume from now on.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn set_window(&self, rule: &WindowRule) -> Result<(), KernelError> {
        rule.write(&self.map("hs_windows")?)?;
        let mut config = self.config()?;
        config.windows = 1;
        self.set_config(&config)
    }

    /// Gives a start-up that is loaded other parameters, for connections that open from now on. Those that are
    /// open go on with the new ones, too.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn set_params(&self, params: &Params) -> Result<(), KernelError> {
        let mut config = self.config()?;
        if let Some(slot) = config.params.get_mut(params.startup().number() as usize) {
            *slot = *params.words();
        }
        self.set_config(&config)
    }

    fn config(&self) -> Result<RawConfig, KernelError> {
        let bytes = self
            .map("hs_configs")?
            .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| KernelError::operation("reading the configuration", error))?;
        bytes
            .and_then(|bytes| contract::from_bytes(&bytes))
            .ok_or_else(|| KernelError::no_part(BpfObject::Startup, "hs_configs"))
    }

    fn set_config(&self, config: &RawConfig) -> Result<(), KernelError> {
        write_raw_config(&self.map("hs_configs")?, config)
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

/// The names of the start-ups that are asked for.
fn names(options: &Options) -> HashSet<&'static str> {
    let startups = options.startups.iter().map(Params::startup);
    startups.map(Startup::name).collect()
}

/// The start-ups' object, so that loading it brings those that are asked for, with the callbacks that this kernel has
/// and they have a use for.
fn prepare(options: &Options, probe: &Probe) -> Result<OpenObject, KernelError> {
    let links = options.links && probe.has(STRUCT_OPS_LINKS);
    let wanted = names(options);
    let kernel_types = Btf::from_vmlinux()
        .map_err(|error| KernelError::operation("reading the kernel's types", error))?;
    let ours = BpfObject::Startup.btf()?;
    let unknown = callbacks::unknown_to(&kernel_types, &ours);
    let for_shaping = callbacks::for_shaping(&ours);
    let shapes = |name: &str| Startup::named(name).is_ok_and(Startup::shapes);
    let mut open = BpfObject::Startup.open()?;
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name.starts_with("su_") {
            let value = map.initial_value_mut().unwrap_or_default();
            let useless: &[_] = if shapes(&name) { &[] } else { &for_shaping };
            for place in unknown.iter().chain(useless) {
                if let Some(callback) = value.get_mut(place.clone()) {
                    callback.fill(0);
                }
            }
        }
        if name.starts_with("su_") && !wanted.contains(name.as_str()) {
            map.set_autocreate(false)
                .map_err(|error| KernelError::operation(format!("leaving out {name}"), error))?;
        } else if name == "hs_transfers" {
            map.set_max_entries(options.transfer_room_bytes)
                .map_err(|error| KernelError::operation("making room for records", error))?;
        } else if name.starts_with("su_") && !links {
            map.set_map_flags(0).map_err(|error| {
                KernelError::operation(format!("registering {name} without a link"), error)
            })?;
        }
    }
    options.memory.prepare(&mut open)?;
    Ok(open)
}

/// An object that shares the maps of the start-ups' object.
fn load_beside(startup: &Object, object: BpfObject) -> Result<Object, KernelError> {
    let mut open = object.open()?;
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if let Some(shared) = startup.maps().find(|other| *other.name() == *name) {
            map.reuse_fd(shared.as_fd())
                .map_err(|error| KernelError::operation(format!("sharing {name}"), error))?;
        }
    }
    object.load(open)
}

fn write_config(startup: &Object, options: &Options) -> Result<(), KernelError> {
    let find = |name: &str| {
        startup
            .maps()
            .find(|map| *map.name() == *name)
            .ok_or_else(|| KernelError::no_part(BpfObject::Startup, name))
    };
    let memory = &options.memory;
    let mut config = RawConfig {
        params: [ParamWords::default(); MAX_ALGS],
        memory: *memory.params.words(),
        record_level: options.record_level as u32,
        group_prefixes: 0,
        dscp: options.dscp & 0x3f,
        windows: u8::from(!options.windows.is_empty()),
        reserved: [0; 6],
        prefix_bits_v4: memory.lengths_v4.raw(32)?,
        prefix_bits_v6: memory.lengths_v6.raw(128)?,
        group: [RawPrefix::default(); MAX_GROUP_PREFIXES],
    };
    if memory.group.len() > MAX_GROUP_PREFIXES {
        return Err(KernelError::TooMany {
            what: "prefixes of the local network",
            most: MAX_GROUP_PREFIXES,
        });
    }
    for (slot, prefix) in config.group.iter_mut().zip(&memory.group) {
        *slot = prefix.raw();
        config.group_prefixes += 1;
    }
    for params in &options.startups {
        if let Some(slot) = config.params.get_mut(params.startup().number() as usize) {
            *slot = *params.words();
        }
    }
    let windows = find("hs_windows")?;
    for rule in &options.windows {
        rule.write(&windows)?;
    }
    write_raw_config(&find("hs_configs")?, &config)
}

fn write_raw_config(map: &impl MapCore, config: &RawConfig) -> Result<(), KernelError> {
    map.update(
        &0u32.to_ne_bytes(),
        contract::bytes_of(config),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

    use super::*;

    /// Nothing is registered, so that no name is taken.
    #[test]
    fn the_verifier_takes_every_program() {
        let options = Options {
            startups: Startup::all().map(Params::new).collect(),
            ..Options::default()
        };
        let probe = Probe::run();
        if let Err(error) = probe.require() {
            eprintln!("SKIPPED: {error}");
            return;
        }
        let startup = BpfObject::Startup
            .load(prepare(&options, &probe).unwrap())
            .unwrap();
        for object in [BpfObject::Mark, BpfObject::Hint] {
            load_beside(&startup, object).unwrap();
        }
    }
}
