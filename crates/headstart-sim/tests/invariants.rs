//! Random simulations: what must hold in all of them.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod common;

use std::collections::HashMap;

use common::ms;
use headstart_core::{Params, Startup};
use headstart_link::{Distribution, Law, LinkConfig, QueueSpec, Span};
use headstart_scenario::{ByteSize, Count};
use headstart_sim::{
    AckSpec, Arrivals, AvoidanceSpec, Group, GrowthSpec, HandshakeSpec, IdleSpec, MemoryParams,
    Observer, Outcome, PacingSpec, PacketFate, PacketKind, ReceiverSpec, RecoverySpec, Route,
    RtoSpec, Runner, SackSpec, SimPacket, SimSpec, Simulation, Sizes, Traffic, TransferDone,
    Transport, Users, WindowSample, WindowSpec,
};
use proptest::prelude::*;

fn transports() -> impl Strategy<Value = Transport> {
    let ends = (
        prop_oneof![
            Just(RecoverySpec::Linux),
            Just(RecoverySpec::Sack),
            Just(RecoverySpec::NewRenoImpatient),
            Just(RecoverySpec::NewRenoSteady),
        ],
        prop_oneof![
            Just(AvoidanceSpec::Reno),
            Just(AvoidanceSpec::Cubic),
            Just(AvoidanceSpec::CubicHystart),
        ],
        prop_oneof![Just(GrowthSpec::PerPacket), Just(GrowthSpec::PerAck)],
        prop_oneof![
            Just(HandshakeSpec::None),
            Just(HandshakeSpec::ThreeWay),
            Just(HandshakeSpec::FastOpen)
        ],
        prop_oneof![
            Just(IdleSpec::Linux),
            Just(IdleSpec::Restart),
            Just(IdleSpec::Keep)
        ],
        prop_oneof![Just(PacingSpec::Off), Just(PacingSpec::Linux)],
    );
    let receiver = (
        prop_oneof![
            Just(AckSpec::EveryPacket),
            Just(AckSpec::Linux),
            Just(AckSpec::Delayed)
        ],
        prop_oneof![
            Just(SackSpec::On),
            Just(SackSpec::Off),
            (0u32..20).prop_map(SackSpec::UpToRuns)
        ],
        prop_oneof![
            (2000u32..200_000).prop_map(WindowSpec::Fixed),
            Just(WindowSpec::Linux {
                first: 65_535,
                most: 4 << 20
            })
        ],
    );
    let numbers = (
        100u16..=1448,
        1u32..=40,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        prop_oneof![Just(0u32), Just(10_000), Just(500_000)],
        any::<bool>(),
        prop::option::of(any::<bool>()),
    );
    (ends, receiver, numbers).prop_map(|(ends, receiver, numbers)| Transport {
        recovery: ends.0,
        avoidance: ends.1,
        growth: ends.2,
        handshake: ends.3,
        idle: ends.4,
        pacing: ends.5,
        mss_bytes: numbers.0,
        initial_window_pkts: numbers.1,
        limited_transmit: numbers.2,
        timestamps: numbers.3,
        ecn: numbers.4,
        rto: match numbers.5 {
            0 => RtoSpec::linux(),
            tick_us => RtoSpec::classic(1_000_000, tick_us),
        },
        handshake_rtt: numbers.6,
        frto: numbers.7,
        receiver: ReceiverSpec {
            acks: receiver.0,
            delay_us: 40_000,
            sack: receiver.1,
            window: receiver.2,
        },
        ..Transport::linux()
    })
}

fn runners() -> impl Strategy<Value = Runner> {
    let startups: Vec<Startup> = Startup::all().collect();
    prop_oneof![
        Just(Runner::Native),
        prop::sample::select(startups).prop_map(|startup| Runner::Startup(Params::new(startup))),
    ]
}

fn traffics() -> impl Strategy<Value = Traffic> {
    let users = (
        1u32..5,
        1u32..4,
        1u64..5,
        any::<bool>(),
        1u8..4,
        any::<bool>(),
        1u64..2000,
    );
    let users = users.prop_map(
        |(users, pages, objects, index_first, parallel, persistent, think)| {
            Traffic::Users(Users {
                users,
                start: Distribution::fixed(Span::ZERO),
                stagger: ms(7),
                pages: Some(pages),
                objects: Distribution::fixed(Count(objects)),
                index_first,
                bytes: Sizes::Drawn(
                    Distribution::new(Law::Uniform(
                        ByteSize::from_bytes(1),
                        ByteSize::from_bytes(80_000),
                    ))
                    .unwrap(),
                ),
                parallel,
                persistent,
                think: Distribution::new(Law::Exponential(ms(think))).unwrap(),
            })
        },
    );
    let arrivals = (1u64..20, 1u64..300, prop::option::of(1u32..4));
    let arrivals = arrivals.prop_map(|(transfers, gap, connections)| {
        Traffic::Arrivals(Arrivals {
            start: Span::ZERO,
            transfers: Some(transfers),
            gap: Distribution::new(Law::Exponential(ms(gap))).unwrap(),
            bytes: Distribution::new(Law::Exponential(ByteSize::from_bytes(30_000))).unwrap(),
            connections,
        })
    });
    prop_oneof![users, arrivals]
}

