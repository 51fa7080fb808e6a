//! What the tests draw: parameters, paths and events, and how many of them.

#![allow(
    dead_code,
    reason = "each test file is a crate of its own and uses a part"
)]
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests: a failure here is a failure of the test"
)]

use headstart_core::{Event, INFINITE_SSTHRESH, Params, Path, Startup};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// PROPTEST_CASES sets how many lists are tried, 256 if it is not set.
pub(crate) fn runner(times: u32) -> TestRunner {
    let usual = Config::default();
    TestRunner::new(Config {
        cases: times * usual.cases,
        failure_persistence: None,
        ..usual
    })
}

pub(crate) fn any_params(startup: Startup) -> impl Strategy<Value = Params> {
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

pub(crate) fn any_path() -> impl Strategy<Value = Option<Path>> {
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

/// Events without sense or order: what the kernel's glue or a recording could contain at the worst.
pub(crate) fn any_event() -> impl Strategy<Value = Event> {
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
