//! The native build of the start-ups in `core/`, behind a safe interface.
//!
//! The algorithms are C, written once: the same files run inside the live kernel as eBPF. Here they are
//! compiled for this machine, for the simulator, for tests and for the tables that users see. Nothing in this
//! crate decides anything.

mod abi;
mod memory;
mod registry;
mod setting;
mod startup;

pub use abi::{
    BUT_LAST, Ended, Ending, Event, EventKind, Evidence, INFINITE_SSTHRESH, LossKind, MemoryWords,
    OPEN_END, ParamWords, Path, Phase, Proof, Recovery, StateWords, Verdict, WHY_ORDINARY_LOSS,
    WHY_SSTHRESH, why_help, why_name,
};
pub use memory::{Learnt, MemoryParams};
pub use registry::{Param, ParamError, Params, Startup, UnknownStartup};
pub use setting::{Assignment, Setting, SettingError};
pub use startup::Connection;
