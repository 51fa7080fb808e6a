//! The receiving end: what has come, and when it says so.

use crate::out_of_order::OutOfOrder;
use crate::packet::{Block, Blocks, MOST_BLOCKS};
use crate::receive_window::{GrowingWindow, QuickAcks};
use headstart_scenario::{AckSpec, ReceiverSpec, SackSpec, Transport, WindowSpec};

/// Linux compresses duplicates after this many (`TCP_FASTRETRANS_THRESH`): one acknowledgement stands
/// for those of a twentieth of a round trip, at most 1 ms (`tcp_comp_sack_delay_ns`) with 0.1 ms of
/// slack, and for at most 44 (`tcp_comp_sack_nr`).
const DUPLICATES_AT_ONCE: u32 = 3;
const COMPRESSED_MOST_NS: u64 = 1_000_000;
const COMPRESSED_SLACK_NS: u64 = 100_000;
const COMPRESSED_MOST: u32 = 44;
/// Linux: `TCP_SACK_BLOCKS_EXPECTED`: what waits is told before more runs than this would have to be told
/// by one acknowledgement.
const RUNS_TOLD_TOGETHER: usize = 2;

/// The packet that came, as the receiver sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) seq: u64,
    pub(crate) len_bytes: u16,
    pub(crate) stamp_ms: u32,
    /// When the last acknowledgement left that its sender had, in ms.
    pub(crate) echo_ms: u32,
    pub(crate) congestion: bool,
    pub(crate) reduced: bool,
    pub(crate) pushes: bool,
}

/// Whether to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// At once.
    Now,
    /// When the timer is over, or with the next packet.
    Later,
}

#[derive(Debug)]
pub(crate) struct Receiver {
    next: u64,
    /// What came beyond it.
    beyond: OutOfOrder,
    acked: u64,
    quick: QuickAcks,
    /// When the delayed acknowledgement is due; `u64::MAX`: none waits.
    pub(crate) delayed_ns: u64,
    window: GrowingWindow,
    grows: bool,
    /// Duplicates since the next byte last moved, and those that wait for one acknowledgement.
    duplicates: u32,
    compressed: u32,
    echo_ms: u32,
    echo_congestion: bool,
    discarded_pkts: u64,
}

impl Receiver {
    pub(crate) fn new(spec: &ReceiverSpec) -> Receiver {
        Receiver {
            next: 0,
            beyond: OutOfOrder::default(),
            acked: 0,
            quick: QuickAcks::default(),
            delayed_ns: u64::MAX,
            window: match spec.window {
                WindowSpec::Fixed(bytes) => GrowingWindow::new(bytes, bytes),
                WindowSpec::Linux { first, most } => GrowingWindow::new(first, most),
            },
            grows: matches!(spec.window, WindowSpec::Linux { .. }),
            duplicates: 0,
            compressed: 0,
            echo_ms: 0,
            echo_congestion: false,
            discarded_pkts: 0,
        }
    }

