//! The link as its two users see it: arrivals in, departures and drops out.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use headstart_link::{
    Departed, DropReason, Dropped, Fate, Link, LinkConfig, Packet, QueueSize, QueueSpec, Rate,
    RateSpec, Span, Trace,
};
use proptest::prelude::*;

/// A packet that knows its number and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbered {
    number: usize,
    wire_bytes: u32,
}

impl Packet for Numbered {
    fn wire_bytes(&self) -> u32 {
        self.wire_bytes
    }
}

fn link(rate: &str, delay: &str, queue: &str) -> Link<Numbered> {
    let (rate, delay) = (rate.parse().unwrap(), delay.parse().unwrap());
    Link::new(&LinkConfig::new(rate, delay, queue.parse().unwrap())).unwrap()
}

fn full_sized(number: usize) -> Numbered {
    Numbered {
        number,
        wire_bytes: 1500,
    }
}

/// Everything that the link gives back up to `now_ns`.
fn due_numbers(link: &mut Link<Numbered>, now_ns: u64) -> Vec<usize> {
    std::iter::from_fn(|| link.pop_due(now_ns))
        .map(|departed| departed.packet.number)
        .collect()
}

#[test]
fn a_lone_packet_is_due_after_its_serialization_and_the_delay() {
    let mut link = link("12mbit", "200ms", "drop-tail:10");
    assert_eq!(link.next_due_ns(), None);
    assert_eq!(
        link.arrive(5_000, full_sized(0)),
        Fate::Queued { queue_len_pkts: 0 }
    );
    assert_eq!(link.next_due_ns(), Some(201_005_000));
    assert_eq!(link.pop_due(201_004_999), None);
    let departed = link.pop_due(201_005_000).unwrap();
    assert_eq!((departed.arrived_ns, departed.started_ns), (5_000, 5_000));
    assert_eq!(link.next_due_ns(), None);
}

#[test]
fn the_packet_in_transmission_is_not_counted_against_the_limit() {
    let mut link = link("12mbit", "0ms", "drop-tail:2");
    assert_eq!(
        link.arrive(0, full_sized(0)),
        Fate::Queued { queue_len_pkts: 0 }
    );
    assert_eq!(
        link.queue_len_pkts(),
        0,
        "the first goes straight into transmission"
    );
    assert_eq!(
        link.arrive(0, full_sized(1)),
        Fate::Queued { queue_len_pkts: 0 }
    );
    assert_eq!(
        link.arrive(0, full_sized(2)),
        Fate::Queued { queue_len_pkts: 1 }
    );
    assert_eq!(
        link.arrive(0, full_sized(3)),
        Fate::Dropped(DropReason::QueueFull)
    );
    let dropped: Vec<Dropped<Numbered>> = link.take_dropped().collect();
    assert_eq!(dropped.len(), 1);
    assert_eq!(
        (
            dropped[0].waiting.packet.number,
            dropped[0].waiting.queue_len_pkts
        ),
        (3, 2)
    );
    assert_eq!(link.take_dropped().count(), 0);
    assert_eq!(due_numbers(&mut link, 10_000_000), [0, 1, 2]);
    assert_eq!(link.counters().dropped_pkts.of(DropReason::QueueFull), 1);
    assert_eq!(link.counters().longest_queue_pkts, 2);
}

#[test]
fn a_transmission_that_ends_now_makes_room_for_a_packet_that_comes_now() {
    let mut link = link("12mbit", "0ms", "drop-tail:1");
    link.arrive(0, full_sized(0));
    link.arrive(0, full_sized(1));
    assert_eq!(
        link.arrive(999_999, full_sized(2)),
        Fate::Dropped(DropReason::QueueFull)
    );
    assert_eq!(
        link.arrive(1_000_000, full_sized(3)),
        Fate::Queued { queue_len_pkts: 0 }
    );
    assert_eq!(due_numbers(&mut link, 10_000_000), [0, 1, 3]);
}

#[test]
fn a_late_reader_finds_the_packets_with_the_times_they_were_due() {
    let mut link = link("12mbit", "10ms", "drop-tail:10");
    for number in 0..3 {
        link.arrive(0, full_sized(number));
    }
    let dues: Vec<u64> = std::iter::from_fn(|| link.pop_due(1_000_000_000))
        .map(|d| d.due_ns)
        .collect();
    assert_eq!(dues, [11_000_000, 12_000_000, 13_000_000]);
    // The next packet finds the link idle, not delayed by the late reader.
    link.arrive(1_000_000_000, full_sized(3));
    assert_eq!(link.next_due_ns(), Some(1_011_000_000));
}

