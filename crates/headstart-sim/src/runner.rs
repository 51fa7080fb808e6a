//! Who starts connections.

use headstart_core::Params;

/// Who decides how the window starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The stack itself.
    Native,
    /// A start-up of `core/`, with its parameters.
    Startup(Params),
}
