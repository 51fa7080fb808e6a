//! `[transport]` of a simulation, and `transport = { ... }` of one kind of traffic.

use headstart_link::Span;

use crate::reader::{Key, Table, Value};
use crate::{
    AckSpec, ByteSize, GrowthSpec, HandshakeSpec, IdleSpec, PacingSpec, RecoverySpec, RtoSpec,
    SackSpec, ScenarioError, Transport, WindowSpec,
};

macro_rules! keys {
    ($($constant:ident = $name:literal: $example:literal;)+) => {
        $(const $constant: Key = Key { name: $name, example: $example };)+
        const KEYS: &[Key] = &[$($constant),+];
    };
}

keys! {
    MODEL = "model": "\"linux\"";
    MSS = "mss_bytes": "1448";
    HEADER = "header_bytes": "52";
    ACK_BYTES = "ack_bytes": "52";
    REQUEST = "request_bytes": "132";
    HANDSHAKE = "handshake": "\"three-way\"";
    INITIAL_WINDOW = "initial_window_pkts": "10";
    INITIAL_SSTHRESH = "initial_ssthresh_pkts": "64";
    SEND_BUFFER = "send_buffer": "\"64KiB\"";
    RECOVERY = "recovery": "\"sack\"";
    DUPTHRESH = "dupthresh": "3";
    LIMITED_TRANSMIT = "limited_transmit": "true";
    HYSTART = "hystart": "false";
    GROWTH = "growth": "\"per-ack\"";
    MIN_RTO = "min_rto": "\"200ms\"";
    INITIAL_RTO = "initial_rto": "\"3s\"";
    HANDSHAKE_RTT = "handshake_rtt": "true";
    FRTO = "frto": "true";
    CLOCK_TICK = "clock_tick": "\"10ms\"";
    IDLE = "idle": "\"linux\"";
    PACING = "pacing": "\"linux\"";
    TIMESTAMPS = "timestamps": "true";
    ECN = "ecn": "false";
    ACKS = "acks": "\"every-packet\"";
    ACK_DELAY = "ack_delay": "\"40ms\"";
    SACK = "sack": "\"on\"";
    RECEIVE_WINDOW = "receive_window": "\"linux\"";
}

/// Reads `table` over `base`, and whether `HyStart` is in use over `hystart`.
pub(crate) fn transport(
    table: &Table<'_>,
    base: &Transport,
    hystart: bool,
) -> Result<(Transport, bool), ScenarioError> {
    table.only(KEYS)?;
    let mut t = match table.get(MODEL) {
        None => *base,
        Some(value) => value.one_of(
            "model",
            &[
                ("linux", Transport::linux()),
                (
                    "newreno",
                    Transport::classic(RecoverySpec::NewRenoImpatient),
                ),
                ("sack", Transport::classic(RecoverySpec::Sack)),
            ],
        )?,
    };
    let short = |key: Key, min, max, into: &mut u16| -> Result<(), ScenarioError> {
        if let Some(value) = table.get(key) {
            *into = u16::try_from(value.whole(min, max)?).unwrap_or(u16::MAX);
        }
        Ok(())
    };
    short(MSS, 1, 60_000, &mut t.mss_bytes)?;
    short(HEADER, 0, 1000, &mut t.header_bytes)?;
    short(ACK_BYTES, 0, 1000, &mut t.ack_bytes)?;
    short(REQUEST, 0, 1500, &mut t.request_bytes)?;
    if let Some(value) = table.get(INITIAL_WINDOW) {
        t.initial_window_pkts = pkts(&value)?;
    }
    if let Some(value) = table.get(INITIAL_SSTHRESH) {
        t.initial_ssthresh_pkts = Some(pkts(&value)?);
    }
    if let Some(value) = table.get(DUPTHRESH) {
        t.dupthresh = pkts(&value)?;
    }
    if let Some(value) = table.get(SEND_BUFFER) {
        t.send_buffer_bytes = Some(value.size(SEND_BUFFER)?.bytes());
    }
    names(table, &mut t)?;
    timers(table, &mut t)?;
    let flag = |key: Key, into: &mut bool| -> Result<(), ScenarioError> {
        if let Some(value) = table.get(key) {
            *into = value.flag()?;
        }
        Ok(())
    };
    flag(LIMITED_TRANSMIT, &mut t.limited_transmit)?;
    flag(TIMESTAMPS, &mut t.timestamps)?;
    flag(ECN, &mut t.ecn)?;
    flag(HANDSHAKE_RTT, &mut t.handshake_rtt)?;
    if let Some(value) = table.get(FRTO) {
        t.frto = Some(value.flag()?);
    }
    let mut hystart = hystart;
    flag(HYSTART, &mut hystart)?;
    receiver(table, &mut t)?;
    Ok((t, hystart))
}

