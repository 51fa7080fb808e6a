//! Small simulations for tests and benchmarks.

#![allow(
    dead_code,
    reason = "each of them is a crate of its own and uses a part"
)]
#![allow(
    clippy::unwrap_used,
    reason = "helpers: a failure here is a failure of the test"
)]

use headstart_link::{Distribution, LinkConfig, QueueSpec, Span};
use headstart_scenario::{ByteSize, Count};
use headstart_sim::{
    Group, MemoryParams, Outcome, Route, Runner, SimSpec, Simulation, Sizes, Traffic, TransferDone,
    Transport, Users,
};

pub(crate) fn ms(ms: u64) -> Span {
    Span::from_ns(ms * 1_000_000)
}

pub(crate) fn link(rate: &str, delay: Span, queue_pkts: u32) -> LinkConfig {
    LinkConfig::new(
        rate.parse().unwrap(),
        delay,
        QueueSpec::drop_tail(queue_pkts),
    )
}

/// One link each way, and nobody who sends.
pub(crate) fn road(rate: &str, rtt_ms: u64, queue_pkts: u32) -> SimSpec {
    let delay = Span::from_ns(rtt_ms * 500_000);
    SimSpec {
        links: vec![link(rate, delay, queue_pkts), link(rate, delay, queue_pkts)],
        routes: vec![Route {
            forward: vec![0],
            reverse: vec![1],
        }],
        groups: Vec::new(),
        memory: Vec::new(),
        memory_params: MemoryParams::default(),
        ends_with: Vec::new(),
        until: ms(600_000),
        sample_every: ms(10),
    }
}

/// One link each way, and one group.
pub(crate) fn dumbbell(rate: &str, rtt_ms: u64, queue_pkts: u32, group: Group) -> SimSpec {
    SimSpec {
        groups: vec![group],
        ..road(rate, rtt_ms, queue_pkts)
    }
}

pub(crate) fn group(transport: Transport, runner: Runner, traffic: Traffic) -> Group {
    Group {
        name: "flows".to_owned(),
        route: 0,
        transport,
        runner,
        destination: 0,
        extra_rtt: None,
        hints: false,
        head_bytes: 0,
        late_body: None,
        traffic,
    }
}

/// One user, one transfer after the other with these sizes, each over its own connection.
pub(crate) fn in_turn(sizes: &[u64]) -> Users {
    let sizes: Vec<ByteSize> = sizes
        .iter()
        .map(|bytes| ByteSize::from_bytes(*bytes))
        .collect();
    Users {
        users: 1,
        start: Distribution::fixed(Span::ZERO),
        stagger: Span::ZERO,
        pages: Some(sizes.len() as u32),
        objects: Distribution::fixed(Count(1)),
        index_first: false,
        bytes: Sizes::InTurn(sizes),
        parallel: 1,
        persistent: false,
        think: Distribution::fixed(Span::ZERO),
    }
}

pub(crate) fn run(spec: SimSpec) -> (Vec<TransferDone>, Outcome) {
    let mut done = Vec::new();
    let outcome = Simulation::new(spec, 1).unwrap().run(&mut done);
    (done, outcome)
}
