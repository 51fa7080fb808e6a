//! The daemon's one thread: takes what the kernel recorded, answers requests, watches over the rules.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headstart_core::{Params, Startup};
use headstart_kernel::{Attachment, Counter, Kernel, KernelError, Options, Policy, Transfer};
use headstart_scenario::ScenarioError;
use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::clock::Wall;
use crate::config::{Action, Config};
use crate::control::ControlSocket;
use crate::guard::{Guard, Outcome};
use crate::kept::{ALL, OffRules};
use crate::protocol::{RecordStatus, Request, RuleStatus, Status};
use crate::row::Row;
use crate::rules::{ARM_BITS, Numbers, Resolved, look_up, resolve};
use crate::stats::Stats;
use crate::store::{Store, StoreError};
use crate::{explain, metrics, privileges};

/// How often the kernel's buffer is emptied. It has room for half a second at 200,000 records a second.
const STEP: Duration = Duration::from_millis(100);
/// How often all else is looked after.
const ROUND_NS: u64 = 1_000_000_000;
const RECORD_ROOM_BYTES: u32 = 1 << 24;
const MOST_ERRORS: usize = 20;
/// A jump of the wall clock that is worth a line in the log.
const JUMP: Duration = Duration::from_secs(1);

/// Why the daemon cannot run.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The configuration is refused.
    #[error(transparent)]
    Config(#[from] ScenarioError),
    /// The configuration cannot be read, or is not safe to read.
    #[error("{}: {cause}", file.display())]
    ConfigFile {
        /// The file.
        file: PathBuf,
        /// What is wrong, and what to do.
        cause: String,
    },
    /// The kernel would not.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The records' folder cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something of the system's.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        cause: String,
    },
}

/// What comes to the daemon's thread.
pub(crate) enum Message {
    Request(Request, Sender<Result<Value, String>>),
    Metrics(Sender<String>),
    Reload,
    Stop,
}

fn system(what: impl Into<String>, cause: impl std::fmt::Display) -> DaemonError {
    DaemonError::System {
        what: what.into(),
        cause: cause.to_string(),
    }
}

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

/// What a connection has without us: the machine's default, where that is not one of ours.
fn default_control() -> String {
    let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    let default = default.unwrap_or_default().trim().to_owned();
    if default.is_empty() || default.starts_with("su_") {
        "cubic".to_owned()
    } else {
        default
    }
}

fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX)
    })
}

fn wall_now() -> Wall {
    let wall = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Wall::at(u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX), now_ns())
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// [`DaemonError`]: what keeps it from starting. Once it runs, errors are told in log, status and metrics, and traffic
/// does not notice.
pub fn run(file: &Path) -> Result<(), DaemonError> {
    let config = check(file)?;
    let (to, from) = channel();
    let mut daemon = Daemon::start(file, config)?;
    // Capabilities are a thread's: those that are started from here on have no more than this one.
    privileges::drop_others().map_err(|error| system("dropping capabilities", error))?;
    pass_signals_on(to.clone())?;
    let run_dir = daemon.config.run_dir.clone();
    let _socket = ControlSocket::open(&run_dir, to.clone())
        .map_err(|error| system(format!("listening in {}", run_dir.display()), error))?;
    if let Some(address) = daemon.config.metrics {
        metrics::serve(address, to)
            .map_err(|error| system(format!("serving metrics on {address}"), error))?;
    }
    if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        tracing::warn!("telling systemd that we are ready: {error}");
    }
    tracing::info!("running; {} rules", daemon.config.rules.len());
    daemon.work(&from);
    Ok(())
}

fn pass_signals_on(to: Sender<Message>) -> Result<(), DaemonError> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])
        .map_err(|error| system("watching for signals", error))?;
    let thread = std::thread::Builder::new().name("hs-signals".to_owned());
    thread
        .spawn(move || {
            for signal in signals.forever() {
                let message = if signal == SIGHUP {
                    Message::Reload
                } else {
                    Message::Stop
                };
                if to.send(message).is_err() {
                    return;
                }
            }
        })
        .map(drop)
        .map_err(|error| system("starting a thread", error))
}