#[test]
fn a_time_that_goes_back_counts_as_the_latest_one() {
    let mut link = link("12mbit", "0ms", "drop-tail:10");
    link.arrive(5_000_000, full_sized(0));
    link.arrive(4_000_000, full_sized(1));
    assert_eq!(
        link.pop_due(6_000_000).map(|d| d.arrived_ns),
        Some(5_000_000)
    );
    assert_eq!(
        link.pop_due(7_000_000).map(|d| d.arrived_ns),
        Some(5_000_000)
    );
}

#[test]
fn what_is_left_at_the_end_is_handed_out_and_not_counted_as_carried() {
    let mut link = link("12mbit", "10ms", "drop-tail:10");
    for number in 0..4 {
        link.arrive(0, full_sized(number));
    }
    assert_eq!(due_numbers(&mut link, 11_000_000), [0]);
    let left: Vec<usize> = link.drain().iter().map(|w| w.packet.number).collect();
    assert_eq!(left, [1, 2, 3]);
    assert_eq!((link.counters().in_pkts, link.counters().out_pkts), (4, 1));
    assert_eq!(link.next_due_ns(), None);
}

#[test]
fn a_queue_without_room_is_refused() {
    let rate = "1mbit".parse().unwrap();
    let config = LinkConfig::new(rate, Span::ZERO, QueueSpec::drop_tail(0));
    assert!(Link::<Numbered>::new(&config).is_err());
}

#[test]
fn counters_are_written_with_the_reasons_of_the_drops() {
    let mut link = link("12mbit", "0ms", "drop-tail:1");
    for number in 0..4 {
        link.arrive(0, full_sized(number));
    }
    let json = serde_json::to_value(link.counters()).unwrap();
    assert_eq!(json["in_pkts"], 4);
    assert_eq!(json["dropped_pkts"]["queue-full"], 2);
}

/// What a random run of the link gave back.
struct Run {
    arrivals: Vec<(u64, Numbered)>,
    departed: Vec<Departed<Numbered>>,
    dropped: Vec<Dropped<Numbered>>,
    link: Link<Numbered>,
}

/// Offers `steps` of (gap to the one before, size) and asks for due packets after every
/// `ask_every`-th arrival; at the end, for all.
fn run(config: &LinkConfig, steps: &[(u64, u32)], ask_every: usize) -> Run {
    let mut link = Link::new(config).unwrap();
    let (mut arrivals, mut departed, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
    let mut now_ns = 0;
    for (number, &(gap_ns, wire_bytes)) in steps.iter().enumerate() {
        now_ns += gap_ns;
        let packet = Numbered { number, wire_bytes };
        arrivals.push((now_ns, packet));
        link.arrive(now_ns, packet);
        if number % ask_every == 0 {
            departed.extend(std::iter::from_fn(|| link.pop_due(now_ns)));
            dropped.extend(link.take_dropped());
        }
    }
    while let Some(due_ns) = link.next_due_ns() {
        departed.extend(link.pop_due(due_ns));
    }
    dropped.extend(link.take_dropped());
    Run {
        arrivals,
        departed,
        dropped,
        link,
    }
}

fn configs() -> impl Strategy<Value = LinkConfig> {
    (1u64..2_000_000_000, 0u64..1_000_000_000, 1u32..60).prop_map(|(rate, delay_ns, limit_pkts)| {
        LinkConfig::new(
            Rate::from_bits_per_s(rate).unwrap(),
            Span::from_ns(delay_ns),
            QueueSpec::drop_tail(limit_pkts),
        )
    })
}

/// Gaps from bursts to pauses, sizes from an ACK to a full packet.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap_ns = prop_oneof![3 => Just(0u64), 3 => 0u64..2_000_000, 1 => 0u64..3_000_000_000];
    prop::collection::vec((gap_ns, 20u32..=1500), 1..300)
}

