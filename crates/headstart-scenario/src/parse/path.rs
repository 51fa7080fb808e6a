//! The table `[path]`: every key is an option of `headstart path`, in the same words.

use std::fmt::Display;
use std::str::FromStr;

use headstart_link::{LinkConfig, Preset, QueueSpec, RateSpec, Span};

use crate::reader::{Key, Table, Value};
use crate::{Fault, PathSpec, ScenarioError};

const PRESET: Key = Key {
    name: "preset",
    example: "\"satellite\"",
};
const RTT: Key = Key {
    name: "rtt",
    example: "\"400ms\"",
};
const PRIORITY_DSCP: Key = Key {
    name: "priority_dscp",
    example: "1",
};

/// The keys of one direction.
struct Keys {
    rate: Key,
    rate_trace: Key,
    delay: Key,
    queue: Key,
    loss: Key,
    jitter: Key,
    flow_delay: Key,
    reorder: Key,
    duplicate: Key,
}

/// `reverse_` stands before each name of the way back.
macro_rules! keys {
    ($reverse:literal: $($key:ident = $example:literal),*) => {
        Keys {
            $($key: Key {
                name: concat!($reverse, stringify!($key)),
                example: $example,
            }),*
        }
    };
    ($reverse:literal) => {
        keys!($reverse:
            rate = "\"12mbit\"",
            rate_trace = "\"lte.down\"",
            delay = "\"200ms\"",
            queue = "\"drop-tail:400\"",
            loss = "\"1%\"",
            jitter = "\"5ms\"",
            flow_delay = "\"exp:10ms\"",
            reorder = "\"1%,by=10ms\"",
            duplicate = "\"0.1%\""
        )
    };
}

const FORWARD: Keys = keys!("");
const REVERSE: Keys = keys!("reverse_");

impl Keys {
    const fn all(&self) -> [Key; 9] {
        [
            self.rate,
            self.rate_trace,
            self.delay,
            self.queue,
            self.loss,
            self.jitter,
            self.flow_delay,
            self.reorder,
            self.duplicate,
        ]
    }
}

/// One `[[link]]` of a simulation: a direction's keys.
pub(super) fn link(table: &Table<'_>) -> Result<LinkConfig, ScenarioError> {
    let known: Vec<Key> = FORWARD.all().into_iter().chain([super::NAME]).collect();
    table.only(&known)?;
    let rate = match rate(table, &FORWARD)? {
        Some(rate) => rate,
        None => {
            return Err(table
                .need(FORWARD.rate)
                .err()
                .unwrap_or_else(|| table.bad(FORWARD.rate, &"is missing")));
        }
    };
    let delay = table.need(FORWARD.delay)?.parsed(FORWARD.delay)?;
    let queue: QueueSpec = table.need(FORWARD.queue)?.parsed(FORWARD.queue)?;
    let flow_delay = match table.get(FORWARD.flow_delay) {
        Some(value) => Some(value.distribution(FORWARD.flow_delay)?),
        None => None,
    };
    Ok(LinkConfig {
        loss: optional(table, FORWARD.loss)?,
        jitter: optional(table, FORWARD.jitter)?,
        reorder: optional(table, FORWARD.reorder)?,
        duplicate: optional(table, FORWARD.duplicate)?,
        flow_delay,
        ..LinkConfig::new(rate.nominal(), delay, queue)
    }
    .with_rate(rate))
}

pub(super) fn path(table: &Table<'_>) -> Result<PathSpec, ScenarioError> {
    let [there, back] = [FORWARD.all(), REVERSE.all()];
    let known: Vec<Key> = [super::NAME, PRESET, RTT, PRIORITY_DSCP]
        .into_iter()
        .chain(there)
        .chain(back)
        .collect();
    table.only(&known)?;
    let preset = preset(table)?;
    let or_preset = Defaults { table, preset };

    let rate = match rate(table, &FORWARD)? {
        Some(rate) => rate,
        None => or_preset.needed(FORWARD.rate, |preset| preset.rate)?,
    };
    let reverse_rate = match rate_of_the_way_back(table, &or_preset)? {
        Some(rate) => rate,
        None => rate.clone(),
    };
    let queue = or_preset.needed(FORWARD.queue, |preset| preset.queue)?;
    let reverse_queue = or_preset
        .given(REVERSE.queue, |preset| preset.reverse_queue)?
        .unwrap_or(queue);
    let (delay, reverse_delay) = delays(table, &or_preset)?;

    let rtt = Span::from_ns(delay.as_ns().saturating_add(reverse_delay.as_ns()));
    let dscp = match table.get(PRIORITY_DSCP) {
        Some(dscp) => u8::try_from(dscp.whole(0, 63)?).ok(),
        None => None,
    };
    let link = |keys: &Keys, rate: RateSpec, delay, queue: QueueSpec| {
        let queue = dscp.map_or(queue, |dscp| queue.with_low_priority_dscp(dscp));
        let config = LinkConfig {
            rtt,
            loss: optional(table, keys.loss)?,
            jitter: optional(table, keys.jitter)?,
            reorder: optional(table, keys.reorder)?,
            duplicate: optional(table, keys.duplicate)?,
            flow_delay: match table.get(keys.flow_delay) {
                Some(value) => Some(value.distribution(keys.flow_delay)?),
                None => None,
            },
            ..LinkConfig::new(rate.nominal(), delay, queue)
        }
        .with_rate(rate);
        // What may be wrong only together: a share of a small product, RED's thresholds.
        config
            .queue
            .check_on(&config.queue_context())
            .map_err(|cause| {
                let place = table.get(keys.queue).or_else(|| table.get(FORWARD.queue));
                match place.or_else(|| table.get(PRESET)) {
                    Some(value) => value.bad(keys.queue, &cause),
                    None => table.bad(keys.queue, &cause),
                }
            })?;
        Ok(config)
    };
    Ok(PathSpec {
        forward: link(&FORWARD, rate, delay, queue)?,
        reverse: link(&REVERSE, reverse_rate, reverse_delay, reverse_queue)?,
    })
}

