//! The words of the control socket: one JSON object a line, one line each way.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A longer request is refused unread.
pub const MAX_REQUEST_BYTES: usize = 4096;

/// What can be asked of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// What is attached, and how it goes.
    Status,
    /// The last ten seconds.
    Top,
    /// Reads the configuration again.
    Reload,
    /// Turns a rule off, or all of them, and moves live connections back.
    Off {
        /// One rule; `None`: all.
        rule: Option<String>,
    },
    /// Turns a rule on again, or all of them.
    On {
        /// One rule; `None`: all.
        rule: Option<String>,
    },
    /// What a connection to that address would get now.
    Explain {
        /// The peer.
        addr: IpAddr,
        /// Our port.
        port: u16,
        /// The cgroup of the server.
        cgroup: Option<PathBuf>,
    },
}

/// Reads a request.
///
/// # Errors
/// In words, for whoever asked.
pub fn parse_request(line: &[u8]) -> Result<Request, String> {
    if line.len() > MAX_REQUEST_BYTES {
        return Err(format!("a request has at most {MAX_REQUEST_BYTES} bytes"));
    }
    serde_json::from_slice(line).map_err(|error| format!("not a request: {error}"))
}

/// The answer to [`Request::Status`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of this document.
    pub schema: u32,
    /// The daemon's process.
    pub pid: u32,
    /// How long it runs, in s.
    pub uptime_s: u64,
    /// The cgroup to which the policy is attached.
    pub cgroup: String,
    /// The configuration's file.
    pub config: String,
    /// When the configuration was taken, in s since the start.
    pub config_age_s: u64,
    /// The rules, in order.
    pub rules: Vec<RuleStatus>,
    /// The experiment, if there is one.
    pub experiment: Option<String>,
    /// Connections that are under a congestion control of ours.
    pub live_connections: u64,
    /// Connections that were moved back to a native one.
    pub moved_back: u64,
    /// Paths in the memory.
    pub paths_known: u64,
    /// The records.
    pub records: RecordStatus,
    /// The path memory.
    #[serde(default)]
    pub memory: MemoryStatus,
    /// Packets that left with low drop priority.
    pub marked_pkts: u64,
    /// Resident memory of the daemon, in bytes.
    pub resident_bytes: u64,
    /// The last errors, newest last, with when they came, in s since the start.
    pub errors: Vec<String>,
}

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleStatus {
    /// Its name.
    pub name: String,
    /// What it does, by arm.
    pub arms: Vec<String>,
    /// `active`, `waiting` or `off`.
    pub state: String,
    /// Why it is not active.
    pub why: Option<String>,
    /// Connections that it matched.
    pub matched: u64,
    /// Of them, those that got its congestion control.
    pub chosen: u64,
    /// Of them, those whose application had chosen by itself.
    pub app_chose: u64,
    /// Of them, those that the kernel refused it.
    pub refused: u64,
}

/// The path memory beside the kernel's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryStatus {
    /// Its file; `None`: it is not kept over restarts.
    pub file: Option<String>,
    /// How long ago it was saved, in s.
    pub saved_age_s: Option<u64>,
    /// Why it cannot be saved now.
    pub error: Option<String>,
    /// How many paths there is room for.
    pub max_paths: u32,
    /// The site's, if it is shared.
    pub site: Option<SiteReport>,
}

/// The memory that is shared by a site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteReport {
    /// The store, without its password.
    pub url: String,
    /// `connecting`, `shared`, `full`, `unreachable` or `refused`.
    pub state: String,
    /// What is learnt comes and goes.
    pub shared: bool,
    /// Why not.
    pub why: Option<String>,
    /// Paths told to the site.
    pub told: u64,
    /// Paths taken from it.
    pub taken: u64,
    /// Of them, those with a value above our cap.
    pub capped: u64,
    /// What stood in the store and was no path.
    pub rejected: u64,
    /// The last of them, and why.
    pub last_rejected: Option<String>,
    /// How often the store was found empty that had not been.
    pub emptied: u64,
    /// Exchanges that did not go through.
    pub failures: u64,
}

/// The records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordStatus {
    /// Their folder.
    pub dir: String,
    /// Transfers that the kernel recorded.
    pub recorded: u64,
    /// Transfers whose record found no room in the kernel's buffer.
    pub lost: u64,
    /// Rows that were dropped because the disk took none for too long.
    pub dropped: u64,
    /// Rows that are written.
    pub written: u64,
    /// Rows that wait for the disk.
    pub waiting: u64,
    /// Files closed.
    pub files: u64,
    /// Why they cannot be written now.
    pub error: Option<String>,
    /// The bucket for closed files, if there is one.
    pub bucket: Option<BucketStatus>,
}

/// Closed files on their way to the bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BucketStatus {
    /// Store, bucket and prefix.
    pub url: String,
    /// Closed files that are not there yet.
    pub waiting_files: u64,
    /// Their size.
    pub waiting_bytes: u64,
    /// Files that the store has confirmed since the daemon began.
    pub uploaded_files: u64,
    /// Their size.
    pub uploaded_bytes: u64,
    /// Files that were dropped because the backlog was full.
    pub dropped_files: u64,
    /// Their rows.
    pub dropped_rows: u64,
    /// Tries that failed.
    pub failures: u64,
    /// Why the last try failed; `None`: it did not.
    pub error: Option<String>,
}

/// One line of `top`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopRow {
    /// Rule and arm, or a prefix.
    pub name: String,
    /// Transfers per second.
    pub transfers_per_s: f64,
    /// Median latency.
    pub p50_ms: f64,
    /// 90 % are faster.
    pub p90_ms: f64,
    /// 99 % are faster.
    pub p99_ms: f64,
    /// Of all bytes sent.
    pub retransmitted_percent: f64,
    /// Timeouts.
    pub timeouts: u64,
}

/// The answer to [`Request::Explain`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The rule that matches; `None`: the connection is left alone and not recorded.
    pub rule: Option<String>,
    /// Its arm.
    pub arm: Option<String>,
    /// The start-up or congestion control that the connection would get.
    pub control: Option<String>,
    /// Why not, where the rule is off.
    pub off: Option<String>,
    /// What is remembered of the path, in words.
    pub path: Option<String>,
    /// The congestion window that the start-up would set at the opening; `None`: the stack's own.
    pub cwnd_pkts: Option<u32>,
    /// Why, in the start-up's words.
    pub why: Option<String>,
}
