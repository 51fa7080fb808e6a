//! Timers that expire although nothing is lost, and what undoes or prevents it.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod common;

use common::{dumbbell, group, in_turn, run};
use headstart_sim::{PacingSpec, RecoverySpec, Runner, SackSpec, Traffic, TransferDone, Transport};

/// A slow line: a packet takes 0.6 s there, and the handshake told of 0.15 s.
fn over_a_slow_line(pkts: u64, transport: Transport) -> TransferDone {
    let bytes = pkts * u64::from(transport.mss_bytes);
    let traffic = Traffic::Users(in_turn(&[bytes]));
    let group = group(transport, Runner::Native, traffic);
    let (done, outcome) = run(dumbbell("20kbit", 100, 1000, group));
    assert_eq!(outcome.dropped_pkts, 0);
    done[0]
}

/// RFC 6675 over today's timer, without timestamps: nothing else undoes a timeout.
fn rfc_6675(frto: bool) -> Transport {
    Transport {
        recovery: RecoverySpec::Sack,
        timestamps: false,
        frto: Some(frto),
        ..Transport::linux()
    }
}

#[test]
fn without_f_rto_a_long_queue_alone_makes_much_be_sent_again() {
    let again = over_a_slow_line(40, rfc_6675(false));
    assert!(
        again.timeouts >= 1 && again.retransmitted_pkts >= 9,
        "{again:?}"
    );
}

#[test]
fn f_rto_sends_new_data_and_finds_the_timer_wrong() {
    let undone = over_a_slow_line(40, rfc_6675(true));
    let again = over_a_slow_line(40, rfc_6675(false));
    assert!(undone.timeouts >= 1, "{undone:?}");
    // One packet for each expiry is the test itself.
    assert!(
        undone.retransmitted_pkts <= u64::from(undone.timeouts),
        "{undone:?}"
    );
    assert!(undone.end_ns <= again.end_ns, "{undone:?} {again:?}");
}

#[test]
fn linux_undoes_it_without_timestamps_as_well() {
    let transport = Transport {
        timestamps: false,
        ..Transport::linux()
    };
    let undone = over_a_slow_line(40, transport);
    // A tail loss probe comes first.
    assert!(
        undone.retransmitted_pkts <= u64::from(undone.timeouts) + 1,
        "{undone:?}"
    );
}

#[test]
fn before_2011_a_server_waited_three_seconds_for_the_first_answer() {
    let mut transport = Transport {
        handshake_rtt: false,
        ..rfc_6675(false)
    };
    transport.rto.initial_us = 3_000_000;
    let waited = over_a_slow_line(40, transport);
    assert_eq!(
        (waited.timeouts, waited.retransmitted_pkts),
        (0, 0),
        "{waited:?}"
    );
}

/// Many are lost at once, every third packet, and nothing says which. The second timer is not the first one's doubt
/// again (RFC 5682, 3.2): what is lost is sent by the window, not one packet a timeout. And a receiver whose window
/// could grow keeps it, or its duplicates were none (Linux: `tcp_data_queue_ofo`).
#[test]
fn without_sack_many_losses_are_not_repaired_by_the_timer_alone() {
    let mut transport = Transport {
        timestamps: false,
        mss_bytes: 128,
        pacing: PacingSpec::Off,
        ..Transport::linux()
    };
    transport.receiver.sack = SackSpec::Off;
    let traffic = Traffic::Users(in_turn(&[400 * 128]));
    let group = group(transport, Runner::Native, traffic);
    let mut spec = dumbbell("10mbit", 60, 2000, group);
    let lost: Vec<String> = (60..260).step_by(3).map(|n| n.to_string()).collect();
    spec.links[0].loss = Some(format!("packets:{}", lost.join(",")).parse().unwrap());
    let (done, outcome) = run(spec);
    assert_eq!(outcome.dropped_pkts, 67);
    assert!(done[0].finished && done[0].timeouts <= 5, "{done:?}");
    // It took 256 s, with ten timeouts, each of them twice the one before.
    assert!(done[0].end_ns < 30_000_000_000, "{done:?}");
}