pub(crate) struct Daemon {
    file: PathBuf,
    pub(crate) config: Config,
    // The policy goes before the start-ups that it chooses.
    pub(crate) policy: Policy,
    _marks: Vec<Attachment>,
    pub(crate) kernel: Kernel,
    pub(crate) resolved: Resolved,
    numbers: Numbers,
    off: OffRules,
    guards: HashMap<String, Guard>,
    stats: Stats,
    store: Store,
    store_error: Option<String>,
    wall: Wall,
    begun_ns: u64,
    configured_ns: u64,
    next_round_ns: u64,
    was_pending: bool,
    lost_told: u64,
    errors: VecDeque<String>,
    cgroup: PathBuf,
}

impl Daemon {
    fn start(file: &Path, config: Config) -> Result<Daemon, DaemonError> {
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
            ..Options::default()
        };
        let kernel = Kernel::load(&options)?;
        let marks = mark(&kernel, config.marking.devices.as_deref())?;
        let cgroup = attachment_point(&config)?;
        let mut policy = Policy::attach(&kernel, &cgroup)?;
        let mut numbers = Numbers::default();
        let resolved = resolve(&config, &mut numbers, &off);
        policy.apply(&resolved.spec)?;
        let now = now_ns();
        let mut daemon = Daemon {
            file: file.to_owned(),
            guards: guards_of(&config),
            config,
            policy,
            _marks: marks,
            kernel,
            resolved,
            numbers,
            off,
            stats: Stats::default(),
            store,
            store_error: None,
            wall: wall_now(),
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

    fn work(&mut self, from: &Receiver<Message>) {
        loop {
            match from.recv_timeout(STEP) {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(Message::Reload) => {
                    if let Err(error) = self.reload() {
                        self.tell(&format!("the old configuration stays: {error}"));
                    }
                }
                Ok(Message::Request(request, reply)) => {
                    self.take();
                    drop(reply.send(self.answer(&request)));
                }
                Ok(Message::Metrics(reply)) => {
                    let status = self.status();
                    drop(reply.send(metrics::text_of(&status, &self.stats)));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.take();
            let now = now_ns();
            if now >= self.next_round_ns {
                self.next_round_ns = now + ROUND_NS;
                self.round(now);
            }
        }
        drop(sd_notify::notify(&[sd_notify::NotifyState::Stopping]));
        self.finish();
    }

    /// Takes what the kernel recorded.
    fn take(&mut self) {
        let transfers = match self.policy.take_transfers() {
            Ok(transfers) => transfers,
            Err(error) => return self.tell(&error),
        };
        let wall = wall_now();
        if self.wall.jump(&wall) > JUMP {
            tracing::warn!("the wall clock jumped by {:?}", self.wall.jump(&wall));
        }
        self.wall = wall;
        let now = now_ns();
        for transfer in transfers {
            let row = self.row(transfer);
            self.stats.add(now, &row);
            self.watch(now, &row);
            self.store.take([row]);
        }
    }

    fn row(&self, transfer: Transfer) -> Row {
        let named = self.numbers.named(transfer.rule_id);
        let rule = named
            .map(|named| named.rule.name.clone())
            .unwrap_or_default();
        let arm = named.and_then(|named| named.arms.get(usize::from(transfer.arm)));
        let arm = arm.map(|arm| arm.name.clone()).unwrap_or_default();
        Row::new(transfer, &self.wall, rule, arm, ARM_BITS)
    }

    fn watch(&mut self, now_ns: u64, row: &Row) {
        let Some(named) = self.numbers.named(row.transfer.rule_id) else {
            return;
        };
        let arm = named.arms.get(usize::from(row.transfer.arm));
        if let (Some(arm), Some(guard)) = (arm, self.guards.get_mut(&row.rule)) {
            let outcome = Outcome {
                treated: matches!(arm.action, Action::Startup(_)),
                bytes: row.transfer.bytes,
                retransmitted_bytes: row.transfer.retransmitted_bytes,
                rto_count: row.transfer.rto_count,
                latency_us: row.transfer.latency_us(),
            };
            guard.add(now_ns, &outcome);
        }
    }

    /// Once a second.
    fn round(&mut self, now: u64) {
        self.write_records(now);
        match self.policy.counts() {
            Ok(counts) => {
                if counts.pending > 0 && self.was_pending && self.policy.flush().is_ok() {
                    self.take();
                }
                self.was_pending = counts.pending > 0;
                if counts.records_lost > self.lost_told {
                    let lost = counts.records_lost - self.lost_told;
                    self.lost_told = counts.records_lost;
                    self.tell(&format!(
                        "{lost} records found no room in the kernel; lower sample_percent"
                    ));
                }
            }
            Err(error) => self.tell(&error),
        }
        if look_up(&self.config) != self.resolved.looked_up {
            self.apply();
        }
        let tripped: Vec<(String, String)> = self
            .guards
            .iter_mut()
            .filter_map(|(rule, guard)| Some((rule.clone(), guard.verdict(now)?)))
            .filter(|(rule, _)| self.off.reason(rule).is_none())
            .collect();
        for (rule, why) in tripped {
            self.tell(&format!("the guard turned the rule {rule} off: {why}"));
            if let Err(error) = self.turn_off(Some(&rule), &format!("by the guard: {why}")) {
                self.tell(&error);
            }
        }
    }

    fn write_records(&mut self, now: u64) {
        match self.store.flush(now, self.wall.us(now)) {
            Ok(()) => self.store_error = None,
            Err(error) => {
                let text = error.to_string();
                if self.store_error.as_deref() != Some(&text) {
                    self.tell(&text);
                }
                self.store_error = Some(text);
            }
        }
    }

    fn finish(&mut self) {
        drop(self.policy.flush());
        self.take();
        let now = now_ns();
        self.write_records(now);
        if let Err(error) = self.store.close() {
            self.tell(&error);
        }
        tracing::info!("ended");
    }

    /// An error that does not end the daemon.
    fn tell(&mut self, error: &dyn std::fmt::Display) {
        tracing::error!("{error}");
        let at = now_ns().saturating_sub(self.begun_ns) / ROUND_NS;
        if self.errors.len() == MOST_ERRORS {
            self.errors.pop_front();
        }
        self.errors.push_back(format!("{at} s: {error}"));
    }

    fn apply(&mut self) {
        let resolved = resolve(&self.config, &mut self.numbers, &self.off);
        match self.policy.apply(&resolved.spec) {
            Ok(()) => self.resolved = resolved,
            Err(error) => self.tell(&error),
        }
    }

    fn reload(&mut self) -> Result<(), DaemonError> {
        let config = check(&self.file)?;
        let fixed = |config: &Config| {
            (
                config.cgroup.clone(),
                config.run_dir.clone(),
                config.state_dir.clone(),
                config.records.dir.clone(),
                config.metrics,
                config.marking.clone(),
            )
        };
        if fixed(&config) != fixed(&self.config) {
            return Err(DaemonError::ConfigFile {
                file: self.file.clone(),
                cause: "[daemon], [metrics], [marking] and the records' folder are taken at the start only; restart, \
                        or leave them as they were"
                    .to_owned(),
            });
        }
        if config.guard != self.config.guard || config.rules != self.config.rules {
            self.guards = guards_of(&config);
        }
        self.store.configure(config.records.clone());
        self.config = config;
        self.configured_ns = now_ns();
        self.apply();
        tracing::info!("configuration taken; {} rules", self.config.rules.len());
        Ok(())
    }

    fn turn_off(&mut self, rule: Option<&str>, why: &str) -> Result<Value, String> {
        let numbers: Vec<Option<u32>> = match rule {
            None => vec![None],
            Some(name) => self.numbers_of(name)?,
        };
        let saved = self.off.turn_off(rule.unwrap_or(ALL), why);
        self.apply();
        let before = self.policy.counts().unwrap_or_default();
        for number in numbers {
            self.policy
                .move_back(&default_control(), number)
                .map_err(|error| error.to_string())?;
        }
        if let Err(error) = saved {
            self.tell(&format!(
                "it is off, but after a restart it would not be: {error}"
            ));
        }
        let after = self.policy.counts().unwrap_or_default();
        Ok(json!({
            "moved_back": after.moved - before.moved,
            "refused": after.stayed - before.stayed,
            "still_under_start_ups": after.live(),
        }))
    }

    fn numbers_of(&self, name: &str) -> Result<Vec<Option<u32>>, String> {
        let mut standing = self.resolved.standing.iter();
        match standing.find(|standing| standing.config.name == name) {
            Some(standing) => Ok(vec![Some(standing.number)]),
            None => Err(format!(
                "there is no rule \"{name}\"; `headstart status` names them"
            )),
        }
    }

    fn answer(&mut self, request: &Request) -> Result<Value, String> {
        let of = |value: Result<Value, serde_json::Error>| value.map_err(|error| error.to_string());
        match request {
            Request::Status => of(serde_json::to_value(self.status())),
            Request::Top => of(serde_json::to_value(self.stats.top(now_ns()))),
            Request::Reload => {
                self.reload().map_err(|error| error.to_string())?;
                Ok(json!({"rules": self.config.rules.len()}))
            }
            Request::Off { rule } => self.turn_off(rule.as_deref(), "by hand"),
            Request::On { rule } => {
                if let Some(name) = rule {
                    self.numbers_of(name)?;
                }
                let was = self
                    .off
                    .turn_on(rule.as_deref())
                    .map_err(|error| error.to_string())?;
                self.guards = guards_of(&self.config);
                self.apply();
                Ok(json!({"was_off": was}))
            }
            Request::Explain { addr, port, cgroup } => {
                let explained = explain::explain(self, *addr, *port, cgroup.as_deref());
                of(serde_json::to_value(
                    explained.map_err(|error| error.to_string())?,
                ))
            }
        }
    }

    fn status(&mut self) -> Status {
        let now = now_ns();
        let age = |since: u64| now.saturating_sub(since) / ROUND_NS;
        let counts = self.policy.counts().unwrap_or_default();
        let written = self.store.counts();
        Status {
            schema: 1,
            pid: std::process::id(),
            uptime_s: age(self.begun_ns),
            cgroup: self.cgroup.display().to_string(),
            config: self.file.display().to_string(),
            config_age_s: age(self.configured_ns),
            rules: self.rule_statuses(),
            experiment: self.config.experiment.as_ref().map(|e| e.name.clone()),
            live_connections: counts.live(),
            moved_back: counts.moved,
            paths_known: self.kernel.paths().map_or(0, |paths| paths.len() as u64),
            records: RecordStatus {
                dir: self.config.records.dir.display().to_string(),
                recorded: counts.recorded,
                lost: counts.records_lost,
                dropped: written.rows_dropped,
                written: written.rows_written,
                waiting: self.store.waiting() as u64,
                files: written.files_closed,
                error: self.store_error.clone(),
            },
            marked_pkts: self.kernel.counter(Counter::MarkedPkts).unwrap_or(0),
            resident_bytes: resident_bytes(),
            errors: self.errors.iter().cloned().collect(),
        }
    }

    fn rule_statuses(&self) -> Vec<RuleStatus> {
        let standing = self.resolved.standing.iter();
        standing
            .map(|rule| {
                let stats = self.policy.rule_stats(rule.number).unwrap_or_default();
                let state = match (&rule.off, &rule.waits_for) {
                    (Some(_), _) => "off",
                    (None, Some(_)) => "waiting",
                    (None, None) => "active",
                };
                let waits = rule
                    .waits_for
                    .as_ref()
                    .map(|what| format!("there is no {what}"));
                RuleStatus {
                    name: rule.config.name.clone(),
                    arms: rule
                        .arms
                        .iter()
                        .map(|arm| {
                            format!("{} {} % {}", arm.name, arm.share_percent, arm.action.name())
                        })
                        .collect(),
                    state: state.to_owned(),
                    why: rule.off.clone().or(waits),
                    matched: stats.matched,
                    chosen: stats.chosen,
                    app_chose: stats.app_chose,
                    refused: stats.refused,
                }
            })
            .collect()
    }
}

fn guards_of(config: &Config) -> HashMap<String, Guard> {
    let Some(guard) = config.guard else {
        return HashMap::new();
    };
    let rules = config.rules.iter();
    rules
        .map(|rule| (rule.name.clone(), Guard::new(guard)))
        .collect()
}

fn attachment_point(config: &Config) -> Result<PathBuf, DaemonError> {
    let root = headstart_kernel::cgroup_root()?;
    Ok(match &config.cgroup {
        Some(path) => root.join(path.strip_prefix("/").unwrap_or(path)),
        None => root,
    })
}

fn mark(kernel: &Kernel, named: Option<&[String]>) -> Result<Vec<Attachment>, DaemonError> {
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

fn resident_bytes() -> u64 {
    let read = || -> io::Result<u64> {
        let text = std::fs::read_to_string("/proc/self/status")?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        Ok(kib.unwrap_or(0) * 1024)
    };
    read().unwrap_or(0)
}
