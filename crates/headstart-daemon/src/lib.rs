//! The daemon `headstart run`: puts a policy into force, records transfers, watches over the rules.
//!
//! One thread does the work ([`run`]); others only bring it requests. Nothing that it holds in the kernel outlives it.

#![forbid(unsafe_code)]

mod clock;
mod columns;
mod config;
mod control;
mod daemon;
mod explain;
mod guard;
mod kept;
mod memory;
mod metrics;
mod privileges;
mod protocol;
mod row;
mod rules;
mod stats;
mod store;

pub use clock::{Wall, is_full};
pub use columns::{batch_of, schema};
pub use config::{
    Action, ArmConfig, Config, DEFAULT_FILE, DEFAULT_RUN_DIR, Experiment, GuardConfig, Marking,
    MemoryConfig, Records, RuleAction, RuleConfig,
};
pub use control::{ControlError, ask};
pub use daemon::{DaemonError, check, run};
pub use guard::{Guard, Outcome};
pub use protocol::{
    Explanation, MAX_REQUEST_BYTES, MemoryStatus, Request, SiteReport, Status, TopRow,
    parse_request,
};
pub use row::Row;
pub use stats::Stats;
pub use store::{Store, StoreCounts, StoreError};
