//! What the start-ups promise that grow the window themselves (`core/growth.h`), and what each of them promises
//! beyond that.

use headstart_core::{Event, EventKind, Params, Phase, Verdict, why_name};
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
    round: Round,
}

/// A window of packets since the window was so large, and how far it has grown meanwhile.
#[derive(Default)]
struct Round {
    cwnd_pkts: u32,
    acked_pkts: u32,
    grown_pkts: u32,
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
            threshold(params, event, verdict)?;
        }
        if params.startup().name() == "su_limited" {
            self.limited(params, event, verdict, newly_pkts)?;
        }
        Ok(())
    }

    /// RFC 3742, 2: "limiting the number of segments by which the congestion window is increased for one window
    /// of data" to `max_ssthresh` / 2.
    fn limited(
        &mut self,
        params: &Params,
        event: &Event,
        verdict: &Verdict,
        newly_pkts: u32,
    ) -> Result<(), TestCaseError> {
        let max_ssthresh_pkts = params.get("max_ssthresh_pkts").unwrap_or(0);
        let round = &mut self.round;
        let cut = event.cwnd_pkts < round.cwnd_pkts;
        let ended = cut || round.acked_pkts + newly_pkts > round.cwnd_pkts;
        // K is that of an ACK's beginning: an ACK of many packets, as without SACK after a repair, is not in it.
        if ended || event.kind != Ack as u8 || newly_pkts > 2 {
            *round = Round {
                cwnd_pkts: event.cwnd_pkts,
                ..Round::default()
            };
            return Ok(());
        }
        round.acked_pkts += newly_pkts;
        round.grown_pkts += verdict.cwnd_pkts.saturating_sub(event.cwnd_pkts);
        prop_assert!(
            round.cwnd_pkts <= max_ssthresh_pkts || round.grown_pkts <= max_ssthresh_pkts / 2 + 2,
            "{} packets more in a round trip that began with {}",
            round.grown_pkts,
            round.cwnd_pkts
        );
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
    let ssthresh_pkts = match verdict.ssthresh_pkts {
        0 => event.ssthresh_pkts,
        set => set,
    };
    prop_assert!(verdict.cwnd_pkts <= ssthresh_pkts);
    Ok(())
}

/// A threshold is set by a reason that the start-up has: to leave slow start at the window that there is, or to
/// say how far it may go.
fn threshold(params: &Params, event: &Event, verdict: &Verdict) -> Result<(), TestCaseError> {
    let name = params.startup().name();
    let why = why_name(verdict.why);
    let leaves = verdict.owns_slow_start == 0;
    let param = |name: &str| params.get(name).unwrap_or(0);
    match (name, why) {
        (_, "max-window") => prop_assert!(leaves && event.cwnd_pkts >= param("max_window_pkts")),
        ("su_hystart", "ack-train" | "delay-increase") => {
            prop_assert_eq!(param(&why.replace('-', "_")), 1, "{} is off", why);
            prop_assert!(leaves && event.cwnd_pkts >= param("low_ssthresh_pkts"));
        }
        ("su_vegas", "rate-below-expected") => prop_assert!(leaves),
        ("su_packet_pair", "packet-pair") => {
            prop_assert!(verdict.ssthresh_pkts >= param("min_ssthresh_pkts"));
        }
        ("su_westwood", "rate-estimate") => {
            prop_assert!(!leaves && verdict.ssthresh_pkts <= param("max_window_pkts"));
        }
        ("su_westwood", "slow-start" | "handshake-loss") if event.kind == Open as u8 => {
            prop_assert!(verdict.ssthresh_pkts <= param("first_ssthresh_pkts"));
            return Ok(());
        }
        _ => prop_assert!(false, "{name} has set ssthresh, {why}"),
    }
    prop_assert_eq!(event.kind, Ack as u8);
    if leaves {
        prop_assert_eq!(verdict.ssthresh_pkts, event.cwnd_pkts.max(2));
    } else {
        prop_assert!(verdict.ssthresh_pkts > event.cwnd_pkts);
    }
    Ok(())
}
