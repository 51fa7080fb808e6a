//! Each start-up on model paths, line by line: what it said, when, and why. The snapshots were checked by hand
//! against the papers; a line that changes is a change of behaviour.

#![allow(
    clippy::expect_used,
    reason = "helpers of tests: a failure here is a failure of the test"
)]

mod model;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt::Write as _;

use headstart_core::{
    BUT_LAST, Ended, INFINITE_SSTHRESH, LossKind, OPEN_END, Params, Path, Startup, Verdict,
    why_name,
};
use model::{Birth, Packet, Stack, Step};

const MSS_BYTES: u32 = 1448;
const WIRE_BYTES: u64 = 1500;
/// 50 KB, as in the paper's 5.3: 51200 / 1448 = 35.4.
const FIFTY_KB_PKTS: u64 = 36;
/// Linux paces none of a connection's first packets.
const UNPACED_PKTS: u64 = 10;

/// One bottleneck with a drop-tail queue; every packet is acknowledged on its own.
#[derive(Clone, Copy)]
struct Road {
    bits_per_s: u64,
    rtt_us: u64,
    queue_pkts: usize,
    /// With more than this in the queue, packets with low drop priority are dropped.
    low_priority_pkts: usize,
}

struct Scenario {
    road: Road,
    known: Option<Path>,
    sack: bool,
    /// Parameters that are not at their defaults, for the start-ups that have them.
    params: &'static [(&'static str, u64)],
    /// In packets, with a pause before each, in milliseconds.
    transfers: &'static [(u64, u64)],
}

struct Drive {
    scenario: Scenario,
    stack: Stack,
    leaves_us: VecDeque<u64>,
    /// When the ACK arrives, its packet (by number and turn), and when that was sent.
    acks: BinaryHeap<Reverse<(u64, u64, u64, u64)>>,
    burst_pkts: u32,
    next_burst_us: u64,
    sent: u64,
    again: u64,
    marked: u64,
    dropped: u64,
}

impl Drive {
    fn new(startup: Startup, scenario: Scenario) -> Drive {
        let mut params = Params::new(startup);
        for (name, value) in scenario.params {
            if params.get(name).is_some() {
                params.set(name, *value).expect("a value in its range");
            }
        }
        let birth = Birth {
            params,
            mss_bytes: MSS_BYTES,
            handshake_us: u32::try_from(scenario.road.rtt_us).expect("less than an hour"),
            sack: scenario.sack,
            initial_window_pkts: 10,
        };
        Drive {
            stack: Stack::open(birth, scenario.known, 0),
            scenario,
            leaves_us: VecDeque::new(),
            acks: BinaryHeap::new(),
            burst_pkts: 0,
            next_burst_us: 0,
            sent: 0,
            again: 0,
            marked: 0,
            dropped: 0,
        }
    }

    /// All transfers, one after another; the story in lines.
    fn run(mut self) -> String {
        let mut story = String::from(
            "     t_ms  event         cwnd  ssthresh  repair   bytes/s  burst  marked  phase       why\n",
        );
        for (packets, pause_ms) in self.scenario.transfers {
            self.stack.now_us += pause_ms * 1_000;
            let begin_us = self.stack.now_us;
            (self.sent, self.again, self.marked, self.dropped) = (0, 0, 0, 0);
            let told = if begin_us == 0 {
                0
            } else {
                self.stack.steps.len()
            };
            self.stack.write(*packets);
            self.transfer();
            let mut phase = told
                .checked_sub(1)
                .map_or(0, |last| self.stack.steps[last].verdict.phase);
            for step in &self.stack.steps[told..] {
                if step.verdict.why != 0 || step.verdict.phase != phase {
                    story += &line(step);
                }
                phase = step.verdict.phase;
            }
            let took_us = self.stack.now_us - begin_us;
            let _ = writeln!(
                story,
                "           {packets} packets acknowledged in {}.{} ms: {} sent, {} of them again, {} marked, {} dropped",
                took_us / 1_000,
                took_us / 100 % 10,
                self.sent,
                self.again,
                self.marked,
                self.dropped,
            );
        }
        let _ = match self.stack.close() {
            None => writeln!(story, "nothing is remembered"),
            Some(path) => writeln!(
                story,
                "remembered: cwnd {}, ssthresh {}, learnt {} times",
                path.cwnd_pkts,
                threshold(path.ssthresh_pkts),
                path.samples
            ),
        };
        story
    }

