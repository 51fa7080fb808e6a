//! One connection under a start-up: events in, verdicts out.

use crate::abi::{Event, Path, Proof, StateWords, Verdict, su_native_proof, su_native_step};
use crate::registry::Params;

/// A connection under a start-up. Holds the start-up's state and nothing else.
#[derive(Clone, Debug)]
pub struct Connection {
    params: Params,
    state: StateWords,
}

impl Connection {
    /// A connection that has yet to open: its first event is `EventKind::Open`.
    pub fn new(params: Params) -> Connection {
        Connection {
            params,
            state: StateWords::default(),
        }
    }

    /// Gives an event to the start-up. `path` is what is remembered of the path; only `Open` and `Idle` read it.
    pub fn step(&mut self, path: Option<&Path>, event: &Event) -> Verdict {
        let mut verdict = Verdict::default();
        // SAFETY: all pointers are to live values of the C layout (sizes asserted on both sides); `path` may be
        // null by contract; the C side keeps none of them.
        unsafe {
            su_native_step(
                self.params.startup().number(),
                &raw mut self.state,
                self.params.words(),
                path.map_or(std::ptr::null(), std::ptr::from_ref),
                event,
                &raw mut verdict,
            );
        }
        verdict
    }

    /// What the connection, as `event` shows it, proves of its path.
    pub fn proof(&self, event: &Event) -> Proof {
        // SAFETY: as in `step`.
        unsafe { su_native_proof(self.params.startup().number(), &raw const self.state, event) }
    }

    /// The state as the C side holds it, for comparison with another build.
    pub fn state(&self) -> &StateWords {
        &self.state
    }
}
