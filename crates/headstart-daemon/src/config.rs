//! The daemon's configuration: what `/etc/headstart/headstart.toml` says.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use headstart_core::{Params, Startup};
use headstart_kernel::{MAX_POLICY_RULES, MAX_RULE_ARMS};
use headstart_link::Span;
use headstart_scenario::reader::{Key, Source, Table, Value};
use headstart_scenario::{ByteSize, Fault, ScenarioError};

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
}

/// The marking of packets with low drop priority.
#[derive(Clone, Debug, PartialEq)]
pub struct Marking {
    /// 0 to 63.
    pub dscp: u8,
    /// `None`: all devices that there are at the start.
    pub devices: Option<Vec<String>>,
}

/// When a rule is worse than its baseline. A margin of `None` is not looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GuardConfig {
    /// Share of the prefixes that a rule leaves alone, to compare with, 1 to 50.
    pub holdout_percent: u8,
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
    /// Of the prefixes, in percent.
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
    /// Two at least; their shares sum to 100.
    pub arms: Vec<ArmConfig>,
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
const EXPERIMENT_ACTION: &str = "experiment";

macro_rules! keys {
    ($($constant:ident = $name:literal, $example:literal;)*) => {
        $(const $constant: Key = Key { name: $name, example: $example };)*
    };
}
keys! {
    DAEMON = "daemon", "[daemon]";
    CGROUP = "cgroup", "\"system.slice/nginx.service\"";
    RUN_DIR = "run_dir", "\"/run/headstart\"";
    STATE_DIR = "state_dir", "\"/var/lib/headstart\"";
    RECORDS = "records", "[records]";
    DIR = "dir", "\"/var/lib/headstart/records\"";
    SAMPLE = "sample_percent", "100";
    ROTATE = "rotate", "\"3600s\"";
    ROTATE_BYTES = "rotate_bytes", "\"256MiB\"";
    METRICS = "metrics", "[metrics]";
    LISTEN = "listen", "\"127.0.0.1:9870\"";
    MARKING = "marking", "[marking]";
    DSCP = "dscp", "1";
    DEVICES = "devices", "[\"eth0\"]";
    GUARD = "guard", "[guard]";
    HOLDOUT = "holdout_percent", "5";
    WINDOW = "window", "\"300s\"";
    MIN_TRANSFERS = "min_transfers", "200";
    RETRANSMISSIONS = "retransmission_points", "2";
    TIMEOUTS = "timeout_points", "2";
    LATENCY = "latency_percent", "25";
    EXPERIMENT = "experiment", "[experiment]";
    NAME = "name", "\"web\"";
    SALT = "salt", "\"2026-11\"";
    ARM = "arm", "[[experiment.arm]]";
    SHARE = "share_percent", "50";
    RULE = "rule", "[[rule]]";
    STARTUP = "startup", "\"su_fast_start\"";
    PARAMS = "params", "{ maxburst_pkts = 4 }";
    PORTS = "ports", "\"443\"";
    DESTINATION = "destination", "\"203.0.113.0/24\"";
    INTERFACE = "interface", "\"eth0\"";
    CAP = "cap_pkts", "200";
    RULE_RECORDS = "records", "true";
}

/// A minute of waiting bounds what a guard can see late; a day, what it holds in memory.
const LONGEST: Duration = Duration::from_secs(86_400);

impl Config {
    /// Reads `text`, the content of the file called `file`. `controls` are the kernel's own congestion controls.
    ///
    /// # Errors
    /// [`ScenarioError`]: what is wrong, in which line, and what to write instead.
    pub fn parse(file: &str, text: &str, controls: &[String]) -> Result<Config, ScenarioError> {
        let source = Source { file, text };
        let document = source.document()?;
        let top = Table::top(source, &document);
        top.only(&[DAEMON, RECORDS, METRICS, MARKING, GUARD, EXPERIMENT, RULE])?;
        let daemon = table_of(&top, DAEMON)?;
        if let Some(daemon) = &daemon {
            daemon.only(&[CGROUP, RUN_DIR, STATE_DIR])?;
        }
        let state_dir = path_of(daemon.as_ref(), STATE_DIR)?
            .unwrap_or_else(|| PathBuf::from("/var/lib/headstart"));
        let experiment = experiment(&top, controls)?;
        let guard = guard(&top)?;
        Ok(Config {
            cgroup: path_of(daemon.as_ref(), CGROUP)?,
            run_dir: path_of(daemon.as_ref(), RUN_DIR)?
                .unwrap_or_else(|| PathBuf::from(DEFAULT_RUN_DIR)),
            records: records(&top, &state_dir)?,
            state_dir,
            metrics: metrics(&top)?,
            marking: marking(&top)?,
            rules: rules(&top, controls, experiment.as_ref())?,
            guard,
            experiment,
        })
    }

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

fn table_of<'a>(top: &Table<'a>, key: Key) -> Result<Option<Table<'a>>, ScenarioError> {
    top.get(key)
        .map(|value| value.table(format!("in [{}]", key.name)))
        .transpose()
}

