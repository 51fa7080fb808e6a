//! What holds for every queue, whatever comes, and that a seed is all there is to chance.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use std::collections::HashMap;

use headstart_link::{
    Departed, DropReason, Dropped, JitterSpec, Link, LinkConfig, Packet, Queue, QueueContext,
    QueueSize, QueueSpec, Span, Waiting,
};
use proptest::prelude::*;

const LOW_DSCP: u8 = 1;

/// A packet of a flow that knows its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbered {
    number: usize,
    wire_bytes: u32,
    flow: u64,
    is_low: bool,
    ecn_capable: bool,
    marked: bool,
}

impl Packet for Numbered {
    fn wire_bytes(&self) -> u32 {
        self.wire_bytes
    }

    fn dscp(&self) -> u8 {
        if self.is_low { LOW_DSCP } else { 0 }
    }

    fn flow_hash(&self) -> u64 {
        self.flow
    }

    fn ecn_capable(&self) -> bool {
        self.ecn_capable
    }

    fn mark_congestion(&mut self) {
        assert!(self.ecn_capable, "only those who understand it are marked");
        self.marked = true;
    }
}

/// One step of a run on a bare queue.
#[derive(Debug, Clone, Copy)]
enum Step {
    Arrive(u64, Numbered),
    Leave(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap_ns = prop_oneof![3 => Just(0u64), 3 => 0u64..2_000_000, 1 => 0u64..300_000_000];
    let packet = (
        prop_oneof![Just(1500u32), 20u32..=1500],
        0u64..5,
        any::<bool>(),
        any::<bool>(),
    );
    let one = (gap_ns, prop::option::weighted(0.6, packet));
    prop::collection::vec(one, 1..400).prop_map(|list| {
        let mut steps = Vec::new();
        for (number, (gap_ns, packet)) in list.into_iter().enumerate() {
            steps.push(match packet {
                None => Step::Leave(gap_ns),
                Some((wire_bytes, flow, is_low, ecn_capable)) => {
                    let marked = false;
                    let packet = Numbered {
                        number,
                        wire_bytes,
                        flow,
                        is_low,
                        ecn_capable,
                        marked,
                    };
                    Step::Arrive(gap_ns, packet)
                }
            });
        }
        steps
    })
}

fn size() -> impl Strategy<Value = QueueSize> {
    prop_oneof![
        (1u32..30).prop_map(QueueSize::Packets),
        (1500u64..30_000).prop_map(QueueSize::Bytes),
        (50_000u32..1_500_000).prop_map(QueueSize::BdpMillionths),
    ]
}

/// Every kind, in every unit.
fn queues() -> impl Strategy<Value = QueueSpec> {
    let options = prop_oneof![
        Just("drop-tail:LIMIT"),
        Just("priority:LIMIT"),
        Just("red:LIMIT,min=1,max=8,max_p=30%,w_q=30%"),
        Just("red:LIMIT,min=2kB,max=9kB,max_p=30%,w_q=30%,gentle,ecn"),
        Just("priority-red:LIMIT,min=1,max=8,max_p=30%,w_q=30%"),
        Just("priority-red:LIMIT,min=2kB,max=9kB,max_p=30%,w_q=100%,gentle,ecn"),
        Just("codel:LIMIT,target=1ms,interval=5ms"),
        Just("codel:LIMIT,target=1ms,interval=5ms,ecn"),
        Just("fq-codel:LIMIT,target=1ms,interval=5ms,flows=4,quantum=300"),
        Just("fq-codel:LIMIT,target=1ms,interval=5ms,no-ecn"),
    ];
    (options, size())
        .prop_map(|(options, size)| options.replace("LIMIT", &size.to_string()).parse().unwrap())
}

/// 12 Mbit/s and 20 ms: a bandwidth-delay product of 20 packets.
fn context(seed: u64) -> QueueContext {
    QueueContext {
        rate: "12mbit".parse().unwrap(),
        rtt: "20ms".parse().unwrap(),
        seed,
    }
}

/// The limit in packets, and in bytes.
fn limits(spec: &QueueSpec) -> (u32, u64) {
    match spec.limit() {
        QueueSize::Packets(pkts) => (pkts, u64::MAX),
        QueueSize::Bytes(bytes) => (u32::MAX, bytes),
        QueueSize::BdpMillionths(millionths) => {
            ((millionths * 20).div_ceil(1_000_000).max(1), u64::MAX)
        }
    }
}

/// What came out of a bare queue, in the order in which it did.
struct Run {
    arrived: Vec<Numbered>,
    left: Vec<Numbered>,
    dropped: Vec<Dropped<Numbered>>,
    marked_pkts: u64,
}

/// Runs the steps, holds the queue to its account after each, and empties it at the end.
fn run(spec: &QueueSpec, seed: u64, steps: &[Step]) -> Run {
    let mut queue = spec.build::<Numbered>(&context(seed)).unwrap();
    let (limit_pkts, limit_bytes) = limits(spec);
    let (mut arrived, mut left, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
    // What has to be inside, by number.
    let mut inside: HashMap<usize, Numbered> = HashMap::new();
    let mut now_ns = 0;
    for step in steps {
        let drops_before = dropped.len();
        match *step {
            Step::Arrive(gap_ns, packet) => {
                now_ns += gap_ns;
                arrived.push(packet);
                inside.insert(packet.number, packet);
                let queue_len_pkts = queue.len_pkts();
                let arriving = Waiting {
                    packet,
                    arrived_ns: now_ns,
                    queue_len_pkts,
                };
                let refused = queue.enqueue(now_ns, arriving, &mut dropped);
                let itself = dropped[drops_before..]
                    .iter()
                    .find(|drop| drop.waiting.packet.number == packet.number);
                assert_eq!(refused, itself.map(|drop| drop.reason));
            }
            Step::Leave(gap_ns) => {
                now_ns += gap_ns;
                let was_empty = queue.len_pkts() == 0;
                let next = queue.dequeue(now_ns, &mut dropped);
                assert_eq!(next.is_none(), was_empty, "it gives a packet if it has one");
                if let Some(next) = next {
                    assert!(inside.remove(&next.packet.number).is_some(), "given once");
                    left.push(next.packet);
                }
            }
        }
        for drop in &dropped[drops_before..] {
            assert_eq!(drop.dropped_ns, now_ns);
            let packet = drop.waiting.packet;
            assert!(inside.remove(&packet.number).is_some(), "dropped once");
            if spec.low_priority_dscp().is_some() && !packet.is_low {
                assert!(
                    inside.values().all(|other| !other.is_low),
                    "the low ones go first"
                );
            }
        }
        let bytes = inside
            .values()
            .map(|packet| u64::from(packet.wire_bytes))
            .sum::<u64>();
        assert_eq!(
            (queue.len_pkts() as usize, queue.len_bytes()),
            (inside.len(), bytes)
        );
        assert!(queue.len_pkts() <= limit_pkts && queue.len_bytes() <= limit_bytes);
    }
    while let Some(next) = queue.dequeue(now_ns, &mut dropped) {
        left.push(next.packet);
    }
    assert_eq!((queue.len_pkts(), queue.len_bytes()), (0, 0));
    Run {
        arrived,
        left,
        dropped,
        marked_pkts: queue.marked_pkts(),
    }
}

proptest! {
    #[test]
    fn every_packet_leaves_once_or_is_dropped_once_and_nothing_passes_the_limit(
        spec in queues(), seed in any::<u64>(), steps in steps(),
    ) {
        let run = run(&spec, seed, &steps);
        let mut seen: Vec<Numbered> = run.left.clone();
        seen.extend(run.dropped.iter().map(|drop| drop.waiting.packet));
        let marked = seen.iter().filter(|packet| packet.marked).count() as u64;
        // One that was marked by RED may still have found the buffer full.
        prop_assert_eq!(marked, run.marked_pkts);
        seen.iter_mut().for_each(|packet| packet.marked = false);
        seen.sort_by_key(|packet| packet.number);
        prop_assert_eq!(seen, run.arrived);
    }

    #[test]
    fn each_flow_keeps_its_order_and_all_flows_together_where_there_is_one_queue(
        spec in queues(), seed in any::<u64>(), steps in steps(),
    ) {
        let run = run(&spec, seed, &steps);
        let in_order = |packets: &[Numbered]| packets.is_sorted_by(|a, b| a.number < b.number);
        if !matches!(spec, QueueSpec::FqCodel(_)) {
            prop_assert!(in_order(&run.left));
        }
        for flow in 0..5 {
            let of_flow: Vec<Numbered> =
                run.left.iter().filter(|packet| packet.flow == flow).copied().collect();
            prop_assert!(in_order(&of_flow));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_fates(spec in queues(), seed in any::<u64>(), steps in steps()) {
        let (one, other) = (run(&spec, seed, &steps), run(&spec, seed, &steps));
        prop_assert_eq!(one.left, other.left);
        prop_assert_eq!(one.dropped, other.dropped);
    }

    #[test]
    fn a_queue_is_written_as_it_is_read(spec in queues()) {
        prop_assert_eq!(spec.to_string().parse::<QueueSpec>().unwrap(), spec);
    }
}

/// Everything at once: a queue of any kind, a rate of any kind, and all impairments or none.
fn links() -> impl Strategy<Value = LinkConfig> {
    let rates = prop_oneof![
        Just("12mbit"),
        Just("12mbit@0s,100kbit@3ms,repeat@7ms"),
        Just(""),
        Just("wifi:6mbit/12mbit,hold=5ms,burst=5ms,every=20ms,aggregate=4"),
        Just("wifi:54mbit,aggregate=1"),
        Just("docsis:1mbit,channel=4mbit,collide=30%,busy=5ms,every=20ms"),
        Just("docsis:384kbit,grant_bytes=1500,burst_bytes=1500"),
    ];
    let loss = prop::option::of(prop_oneof![
        Just("20%"),
        Just("gilbert-elliott:p=10%,r=30%"),
        Just("packets:1,2,7"),
    ]);
    let jitter = prop::option::of(prop_oneof![Just("2ms"), Just("2ms,unordered")]);
    let reorder = prop::option::of(Just("20%,by=3ms"));
    let duplicate = prop::option::of(Just("20%"));
    let flow_delay = prop::option::of(prop_oneof![Just("uniform:0s,5ms"), Just("exp:3ms")]);
    (
        queues(),
        rates,
        loss,
        jitter,
        reorder,
        duplicate,
        flow_delay,
        any::<u64>(),
    )
        .prop_map(
            |(queue, rate, loss, jitter, reorder, duplicate, flow_delay, seed)| {
                let nominal = "12mbit".parse().unwrap();
                let mut config = LinkConfig::new(nominal, Span::from_ns(10_000_000), queue);
                config.rate = match rate {
                    "" => headstart_link::RateSpec::Trace(
                        headstart_link::Trace::parse("test", "1\n1\n4\n5\n").unwrap(),
                    ),
                    rate => rate.parse().unwrap(),
                };
                config.loss = loss.map(|text| text.parse().unwrap());
                config.jitter = jitter.map(|text| text.parse().unwrap());
                config.reorder = reorder.map(|text| text.parse().unwrap());
                config.duplicate = duplicate.map(|text| text.parse().unwrap());
                // Long enough for every share of its bandwidth-delay product.
                config.rtt = Span::from_ns(1_000_000_000);
                config.flow_delay = flow_delay.map(|text| text.parse().unwrap());
                config.flow_seed = seed ^ 1;
                config.seed = seed;
                config
            },
        )
}

/// What a link gave back, asked when it wanted to be and after every `ask_every`-th arrival.
fn carried(
    config: &LinkConfig,
    steps: &[Step],
    ask_every: usize,
) -> (
    Vec<Departed<Numbered>>,
    Vec<Dropped<Numbered>>,
    Link<Numbered>,
) {
    let mut link = Link::new(config).unwrap();
    let (mut departed, mut now_ns) = (Vec::new(), 0);
    let mut dropped = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let Step::Arrive(gap_ns, packet) = *step else {
            continue;
        };
        let arrives_ns = now_ns + gap_ns;
        // In time: exactly when it said, so nothing may come out late.
        while let Some(due_ns) = link
            .next_due_ns()
            .filter(|&due_ns| ask_every == 1 && due_ns < arrives_ns)
        {
            while let Some(packet) = link.pop_due(due_ns) {
                assert_eq!(
                    packet.due_ns, due_ns,
                    "nothing was due before the link said so"
                );
                departed.push(packet);
            }
        }
        now_ns = arrives_ns;
        link.arrive(now_ns, packet);
        if number % ask_every == 0 {
            departed.extend(std::iter::from_fn(|| link.pop_due(now_ns)));
            dropped.extend(link.take_dropped());
        }
    }
    while let Some(due_ns) = link.next_due_ns() {
        departed.extend(std::iter::from_fn(|| link.pop_due(due_ns)));
    }
    dropped.extend(link.take_dropped());
    (departed, dropped, link)
}

proptest! {
    #[test]
    fn a_link_accounts_for_every_packet_and_every_copy(
        config in links(), steps in steps(), ask_every in 1usize..10,
    ) {
        let (departed, dropped, link) = carried(&config, &steps, ask_every);
        let counters = link.counters();
        prop_assert_eq!(
            counters.in_pkts + counters.duplicated_pkts,
            counters.out_pkts + counters.dropped_pkts.total()
        );
        prop_assert_eq!(
            counters.in_bytes + counters.duplicated_bytes,
            counters.out_bytes + counters.dropped_bytes
        );
        prop_assert_eq!(departed.len() as u64, counters.out_pkts);
        prop_assert_eq!(dropped.len() as u64, counters.dropped_pkts.total());
        let copies = departed.iter().filter(|packet| packet.is_copy).count() as u64;
        prop_assert_eq!(copies, counters.duplicated_pkts);
        prop_assert!(departed.is_sorted_by_key(|packet| packet.due_ns));
        let delay_ns = config.delay.as_ns();
        prop_assert!(departed.iter().all(|d| d.due_ns >= d.started_ns + delay_ns));
        prop_assert!(departed.iter().all(|d| d.started_ns >= d.arrived_ns));
        if config.reorder.is_none() && !matches!(config.jitter, Some(JitterSpec::Unordered(_)))
            && !matches!(config.queue, QueueSpec::FqCodel(_))
        {
            for flow in 0..5 {
                let of_flow = departed.iter().filter(|d| d.packet.flow == flow);
                prop_assert!(of_flow.is_sorted_by_key(|d| d.packet.number));
            }
        }
        if config.loss.is_none() {
            prop_assert_eq!(counters.dropped_pkts.of(DropReason::Lost), 0);
        }
    }

    #[test]
    fn whenever_a_link_is_asked_the_same_seed_gives_the_same_fates(
        config in links(), steps in steps(), ask_every in 2usize..10,
    ) {
        let (in_time, dropped_in_time, _) = carried(&config, &steps, 1);
        let (late, dropped_late, _) = carried(&config, &steps, ask_every);
        prop_assert_eq!(in_time, late);
        prop_assert_eq!(dropped_in_time, dropped_late);
    }
}
