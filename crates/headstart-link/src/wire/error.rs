//! What is said of an impairment that cannot be read.

/// A text that is no impairment of the kind, with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {text:?}: {why}; write it like {examples}")]
pub struct ImpairmentError {
    /// `loss`, `jitter` or `reorder`.
    pub kind: &'static str,
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
    /// Texts that would do.
    pub examples: &'static str,
}
