//! One scenario, several start-ups, side by side on the live kernel: a real server and a real client over an
//! emulated path.
//!
//! What is reported of a transfer comes from three places that know nothing of each other: its time from the
//! client, its packets from the emulated wire, its window from the kernel. The start-up's own words are only used
//! to say why it ended.

mod client;
mod error;
mod plan;
mod run;
mod server;
mod visit;
mod wire;

pub use error::CompareError;
pub use plan::{Plan, Runner};
pub use run::{Control, Outcome, run};