proptest! {
    #[test]
    fn every_packet_and_byte_comes_out_once_or_is_dropped_once(
        config in configs(), steps in arrivals(), ask_every in 1usize..20,
    ) {
        let run = run(&config, &steps, ask_every);
        let mut seen: Vec<Numbered> = run.departed.iter().map(|d| d.packet).collect();
        seen.extend(run.dropped.iter().map(|d| d.waiting.packet));
        seen.sort_by_key(|packet| packet.number);
        let offered: Vec<Numbered> = run.arrivals.iter().map(|(_, packet)| *packet).collect();
        prop_assert_eq!(seen, offered);
        let counters = run.link.counters();
        prop_assert_eq!(counters.in_pkts, counters.out_pkts + counters.dropped_pkts.total());
        prop_assert_eq!(counters.in_bytes, counters.out_bytes + counters.dropped_bytes);
    }

    #[test]
    fn packets_leave_in_the_order_in_which_they_came(
        config in configs(), steps in arrivals(), ask_every in 1usize..20,
    ) {
        let run = run(&config, &steps, ask_every);
        prop_assert!(run.departed.is_sorted_by(|a, b| a.packet.number < b.packet.number));
    }

    #[test]
    fn no_more_packets_wait_than_the_limit_and_none_is_dropped_below_it(
        config in configs(), steps in arrivals(), ask_every in 1usize..20,
    ) {
        let QueueSize::Packets(limit_pkts) = config.queue.limit() else { unreachable!() };
        let run = run(&config, &steps, ask_every);
        prop_assert!(run.link.counters().longest_queue_pkts <= limit_pkts);
        prop_assert!(run.departed.iter().all(|d| d.queue_len_pkts < limit_pkts));
        prop_assert!(run.dropped.iter().all(|d| d.waiting.queue_len_pkts == limit_pkts));
    }

    #[test]
    fn departures_are_spaced_by_the_serialization_time_and_never_before_it(
        config in configs(), steps in arrivals(), ask_every in 1usize..20,
    ) {
        let run = run(&config, &steps, ask_every);
        let serialization_ns = |packet: Numbered| {
            (u128::from(packet.wire_bytes) * 8_000_000_000 / u128::from(config.rate.nominal().bits_per_s()))
                as u64
        };
        for pair in run.departed.windows(2) {
            let spacing_ns = pair[1].due_ns - pair[0].due_ns;
            prop_assert!(spacing_ns >= serialization_ns(pair[1].packet));
        }
        for departed in &run.departed {
            let least_ns = serialization_ns(departed.packet) + config.delay.as_ns();
            prop_assert!(departed.due_ns - departed.arrived_ns >= least_ns);
            prop_assert!(departed.started_ns >= departed.arrived_ns);
        }
    }

    #[test]
    fn the_rate_is_exact_over_a_long_busy_period(
        rate in 1_000u64..10_000_000_000, sizes in prop::collection::vec(20u32..=1500, 1..2000),
    ) {
        let rate_of_link = Rate::from_bits_per_s(rate).unwrap();
        let config = LinkConfig::new(rate_of_link, Span::ZERO, QueueSpec::drop_tail(2000));
        let steps: Vec<(u64, u32)> = sizes.iter().map(|&size| (0, size)).collect();
        let run = run(&config, &steps, 1);
        let bits: u128 = sizes.iter().map(|&size| u128::from(size) * 8).sum();
        let exact_ns = (bits * 1_000_000_000).div_ceil(u128::from(rate));
        prop_assert_eq!(run.departed.len(), sizes.len());
        prop_assert_eq!(u128::from(run.departed.last().unwrap().due_ns), exact_ns);
    }

    #[test]
    fn a_trace_is_replayed_opportunity_by_opportunity(
        mut at_ms in prop::collection::vec(0u64..200, 1..50), gaps in prop::collection::vec(0u64..9_000_000, 1..200),
    ) {
        at_ms.sort_unstable();
        at_ms.push(200);
        let text: String = at_ms.iter().map(|ms| format!("{ms}\n")).collect();
        let trace = Trace::parse("random", &text).unwrap();
        let mut config = LinkConfig::new("1mbit".parse().unwrap(), Span::ZERO, QueueSpec::drop_tail(1000));
        config.rate = RateSpec::Trace(trace);
        let steps: Vec<(u64, u32)> = gaps.iter().map(|&gap_ns| (gap_ns, 1500)).collect();
        let run = run(&config, &steps, 1);
        // Each packet takes the first opportunity after its arrival that none has taken before it.
        let mut opportunities = (0u64..).flat_map(|round| {
            at_ms.iter().map(move |ms| (round * 200 + ms) * 1_000_000)
        });
        prop_assert_eq!(run.departed.len(), gaps.len());
        for departed in run.departed {
            let expected = opportunities.find(|&at_ns| at_ns > departed.arrived_ns);
            prop_assert_eq!(Some(departed.due_ns), expected);
        }
    }

    #[test]
    fn how_often_the_link_is_asked_changes_no_fate(
        config in configs(), steps in arrivals(), ask_every in 2usize..50,
    ) {
        let (often, seldom) = (run(&config, &steps, 1), run(&config, &steps, ask_every));
        prop_assert_eq!(often.departed, seldom.departed);
        prop_assert_eq!(often.dropped, seldom.dropped);
    }
}
