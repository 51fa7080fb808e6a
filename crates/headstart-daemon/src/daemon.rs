//! The daemon's one thread: takes what the kernel recorded, answers requests, watches over the rules.

mod answers;
mod start;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headstart_kernel::{Attachment, Kernel, KernelError, Policy, Transfer};
use headstart_scenario::ScenarioError;
use nix::time::{ClockId, clock_gettime};
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::clock::Wall;
use crate::config::{Config, RuleAction};
use crate::control::ControlSocket;
use crate::guard::Outcome;
use crate::kept::OffRules;
use crate::memory::Memory;
use crate::protocol::Request;
use crate::row::Row;
use crate::rules::{ARM_BITS, Numbers, Resolved, look_up, resolve};
use crate::slices::Slices;
use crate::stats::Stats;
use crate::store::{Store, StoreError};
use crate::uploads::Uploads;
use crate::watches::Watches;
use crate::{metrics, privileges};

pub use start::check;

/// How often the kernel's buffer is emptied. It has room for half a second at 200,000 records a second.
const STEP: Duration = Duration::from_millis(100);
/// How often all else is looked after.
const ROUND_NS: u64 = 1_000_000_000;
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

pub(crate) fn now_ns() -> u64 {
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
    daemon.uploads = start::uploads(&daemon.config)?;
    pass_signals_on(to.clone())?;
    let run_dir = daemon.config.run_dir.clone();
    let _socket = ControlSocket::open(&run_dir, to.clone())
        .map_err(|error| system(format!("listening in {}", run_dir.display()), error))?;
    if let Some(address) = daemon.config.metrics {
        metrics::serve(address, to)
            .map_err(|error| system(format!("serving metrics on {address}"), error))?;
    }
    daemon
        .memory
        .start(&daemon.kernel)
        .map_err(|error| system("keeping the path memory", error))?;
    if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        tracing::warn!("telling systemd that we are ready: {error}");
    }
    tracing::info!("running; {} rules", daemon.config.rules.len());
    daemon.work(&from);
    let uploads = daemon.uploads.take();
    // Nothing is recorded any more while the last files go.
    drop(daemon);
    drop(uploads);
    tracing::info!("ended");
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
    marks: Vec<Attachment>,
    pub(crate) kernel: Kernel,
    memory: Memory,
    pub(crate) resolved: Resolved,
    numbers: Numbers,
    off: OffRules,
    watches: Watches,
    slices: Option<Slices>,
    stats: Stats,
    /// Room for what is taken of the kernel.
    taken: Vec<Transfer>,
    store: Store,
    store_error: Option<String>,
    uploads: Option<Uploads>,
    upload_error: Option<String>,
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
            let wall_us = self.wall.us(now);
            if self
                .slices
                .as_mut()
                .is_some_and(|slices| slices.look(now, wall_us))
            {
                self.apply();
            }
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
        let mut transfers = std::mem::take(&mut self.taken);
        if let Err(error) = self.policy.take_transfers_into(&mut transfers) {
            self.tell(&error);
        }
        let wall = wall_now();
        if self.wall.jump(&wall) > JUMP {
            tracing::warn!("the wall clock jumped by {:?}", self.wall.jump(&wall));
        }
        self.wall = wall;
        let now = now_ns();
        for transfer in transfers.drain(..) {
            let row = self.row(transfer);
            self.stats.add(now, &row);
            self.watch(now, &row);
            self.store.take([row]);
            if self.store.has_batch() {
                self.write_records(now);
            }
        }
        self.taken = transfers;
    }

    fn row(&self, transfer: Transfer) -> Row {
        let named = self.numbers.named(transfer.rule_id);
        let rule = named.map(|named| Arc::clone(&named.name));
        let arm = named.and_then(|named| named.arm_names.get(usize::from(transfer.arm)));
        let (rule, arm) = (rule.unwrap_or_default(), arm.cloned().unwrap_or_default());
        let by_time = named.is_some_and(|named| named.rule.action == RuleAction::Experiment);
        let slices = self.slices.as_ref().filter(|_| by_time);
        let burn_in = slices
            .is_some_and(|slices| slices.is_burn_in(transfer.start_ns, usize::from(transfer.arm)));
        Row {
            burn_in,
            ..Row::new(transfer, &self.wall, rule, arm, ARM_BITS)
        }
    }

    fn watch(&mut self, now_ns: u64, row: &Row) {
        if row.burn_in {
            return;
        }
        let outcome = Outcome {
            treated: false,
            bytes: row.transfer.bytes,
            retransmitted_bytes: row.transfer.retransmitted_bytes,
            rto_count: row.transfer.rto_count,
            latency_us: row.transfer.latency_us(),
        };
        let arm = usize::from(row.transfer.arm);
        self.watches.add(now_ns, &row.rule, arm, &outcome);
    }

    /// Once a second.
    fn round(&mut self, now: u64) {
        for error in self.memory.news() {
            self.tell(&error);
        }
        let counts = self.policy.counts();
        if let Ok(counts) = &counts {
            self.store.lost(counts.records_lost);
        }
        self.write_records(now);
        self.watch_uploads();
        match counts {
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
        for (rule, why) in self.watches.verdicts(now) {
            if self.off.reason(&rule).is_none() {
                self.tell(&format!("the guard turned the rule {rule} off: {why}"));
                if let Err(error) = self.turn_off(Some(&rule), &format!("by the guard: {why}")) {
                    self.tell(&error);
                }
            }
        }
        self.end_experiment(now);
    }

    /// At the time that the configuration names.
    fn end_experiment(&mut self, now: u64) {
        let until_us = self.config.experiment.as_ref().and_then(|of| of.until_us);
        if until_us.is_none_or(|until_us| self.wall.us(now) < until_us) {
            return;
        }
        let rules = self.config.rules.iter();
        let running = rules
            .filter(|rule| rule.action == RuleAction::Experiment)
            .filter(|rule| self.off.reason(&rule.name).is_none());
        let running: Vec<String> = running.map(|rule| rule.name.clone()).collect();
        for rule in running {
            tracing::info!("the experiment has ended: the rule {rule} is off");
            if let Err(error) = self.turn_off(Some(&rule), "the experiment has ended") {
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

    fn watch_uploads(&mut self) {
        let status = self.uploads.as_ref().map(Uploads::status);
        let error = status.and_then(|status| status.error);
        if error != self.upload_error {
            if let Some(error) = &error {
                self.tell(error);
            }
            self.upload_error = error;
        }
    }

    fn finish(&mut self) {
        drop(self.policy.flush());
        self.take();
        if let Ok(counts) = self.policy.counts() {
            self.store.lost(counts.records_lost);
        }
        let now = now_ns();
        self.write_records(now);
        self.memory.finish();
        for error in self.memory.news() {
            self.tell(&error);
        }
        if let Err(error) = self.store.close() {
            self.tell(&error);
        }
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
        let resolved = {
            let arm = self.slices.as_ref().and_then(Slices::arm);
            resolve(&self.config, &mut self.numbers, &self.off, arm)
        };
        match self.policy.apply(&resolved.spec) {
            Ok(()) => self.resolved = resolved,
            Err(error) => self.tell(&error),
        }
    }
}
