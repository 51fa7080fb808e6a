//! What is asked of a connection in a measurement.

use std::fmt;
use std::str::FromStr;

use headstart_link::Span;
use serde::{Deserialize, Serialize};

use crate::ByteSize;

/// What the connection and the sender's memory of the path have behind them when the measured transfer starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseKind {
    /// A fresh connection; nothing is remembered of the path.
    NewCold,
    /// The same connection, after it has carried data and rested.
    ResumeWarm,
    /// A fresh connection to a path that an earlier connection has used.
    NewWarm,
}

impl CaseKind {
    /// Every kind that is carried out.
    pub const ALL: [Self; 3] = [Self::NewCold, Self::ResumeWarm, Self::NewWarm];

    /// The name as it stands in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewCold => "new-cold",
            Self::ResumeWarm => "resume-warm",
            Self::NewWarm => "new-warm",
        }
    }
}

impl fmt::Display for CaseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that is the name of no [`CaseKind`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no kind of case")]
pub struct UnknownCaseKind(String);

impl FromStr for CaseKind {
    type Err = UnknownCaseKind;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| UnknownCaseKind(name.to_owned()))
    }
}

/// One `[[case]]` of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// See [`CaseKind::NewCold`].
    NewCold {
        /// The size of the measured transfer.
        bytes: ByteSize,
    },
    /// See [`CaseKind::ResumeWarm`].
    ResumeWarm {
        /// The size of the measured transfer.
        bytes: ByteSize,
        /// What the same connection carries first.
        warm_bytes: ByteSize,
        /// How long it rests in between.
        idle: Span,
    },
    /// See [`CaseKind::NewWarm`].
    NewWarm {
        /// The size of the measured transfer.
        bytes: ByteSize,
        /// What an earlier connection carries first.
        warm_bytes: ByteSize,
    },
}

impl Case {
    /// Which kind it is.
    pub const fn kind(&self) -> CaseKind {
        match self {
            Self::NewCold { .. } => CaseKind::NewCold,
            Self::ResumeWarm { .. } => CaseKind::ResumeWarm,
            Self::NewWarm { .. } => CaseKind::NewWarm,
        }
    }

    /// The size of the measured transfer.
    pub const fn bytes(&self) -> ByteSize {
        match self {
            Self::NewCold { bytes }
            | Self::ResumeWarm { bytes, .. }
            | Self::NewWarm { bytes, .. } => *bytes,
        }
    }

    /// What is carried before the measured transfer, if anything.
    pub const fn warm_bytes(&self) -> Option<ByteSize> {
        match self {
            Self::NewCold { .. } => None,
            Self::ResumeWarm { warm_bytes, .. } | Self::NewWarm { warm_bytes, .. } => {
                Some(*warm_bytes)
            }
        }
    }

    /// The rest before the measured transfer, if any.
    pub const fn idle(&self) -> Option<Span> {
        match self {
            Self::ResumeWarm { idle, .. } => Some(*idle),
            Self::NewCold { .. } | Self::NewWarm { .. } => None,
        }
    }
}
