//! What holds for every start-up on any list of events. A start-up that is new in the registry is covered by the
//! general rules of `model::oracle` at once.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests: a failure here is a failure of the test"
)]

mod model;

use std::collections::BTreeMap;

use headstart_core::{
    Connection, Event, EventKind, Evidence, INFINITE_SSTHRESH, Learnt, LossKind, MemoryParams,
    Params, Path, Proof, Startup, Verdict, why_name,
};
use model::oracle::{Oracle, judge_lesson, well_formed};
use model::{Birth, Lesson, Packet, Stack, Step};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

// ------------------------------------------------------------------ random lists

#[derive(Clone, Debug)]
enum Op {
    /// The application gives data.
    Write(u64),
    /// At most so many packets leave.
    Send(usize),
    /// The oldest packets under way arrive and are acknowledged one by one.
    Ack(usize),
    /// A later packet arrives before the oldest.
    SackOnly(usize),
    /// A packet under way is lost.
    Drop(usize),
    /// Of the packets under way every n-th is lost, as at a full queue.
    Thin(usize),
    Timeout,
    CongestionEcho,
    Wait(u64),
    /// From here on there is a queue on the path, of so many ms.
    Queue(u32),
    /// All under way arrives, and then nothing happens for so many ms.
    Idle(u64),
    /// The connection ends, and another begins with what it has left of the path.
    NewConnection,
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (1u64..150).prop_map(Op::Write),
        6 => (1usize..80).prop_map(Op::Send),
        6 => (1usize..50).prop_map(Op::Ack),
        2 => (0usize..60).prop_map(Op::SackOnly),
        2 => (0usize..20).prop_map(Op::Drop),
        2 => (2usize..12).prop_map(Op::Thin),
        1 => Just(Op::Timeout),
        1 => Just(Op::CongestionEcho),
        1 => (1u64..300).prop_map(Op::Wait),
        1 => (0u32..100).prop_map(Op::Queue),
        2 => (100u64..20_000).prop_map(Op::Idle),
        1 => Just(Op::NewConnection),
    ]
}

/// A path without losses: slow start gets far.
fn any_calm_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (50u64..500).prop_map(Op::Write),
        6 => (20usize..200).prop_map(Op::Send),
        6 => (1usize..100).prop_map(Op::Ack),
        1 => (1u64..300).prop_map(Op::Wait),
        1 => (0u32..100).prop_map(Op::Queue),
    ]
}

fn any_params(startup: Startup) -> impl Strategy<Value = Params> {
    let values: Vec<BoxedStrategy<u32>> = startup
        .params()
        .map(|param| match param.unit {
            "switch" => (0u32..=1).boxed(),
            // Where it is longer than the round trip, the rest of the case says nothing.
            _ if param.name == "least_rtt_us" => {
                prop_oneof![20 => Just(param.default), 1 => 0u32..=800_000].boxed()
            }
            // Small numbers are where a window of a few packets meets them.
            _ => prop_oneof![
                6 => Just(param.default),
                1 => param.min..=param.max,
                1 => param.min..=param.max.min(param.min.saturating_add(50)),
            ]
            .boxed(),
        })
        .collect();
    values.prop_map(move |values| {
        let mut params = Params::new(startup);
        for (param, value) in startup.params().zip(values) {
            params.set(param.name, u64::from(value)).unwrap();
        }
        params
    })
}

fn any_path() -> impl Strategy<Value = Option<Path>> {
    let threshold = prop_oneof![2u32..500, Just(INFINITE_SSTHRESH)];
    let known = (0u64..2_000_000_000, 5u32..300, threshold, 1_000u32..800_000);
    let known = known.prop_map(|(age_us, cwnd_pkts, ssthresh_pkts, srtt_us)| Path {
        age_us,
        cwnd_pkts,
        ssthresh_pkts,
        srtt_us,
        rttvar_us: srtt_us / 4,
        min_rtt_us: srtt_us,
        ending_mpkts: cwnd_pkts * 1000,
        ended: 1 + (age_us % 3) as u8,
        samples: 1,
        ..Path::default()
    });
    prop_oneof![1 => Just(None), 3 => known.prop_map(Some)]
}

