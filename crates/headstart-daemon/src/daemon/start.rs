//! What happens before the daemon runs: the configuration is read, the policy put into force.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use headstart_core::{Params, Startup};
use headstart_kernel::{Attachment, Kernel, Options, Policy};

use super::{Daemon, DaemonError, now_ns, system, wall_now};
use crate::config::{Action, ArmConfig, Config};
use crate::kept::OffRules;
use crate::memory::Memory;
use crate::rules::{Numbers, resolve};
use crate::slices::Slices;
use crate::stats::Stats;
use crate::store::Store;
use crate::uploads::Uploads;
use crate::watches::Watches;

const RECORD_ROOM_BYTES: u32 = 1 << 24;

/// Reads the configuration and says what is wrong with it, if anything is. Changes nothing.
///
/// # Errors
/// [`DaemonError::Config`] with file and line, or [`DaemonError::ConfigFile`].
pub fn check(file: &Path) -> Result<Config, DaemonError> {
    let refused = |cause: String| DaemonError::ConfigFile {
        file: file.to_owned(),
        cause,
    };
    let mut open = File::open(file)
        .map_err(|error| refused(format!("{error}; give a configuration with --config FILE")))?;
    // Of the open file: nobody puts another in its place between the look and the reading.
    let metadata = open
        .metadata()
        .map_err(|error| refused(error.to_string()))?;
    let me = nix::unistd::geteuid().as_raw();
    if metadata.mode() & 0o022 != 0 {
        let cause = "others than its owner can write it; chmod go-w it";
        return Err(refused(cause.to_owned()));
    }
    if metadata.uid() != 0 && metadata.uid() != me {
        let cause = format!(
            "it belongs to the user {}; chown it to root",
            metadata.uid()
        );
        return Err(refused(cause));
    }
    let mut text = String::new();
    open.read_to_string(&mut text)
        .map_err(|error| refused(error.to_string()))?;
    Ok(Config::parse(
        &file.display().to_string(),
        &text,
        &native_controls(),
    )?)
}

fn native_controls() -> Vec<String> {
    let there = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default();
    let native = there
        .split_whitespace()
        .filter(|name| !name.starts_with("su_"));
    native.map(str::to_owned).collect()
}

impl Daemon {
    pub(super) fn start(file: &Path, config: Config) -> Result<Daemon, DaemonError> {
        let off = OffRules::load(&config.state_dir).map_err(|error| {
            system(
                format!("using the folder {}", config.state_dir.display()),
                error,
            )
        })?;
        let (store, unclosed) = Store::open(config.records.clone())?;
        let options = Options {
            // All of them: a reload may name any.
            startups: Startup::all().map(Params::new).collect(),
            dscp: config.marking.dscp,
            transfer_room_bytes: RECORD_ROOM_BYTES,
            memory: Memory::options(&config.memory),
            ..Options::default()
        };
        let kernel = Kernel::load(&options)?;
        let memory = Memory::load(&config.memory, &kernel);
        let marks = mark(&kernel, &config)?;
        let cgroup = attachment_point(&config)?;
        let mut policy = Policy::attach(&kernel, &cgroup)?;
        let mut numbers = Numbers::default();
        let (now, wall) = (now_ns(), wall_now());
        let slices = first_slice(&config, now, wall.us(now));
        let arm = slices.as_ref().and_then(Slices::arm);
        let resolved = resolve(&config, &mut numbers, &off, arm);
        policy.apply(&resolved.spec)?;
        let mut daemon = Daemon {
            file: file.to_owned(),
            watches: Watches::of(&config),
            slices,
            config,
            policy,
            marks,
            kernel,
            memory,
            resolved,
            numbers,
            off,
            stats: Stats::default(),
            taken: Vec::new(),
            store,
            store_error: None,
            uploads: None,
            upload_error: None,
            wall,
            begun_ns: now,
            configured_ns: now,
            next_round_ns: now,
            was_pending: false,
            lost_told: 0,
            errors: VecDeque::new(),
            cgroup,
        };
        if let Some(error) = unclosed {
            daemon.tell(&error);
        }
        Ok(daemon)
    }
}

/// With the arm of now in force, where the experiment is by time.
pub(super) fn first_slice(config: &Config, now_ns: u64, wall_us: i64) -> Option<Slices> {
    let mut slices = config.experiment.as_ref().and_then(Slices::of)?;
    slices.look(now_ns, wall_us);
    Some(slices)
}

/// After the capabilities are dropped: the thread has no more than those that are left.
pub(super) fn uploads(config: &Config) -> Result<Option<Uploads>, DaemonError> {
    let Some(bucket) = &config.records.bucket else {
        return Ok(None);
    };
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.map_err(|error| system("asking for the machine's name", error))?;
    let uploads = Uploads::start(&config.records.dir, bucket, host.trim());
    Ok(Some(
        uploads.map_err(|error| system("starting the uploads", error))?,
    ))
}

fn attachment_point(config: &Config) -> Result<PathBuf, DaemonError> {
    let root = headstart_kernel::cgroup_root()?;
    Ok(match &config.cgroup {
        Some(path) => root.join(path.strip_prefix("/").unwrap_or(path)),
        None => root,
    })
}

/// Puts the marker on the devices where a rule names a start-up that marks: every packet of a device would pass it.
pub(super) fn mark(kernel: &Kernel, config: &Config) -> Result<Vec<Attachment>, DaemonError> {
    let marks =
        |arm: ArmConfig| matches!(arm.action, Action::Startup(params) if params.startup().marks());
    let mut arms = config.rules.iter().flat_map(|rule| config.arms(rule));
    if !arms.any(marks) {
        return Ok(Vec::new());
    }
    let named = config.marking.devices.as_deref();
    let marker = kernel.marker()?;
    let mut marks = Vec::new();
    let there = nix::net::if_::if_nameindex().map_err(|error| system("listing devices", error))?;
    for device in &there {
        let name = device.name().to_string_lossy();
        if named.is_some_and(|named| !named.iter().any(|wanted| *wanted == name)) {
            continue;
        }
        match marker.attach(device.index()) {
            Ok(mark) => marks.push(mark),
            Err(error) if named.is_none() => tracing::warn!("{name}: {error}"),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(marks)
}
