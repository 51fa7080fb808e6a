//! From the text of the file to the configuration: the tables but for rules and arms.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use headstart_link::Span;
use headstart_scenario::reader::{Key, Source, Table, Value};
use headstart_scenario::{ByteSize, ScenarioError};

use super::experiment::experiment;
use super::keys::*;
use super::memory::memory;
use super::rules::rules;
use super::{BucketConfig, Config, DEFAULT_RUN_DIR, GuardConfig, Margins, Marking, Records};

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
        top.only(&[
            DAEMON, RECORDS, MEMORY, METRICS, MARKING, GUARD, EXPERIMENT, RULE,
        ])?;
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
            memory: memory(&top, &state_dir)?,
            state_dir,
            metrics: metrics(&top)?,
            marking: marking(&top)?,
            rules: rules(&top, controls, experiment.as_ref())?,
            guard,
            experiment,
        })
    }
}

pub(super) fn table_of<'a>(top: &Table<'a>, key: Key) -> Result<Option<Table<'a>>, ScenarioError> {
    top.get(key)
        .map(|value| value.table(format!("in [{}]", key.name)))
        .transpose()
}

pub(super) fn path_of(
    table: Option<&Table<'_>>,
    key: Key,
) -> Result<Option<PathBuf>, ScenarioError> {
    let Some(value) = table.and_then(|table| table.get(key)) else {
        return Ok(None);
    };
    Ok(Some(PathBuf::from(value.words(key)?)))
}

/// A duration of `least` to a day.
pub(super) fn duration(
    value: &Value<'_>,
    key: Key,
    least: Duration,
) -> Result<Duration, ScenarioError> {
    let span: Span = value.parsed(key)?;
    let duration = span.as_duration();
    if duration < least || duration > LONGEST {
        let cause = format!("give {} s to {} s", least.as_secs(), LONGEST.as_secs());
        return Err(value.bad(key, &cause));
    }
    Ok(duration)
}

pub(super) fn percent(value: &Value<'_>, min: u64, max: u64) -> Result<u8, ScenarioError> {
    Ok(u8::try_from(value.whole(min, max)?).unwrap_or(100))
}

fn records(top: &Table<'_>, state_dir: &Path) -> Result<Records, ScenarioError> {
    let mut records = Records {
        dir: state_dir.join("records"),
        sample_percent: 100,
        rotate: Duration::from_secs(3600),
        rotate_bytes: 256 << 20,
        bucket: None,
    };
    let Some(table) = table_of(top, RECORDS)? else {
        return Ok(records);
    };
    table.only(&[DIR, SAMPLE, ROTATE, ROTATE_BYTES, BUCKET])?;
    if let Some(dir) = path_of(Some(&table), DIR)? {
        if dir.to_string_lossy().contains("://") {
            let cause = "files are written here first, so it is a local folder; a bucket is `url` in [records.bucket]";
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
    if let Some(value) = table.get(BUCKET) {
        records.bucket = Some(bucket(&value.table("in [records.bucket]".to_owned())?)?);
    }
    Ok(records)
}

fn bucket(table: &Table<'_>) -> Result<BucketConfig, ScenarioError> {
    table.only(&[BUCKET_URL, OPTIONS, KEEP, BACKLOG])?;
    let url = table.need(BUCKET_URL)?;
    let mut bucket = BucketConfig {
        url: url.words(BUCKET_URL)?.to_owned(),
        options: BTreeMap::new(),
        keep: false,
        backlog_bytes: 8 << 30,
    };
    if let Err(cause) = crate::bucket::check(&bucket.url, []) {
        return Err(url.bad(BUCKET_URL, &cause));
    }
    if let Some(options) = table.get(OPTIONS) {
        let named = options.table("in options of [records.bucket]".to_owned())?;
        for (name, value) in named.entries("\"eu-central-1\"") {
            if let Err(cause) = crate::bucket::check(&bucket.url, [&name]) {
                return Err(options.bad(OPTIONS, &cause));
            }
            bucket.options.insert(name, value.text()?.to_owned());
        }
    }
    if let Some(value) = table.get(KEEP) {
        bucket.keep = value.truth()?;
    }
    if let Some(value) = table.get(BACKLOG) {
        bucket.backlog_bytes = value.size(BACKLOG)?.bytes();
    }
    Ok(bucket)
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
    let holdout = table.need(HOLDOUT)?;
    Ok(Some(GuardConfig {
        holdout_percent: percent(&holdout, 1, 50)?,
        margins: margins(&table)?,
    }))
}

pub(super) fn margins(table: &Table<'_>) -> Result<Margins, ScenarioError> {
    let whole = |key: Key, max: u64| -> Result<Option<u32>, ScenarioError> {
        let value = table
            .get(key)
            .map(|value| value.whole(0, max))
            .transpose()?;
        Ok(value.map(|value| u32::try_from(value).unwrap_or(u32::MAX)))
    };
    let window = table.need(WINDOW)?;
    Ok(Margins {
        window: duration(&window, WINDOW, Duration::from_secs(1))?,
        min_transfers: match table.get(MIN_TRANSFERS) {
            Some(value) => value.whole(1, 1_000_000)?,
            None => 200,
        },
        retransmission_points: whole(RETRANSMISSIONS, 100)?,
        timeout_points: whole(TIMEOUTS, 1000)?,
        latency_percent: whole(LATENCY, 10_000)?,
    })
}