fn path_of(table: Option<&Table<'_>>, key: Key) -> Result<Option<PathBuf>, ScenarioError> {
    let Some(value) = table.and_then(|table| table.get(key)) else {
        return Ok(None);
    };
    Ok(Some(PathBuf::from(value.words(key)?)))
}

/// A duration of `least` to a day.
fn duration(value: &Value<'_>, key: Key, least: Duration) -> Result<Duration, ScenarioError> {
    let span: Span = value.parsed(key)?;
    let duration = span.as_duration();
    if duration < least || duration > LONGEST {
        let cause = format!("give {} s to {} s", least.as_secs(), LONGEST.as_secs());
        return Err(value.bad(key, &cause));
    }
    Ok(duration)
}

fn percent(value: &Value<'_>, min: u64, max: u64) -> Result<u8, ScenarioError> {
    Ok(u8::try_from(value.whole(min, max)?).unwrap_or(100))
}

fn records(top: &Table<'_>, state_dir: &Path) -> Result<Records, ScenarioError> {
    let mut records = Records {
        dir: state_dir.join("records"),
        sample_percent: 100,
        rotate: Duration::from_secs(3600),
        rotate_bytes: 256 << 20,
    };
    let Some(table) = table_of(top, RECORDS)? else {
        return Ok(records);
    };
    table.only(&[DIR, SAMPLE, ROTATE, ROTATE_BYTES])?;
    if let Some(dir) = path_of(Some(&table), DIR)? {
        if dir.to_string_lossy().contains("://") {
            let cause = "only local folders can be written to; copy closed files on from there";
            return Err(table.need(DIR)?.bad(DIR, &cause));
        }
        records.dir = dir;
    }
    if let Some(value) = table.get(SAMPLE) {
        records.sample_percent = percent(&value, 0, 100)?;
    }
    if let Some(value) = table.get(ROTATE) {
        records.rotate = duration(&value, ROTATE, Duration::from_secs(1))?;
    }
    if let Some(value) = table.get(ROTATE_BYTES) {
        let size: ByteSize = value.size(ROTATE_BYTES)?;
        records.rotate_bytes = size.bytes();
    }
    Ok(records)
}

fn metrics(top: &Table<'_>) -> Result<Option<SocketAddr>, ScenarioError> {
    let Some(table) = table_of(top, METRICS)? else {
        return Ok(None);
    };
    table.only(&[LISTEN])?;
    let value = table.need(LISTEN)?;
    let address: SocketAddr = value.parsed(LISTEN)?;
    if !address.ip().is_loopback() {
        let cause = format!(
            "{} is no loopback address; write 127.0.0.1 or [::1]",
            address.ip()
        );
        return Err(value.bad(LISTEN, &cause));
    }
    Ok(Some(address))
}

fn marking(top: &Table<'_>) -> Result<Marking, ScenarioError> {
    let mut marking = Marking {
        dscp: 1,
        devices: None,
    };
    let Some(table) = table_of(top, MARKING)? else {
        return Ok(marking);
    };
    table.only(&[DSCP, DEVICES])?;
    if let Some(value) = table.get(DSCP) {
        marking.dscp = percent(&value, 0, 63)?;
    }
    if let Some(value) = table.get(DEVICES) {
        let devices = value.list("a list of devices")?;
        let devices = devices
            .iter()
            .map(|device| Ok(device.words(DEVICES)?.to_owned()));
        marking.devices = Some(devices.collect::<Result<_, ScenarioError>>()?);
    }
    Ok(marking)
}