fn preset(table: &Table<'_>) -> Result<Option<&'static Preset>, ScenarioError> {
    let names: Vec<(&str, &'static Preset)> = Preset::ALL
        .iter()
        .filter_map(|preset| Some((preset.name, Preset::named(preset.name)?)))
        .collect();
    let value = table.get(PRESET);
    value
        .map(|value| value.one_of("preset", &names))
        .transpose()
}

/// What the file says, or else the preset.
struct Defaults<'t, 'a> {
    table: &'t Table<'a>,
    preset: Option<&'static Preset>,
}

impl Defaults<'_, '_> {
    fn given<T>(
        &self,
        key: Key,
        text: fn(&Preset) -> &'static str,
    ) -> Result<Option<T>, ScenarioError>
    where
        T: FromStr<Err: Display>,
    {
        match (self.table.get(key), self.preset) {
            (Some(value), _) => value.parsed(key).map(Some),
            (None, Some(preset)) => match text(preset).parse() {
                Ok(value) => Ok(Some(value)),
                Err(cause) => Err(self.table.bad(key, &cause)),
            },
            (None, None) => Ok(None),
        }
    }

    fn needed<T>(&self, key: Key, text: fn(&Preset) -> &'static str) -> Result<T, ScenarioError>
    where
        T: FromStr<Err: Display>,
    {
        match self.given(key, text)? {
            Some(value) => Ok(value),
            None => self.table.need(key)?.parsed(key),
        }
    }
}

fn optional<T>(table: &Table<'_>, key: Key) -> Result<Option<T>, ScenarioError>
where
    T: FromStr<Err: Display>,
{
    let value: Option<Value<'_>> = table.get(key);
    value.map(|value| value.parsed(key)).transpose()
}

/// The rate or the trace of a direction, if the file has one of them.
fn rate(table: &Table<'_>, keys: &Keys) -> Result<Option<RateSpec>, ScenarioError> {
    match (table.get(keys.rate), table.get(keys.rate_trace)) {
        (Some(_), Some(trace)) => Err(trace.error(Fault::RateAndTrace {
            rate: keys.rate.name,
            trace: keys.rate_trace.name,
        })),
        (Some(rate), None) => rate.parsed(keys.rate).map(Some),
        (None, Some(trace)) => trace.trace(keys.rate_trace).map(Some),
        (None, None) => Ok(None),
    }
}

fn rate_of_the_way_back(
    table: &Table<'_>,
    or_preset: &Defaults<'_, '_>,
) -> Result<Option<RateSpec>, ScenarioError> {
    match rate(table, &REVERSE)? {
        Some(rate) => Ok(Some(rate)),
        None => or_preset.given(REVERSE.rate, |preset| preset.reverse_rate),
    }
}

/// The one-way delays: half of `rtt` each (of an odd number of ns the greater half goes back), or
/// as given.
fn delays(table: &Table<'_>, or_preset: &Defaults<'_, '_>) -> Result<(Span, Span), ScenarioError> {
    let one_way = [FORWARD.delay, REVERSE.delay]
        .into_iter()
        .find(|key| table.get(*key).is_some());
    match (table.get(RTT), one_way) {
        (Some(_), Some(other)) => {
            let fault = Fault::RttAndDelay { other: other.name };
            Err(table.need(other)?.error(fault))
        }
        (None, Some(_)) => Ok((
            table.need(FORWARD.delay)?.parsed(FORWARD.delay)?,
            table.need(REVERSE.delay)?.parsed(REVERSE.delay)?,
        )),
        (_, None) => {
            let rtt: Span = or_preset.needed(RTT, |preset| preset.rtt)?;
            let delay = Span::from_ns(rtt.as_ns() / 2);
            Ok((delay, Span::from_ns(rtt.as_ns() - delay.as_ns())))
        }
    }
}
