//! RED's parameters, as people write them: `red:50,min=5,max=15,gentle`.

use std::fmt;

use super::{DEFAULT_LOW_PRIORITY_DSCP, QueueContext, QueueSpecError, needed_limit};
use crate::options::Options;
use crate::size::Limit;
use crate::{QueueSize, Share};

/// Random early detection (Floyd and Jacobson, 1993). The defaults are the paper's: thresholds of 5
/// and 15 packets, `max_p` 1/50, `w_q` 0.002.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RedSpec {
    /// How much may wait, besides the packet in transmission, whatever the average is.
    pub limit: QueueSize,
    /// Below this average no packet is dropped.
    pub min: QueueSize,
    /// From this average on every packet is dropped; with `gentle`, from twice this. Thresholds in
    /// bytes make it an average in bytes.
    pub max: QueueSize,
    /// The probability that is reached at `max`.
    pub max_p: Share,
    /// The weight of a new value in the average.
    pub w_q: Share,
    /// Between `max` and twice `max` the probability rises from `max_p` to 1.
    pub gentle: bool,
    /// Packets that understand a mark are marked in place of an early drop.
    pub ecn: bool,
    /// The "small packet" of the idle correction: as many of these as the idle time would have
    /// taken are counted as empty arrivals. 500 bytes, as in ns-2.
    pub mean_packet_bytes: u32,
    /// The code point that marks low drop priority, if the router looks at it.
    pub low_priority_dscp: Option<u8>,
}

impl RedSpec {
    /// With the paper's parameters and without priority drop.
    #[must_use]
    pub const fn new(limit: QueueSize) -> RedSpec {
        RedSpec {
            limit,
            min: QueueSize::Packets(5),
            max: QueueSize::Packets(15),
            max_p: Share::exactly(20_000_000),
            w_q: Share::exactly(2_000_000),
            gentle: false,
            ecn: false,
            mean_packet_bytes: 500,
            low_priority_dscp: None,
        }
    }

    pub(super) fn parse(options: &mut Options<'_>, priority: bool) -> Result<Self, QueueSpecError> {
        let default = RedSpec::new(needed_limit(options)?);
        Ok(RedSpec {
            limit: default.limit,
            min: options.value("min")?.unwrap_or(default.min),
            max: options.value("max")?.unwrap_or(default.max),
            max_p: options.value("max_p")?.unwrap_or(default.max_p),
            w_q: options.value("w_q")?.unwrap_or(default.w_q),
            gentle: options.flag("gentle", None)?.unwrap_or(default.gentle),
            ecn: options.flag("ecn", None)?.unwrap_or(default.ecn),
            mean_packet_bytes: options
                .value("mean_packet_bytes")?
                .unwrap_or(default.mean_packet_bytes),
            low_priority_dscp: match priority {
                true => Some(options.value("dscp")?.unwrap_or(DEFAULT_LOW_PRIORITY_DSCP)),
                false => None,
            },
        })
    }

    /// The kind's name.
    pub(super) fn kind(&self) -> &'static str {
        match self.low_priority_dscp {
            Some(_) => "priority-red",
            None => "red",
        }
    }

    /// Refuses what cannot be on any link.
    pub(super) fn check(&self) -> Result<(), QueueSpecError> {
        let bad = |option: &str, cause: &str| {
            Err(QueueSpecError::BadOption {
                text: self.to_string(),
                option: option.to_owned(),
                cause: cause.to_owned(),
            })
        };
        if self.w_q == Share::ZERO {
            return bad(
                "w_q",
                "with 0 the average never moves: give for instance 0.002",
            );
        }
        if self.max_p == Share::ZERO {
            return bad(
                "max_p",
                "with 0 nothing is ever dropped early: give for instance 2%",
            );
        }
        if self.mean_packet_bytes == 0 {
            return bad(
                "mean_packet_bytes",
                "a packet has bytes: give for instance 500",
            );
        }
        use QueueSize::{BdpMillionths, Bytes, Packets};
        match (self.min, self.max) {
            (Packets(min), Packets(max)) if min >= max => {}
            (Bytes(min), Bytes(max)) if min >= max => {}
            (BdpMillionths(min), BdpMillionths(max)) if min >= max => {}
            (Bytes(_), Packets(_) | BdpMillionths(_))
            | (Packets(_) | BdpMillionths(_), Bytes(_)) => {}
            _ => return Ok(()),
        }
        Err(self.bad_thresholds(self.min, self.max))
    }

    /// `min` and `max` on a link, and whether they are in bytes.
    ///
    /// # Errors
    /// They are not in order, or of two units.
    pub(crate) fn thresholds(
        &self,
        context: &QueueContext,
    ) -> Result<(f64, f64, bool), QueueSpecError> {
        let resolved = |size: QueueSize| size.resolve(context.rate, context.rtt);
        match (resolved(self.min), resolved(self.max)) {
            (Limit::Packets(min), Limit::Packets(max)) if min < max => {
                Ok((f64::from(min), f64::from(max), false))
            }
            (Limit::Bytes(min), Limit::Bytes(max)) if min < max => {
                Ok((min as f64, max as f64, true))
            }
            (min, max) => Err(self.bad_thresholds(min.into(), max.into())),
        }
    }

    /// Thresholds that are not in order, as they are or as they come out on a link.
    fn bad_thresholds(&self, min: QueueSize, max: QueueSize) -> QueueSpecError {
        QueueSpecError::Thresholds {
            kind: self.kind(),
            min,
            max,
        }
    }
}

impl fmt::Display for RedSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = RedSpec::new(self.limit);
        let RedSpec {
            limit,
            min,
            max,
            max_p,
            w_q,
            ..
        } = self;
        write!(f, "{}:{limit},min={min},max={max}", self.kind())?;
        if *max_p != default.max_p {
            write!(f, ",max_p={max_p}")?;
        }
        if *w_q != default.w_q {
            write!(f, ",w_q={w_q}")?;
        }
        if self.gentle {
            f.write_str(",gentle")?;
        }
        if self.ecn {
            f.write_str(",ecn")?;
        }
        if self.mean_packet_bytes != default.mean_packet_bytes {
            write!(f, ",mean_packet_bytes={}", self.mean_packet_bytes)?;
        }
        match self.low_priority_dscp {
            None | Some(DEFAULT_LOW_PRIORITY_DSCP) => Ok(()),
            Some(dscp) => write!(f, ",dscp={dscp}"),
        }
    }
}
