//! A `[[case]]` as a run: what `headstart compare` measures on the kernel, in virtual time.

use headstart_core::{INFINITE_SSTHRESH, WHY_ORDINARY_LOSS, WHY_SSTHRESH, why_name};
use headstart_link::{Distribution, JitterSpec, Span};
use headstart_scenario::{
    AvoidanceSpec, ByteSize, Case, Count, Direction, Ground, PacketRow, RecoverySpec, Sizes,
    Traffic, TransferRecord, Transport, Users, WindowRow,
};

use super::{Contender, Study, StudyError};
use crate::{
    Exit, Group, Observer, PacketFate, PacketKind, Route, Runner, SimPacket, SimSpec, Simulation,
    TransferDone, WindowSample,
};

/// What the server of a comparison puts before the body, in a write of its own: nginx's status line
/// and headers (1.22, a file of no known type, a connection that is kept), but for the size.
const RESPONSE_HEADER_BYTES: u16 = 233;

/// By how much at most the hosts of a comparison delay a packet each way: processors wake up, threads
/// take turns. Acknowledgements clock the sender, so that without it packets come to a queue in the very
/// nanosecond in which it gives one away, time after time. In the kernel in virtual time, which is never
/// late, acknowledgements of one round trip are up to 16 us more or less apart than their packets were;
/// the emulator on a machine hands packets on with more (docs/path.md).
const HOST_JITTER: Span = Span::from_ns(20_000);

/// With the size in `Content-Length`, and in hexadecimal in the entity tag.
fn header_bytes(size: ByteSize) -> u16 {
    let bytes = size.bytes().max(1);
    RESPONSE_HEADER_BYTES + (bytes.ilog10() + 1 + bytes.ilog2() / 4 + 1) as u16
}

/// One run of a case.
pub(super) struct CaseRun {
    pub(super) record: TransferRecord,
    pub(super) packets: Vec<PacketRow>,
    pub(super) windows: Vec<WindowRow>,
    pub(super) carried_pkts: u64,
    pub(super) events: u64,
}

/// The run of `case` under `contender`.
fn spec_of(study: &Study, contender: &Contender, case: &Case) -> SimSpec {
    let scenario = &study.scenario;
    let on_wire =
        |size: ByteSize| ByteSize::from_bytes(size.bytes() + u64::from(header_bytes(size)));
    let sizes = case.warm_bytes().into_iter().chain([case.bytes()]);
    let sizes: Vec<ByteSize> = sizes.map(on_wire).collect();
    // After a warming transfer on a connection of its own, as long as a comparison waits.
    let pause = case
        .idle()
        .unwrap_or(Span::from_ns(scenario.path.rtt().as_ns().saturating_mul(2)));
    let users = Users {
        users: 1,
        start: Distribution::fixed(Span::ZERO),
        stagger: Span::ZERO,
        pages: u32::try_from(sizes.len()).ok(),
        objects: Distribution::fixed(Count(1)),
        index_first: false,
        bytes: Sizes::InTurn(sizes),
        parallel: 1,
        persistent: case.idle().is_some(),
        think: Distribution::fixed(pause),
    };
    let (mut forward, mut reverse) = scenario.path.seeded(0);
    // The papers' simulators have hosts that take no time.
    let usual = match scenario.sim.transport.recovery {
        RecoverySpec::Linux => HOST_JITTER,
        _ => Span::ZERO,
    };
    let jitter = scenario.sim.host_jitter.unwrap_or(usual);
    if jitter > Span::ZERO {
        for link in [&mut forward, &mut reverse] {
            link.jitter.get_or_insert(JitterSpec::Ordered(jitter));
        }
    }
    SimSpec {
        links: vec![forward, reverse],
        routes: vec![Route {
            forward: vec![0],
            reverse: vec![1],
        }],
        groups: vec![Group {
            name: case.kind().name().to_owned(),
            route: 0,
            transport: Transport {
                avoidance: contender.avoidance,
                ..scenario.sim.transport
            },
            runner: contender.runner,
            destination: 0,
            extra_rtt: None,
            hints: false,
            head_bytes: header_bytes(case.bytes()),
            late_body: None,
            traffic: Traffic::Users(users),
        }],
        memory: Vec::new(),
        memory_params: study.memory_params,
        ends_with: Vec::new(),
        until: scenario.sim.until,
        sample_every: Span::ZERO,
    }
}

/// Keeps the last transfer, and what was seen of it.
struct Watch {
    done: Option<TransferDone>,
    /// Packets and windows since the transfer before ended.
    packets: Vec<(u64, SimPacket, PacketFate)>,
    windows: Vec<WindowSample>,
}

