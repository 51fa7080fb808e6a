//! `headstart run`, and the verbs that talk to it.

use std::io::{IsTerminal, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use headstart_daemon::{
    ControlError, DEFAULT_FILE, DEFAULT_RUN_DIR, DaemonError, Explanation, Request, Status, TopRow,
    ask,
};
use headstart_kernel::KernelError;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;
use crate::output::{self, Table};

/// How often `top` draws itself anew.
const REFRESH: Duration = Duration::from_secs(1);

/// Run the daemon: start-ups by rules, a record of each transfer.
///
/// Signals: SIGHUP takes the configuration again, SIGTERM and SIGINT end it. What is open goes on.
#[derive(Args)]
#[command(after_help = "Examples:
  headstart run --check             say what is wrong with the configuration, change nothing
  headstart run --config my.toml
  headstart status                  what it does; also top, explain, reload, off, on")]
pub(crate) struct RunArgs {
    /// The configuration.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
    /// Only check the configuration.
    #[arg(long)]
    check: bool,
}

/// Where the daemon listens.
#[derive(Args)]
struct Where {
    /// The folder of the daemon's control socket (run_dir in its configuration).
    #[arg(long, value_name = "DIR", default_value = DEFAULT_RUN_DIR)]
    run_dir: PathBuf,
}

/// Say what the daemon does: rules and their hits, records, losses, the last errors.
#[derive(Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    at: Where,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Show the last ten seconds, by rule and arm and by prefix, anew each second.
#[derive(Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    at: Where,
    /// Print it once.
    #[arg(long)]
    once: bool,
}

/// Say what a connection to an address would get now, and why.
#[derive(Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    at: Where,
    /// The peer.
    #[arg(value_name = "IP")]
    addr: IpAddr,
    /// Our port.
    #[arg(long, default_value_t = 443)]
    port: u16,
    /// The server's cgroup, from its root. Default: that of the first rule that matches otherwise.
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Make the daemon read its configuration again; open connections are not touched.
#[derive(Args)]
pub(crate) struct ReloadArgs {
    #[command(flatten)]
    at: Where,
}

/// Turn start-ups off, now: new connections are left alone, live ones are moved back to the native control.
#[derive(Args)]
pub(crate) struct OffArgs {
    #[command(flatten)]
    at: Where,
    /// One rule only.
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
}

/// Turn rules on again that were turned off by hand or by the guard.
#[derive(Args)]
pub(crate) struct OnArgs {
    #[command(flatten)]
    at: Where,
    /// One rule only.
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
}

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    if args.check {
        let config = headstart_daemon::check(&args.config).map_err(of_daemon)?;
        let rules = config.rules.len();
        return output::print(&format!("{}: good, {rules} rules", args.config.display()));
    }
    headstart_daemon::run(&args.config).map_err(of_daemon)
}

fn of_daemon(error: DaemonError) -> Failure {
    match error {
        DaemonError::Config(_) | DaemonError::ConfigFile { .. } => Failure::Usage(error.into()),
        DaemonError::Kernel(KernelError::CannotHere { .. }) => Failure::CannotHere(error.into()),
        error => Failure::Run(error.into()),
    }
}

fn told(at: &Where, request: &Request) -> Result<Value, Failure> {
    ask(&at.run_dir, request).map_err(|error| match error {
        ControlError::Refused(_) => Failure::Usage(error.into()),
        error => Failure::Run(error.into()),
    })
}

fn asked<T: DeserializeOwned>(at: &Where, request: &Request) -> Result<T, Failure> {
    let value = told(at, request)?;
    Ok(serde_json::from_value(value).context("the daemon is of another version; restart it")?)
}

fn json(value: &Value) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).context("cannot print the answer")?;
    output::print(&text)
}

pub(crate) fn status(args: &StatusArgs) -> Result<(), Failure> {
    if args.json {
        return json(&told(&args.at, &Request::Status)?);
    }
    let status: Status = asked(&args.at, &Request::Status)?;
    let records = &status.records;
    let mut text = format!(
        "Running for {} s as process {}, attached to {}, configuration {} taken {} s ago.\n\
         {} connections under start-ups, {} moved back, {} paths known, {} packets marked, {:.1} MiB of memory.\n\
         Records in {}: {} recorded, {} lost, {} dropped, {} written, {} waiting, {} files closed.\n",
        status.uptime_s,
        status.pid,
        status.cgroup,
        status.config,
        status.config_age_s,
        status.live_connections,
        status.moved_back,
        status.paths_known,
        status.marked_pkts,
        status.resident_bytes as f64 / f64::from(1 << 20),
        records.dir,
        records.recorded,
        records.lost,
        records.dropped,
        records.written,
        records.waiting,
        records.files,
    );
    text += &memory(&status);
    if let Some(error) = &records.error {
        text += &format!("RECORDS FAIL: {error}\n");
    }
    if let Some(bucket) = &records.bucket {
        text += &format!(
            "Bucket {}: {} files uploaded, {} waiting ({:.1} MiB), {} dropped with {} records, {} failures.\n",
            bucket.url,
            bucket.uploaded_files,
            bucket.waiting_files,
            bucket.waiting_bytes as f64 / f64::from(1 << 20),
            bucket.dropped_files,
            bucket.dropped_rows,
            bucket.failures,
        );
        if let Some(error) = &bucket.error {
            text += &format!("UPLOADS FAIL: {error}\n");
        }
    }
    if let Some(experiment) = &status.experiment {
        text += &format!("Experiment: {experiment}.\n");
    }
    let header = [
        "rule",
        "state",
        "matched",
        "chosen",
        "app chose",
        "refused",
        "arms",
        "why",
    ];
    let mut table = Table::new(&header, 2..6);
    for rule in &status.rules {
        table.row([
            rule.name.clone(),
            rule.state.clone(),
            rule.matched.to_string(),
            rule.chosen.to_string(),
            rule.app_chose.to_string(),
            rule.refused.to_string(),
            rule.arms.join(", "),
            rule.why.clone().unwrap_or_default(),
        ]);
    }
    text += &format!("\n{table}");
    if !status.errors.is_empty() {
        text += "\n\nLast errors:";
        for error in &status.errors {
            text += &format!("\n  {error}");
        }
    }
    output::print(&text)
}

