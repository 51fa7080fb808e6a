//! What a start's pacing has kept back when the start ends.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod common;

use common::{dumbbell, group, in_turn};
use headstart_core::{Params, Path, Startup, why_name};
use headstart_link::QueueSpec;
use headstart_sim::{
    Observer, PacketFate, PacketKind, Runner, SimPacket, Simulation, Traffic, TransferDone,
    Transport,
};

const RTT_MS: u64 = 100;
const WINDOW_PKTS: u32 = 255;
const NS_PER_MS: u64 = 1_000_000;
const BURST_NS: u64 = 4 * NS_PER_MS;

/// When data left, and why the start did.
#[derive(Default)]
struct Leaving {
    at_ns: Vec<u64>,
    why: u8,
}

impl Observer for Leaving {
    const PACKETS: bool = true;

    fn transfer(&mut self, done: &TransferDone) {
        self.why = done.exit.unwrap().why;
    }

    fn packet(&mut self, at_ns: u64, _: u32, packet: &SimPacket, fate: PacketFate) {
        if packet.kind == PacketKind::Data && fate == PacketFate::Sent {
            self.at_ns.push(at_ns);
        }
    }
}

impl Leaving {
    /// The most packets that left within [`BURST_NS`] from `from_ms` to `to_ms`.
    fn largest_burst(&self, from_ms: u64, to_ms: u64) -> usize {
        let within = from_ms * NS_PER_MS..to_ms * NS_PER_MS;
        let left: Vec<u64> = self
            .at_ns
            .iter()
            .copied()
            .filter(|at_ns| within.contains(at_ns))
            .collect();
        let bursts = left.iter().enumerate().map(|(first, from_ns)| {
            left[first..].partition_point(|at_ns| *at_ns < from_ns + BURST_NS)
        });
        bursts.max().unwrap_or(0)
    }
}

/// The peer's window grows from 64 KB over the first round trips and keeps most of ours back; the first packets, which
/// leave as a burst, are marked. PRR reduces the window for a round trip; then it is ssthresh, far above what is in
/// flight.
#[test]
fn after_a_mark_what_pacing_has_kept_back_does_not_leave_as_one_burst() {
    let mut params = Params::new(Startup::named("su_fast_start").unwrap());
    params.set("drop_priority", 0).unwrap();
    let transport = Transport {
        ecn: true,
        ..Transport::linux()
    };
    let traffic = Traffic::Users(in_turn(&[1_500_000]));
    let group = group(transport, Runner::Startup(params), traffic);
    let mut spec = dumbbell("100mbit", RTT_MS, 1000, group);
    spec.links[0].queue = "red:1000,min=1,max=20,max_p=1,w_q=1,ecn"
        .parse::<QueueSpec>()
        .unwrap();
    let known = Path {
        cwnd_pkts: WINDOW_PKTS,
        ssthresh_pkts: 220,
        srtt_us: 100_000,
        rttvar_us: 1_000,
        min_rtt_us: 100_000,
        samples: 1,
        ..Path::default()
    };
    spec.memory = vec![(0, known)];
    let mut leaving = Leaving::default();
    let _ = Simulation::new(spec, 1).unwrap().run(&mut leaving);
    assert_eq!(why_name(leaving.why), "ordinary-loss");
    // The window leaves from 1.5 round trips on, its mark is back after 2.5, the reduction ends after 3.5. Then 1.2 ssthresh a
    // round trip are 6 packets in 2 ms, and an ACK of many lets a few more go: 29. Where the pacing ended with the mark it
    // was 70.
    let most = leaving.largest_burst(RTT_MS * 5 / 2, RTT_MS * 9 / 2);
    assert!(most < 45, "{most} packets left within 4 ms");
}
