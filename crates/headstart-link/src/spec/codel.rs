//! The parameters of `CoDel` and FQ-CoDel, as people write them: `codel:1000,target=5ms`.

use std::fmt;

use super::{QueueSpecError, limit};
use crate::options::Options;
use crate::{QueueSize, Span};

/// RFC 8289, section 4.2 and 4.3: 5 ms and 100 ms serve from 10 ms to 300 ms of round-trip time.
const TARGET: Span = Span::from_ns(5_000_000);
const INTERVAL: Span = Span::from_ns(100_000_000);

/// `CoDel` (RFC 8289).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodelSpec {
    /// How much may wait, besides the packet in transmission, whatever the controller says.
    pub limit: QueueSize,
    /// The time in the queue that is acceptable.
    pub target: Span,
    /// For how long more than that is put up with.
    pub interval: Span,
    /// Packets that understand a mark are marked in place of a drop.
    pub ecn: bool,
}

impl Default for CodelSpec {
    /// 1000 packets, as Linux has it; no marks.
    fn default() -> CodelSpec {
        CodelSpec {
            limit: QueueSize::Packets(1000),
            target: TARGET,
            interval: INTERVAL,
            ecn: false,
        }
    }
}

/// FQ-CoDel (RFC 8290).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FqCodelSpec {
    /// How much may wait in all, besides the packet in transmission.
    pub limit: QueueSize,
    /// How many queues the flows are hashed into.
    pub flows: u32,
    /// How many bytes a flow may send in its turn.
    pub quantum_bytes: u32,
    /// The time in the queue that is acceptable.
    pub target: Span,
    /// For how long more than that is put up with.
    pub interval: Span,
    /// Packets that understand a mark are marked in place of a drop.
    pub ecn: bool,
}

impl Default for FqCodelSpec {
    /// RFC 8290, section 5.2: 10,240 packets, 1024 queues, 1514 bytes, marks on.
    fn default() -> FqCodelSpec {
        FqCodelSpec {
            limit: QueueSize::Packets(10_240),
            flows: 1024,
            quantum_bytes: 1514,
            target: TARGET,
            interval: INTERVAL,
            ecn: true,
        }
    }
}

/// A turn of less would go round the flows many times for one packet; Linux has the same bound.
const LEAST_QUANTUM_BYTES: u32 = 256;
const MOST_FLOWS: u32 = 65_536;

fn bad(text: String, option: &str, cause: String) -> QueueSpecError {
    let option = option.to_owned();
    QueueSpecError::BadOption {
        text,
        option,
        cause,
    }
}

fn check_times(text: String, target: Span, interval: Span) -> Result<(), QueueSpecError> {
    if target > Span::ZERO && target < interval {
        return Ok(());
    }
    let cause = format!("needs 0 < target < interval (got {target}, {interval})");
    Err(bad(text, "target", cause))
}

impl CodelSpec {
    pub(super) fn parse(options: &mut Options<'_>) -> Result<CodelSpec, QueueSpecError> {
        let default = CodelSpec::default();
        Ok(CodelSpec {
            limit: limit(options)?.unwrap_or(default.limit),
            target: options.value("target")?.unwrap_or(default.target),
            interval: options.value("interval")?.unwrap_or(default.interval),
            ecn: options.flag("ecn", None)?.unwrap_or(default.ecn),
        })
    }

    pub(super) fn check(&self) -> Result<(), QueueSpecError> {
        check_times(self.to_string(), self.target, self.interval)
    }
}

impl fmt::Display for CodelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = CodelSpec::default();
        write!(f, "codel:{}", self.limit)?;
        write_times(
            f,
            (self.target, default.target),
            (self.interval, default.interval),
        )?;
        f.write_str(if self.ecn { ",ecn" } else { "" })
    }
}

impl FqCodelSpec {
    pub(super) fn parse(options: &mut Options<'_>) -> Result<FqCodelSpec, QueueSpecError> {
        let default = FqCodelSpec::default();
        Ok(FqCodelSpec {
            limit: limit(options)?.unwrap_or(default.limit),
            flows: options.value("flows")?.unwrap_or(default.flows),
            quantum_bytes: options.value("quantum")?.unwrap_or(default.quantum_bytes),
            target: options.value("target")?.unwrap_or(default.target),
            interval: options.value("interval")?.unwrap_or(default.interval),
            ecn: options.flag("ecn", Some("no-ecn"))?.unwrap_or(default.ecn),
        })
    }

    pub(super) fn check(&self) -> Result<(), QueueSpecError> {
        if self.flows == 0 || self.flows > MOST_FLOWS {
            let cause = format!("give 1 to {MOST_FLOWS}");
            return Err(bad(self.to_string(), "flows", cause));
        }
        if self.quantum_bytes < LEAST_QUANTUM_BYTES {
            let cause = format!("give at least {LEAST_QUANTUM_BYTES} (bytes)");
            return Err(bad(self.to_string(), "quantum", cause));
        }
        check_times(self.to_string(), self.target, self.interval)
    }
}

impl fmt::Display for FqCodelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = FqCodelSpec::default();
        write!(f, "fq-codel:{}", self.limit)?;
        if self.flows != default.flows {
            write!(f, ",flows={}", self.flows)?;
        }
        if self.quantum_bytes != default.quantum_bytes {
            write!(f, ",quantum={}", self.quantum_bytes)?;
        }
        write_times(
            f,
            (self.target, default.target),
            (self.interval, default.interval),
        )?;
        f.write_str(if self.ecn { "" } else { ",no-ecn" })
    }
}

/// Each only if it is not the default beside it.
fn write_times(
    f: &mut fmt::Formatter<'_>,
    (target, default_target): (Span, Span),
    (interval, default_interval): (Span, Span),
) -> fmt::Result {
    if target != default_target {
        write!(f, ",target={target}")?;
    }
    if interval != default_interval {
        write!(f, ",interval={interval}")?;
    }
    Ok(())
}
