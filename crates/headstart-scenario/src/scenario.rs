//! The scenario file: what is measured, over which path.

use std::fs;
use std::io;
use std::path::Path;

use headstart_link::{LinkConfig, Span};

use crate::{ByteSize, Case, CaseKind, Fault, ScenarioError, SimTables, parse};

/// A scenario that has been read and found in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The scenario's name.
    pub name: String,
    /// A line for people; may be empty.
    pub description: String,
    /// The seed of everything that is drawn by lot.
    pub seed: u64,
    /// The path's name, where the file gives it one; always there with several paths.
    pub path_name: Option<String>,
    /// The path between server and client; of several, the first: see [`Scenario::on_each_path`].
    pub path: PathSpec,
    /// Who talks to whom.
    pub transfer: Transfer,
    /// What is compared.
    pub compare: Compare,
    /// What is asked of the connections, in the order of the file; at least one, unless there is
    /// traffic for the simulator.
    pub cases: Vec<Case>,
    /// Cases that the path takes longer for than `limit_s` of `[compare]`, even at best.
    pub left_out: Vec<Case>,
    /// Parameters of start-ups, in the order of the file. The names and values are not checked yet:
    /// the registry of start-ups knows them, see [`Scenario::bad_parameter`].
    pub parameters: Vec<Parameter>,
    /// What is said for the simulator alone.
    pub sim: SimTables,
    pub(crate) other_paths: Vec<OnPath>,
    pub(crate) file: String,
    pub(crate) source: String,
}

/// A path, and what is asked of connections over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OnPath {
    pub(crate) name: Option<String>,
    pub(crate) path: PathSpec,
    pub(crate) cases: Vec<Case>,
    pub(crate) left_out: Vec<Case>,
}

/// The path between server and client: one bottleneck link each way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSpec {
    /// The link from server to client. Its seed is not set: see [`PathSpec::seeded`].
    pub forward: LinkConfig,
    /// The link from client to server.
    pub reverse: LinkConfig,
}

impl PathSpec {
    /// The links from server to client and back, each drawing by lot from `seed` apart from the
    /// other; the delay of a flow is drawn the same in both.
    pub fn seeded(&self, seed: u64) -> (LinkConfig, LinkConfig) {
        let (mut forward, mut reverse) = (self.forward.clone(), self.reverse.clone());
        (forward.seed, reverse.seed) = (seed, !seed);
        (forward.flow_seed, reverse.flow_seed) = (seed, seed);
        (forward, reverse)
    }

    /// The round trip time of an empty path, without the time to put a packet on the wire and
    /// without the delay of a flow.
    pub const fn rtt(&self) -> Span {
        self.forward.rtt
    }

    /// The physical limit of a case in ms: a handshake's round trip where there is one, a round trip,
    /// and the size over the rate. Headers and slow start are not in it.
    pub fn limit_ms(&self, case: &Case) -> f64 {
        let round_trips = if case.idle().is_some() { 1.0 } else { 2.0 };
        let bits = case.bytes().bytes() as f64 * 8.0;
        let rate = self.forward.rate.nominal().bits_per_s() as f64;
        round_trips * self.rtt().as_ms_f64() + bits * 1000.0 / rate
    }
}

/// Who talks to whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Sends the data.
    pub server: Server,
    /// Asks for it.
    pub client: Client,
}

/// A program that serves transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Server {
    /// nginx, over HTTP.
    #[default]
    Nginx,
}

impl Server {
    pub(crate) const NAMES: [(&'static str, Self); 1] = [("nginx", Self::Nginx)];

    /// The name as it stands in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
        }
    }
}

/// A program that asks for transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Client {
    /// curl, over HTTP.
    #[default]
    Curl,
}

impl Client {
    pub(crate) const NAMES: [(&'static str, Self); 1] = [("curl", Self::Curl)];

    /// The name as it stands in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Curl => "curl",
        }
    }
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    /// The start-ups, in the order of the file; at least one, none twice. The names are not checked
    /// yet: the registry of start-ups and the kernel know them, see [`Scenario::unknown_startup`].
    pub startups: Vec<Listed>,
    /// Whether the packets and windows of each transfer are kept, or the transfers alone.
    pub details: bool,
    /// How often each case is measured with each start-up; 1 to [`MOST_REPEATS`].
    pub repeat: u32,
}

/// How often a case can be repeated: every transfer is kept until the end, in 560 bytes (measured).
pub const MOST_REPEATS: u32 = 100_000;

impl Compare {
    /// What `--repeat` says, or the file where it says nothing.
    ///
    /// # Errors
    /// The option's range.
    pub fn repeat_or(&self, option: Option<u32>) -> Result<u32, String> {
        let repeat = option.unwrap_or(self.repeat);
        match repeat {
            1..=MOST_REPEATS => Ok(repeat),
            _ => Err(format!(
                "--repeat must be 1 to {MOST_REPEATS}, not {repeat}"
            )),
        }
    }
}

