//! Which queue a link has, as people write it: `drop-tail:400`, `priority:1bdp,dscp=1`.

mod codel;
mod red;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::options::{Fault, OptionFault, Options};
use crate::packet::{FULL_PACKET_BYTES, Packet};
use crate::queue::{AnyQueue, Codel, DropTail, FqCodel, Kind, Red};
use crate::{QueueSize, QueueSizeError, Rate, Span};

pub use codel::{CodelSpec, FqCodelSpec};
pub use red::RedSpec;

/// The code point of low drop priority unless another is given: LE, "lower effort" (RFC 8622),
/// which is also what Headstart's marker sets.
pub const DEFAULT_LOW_PRIORITY_DSCP: u8 = 1;

/// The highest code point: it has 6 bits.
const LAST_DSCP: u8 = 63;

/// The kind and size of a link's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum QueueSpec {
    /// First in, first out; a packet that finds the queue full is dropped.
    DropTail {
        /// How much may wait, besides the packet in transmission.
        limit: QueueSize,
    },
    /// Drop-tail with priority drop (Fast Start, section 3.2): the queue of a full router loses a
    /// packet of low priority, the newest, before it loses another. The order stays.
    Priority {
        /// How much may wait, besides the packet in transmission.
        limit: QueueSize,
        /// The code point that marks low priority, 0 to 63.
        dscp: u8,
    },
    /// Random early detection, with priority drop on top or without.
    Red(RedSpec),
    /// Controlled delay: drops at the head when packets wait too long for too long.
    Codel(CodelSpec),
    /// A queue a flow, served in turn, each under its own `CoDel`.
    FqCodel(FqCodelSpec),
}

/// The kinds of queue there are, as `--queue` names them.
const KNOWN: &str = "drop-tail:LIMIT, priority:LIMIT, red:LIMIT, priority-red:LIMIT, \
    codel[:LIMIT], fq-codel[:LIMIT]";

/// What a queue has to know of the link that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueContext {
    /// The link's rate; its mean, if it changes.
    pub rate: Rate,
    /// The round-trip time of the empty path.
    pub rtt: Span,
    /// The seed of what is drawn by lot.
    pub seed: u64,
}

/// A queue that cannot be, with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueSpecError {
    /// No such kind of queue.
    #[error("queue {text:?} is of no known kind: known are {KNOWN}")]
    UnknownKind {
        /// What was given.
        text: String,
    },
    /// The size is missing or none.
    #[error("queue {text:?} needs a size{why}")]
    BadLimit {
        /// What was given.
        text: String,
        /// What is wrong with it, and what to write instead.
        why: String,
    },
    /// A queue of 0 packets would lose every packet that comes while another is in transmission.
    #[error("queue {text:?} has room for 0 packets: give at least 1, like \"drop-tail:1\"")]
    ZeroLimit {
        /// What was given.
        text: String,
    },
    /// A queue in bytes that no full packet fits into would lose all of them.
    #[error(
        "queue {text:?} has room for {limit}: give at least {FULL_PACKET_BYTES}B, a full packet"
    )]
    BelowOnePacket {
        /// What was given.
        text: String,
        /// Its size.
        limit: QueueSize,
    },
    /// A share of the bandwidth-delay product that no full packet fits into on this link.
    #[error(
        "queue {text:?} has room for less than a full packet: the bandwidth-delay product of {rate} \
         and {rtt} is {bdp_bytes} bytes; give a larger share, or packets, like \"drop-tail:10\""
    )]
    ShareBelowOnePacket {
        /// What was given.
        text: String,
        /// The link's rate.
        rate: Rate,
        /// The path's round-trip time.
        rtt: Span,
        /// What these make.
        bdp_bytes: u64,
    },
    /// RED's thresholds are not in order, or one is in bytes and the other is not.
    #[error("queue {kind:?} needs min < max, both in packets or both in bytes (got {min}, {max})")]
    Thresholds {
        /// `red` or `priority-red`.
        kind: &'static str,
        /// The lower one.
        min: QueueSize,
        /// The upper one.
        max: QueueSize,
    },
    /// An option that this kind of queue does not have.
    #[error("queue {text:?} has no option {option:?}: {known}")]
    UnknownOption {
        /// What was given.
        text: String,
        /// The option.
        option: String,
        /// The options there are.
        known: String,
    },
    /// An option with a value that it cannot have.
    #[error("queue {text:?}, option {option:?}: {cause}")]
    BadOption {
        /// What was given.
        text: String,
        /// The option.
        option: String,
        /// What is wrong with it.
        cause: String,
    },
}