impl Observer for Watch {
    const WINDOWS: bool = true;
    const PACKETS: bool = true;

    fn transfer(&mut self, done: &TransferDone) {
        if self.done.is_some() {
            // The one before was to warm the path.
            let ended_ns = self.done.map_or(0, |before| before.end_ns);
            self.packets.retain(|(at_ns, ..)| *at_ns > ended_ns);
            self.windows.retain(|sample| sample.at_ns > ended_ns);
        }
        self.done = Some(*done);
    }

    fn late_exit(&mut self, conn: u32, exit: Exit) {
        leave_late(&mut self.done, conn, exit);
    }

    fn window(&mut self, sample: &WindowSample) {
        self.windows.push(*sample);
    }

    fn packet(&mut self, at_ns: u64, _group: u32, packet: &SimPacket, fate: PacketFate) {
        self.packets.push((at_ns, *packet, fate));
    }
}

/// Keeps the last transfer.
struct Last(Option<TransferDone>);

impl Observer for Last {
    fn transfer(&mut self, done: &TransferDone) {
        self.0 = Some(*done);
    }

    fn late_exit(&mut self, conn: u32, exit: Exit) {
        leave_late(&mut self.0, conn, exit);
    }
}

/// A start-up leaves by what its sender hears, half a round trip after the client has all.
fn leave_late(done: &mut Option<TransferDone>, conn: u32, exit: Exit) {
    if let Some(done) = done.as_mut().filter(|done| done.conn == conn) {
        done.exit.get_or_insert(exit);
    }
}

pub(super) fn run(
    study: &Study,
    contender: &Contender,
    case: &Case,
    repeat: u32,
    order: usize,
) -> Result<CaseRun, StudyError> {
    let spec = spec_of(study, contender, case);
    let expected = 1 + u64::from(case.warm_bytes().is_some());
    let seed = study.seed.wrapping_add(u64::from(repeat));
    let simulation = Simulation::new(spec, seed).map_err(|cause| StudyError::Sim {
        file: study.scenario.file().to_owned(),
        cause,
    })?;
    let mut watch = Watch {
        done: None,
        packets: Vec::new(),
        windows: Vec::new(),
    };
    let outcome = if study.details {
        simulation.run(&mut watch)
    } else {
        let mut last = Last(None);
        let outcome = simulation.run(&mut last);
        watch.done = last.0;
        outcome
    };
    let done = watch.done.filter(|_| outcome.transfers == expected);
    let record = record(study, contender, case, repeat, order, done);
    let (packets, windows) = match done {
        Some(done) if study.details => details(&record, &done, &watch),
        _ => (Vec::new(), Vec::new()),
    };
    Ok(CaseRun {
        record,
        packets,
        windows,
        carried_pkts: outcome.links.first().map_or(0, |link| link.out_pkts),
        events: outcome.events,
    })
}

/// A transfer that is not over when the run ends is not valid.
fn record(
    study: &Study,
    contender: &Contender,
    case: &Case,
    repeat: u32,
    order: usize,
    done: Option<TransferDone>,
) -> TransferRecord {
    let scenario = &study.scenario;
    let ms = |ns: u64| ns as f64 / 1e6;
    let connect_ns = done.and_then(|done| Some(done.connected_ns? - done.start_ns));
    let exit = done.and_then(|done| match uses_the_stacks_own(contender) {
        true => slow_start_end(contender.avoidance, &done),
        false => done.exit,
    });
    TransferRecord {
        startup: contender.name.clone(),
        on: Ground::Sim,
        path: scenario.path_name.clone(),
        case: case.kind(),
        repeat,
        order: u32::try_from(order).unwrap_or(u32::MAX),
        lane: 0,
        bytes: case.bytes().bytes(),
        fct_ms: done.map_or(0.0, |done| ms(done.duration_ns())),
        connect_ms: connect_ns.map_or(0.0, ms),
        limit_ms: scenario.path.limit_ms(case),
        retransmitted_pkts: done.map_or(0, |done| done.retransmitted_pkts),
        router_drops: done.map_or(0, |done| done.dropped_pkts),
        exit_why: exit.map(|exit| why_name(exit.why).to_owned()),
        exit_cwnd_pkts: exit.map(|exit| exit.cwnd_pkts),
        valid: done.is_some(),
        invalid_reason: done.is_none().then(|| {
            let until = study.scenario.sim.until;
            format!("not over after {until}; give [simulation] a later until")
        }),
    }
}

