//! The emulated and the virtual link give the same fates for the same arrivals: what the router
//! logged of real traffic, given again to a link without a clock.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod common;

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use common::{start_or_skip, symmetric, transfer, udp};
use headstart_link::{Link, Packet};
use headstart_path::{Direction, DropReason, LinkConfig, PacketFate, PacketRecord, PathConfig};
use nix::sys::socket::{setsockopt, sockopt};

/// What a link asks of a packet, from the log.
#[derive(Clone)]
struct Logged {
    number: u64,
    wire_bytes: u32,
    dscp: u8,
    flow_hash: u64,
    ecn_capable: bool,
    marked: bool,
}

impl Packet for Logged {
    fn wire_bytes(&self) -> u32 {
        self.wire_bytes
    }
    fn dscp(&self) -> u8 {
        self.dscp
    }
    fn flow_hash(&self) -> u64 {
        self.flow_hash
    }
    fn ecn_capable(&self) -> bool {
        self.ecn_capable
    }
    fn mark_congestion(&mut self) {
        self.marked = true;
    }
}

/// How a packet ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Delivered {
        started_ns: u64,
        due_ns: u64,
        queue_len_pkts: u32,
        marked: bool,
    },
    Dropped {
        reason: DropReason,
        dropped_ns: u64,
        queue_len_pkts: u32,
    },
}

/// By the packet's number and whether it is a copy.
type Ends = HashMap<(u64, bool), End>;

fn logged_ends(packets: &[PacketRecord]) -> Ends {
    let ends = packets.iter().filter_map(|packet| {
        let queue_len_pkts = packet.queue_len_pkts;
        let end = match packet.fate {
            PacketFate::Delivered => End::Delivered {
                started_ns: packet.started_ns.unwrap(),
                due_ns: packet.due_ns.unwrap(),
                queue_len_pkts,
                marked: packet.marked,
            },
            PacketFate::Dropped(reason) => End::Dropped {
                reason,
                dropped_ns: packet.dropped_ns.unwrap(),
                queue_len_pkts,
            },
            PacketFate::InFlight => return None,
        };
        Some(((packet.number, packet.is_copy), end))
    });
    ends.collect()
}

fn virtual_ends(config: &LinkConfig, began_ns: u64, arrivals: &[PacketRecord]) -> Ends {
    let mut link: Link<Logged> = Link::starting_at(config, began_ns).unwrap();
    let mut ends = Ends::new();
    let collect = |link: &mut Link<Logged>, now_ns, ends: &mut Ends| {
        while let Some(departed) = link.pop_due(now_ns) {
            let end = End::Delivered {
                started_ns: departed.started_ns,
                due_ns: departed.due_ns,
                queue_len_pkts: departed.queue_len_pkts,
                marked: departed.packet.marked,
            };
            ends.insert((departed.packet.number, departed.is_copy), end);
        }
        for dropped in link.take_dropped() {
            let end = End::Dropped {
                reason: dropped.reason,
                dropped_ns: dropped.dropped_ns,
                queue_len_pkts: dropped.waiting.queue_len_pkts,
            };
            ends.insert((dropped.waiting.packet.number, false), end);
        }
    };
    for arrival in arrivals {
        let packet = Logged {
            number: arrival.number,
            wire_bytes: arrival.wire_bytes,
            dscp: arrival.dscp,
            flow_hash: arrival.flow_hash,
            ecn_capable: arrival.ecn != 0,
            marked: false,
        };
        link.arrive(arrival.at_ns, packet);
        // Asked at other times than the router asks.
        if arrival.number % 7 == 0 {
            collect(&mut link, arrival.at_ns, &mut ends);
        }
    }
    collect(&mut link, u64::MAX / 2, &mut ends);
    ends
}

/// Longer than any path here holds a packet.
const SETTLING: Duration = Duration::from_millis(500);

/// Real traffic: TCP, and a flood of datagrams of which every other one has low priority and some
/// understand congestion marks. Then the same arrivals again.
fn the_same_fates(config: PathConfig) {
    let links = [config.forward.clone(), config.reverse.clone()];
    let Some(mut emulation) = start_or_skip(config) else {
        return;
    };
    let (server, client) = (emulation.server(), emulation.client());
    let (socket, _sink) = (udp(server, 0), udp(client, 9000));
    for number in 0..60 {
        let class = [1 << 2, 0, 2, 1 << 2 | 2][number % 4];
        setsockopt(&socket, sockopt::Ipv4Tos, &class).unwrap();
        socket
            .send_to(&[0; 1000], (client.addr_v4(), 9000))
            .unwrap();
    }
    transfer(&emulation, emulation.server().addr_v4().into(), 400_000);
    // What is still on its way has no end in the log.
    thread::sleep(SETTLING);
    let report = emulation.stop().unwrap();
    let mut packets = emulation.take_packets();
    packets.sort_by_key(|packet| (packet.number, packet.is_copy));
    let directions = [
        (Direction::Forward, report.forward.began_ns),
        (Direction::Reverse, report.reverse.began_ns),
    ];
    for ((direction, began_ns), link) in directions.into_iter().zip(&links) {
        let of_it = packets
            .iter()
            .filter(|packet| packet.direction == direction);
        let of_it: Vec<PacketRecord> = of_it.cloned().collect();
        let arrivals = of_it.iter().filter(|packet| !packet.is_copy).cloned();
        let arrivals: Vec<PacketRecord> = arrivals.collect();
        assert!(arrivals.len() > 50, "{direction:?}: {}", arrivals.len());
        let (logged, again) = (logged_ends(&of_it), virtual_ends(link, began_ns, &arrivals));
        assert!(
            logged.len() + 5 >= arrivals.len(),
            "hardly any is in flight"
        );
        for (packet, end) in &logged {
            assert_eq!(again.get(packet), Some(end), "{direction:?} {packet:?}");
        }
    }
    assert!(
        packets
            .iter()
            .any(|packet| matches!(packet.fate, PacketFate::Dropped(_))),
        "or this would prove little"
    );
}

fn config(queue: &str, lane: u8) -> PathConfig {
    let mut config = symmetric("8mbit", "5ms", queue, lane);
    for (seed, link) in [(7, &mut config.forward), (!7, &mut config.reverse)] {
        link.seed = seed;
        link.loss = Some("1%".parse().unwrap());
        link.jitter = Some("2ms".parse().unwrap());
    }
    config
}

#[test]
fn drop_tail_gives_the_same_fates() {
    the_same_fates(config("drop-tail:20", 40));
}

#[test]
fn priority_drop_gives_the_same_fates() {
    the_same_fates(config("priority:20", 41));
}

#[test]
fn red_gives_the_same_fates() {
    the_same_fates(config("red:50,min=2,max=20,max_p=20%,w_q=5%,ecn", 42));
}

#[test]
fn codel_gives_the_same_fates() {
    the_same_fates(config("codel:100,target=2ms,interval=20ms", 43));
}

#[test]
fn fq_codel_gives_the_same_fates() {
    the_same_fates(config("fq-codel:60,target=2ms,interval=20ms", 44));
}

#[test]
fn a_wire_that_copies_and_reorders_and_a_rate_in_steps_give_the_same_fates() {
    let mut config = config("drop-tail:20", 45);
    config.forward.duplicate = Some("5%".parse().unwrap());
    config.forward.reorder = Some("5%,by=3ms".parse().unwrap());
    config.forward.rate = "8mbit@0s,2mbit@50ms,repeat@100ms".parse().unwrap();
    the_same_fates(config);
}
