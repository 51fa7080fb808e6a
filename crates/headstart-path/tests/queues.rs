//! Each kind of queue and each impairment with real packets: the link's own tests hold it to the
//! rules, these show that the router asks it rightly.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod common;

use common::{numbers_received, start_or_skip, symmetric, udp};
use headstart_path::{DropReason, PacketFate, PacketRecord, PathConfig, PathReport};
use nix::sys::socket::{setsockopt, sockopt};

/// Code point 1, "lower effort".
const LOW: u8 = 1 << 2;
/// The sender understands congestion marks: ECT(0).
const ECT: u8 = 0b10;
/// What came of the datagrams.
struct Outcome {
    /// Their numbers, in the order of their arrival.
    received: Vec<u32>,
    packets: Vec<PacketRecord>,
    report: PathReport,
}

impl Outcome {
    fn dropped(&self, reason: DropReason) -> u64 {
        self.report.forward.dropped_pkts.of(reason)
    }

    /// Every datagram came or was dropped, and the log agrees with the counters.
    fn accounts_for(&self, sent: u64) {
        let forward = &self.report.forward;
        let total = forward.dropped_pkts.total();
        let came = self.received.len() as u64;
        assert_eq!(came + total, sent + forward.duplicated_pkts, "{forward:?}");
        let logged = self.packets.iter();
        let dropped = logged.filter(|packet| matches!(packet.fate, PacketFate::Dropped(_)));
        assert_eq!(dropped.count() as u64, total);
    }
}

/// Sends full-sized datagrams from the server, all at once, each of its traffic class, and
/// collects them until none comes any more. Those from number `second_from` on are of another flow.
fn send(config: PathConfig, classes: &[u8], second_from: usize) -> Option<Outcome> {
    let mut emulation = start_or_skip(config)?;
    let (server, client) = (emulation.server(), emulation.client());
    let receiver = udp(client, 9000);
    let address = receiver.local_addr().unwrap();
    let senders = [udp(server, 0), udp(server, 0)];
    for (number, &class) in classes.iter().enumerate() {
        let sender = &senders[usize::from(number >= second_from)];
        setsockopt(sender, sockopt::Ipv4Tos, &i32::from(class)).unwrap();
        let mut payload = [0; 1472];
        payload[..4].copy_from_slice(&u32::try_from(number).unwrap().to_be_bytes());
        sender.send_to(&payload, address).unwrap();
    }
    let received = numbers_received(&receiver);
    let report = emulation.stop().unwrap();
    let packets = emulation.take_packets();
    Some(Outcome {
        received,
        packets,
        report,
    })
}

/// 12 ms a full packet: a burst is over long before the queue has moved.
fn slow(queue: &str, lane: u8) -> PathConfig {
    symmetric("1mbit", "5ms", queue, lane)
}

const ONE_FLOW: usize = usize::MAX;

#[test]
fn priority_drop_loses_the_marked_datagrams_and_no_others() {
    // 10 marked ones fill the queue; 10 others then come to a full one.
    let classes = [[LOW; 10], [0; 10]].concat();
    let Some(outcome) = send(slow("priority:10", 20), &classes, ONE_FLOW) else {
        return;
    };
    outcome.accounts_for(20);
    assert!(
        outcome.dropped(DropReason::PushedOut) >= 7,
        "{:?}",
        outcome.report.forward
    );
    let unmarked = outcome
        .received
        .iter()
        .copied()
        .filter(|&number| number >= 10);
    assert_eq!(
        unmarked.collect::<Vec<u32>>(),
        (10..20).collect::<Vec<u32>>()
    );
    for packet in &outcome.packets {
        let was_dropped = matches!(packet.fate, PacketFate::Dropped(_));
        assert!(!was_dropped || packet.dscp == 1, "{packet:?}");
    }
}

#[test]
fn red_drops_before_the_queue_is_full() {
    let queue = "red:100,min=2,max=6,max_p=50%,w_q=50%";
    let Some(outcome) = send(slow(queue, 21), &[0; 60], ONE_FLOW) else {
        return;
    };
    outcome.accounts_for(60);
    let early = outcome.dropped(DropReason::RedEarly);
    let forced = outcome.dropped(DropReason::RedForced);
    assert_eq!(early + forced, outcome.report.forward.dropped_pkts.total());
    assert!(
        early > 0 && early + forced > 20,
        "{early} early, {forced} forced"
    );
    assert!(outcome.report.forward.longest_queue_pkts < 20);
}

#[test]
fn red_marks_those_who_understand_it_and_the_kernel_takes_the_marked_packet() {
    let queue = "red:100,min=2,max=90,max_p=100%,w_q=100%,ecn";
    let Some(outcome) = send(slow(queue, 22), &[ECT; 40], ONE_FLOW) else {
        return;
    };
    outcome.accounts_for(40);
    // A wrong checksum would have cost the packet: the kernel checks it.
    assert_eq!(outcome.received.len(), 40);
    assert!(
        outcome.report.forward.marked_pkts > 5,
        "{:?}",
        outcome.report.forward
    );
    let came_capable = |packet: &PacketRecord| packet.ecn == ECT;
    assert!(
        outcome.packets.iter().all(came_capable),
        "the log has it as it came"
    );
}

