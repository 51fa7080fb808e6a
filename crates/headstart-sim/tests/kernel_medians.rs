//! Against Linux 6.18 over an emulated path of 100 Mbit/s, 102 ms and 850 packets: the medians of ten
//! repeats a cell, handshake included, measured with `headstart compare` on a quiet machine.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod common;

use common::{dumbbell, group, in_turn, run};
use headstart_sim::{AvoidanceSpec, Runner, Traffic, Transport};

/// What nginx puts before the body.
const HEADER_BYTES: u64 = 247;

struct Measured {
    avoidance: AvoidanceSpec,
    bytes: u64,
    median_ms: f64,
    drops: u64,
}

const fn measured(avoidance: AvoidanceSpec, bytes: u64, median_ms: f64, drops: u64) -> Measured {
    Measured {
        avoidance,
        bytes,
        median_ms,
        drops,
    }
}

const KERNEL: [Measured; 12] = [
    measured(AvoidanceSpec::CubicHystart, 10_000, 205.8, 0),
    measured(AvoidanceSpec::CubicHystart, 100_000, 414.5, 0),
    measured(AvoidanceSpec::CubicHystart, 1_000_000, 826.8, 0),
    measured(AvoidanceSpec::CubicHystart, 10_000_000, 1598.7, 0),
    measured(AvoidanceSpec::Cubic, 10_000, 205.8, 0),
    measured(AvoidanceSpec::Cubic, 100_000, 414.6, 0),
    measured(AvoidanceSpec::Cubic, 1_000_000, 827.0, 0),
    measured(AvoidanceSpec::Cubic, 10_000_000, 1791.5, 1759),
    measured(AvoidanceSpec::Reno, 10_000, 206.0, 0),
    measured(AvoidanceSpec::Reno, 100_000, 414.5, 0),
    measured(AvoidanceSpec::Reno, 1_000_000, 827.1, 0),
    measured(AvoidanceSpec::Reno, 10_000_000, 1689.5, 1713),
];

/// The path's own lateness, 70 to 150 us a round trip, is in the kernel's numbers and not in these:
/// so one percent is asked where five would be allowed. Not of transfers that lose 1700 packets: the last
/// 55 of them are lost from the transfer's own tail, and whether three of these are sent again in this
/// round trip or in the next is 50 ms (the kernel itself took 1695 to 1820 ms in docs/validation.md).
#[test]
fn a_fresh_connection_takes_as_long_as_on_the_kernel_and_loses_as_much() {
    for cell in KERNEL {
        let transport = Transport {
            avoidance: cell.avoidance,
            ..Transport::linux()
        };
        let traffic = Traffic::Users(in_turn(&[cell.bytes + HEADER_BYTES]));
        let spec = dumbbell(
            "100mbit",
            102,
            850,
            group(transport, Runner::Native, traffic),
        );
        let (done, outcome) = run(spec);
        let took_ms = done[0].duration_ns() as f64 / 1e6;
        let drops = outcome.links[0].dropped_pkts.total();
        let what = format!(
            "{:?}, {} bytes: {took_ms} ms, {drops} drops",
            cell.avoidance, cell.bytes
        );
        let allowed = if cell.drops > 0 { 0.03 } else { 0.01 };
        assert!((took_ms / cell.median_ms - 1.0).abs() < allowed, "{what}");
        assert!(
            drops.abs_diff(cell.drops) <= (cell.drops / 100).max(5),
            "{what}"
        );
    }
}

/// `HyStart` left slow start at a threshold of about 1073 packets.
#[test]
fn hystart_leaves_slow_start_where_the_kernels_does() {
    let traffic = Traffic::Users(in_turn(&[10_000_000 + HEADER_BYTES]));
    let spec = dumbbell(
        "100mbit",
        102,
        850,
        group(Transport::linux(), Runner::Native, traffic),
    );
    let (done, _) = run(spec);
    let cwnd_pkts = done[0].slow_start_end.unwrap().cwnd_pkts;
    assert!(cwnd_pkts.abs_diff(1073) <= 53, "{cwnd_pkts}");
}
