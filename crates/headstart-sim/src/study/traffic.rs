//! The `[[traffic]]` of a scenario: all of it at once, in one run for each start-up and repeat.

use std::sync::Mutex;
use std::sync::PoisonError;

use headstart_core::{Ended, INFINITE_SSTHRESH, Path, why_name};
use headstart_link::Span;
use headstart_scenario::{
    AvoidanceSpec, Extremes, KnownPath, LinkCell, PathEnding, Scenario, SimQueueRow,
    SimTransferRow, SimWindowRow, Summary, TrafficCell, TrafficGroup, Transport,
};
use rayon::prelude::*;

use super::{Contender, Control, Rows, Study, StudyError, StudyOutcome, memory_params};
use crate::{
    Group, Observer, Outcome, QueueSample, Route, SimSpec, Simulation, TransferDone, WindowSample,
};

/// Rows are handed on in lots of this many.
const LOT: usize = 1 << 14;

/// The run of a scenario's traffic under `contender`.
///
/// # Errors
/// A group whose own start-up is not there.
pub fn spec_of(scenario: &Scenario, contender: &Contender) -> Result<SimSpec, StudyError> {
    let sim = &scenario.sim;
    let mut spec = SimSpec {
        links: sim.links.iter().map(|(_, link)| link.clone()).collect(),
        routes: Vec::new(),
        groups: Vec::new(),
        memory: sim.memory.iter().map(path_of).collect(),
        memory_params: memory_params(scenario)?,
        ends_with: sim.ends_with.clone(),
        until: sim.until,
        sample_every: sim.sample_every,
    };
    for group in &sim.traffic {
        let route = Route {
            forward: group.route.clone(),
            reverse: group.reverse_route.clone(),
        };
        let known = spec.routes.iter().position(|other| *other == route);
        let number = known.unwrap_or_else(|| {
            spec.routes.push(route);
            spec.routes.len() - 1
        });
        spec.groups
            .push(group_of(scenario, group, number as u32, contender)?);
    }
    Ok(spec)
}

/// What is remembered, as `core/path_memory.h` would have it after one connection; `window_pkts` in a
/// round trip is what was delivered.
fn path_of(known: &KnownPath) -> (u32, Path) {
    let us = |span: Span| u32::try_from(span.as_ns() / 1000).unwrap_or(u32::MAX);
    let mpkts = known.window_pkts.saturating_mul(1000);
    let found = known.ended == PathEnding::Avoidance;
    let path = Path {
        age_us: known.age.as_ns() / 1000,
        cwnd_pkts: known.window_pkts,
        ssthresh_pkts: known.ssthresh_pkts,
        srtt_us: us(known.srtt),
        rttvar_us: us(known.rttvar),
        min_rtt_us: us(known.rtt),
        min_rtt_mean_us: us(known.rtt),
        ending_mpkts: mpkts,
        window_mean_mpkts: if found { mpkts } else { 0 },
        samples: 1,
        ended: match known.ended {
            PathEnding::SlowStart => Ended::SlowStart,
            PathEnding::Avoidance => Ended::Avoidance,
            PathEnding::Recovery => Ended::Recovery,
        } as u8,
        ..Path::default()
    };
    (known.destination, path)
}

fn group_of(
    scenario: &Scenario,
    group: &TrafficGroup,
    route: u32,
    contender: &Contender,
) -> Result<Group, StudyError> {
    let own = match &group.startup {
        None => None,
        Some(listed) => match Contender::named(&listed.name, scenario.sim.hystart) {
            Some(own) => Some(own),
            None => {
                let known: Vec<&str> = ["cubic", "reno"]
                    .into_iter()
                    .chain(headstart_core::Startup::all().map(headstart_core::Startup::name))
                    .collect();
                return Err(scenario.unknown_startup(listed, &known).into());
            }
        },
    };
    let contender = own.as_ref().unwrap_or(contender);
    let avoidance: AvoidanceSpec = contender.avoidance;
    Ok(Group {
        name: group.name.clone(),
        route,
        transport: Transport {
            avoidance,
            ..group.transport
        },
        runner: contender.runner,
        destination: group.destination,
        extra_rtt: group.extra_rtt.clone(),
        hints: group.hints,
        head_bytes: 0,
        late_body: group.late_body.clone(),
        traffic: group.traffic.clone(),
    })
}

/// What one run leaves for the summaries.
struct Run {
    outcome: Outcome,
    /// Of each group: the times of its transfers, and their retransmissions.
    fcts_ms: Vec<Vec<f64>>,
    retransmitted: Vec<Vec<u64>>,
    delivered_bytes: Vec<u64>,
    unfinished: Vec<u64>,
}

