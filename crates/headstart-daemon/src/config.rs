//! The daemon's configuration: what `/etc/headstart/headstart.toml` says.

mod experiment;
mod keys;
mod memory;
mod read;
mod rules;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use headstart_core::Params;

pub use memory::MemoryConfig;

/// Where it stands unless the command line says otherwise.
pub const DEFAULT_FILE: &str = "/etc/headstart/headstart.toml";
/// The control socket's folder, unless the file says otherwise.
pub const DEFAULT_RUN_DIR: &str = "/run/headstart";

/// All that the file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The policy is attached here and below; `None`: to the root of cgroup v2.
    pub cgroup: Option<PathBuf>,
    /// Holds the control socket.
    pub run_dir: PathBuf,
    /// Holds what outlives the daemon: which rules are off.
    pub state_dir: PathBuf,
    /// The records of transfers.
    pub records: Records,
    /// The path memory.
    pub memory: MemoryConfig,
    /// Where the metrics are served; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
    /// The marking of packets with low drop priority.
    pub marking: Marking,
    /// When a rule is turned off.
    pub guard: Option<GuardConfig>,
    /// The arms of the experiment, if there is one.
    pub experiment: Option<Experiment>,
    /// In order: the first that matches decides.
    pub rules: Vec<RuleConfig>,
}

/// The records of transfers.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// Their folder.
    pub dir: PathBuf,
    /// Share of the connections that are recorded, 0 to 100.
    pub sample_percent: u8,
    /// A file is closed after this time.
    pub rotate: Duration,
    /// A file is closed when this much has been written for it, before compression.
    pub rotate_bytes: u64,
    /// Where closed files go; `None`: they stay.
    pub bucket: Option<BucketConfig>,
}

/// A bucket for closed files.
#[derive(Clone, PartialEq)]
pub struct BucketConfig {
    /// Store, bucket and prefix.
    pub url: String,
    /// What the store wants to know, beyond what the environment says.
    pub options: BTreeMap<String, String>,
    /// Keep files that are uploaded.
    pub keep: bool,
    /// Closed files that wait may be this large together; the oldest beyond are dropped, and counted.
    pub backlog_bytes: u64,
}

/// Options may be secrets.
impl fmt::Debug for BucketConfig {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("BucketConfig")
            .field("url", &self.url)
            .field("options", &self.options.keys())
            .field("keep", &self.keep)
            .field("backlog_bytes", &self.backlog_bytes)
            .finish()
    }
}

/// The marking of packets with low drop priority.
#[derive(Clone, Debug, PartialEq)]
pub struct Marking {
    /// 0 to 63.
    pub dscp: u8,
    /// `None`: all devices that there are at the start.
    pub devices: Option<Vec<String>>,
}

/// When a rule is turned off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GuardConfig {
    /// Share of the prefixes that a rule leaves alone, to compare with, 1 to 50.
    pub holdout_percent: u8,
    /// When it is worse than those.
    pub margins: Margins,
}

/// When something is worse than what it is compared with. A margin of `None` is not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Margins {
    /// What is compared are the transfers of the last so long.
    pub window: Duration,
    /// With fewer transfers than this on either side nothing is concluded.
    pub min_transfers: u64,
    /// Retransmitted bytes of 100 sent may be this many more.
    pub retransmission_points: Option<u32>,
    /// Timeouts in 100 transfers may be this many more.
    pub timeout_points: Option<u32>,
    /// The median of the latency may be this many percent more.
    pub latency_percent: Option<u32>,
}

/// What is done with a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// It keeps what it has.
    LeaveAlone,
    /// It gets this congestion control of the kernel's own.
    Native(String),
    /// It gets a start-up, with these parameters.
    Startup(Params),
}

impl Action {
    /// Its name in the file and in records.
    pub fn name(&self) -> &str {
        match self {
            Action::LeaveAlone => LEAVE_ALONE,
            Action::Native(name) => name,
            Action::Startup(params) => params.startup().name(),
        }
    }
}

/// One arm of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmConfig {
    /// Stands in the records.
    pub name: String,
    /// Of the units, in percent.
    pub share_percent: u8,
    /// What it does.
    pub action: Action,
}

/// The experiment that rules can name.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Stands in the status.
    pub name: String,
    /// Another salt is another assignment.
    pub salt: String,
    /// What is assigned to an arm as a whole.
    pub unit: Unit,
    /// The place of the arm that the others are compared with.
    pub baseline: usize,
    /// When an arm is so much worse that the experiment stops.
    pub stop: Option<Margins>,
    /// When it stops in any case, in us since 1970.
    pub until_us: Option<i64>,
    /// Two at least; their shares sum to 100.
    pub arms: Vec<ArmConfig>,
}

/// What is assigned to an arm as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// A destination prefix: no client mixes arms.
    Prefix,
    /// A connection.
    Connection,
    /// A slice of time, for the whole machine.
    Time {
        /// How long it is.
        slice: Duration,
        /// What begins in this time of it is marked, to be left out.
        burn_in: Duration,
    },
}

impl Unit {
    /// Its name in the file.
    pub fn name(&self) -> &'static str {
        match self {
            Unit::Prefix => "prefix",
            Unit::Connection => "connection",
            Unit::Time { .. } => "time",
        }
    }
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleAction {
    /// The same for all.
    One(Action),
    /// By the experiment's arms.
    Experiment,
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleConfig {
    /// Stands in status and records; no two are alike.
    pub name: String,
    /// The cgroup, relative to where cgroup v2 is mounted.
    pub cgroup: Option<PathBuf>,
    /// The device through which connections leave.
    pub interface: Option<String>,
    /// Our port, first and last.
    pub ports: (u16, u16),
    /// The peer's prefix.
    pub destination: Option<(IpAddr, u8)>,
    /// What it does.
    pub action: RuleAction,
    /// No congestion window above it.
    pub cap_pkts: Option<u32>,
    /// Whether transfers are recorded.
    pub records: bool,
}

const LEAVE_ALONE: &str = "leave-alone";

impl Config {
    /// The names of the arms of a rule, in their order.
    pub fn arm_names(&self, rule: &RuleConfig) -> Vec<String> {
        self.arms(rule).into_iter().map(|arm| arm.name).collect()
    }

    /// The arms of a rule: the experiment's, or the start-up and, where there is a guard, what it is compared with.
    pub fn arms(&self, rule: &RuleConfig) -> Vec<ArmConfig> {
        let one = |action: &Action, share_percent| ArmConfig {
            name: "all".to_owned(),
            share_percent,
            action: action.clone(),
        };
        match (&rule.action, &self.experiment, &self.guard) {
            (RuleAction::Experiment, Some(experiment), _) => experiment.arms.clone(),
            (RuleAction::Experiment, None, _) => vec![one(&Action::LeaveAlone, 100)],
            (RuleAction::One(action @ Action::Startup(_)), _, Some(guard)) => vec![
                ArmConfig {
                    name: "holdout".to_owned(),
                    ..one(&Action::LeaveAlone, guard.holdout_percent)
                },
                ArmConfig {
                    name: "treated".to_owned(),
                    ..one(action, 100 - guard.holdout_percent)
                },
            ],
            (RuleAction::One(action), _, _) => vec![one(action, 100)],
        }
    }
}
