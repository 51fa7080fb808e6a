//! What the start-ups promise that grow the window themselves (`core/growth.h`), and what each of them promises
//! beyond that.

use headstart_core::{Event, EventKind, LossKind, Params, Phase, Verdict, why_name};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::Step;
use super::oracle::Moves;
use EventKind::{Ack, Idle, Loss, Open, Send};
use Phase::{Native, SlowStart};

const BOTH: &[Phase] = &[Native, SlowStart];
pub(crate) const MOVES: Moves = &[
    (Open, &[Native], BOTH),
    (Idle, BOTH, BOTH),
    (Send, BOTH, BOTH),
    (Ack, BOTH, BOTH),
    (Loss, BOTH, &[Native]),
];

/// Follows one connection, beside the general rules.
#[derive(Default)]
pub(crate) struct Growth {
    delivered_pkts: u32,
}

impl Growth {
    pub(crate) fn judge(&mut self, params: &Params, step: &Step) -> Result<(), TestCaseError> {
        let Step { event, verdict } = step;
        let newly_pkts = event.delivered_pkts - self.delivered_pkts;
        self.delivered_pkts = event.delivered_pkts;
        owned_where_slow_start_is(event, verdict)?;
        if event.kind == Ack as u8 && verdict.cwnd_pkts > 0 {
            grown(event, verdict, newly_pkts)?;
        }
        if verdict.ssthresh_pkts > 0 {
            left(params, event, verdict)?;
        }
        Ok(())
    }
}

/// In our hands below ssthresh and in the stack's above it, whatever happened before.
fn owned_where_slow_start_is(event: &Event, verdict: &Verdict) -> Result<(), TestCaseError> {
    let owned = verdict.owns_slow_start == 1;
    prop_assert_eq!(owned, verdict.phase() == Some(SlowStart));
    if owned {
        let alone = Verdict {
            phase: SlowStart as u8,
            owns_slow_start: 1,
            cwnd_pkts: verdict.cwnd_pkts,
            ssthresh_pkts: verdict.ssthresh_pkts,
            why: verdict.why,
            ..Verdict::default()
        };
        prop_assert_eq!(
            *verdict,
            alone,
            "the window and its threshold, nothing else"
        );
    } else if event.kind != Loss as u8 && verdict.ssthresh_pkts == 0 {
        prop_assert!(
            event.cwnd_pkts >= event.ssthresh_pkts,
            "slow start is nobody's"
        );
    }
    Ok(())
}

/// RFC 5681 3.1: no more than was delivered, and not beyond ssthresh.
fn grown(event: &Event, verdict: &Verdict, newly_pkts: u32) -> Result<(), TestCaseError> {
    prop_assert_eq!(
        verdict.owns_slow_start,
        1,
        "the window of congestion avoidance was set"
    );
    prop_assert!(
        event.cwnd_limited == 1,
        "grown, though it was not what limits sending"
    );
    prop_assert!(
        verdict.cwnd_pkts > event.cwnd_pkts,
        "a window that does not grow"
    );
    prop_assert!(verdict.cwnd_pkts - event.cwnd_pkts <= newly_pkts);
    prop_assert!(verdict.cwnd_pkts <= event.ssthresh_pkts);
    Ok(())
}

/// Slow start is left at the window that there is, by a reason that the start-up has.
fn left(params: &Params, event: &Event, verdict: &Verdict) -> Result<(), TestCaseError> {
    let least_pkts = event.cwnd_pkts.max(2);
    let switch = |name| params.get(name) == Some(1);
    match why_name(verdict.why) {
        "window-cap" => {
            prop_assert_eq!(verdict.ssthresh_pkts, least_pkts);
            prop_assert!(Some(event.cwnd_pkts) >= params.get("max_window_pkts"));
        }
        found @ ("ack-train" | "delay-increase") => {
            prop_assert_eq!(params.startup().name(), "su_hystart");
            prop_assert!(switch(&found.replace('-', "_")), "{found} is switched off");
            prop_assert_eq!(verdict.ssthresh_pkts, least_pkts);
            prop_assert!(Some(event.cwnd_pkts) >= params.get("low_ssthresh_pkts"));
        }
        other => prop_assert!(false, "ssthresh set by {other}"),
    }
    prop_assert!(event.kind == Ack as u8 && event.loss == LossKind::None as u8);
    Ok(())
}