/// The path memory, a line for each place where it is.
fn memory(status: &Status) -> String {
    let memory = &status.memory;
    let mut text = format!(
        "Path memory: {} of at most {} paths",
        status.paths_known, memory.max_paths
    );
    text += &match (&memory.file, memory.saved_age_s) {
        (Some(file), Some(age_s)) => format!(", saved in {file} {age_s} s ago.\n"),
        (Some(file), None) => format!(", to be saved in {file}.\n"),
        (None, _) => ", not kept over restarts.\n".to_owned(),
    };
    if let Some(error) = &memory.error {
        text += &format!("THE PATH MEMORY IS NOT SAVED: {error}\n");
    }
    if let Some(site) = &memory.site {
        text += &format!(
            "Shared by {}: {}; {} paths told, {} taken, {} capped, {} rejected, {} exchanges failed.\n",
            site.url, site.state, site.told, site.taken, site.capped, site.rejected, site.failures
        );
        if let Some(why) = &site.why {
            text += &format!("THE SITE'S MEMORY IS NOT SHARED: {why}\n");
        }
        if let Some(rejected) = &site.last_rejected {
            text += &format!("Rejected: {rejected}\n");
        }
    }
    text
}

pub(crate) fn top(args: &TopArgs) -> Result<(), Failure> {
    let live = !args.once && std::io::stdout().is_terminal();
    loop {
        let rows: Vec<TopRow> = asked(&args.at, &Request::Top)?;
        let header = [
            "rule / arm, prefix",
            "1/s",
            "p50 ms",
            "p90 ms",
            "p99 ms",
            "resent %",
            "RTOs",
        ];
        let mut table = Table::new(&header, 1..7);
        for row in rows {
            table.row([
                row.name,
                format!("{:.1}", row.transfers_per_s),
                format!("{:.1}", row.p50_ms),
                format!("{:.1}", row.p90_ms),
                format!("{:.1}", row.p99_ms),
                format!("{:.2}", row.retransmitted_percent),
                row.timeouts.to_string(),
            ]);
        }
        if !live {
            return output::print(&table.to_string());
        }
        // Home, and clear what is below: no flicker.
        print!("\x1b[H\x1b[J");
        std::io::stdout().flush().context("cannot draw")?;
        output::print(&format!("{table}\n\nThe last ten seconds; Ctrl-C ends."))?;
        sleep(REFRESH);
    }
}

pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let request = Request::Explain {
        addr: args.addr,
        port: args.port,
        cgroup: args.cgroup.clone(),
    };
    if args.json {
        return json(&told(&args.at, &request)?);
    }
    let told: Explanation = asked(&args.at, &request)?;
    let path = told.path.as_deref().unwrap_or("not known");
    let mut text = match (&told.rule, &told.arm, &told.control) {
        (Some(rule), Some(arm), Some(control)) => {
            format!("{}: rule {rule}, arm {arm}: {control}", args.addr)
        }
        _ => format!(
            "{}: no rule matches: left alone, and not recorded",
            args.addr
        ),
    };
    if let Some(off) = &told.off {
        text += &format!("\noff ({off}): left alone");
    }
    if let Some(why) = &told.why {
        let window = told.cwnd_pkts.map_or_else(
            || "the stack's own".to_owned(),
            |pkts| format!("{pkts} pkts"),
        );
        text += &format!("\ninitial window: {window} ({why})");
    }
    text += &format!("\npath: {path}");
    output::print(&text)
}

pub(crate) fn reload(args: &ReloadArgs) -> Result<(), Failure> {
    let done = told(&args.at, &Request::Reload)?;
    output::print(&format!("taken: {} rules", done["rules"]))
}

pub(crate) fn off(args: &OffArgs) -> Result<(), Failure> {
    let rule = args.rule.clone();
    let done = told(&args.at, &Request::Off { rule })?;
    let left = done["still_under_start_ups"].as_u64().unwrap_or(0);
    let mut text = format!("off: {} connections moved back", done["moved_back"]);
    if left > 0 && args.rule.is_none() {
        text += &format!(
            "; {left} of other network namespaces go on under their start-up until they close"
        );
    }
    output::print(&text)
}

pub(crate) fn on(args: &OnArgs) -> Result<(), Failure> {
    let rule = args.rule.clone();
    let done = told(&args.at, &Request::On { rule })?;
    let was = done["was_off"].as_bool().unwrap_or(false);
    output::print(if was { "on" } else { "on already" })
}