fn specs() -> impl Strategy<Value = SimSpec> {
    let link = (
        prop_oneof![Just("1mbit"), Just("10mbit"), Just("100mbit")],
        1u64..60,
        prop_oneof![
            (1u32..60).prop_map(|pkts| format!("drop-tail:{pkts}")),
            (1u32..60).prop_map(|pkts| format!("priority:{pkts}")),
            Just("red:60,min=5,max=15,ecn".to_owned()),
            Just("codel:60".to_owned()),
        ],
        prop_oneof![Just(None), Just(Some("1%")), Just(Some("5%"))],
        prop_oneof![Just(None), Just(Some("3ms"))],
        prop_oneof![Just(None), Just(Some("1%"))],
    );
    let links = prop::collection::vec(link, 2..5).prop_map(|links| {
        let config = |(rate, delay_ms, queue, loss, jitter, duplicate): (
            &str,
            u64,
            String,
            Option<&str>,
            Option<&str>,
            Option<&str>,
        )| {
            let queue: QueueSpec = queue.parse().unwrap();
            LinkConfig {
                loss: loss.map(|text| text.parse().unwrap()),
                jitter: jitter.map(|text| text.parse().unwrap()),
                duplicate: duplicate.map(|text| text.parse().unwrap()),
                ..LinkConfig::new(rate.parse().unwrap(), ms(delay_ms), queue)
            }
        };
        links.into_iter().map(config).collect::<Vec<LinkConfig>>()
    });
    let group = (
        transports(),
        runners(),
        traffics(),
        prop::option::of(1u64..50),
    );
    (links, prop::collection::vec(group, 1..4)).prop_map(|(links, groups)| {
        let last = links.len() as u32 - 1;
        let routes = vec![
            Route {
                forward: (0..last).collect(),
                reverse: vec![last],
            },
            Route {
                forward: vec![last],
                reverse: vec![0],
            },
        ];
        let groups = (0u32..).zip(groups);
        let groups = groups.map(|(number, (transport, runner, traffic, extra_ms))| Group {
            name: format!("group {number}"),
            route: number % 2,
            transport,
            runner,
            destination: 0,
            extra_rtt: extra_ms
                .map(|extra_ms| Distribution::new(Law::Exponential(ms(extra_ms))).unwrap()),
            hints: true,
            head_bytes: 0,
            late_body: None,
            traffic,
        });
        SimSpec {
            groups: groups.collect(),
            links,
            routes,
            memory: Vec::new(),
            memory_params: MemoryParams::default(),
            ends_with: Vec::new(),
            until: ms(120_000),
            sample_every: ms(10),
        }
    })
}

/// Sees every packet and keeps the books.
#[derive(Default)]
struct Auditor {
    transfers: Vec<TransferDone>,
    windows: Vec<WindowSample>,
    last_ns: u64,
    /// Of each connection's slot: the first byte beyond what has been sent for the first time.
    sent_to: HashMap<(u32, u16), u64>,
    sent_pkts: u64,
    came_pkts: u64,
    dropped_pkts: u64,
    acked: HashMap<(u32, u16), u64>,
    wrong: Vec<String>,
}

impl Observer for Auditor {
    const WINDOWS: bool = true;
    const PACKETS: bool = true;

    fn transfer(&mut self, done: &TransferDone) {
        self.transfers.push(*done);
        if done.finished && done.delivered_bytes != done.bytes {
            self.wrong.push(format!("{done:?}"));
        }
        if done.duration_ns() == 0 {
            self.wrong.push(format!("no time: {done:?}"));
        }
    }

    fn window(&mut self, sample: &WindowSample) {
        self.windows.push(*sample);
        if sample.cwnd_pkts == 0 {
            self.wrong.push(format!("{sample:?}"));
        }
    }