fn pkts(value: &Value<'_>) -> Result<u32, ScenarioError> {
    let number = value.whole(1, 1 << 30)?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

fn names(table: &Table<'_>, t: &mut Transport) -> Result<(), ScenarioError> {
    if let Some(value) = table.get(HANDSHAKE) {
        t.handshake = value.one_of(
            "handshake",
            &[
                ("three-way", HandshakeSpec::ThreeWay),
                ("fast-open", HandshakeSpec::FastOpen),
                ("none", HandshakeSpec::None),
            ],
        )?;
    }
    if let Some(value) = table.get(RECOVERY) {
        t.recovery = value.one_of(
            "recovery",
            &[
                ("linux", RecoverySpec::Linux),
                ("sack", RecoverySpec::Sack),
                ("newreno", RecoverySpec::NewRenoImpatient),
                ("newreno-steady", RecoverySpec::NewRenoSteady),
            ],
        )?;
    }
    if let Some(value) = table.get(GROWTH) {
        t.growth = value.one_of(
            "growth",
            &[
                ("per-packet", GrowthSpec::PerPacket),
                ("per-ack", GrowthSpec::PerAck),
            ],
        )?;
    }
    if let Some(value) = table.get(IDLE) {
        t.idle = value.one_of(
            "idle",
            &[
                ("linux", IdleSpec::Linux),
                ("restart", IdleSpec::Restart),
                ("keep", IdleSpec::Keep),
            ],
        )?;
    }
    if let Some(value) = table.get(PACING) {
        t.pacing = value.one_of(
            "pacing",
            &[("off", PacingSpec::Off), ("linux", PacingSpec::Linux)],
        )?;
    }
    Ok(())
}

/// A clock of ticks makes it a timer by RFC 6298; Linux has none.
fn timers(table: &Table<'_>, t: &mut Transport) -> Result<(), ScenarioError> {
    if let Some(value) = table.get(MIN_RTO) {
        t.rto.min_us = us(value.parsed(MIN_RTO)?);
    }
    if let Some(value) = table.get(CLOCK_TICK) {
        let initial_us = t.rto.initial_us;
        t.rto = RtoSpec::classic(t.rto.min_us, us(value.parsed(CLOCK_TICK)?));
        t.rto.initial_us = initial_us;
    }
    if let Some(value) = table.get(INITIAL_RTO) {
        t.rto.initial_us = us(value.parsed(INITIAL_RTO)?).max(1);
    }
    Ok(())
}

fn us(span: Span) -> u32 {
    u32::try_from(span.as_ns() / 1000).unwrap_or(u32::MAX)
}

fn receiver(table: &Table<'_>, t: &mut Transport) -> Result<(), ScenarioError> {
    if let Some(value) = table.get(ACKS) {
        t.receiver.acks = value.one_of(
            "acks",
            &[
                ("linux", AckSpec::Linux),
                ("every-packet", AckSpec::EveryPacket),
                ("delayed", AckSpec::Delayed),
            ],
        )?;
    }
    if let Some(value) = table.get(ACK_DELAY) {
        t.receiver.delay_us = us(value.parsed(ACK_DELAY)?);
    }
    if let Some(value) = table.get(SACK) {
        t.receiver.sack = match value.text()?.strip_prefix("up-to:").map(str::parse) {
            Some(Ok(runs)) => SackSpec::UpToRuns(runs),
            _ => value.one_of(
                "sack",
                &[
                    ("on", SackSpec::On),
                    ("off", SackSpec::Off),
                    ("up-to:100", SackSpec::UpToRuns(100)),
                ],
            )?,
        };
    }
    if let Some(value) = table.get(RECEIVE_WINDOW) {
        t.receiver.window = match value.text() {
            Ok("linux") => Transport::linux().receiver.window,
            _ => {
                let size: ByteSize = value.size(RECEIVE_WINDOW)?;
                WindowSpec::Fixed(u32::try_from(size.bytes()).unwrap_or(u32::MAX))
            }
        };
    }
    Ok(())
}
