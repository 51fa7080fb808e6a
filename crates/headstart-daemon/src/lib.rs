//! The daemon `headstart run`: puts a policy into force, records transfers, watches over the rules.
//!
//! One thread does the work ([`run`]); others only bring it requests. Nothing that it holds in the kernel outlives it.

#![forbid(unsafe_code)]

mod bucket;
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
mod slices;
mod stats;
mod store;
mod uploads;
mod watches;

pub use clock::{Wall, is_full};
pub use columns::{batch_of, schema};
pub use config::{
    Action, ArmConfig, BucketConfig, Config, DEFAULT_FILE, DEFAULT_RUN_DIR, Experiment,
    GuardConfig, Margins, Marking, MemoryConfig, Records, RuleAction, RuleConfig, Unit,
};
pub use control::{ControlError, ask};
pub use daemon::{DaemonError, check, run};
pub use guard::{Guard, Outcome};
pub use protocol::{
    BucketStatus, Explanation, MAX_REQUEST_BYTES, MemoryStatus, Request, SiteReport, Status,
    TopRow, parse_request,
};
pub use row::Row;
pub use slices::Slices;
pub use stats::Stats;
pub use store::{Store, StoreCounts, StoreError};
pub use uploads::Uploads;
pub use watches::Watches;