/// A contestant of the file and where it stands: `cubic`, or with parameters of its own
/// `su_standard{hystart=0}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What it is called in results: the text as it was given.
    pub name: String,
    /// The start-up's name.
    pub startup: String,
    /// The parameters between the braces, not checked yet, as `STARTUP.PARAMETER=VALUE`.
    pub settings: Vec<String>,
    /// Its line, from 1.
    pub line: usize,
}

impl Listed {
    /// Reads `su_standard`, or `su_standard{iw_pkts=10;hystart=0}`. `None` where a brace or a name is missing.
    pub fn parse(text: &str, line: usize) -> Option<Self> {
        let text = text.trim();
        let (startup, settings) = match text.split_once('{') {
            None => (text, Vec::new()),
            Some((startup, rest)) => {
                let inside = rest.strip_suffix('}')?;
                let settings = inside
                    .split(';')
                    .map(|setting| format!("{startup}.{}", setting.trim()));
                (startup, settings.collect())
            }
        };
        (!startup.is_empty()).then(|| Self {
            name: text.to_owned(),
            startup: startup.to_owned(),
            settings,
            line,
        })
    }
}

/// One line of a `[startup.NAME]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The start-up's name.
    pub startup: String,
    /// The parameter's name, as it was given.
    pub name: String,
    /// The value, in the unit that the start-up declares.
    pub value: u32,
    /// Its line, from 1.
    pub line: usize,
}

impl Scenario {
    /// Reads the scenario file at `path`.
    ///
    /// # Errors
    /// A [`ScenarioError`] with file and line: there is no such file, it is not UTF-8 or not TOML, a
    /// key is unknown, missing, of the wrong type, or its value makes no sense.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let file = path.display().to_string();
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(cause) => {
                let fault = match cause.kind() {
                    io::ErrorKind::NotFound => Fault::NotFound,
                    _ => Fault::Unreadable(cause),
                };
                return Err(ScenarioError {
                    file,
                    line: None,
                    fault: Box::new(fault),
                });
            }
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            let readable = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + readable.iter().filter(|byte| **byte == b'\n').count();
            ScenarioError {
                file: file.clone(),
                line: Some(line),
                fault: Box::new(Fault::NotUtf8),
            }
        })?;
        Self::parse(&file, &text)
    }

    /// Reads a scenario from `text`; errors call it `file`.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        parse::scenario(file, text)
    }

    /// The file as the user named it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The text of the file, byte for byte.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// A scenario of one path for each of its paths, in the order of the file.
    pub fn on_each_path(&self) -> Vec<Scenario> {
        let alone = Scenario {
            other_paths: Vec::new(),
            ..self.clone()
        };
        let others = self.other_paths.iter().map(|other| Scenario {
            path_name: other.name.clone(),
            path: other.path.clone(),
            cases: other.cases.clone(),
            left_out: other.left_out.clone(),
            ..alone.clone()
        });
        let mut each: Vec<Scenario> = others.collect();
        each.insert(0, alone);
        each
    }

    /// Whether there is more than one path in it.
    pub fn has_several_paths(&self) -> bool {
        !self.other_paths.is_empty()
    }

    /// The parameters given for the start-up `name`.
    pub fn parameters_of(&self, name: &str) -> impl Iterator<Item = &Parameter> {
        self.parameters
            .iter()
            .filter(move |parameter| parameter.startup == name)
    }

    /// The error for a start-up of this file that is none of `known`.
    pub fn unknown_startup(&self, startup: &Listed, known: &[&str]) -> ScenarioError {
        let fault = Fault::UnknownName {
            object: "start-up",
            name: startup.name.clone(),
            place: "in [compare]".to_owned(),
            known: known.iter().map(|name| (*name).to_owned()).collect(),
        };
        self.error(startup.line, fault)
    }

    /// The error for a parameter of this file that is none of `known`, the names of all parameters
    /// of its start-up.
    pub fn unknown_parameter(&self, parameter: &Parameter, known: &[&str]) -> ScenarioError {
        let fault = Fault::UnknownKey {
            key: parameter.name.clone(),
            place: format!("in [startup.{}]", parameter.startup),
            known: known.iter().map(|name| (*name).to_owned()).collect(),
        };
        self.error(parameter.line, fault)
    }

    /// The error for a parameter of this file that its start-up refuses. `cause` says why, and what
    /// to write instead.
    pub fn bad_parameter(&self, parameter: &Parameter, cause: &str) -> ScenarioError {
        let fault = Fault::BadParameter {
            startup: parameter.startup.clone(),
            parameter: parameter.name.clone(),
            cause: cause.to_owned(),
        };
        self.error(parameter.line, fault)
    }

    /// The case of this kind and size, if the scenario has it.
    pub fn case(&self, kind: CaseKind, bytes: ByteSize) -> Option<&Case> {
        self.cases
            .iter()
            .find(|case| case.kind() == kind && case.bytes() == bytes)
    }

    fn error(&self, line: usize, fault: Fault) -> ScenarioError {
        ScenarioError {
            file: self.file.clone(),
            line: Some(line),
            fault: Box::new(fault),
        }
    }
}