    fn transfer(&mut self) {
        while !self.stack.all_acknowledged() {
            let paused_until = self.send();
            let ack_us = self.acks.peek().map(|Reverse((at_us, ..))| *at_us);
            let timer_us = self.stack.timer_us();
            let next_us = [paused_until, ack_us, timer_us].into_iter().flatten().min();
            self.stack.now_us = next_us.expect("something is under way");
            if ack_us == next_us {
                let Reverse((at_us, number, turn, sent_us)) = self.acks.pop().expect("it was seen");
                let rtt_us = u32::try_from(at_us - sent_us).expect("less than an hour");
                let packet = Packet {
                    number,
                    turn,
                    marked: false,
                    again: false,
                };
                self.stack.acknowledge(&packet, rtt_us);
            } else if timer_us == next_us {
                self.stack.time_out();
            }
        }
    }

    /// Sends what window and pacing allow; the time of the next burst, if pacing holds something back.
    fn send(&mut self) -> Option<u64> {
        loop {
            if self.stack.verdict.pacing_bytes_per_s == 0 {
                self.next_burst_us = self.stack.now_us;
                self.burst_pkts = 0;
            }
            if self.next_burst_us > self.stack.now_us {
                return Some(self.next_burst_us);
            }
            let packet = self.stack.poll()?;
            self.pace(packet);
            self.forward(packet);
        }
    }

    /// Bursts of maxburst, spaced by their length at the rate (TCP Fast Start 3.3.3).
    fn pace(&mut self, packet: Packet) {
        let Verdict {
            pacing_bytes_per_s: rate,
            burst_pkts: most,
            ..
        } = self.stack.verdict;
        if rate == 0 || packet.number < UNPACED_PKTS {
            return;
        }
        self.burst_pkts += 1;
        if self.burst_pkts >= most {
            let bytes = u64::from(self.burst_pkts * MSS_BYTES);
            self.next_burst_us = self.stack.now_us + bytes * 1_000_000 / rate;
            self.burst_pkts = 0;
        }
    }

    fn forward(&mut self, packet: Packet) {
        let (road, now_us) = (self.scenario.road, self.stack.now_us);
        self.sent += 1;
        self.again += u64::from(packet.again);
        self.marked += u64::from(packet.marked);
        while self
            .leaves_us
            .front()
            .is_some_and(|leaves_us| *leaves_us <= now_us)
        {
            self.leaves_us.pop_front();
        }
        let room = if packet.marked {
            road.low_priority_pkts
        } else {
            road.queue_pkts
        };
        if self.leaves_us.len() >= room {
            self.dropped += 1;
            return;
        }
        let begins_us = self.leaves_us.back().copied().unwrap_or(now_us);
        let leaves_us = begins_us + WIRE_BYTES * 8 * 1_000_000 / road.bits_per_s;
        self.leaves_us.push_back(leaves_us);
        let ack_us = leaves_us + road.rtt_us;
        self.acks
            .push(Reverse((ack_us, packet.number, packet.turn, now_us)));
    }
}

fn threshold(ssthresh_pkts: u32) -> String {
    match ssthresh_pkts {
        0 => "-".to_owned(),
        INFINITE_SSTHRESH => "inf".to_owned(),
        pkts => pkts.to_string(),
    }
}

fn or_dash(number: u64) -> String {
    if number == 0 {
        "-".to_owned()
    } else {
        number.to_string()
    }
}

