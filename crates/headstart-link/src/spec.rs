//! Which queue a link has, as people write it: `drop-tail:400`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::queue::{DropTail, Packet, Queue};
use crate::{Rate, Span};

/// The kind and size of a link's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum QueueSpec {
    /// First in, first out; a packet that finds the queue full is dropped.
    DropTail {
        /// How many packets may wait, besides the one in transmission; at least 1.
        limit_pkts: u32,
    },
}

/// The kinds of queue there are, as `--queue` names them.
const KNOWN: &str = "drop-tail:PACKETS";

/// A queue that cannot be, with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueSpecError {
    /// No such kind of queue.
    #[error("queue {text:?} is of no known kind: known are {KNOWN}")]
    UnknownKind {
        /// What was given.
        text: String,
    },
    /// The size is missing or not a whole number.
    #[error("queue {text:?} needs a size in whole packets: write it like \"drop-tail:400\"")]
    BadLimit {
        /// What was given.
        text: String,
    },
    /// A queue of 0 packets would lose every packet that comes while another is in transmission.
    #[error("queue {text:?} has room for 0 packets: give at least 1, like \"drop-tail:1\"")]
    ZeroLimit {
        /// What was given.
        text: String,
    },
}

impl QueueSpec {
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
        QueueSpec::DropTail { limit_pkts }
    }

    /// Refuses what was built by hand and cannot be. What was parsed is always valid.
    ///
    /// # Errors
    /// [`QueueSpecError::ZeroLimit`] when there is room for no packet.
    pub fn check(&self) -> Result<(), QueueSpecError> {
        match self {
            QueueSpec::DropTail { limit_pkts: 0 } => Err(QueueSpecError::ZeroLimit {
                text: self.to_string(),
            }),
            QueueSpec::DropTail { .. } => Ok(()),
        }
    }

    /// The queue itself, empty.
    pub(crate) fn build<P: Packet>(self) -> Box<dyn Queue<P> + Send> {
        match self {
            QueueSpec::DropTail { limit_pkts } => Box::new(DropTail::new(limit_pkts)),
        }
    }
}

impl FromStr for QueueSpec {
    type Err = QueueSpecError;

    fn from_str(text: &str) -> Result<QueueSpec, QueueSpecError> {
        let owned = || text.to_owned();
        let (kind, size) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        match kind {
            "drop-tail" => {
                let limit_pkts = size
                    .parse()
                    .map_err(|_| QueueSpecError::BadLimit { text: owned() })?;
                let spec = QueueSpec::DropTail { limit_pkts };
                spec.check().map(|()| spec)
            }
            _ => Err(QueueSpecError::UnknownKind { text: owned() }),
        }
    }
}

impl fmt::Display for QueueSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueSpec::DropTail { limit_pkts } => f.pad(&format!("drop-tail:{limit_pkts}")),
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

    fn error(text: &str) -> String {
        text.parse::<QueueSpec>().unwrap_err().to_string()
    }

    #[test]
    fn a_queue_is_written_as_it_is_read() {
        let spec: QueueSpec = "drop-tail:400".parse().unwrap();
        assert_eq!(spec, QueueSpec::DropTail { limit_pkts: 400 });
        assert_eq!(spec.to_string(), "drop-tail:400");
        assert_eq!(serde_json::to_string(&spec).unwrap(), "\"drop-tail:400\"");
        assert_eq!(
            serde_json::from_str::<QueueSpec>("\"drop-tail:400\"").unwrap(),
            spec
        );
    }

    #[test]
    fn a_queue_that_cannot_be_is_refused_with_the_next_step() {
        assert!(error("drop-tail:0").contains("give at least 1"));
        assert!(error("drop-tail").contains("write it like \"drop-tail:400\""));
        assert!(error("drop-tail:many").contains("whole packets"));
        assert!(error("drop-tail:-1").contains("whole packets"));
        assert!(error("codle:5").contains("known are drop-tail:PACKETS"));
        assert!(QueueSpec::DropTail { limit_pkts: 0 }.check().is_err());
    }

    #[test]
    fn one_bandwidth_delay_product_is_400_packets_on_the_satellite_path() {
        let (rate, rtt) = ("12mbit".parse().unwrap(), "400ms".parse().unwrap());
        let spec = QueueSpec::drop_tail_of_one_bdp(rate, rtt, 1500, 10);
        assert_eq!(spec, QueueSpec::DropTail { limit_pkts: 400 });
        let spec = QueueSpec::drop_tail_of_one_bdp(rate, Span::ZERO, 1500, 10);
        assert_eq!(spec, QueueSpec::DropTail { limit_pkts: 10 });
    }
}
