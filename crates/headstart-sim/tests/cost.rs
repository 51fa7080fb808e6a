//! What losses cost a sender: the walk of a linked list for SACK blocks, and timeouts.

mod common;

use common::{dumbbell, group, in_turn, run};
use headstart_sim::{
    AvoidanceSpec, RecoverySpec, Runner, SackSpec, Traffic, TransferDone, Transport, WindowSpec,
};

const MSS_BYTES: u32 = 1448;

/// 10 MB over 100 Mbit/s, 100 ms and a buffer of a product, 833 packets.
fn ten_megabytes(change: impl FnOnce(&mut Transport)) -> TransferDone {
    let mut transport = Transport::linux();
    transport.recovery = RecoverySpec::Sack;
    transport.avoidance = AvoidanceSpec::Reno;
    transport.receiver.window = WindowSpec::Fixed(1 << 30);
    change(&mut transport);
    let traffic = Traffic::Users(in_turn(&[10_000_000]));
    let flow = group(transport, Runner::Native, traffic);
    let (done, _) = run(dumbbell("100mbit", 100, 833, flow));
    done[0]
}

#[test]
fn without_a_loss_nothing_is_walked_and_no_timer_expires() {
    // Path and buffer hold more than this.
    let window_bytes = 1000 * MSS_BYTES;
    let done = ten_megabytes(|t| t.receiver.window = WindowSpec::Fixed(window_bytes));
    assert!(done.finished);
    assert_eq!((done.dropped_pkts, done.retransmitted_pkts), (0, 0));
    assert_eq!((done.sack_walk_pkts, done.timeouts), (0, 0));
}

#[test]
fn an_overshoot_walks_further_than_the_square_of_the_product() {
    let done = ten_megabytes(|_| {});
    assert!(done.finished && done.dropped_pkts > 833, "{done:?}");
    // Each of hundreds of ACKs walks over hundreds of packets.
    assert!(done.sack_walk_pkts > 833 * 833, "{done:?}");
}

#[test]
fn without_sack_nothing_is_walked_and_the_losses_take_timeouts() {
    let done = ten_megabytes(|t| t.receiver.sack = SackSpec::Off);
    assert!(done.finished && done.dropped_pkts > 0, "{done:?}");
    assert_eq!(done.sack_walk_pkts, 0);
    assert!(done.timeouts > 0, "{done:?}");
}