    /// All before this has come.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn window_bytes(&self) -> u32 {
        self.window.bytes()
    }

    /// Packets that came out of order and were thrown away.
    #[cfg(test)]
    pub(crate) fn discarded_pkts(&self) -> u64 {
        self.discarded_pkts
    }

    pub(crate) fn arrive(&mut self, now_ns: u64, transport: &Transport, came: &Arrival) -> Answer {
        let spec = &transport.receiver;
        let end = came.seq + u64::from(came.len_bytes);
        if transport.ecn {
            self.echo_congestion |= came.congestion;
            if came.reduced {
                self.echo_congestion = came.congestion;
            }
        }
        if came.seq <= self.acked && end > self.acked {
            // RFC 7323, 4.3: the segment that holds the first byte not acknowledged yet.
            self.echo_ms = came.stamp_ms;
        }
        let run = Block {
            start: came.seq,
            end,
        };
        if end <= self.next {
            self.beyond.came_twice(run);
            self.quick.enter();
            return Answer::Now;
        }
        self.notice(now_ns, transport, came);
        if came.seq > self.next {
            self.keep(spec, run);
            if self.grows {
                let end = self.beyond.end().unwrap_or(end);
                self.window.keeps_ahead(end - self.next);
            }
            return self.answer_to_duplicate(now_ns, transport);
        }
        let had_runs = !self.beyond.is_empty();
        self.next = match had_runs {
            true => self.beyond.join(end),
            false => end,
        };
        self.duplicates = 0;
        if self.grows {
            self.window.read(now_ns, self.next);
        }
        // RFC 5681, 4.2: at once while a gap is being filled.
        if had_runs {
            self.count_partial_fill(transport);
            return Answer::Now;
        }
        match spec.acks {
            AckSpec::EveryPacket => return Answer::Now,
            // The application has read all there was, and nothing is to be expected right behind it
            // (tcp_measure_rcv_mss, tcp_cleanup_rbuf; 6.6 and later also after a full-sized segment).
            AckSpec::Linux if self.quick.on() || came.pushes => return Answer::Now,
            AckSpec::Linux | AckSpec::Delayed => {}
        }
        // RFC 5681, 4.2: at least every second full-sized segment.
        if self.next - self.acked > u64::from(transport.mss_bytes) {
            return Answer::Now;
        }
        if self.delayed_ns == u64::MAX {
            self.delayed_ns = now_ns + u64::from(spec.delay_us) * 1000;
        }
        Answer::Later
    }

    /// Whether what waits for one acknowledgement has to be told before `came` is taken: the blocks that Linux
    /// sends are of the latest runs, and a run that is pushed out of them would be told by none
    /// (`tcp_sack_new_ofo_skb`).
    pub(crate) fn must_tell_first(&self, came: &Arrival) -> bool {
        if self.compressed == 0 || came.seq <= self.next {
            return false;
        }
        let end = came.seq + u64::from(came.len_bytes);
        let touches = |run: &Block| came.seq <= run.end && run.start <= end;
        let recent = self.beyond.recent();
        let place = recent.iter().position(|run| touches(&run));
        place.unwrap_or(usize::from(recent.len)) >= RUNS_TOLD_TOGETHER
    }

    /// A part of a gap is filled, and another is left: where that alone is no reason to acknowledge at once, Linux
    /// does so as for a duplicate, and counts it as the first of three (`__tcp_ack_snd_check`).
    fn count_partial_fill(&mut self, transport: &Transport) {
        let is_reason = self.beyond.is_empty()
            || self.quick.on()
            || self.next - self.acked > u64::from(transport.mss_bytes);
        if !is_reason && compresses(transport) {
            self.duplicates = 1;
        }
    }

    /// What the window and the quick acknowledgements make of a packet that is new.
    fn notice(&mut self, now_ns: u64, transport: &Transport, came: &Arrival) {
        if self.grows {
            if !transport.timestamps {
                self.window.measure_by_window(now_ns, self.next);
            } else if came.len_bytes >= transport.mss_bytes {
                self.window.measure_by_echo(now_ns, came.echo_ms);
            }
        }
        let fixed_bytes = self.window.bytes();
        let may_grow = came.seq <= self.next || transport.uses_sack();
        let mss_bytes = transport.mss_bytes;
        self.window
            .came(now_ns, came.len_bytes, mss_bytes, may_grow, &mut self.quick);
        if !self.grows {
            self.window.fix(fixed_bytes);
        }
    }

    /// RFC 5681, 4.2: at once; but Linux compresses (`__tcp_ack_snd_check`).
    fn answer_to_duplicate(&mut self, now_ns: u64, transport: &Transport) -> Answer {
        if !compresses(transport) || self.quick.on() || self.compressed >= COMPRESSED_MOST {
            return Answer::Now;
        }
        if self.duplicates < DUPLICATES_AT_ONCE {
            self.duplicates += 1;
            return Answer::Now;
        }
        self.compressed += 1;
        if self.compressed == 1 {
            let share_ns = self.window.rtt_us() * 1000 / 20;
            let due_ns = now_ns + share_ns.min(COMPRESSED_MOST_NS) + COMPRESSED_SLACK_NS;
            self.delayed_ns = self.delayed_ns.min(due_ns);
        }
        Answer::Later
    }

    /// Keeps a run that came out of order, if it may.
    fn keep(&mut self, spec: &ReceiverSpec, run: Block) {
        match spec.sack {
            SackSpec::UpToRuns(most) if self.beyond.runs() > most as usize => {
                self.discarded_pkts += 1;
            }
            _ => self.beyond.keep(run),
        }
    }

    /// What the acknowledgement that leaves now carries as SACK blocks; and whether the first of them
    /// reports a duplicate.
    pub(crate) fn blocks(&mut self, transport: &Transport) -> (Blocks, bool) {
        let duplicate = self.beyond.take_duplicate();
        let runs = match transport.receiver.sack {
            _ if !transport.uses_sack() => return (Blocks::default(), false),
            SackSpec::Off => return (Blocks::default(), false),
            SackSpec::UpToRuns(most) if self.beyond.runs() > most as usize => {
                return (Blocks::default(), false);
            }
            SackSpec::On | SackSpec::UpToRuns(_) => *self.beyond.recent(),
        };
        // RFC 2018, section 3: the timestamps option leaves room for 3.
        let room = MOST_BLOCKS - usize::from(transport.timestamps);
        let mut blocks = Blocks::default();
        if let Some(duplicate) = duplicate {
            blocks.push(duplicate);
        }
        for run in runs.iter().take(room - usize::from(blocks.len)) {
            blocks.push(run);
        }
        (blocks, duplicate.is_some())
    }

    /// An acknowledgement leaves. Returns the timestamp to echo.
    pub(crate) fn acknowledged(&mut self) -> u32 {
        self.acked = self.next;
        self.delayed_ns = u64::MAX;
        self.compressed = 0;
        self.quick.acknowledged();
        self.echo_ms
    }

    pub(crate) fn echoes_congestion(&self) -> bool {
        self.echo_congestion
    }
}

