//! What the daemon does when it is asked: status, reload, off and on.

use std::io;

use headstart_kernel::Counter;
use serde_json::{Value, json};

use super::start::{check, first_slice, mark};
use super::{Daemon, DaemonError, ROUND_NS, now_ns};
use crate::config::Config;
use crate::explain;
use crate::kept::ALL;
use crate::protocol::{RecordStatus, Request, RuleStatus, Status};
use crate::slices::Slices;
use crate::uploads::Uploads;
use crate::watches::Watches;

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

impl Daemon {
    pub(super) fn reload(&mut self) -> Result<(), DaemonError> {
        let config = check(&self.file)?;
        let fixed = |config: &Config| {
            (
                config.cgroup.clone(),
                config.run_dir.clone(),
                config.state_dir.clone(),
                config.records.dir.clone(),
                config.records.bucket.clone(),
                config.metrics,
                config.marking.clone(),
                config.memory.clone(),
            )
        };
        if fixed(&config) != fixed(&self.config) {
            return Err(DaemonError::ConfigFile {
                file: self.file.clone(),
                cause: "[daemon], [memory], [metrics], [marking] and the records' folder and bucket are taken at the start only; \
                        restart, or leave them as they were"
                    .to_owned(),
            });
        }
        if self.marks.is_empty() {
            self.marks = mark(&self.kernel, &config)?;
        }
        let judged = |config: &Config| {
            let (guard, rules) = (config.guard, config.rules.clone());
            (guard, rules, config.experiment.clone())
        };
        if judged(&config) != judged(&self.config) {
            self.watches = Watches::of(&config);
        }
        if config.experiment != self.config.experiment {
            let now = now_ns();
            self.slices = first_slice(&config, now, self.wall.us(now));
        }
        self.store.configure(config.records.clone());
        self.config = config;
        self.configured_ns = now_ns();
        self.apply();
        tracing::info!("configuration taken; {} rules", self.config.rules.len());
        Ok(())
    }

    pub(super) fn turn_off(&mut self, rule: Option<&str>, why: &str) -> Result<Value, String> {
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

    pub(super) fn answer(&mut self, request: &Request) -> Result<Value, String> {
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
                self.watches = Watches::of(&self.config);
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

    pub(super) fn status(&mut self) -> Status {
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
            experiment: self.experiment_status(),
            live_connections: counts.live(),
            moved_back: counts.moved,
            paths_known: self.memory.paths_known(),
            records: RecordStatus {
                dir: self.config.records.dir.display().to_string(),
                recorded: counts.recorded,
                lost: counts.records_lost,
                dropped: written.rows_dropped,
                written: written.rows_written,
                waiting: self.store.waiting() as u64,
                files: written.files_closed,
                error: self.store_error.clone(),
                bucket: self.uploads.as_ref().map(Uploads::status),
            },
            memory: self.memory.status(),
            marked_pkts: self.kernel.counter(Counter::MarkedPkts).unwrap_or(0),
            resident_bytes: resident_bytes(),
            errors: self.errors.iter().cloned().collect(),
        }
    }

    fn experiment_status(&self) -> Option<String> {
        let experiment = self.config.experiment.as_ref()?;
        let mut text = format!("{} by {}", experiment.name, experiment.unit.name());
        let arm = self.slices.as_ref().and_then(Slices::arm);
        if let Some(arm) = arm.and_then(|arm| experiment.arms.get(arm)) {
            text += &format!(", now {}", arm.name);
        }
        Some(text)
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

fn resident_bytes() -> u64 {
    let read = || -> io::Result<u64> {
        let text = std::fs::read_to_string("/proc/self/status")?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        Ok(kib.unwrap_or(0) * 1024)
    };
    read().unwrap_or(0)
}
