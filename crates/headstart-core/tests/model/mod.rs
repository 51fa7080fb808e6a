//! A small sender in the manner of Linux, which reports its events to a start-up and obeys its verdicts. It has
//! no clock and no network: the caller says what arrives and when, and so can be a path or an adversary.

#![allow(
    dead_code,
    reason = "each test file is a crate of its own and uses a part"
)]
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests: a failure here is a failure of the test"
)]

pub(crate) mod growth;
mod losses;
pub(crate) mod oracle;
mod paced_growth;
mod reports;

use std::collections::{BTreeMap, BTreeSet};

use headstart_core::{
    Connection, Event, EventKind, INFINITE_SSTHRESH, Params, Path, Phase, Proof, Recovery, Verdict,
};

/// TCP_RTO_MIN of Linux, in microseconds.
const LINUX_RTO_MIN_US: u32 = 200_000;
/// Linux paces none of a connection's first packets.
const LINUX_UNPACED_PKTS: u64 = 10;
const LINUX_IW_PKTS: u32 = 10;

/// What a connection is born with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth {
    pub(crate) params: Params,
    pub(crate) mss_bytes: u32,
    pub(crate) handshake_us: u32,
    pub(crate) sack: bool,
    /// 1: the handshake was lost.
    pub(crate) initial_window_pkts: u32,
}

/// A packet that leaves; `number` counts packets since the connection opened, `turn` transmissions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) number: u64,
    pub(crate) turn: u64,
    pub(crate) marked: bool,
    pub(crate) again: bool,
}

/// One event and the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) event: Event,
    pub(crate) verdict: Verdict,
}

/// What was learnt of the path, and from what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lesson {
    pub(crate) event: Event,
    pub(crate) proof: Proof,
    pub(crate) before: Path,
    pub(crate) after: Path,
    pub(crate) changed: bool,
    /// The most packets that were ever in flight at once, as far as the sender knows it: without SACK, or after a
    /// timeout that may have been spurious, it does not. No bound after an ECN echo either: nothing is lost then,
    /// the kernel reports no ACK until the reduction is over, and that round trip seems longer than it was.
    pub(crate) most_in_flight: u32,
}

pub(crate) struct Stack {
    birth: Birth,
    connection: Connection,
    pub(crate) path: Option<Path>,
    pub(crate) now_us: u64,
    written: u64,
    next: u64,
    una: u64,
    /// Received beyond `una`.
    beyond: BTreeSet<u64>,
    /// Sent and neither received nor thought lost, as the sender sees it; with the turn of each.
    flying: BTreeMap<u64, u64>,
    lost: BTreeSet<u64>,
    turns: u64,
    latest_turn: u64,
    duplicates: u64,
    delivered_pkts: u32,
    lost_pkts: u32,
    cwnd_pkts: u32,
    ssthresh_pkts: u32,
    peak_pkts: u32,
    most_in_flight: u32,
    avoidance_credit: u32,
    srtt_us: u32,
    rttvar_us: u32,
    min_rtt_us: u32,
    backoff: u32,
    recovery: Recovery,
    recovery_point: u64,
    last_sent_us: u64,
    timer_since_us: u64,
    pub(crate) verdict: Verdict,
    pub(crate) steps: Vec<Step>,
    pub(crate) lessons: Vec<Lesson>,
}

impl Stack {
    /// Opens a connection at `now_us` to a path of which `path` is remembered.
    pub(crate) fn open(birth: Birth, path: Option<Path>, now_us: u64) -> Stack {
        let mut stack = Stack {
            birth,
            connection: Connection::new(birth.params),
            path,
            now_us,
            written: 0,
            next: 0,
            una: 0,
            beyond: BTreeSet::new(),
            flying: BTreeMap::new(),
            lost: BTreeSet::new(),
            turns: 0,
            latest_turn: 0,
            duplicates: 0,
            delivered_pkts: 0,
            lost_pkts: 0,
            cwnd_pkts: birth.initial_window_pkts,
            ssthresh_pkts: INFINITE_SSTHRESH,
            peak_pkts: 0,
            most_in_flight: if birth.sack { 0 } else { u32::MAX },
            avoidance_credit: 0,
            srtt_us: birth.handshake_us,
            rttvar_us: birth.handshake_us / 2,
            min_rtt_us: birth.handshake_us,
            backoff: 0,
            recovery: Recovery::Open,
            recovery_point: 0,
            last_sent_us: now_us,
            timer_since_us: now_us,
            verdict: Verdict::default(),
            steps: Vec::new(),
            lessons: Vec::new(),
        };
        let event = stack.event(EventKind::Open);
        stack.ask(event);
        stack
    }