fn line(step: &Step) -> String {
    let Step { event, verdict } = step;
    let kind = match event.kind {
        0 => "open",
        1 => "idle",
        2 => "send",
        3 => "ack",
        _ if event.loss == LossKind::Timeout as u8 => "loss timeout",
        _ if event.loss == LossKind::PartialAck as u8 => "loss partial",
        _ => "loss fast",
    };
    let packet = |byte: u64| byte.div_ceil(u64::from(MSS_BYTES));
    let marked = match (verdict.mark_from_byte, verdict.mark_to_byte) {
        (from, to) if from == to => "-".to_owned(),
        (from, OPEN_END) => format!("{}..", packet(from)),
        (from, BUT_LAST) => format!("{}..L", packet(from)),
        (from, to) => format!("{}..{}", packet(from), packet(to)),
    };
    format!(
        "{:>7}.{}  {kind:<12}  {:>4}  {:>8}  {:>6}  {:>8}  {:>5}  {marked:>6}  {:<10}  {}\n",
        event.now_us / 1_000,
        event.now_us / 100 % 10,
        or_dash(verdict.cwnd_pkts.into()),
        threshold(verdict.ssthresh_pkts),
        or_dash(verdict.recovery_cwnd_pkts.into()),
        or_dash(verdict.pacing_bytes_per_s),
        or_dash(verdict.burst_pkts.into()),
        verdict
            .phase()
            .map_or("?".to_owned(), |phase| format!("{phase:?}")),
        why_name(verdict.why),
    )
}

/// Drives every start-up through the scenario; one snapshot each.
fn tell(name: &str, scenario: fn() -> Scenario) {
    tell_of(Startup::all(), name, scenario);
}

/// Drives these start-ups through the scenario.
fn tell_of(startups: impl Iterator<Item = Startup>, name: &str, scenario: fn() -> Scenario) {
    for startup in startups {
        let story = Drive::new(startup, scenario()).run();
        insta::assert_snapshot!(format!("{name}__{}", startup.name()), story);
    }
}

/// The curves of "A Swifter Start for TCP": slow start, paced, and swift start.
fn tell_of_the_report(name: &str, scenario: fn() -> Scenario) {
    let curves = ["su_standard", "su_paced", "su_swift_start"];
    let curves = curves.map(|name| Startup::named(name).expect("it is in the registry"));
    tell_of(curves.into_iter(), name, scenario);
}

/// The paper's 5.3: DirecPC, 12 Mbit/s downstream, a round trip of 400 ms.
const SATELLITE: Road = Road {
    bits_per_s: 12_000_000,
    rtt_us: 400_000,
    queue_pkts: 400,
    low_priority_pkts: 400,
};

/// What was once 100 packets in 100 ms: now a T1 line with a short queue.
const WORSE: Road = Road {
    bits_per_s: 1_500_000,
    rtt_us: 100_000,
    queue_pkts: 10,
    low_priority_pkts: 10,
};

fn remembered(window_pkts: u32, srtt_us: u32) -> Option<Path> {
    Some(Path {
        age_us: 60_000_000,
        cwnd_pkts: window_pkts,
        ssthresh_pkts: window_pkts,
        srtt_us,
        rttvar_us: srtt_us / 20,
        min_rtt_us: srtt_us,
        ending_mpkts: window_pkts * 1000,
        ended: Ended::Avoidance as u8,
        samples: 1,
        ..Path::default()
    })
}

#[test]
fn fifty_kilobytes_twice_over_a_satellite_that_is_known_with_a_window_of_200() {
    tell("satellite_known", || Scenario {
        road: SATELLITE,
        known: remembered(200, 400_000),
        sack: true,
        params: &[],
        transfers: &[(FIFTY_KB_PKTS, 0), (FIFTY_KB_PKTS, 30_000)],
    });
}

#[test]
fn fifty_kilobytes_twice_over_a_satellite_that_is_not_known() {
    tell("satellite_unknown", || Scenario {
        road: SATELLITE,
        known: None,
        sack: true,
        params: &[],
        transfers: &[(FIFTY_KB_PKTS, 0), (FIFTY_KB_PKTS, 30_000)],
    });
}