fn guard(top: &Table<'_>) -> Result<Option<GuardConfig>, ScenarioError> {
    let Some(table) = table_of(top, GUARD)? else {
        return Ok(None);
    };
    table.only(&[
        HOLDOUT,
        WINDOW,
        MIN_TRANSFERS,
        RETRANSMISSIONS,
        TIMEOUTS,
        LATENCY,
    ])?;
    let whole = |key: Key, max: u64| -> Result<Option<u32>, ScenarioError> {
        let value = table
            .get(key)
            .map(|value| value.whole(0, max))
            .transpose()?;
        Ok(value.map(|value| u32::try_from(value).unwrap_or(u32::MAX)))
    };
    let holdout = table.need(HOLDOUT)?;
    let window = table.need(WINDOW)?;
    Ok(Some(GuardConfig {
        holdout_percent: percent(&holdout, 1, 50)?,
        window: duration(&window, WINDOW, Duration::from_secs(1))?,
        min_transfers: match table.get(MIN_TRANSFERS) {
            Some(value) => value.whole(1, 1_000_000)?,
            None => 200,
        },
        retransmission_points: whole(RETRANSMISSIONS, 100)?,
        timeout_points: whole(TIMEOUTS, 1000)?,
        latency_percent: whole(LATENCY, 10_000)?,
    }))
}

fn experiment(top: &Table<'_>, controls: &[String]) -> Result<Option<Experiment>, ScenarioError> {
    let Some(table) = table_of(top, EXPERIMENT)? else {
        return Ok(None);
    };
    table.only(&[NAME, SALT, ARM])?;
    let list = table.need(ARM)?;
    let mut arms = Vec::new();
    for item in list.list("a list of tables")? {
        let arm = item.table("in [[experiment.arm]]".to_owned())?;
        arm.only(&[NAME, SHARE, STARTUP, PARAMS])?;
        let share = arm.need(SHARE)?;
        arms.push(ArmConfig {
            name: arm.need(NAME)?.words(NAME)?.to_owned(),
            share_percent: percent(&share, 0, 100)?,
            action: action(&arm, controls, false)?.unwrap_or(Action::LeaveAlone),
        });
    }
    let sum: u32 = arms.iter().map(|arm| u32::from(arm.share_percent)).sum();
    if arms.len() < 2 || arms.len() > MAX_RULE_ARMS {
        let cause = format!("there are {}; give 2 to {MAX_RULE_ARMS}", arms.len());
        return Err(list.bad(ARM, &cause));
    }
    if sum != 100 {
        return Err(list.bad(
            ARM,
            &format!("the shares sum to {sum} percent; make it 100"),
        ));
    }
    let mut names: Vec<_> = arms.iter().map(|arm| arm.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twin) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let cause = format!(
            "two arms are called \"{}\"; records tell them apart by name",
            twin[0]
        );
        return Err(list.bad(ARM, &cause));
    }
    Ok(Some(Experiment {
        name: table.need(NAME)?.words(NAME)?.to_owned(),
        salt: table.need(SALT)?.words(SALT)?.to_owned(),
        arms,
    }))
}

/// `None`: the experiment decides.
fn action(
    table: &Table<'_>,
    controls: &[String],
    experiment: bool,
) -> Result<Option<Action>, ScenarioError> {
    let value = table.need(STARTUP)?;
    let name = value.text()?;
    let params = table.get(PARAMS);
    if let Ok(startup) = Startup::named(name) {
        return Ok(Some(Action::Startup(parameters(startup, params)?)));
    }
    let native = match name {
        LEAVE_ALONE => Some(Some(Action::LeaveAlone)),
        EXPERIMENT_ACTION if experiment => Some(None),
        _ if controls.iter().any(|control| control == name) => {
            Some(Some(Action::Native(name.to_owned())))
        }
        _ => None,
    };
    if let Some(native) = native {
        let Some(params) = params else {
            return Ok(native);
        };
        let cause = format!("{name} has no parameters; remove them, or name a start-up");
        return Err(params.bad(PARAMS, &cause));
    }
    let mut known: Vec<String> = Startup::all().map(|s| s.name().to_owned()).collect();
    known.push(LEAVE_ALONE.to_owned());
    known.extend(experiment.then(|| EXPERIMENT_ACTION.to_owned()));
    known.extend(controls.iter().cloned());
    Err(value.error(Fault::UnknownName {
        object: "start-up",
        name: name.to_owned(),
        place: table.place.clone(),
        known,
    }))
}

