//! A drop in the sender's own queue while a start's window leaves.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::process::Command;

use headstart_core::{INFINITE_SSTHRESH, LossKind, Path};
use headstart_kernel::{Kernel, Record};
use headstart_path::{Namespace, PacketRecord};
use support::*;

const RTT_MS: u64 = 100;
const WINDOW_PKTS: u32 = 150;

/// A queue of one packet before the path, which drops that where another comes: TCP is told (`NET_XMIT_CN`, as by
/// fq_codel and red), and goes on. False where the kernel or the machine cannot.
fn short_queue(namespace: &Namespace) -> bool {
    let shaper = "qdisc add dev tun0 root handle 1: tbf rate 400mbit burst 2kb limit 10kb";
    let queue = "qdisc add dev tun0 parent 1: pfifo_head_drop limit 1";
    [shaper, queue].iter().all(|arguments| {
        let mut command = Command::new("tc");
        command.args(arguments.split(' '));
        let child = namespace.spawn(command);
        child.is_ok_and(|mut child| child.wait().unwrap().success())
    })
}

/// A known path's window over that queue: what the start-up was told, and what got through. `None`: there is no such queue.
fn fetch(kernel: &Kernel) -> Option<(Vec<Record>, Vec<PacketRecord>)> {
    let lane = Lane::new(kernel, 1, "400mbit", RTT_MS, 1000);
    lane.open_receiver();
    lane.server_uses("su_fast_start");
    if !short_queue(lane.emulation.server()) {
        eprintln!("SKIPPED: tc has no tbf or pfifo_head_drop here");
        return None;
    }
    let rtt_us = RTT_MS as u32 * 1000;
    let known = Path {
        cwnd_pkts: WINDOW_PKTS,
        ssthresh_pkts: INFINITE_SSTHRESH,
        srtt_us: rtt_us,
        rttvar_us: 1000,
        min_rtt_us: rtt_us,
        samples: 1,
        ..Path::default()
    };
    remember(kernel, &lane, known);
    let mut client = lane.connect();
    client.fetch(300_000);
    Some((kernel.take_records().unwrap(), lane.wire(&client)))
}

/// The first ten packets leave at once and are too many for the queue. The rest was to be spread over a round trip; when
/// the pacing ended with the drop, it left as a burst, of which next to nothing got through that queue.
#[test]
fn after_a_drop_in_the_local_queue_the_rest_of_the_window_is_paced_as_before() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&fast_start(&[("maxburst_pkts", 1)])) else {
        return;
    };
    // Where another process had the CPU while the ten left, the queue took them all.
    for last in [false, false, true] {
        let Some((records, packets)) = fetch(&kernel) else {
            return;
        };
        let dropped = that_says(&records, "ordinary-loss");
        if dropped.event.loss == LossKind::Ecn as u8 {
            return assert_paced(dropped, &packets);
        }
        assert!(!last, "no packet is known to be lost: {:?}", dropped.event);
    }
}

fn assert_paced(dropped: &Record, packets: &[PacketRecord]) {
    assert!(
        dropped.event.cwnd_pkts == WINDOW_PKTS && dropped.event.inflight_pkts < 20,
        "while the window left: {:?}",
        dropped.event
    );
    let flight = first_flight(packets);
    // What is left is the stack's, and leaves in pairs, of which the queue takes one: 75 in all. Of a burst it took 6.
    assert!(
        flight.len() > 40,
        "{} of {WINDOW_PKTS} packets got through the queue",
        flight.len()
    );
    let most = largest_burst(&flight[10..], 10.0);
    // 140 packets in 100 ms are 14 in 10 ms; a router that is served late sees a few more at once.
    assert!(
        most < 40,
        "{most} of {} packets left within 10 ms",
        flight.len()
    );
}