struct Collector<'a, 'r> {
    study: &'a Study,
    control: &'a Control,
    startup: &'a str,
    run: usize,
    repeat: u32,
    rows: &'a Mutex<&'r mut (dyn Rows + 'r)>,
    transfers: Vec<SimTransferRow>,
    windows: Vec<SimWindowRow>,
    queues: Vec<SimQueueRow>,
    kept: Run,
}

impl Collector<'_, '_> {
    fn hand_on(&mut self, least: usize) {
        let mut rows = None;
        let mut lock = || self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if self.transfers.len() > least {
            let lot = std::mem::take(&mut self.transfers);
            rows.get_or_insert_with(&mut lock).transfers(self.run, lot);
        }
        if self.windows.len() > least {
            let lot = std::mem::take(&mut self.windows);
            rows.get_or_insert_with(&mut lock).windows(self.run, lot);
        }
        if self.queues.len() > least {
            let lot = std::mem::take(&mut self.queues);
            rows.get_or_insert_with(&mut lock).queues(self.run, lot);
        }
    }

    fn group_name(&self, group: u32) -> &str {
        let groups = &self.study.scenario.sim.traffic;
        groups.get(group as usize).map_or("", |group| &group.name)
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// With windows and queues, or without.
struct Detailed<'a, 'r, const DETAILS: bool>(Collector<'a, 'r>);

impl<const DETAILS: bool> Observer for Detailed<'_, '_, DETAILS> {
    const WINDOWS: bool = DETAILS;
    const QUEUES: bool = DETAILS;

    fn transfer(&mut self, done: &TransferDone) {
        let collector = &mut self.0;
        let group = done.group as usize;
        collector.kept.delivered_bytes[group] += done.delivered_bytes;
        if done.finished {
            collector.kept.fcts_ms[group].push(ms(done.duration_ns()));
            collector.kept.retransmitted[group].push(done.retransmitted_pkts);
        } else {
            collector.kept.unfinished[group] += 1;
        }
        if !DETAILS {
            return;
        }
        let row = SimTransferRow {
            startup: collector.startup.to_owned(),
            group: collector.group_name(done.group).to_owned(),
            repeat: collector.repeat,
            user: done.user,
            conn: done.conn,
            turn: done.turn,
            start_ms: ms(done.start_ns),
            connect_ms: done.connected_ns.map(|at_ns| ms(at_ns - done.start_ns)),
            fct_ms: ms(done.duration_ns()),
            bytes: done.bytes,
            delivered_bytes: done.delivered_bytes,
            finished: done.finished,
            round_trips: done.round_trips(),
            retransmitted_pkts: done.retransmitted_pkts,
            dropped_pkts: done.dropped_pkts,
            sack_walk_pkts: done.sack_walk_pkts,
            timeouts: done.timeouts,
            exit_why: done.exit.map(|exit| why_name(exit.why).to_owned()),
            exit_cwnd_pkts: done.exit.map(|exit| exit.cwnd_pkts),
            slow_start_end_ms: done.slow_start_end.map(|end| ms(end.at_ns)),
            slow_start_end_cwnd_pkts: done.slow_start_end.map(|end| end.cwnd_pkts),
        };
        collector.transfers.push(row);
        collector.hand_on(LOT);
    }

    fn window(&mut self, sample: &WindowSample) {
        let collector = &mut self.0;
        let row = SimWindowRow {
            startup: collector.startup.to_owned(),
            group: collector.group_name(sample.group).to_owned(),
            repeat: collector.repeat,
            conn: sample.conn,
            t_ms: ms(sample.at_ns),
            cwnd_pkts: sample.cwnd_pkts,
            ssthresh_pkts: (sample.ssthresh_pkts < INFINITE_SSTHRESH)
                .then_some(sample.ssthresh_pkts),
            srtt_ms: f64::from(sample.srtt_us) / 1e3,
            inflight_pkts: sample.inflight_pkts,
        };
        collector.windows.push(row);
        collector.hand_on(LOT);
    }

    fn queue(&mut self, sample: &QueueSample) {
        let collector = &mut self.0;
        let links = &collector.study.scenario.sim.links;
        let link = links.get(sample.link as usize);
        let row = SimQueueRow {
            startup: collector.startup.to_owned(),
            repeat: collector.repeat,
            link: link.map_or_else(String::new, |(name, _)| name.clone()),
            t_ms: ms(sample.at_ns),
            len_pkts: sample.len_pkts,
            dropped_pkts: sample.counters.dropped_pkts.total(),
            out_pkts: sample.counters.out_pkts,
            busy_ms: ms(sample.counters.busy_ns),
        };
        collector.queues.push(row);
        collector.hand_on(LOT);
    }

    fn goes_on(&mut self) -> bool {
        !self.0.control.stopped()
    }
}

pub(super) fn run(
    study: &Study,
    control: &Control,
    rows: &mut dyn Rows,
    outcome: &mut StudyOutcome,
) -> Result<(), StudyError> {
    let mut jobs = Vec::new();
    for contender in &study.contenders {
        for repeat in 0..study.repeat {
            jobs.push((jobs.len(), contender, repeat));
        }
    }
    let rows = Mutex::new(rows);
    let runs: Result<Vec<Option<Run>>, StudyError> = jobs
        .par_iter()
        .map(|(number, contender, repeat)| {
            let done = if control.stopped() {
                None
            } else {
                Some(run_one(study, control, contender, *repeat, *number, &rows)?)
            };
            rows.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .over(*number);
            Ok(done)
        })
        .collect();
    let runs = runs?;
    for (index, contender) in study.contenders.iter().enumerate() {
        let each = study.repeat as usize;
        let own: Vec<&Run> = runs
            .iter()
            .skip(index * each)
            .take(each)
            .flatten()
            .collect();
        summarise(study, &contender.name, &own, outcome);
    }
    Ok(())
}

fn run_one<'r>(
    study: &Study,
    control: &Control,
    contender: &Contender,
    repeat: u32,
    number: usize,
    rows: &Mutex<&'r mut (dyn Rows + 'r)>,
) -> Result<Run, StudyError> {
    let spec = spec_of(&study.scenario, contender)?;
    let groups = spec.groups.len();
    let seed = study.seed.wrapping_add(u64::from(repeat));
    let simulation = Simulation::new(spec, seed).map_err(|cause| StudyError::Sim {
        file: study.scenario.file().to_owned(),
        cause,
    })?;
    let collector = Collector {
        study,
        control,
        startup: &contender.name,
        run: number,
        repeat,
        rows,
        transfers: Vec::new(),
        windows: Vec::new(),
        queues: Vec::new(),
        kept: Run {
            outcome: Outcome::default(),
            fcts_ms: vec![Vec::new(); groups],
            retransmitted: vec![Vec::new(); groups],
            delivered_bytes: vec![0; groups],
            unfinished: vec![0; groups],
        },
    };
    let (outcome, mut collector) = if study.details {
        let mut observer = Detailed::<'_, '_, true>(collector);
        (simulation.run(&mut observer), observer.0)
    } else {
        let mut observer = Detailed::<'_, '_, false>(collector);
        (simulation.run(&mut observer), observer.0)
    };
    collector.hand_on(0);
    let mut run = collector.kept;
    run.outcome = outcome;
    control
        .done
        .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    Ok(run)
}

fn summarise(study: &Study, startup: &str, runs: &[&Run], outcome: &mut StudyOutcome) {
    for run in runs {
        outcome.carried_pkts += run.outcome.links.first().map_or(0, |link| link.out_pkts);
        outcome.events += run.outcome.events;
    }
    let simulated_s: f64 = runs.iter().map(|run| run.outcome.end_ns as f64 / 1e9).sum();
    for (index, group) in study.scenario.sim.traffic.iter().enumerate() {
        let fcts_ms: Vec<f64> = runs
            .iter()
            .flat_map(|run| run.fcts_ms[index].iter().copied())
            .collect();
        let retransmitted: Vec<u64> = runs
            .iter()
            .flat_map(|run| run.retransmitted[index].iter().copied())
            .collect();
        let delivered_bytes: u64 = runs.iter().map(|run| run.delivered_bytes[index]).sum();
        outcome.traffic.push(TrafficCell {
            startup: startup.to_owned(),
            group: group.name.clone(),
            runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
            transfers: fcts_ms.len() as u64,
            unfinished: runs.iter().map(|run| run.unfinished[index]).sum(),
            fct_ms: Summary::of(&fcts_ms),
            retransmitted_pkts: Extremes::of(&retransmitted),
            delivered_bytes,
            goodput_bit_per_s: match simulated_s > 0.0 {
                true => delivered_bytes as f64 * 8.0 / simulated_s,
                false => 0.0,
            },
        });
    }
    for (index, (name, _)) in study.scenario.sim.links.iter().enumerate() {
        let links = || runs.iter().map(|run| &run.outcome.links[index]);
        let busy_s: f64 = links().map(|link| link.busy_ns as f64 / 1e9).sum();
        outcome.links.push(LinkCell {
            startup: startup.to_owned(),
            link: name.clone(),
            out_pkts: links().map(|link| link.out_pkts).sum(),
            dropped_pkts: links().map(|link| link.dropped_pkts.total()).sum(),
            longest_queue_pkts: links()
                .map(|link| link.longest_queue_pkts)
                .max()
                .unwrap_or(0),
            utilisation: match simulated_s > 0.0 {
                true => (busy_s / simulated_s).min(1.0),
                false => 0.0,
            },
        });
    }
}