    fn packet(&mut self, at_ns: u64, _group: u32, packet: &SimPacket, fate: PacketFate) {
        match fate {
            PacketFate::Sent => {
                if at_ns < self.last_ns {
                    self.wrong.push(format!("time runs back to {at_ns}"));
                }
                self.last_ns = at_ns;
                self.sent_pkts += 1;
                self.check_sent(packet);
            }
            PacketFate::Came => self.came_pkts += 1,
            PacketFate::Dropped(_) => self.dropped_pkts += 1,
        }
    }
}

impl Auditor {
    /// Data leaves in order and without gaps; what is sent again has been sent before.
    fn check_sent(&mut self, packet: &SimPacket) {
        match packet.kind {
            PacketKind::Data => {
                let end = packet.seq + u64::from(packet.payload_bytes);
                let sent_to = self.sent_to.entry(packet.connection()).or_insert(0);
                let fits = match packet.is_retransmission() {
                    true => end <= *sent_to,
                    false => packet.seq == *sent_to,
                };
                if !fits || packet.payload_bytes == 0 {
                    self.wrong.push(format!("{packet:?} after {sent_to}"));
                }
                *sent_to = end.max(*sent_to);
            }
            PacketKind::Ack => {
                let acked = self.acked.entry(packet.connection()).or_insert(0);
                let sent_to = self.sent_to.get(&packet.connection()).copied().unwrap_or(0);
                if packet.seq < *acked || packet.seq > sent_to {
                    self.wrong
                        .push(format!("{packet:?} after {acked}, sent {sent_to}"));
                }
                *acked = packet.seq;
            }
            _ => {}
        }
    }
}

fn audited(spec: SimSpec, seed: u64) -> (Auditor, Outcome) {
    let mut auditor = Auditor::default();
    let outcome = Simulation::new(spec, seed).unwrap().run(&mut auditor);
    (auditor, outcome)
}

proptest! {
    #[test]
    fn bytes_come_once_and_in_order_and_packets_are_conserved(spec in specs(), seed in 0u64..1000) {
        let queues: Vec<u32> = vec![60; spec.links.len()];
        let (auditor, outcome) = audited(spec, seed);
        prop_assert_eq!(&auditor.wrong, &Vec::<String>::new());
        prop_assert_eq!(outcome.sent_pkts, auditor.sent_pkts);
        let duplicated: u64 = outcome.links.iter().map(|link| link.duplicated_pkts).sum();
        prop_assert_eq!(
            outcome.sent_pkts + duplicated,
            outcome.received_pkts + outcome.dropped_pkts + outcome.left_pkts
        );
        prop_assert_eq!(auditor.dropped_pkts, outcome.dropped_pkts);
        prop_assert_eq!(auditor.came_pkts, outcome.received_pkts);
        for (link, limit) in outcome.links.iter().zip(queues) {
            prop_assert!(link.longest_queue_pkts <= limit);
            prop_assert!(link.busy_ns <= outcome.end_ns + 1_000_000_000);
        }
        let finished = auditor.transfers.iter().filter(|done| done.finished).count() as u64;
        prop_assert_eq!(finished, outcome.transfers);
        prop_assert_eq!(auditor.transfers.len() as u64, outcome.transfers + outcome.unfinished);
    }

    #[test]
    fn the_same_seed_gives_the_same_run_and_an_observer_changes_nothing(spec in specs(), seed in 0u64..1000) {
        let (first, outcome) = audited(spec.clone(), seed);
        let (second, again) = audited(spec.clone(), seed);
        prop_assert_eq!(&first.transfers, &second.transfers);
        prop_assert_eq!(&first.windows, &second.windows);
        prop_assert_eq!(&outcome, &again);
        let unseen = Simulation::new(spec, seed).unwrap().run(&mut ());
        prop_assert_eq!(outcome, unseen);
    }

    /// Without losses on the wire, where nothing can go wrong for long, every transfer ends.
    #[test]
    fn on_a_path_that_only_queues_every_transfer_ends(mut spec in specs(), seed in 0u64..1000) {
        for link in &mut spec.links {
            link.loss = None;
            link.queue = QueueSpec::drop_tail(50);
        }
        // A receiver that keeps what came out of order and does not say so makes F-RTO take a timeout for a spurious one
        // (RFC 5682, 3: as in Linux, original data is acknowledged), again and again, each after the longest wait.
        for group in &mut spec.groups {
            if matches!(group.transport.receiver.sack, SackSpec::UpToRuns(_)) {
                group.transport.frto = Some(false);
            }
        }
        spec.until = ms(3_600_000);
        let (auditor, outcome) = audited(spec, seed);
        prop_assert_eq!(outcome.unfinished, 0, "{:?}", auditor.transfers.iter().find(|done| !done.finished));
    }
}
