//! The short way of the usual link against the one that takes each packet from hand to hand.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use headstart_link::{Link, LinkConfig, Packet};
use proptest::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sized {
    number: usize,
    wire_bytes: u32,
}

impl Packet for Sized {
    fn wire_bytes(&self) -> u32 {
        self.wire_bytes
    }
}

/// What is done with both links, after so many ns.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Arrive(u64, u32),
    /// As many packets as are due.
    PopAll(u64),
    Pop(u64),
    Count,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    // Around the time of a packet, in the same nanosecond, and after a rest.
    let after = || prop_oneof![0u64..3_000_000, Just(0), Just(1_000_000), Just(50_000_000)];
    let deed = prop_oneof![
        4 => (after(), prop_oneof![Just(1500u32), 40u32..1500]).prop_map(|(ns, bytes)| Deed::Arrive(ns, bytes)),
        1 => after().prop_map(Deed::PopAll),
        1 => after().prop_map(Deed::Pop),
        1 => Just(Deed::Count),
    ];
    prop::collection::vec(deed, 1..300)
}

proptest! {
    #[test]
    fn both_ways_give_the_same_packets_the_same_fates(
        deeds in deeds(),
        rate in prop_oneof![Just("12mbit"), Just("1mbit"), Just("7777kbit"), Just("999999937bit")],
        queue in prop_oneof![Just("drop-tail:1"), Just("drop-tail:5"), Just("drop-tail:4000B"), Just("drop-tail:50")],
        jitter in prop_oneof![Just(None), Just(Some("300us"))],
        delay in prop_oneof![Just("0s"), Just("5ms")],
    ) {
        let mut config = LinkConfig::new(
            rate.parse().unwrap(),
            delay.parse().unwrap(),
            queue.parse().unwrap(),
        );
        config.seed = 5;
        config.jitter = jitter.map(|jitter| jitter.parse().unwrap());
        let mut short = Link::new(&config).unwrap();
        let mut long = Link::by_hand(&config).unwrap();
        let mut now_ns = 0;
        for (number, deed) in deeds.into_iter().enumerate() {
            match deed {
                Deed::Arrive(after_ns, wire_bytes) => {
                    now_ns += after_ns;
                    let packet = Sized { number, wire_bytes };
                    prop_assert_eq!(short.arrive(now_ns, packet), long.arrive(now_ns, packet));
                }
                Deed::Pop(after_ns) => {
                    now_ns += after_ns;
                    prop_assert_eq!(short.pop_due(now_ns), long.pop_due(now_ns));
                }
                Deed::PopAll(after_ns) => {
                    now_ns += after_ns;
                    loop {
                        let departed = short.pop_due(now_ns);
                        prop_assert_eq!(departed, long.pop_due(now_ns));
                        if departed.is_none() {
                            break;
                        }
                    }
                }
                Deed::Count => {
                    prop_assert_eq!(short.counters(), long.counters());
                    prop_assert!(short.take_dropped().eq(long.take_dropped()));
                }
            }
            prop_assert_eq!(short.queue_len_pkts(), long.queue_len_pkts());
            let (asked, known) = (long.next_due_ns(), short.next_due_ns());
            prop_assert_eq!(asked.is_some(), known.is_some());
            prop_assert!(asked <= known, "{:?} {:?}", asked, known);
        }
        prop_assert_eq!(short.drain(), long.drain());
    }
}