#[derive(Clone, Debug)]
struct Case {
    params: Params,
    path: Option<Path>,
    sack: bool,
    handshake_lost: bool,
    rtt_us: u32,
    ops: Vec<Op>,
}

fn any_case(startup: Startup) -> impl Strategy<Value = Case> {
    (
        any_params(startup),
        any_path(),
        prop::bool::weighted(0.6),
        prop::bool::weighted(0.05),
        1_000u32..800_000,
        prop_oneof![
            3 => prop::collection::vec(any_op(), 1..80),
            1 => prop::collection::vec(any_calm_op(), 1..80),
        ],
    )
        .prop_map(|(params, path, sack, handshake_lost, rtt_us, ops)| Case {
            params,
            path,
            sack,
            handshake_lost,
            rtt_us,
            ops,
        })
}

/// Every step and every lesson of the connections of a case, one connection after another.
struct Played {
    connections: Vec<(Vec<Step>, Vec<Lesson>)>,
}

fn play(case: &Case) -> Result<Played, TestCaseError> {
    let birth = Birth {
        params: case.params,
        mss_bytes: 1448,
        handshake_us: case.rtt_us,
        sack: case.sack,
        initial_window_pkts: if case.handshake_lost { 1 } else { 10 },
    };
    let mut played = Played {
        connections: Vec::new(),
    };
    let mut stack = Stack::open(birth, case.path, 1_000_000);
    let mut under_way: Vec<Packet> = Vec::new();
    let mut rtt_us = case.rtt_us;
    for op in &case.ops {
        match op {
            Op::Write(packets) => stack.write(*packets),
            Op::Send(most) => {
                for _ in 0..*most {
                    let Some(packet) = stack.poll() else { break };
                    prop_assert!(stack.in_flight() <= stack.cwnd_pkts(), "more than allowed");
                    under_way.push(packet);
                }
            }
            Op::Ack(count) => {
                for packet in under_way.drain(..(*count).min(under_way.len())) {
                    stack.now_us += 1_000;
                    stack.acknowledge(&packet, rtt_us);
                }
            }
            Op::SackOnly(index) if *index < under_way.len() => {
                let packet = under_way.remove(*index);
                stack.now_us += 1_000;
                stack.acknowledge(&packet, rtt_us);
            }
            Op::Drop(index) if *index < under_way.len() => {
                under_way.remove(*index);
            }
            Op::SackOnly(_) | Op::Drop(_) => {}
            Op::Thin(n) => {
                let mut place = 0;
                under_way.retain(|_| {
                    place += 1;
                    place % n != 0
                });
            }
            Op::Timeout => {
                stack.time_out();
            }
            Op::CongestionEcho => {
                stack.echo_congestion();
            }
            Op::Wait(ms) => stack.now_us += ms * 1_000,
            Op::Queue(ms) => rtt_us = case.rtt_us + ms * 1_000,
            Op::Idle(ms) => {
                for packet in under_way.drain(..) {
                    stack.acknowledge(&packet, rtt_us);
                }
                stack.now_us += ms * 1_000;
            }
            Op::NewConnection => {
                let path = stack.close();
                let next = Stack::open(birth, path, stack.now_us);
                let ended = std::mem::replace(&mut stack, next);
                played.connections.push((ended.steps, ended.lessons));
                under_way.clear();
            }
        }
        prop_assert!(
            stack.conserved(),
            "a packet was lost by the model after {op:?}"
        );
    }
    stack.close();
    played.connections.push((stack.steps, stack.lessons));
    Ok(played)
}