/// Whether duplicates are compressed.
fn compresses(transport: &Transport) -> bool {
    transport.receiver.acks == AckSpec::Linux
        && transport.receiver.sack == SackSpec::On
        && transport.uses_sack()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn came(seq: u64) -> Arrival {
        Arrival {
            seq,
            len_bytes: 100,
            stamp_ms: 0,
            echo_ms: 0,
            congestion: false,
            reduced: false,
            pushes: false,
        }
    }

    fn transport(sack: SackSpec) -> Transport {
        let mut transport = Transport::linux();
        transport.mss_bytes = 100;
        transport.timestamps = false;
        transport.receiver.sack = sack;
        transport
    }

    proptest! {
        /// Against a set of packet numbers.
        #[test]
        fn the_next_byte_and_the_blocks_are_those_of_what_came(
            numbers in prop::collection::vec(0u64..60, 1..200),
        ) {
            let transport = transport(SackSpec::On);
            let mut receiver = Receiver::new(&transport.receiver);
            let mut set = BTreeSet::new();
            for number in numbers {
                receiver.arrive(0, &transport, &came(number * 100));
                set.insert(number);
                let next = (0..).find(|number| !set.contains(number)).unwrap();
                prop_assert_eq!(receiver.next(), next * 100);
                let (blocks, duplicate) = receiver.blocks(&transport);
                for (index, block) in blocks.iter().enumerate() {
                    let (from, to) = (block.start / 100, block.end / 100);
                    prop_assert!((from..to).all(|number| set.contains(&number)));
                    if index > 0 || !duplicate {
                        prop_assert!(from > next && !set.contains(&to) && !set.contains(&(from - 1)));
                    }
                }
                if number > next && !duplicate {
                    let first = blocks.blocks[0];
                    prop_assert!((first.start..first.end).contains(&(number * 100)));
                }
                receiver.acknowledged();
            }
        }
    }

    #[test]
    fn the_newest_run_is_reported_first_and_only_four_fit() {
        let transport = transport(SackSpec::On);
        let mut receiver = Receiver::new(&transport.receiver);
        for number in [2, 4, 6, 8, 10, 4 + 1] {
            receiver.arrive(0, &transport, &came(number * 100));
        }
        let (blocks, _) = receiver.blocks(&transport);
        let starts: Vec<u64> = blocks.iter().map(|block| block.start / 100).collect();
        assert_eq!(starts, [4, 10, 8]);
        assert_eq!(blocks.blocks[0].end, 700);
    }

    #[test]
    fn linux_acknowledges_sixteen_packets_at_once_and_then_every_second() {
        let transport = transport(SackSpec::On);
        let mut receiver = Receiver::new(&transport.receiver);
        let answers: Vec<bool> = (0..20)
            .map(|number| {
                let answer = receiver.arrive(0, &transport, &came(number * 100));
                if answer == Answer::Now {
                    receiver.acknowledged();
                }
                answer == Answer::Now
            })
            .collect();
        assert!(answers[..16].iter().all(|now| *now));
        assert_eq!(answers[16..], [false, true, false, true]);
        assert_eq!(receiver.delayed_ns, u64::MAX);
    }

    #[test]
    fn linux_compresses_duplicates_once_nothing_is_acknowledged_at_once_any_more() {
        let mut transport = transport(SackSpec::On);
        transport.timestamps = true;
        let mut receiver = Receiver::new(&transport.receiver);
        let arrive = |receiver: &mut Receiver, ms: u64, number: u64| {
            let answer = receiver.arrive(ms * 1_000_000, &transport, &came(number * 100));
            if answer == Answer::Now {
                receiver.acknowledged();
            }
            answer == Answer::Now
        };
        assert!((0..16).all(|number| arrive(&mut receiver, 200, number)));
        assert!(!arrive(&mut receiver, 200, 16) && arrive(&mut receiver, 200, 17));
        // Number 18 is lost. Three at once, then one for a twentieth of 200 ms, at most 1 ms.
        let answers: Vec<bool> = (19..26)
            .map(|number| arrive(&mut receiver, 201, number))
            .collect();
        assert_eq!(answers, [true, true, true, false, false, false, false]);
        assert_eq!(receiver.delayed_ns, 202_100_000);
        receiver.acknowledged();
        // The gap is filled: at once.
        assert!(arrive(&mut receiver, 300, 18));
    }

    /// Takes packet `number` at `ms`, as the simulation does. Returns the runs that each acknowledgement tells.
    fn take(receiver: &mut Receiver, transport: &Transport, ms: u64, number: u64) -> Vec<Vec<u64>> {
        let came = came(number * 100);
        let mut told = Vec::new();
        let mut tell = |receiver: &mut Receiver| {
            let (blocks, _) = receiver.blocks(transport);
            receiver.acknowledged();
            told.push(blocks.iter().map(|block| block.start / 100).collect());
        };
        if receiver.must_tell_first(&came) {
            tell(receiver);
        }
        if receiver.arrive(ms * 1_000_000, transport, &came) == Answer::Now {
            tell(receiver);
        }
        told
    }

    /// Linux: tcp_sack_new_ofo_skb, tcp_sack_compress_send_ack.
    #[test]
    fn linux_tells_what_waits_before_a_third_run_would_push_it_out() {
        let mut transport = transport(SackSpec::On);
        transport.timestamps = true;
        let mut receiver = Receiver::new(&transport.receiver);
        (0..18).for_each(|number| drop(take(&mut receiver, &transport, 200, number)));
        // Each second one is lost. Three at once; the first of those that wait pushes none out, the next would.
        let mut told = |number| take(&mut receiver, &transport, 201, number);
        assert_eq!(told(19), [[19]]);
        assert_eq!(told(21), [[21, 19]]);
        assert_eq!(told(23), [[23, 21, 19]]);
        assert!(told(25).is_empty());
        assert_eq!(told(27), [[25, 23, 21]]);
        // What prolongs one of the last two runs tells nothing that the next would not.
        assert!(told(28).is_empty());
        assert!(told(26).is_empty());
        assert_eq!(told(30), [[25, 23, 21]]);
        assert_eq!(told(32), [[30, 25, 23]]);
    }

    #[test]
    fn linux_acknowledges_what_pushes_at_once_and_leaves_the_rest_for_the_second() {
        let transport = transport(SackSpec::On);
        let mut receiver = Receiver::new(&transport.receiver);
        for number in 0..16 {
            receiver.arrive(0, &transport, &came(number * 100));
            receiver.acknowledged();
        }
        assert_eq!(receiver.arrive(0, &transport, &came(1600)), Answer::Later);
        receiver.acknowledged();
        let pushes = Arrival {
            pushes: true,
            ..came(1700)
        };
        assert_eq!(receiver.arrive(0, &transport, &pushes), Answer::Now);
    }

    #[test]
    fn what_comes_twice_makes_linux_acknowledge_at_once_again() {
        let transport = transport(SackSpec::On);
        let mut receiver = Receiver::new(&transport.receiver);
        for number in 0..17 {
            receiver.arrive(0, &transport, &came(number * 100));
            receiver.acknowledged();
        }
        assert_eq!(receiver.arrive(0, &transport, &came(1700)), Answer::Later);
        assert_eq!(receiver.arrive(0, &transport, &came(0)), Answer::Now);
        receiver.acknowledged();
        assert_eq!(receiver.arrive(0, &transport, &came(1800)), Answer::Now);
    }

    #[test]
    fn past_its_limit_a_receiver_neither_reports_nor_keeps() {
        let transport = transport(SackSpec::UpToRuns(2));
        let mut receiver = Receiver::new(&transport.receiver);
        for number in [2, 4] {
            receiver.arrive(0, &transport, &came(number * 100));
        }
        assert_eq!(receiver.blocks(&transport).0.len, 2);
        receiver.arrive(0, &transport, &came(600));
        assert_eq!(receiver.blocks(&transport).0.len, 0);
        receiver.arrive(0, &transport, &came(800));
        assert_eq!(receiver.discarded_pkts(), 1);
        for number in [0, 1, 3, 5, 7] {
            receiver.arrive(0, &transport, &came(number * 100));
        }
        assert_eq!(receiver.next(), 800);
    }
}