impl From<OptionFault> for QueueSpecError {
    fn from(fault: OptionFault) -> QueueSpecError {
        let (text, option) = (fault.text, fault.option);
        match fault.fault {
            Fault::Unknown(known) => QueueSpecError::UnknownOption {
                text,
                option,
                known,
            },
            Fault::Bad(cause) => QueueSpecError::BadOption {
                text,
                option,
                cause,
            },
        }
    }
}

/// The size; `None` if none is given.
fn limit(options: &Options<'_>) -> Result<Option<QueueSize>, QueueSpecError> {
    let read = |text: &str| {
        text.parse()
            .map_err(|cause: QueueSizeError| QueueSpecError::BadLimit {
                text: options.text.to_owned(),
                why: format!(": {cause}"),
            })
    };
    options.first.map(read).transpose()
}

/// The size of a queue that cannot do without.
fn needed_limit(options: &Options<'_>) -> Result<QueueSize, QueueSpecError> {
    limit(options)?.ok_or_else(|| QueueSpecError::BadLimit {
        text: options.text.to_owned(),
        why: format!(
            ": write it like \"{}:400\", \"{0}:64KiB\" or \"{0}:1bdp\"",
            options.kind
        ),
    })
}

impl QueueSpec {
    /// Drop-tail of so many packets.
    #[must_use]
    pub const fn drop_tail(limit_pkts: u32) -> Self {
        QueueSpec::DropTail {
            limit: QueueSize::Packets(limit_pkts),
        }
    }

    /// Drop-tail that holds the bandwidth-delay product in packets of `wire_bytes` bytes, and at
    /// least `at_least_pkts`.
    #[must_use]
    pub fn drop_tail_of_one_bdp(
        rate: Rate,
        rtt: Span,
        wire_bytes: u32,
        at_least_pkts: u32,
    ) -> Self {
        let pkts = rate.bytes_in(rtt).div_ceil(u64::from(wire_bytes.max(1)));
        let limit_pkts = u32::try_from(pkts)
            .unwrap_or(u32::MAX)
            .max(at_least_pkts)
            .max(1);
        QueueSpec::drop_tail(limit_pkts)
    }

    /// The code point that marks low drop priority, if the queue looks at it.
    #[must_use]
    pub fn low_priority_dscp(&self) -> Option<u8> {
        match self {
            QueueSpec::Priority { dscp, .. } => Some(*dscp),
            QueueSpec::Red(red) => red.low_priority_dscp,
            QueueSpec::DropTail { .. } | QueueSpec::Codel(_) | QueueSpec::FqCodel(_) => None,
        }
    }

    /// The same queue with another code point of low priority, if it has priority drop at all.
    #[must_use]
    pub fn with_low_priority_dscp(self, dscp: u8) -> Self {
        match self {
            QueueSpec::Priority { limit, .. } => QueueSpec::Priority { limit, dscp },
            QueueSpec::Red(red) if red.low_priority_dscp.is_some() => QueueSpec::Red(RedSpec {
                low_priority_dscp: Some(dscp),
                ..red
            }),
            _ => self,
        }
    }

    /// How much may wait.
    #[must_use]
    pub fn limit(&self) -> QueueSize {
        match self {
            QueueSpec::DropTail { limit } | QueueSpec::Priority { limit, .. } => *limit,
            QueueSpec::Red(red) => red.limit,
            QueueSpec::Codel(codel) => codel.limit,
            QueueSpec::FqCodel(fq_codel) => fq_codel.limit,
        }
    }

    /// Refuses what was built by hand and cannot be. What was parsed is always valid.
    ///
    /// # Errors
    /// What is wrong with it, and what to write instead.
    pub fn check(&self) -> Result<(), QueueSpecError> {
        let text = || self.to_string();
        let limit = self.limit();
        match limit {
            limit if limit.is_zero() => return Err(QueueSpecError::ZeroLimit { text: text() }),
            QueueSize::Bytes(bytes) if bytes < u64::from(FULL_PACKET_BYTES) => {
                return Err(QueueSpecError::BelowOnePacket {
                    text: text(),
                    limit,
                });
            }
            _ => {}
        }
        if self
            .low_priority_dscp()
            .is_some_and(|dscp| dscp > LAST_DSCP)
        {
            return Err(QueueSpecError::BadOption {
                text: text(),
                option: "dscp".to_owned(),
                cause: format!("a code point has 6 bits: give 0 to {LAST_DSCP}"),
            });
        }
        match self {
            QueueSpec::Red(red) => red.check(),
            QueueSpec::Codel(codel) => codel.check(),
            QueueSpec::FqCodel(fq_codel) => fq_codel.check(),
            QueueSpec::DropTail { .. } | QueueSpec::Priority { .. } => Ok(()),
        }
    }