#[test]
fn codel_drops_at_the_head_when_packets_wait_too_long() {
    let queue = "codel:1000,target=5ms,interval=30ms";
    let Some(outcome) = send(slow(queue, 23), &[0; 50], ONE_FLOW) else {
        return;
    };
    outcome.accounts_for(50);
    let dropped = outcome.dropped(DropReason::Codel);
    assert!((3..40).contains(&dropped), "{dropped}");
    let numbers = &outcome.received;
    assert!(numbers.is_sorted());
    assert_eq!(numbers.last(), Some(&49), "the tail is let in");
}

#[test]
fn fq_codel_lets_a_thin_flow_overtake_and_drops_of_the_fattest() {
    // 40 of one flow, then 5 of another: ports tell them apart.
    let Some(outcome) = send(slow("fq-codel:20,no-ecn", 24), &[0; 45], 40) else {
        return;
    };
    outcome.accounts_for(45);
    assert!(
        outcome.dropped(DropReason::FattestFlow) > 10,
        "{:?}",
        outcome.report.forward
    );
    let (thin, fat): (Vec<u32>, Vec<u32>) =
        outcome.received.iter().partition(|&&number| number >= 40);
    assert_eq!(thin, [40, 41, 42, 43, 44]);
    assert!(fat.is_sorted() && fat.last() == Some(&39), "{fat:?}");
    assert_eq!(outcome.received.last(), Some(&39), "{:?}", outcome.received);
}

#[test]
fn a_queue_in_bytes_and_one_in_bandwidth_delay_products_hold_what_they_say() {
    // 7500 bytes are 5 packets; 1 Mbit/s and 96 ms are 12 kB: half of it is 4 packets.
    for (queue, lane, holds) in [("drop-tail:7500B", 25, 5), ("drop-tail:0.5bdp", 26, 4)] {
        let config = symmetric("1mbit", "48ms", queue, lane);
        let Some(outcome) = send(config, &[0; 30], ONE_FLOW) else {
            return;
        };
        outcome.accounts_for(30);
        assert_eq!(outcome.report.forward.longest_queue_pkts, holds, "{queue}");
        assert!(outcome.dropped(DropReason::QueueFull) > 10);
    }
}

#[test]
fn the_datagrams_named_are_lost_and_some_come_twice() {
    let mut config = symmetric("100mbit", "5ms", "drop-tail:100", 27);
    config.forward.loss = Some("packets:2,5,6".parse().unwrap());
    let Some(outcome) = send(config, &[0; 10], ONE_FLOW) else {
        return;
    };
    outcome.accounts_for(10);
    assert_eq!(outcome.received, [0, 2, 3, 6, 7, 8, 9]);
    assert_eq!(outcome.dropped(DropReason::Lost), 3);
    let mut config = symmetric("100mbit", "5ms", "drop-tail:100", 28);
    config.forward.duplicate = Some("100%".parse().unwrap());
    let Some(outcome) = send(config, &[0; 10], ONE_FLOW) else {
        return;
    };
    outcome.accounts_for(10);
    assert_eq!(
        outcome.received,
        (0..10).flat_map(|n| [n, n]).collect::<Vec<u32>>()
    );
}

#[test]
fn datagrams_overtake_each_other_where_the_wire_lets_them() {
    let mut config = symmetric("100mbit", "5ms", "drop-tail:100", 29);
    config.forward.reorder = Some("30%,by=40ms".parse().unwrap());
    let Some(outcome) = send(config, &[0; 40], ONE_FLOW) else {
        return;
    };
    outcome.accounts_for(40);
    assert!(!outcome.received.is_sorted());
    assert!(outcome.report.valid || outcome.report.forward.lateness_us.p50 < 500.0);
}

#[test]
fn a_trace_delivers_at_its_own_times() {
    let mut config = symmetric("100mbit", "5ms", "drop-tail:100", 30);
    let trace = headstart_link::Trace::parse("test", "50\n50\n100\n").unwrap();
    config.forward.rate = headstart_link::RateSpec::Trace(trace);
    let Some(outcome) = send(config, &[0; 9], ONE_FLOW) else {
        return;
    };
    outcome.accounts_for(9);
    assert_eq!(outcome.received, (0..9).collect::<Vec<u32>>());
    let first_ns = outcome.packets[0].left_ns.unwrap();
    let left_ms = |packet: &PacketRecord| (packet.left_ns.unwrap() - first_ns) as f64 / 1e6;
    for packet in &outcome.packets {
        // Opportunities are 50 ms apart, and nothing comes between them.
        let from_slot = left_ms(packet).rem_euclid(50.0);
        assert!(!(15.0..35.0).contains(&from_slot), "{}", left_ms(packet));
    }
    let last_ms = left_ms(&outcome.packets[8]);
    assert!(
        (240.0..360.0).contains(&last_ms),
        "9 packets at 3 in 100 ms: {last_ms}"
    );
}
