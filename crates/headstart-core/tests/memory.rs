//! What holds for the memory of paths, whatever was learnt.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests: a failure here is a failure of the test"
)]

mod random;

use headstart_core::{Evidence, Learnt, MemoryParams, Path, Proof, why_name};
use proptest::prelude::*;
use random::{any_event, any_path, runner};

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
