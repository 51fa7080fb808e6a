//! What every start-up promises, and what a known one promises beyond that.

use headstart_core::{
    Event, EventKind, Evidence, INFINITE_SSTHRESH, Params, Phase, Startup, Verdict, why_name,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::paced_growth::PacedGrowth;
use super::{Lesson, Step};
use EventKind::{Ack, Idle, Loss, Open, Send};
use Phase::{Armed, Clocked, Native, OpenLoop, Recovering, SlowStart};

/// From where to where an event may lead.
type Moves = &'static [(EventKind, &'static [Phase], &'static [Phase])];

/// For start-ups without rules of their own: a connection begins and resumes without anything in flight, and a
/// loss ends the start or is repaired without penalty.
const ANY: &[Phase] = &[Native, Armed, OpenLoop, Clocked, Recovering, SlowStart];
const GENERAL_MOVES: Moves = &[
    (Open, &[Native], &[Native, Armed]),
    (Idle, ANY, &[Native, Armed]),
    (Send, ANY, &[Native, Armed, OpenLoop, Clocked, SlowStart]),
    (Ack, ANY, ANY),
    (Loss, ANY, &[Native, Recovering]),
];
const STANDARD_MOVES: Moves = &[
    (Open, &[Native], &[Native]),
    (Idle, &[Native], &[Native]),
    (Send, &[Native], &[Native]),
    (Ack, &[Native], &[Native]),
    (Loss, &[Native], &[Native]),
];
/// TCP Fast Start 3.3.1 and 3.3.4: chosen, leaving, clocked, over; and back to waiting after a small response.
const FAST_START_MOVES: Moves = &[
    (Open, &[Native], &[Native, Armed]),
    (Idle, &[Native, Armed], &[Native, Armed]),
    (Send, &[Native], &[Native]),
    (Send, &[Armed], &[OpenLoop, Native]),
    (Ack, &[Native], &[Native]),
    (Ack, &[OpenLoop], &[OpenLoop, Clocked, Armed, Native]),
    (Ack, &[Clocked], &[Clocked, Armed, Native]),
    (Ack, &[Recovering], &[Recovering, Native]),
    (Loss, &[Native], &[Native]),
    (
        Loss,
        &[OpenLoop, Clocked, Recovering],
        &[Recovering, Native],
    ),
];
/// A Swifter Start for TCP 3.1: a burst, its ACKs, paced slow start, and then standard for good.
const SWIFT_START_MOVES: Moves = &[
    (Open, &[Native], &[Native, Armed]),
    (Idle, &[Native, SlowStart], &[Native]),
    (Send, &[Native], &[Native]),
    (Send, &[Armed], &[OpenLoop]),
    (Send, &[SlowStart], &[SlowStart]),
    (Ack, &[Native], &[Native]),
    (Ack, &[OpenLoop], &[OpenLoop, SlowStart, Native]),
    (Ack, &[SlowStart], &[SlowStart, Native]),
    (Loss, &[Native, OpenLoop, SlowStart], &[Native]),
];
/// The same without the burst (4.3).
const PACED_MOVES: Moves = &[
    (Open, &[Native], &[Native, Armed]),
    (Idle, &[Native, SlowStart], &[Native]),
    (Send, &[Native], &[Native]),
    (Send, &[Armed, SlowStart], &[SlowStart]),
    (Ack, &[Native], &[Native]),
    (Ack, &[SlowStart], &[SlowStart, Native]),
    (Loss, &[Native, SlowStart], &[Native]),
];

struct Rules {
    moves: Moves,
    /// The phases in which a rate may be given.
    paced_in: &'static [Phase],
    /// The largest window that may be set, in packets, given the window before the last pause.
    most_pkts: fn(&Params, u32) -> u32,
}

fn rules(startup: Startup) -> Rules {
    let general = Rules {
        moves: GENERAL_MOVES,
        paced_in: &[Armed, OpenLoop, Clocked, Recovering, SlowStart],
        most_pkts: |params, _| params.get("max_window_pkts").unwrap_or(u32::MAX),
    };
    match startup.name() {
        "su_standard" => Rules {
            moves: STANDARD_MOVES,
            paced_in: &[],
            // The initial window, which is 100 at the most; after a pause what is left of the window, which was
            // halved at least once (RFC 2861).
            most_pkts: |params, before_pause| params.get("iw_pkts").unwrap().max(before_pause / 2),
        },
        "su_fast_start" => Rules {
            moves: FAST_START_MOVES,
            paced_in: &[OpenLoop],
            ..general
        },
        "su_swift_start" => Rules {
            moves: SWIFT_START_MOVES,
            paced_in: &[SlowStart],
            ..general
        },
        "su_paced" => Rules {
            moves: PACED_MOVES,
            paced_in: &[SlowStart],
            ..general
        },
        _ => general,
    }
}

/// Follows one connection and objects to a verdict that breaks a promise.
pub(crate) struct Oracle {
    params: Params,
    rules: Rules,
    phase: Phase,
    pub(crate) held: Verdict,
    before_pause_pkts: u32,
    /// Where the window began, and with which threshold.
    begin_byte: u64,
    begin_ssthresh_pkts: u32,
    paced_growth: Option<PacedGrowth>,
}

impl Oracle {
    pub(crate) fn new(params: Params) -> Oracle {
        Oracle {
            params,
            rules: rules(params.startup()),
            phase: Native,
            held: Verdict::default(),
            before_pause_pkts: 0,
            begin_byte: 0,
            begin_ssthresh_pkts: INFINITE_SSTHRESH,
            paced_growth: PacedGrowth::of(params),
        }
    }

    pub(crate) fn judge(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let Step { event, verdict } = step;
        if event.kind == Idle as u8 {
            self.before_pause_pkts = event.cwnd_pkts;
        }
        if event.kind == Send as u8 {
            self.begin_byte = event.sent_bytes;
            self.begin_ssthresh_pkts = match verdict.ssthresh_pkts {
                0 => event.ssthresh_pkts,
                set => set,
            };
        }
        well_formed(verdict)?;
        self.phases(event, verdict)?;
        self.windows(verdict)?;
        self.marks(event, verdict)?;
        self.pacing(verdict)?;
        if event.kind == Loss as u8 {
            self.losses(verdict)?;
        }
        if let Some(growth) = &mut self.paced_growth {
            growth.judge(step)?;
        }
        self.held = *verdict;
        Ok(())
    }

    fn phases(&mut self, event: &Event, verdict: &Verdict) -> Result<(), TestCaseError> {
        let to = verdict.phase().unwrap();
        let allowed = self.rules.moves.iter().any(|(kind, from, into)| {
            *kind as u8 == event.kind && from.contains(&self.phase) && into.contains(&to)
        });
        prop_assert!(
            allowed,
            "{:?} -> {to:?} is not in the table of moves",
            self.phase
        );
        self.phase = to;
        if to == Native {
            let held = Verdict {
                cwnd_pkts: 0,
                ssthresh_pkts: 0,
                why: 0,
                ..*verdict
            };
            prop_assert_eq!(held, Verdict::default(), "native means: as without us");
        }
        Ok(())
    }

    fn windows(&self, verdict: &Verdict) -> Result<(), TestCaseError> {
        let most_pkts = (self.rules.most_pkts)(&self.params, self.before_pause_pkts);
        prop_assert!(
            verdict.cwnd_pkts <= most_pkts,
            "more than {most_pkts} packets"
        );
        prop_assert!(verdict.recovery_cwnd_pkts <= most_pkts);
        prop_assert!(verdict.recovery_cwnd_pkts == 0 || self.phase == Recovering);
        Ok(())
    }

    fn marks(&self, event: &Event, verdict: &Verdict) -> Result<(), TestCaseError> {
        let (from, to) = (verdict.mark_from_byte, verdict.mark_to_byte);
        prop_assert!(from <= to);
        if from == to {
            return Ok(());
        }
        prop_assert!(
            from > self.begin_byte,
            "the first packet of the window is marked"
        );
        prop_assert!(
            event.acked_bytes <= self.begin_byte,
            "marked after ACK clocking"
        );
        let held = (self.held.mark_from_byte, self.held.mark_to_byte);
        prop_assert!(
            held == (from, to) || from > event.sent_bytes,
            "marks what was sent"
        );
        Ok(())
    }

    fn pacing(&self, verdict: &Verdict) -> Result<(), TestCaseError> {
        let paced = verdict.pacing_bytes_per_s > 0;
        prop_assert!(!paced || self.rules.paced_in.contains(&self.phase));
        // Linux paces none of the first 10 packets, and a fast start is of 11 at the least: a rate is always left.
        let asked =
            self.params.get("pacing") == Some(1) && self.params.startup().name() == "su_fast_start";
        prop_assert!(!asked || self.phase != OpenLoop || paced, "rate 0");
        Ok(())
    }

    /// Without penalty means: the threshold with which the window began, no lower and no higher.
    fn losses(&self, verdict: &Verdict) -> Result<(), TestCaseError> {
        match why_name(verdict.why) {
            "start-loss" | "start-timeout" | "partial-ack" => {
                prop_assert_eq!(self.phase, Recovering);
                prop_assert_eq!(verdict.ssthresh_pkts, self.begin_ssthresh_pkts);
                prop_assert!(verdict.ssthresh_pkts > 0);
                let slow_start = verdict.why != why("start-loss");
                prop_assert_eq!(verdict.cwnd_pkts, u32::from(slow_start));
                prop_assert_eq!(verdict.recovery_cwnd_pkts == 0, slow_start);
            }
            "ordinary-loss" => {
                prop_assert_eq!(self.phase, Native);
                prop_assert_eq!((verdict.cwnd_pkts, verdict.ssthresh_pkts), (0, 0));
            }
            _ => {}
        }
        Ok(())
    }
}

/// The number of a reason.
fn why(name: &str) -> u8 {
    (0..=u8::MAX)
        .find(|number| why_name(*number) == name)
        .unwrap()
}

/// What holds for every verdict on any event at all.
pub(crate) fn well_formed(verdict: &Verdict) -> Result<(), TestCaseError> {
    prop_assert!(verdict.phase().is_some(), "phase {}", verdict.phase);
    prop_assert!(why_name(verdict.why) != "?", "why {}", verdict.why);
    prop_assert!(verdict.owns_slow_start <= 1);
    prop_assert_eq!(verdict.reserved, [0; 1]);
    prop_assert!(verdict.mark_from_byte <= verdict.mark_to_byte);
    Ok(())
}

/// What a connection may teach of its path (TCP Fast Start 3.3.2).
pub(crate) fn judge_lesson(lesson: &Lesson) -> Result<(), TestCaseError> {
    let Lesson {
        event,
        proof,
        before,
        after,
        changed,
        most_in_flight,
    } = lesson;
    prop_assert_eq!(after.reserved, [0; 7]);
    if !changed {
        prop_assert_eq!(before, after);
        return Ok(());
    }
    prop_assert!(proof.evidence() != Evidence::None);
    prop_assert_eq!(after.cwnd_pkts, proof.window_pkts);
    let most = *most_in_flight;
    prop_assert!(
        after.cwnd_pkts <= most,
        "{after:?} learnt, {most} in flight"
    );
    prop_assert!(after.cwnd_pkts <= event.cwnd_pkts.min(event.delivered_pkts));
    // 0 forgets what was known: no round trip was without loss.
    let exact = proof.evidence() == Evidence::Exact;
    prop_assert!(after.cwnd_pkts > 0 || (exact && before.cwnd_pkts > 0));
    prop_assert!(exact || after.cwnd_pkts >= before.cwnd_pkts);
    prop_assert!(after.ssthresh_pkts > 0);
    prop_assert_eq!((after.samples, after.age_us), (before.samples + 1, 0));
    Ok(())
}
