//! What goes into a measurement and what comes out of it.
//!
//! - The scenario file: [`Scenario`], read from TOML. An error names the file, the line, the object, the cause and the
//!   next step; an unknown key is an error, so that nothing is accepted that is not carried out.
//! - The results: [`ResultsDocument`], the one JSON document of every verb that measures, and
//!   `write_results`, which puts it into a folder beside the scenario and the Parquet files of single transfers.
//!
//! `docs/results-schema.md` describes the document and the columns.

#![forbid(unsafe_code)]

mod case;
mod cells;
#[cfg(feature = "results")]
mod columns;
mod document;
mod error;
mod nearest;
mod parse;
pub mod reader;
mod record_batch;
mod records;
mod scenario;
mod sim_records;
mod size;
#[cfg(feature = "results")]
mod stream;
mod summary;
mod traffic;
mod transport;
#[cfg(feature = "results")]
mod write;

pub use case::{Case, CaseKind};
pub use cells::{NATIVE_STARTUP, cells_of};
pub use document::{Cell, Exit, Machine, ResultsDocument, Run, SCHEMA};
pub use error::{Fault, ResultsError, ScenarioError};
pub use nearest::nearest;
pub use records::{Direction, Ground, PacketRow, TransferRecord, WindowRow};
pub use scenario::{
    Client, Compare, Listed, MOST_REPEATS, Parameter, PathSpec, Scenario, Server, Transfer,
};
pub use sim_records::{LinkCell, SimQueueRow, SimTransferRow, SimWindowRow, TrafficCell};
pub use size::{ByteSize, Count};
#[cfg(feature = "results")]
pub use stream::SimFiles;
pub use summary::{Extremes, Summary};
pub use traffic::{
    Arrivals, ENDLESS, KnownPath, LateBody, PathEnding, SimTables, Sizes, Traffic, TrafficGroup,
    Users,
};
pub use transport::{
    AckSpec, AvoidanceSpec, GrowthSpec, HandshakeSpec, IdleSpec, LINUX_IW_PKTS, PacingSpec,
    ReceiverSpec, RecoverySpec, RtoSpec, SackSpec, Transport, WindowSpec,
};
#[cfg(feature = "results")]
pub use write::write_results;