fn stale_path() -> Scenario {
    Scenario {
        road: WORSE,
        known: remembered(100, 100_000),
        sack: true,
        params: &[],
        transfers: &[(120, 0)],
    }
}

#[test]
fn a_window_of_100_on_a_path_that_has_become_slow() {
    tell("stale_path", stale_path);
}

/// The path holds 100 ms of 1.5 Mbit/s, 12.5 packets, and 10 in its queue (TCP Fast Start 3.3.2: "the most recent
/// congestion window size at which an entire window of data was transmitted successfully").
#[test]
fn a_failed_start_leaves_a_window_that_the_path_can_hold() {
    for startup in Startup::all() {
        let mut drive = Drive::new(startup, stale_path());
        drive.stack.write(120);
        drive.transfer();
        // Where nothing is left, what was remembered is forgotten.
        let left = drive.stack.close().map_or(0, |path| path.cwnd_pkts);
        assert!(left <= 23, "{startup:?} leaves a window of {left}");
    }
}

#[test]
fn a_window_of_100_through_a_router_that_drops_every_packet_of_low_priority() {
    tell("stale_path_all_marked_dropped", || Scenario {
        road: Road {
            low_priority_pkts: 0,
            ..WORSE
        },
        known: remembered(100, 100_000),
        sack: true,
        params: &[],
        transfers: &[(FIFTY_KB_PKTS, 0)],
    });
}

#[test]
fn a_window_of_100_on_a_path_that_has_become_slow_to_a_peer_without_sack() {
    tell("stale_path_without_sack", || Scenario {
        road: WORSE,
        known: remembered(100, 100_000),
        sack: false,
        params: &[("require_sack", 0)],
        transfers: &[(FIFTY_KB_PKTS, 0)],
    });
}

/// A Swifter Start for TCP 4.1: 3.5 Mbit/s, 32 ms, much buffering, no loss. The estimate is 10 segments (the report:
/// "about 12"): 35.4 ms for the first ACK, 3.43 ms a segment. "Around five to seven segments" of them are paced in the
/// first round trip (4.2): 6.4 here, two each 10 ms. The report names a clock of 1 ms (5), which would let 64 through;
/// 10 ms was the tick of FreeBSD 4 (HZ = 100).
#[test]
fn the_path_of_the_swift_start_report_with_the_limits_of_its_implementation() {
    tell_of_the_report("report_path", || Scenario {
        road: Road {
            bits_per_s: 3_500_000,
            rtt_us: 32_000,
            queue_pkts: 100,
            low_priority_pkts: 100,
        },
        known: None,
        sack: true,
        params: &[
            ("iw_pkts", 4),
            ("gamma", 1),
            ("slope_acks", 0),
            ("clock_us", 10_000),
        ],
        transfers: &[(60, 0)],
    });
}

/// Its Table 2, 45 Mbit/s and 100 ms: what the path was made for. The queue holds a fifth of what the path does.
#[test]
fn a_megabyte_and_a_half_over_45_mbit_and_100_ms() {
    tell_of_the_report("report_45_mbit", || Scenario {
        road: Road {
            bits_per_s: 45_000_000,
            rtt_us: 100_000,
            queue_pkts: 75,
            low_priority_pkts: 75,
        },
        known: None,
        sack: true,
        params: &[("iw_pkts", 4), ("slope_acks", 0)],
        transfers: &[(1_036, 0)],
    });
}

/// The HyStart paper's 5.2: 100 Mbit/s, 102 ms, a queue of one bandwidth-delay product, 850 packets of 1500 bytes.
#[test]
fn six_megabytes_over_the_path_of_the_hystart_paper() {
    tell("hystart_path", || Scenario {
        road: Road {
            bits_per_s: 100_000_000,
            rtt_us: 102_000,
            queue_pkts: 850,
            low_priority_pkts: 850,
        },
        known: None,
        sack: true,
        params: &[],
        transfers: &[(4_000, 0)],
    });
}