    /// Refuses what cannot be on a link of this kind.
    ///
    /// # Errors
    /// As [`QueueSpec::check`]; also a share of the bandwidth-delay product that is less than one
    /// packet, and thresholds of RED that come out in no order.
    pub fn check_on(&self, context: &QueueContext) -> Result<(), QueueSpecError> {
        self.check()?;
        let (rate, rtt) = (context.rate, context.rtt);
        if self.limit().is_below_one_packet(rate, rtt) {
            return Err(QueueSpecError::ShareBelowOnePacket {
                text: self.to_string(),
                rate,
                rtt,
                bdp_bytes: rate.bytes_in(rtt),
            });
        }
        match self {
            QueueSpec::Red(red) => red.thresholds(context).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// The queue itself, empty.
    ///
    /// # Errors
    /// As [`QueueSpec::check_on`].
    pub fn build<P: Packet>(&self, context: &QueueContext) -> Result<AnyQueue<P>, QueueSpecError> {
        self.check_on(context)?;
        let limit = self.limit().resolve(context.rate, context.rtt);
        Ok(AnyQueue(match self {
            QueueSpec::DropTail { .. } => Kind::DropTail(DropTail::new(limit, None)),
            QueueSpec::Priority { dscp, .. } => Kind::DropTail(DropTail::new(limit, Some(*dscp))),
            QueueSpec::Red(red) => Kind::Red(Box::new(Red::new(red, context)?)),
            QueueSpec::Codel(codel) => Kind::Codel(Box::new(Codel::new(codel, context))),
            QueueSpec::FqCodel(fq_codel) => {
                Kind::FqCodel(Box::new(FqCodel::new(fq_codel, context)))
            }
        }))
    }
}

impl FromStr for QueueSpec {
    type Err = QueueSpecError;

    fn from_str(text: &str) -> Result<QueueSpec, QueueSpecError> {
        let mut options = Options::of(text);
        let spec = match options.kind {
            "drop-tail" => QueueSpec::DropTail {
                limit: needed_limit(&options)?,
            },
            "priority" => QueueSpec::Priority {
                limit: needed_limit(&options)?,
                dscp: options.value("dscp")?.unwrap_or(DEFAULT_LOW_PRIORITY_DSCP),
            },
            "red" => QueueSpec::Red(RedSpec::parse(&mut options, false)?),
            "codel" => QueueSpec::Codel(CodelSpec::parse(&mut options)?),
            "fq-codel" => QueueSpec::FqCodel(FqCodelSpec::parse(&mut options)?),
            "priority-red" => QueueSpec::Red(RedSpec::parse(&mut options, true)?),
            _ => {
                let text = text.to_owned();
                return Err(QueueSpecError::UnknownKind { text });
            }
        };
        options.finish()?;
        spec.check().map(|()| spec)
    }
}

impl fmt::Display for QueueSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueSpec::DropTail { limit } => f.pad(&format!("drop-tail:{limit}")),
            QueueSpec::Priority { limit, dscp } if *dscp == DEFAULT_LOW_PRIORITY_DSCP => {
                f.pad(&format!("priority:{limit}"))
            }
            QueueSpec::Priority { limit, dscp } => f.pad(&format!("priority:{limit},dscp={dscp}")),
            QueueSpec::Red(red) => f.pad(&red.to_string()),
            QueueSpec::Codel(codel) => f.pad(&codel.to_string()),
            QueueSpec::FqCodel(fq_codel) => f.pad(&fq_codel.to_string()),
        }
    }
}

impl TryFrom<String> for QueueSpec {
    type Error = QueueSpecError;

    fn try_from(text: String) -> Result<QueueSpec, QueueSpecError> {
        text.parse()
    }
}

