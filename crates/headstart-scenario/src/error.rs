//! What can be wrong with a scenario or with writing results, in words that a user can act on.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::nearest;

/// A scenario file that is refused: `FILE:LINE: OBJECT CAUSE; NEXT STEP`.
#[derive(Debug, thiserror::Error)]
#[error("{file}{}: {fault}", OfLine(*line))]
pub struct ScenarioError {
    /// The file as the user named it.
    pub file: String,
    /// The line, from 1; none where the file could not be read at all.
    pub line: Option<usize>,
    /// What is wrong there.
    pub fault: Box<Fault>,
}

struct OfLine(Option<usize>);

impl fmt::Display for OfLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// What is wrong with a scenario file. `place` says where a key stands: `in [path]`, `at the top
/// level`.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// There is no such file.
    #[error("no such file; give the path of a scenario, such as scenarios/satellite.toml")]
    NotFound,
    /// The file is there but cannot be read.
    #[error("cannot be read: {0}; check that it is a file and that you may read it")]
    Unreadable(io::Error),
    /// The text is not UTF-8.
    #[error("the line is not UTF-8 text; save the file as UTF-8")]
    NotUtf8,
    /// The text is not TOML.
    #[error("not TOML: {0}; correct the line (strings stand in quotes, one key a line)")]
    Syntax(String),
    /// A key that is not known there.
    #[error("unknown key \"{key}\" {place}; {}", Hint { name: key, known })]
    UnknownKey {
        /// The key as it was given.
        key: String,
        /// Where it stands.
        place: String,
        /// The keys that are known there.
        known: Vec<String>,
    },
    /// A key or table that has to be there.
    #[error("\"{key}\" is missing {place}; add a line such as {example}")]
    MissingKey {
        /// The key that is missing.
        key: &'static str,
        /// Where it has to stand.
        place: String,
        /// The line that is missing, as it could be.
        example: String,
    },
    /// A value of another type.
    #[error("\"{key}\" {place} is {found}, but has to be {wanted}; write it like {example}")]
    WrongType {
        /// The key.
        key: String,
        /// Where it stands.
        place: String,
        /// The type of the value, with its article.
        found: String,
        /// The type it has to have, with its article.
        wanted: &'static str,
        /// A line as it could be.
        example: String,
    },
    /// A value that is no rate, duration, size or queue. `cause` says what to write instead.
    #[error("\"{key}\" {place}: {cause}")]
    BadValue {
        /// The key.
        key: &'static str,
        /// Where it stands.
        place: String,
        /// What is wrong with the value, and what to write instead.
        cause: String,
    },
    /// A number outside of its bounds.
    #[error("\"{key}\" {place} is {value}; give a whole number from {min} to {max}")]
    OutOfRange {
        /// The key.
        key: String,
        /// Where it stands.
        place: String,
        /// The value as it was given.
        value: String,
        /// The least value allowed.
        min: u64,
        /// The greatest value allowed.
        max: u64,
    },
    /// An amount of nothing.
    #[error("\"{key}\" {place} is 0; give at least {least}")]
    Zero {
        /// The key.
        key: &'static str,
        /// Where it stands.
        place: String,
        /// The least that makes sense, as it is written.
        least: &'static str,
    },
    /// An empty text or list.
    #[error("\"{key}\" {place} is empty; write it like {example}")]
    Empty {
        /// The key.
        key: &'static str,
        /// Where it stands.
        place: String,
        /// A line as it could be.
        example: String,
    },
    /// A value that is none of the known names.
    #[error("{object} \"{name}\" {place} is not known; {}", Hint { name, known })]
    UnknownName {
        /// What the name is for: `server`, `start-up`.
        object: &'static str,
        /// The name as it was given.
        name: String,
        /// Where it stands.
        place: String,
        /// The names that are known.
        known: Vec<String>,
    },
    /// Both ways to give the path's delay.
    #[error(
        "\"rtt\" and \"{other}\" are both given in [path]; give either rtt, or delay and reverse_delay"
    )]
    RttAndDelay {
        /// The one-way delay that stands beside `rtt`.
        other: &'static str,
    },
    /// Both ways to give a link's rate.
    #[error("\"{rate}\" and \"{trace}\" are both given in [path]; give one of them")]
    RateAndTrace {
        /// `rate` or `reverse_rate`.
        rate: &'static str,
        /// `rate_trace` or `reverse_rate_trace`.
        trace: &'static str,
    },
    /// A case of a kind that the design knows and no verb carries out.
    #[error(
        "cases of kind \"stale\" are not carried out yet; use new-cold, resume-warm or new-warm"
    )]
    StaleCase,
    /// A key that a case of this kind has no use for.
    #[error("\"{key}\" has no meaning in a {kind} case; remove it, or use kind = {instead}")]
    NotOfKind {
        /// The key.
        key: &'static str,
        /// The case's kind.
        kind: crate::CaseKind,
        /// The kinds that know the key.
        instead: &'static str,
    },
    /// Two cases that the results could not tell apart.
    #[error(
        "{kind} with {bytes} is a case already (line {first_line}), and the results tell cases \
         apart by kind and bytes; remove one, or change its bytes"
    )]
    DuplicateCase {
        /// The case's kind.
        kind: crate::CaseKind,
        /// The size of its transfer.
        bytes: crate::ByteSize,
        /// Where the first of the two stands.
        first_line: usize,
    },
    /// Two links or two kinds of traffic with one name.
    #[error("{object} \"{name}\" is there already; give each [[{object}]] a name of its own")]
    DuplicateName {
        /// `link` or `traffic`.
        object: &'static str,
        /// The name.
        name: String,
    },
    /// A start-up that is listed twice.
    #[error("start-up \"{name}\" is listed twice in [compare]; remove one")]
    DuplicateStartup {
        /// The start-up's name.
        name: String,
    },
    /// Two paths that the results could not tell apart.
    #[error("a path named \"{name}\" stands above already; give one of the two another name")]
    DuplicatePath {
        /// The path's name.
        name: String,
    },
    /// Traffic is for one path.
    #[error(
        "[[traffic]] is simulated on one path; keep one of the [[path]]s, or remove the traffic"
    )]
    TrafficOnPaths,
    /// A case with one size and with several.
    #[error("\"bytes\" and \"sizes\" say the same; keep one of them")]
    BytesAndSizes,
    /// A start-up with parameters that do not end.
    #[error(
        "\"{name}\" is no start-up with parameters; write it like \"su_standard{{hystart=0}}\", several \
         parameters with a \";\" between them"
    )]
    Braces {
        /// What was given.
        name: String,
    },
    /// Parameters of a start-up that does not run.
    #[error(
        "[startup.{name}] has no effect, for \"{name}\" is not in startups of [compare]; add it \
         there, or remove the table"
    )]
    UnusedStartup {
        /// The start-up's name.
        name: String,
    },
    /// A parameter that the start-up refuses. `cause` says what to write instead.
    #[error("\"{parameter}\" in [startup.{startup}]: {cause}")]
    BadParameter {
        /// The start-up's name.
        startup: String,
        /// The parameter's name.
        parameter: String,
        /// What is wrong with it, and what to write instead.
        cause: String,
    },
}

/// The nearest known name, or all of them.
struct Hint<'a> {
    name: &'a str,
    known: &'a [String],
}

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        match nearest(self.name, &known) {
            Some(near) => write!(f, "did you mean \"{near}\"?"),
            None if known.len() == 1 => write!(f, "the only one known is {}", known[0]),
            None => write!(f, "known are {}", known.join(", ")),
        }
    }
}

/// A results folder that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The folder could not be created.
    #[error("{}: the results folder cannot be created: {cause}; choose another --out", dir.display())]
    Folder {
        /// The folder.
        dir: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A file could not be written.
    #[error("{}: cannot be written: {cause}; check free space and permissions", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}