/// Whether slow start is the stack's own.
fn uses_the_stacks_own(contender: &Contender) -> bool {
    match &contender.runner {
        Runner::Native => true,
        Runner::Startup(params) => {
            params.startup().name() == "su_standard" && params.get("hystart") == Some(1)
        }
    }
}

/// What a loss leaves of the window: CUBIC's beta in Linux, 717/1024 (RFC 9438, 4.6: 0.7); Reno's half
/// (RFC 5681).
fn left_by_loss(avoidance: AvoidanceSpec) -> f64 {
    match avoidance {
        AvoidanceSpec::Reno => 0.5,
        AvoidanceSpec::Cubic | AvoidanceSpec::CubicHystart => 717.0 / 1024.0,
    }
}

/// How the stack's own slow start ended: as a comparison on the kernel sees it, by where ssthresh first
/// has a value. Of a loss it sees what is left of the window, in whole packets.
fn slow_start_end(avoidance: AvoidanceSpec, done: &TransferDone) -> Option<Exit> {
    let end = done.slow_start_end?;
    let by_loss = end.ssthresh_pkts < end.cwnd_pkts;
    let left = f64::from(end.ssthresh_pkts) / left_by_loss(avoidance);
    (end.at_ns >= done.start_ns).then_some(match by_loss {
        true => Exit {
            why: WHY_ORDINARY_LOSS,
            cwnd_pkts: left.round() as u32,
        },
        false => Exit {
            why: WHY_SSTHRESH,
            cwnd_pkts: end.cwnd_pkts,
        },
    })
}

fn details(
    record: &TransferRecord,
    done: &TransferDone,
    watch: &Watch,
) -> (Vec<PacketRow>, Vec<WindowRow>) {
    let since_ms = |at_ns: u64| (at_ns as f64 - done.start_ns as f64) / 1e6;
    let data = watch.packets.iter().map(|(_, packet, _)| packet);
    let data = data.filter(|packet| packet.kind == PacketKind::Data && packet.conn == done.conn);
    let first_byte = match done.turn {
        0 => 0,
        _ => data.map(|packet| packet.seq).min().unwrap_or(0),
    };
    let offset = |seq: u64| seq.saturating_sub(first_byte);
    let packets = watch.packets.iter().filter_map(|(at_ns, packet, fate)| {
        let direction = match packet.kind {
            PacketKind::Data => Direction::Data,
            PacketKind::Ack => Direction::Ack,
            _ => return None,
        };
        // On arrival at the bottleneck, as a comparison sees them: when they left their sender.
        let dropped = matches!(fate, PacketFate::Dropped(_));
        if packet.conn != done.conn || (*fate != PacketFate::Sent && !dropped) {
            return None;
        }
        Some(PacketRow {
            startup: record.startup.clone(),
            on: record.on,
            path: record.path.clone(),
            case: record.case,
            bytes: record.bytes,
            repeat: record.repeat,
            t_ms: since_ms(*at_ns),
            direction,
            from_byte: offset(packet.seq),
            to_byte: offset(packet.seq + u64::from(packet.payload_bytes)),
            low_priority: packet.is_low_priority(),
            retransmission: packet.is_retransmission(),
            dropped,
        })
    });
    let windows = watch
        .windows
        .iter()
        .filter(|sample| sample.conn == done.conn);
    let windows = windows.map(|sample| WindowRow {
        startup: record.startup.clone(),
        on: record.on,
        path: record.path.clone(),
        case: record.case,
        bytes: record.bytes,
        repeat: record.repeat,
        t_ms: since_ms(sample.at_ns),
        cwnd_pkts: sample.cwnd_pkts,
        ssthresh_pkts: (sample.ssthresh_pkts < INFINITE_SSTHRESH).then_some(sample.ssthresh_pkts),
        srtt_ms: f64::from(sample.srtt_us) / 1e3,
        inflight_pkts: sample.inflight_pkts,
    });
    (mark_drops(packets.collect()), windows.collect())
}

/// A packet is seen as it leaves, and again when it is dropped: one row of the two.
fn mark_drops(rows: Vec<PacketRow>) -> Vec<PacketRow> {
    let mut kept: Vec<PacketRow> = Vec::with_capacity(rows.len());
    for row in rows {
        if row.dropped
            && let Some(sent) = kept.iter_mut().rev().find(|sent| {
                sent.direction == row.direction && sent.from_byte == row.from_byte && !sent.dropped
            })
        {
            sent.dropped = true;
        } else {
            kept.push(row);
        }
    }
    kept
}