impl From<QueueSpec> for String {
    fn from(spec: QueueSpec) -> String {
        spec.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> QueueSpec {
        text.parse().unwrap()
    }

    fn error(text: &str) -> String {
        text.parse::<QueueSpec>().unwrap_err().to_string()
    }

    #[test]
    fn a_queue_is_written_as_it_is_read() {
        assert_eq!(spec("drop-tail:400"), QueueSpec::drop_tail(400));
        for text in [
            "drop-tail:400",
            "drop-tail:64KiB",
            "drop-tail:0.2bdp",
            "priority:50",
            "priority:75kB,dscp=8",
            "red:50,min=5,max=15",
            "red:1bdp,min=0.1bdp,max=0.3bdp,max_p=10%,w_q=1%,gentle,ecn,mean_packet_bytes=1000",
            "priority-red:50,min=5kB,max=15kB",
            "priority-red:50,min=5,max=15,dscp=8",
            "codel:1000",
            "codel:1bdp,target=20ms,interval=400ms,ecn",
            "fq-codel:10240",
            "fq-codel:64KiB,flows=16,quantum=300,target=20ms,interval=400ms,no-ecn",
        ] {
            assert_eq!(spec(text).to_string(), text);
            let json = serde_json::to_string(&spec(text)).unwrap();
            assert_eq!(json, format!("{text:?}"));
            assert_eq!(
                serde_json::from_str::<QueueSpec>(&json).unwrap(),
                spec(text)
            );
        }
        assert_eq!(spec("priority:50, dscp=1"), spec("priority:50p"));
        assert_eq!(spec("red:50"), spec("red:50,max=15,min=5,max_p=0.02"));
        assert_eq!(spec("codel"), QueueSpec::Codel(CodelSpec::default()));
        assert_eq!(spec("codel:ecn").to_string(), "codel:1000,ecn");
        assert_eq!(spec("fq-codel"), QueueSpec::FqCodel(FqCodelSpec::default()));
        let remarked = spec("priority:50").with_low_priority_dscp(8);
        assert_eq!(remarked.to_string(), "priority:50,dscp=8");
    }

    #[test]
    fn a_queue_that_cannot_be_is_refused_with_the_next_step() {
        assert!(error("drop-tail:0").contains("give at least 1"));
        assert!(error("drop-tail:0bdp").contains("give at least 1"));
        assert!(error("drop-tail:100B").contains("give at least 1500B"));
        assert!(error("drop-tail").contains("write it like \"drop-tail:400\""));
        assert!(error("priority").contains("write it like \"priority:400\""));
        assert!(error("drop-tail:-1").contains("write it like \"50\""));
        assert!(error("drop-tail:5,5").contains("no option \"5\": there is none"));
        assert!(error("priority:5,dcsp=5").contains("no option \"dcsp\": known are dscp"));
        assert!(error("priority:5,dscp=5,dscp=6").contains("given twice"));
        assert!(error("priority:5,dscp=64").contains("give 0 to 63"));
        assert!(error("priority:5,dscp=x").contains("option \"dscp\""));
        assert!(error("red:99,min=80,max=20").contains("\"red\" needs min < max"));
        assert!(error("red:99,min=80,max=20").contains("(got 80, 20)"));
        assert!(error("red:99,min=80").contains("(got 80, 15)"));
        assert!(error("red:99,min=5,max=15kB").contains("both in bytes (got 5, 15kB)"));
        assert!(error("red:99,w_q=0").contains("the average never moves"));
        assert!(error("red:99,w_q=2").contains("option \"w_q\": \"2\" is no share"));
        assert!(error("red:99,gentle=yes").contains("takes no value"));
        assert!(error("red:99,dscp=1").contains("no option \"dscp\": known are min, max"));
        assert!(error("red:5,15").contains("no option \"15\""));
        assert!(error("codel,target=1s").contains("of no known kind"));
        assert!(error("codel:target=1s").contains("0 < target < interval (got 1s, 100ms)"));
        assert!(error("codel:no-ecn").contains("known are target, interval, ecn"));
        assert!(error("codel:0").contains("give at least 1"));
        assert!(error("fq-codel:flows=0").contains("give 1 to 65536"));
        assert!(error("fq-codel:quantum=10").contains("at least 256"));
        assert!(error("codle:5").contains("known are drop-tail:LIMIT"));
        assert!(QueueSpec::drop_tail(0).check().is_err());
    }

    #[test]
    fn a_queue_that_cannot_be_on_a_link_is_refused_with_the_reason() {
        let context = |rtt: &str| QueueContext {
            rate: "12mbit".parse().unwrap(),
            rtt: rtt.parse().unwrap(),
            seed: 0,
        };
        let error = |text: &str, rtt: &str| {
            let refused = spec(text).check_on(&context(rtt)).unwrap_err();
            refused.to_string()
        };
        let said = error("drop-tail:0.05bdp", "10ms");
        assert!(
            said.contains("12mbit and 10ms is 15000 bytes; give a larger share"),
            "{said}"
        );
        assert!(error("codel:1bdp", "0s").contains("less than a full packet"));
        assert!(error("red:50,min=0.1bdp,max=0.2bdp", "1ms").contains("min < max"));
        assert!(error("red:50,min=5,max=0.2bdp", "10ms").contains("(got 5, 2)"));
        assert!(spec("drop-tail:0.1bdp").check_on(&context("10ms")).is_ok());
    }

    #[test]
    fn one_bandwidth_delay_product_is_400_packets_on_the_satellite_path() {
        let (rate, rtt) = ("12mbit".parse().unwrap(), "400ms".parse().unwrap());
        let spec = QueueSpec::drop_tail_of_one_bdp(rate, rtt, 1500, 10);
        assert_eq!(spec, QueueSpec::drop_tail(400));
        let spec = QueueSpec::drop_tail_of_one_bdp(rate, Span::ZERO, 1500, 10);
        assert_eq!(spec, QueueSpec::drop_tail(10));
    }
}
