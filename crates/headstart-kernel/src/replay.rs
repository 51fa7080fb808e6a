//! The BPF build of the core, one event at a time: for the proof that it does not drift from the native one.

use headstart_core::{Event, Params, Path, StateWords, Verdict};
use libbpf_rs::{Object, ProgramInput, ProgramMut};

use crate::contract::{self, RawReplay};
use crate::error::KernelError;
use crate::objects::BpfObject;

/// A connection under the BPF build of a start-up. The counterpart of [`headstart_core::Connection`].
pub struct Replay {
    object: Object,
    params: Params,
    state: StateWords,
}

impl Replay {
    /// Loads the program; nothing is attached to anything.
    ///
    /// # Errors
    /// When the kernel refuses the program.
    pub fn new(params: Params) -> Result<Replay, KernelError> {
        let open = BpfObject::Replay.open()?;
        let object = BpfObject::Replay.load(open)?;
        Ok(Replay {
            object,
            params,
            state: StateWords::default(),
        })
    }

    /// Begins a new connection.
    pub fn restart(&mut self, params: Params) {
        self.params = params;
        self.state = StateWords::default();
    }

    /// Gives an event to the start-up, as [`headstart_core::Connection::step`] does.
    ///
    /// # Errors
    /// When the program cannot be run.
    pub fn step(&mut self, path: Option<&Path>, event: &Event) -> Result<Verdict, KernelError> {
        let raw = RawReplay {
            params: *self.params.words(),
            state: self.state,
            path: path.copied().unwrap_or_default(),
            event: *event,
            verdict: Verdict::default(),
            alg: self.params.startup().number(),
            path_known: u32::from(path.is_some()),
        };
        let mut context = contract::bytes_of(&raw).to_vec();
        let program = self.program()?;
        let output = program
            .test_run(ProgramInput {
                context_in: Some(&mut context),
                ..Default::default()
            })
            .map_err(|error| KernelError::operation("running bpf/replay.bpf.c", error))?;
        if output.return_value != 0 {
            return Err(KernelError::operation(
                "running bpf/replay.bpf.c",
                format!(
                    "it does not know the start-up {}",
                    self.params.startup().name()
                ),
            ));
        }
        let after: RawReplay = contract::from_bytes(&context)
            .ok_or_else(|| KernelError::no_part(BpfObject::Replay, "context"))?;
        self.state = after.state;
        Ok(after.verdict)
    }

    /// The state as the program left it.
    pub fn state(&self) -> &StateWords {
        &self.state
    }

    fn program(&self) -> Result<ProgramMut<'_>, KernelError> {
        let found = self
            .object
            .progs_mut()
            .find(|program| *program.name() == *"hs_replay");
        found.ok_or_else(|| KernelError::no_part(BpfObject::Replay, "hs_replay"))
    }
}
