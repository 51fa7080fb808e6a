//! One algorithm, two builds: what the kernel said is what the native build says, byte for byte.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::collections::HashMap;
use std::thread::sleep;
use std::time::Duration;

use headstart_core::{Connection, Event, EventKind, Param, Params, Path, Startup, why_name};
use headstart_kernel::{CheckVerdict, Probe, Record, Replay};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::*;

/// Real connections under every start-up: new and resumed, known path and unknown, with and without loss.
fn recorded_connections() -> Option<Vec<Record>> {
    let kernel = kernel(&everything())?;
    let mut records = Vec::new();
    for (queue_pkts, bytes) in [(400, 400_000), (12, 150_000)] {
        let lane = Lane::new(&kernel, 1, "10mbit", 40, queue_pkts);
        for startup in Startup::all() {
            lane.server_uses(startup.name());
            for _ in 0..2 {
                let mut client = lane.connect();
                client.fetch(bytes);
                sleep(Duration::from_millis(600));
                client.fetch(bytes);
                records.extend(kernel.take_records().unwrap());
            }
        }
    }
    Some(records)
}

#[test]
fn what_the_kernel_answered_is_what_both_builds_answer_to_the_same_events() {
    let _lock = one_at_a_time();
    let Some(records) = recorded_connections() else {
        return;
    };
    assert!(records.len() > 1000, "only {} events", records.len());
    let kinds = records
        .iter()
        .map(|record| record.event.kind)
        .collect::<std::collections::HashSet<_>>();
    assert_eq!(kinds.len(), 5, "every kind of event was to be among them");
    let reasons = records
        .iter()
        .map(|record| why_name(record.verdict.why))
        .collect::<std::collections::BTreeSet<_>>();
    for reason in [
        "ack-train",
        "limited",
        "packet-pair",
        "slow-start",
        "ssthresh",
    ] {
        assert!(
            reasons.contains(reason),
            "{reason} is not among {reasons:?}"
        );
    }

    let mut native: HashMap<u64, Connection> = HashMap::new();
    let mut bpf: HashMap<u64, Replay> = HashMap::new();
    for record in &records {
        let params = Params::new(record.startup);
        if record.event.kind == EventKind::Open as u8 {
            native.insert(record.socket, Connection::new(params));
            bpf.insert(record.socket, Replay::new(params).unwrap());
        }
        let native = native.get_mut(&record.socket).unwrap();
        let bpf = bpf.get_mut(&record.socket).unwrap();
        let path = record.path.as_ref();
        assert_eq!(
            native.step(path, &record.event),
            record.verdict,
            "live kernel: {record:?}"
        );
        assert_eq!(
            bpf.step(path, &record.event).unwrap(),
            record.verdict,
            "replay: {record:?}"
        );
        assert_eq!(native.state(), bpf.state());
    }
}

fn any_event() -> impl Strategy<Value = Event> {
    let counters = (
        any::<u64>(),
        0u64..1 << 40,
        0u64..1 << 24,
        0u64..100_000_000,
    );
    let packets = (
        any::<u32>(),
        any::<u32>(),
        0u32..5000,
        0u32..100_000,
        any::<u32>(),
    );
    let times = (
        0u32..10_000_000,
        0u32..10_000_000,
        0u32..10_000_000,
        0u32..100_000_000,
    );
    let rest = (1u32..9000, 0u32..11, 0u8..5, 0u8..5, 0u8..3, 0u8..2, 0u8..2);
    let application = (0u64..1 << 32, 0u64..1 << 32, any::<u32>(), any::<u32>());
    let parts = (counters, packets, times, rest, application);
    parts.prop_map(|(counters, packets, times, rest, application)| Event {
        now_us: counters.0,
        sent_bytes: counters.1 + counters.2,
        acked_bytes: counters.1,
        idle_us: counters.3,
        unsent_bytes: application.0,
        hint_bytes: application.1,
        peer_window_bytes: application.2,
        retransmitted_pkts: application.3,
        delivered_pkts: packets.0,
        lost_pkts: packets.1,
        inflight_pkts: packets.2,
        cwnd_pkts: packets.3,
        ssthresh_pkts: packets.4,
        rtt_us: times.0,
        srtt_us: times.0,
        rttvar_us: times.1,
        min_rtt_us: times.2,
        rto_us: times.3,
        mss_bytes: rest.0,
        unpaced_pkts: rest.1,
        kind: rest.2,
        loss: rest.3,
        recovery: rest.4,
        sack_ok: rest.5,
        cwnd_limited: rest.6,
        iw_pkts: rest.5 * 30,
        handshake_lost: u8::from(rest.3 == 1),
        window_full: rest.6,
    })
}

fn any_path() -> impl Strategy<Value = Option<Path>> {
    let fields = (0u64..1 << 42, 0u32..100_000, any::<u32>(), 0u32..10_000_000);
    proptest::option::of(
        fields.prop_map(|(age_us, cwnd_pkts, ssthresh_pkts, srtt_us)| Path {
            age_us,
            cwnd_pkts,
            ssthresh_pkts,
            srtt_us,
            ending_mpkts: cwnd_pkts.saturating_mul(1000),
            ended: (age_us % 4) as u8,
            refused: if age_us % 16 == 0 { 50 } else { 0 },
            ..Path::default()
        }),
    )
}

#[test]
fn both_builds_agree_on_any_list_of_events() {
    if Probe::run()
        .checks
        .iter()
        .any(|check| check.verdict == CheckVerdict::Missing)
    {
        eprintln!("SKIPPED: {}", Probe::run().require().unwrap_err());
        return;
    }
    for params in Startup::all().flat_map(corners) {
        let replay = std::cell::RefCell::new(Replay::new(params).unwrap());
        let lists = proptest::collection::vec((any_path(), any_event()), 1..60);
        let mut runner = TestRunner::new(Config {
            cases: 100,
            ..Config::default()
        });
        runner
            .run(&lists, |list| {
                let mut native = Connection::new(params);
                let mut bpf = replay.borrow_mut();
                bpf.restart(params);
                for (path, event) in &list {
                    let verdict = native.step(path.as_ref(), event);
                    prop_assert_eq!(verdict, bpf.step(path.as_ref(), event).unwrap());
                    prop_assert_eq!(native.state(), bpf.state());
                }
                Ok(())
            })
            .unwrap();
    }
}

/// A start-up with its defaults, with the least values that its parameters have, and with the greatest.
fn corners(startup: Startup) -> [Params; 3] {
    let with = |value: fn(&Param) -> u32| {
        let mut params = Params::new(startup);
        for param in startup.params() {
            params.set(param.name, value(&param).into()).unwrap();
        }
        params
    };
    [
        Params::new(startup),
        with(|param| param.min),
        with(|param| param.max),
    ]
}