    /// The application gives data.
    pub(crate) fn write(&mut self, packets: u64) {
        self.written += packets;
    }

    /// The next packet to leave now, if the window and the data allow one.
    pub(crate) fn poll(&mut self) -> Option<Packet> {
        let in_flight = self.in_flight();
        let packet = if let Some(&number) = self.lost.first() {
            (in_flight < self.cwnd_pkts).then_some((number, true))
        } else {
            if self.una == self.next && self.next < self.written {
                self.announce();
            }
            (self.next < self.written && in_flight < self.cwnd_pkts).then_some((self.next, false))
        };
        let (number, again) = packet?;
        if again {
            self.lost.remove(&number);
        } else {
            self.next += 1;
        }
        self.turns += 1;
        self.flying.insert(number, self.turns);
        self.peak_pkts = self.peak_pkts.max(self.in_flight());
        self.most_in_flight = self.most_in_flight.max(self.in_flight());
        self.last_sent_us = self.now_us;
        self.timer_since_us = self.now_us;
        let byte = |packet| packet * u64::from(self.birth.mss_bytes);
        let marks = self
            .verdict
            .marks(byte(number), byte(number + 1), byte(self.written));
        Some(Packet {
            number,
            turn: self.turns,
            again,
            marked: !again && marks,
        })
    }

    /// The pipe is empty and data is about to leave: `Idle` after a pause, then `Send`.
    fn announce(&mut self) {
        let idle_us = self.now_us - self.last_sent_us;
        if self.next > 0 && idle_us > u64::from(self.rto_us()) {
            let mut event = self.event(EventKind::Idle);
            event.idle_us = idle_us;
            self.learn(&event);
            self.ask(event);
            self.restart(idle_us);
        }
        self.peak_pkts = 0;
        let mut event = self.event(EventKind::Send);
        event.unpaced_pkts =
            u32::try_from(LINUX_UNPACED_PKTS.saturating_sub(self.next)).unwrap_or(0);
        self.ask(event);
    }

    /// tcp_cwnd_restart of Linux: halved for each RTO of the pause, down to min(10, cwnd).
    fn restart(&mut self, idle_us: u64) {
        let least = LINUX_IW_PKTS.min(self.cwnd_pkts);
        let mut left_us = idle_us;
        while left_us > u64::from(self.rto_us()) && self.cwnd_pkts > least {
            left_us -= u64::from(self.rto_us());
            self.cwnd_pkts /= 2;
        }
        self.cwnd_pkts = self.cwnd_pkts.max(least);
    }

    /// An ACK arrives: the receiver has got `packet`, `rtt_us` after it was sent.
    pub(crate) fn acknowledge(&mut self, packet: &Packet, rtt_us: u32) {
        let number = packet.number;
        self.latest_turn = self.latest_turn.max(packet.turn);
        let (una, in_flight) = (self.una, self.in_flight());
        if number >= self.una {
            self.beyond.insert(number);
        }
        while self.beyond.remove(&self.una) {
            self.una += 1;
        }
        let acked = u32::try_from(self.una - una).unwrap_or(u32::MAX);
        self.forget_received();
        if acked > 0 {
            self.duplicates = 0;
            self.backoff = 0;
            self.timer_since_us = self.now_us;
            self.measure(rtt_us);
        } else {
            self.duplicates += 1;
        }
        let beyond = u64::try_from(self.beyond.len()).unwrap_or(0);
        let seen = self.una
            + if self.birth.sack {
                beyond
            } else {
                self.duplicates
            };
        let seen = u32::try_from(seen.min(self.next)).unwrap_or(u32::MAX);
        self.delivered_pkts = self.delivered_pkts.max(seen);
        let partial = acked > 0 && self.una < self.recovery_point;
        if self.recovery != Recovery::Open && self.una >= self.recovery_point {
            self.end_recovery();
        }
        self.find_losses(partial);
        if self.recovery != Recovery::Fast || self.verdict.phase == Phase::Recovering as u8 {
            let mut event = self.event(EventKind::Ack);
            event.rtt_us = if acked > 0 { rtt_us } else { 0 };
            self.ask(event);
            if self.una == self.next {
                let event = self.event(EventKind::Ack);
                self.learn(&event);
            }
        }
        self.grow(acked, in_flight);
    }