/// PROPTEST_CASES sets how many lists are tried, 256 if it is not set.
fn runner(times: u32) -> TestRunner {
    let usual = Config::default();
    TestRunner::new(Config {
        cases: times * usual.cases,
        failure_persistence: None,
        ..usual
    })
}

#[test]
fn no_list_of_events_makes_a_start_up_break_a_promise() {
    for startup in Startup::all() {
        runner(2)
            .run(&any_case(startup), |case| {
                for (steps, lessons) in play(&case)?.connections {
                    let mut oracle = Oracle::new(case.params);
                    for step in &steps {
                        oracle.judge(step).map_err(|error| {
                            TestCaseError::fail(format!(
                                "{error}\n{:#?}\nheld: {:?}",
                                step, oracle.held
                            ))
                        })?;
                    }
                    lessons.iter().try_for_each(judge_lesson)?;
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{startup:?}: {error}"));
    }
}

#[test]
fn the_same_events_give_the_same_verdicts() {
    for startup in Startup::all() {
        runner(1)
            .run(&any_case(startup), |case| {
                for (steps, _) in play(&case)?.connections {
                    let mut first = Connection::new(case.params);
                    let mut second = Connection::new(case.params);
                    for step in &steps {
                        let path = case.path.as_ref();
                        prop_assert_eq!(
                            first.step(path, &step.event),
                            second.step(path, &step.event)
                        );
                        prop_assert_eq!(first.state(), second.state());
                    }
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{startup:?}: {error}"));
    }
}

/// Events without sense or order: what the kernel's glue or a recording could contain at the worst.
fn any_event() -> impl Strategy<Value = Event> {
    let bytes = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    let packets = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>());
    let times = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u64>());
    let kinds = (0u8..7, 0u8..6, 0u8..4, 0u8..2, 0u8..2);
    (bytes, packets, times, kinds).prop_map(|(bytes, packets, times, kinds)| Event {
        sent_bytes: bytes.0,
        acked_bytes: bytes.1,
        idle_us: bytes.2,
        unsent_bytes: bytes.3,
        now_us: times.3,
        rtt_us: times.1,
        min_rtt_us: times.0,
        delivered_pkts: packets.0,
        cwnd_pkts: packets.1,
        ssthresh_pkts: packets.2,
        unpaced_pkts: packets.3,
        srtt_us: times.0,
        rto_us: times.1,
        mss_bytes: times.2,
        kind: kinds.0,
        loss: kinds.1,
        recovery: kinds.2,
        sack_ok: kinds.3,
        cwnd_limited: kinds.4,
        handshake_lost: u8::from(kinds.1 == 5),
        ..Event::default()
    })
}

/// The kernel's side leaves out what a start-up has no use for.
#[test]
fn a_start_up_makes_use_of_nothing_but_what_it_says() {
    for startup in Startup::all() {
        let lists = prop::collection::vec((any_path(), any_event()), 1..60);
        runner(1)
            .run(&(any_params(startup), lists), |(params, list)| {
                let mut connection = Connection::new(params);
                let mut unknown = Connection::new(params);
                for (path, event) in &list {
                    let verdict = connection.step(path.as_ref(), event);
                    if !startup.recalls() {
                        prop_assert_eq!(verdict, unknown.step(None, event));
                    }
                    let shape = (verdict.pacing_bytes_per_s, verdict.burst_pkts);
                    let shape = (shape, verdict.recovery_cwnd_pkts);
                    prop_assert!(startup.shapes() || shape == ((0, 0), 0));
                    let marks = verdict.mark_from_byte != verdict.mark_to_byte;
                    prop_assert!(startup.marks() || !marks);
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{startup:?}: {error}"));
    }
}

#[test]
fn an_event_without_sense_still_gets_a_verdict_that_can_be_read() {
    for startup in Startup::all() {
        let lists = prop::collection::vec((any_path(), any_event()), 1..60);
        runner(1)
            .run(&(any_params(startup), lists), |(params, list)| {
                let mut connection = Connection::new(params);
                for (path, event) in &list {
                    well_formed(&connection.step(path.as_ref(), event))?;
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{startup:?}: {error}"));
    }
}

#[test]
fn a_connection_that_opens_knows_nothing_of_the_one_before_it() {
    for startup in Startup::all() {
        let before = prop::collection::vec((any_path(), any_event()), 1..20);
        let after = prop::collection::vec((any_path(), any_event()), 1..20);
        runner(1)
            .run(
                &(any_params(startup), before, after),
                |(params, before, after)| {
                    let mut used = Connection::new(params);
                    let mut fresh = Connection::new(params);
                    for (path, event) in &before {
                        used.step(path.as_ref(), event);
                    }
                    let open = Event {
                        kind: EventKind::Open as u8,
                        cwnd_pkts: 10,
                        srtt_us: 1,
                        sack_ok: 1,
                        ..Event::default()
                    };
                    for (path, event) in std::iter::once(&(None, open)).chain(&after) {
                        prop_assert_eq!(
                            used.step(path.as_ref(), event),
                            fresh.step(path.as_ref(), event)
                        );
                        prop_assert_eq!(used.state(), fresh.state());
                    }
                    Ok(())
                },
            )
            .unwrap_or_else(|error| panic!("{startup:?}: {error}"));
    }
}

/// Where the pacing of a start ends while nothing is repaired, no more may leave at once than at a connection's
/// beginning; unless the window was full, so that it held nothing back.
#[test]
fn what_pacing_has_held_back_may_not_leave_as_one_burst() {
    let counts = (0u64..5000, 0u32..5000, 0u64..5000, 0u64..5000);
    let strategy = (counts, any_event(), any::<bool>(), 100u32..9000);
    runner(4)
        .run(&strategy, |(counts, event, full, mss_bytes)| {
            let (flight_pkts, cwnd_pkts, unsent_pkts, peer_pkts) = counts;
            let mss = u64::from(mss_bytes);
            let event = Event {
                sent_bytes: flight_pkts * mss,
                acked_bytes: 0,
                inflight_pkts: u32::try_from(flight_pkts).unwrap(),
                cwnd_pkts,
                unsent_bytes: unsent_pkts * mss,
                peer_window_bytes: u32::try_from(peer_pkts * mss).unwrap(),
                mss_bytes,
                window_full: u8::from(full),
                ..event
            };
            let over = Verdict::default().pacing_is_over(&event);
            let window_pkts = u64::from(cwnd_pkts).saturating_sub(flight_pkts);
            let at_once_pkts = window_pkts
                .min(unsent_pkts)
                .min(peer_pkts.saturating_sub(flight_pkts));
            let lost = event.kind == EventKind::Loss as u8 && event.loss != LossKind::Ecn as u8;
            let repairs = lost || event.recovery != 0;
            prop_assert_eq!(over, repairs || full || at_once_pkts <= 10, "{:?}", event);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

fn any_memory_params() -> impl Strategy<Value = MemoryParams> {
    let values: Vec<_> = MemoryParams::params()
        .map(|param| prop_oneof![1 => Just(param.default), 1 => param.min..=param.max])
        .collect();
    values.prop_map(|values| {
        let mut params = MemoryParams::default();
        for (param, value) in MemoryParams::params().zip(values) {
            params.set(param.name, u64::from(value)).unwrap();
        }
        params
    })
}

/// Whatever was learnt, and from whatever events: no more than the cap is remembered or told, a refusal tells nothing
/// but its reason, and what is not learnt changes nothing.
#[test]
fn no_lesson_makes_the_memory_tell_more_than_the_cap_or_anything_with_a_refusal() {
    let proof = (any::<u32>(), 0u8..3).prop_map(|(window_pkts, evidence)| {
        let evidence = match evidence {
            0 => Evidence::None,
            1 => Evidence::AtLeast,
            _ => Evidence::Exact,
        };
        Proof::new(window_pkts, evidence)
    });
    let lessons = prop::collection::vec((any_event(), proof, 0u64..4_000_000_000), 1..40);
    runner(2)
        .run(
            &(any_memory_params(), any_path(), lessons, any_event()),
            |(params, path, lessons, event)| {
                let cap_pkts = params.get("max_window_pkts").unwrap();
                let mut path = path.unwrap_or_default();
                for (event, proof, age_us) in lessons {
                    path.age_us = path.age_us.saturating_add(age_us);
                    let before = path;
                    match params.learn(&mut path, &event, proof) {
                        Learnt::Nothing => prop_assert_eq!(before, path),
                        Learnt::ToForget => prop_assert_eq!(path, Path::default()),
                        Learnt::Something => {
                            let kept = before.cwnd_pkts.max(cap_pkts);
                            prop_assert!(path.cwnd_pkts <= kept, "{path:?}");
                            let most = before.ending_mpkts.max(cap_pkts * 1000);
                            prop_assert!(path.ending_mpkts <= most, "{path:?}");
                        }
                    }
                    prop_assert!(path.refused == 0, "only what is told is refused");
                }
                let (known, mut told) = (path, path);
                let why = params.recall(&mut told, &event);
                if why_name(why) == "path-known" {
                    prop_assert_eq!(told.cwnd_pkts, known.cwnd_pkts.min(cap_pkts));
                    prop_assert!(told.ending_mpkts <= cap_pkts * 1000 && told.refused == 0);
                    prop_assert!(told.cwnd_pkts > 0);
                } else {
                    let nothing = Path {
                        refused: why,
                        ..Path::default()
                    };
                    prop_assert_eq!(told, nothing);
                }
                Ok(())
            },
        )
        .unwrap_or_else(|error| panic!("{error}"));
}

/// The reasons in `wanted` (numbers) that no list leads those start-ups to. Seeded, so that this does not depend on
/// luck.
fn never_reached(startups: &[&str], wanted: impl Iterator<Item = u8>) -> Vec<&'static str> {
    let mut seen = BTreeMap::<_, u32>::new();
    for name in startups {
        let startup = Startup::named(name).unwrap();
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        for _ in 0..700 {
            let case = any_case(startup).new_tree(&mut runner).unwrap().current();
            let played = play(&case).unwrap();
            let steps = played.connections.iter().flat_map(|(steps, _)| steps);
            steps.for_each(|step| *seen.entry(why_name(step.verdict.why)).or_default() += 1);
        }
    }
    println!("how often each was given: {seen:?}");
    wanted
        .map(why_name)
        .filter(|name| !seen.contains_key(name))
        .collect()
}

/// The lists are of use only if they lead everywhere.
#[test]
fn the_random_lists_reach_every_reason_that_fast_start_and_standard_have() {
    let missed = never_reached(&["su_standard", "su_fast_start"], 0..=18);
    assert!(missed.is_empty(), "never reached: {missed:?}");
}

#[test]
fn the_random_lists_reach_every_reason_of_the_schemes_that_grow_the_window_themselves() {
    let startups = [
        "su_standard",
        "su_hystart",
        "su_limited",
        "su_westwood",
        "su_packet_pair",
        "su_vegas",
    ];
    let missed = never_reached(&startups, [25, 26, 30].into_iter().chain(33..=38));
    assert!(missed.is_empty(), "never reached: {missed:?}");
}

/// All but 25 and 28: in the lists a connection opens with an infinite ssthresh, which only a loss lowers, and none
/// opens in its middle. The C tables have both.
#[test]
fn the_random_lists_reach_the_reasons_that_swift_start_and_paced_have() {
    let missed = never_reached(
        &["su_swift_start", "su_paced"],
        (20..=27).filter(|why| *why != 25),
    );
    assert!(missed.is_empty(), "never reached: {missed:?}");
}
