//! Delay that is not the same for every packet: jitter, and packets that others overtake.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::ImpairmentError;
use crate::text::serde_as_text;
use crate::{Share, Span};

/// Extra delay for each packet, anything from none to this much, all equally likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum JitterSpec {
    /// The order stays: a packet also waits for the one before it. `5ms`
    Ordered(Span),
    /// A packet with less of it overtakes one with more. `5ms,unordered`
    Unordered(Span),
}

const JITTER_EXAMPLES: &str = "\"5ms\" or \"5ms,unordered\"";

impl JitterSpec {
    /// The most that a packet is delayed.
    #[must_use]
    pub const fn most(self) -> Span {
        match self {
            JitterSpec::Ordered(most) | JitterSpec::Unordered(most) => most,
        }
    }
}

impl FromStr for JitterSpec {
    type Err = ImpairmentError;

    fn from_str(text: &str) -> Result<JitterSpec, ImpairmentError> {
        let error = |why: String| ImpairmentError {
            kind: "jitter",
            text: text.to_owned(),
            why,
            examples: JITTER_EXAMPLES,
        };
        let (most, order) = text.split_once(',').unwrap_or((text, ""));
        let most = most.parse().map_err(|why| error(format!("{why}")))?;
        match order.trim() {
            "" => Ok(JitterSpec::Ordered(most)),
            "unordered" => Ok(JitterSpec::Unordered(most)),
            other => Err(error(format!("no such option {other:?}"))),
        }
    }
}

impl fmt::Display for JitterSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JitterSpec::Ordered(most) => most.fmt(f),
            JitterSpec::Unordered(most) => write!(f, "{most},unordered"),
        }
    }
}

serde_as_text!(JitterSpec, ImpairmentError);

/// Some packets come later than others that were sent after them: `1%,by=10ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReorderSpec {
    /// How likely it is, for each packet.
    pub chance: Share,
    /// How much later it comes.
    pub by: Span,
}

const REORDER_EXAMPLES: &str = "\"1%,by=10ms\"";

impl FromStr for ReorderSpec {
    type Err = ImpairmentError;

    fn from_str(text: &str) -> Result<ReorderSpec, ImpairmentError> {
        let error = |why: String| ImpairmentError {
            kind: "reorder",
            text: text.to_owned(),
            why,
            examples: REORDER_EXAMPLES,
        };
        let (chance, by) = text
            .split_once(',')
            .and_then(|(chance, by)| Some((chance, by.trim().strip_prefix("by=")?)))
            .ok_or_else(|| error("by how much a packet comes later is missing".to_owned()))?;
        Ok(ReorderSpec {
            chance: chance.parse().map_err(|why| error(format!("{why}")))?,
            by: by.parse().map_err(|why| error(format!("{why}")))?,
        })
    }
}

impl fmt::Display for ReorderSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},by={}", self.chance, self.by)
    }
}

serde_as_text!(ReorderSpec, ImpairmentError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_and_reordering_are_written_as_they_are_read() {
        for text in ["5ms", "5ms,unordered"] {
            assert_eq!(text.parse::<JitterSpec>().unwrap().to_string(), text);
        }
        let text = "1%,by=10ms";
        assert_eq!(text.parse::<ReorderSpec>().unwrap().to_string(), text);
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_next_step() {
        let jitter = |text: &str| text.parse::<JitterSpec>().unwrap_err().to_string();
        assert!(jitter("5").contains("write it like \"5ms\" or"));
        assert!(jitter("5ms,shuffled").contains("no such option \"shuffled\""));
        let reorder = |text: &str| text.parse::<ReorderSpec>().unwrap_err().to_string();
        assert!(reorder("1%").contains("write it like \"1%,by=10ms\""));
        assert!(reorder("1%,by=10").contains("duration \"10\""));
        assert!(reorder("2,by=10ms").contains("but more than 1"));
    }
}