    /// What the receiver has got is not in flight; without SACK the sender sees only what is below `una`.
    fn forget_received(&mut self) {
        let (una, beyond, sack) = (self.una, &self.beyond, self.birth.sack);
        let known = |number: &u64| *number < una || (sack && beyond.contains(number));
        self.flying.retain(|number, _| !known(number));
        self.lost.retain(|number| !known(number));
    }

    fn grow(&mut self, acked: u32, in_flight: u32) {
        if self.recovery == Recovery::Timeout {
            self.cwnd_pkts = self.cwnd_pkts.max(self.verdict.recovery_cwnd_pkts);
        }
        if self.recovery == Recovery::Fast {
            // Proportional rate reduction, conservatively (RFC 6937): one out for each that comes in.
            let reduced = self.ssthresh_pkts.min(self.in_flight() + 1);
            self.cwnd_pkts = reduced.max(self.verdict.recovery_cwnd_pkts);
        } else if self.cwnd_pkts < self.ssthresh_pkts {
            if self.verdict.owns_slow_start != 0 {
                return;
            }
            if self.cwnd_pkts < 2 * self.peak_pkts.max(in_flight) {
                self.cwnd_pkts = (self.cwnd_pkts + acked).min(self.ssthresh_pkts);
            }
        } else if in_flight >= self.cwnd_pkts {
            self.avoidance_credit += acked;
            if self.avoidance_credit >= self.cwnd_pkts {
                self.avoidance_credit = 0;
                self.cwnd_pkts += 1;
            }
        }
    }

    /// RFC 6298.
    fn measure(&mut self, rtt_us: u32) {
        self.rttvar_us = self.rttvar_us / 4 * 3 + self.srtt_us.abs_diff(rtt_us) / 4;
        self.srtt_us = self.srtt_us / 8 * 7 + rtt_us / 8;
        self.min_rtt_us = self.min_rtt_us.min(rtt_us);
    }

    /// The retransmission timer, without its back-off.
    fn rto_us(&self) -> u32 {
        let floor_us = match self.verdict.rto_min_us {
            0 => LINUX_RTO_MIN_US,
            floor_us => floor_us,
        };
        self.srtt_us + (4 * self.rttvar_us).max(floor_us)
    }

    /// When the timer will expire; nothing while nothing is out.
    pub(crate) fn timer_us(&self) -> Option<u64> {
        let rto_us = u64::from(self.rto_us()) << self.backoff.min(8);
        (self.una < self.next).then_some(self.timer_since_us + rto_us)
    }

    pub(crate) fn in_flight(&self) -> u32 {
        let duplicates = if self.birth.sack { 0 } else { self.duplicates };
        let flying = u64::try_from(self.flying.len()).unwrap_or(0);
        u32::try_from(flying.saturating_sub(duplicates)).unwrap_or(u32::MAX)
    }

    pub(crate) fn all_acknowledged(&self) -> bool {
        self.una == self.written
    }

    /// Every packet sent is in one place: received, in flight, or thought lost.
    pub(crate) fn conserved(&self) -> bool {
        let beyond = if self.birth.sack {
            self.beyond.len()
        } else {
            0
        };
        let placed = beyond + self.flying.len() + self.lost.len();
        self.una + u64::try_from(placed).unwrap_or(0) == self.next
    }

    pub(crate) fn cwnd_pkts(&self) -> u32 {
        self.cwnd_pkts
    }
}