fn parameters(startup: Startup, table: Option<Value<'_>>) -> Result<Params, ScenarioError> {
    let mut params = Params::new(startup);
    let Some(value) = table else {
        return Ok(params);
    };
    for (name, value) in value.table("in params".to_owned())?.entries("4") {
        if name == "reno" {
            let cause = "it is the same for all connections of a start-up, and cannot be a rule's";
            return Err(value.bad(PARAMS, &cause));
        }
        let number = value.whole(0, u64::from(u32::MAX))?;
        params.set(&name, number).map_err(|cause| {
            value.error(Fault::BadParameter {
                startup: startup.name().to_owned(),
                parameter: name.clone(),
                cause: cause.to_string(),
            })
        })?;
    }
    Ok(params)
}

fn rules(
    top: &Table<'_>,
    controls: &[String],
    experiment: Option<&Experiment>,
) -> Result<Vec<RuleConfig>, ScenarioError> {
    let Some(list) = top.get(RULE) else {
        return Ok(Vec::new());
    };
    let items = list.list("a list of tables")?;
    if items.len() > MAX_POLICY_RULES {
        let cause = format!("there are {}; at most {MAX_POLICY_RULES} go", items.len());
        return Err(list.bad(RULE, &cause));
    }
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    let mut rules = Vec::new();
    for item in items {
        let table = item.table("in [[rule]]".to_owned())?;
        let rule = rule(&table, controls, experiment)?;
        if let Some(line) = lines.insert(rule.name.clone(), item.line) {
            let cause = format!(
                "\"{}\" is the name of a rule already (line {line}); records tell rules apart by name",
                rule.name
            );
            return Err(table.need(NAME)?.bad(NAME, &cause));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn rule(
    table: &Table<'_>,
    controls: &[String],
    experiment: Option<&Experiment>,
) -> Result<RuleConfig, ScenarioError> {
    table.only(&[
        NAME,
        CGROUP,
        INTERFACE,
        PORTS,
        DESTINATION,
        STARTUP,
        PARAMS,
        CAP,
        RULE_RECORDS,
    ])?;
    let action = match action(table, controls, true)? {
        Some(action) => RuleAction::One(action),
        None if experiment.is_some() => RuleAction::Experiment,
        None => {
            let cause = "there is no [experiment]; add one, or name a start-up";
            return Err(table.need(STARTUP)?.bad(STARTUP, &cause));
        }
    };
    let cap_pkts = match table.get(CAP) {
        Some(value) => Some(u32::try_from(value.whole(2, 1_000_000)?).unwrap_or(u32::MAX)),
        None => None,
    };
    let records = match table.get(RULE_RECORDS) {
        Some(value) => value.truth()?,
        None => true,
    };
    let interface = match table.get(INTERFACE) {
        Some(value) => Some(value.words(INTERFACE)?.to_owned()),
        None => None,
    };
    Ok(RuleConfig {
        name: table.need(NAME)?.words(NAME)?.to_owned(),
        cgroup: path_of(Some(table), CGROUP)?.map(|path| relative(&path)),
        interface,
        ports: ports(table)?,
        destination: destination(table)?,
        action,
        cap_pkts,
        records,
    })
}

/// Cgroups are named from their root.
fn relative(path: &Path) -> PathBuf {
    path.strip_prefix("/")
        .map_or_else(|_| path.to_owned(), Path::to_owned)
}

fn ports(table: &Table<'_>) -> Result<(u16, u16), ScenarioError> {
    let Some(value) = table.get(PORTS) else {
        return Ok((0, u16::MAX));
    };
    let text = value.text()?;
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
        _ => {
            let cause = format!("\"{text}\" is no port; write \"443\" or \"8000-8010\"");
            Err(value.bad(PORTS, &cause))
        }
    }
}

fn destination(table: &Table<'_>) -> Result<Option<(IpAddr, u8)>, ScenarioError> {
    let Some(value) = table.get(DESTINATION) else {
        return Ok(None);
    };
    let text = value.text()?;
    let parsed = text.split_once('/').and_then(|(addr, bits)| {
        let addr: IpAddr = addr.parse().ok()?;
        let bits: u8 = bits.parse().ok()?;
        (bits <= if addr.is_ipv4() { 32 } else { 128 }).then_some((addr, bits))
    });
    match parsed {
        Some(prefix) => Ok(Some(prefix)),
        None => {
            let cause =
                format!("\"{text}\" is no prefix; write \"203.0.113.0/24\" or \"2001:db8::/48\"");
            Err(value.bad(DESTINATION, &cause))
        }
    }
}
