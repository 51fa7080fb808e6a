//! What every start-up promises, and what a known one promises beyond that.

use headstart_core::{
    Event, EventKind, Evidence, INFINITE_SSTHRESH, MemoryParams, Params, Path, Phase, Verdict,
    why_name,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::growth::{self, Growth};
use super::paced_growth::PacedGrowth;
use super::{Lesson, Step};
use EventKind::{Ack, Idle, Loss, Open, Send};
use Phase::{Armed, Clocked, Native, OpenLoop, Recovering, SlowStart};

/// From where to where an event may lead.
pub(crate) type Moves = &'static [(EventKind, &'static [Phase], &'static [Phase])];

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
    /// For those that grow the window themselves.
    growth: Option<Growth>,
}

fn rules(params: &Params) -> Rules {
    let general = Rules {
        moves: GENERAL_MOVES,
        paced_in: &[Armed, OpenLoop, Clocked, Recovering, SlowStart],
        most_pkts: |params, _| params.get("max_window_pkts").unwrap_or(u32::MAX),
        growth: None,
    };
    let grown = Rules {
        moves: growth::MOVES,
        paced_in: &[],
        growth: Some(Growth::default()),
        ..general
    };
    match params.startup().name() {
        "su_hystart" | "su_limited" | "su_westwood" | "su_packet_pair" | "su_vegas" => grown,
        // The window grows by verdicts: what it may be is growth.rs's.
        "su_standard" if params.get("hystart") == Some(0) => grown,
        "su_standard" => Rules {
            moves: STANDARD_MOVES,
            paced_in: &[],
            // The initial window, which is 100 at the most; after a pause what is left of the window, which was
            // halved at least once (RFC 2861).
            most_pkts: |params, before_pause| params.get("iw_pkts").unwrap().max(before_pause / 2),
            growth: None,
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
    /// The round trip was below `least_rtt_us` once.
    near: bool,
}

impl Oracle {
    pub(crate) fn new(params: Params) -> Oracle {
        Oracle {
            params,
            rules: rules(&params),
            phase: Native,
            held: Verdict::default(),
            before_pause_pkts: 0,
            begin_byte: 0,
            begin_ssthresh_pkts: INFINITE_SSTHRESH,
            paced_growth: PacedGrowth::of(params),
            near: false,
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
        self.nearness(event, verdict)?;
        if self.near {
            return Ok(());
        }
        self.phases(event, verdict)?;
        self.windows(verdict)?;
        self.marks(event, verdict)?;
        self.pacing(verdict)?;
        if let Some(growth) = &mut self.rules.growth {
            growth.judge(&self.params, step)?;
        }
        if event.kind == Loss as u8 {
            self.losses(verdict)?;
        }
        if let Some(growth) = &mut self.paced_growth {
            growth.judge(step)?;
        }
        self.held = *verdict;
        Ok(())
    }

    /// What begins on a shorter round trip than `least_rtt_us` is the stack's, for good.
    fn nearness(&mut self, event: &Event, verdict: &Verdict) -> Result<(), TestCaseError> {
        let says = verdict.why == why("near-path");
        let begins = event.kind == Open as u8 || event.kind == Idle as u8;
        prop_assert!(!says || (begins && !self.near), "said once, at a beginning");
        let param = |name: &str| self.params.get(name).unwrap_or(0);
        let shorter = event.srtt_us > 0 && event.srtt_us < param("least_rtt_us");
        let window_is_chosen = self.params.startup().name() == "su_standard"
            && (param("iw_pkts") != 10 || param("hystart") == 0);
        if begins && event.srtt_us > 0 && !self.near {
            prop_assert_eq!(says, shorter && !window_is_chosen);
        }
        self.near |= says;
        if self.near {
            let alone = Verdict {
                why: verdict.why,
                ..Verdict::default()
            };
            prop_assert_eq!(*verdict, alone, "the stack is alone");
        }
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
                forget_path: 0,
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
                let floor = verdict.recovery_cwnd_pkts;
                if slow_start {
                    // The letter of 3.3.4, or what the standard begins with today.
                    let most = self.params.get("timeout_window_pkts").unwrap_or(0);
                    prop_assert!(floor <= most && floor != 1, "{floor} after the timer");
                } else {
                    prop_assert!(floor > 0);
                }
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
    prop_assert!(verdict.forget_path <= 1);
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
    prop_assert_eq!((after.refused, after.reserved), (0, [0; 6]));
    if !changed {
        prop_assert_eq!(before, after);
        return Ok(());
    }
    prop_assert!(proof.evidence() != Evidence::None);
    let exact = proof.evidence() == Evidence::Exact;
    if after.cwnd_pkts == 0 {
        prop_assert!(exact && before.cwnd_pkts > 0, "forgotten without a reason");
        prop_assert_eq!(*after, Path::default());
        return Ok(());
    }
    // What is older than the lifetime is no history.
    let lifetime_us = u64::from(MemoryParams::default().get("lifetime_s").unwrap()) * 1_000_000;
    let before = &if before.age_us > lifetime_us {
        Path::default()
    } else {
        *before
    };
    let learnt = proof.window_pkts;
    prop_assert!(after.cwnd_pkts == learnt || (!exact && after.cwnd_pkts == before.cwnd_pkts));
    let most = *most_in_flight;
    prop_assert!(learnt <= most, "{after:?} learnt, {most} in flight");
    prop_assert!(learnt <= event.cwnd_pkts.min(event.delivered_pkts));
    prop_assert!(exact || after.cwnd_pkts >= before.cwnd_pkts);
    prop_assert!(after.ssthresh_pkts > 0);
    prop_assert_eq!(after.samples, before.samples + 1);
    // Filters lie between what they are made of.
    let ending = after.ending_mpkts;
    let newest = event.cwnd_pkts.saturating_mul(1000);
    prop_assert!(ending <= before.ending_mpkts.max(newest));
    prop_assert!(after.min_rtt_mean_us <= before.min_rtt_mean_us.max(event.min_rtt_us));
    Ok(())
}
