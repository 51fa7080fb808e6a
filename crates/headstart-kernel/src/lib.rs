//! The live kernel: loads `bpf/`, keeps the path memory, hands out what the kernel recorded.
//!
//! Nothing is pinned. Everything that is loaded is held by file descriptors of this process, so that the kernel
//! is as before when the process ends, however it ends. Connections that live on go on with the programs that
//! they have until they close. Kernels without struct_ops links (before 6.4) keep the names, and kernels without
//! tcx links (before 6.6) the markers, of a process that is killed: [`leftovers`] finds them.

mod assign;
mod batch;
mod callbacks;
mod cgroup;
mod clsact;
mod contract;
mod error;
mod kernel;
mod leftovers;
mod mark;
mod memory;
mod objects;
mod paths;
mod policy;
mod policy_layout;
mod policy_spec;
mod probe;
mod records;
mod replay;
mod transfer;
mod watch;
mod windows;

pub use assign::{SHARE_ONE, assign, assign_connection, assign_slice, salt_of};
pub use cgroup::{Cgroup, cgroup_root};
pub use contract::{Counter, RecordLevel};
pub use error::KernelError;
pub use kernel::{Kernel, Options};
pub use leftovers::{Leftover, leftovers};
pub use mark::{Attachment, Marker};
pub use memory::{LiveMemory, MemoryOptions, PrefixLengths};
pub use paths::{Lesson, PathEntry, Prefix, PrefixError};
pub use policy::Policy;
pub use policy_spec::{
    Arm, CgroupId, FlowCounts, FlowKey, MAX_POLICY_RULES, MAX_RULE_ARMS, PolicySpec, Rule,
    RuleStats,
};
pub use probe::{Check, Probe, Verdict as CheckVerdict};
pub use records::Record;
pub use replay::Replay;
pub use transfer::{ControlName, Transfer};
pub use watch::{Sample, Watch, WatchOptions};
pub use windows::{WindowRule, WindowRuleError};

/// The socket option, at level `IPPROTO_TCP`, by which a program says how large its next transfer is.
pub const HINT_OPTION: i32 = 0x4853;
