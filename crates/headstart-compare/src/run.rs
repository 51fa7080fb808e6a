//! A whole comparison: repeats, lanes, the document.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use headstart_core::{Ending, Params, WHY_ORDINARY_LOSS, WHY_SSTHRESH, why_name};
use headstart_kernel::{Counter, Kernel, MemoryOptions, Options, Record, RecordLevel};
use headstart_scenario::{
    Ground, Machine, PacketRow, ResultsDocument, Run, TransferRecord, WindowRow, cells_of,
};

use crate::client::find_curl;
use crate::error::CompareError;
use crate::plan::{CongestionControl, Plan, Runner};
use crate::server::find_nginx;
use crate::visit::{Measured, Visit, Visited};

/// How often a visit is made again when the path was not the one asked for.
const RETRIES: u32 = 2;

/// The two-way line to whoever started the run: progress out, "stop" in.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    transfers: AtomicU64,
}

impl Control {
    /// Asks the run to end as soon as it can.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How many transfers have been measured.
    pub fn transfers(&self) -> u64 {
        self.transfers.load(Ordering::Relaxed)
    }

    pub(crate) fn transfer_done(&self) {
        self.transfers.fetch_add(1, Ordering::Relaxed);
    }

    fn transfers_undone(&self, number: usize) {
        self.transfers.fetch_sub(number as u64, Ordering::Relaxed);
    }
}

/// What came of a comparison.
#[derive(Debug)]
pub struct Outcome {
    /// The results document.
    pub document: ResultsDocument,
    /// Every measured transfer.
    pub transfers: Vec<TransferRecord>,
    /// Every packet of them.
    pub packets: Vec<PacketRow>,
    /// Every look at the sender's window.
    pub windows: Vec<WindowRow>,
}

/// Carries out `plan`.
///
/// # Errors
/// [`CompareError`]; what had been set up is taken down before it is returned.
pub fn run(plan: &Plan, control: &Control) -> Result<Outcome, CompareError> {
    let started = SystemTime::now();
    let clock = Instant::now();
    let (nginx, curl) = (find_nginx()?, find_curl()?);
    // One start-up may take part several times; its parameters are those of the batch that runs.
    let mut ours: Vec<Params> = Vec::new();
    for params in plan
        .runners
        .iter()
        .filter_map(|runner| runner.control.params())
    {
        if ours.iter().all(|other| other.startup() != params.startup()) {
            ours.push(*params);
        }
    }
    let options = Options {
        startups: ours,
        record_level: RecordLevel::Decisions,
        // Each lane is a network of its own: none is to know what another has learnt.
        memory: MemoryOptions::of_networks(),
        ..Options::default()
    };
    let run = WholeRun {
        plan,
        control,
        dscp: options.dscp,
        kernel: Mutex::new(Kernel::load(&options)?),
        nginx,
        curl,
    };
    let mut measured: Vec<Measured> = Vec::new();
    let (mut packets, mut samples_lost) = (0, 0);
    for repeat in plan.first_repeat..plan.first_repeat + plan.repeat {
        for (first, runners) in batches(&plan.order(repeat), plan.side_by_side) {
            for visited in run.side_by_side(repeat, first, &runners)? {
                packets += visited.packets;
                samples_lost += visited.samples_lost;
                measured.extend(visited.transfers);
            }
        }
    }
    let mut outcome = gather(plan, measured, packets);
    let records_lost = run.kernel().counter(Counter::RecordsLost)?;
    if samples_lost + records_lost > 0 {
        outcome.document.warnings.push(format!(
            "{samples_lost} looks at the window and {records_lost} decisions were lost: the kernel's ring buffer \
             was full; windows and exits are incomplete, times and packets are not"
        ));
    }
    // Virtual time begins at a date of its own.
    outcome.document.started = (plan.ground != Ground::Virtual)
        .then(|| humantime::format_rfc3339_seconds(started).to_string());
    outcome.document.run.wall_s = clock.elapsed().as_secs_f64();
    Ok(outcome)
}

/// The runners of one repeat in groups that run side by side, each with the position of its first. The kernel
/// has one set of parameters for a start-up, so no two of the same one are in a group.
fn batches(order: &[Runner], side_by_side: usize) -> Vec<(usize, Vec<Runner>)> {
    let mut batches: Vec<(usize, Vec<Runner>)> = Vec::new();
    for (position, runner) in order.iter().enumerate() {
        let is_twin = |other: &Runner| {
            let ours = matches!(runner.control, CongestionControl::Ours(_));
            ours && other.control.name() == runner.control.name()
        };
        match batches.last_mut() {
            Some((_, batch)) if batch.len() < side_by_side && !batch.iter().any(is_twin) => {
                batch.push(runner.clone());
            }
            _ => batches.push((position, vec![runner.clone()])),
        }
    }
    batches
}

struct WholeRun<'a> {
    plan: &'a Plan,
    control: &'a Control,
    dscp: u8,
    kernel: Mutex<Kernel>,
    nginx: PathBuf,
    curl: PathBuf,
}

impl WholeRun<'_> {
    fn kernel(&self) -> MutexGuard<'_, Kernel> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One visit for each of `runners`, at the same time, each on a lane of its own.
    fn side_by_side(
        &self,
        repeat: u32,
        first: usize,
        runners: &[Runner],
    ) -> Result<Vec<Visited>, CompareError> {
        for params in runners.iter().filter_map(|runner| runner.control.params()) {
            self.kernel().set_params(params)?;
        }
        let visits: Vec<Visit<'_>> = runners
            .iter()
            .enumerate()
            .map(|(lane, runner)| self.visit(repeat, first + lane, lane, runner))
            .collect();
        let outcomes: Vec<Result<Visited, CompareError>> = std::thread::scope(|scope| {
            let threads: Vec<_> = visits
                .iter()
                .map(|visit| scope.spawn(|| self.with_retries(visit)))
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        });
        let mut visited = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
        let records = self.kernel().take_records()?;
        for (visited, runner) in visited.iter_mut().zip(runners) {
            for transfer in &mut visited.transfers {
                name_the_exit(transfer, &runner.control, &records);
            }
        }
        Ok(visited)
    }

    fn visit<'a>(
        &'a self,
        repeat: u32,
        position: usize,
        lane: usize,
        runner: &'a Runner,
    ) -> Visit<'a> {
        let cases = self.plan.scenario.cases.len();
        let before = repeat as usize * self.plan.runners.len() + position;
        Visit {
            plan: self.plan,
            kernel: &self.kernel,
            dscp: self.dscp,
            nginx: &self.nginx,
            curl: &self.curl,
            control: self.control,
            runner,
            repeat,
            lane: u8::try_from(lane).unwrap_or(u8::MAX),
            order: u32::try_from(before * cases).unwrap_or(u32::MAX),
        }
    }

    /// Makes a visit again when the machine was too busy for the path to be what was asked for.
    fn with_retries(&self, visit: &Visit<'_>) -> Result<Visited, CompareError> {
        let mut visited = visit.run()?;
        for _ in 0..RETRIES {
            if visited.valid || self.control.stopped() {
                break;
            }
            self.control.transfers_undone(visited.transfers.len());
            visited = visit.run()?;
        }
        Ok(visited)
    }
}

/// The reason with which the start-up left, and the window at that moment; else how slow start ended, as the
/// windows show it.
fn name_the_exit(transfer: &mut Measured, control: &CongestionControl, records: &[Record]) {
    let during = transfer.began_ns..=transfer.ended_ns + 1_000_000;
    let of_transfer = |record: &&Record| {
        record.remote_addr == transfer.client
            && record.remote_port == transfer.port
            && during.contains(&record.at_ns)
    };
    let mut endings = records.iter().filter(of_transfer);
    let left = endings
        .clone()
        .find(|record| record.verdict.ending() == Ending::Left);
    let rests = || endings.rfind(|record| record.verdict.ending() == Ending::Rests);
    if let Some(left_by_loss) = stacks_own(control) {
        if let Some((why, cwnd_pkts)) = slow_start_end(left_by_loss, transfer) {
            transfer.record.exit_why = Some(why_name(why).to_owned());
            transfer.record.exit_cwnd_pkts = Some(cwnd_pkts);
        }
    } else if let Some(record) = left.or_else(rests) {
        let set = record.verdict.cwnd_pkts;
        let cwnd_pkts = if set == 0 {
            record.event.cwnd_pkts
        } else {
            set
        };
        transfer.record.exit_why = Some(why_name(record.verdict.why).to_owned());
        transfer.record.exit_cwnd_pkts = Some(cwnd_pkts);
    }
}

/// Where the stack's own slow start is used: what a loss leaves of the window.
fn stacks_own(control: &CongestionControl) -> Option<f64> {
    match control {
        CongestionControl::Native("cubic") => Some(CUBIC_LEAVES),
        CongestionControl::Native("reno") => Some(RENO_LEAVES),
        CongestionControl::Native(_) => None,
        CongestionControl::Ours(params) => {
            let own = params.startup().name() == "su_standard" && params.get("hystart") == Some(1);
            let reno = params.get("reno") == Some(1);
            own.then_some(if reno { RENO_LEAVES } else { CUBIC_LEAVES })
        }
    }
}

/// How and at which window slow start ended where the stack's own is used: where ssthresh first has a value. By a
/// loss, when something has been sent again by then, and then the window was ssthresh over what a loss leaves of
/// it. `None` where it did not end, or had ended before the transfer.
fn slow_start_end(left_by_loss: f64, transfer: &Measured) -> Option<(u8, u32)> {
    let windows = &transfer.windows;
    let ends = windows.iter().position(|row| row.ssthresh_pkts.is_some())?;
    // A connection that has lost in an earlier transfer has a threshold from the first look on.
    ends.checked_sub(1)?;
    let row = windows.get(ends)?;
    let ssthresh_pkts = row.ssthresh_pkts?;
    let resent = transfer.packets.iter().any(|packet| {
        packet.retransmission && packet.t_ms <= row.t_ms + RETRANSMISSION_REACHES_ROUTER_MS
    });
    match resent {
        false => Some((WHY_SSTHRESH, ssthresh_pkts)),
        true => Some((
            WHY_ORDINARY_LOSS,
            (f64::from(ssthresh_pkts) / left_by_loss).round() as u32,
        )),
    }
}

/// What a loss leaves of the window: CUBIC's beta in Linux, 717/1024 (RFC 9438, 4.6: 0.7); Reno's half (RFC 5681).
const CUBIC_LEAVES: f64 = 717.0 / 1024.0;
const RENO_LEAVES: f64 = 0.5;
/// From the look at a window to the router's at the packet that leaves by it.
const RETRANSMISSION_REACHES_ROUTER_MS: f64 = 1.0;

fn gather(plan: &Plan, measured: Vec<Measured>, packets: u64) -> Outcome {
    let mut transfers = Vec::new();
    let mut packet_rows = Vec::new();
    let mut windows = Vec::new();
    for transfer in measured {
        transfers.push(transfer.record);
        if plan.scenario.compare.details {
            packet_rows.extend(transfer.packets);
            windows.extend(transfer.windows);
        }
    }
    // Results are shown in the order of the scenario, whatever the order of the run.
    let position = |name: &str| plan.runners.iter().position(|runner| runner.label == name);
    let case = |record: &TransferRecord| {
        plan.scenario
            .cases
            .iter()
            .position(|case| case.kind() == record.case && case.bytes().bytes() == record.bytes)
    };
    transfers.sort_by_key(|record| (case(record), position(&record.startup), record.repeat));
    let events = packet_rows.len() as u64 + windows.len() as u64;
    let mut warnings = plan.warnings.clone();
    let invalid = transfers.iter().filter(|record| !record.valid).count();
    if invalid > 0 {
        warnings.push(format!(
            "{invalid} of {} transfers are left out: the emulated path was not the one asked for, \
             the machine was too busy",
            transfers.len()
        ));
    }
    let document = ResultsDocument {
        schema: 1,
        verb: "compare".to_owned(),
        scenario: plan.scenario.name.clone(),
        seed: plan.seed,
        started: None,
        machine: Machine::here(),
        cells: cells_of(&transfers),
        traffic: Vec::new(),
        links: Vec::new(),
        run: Run {
            wall_s: 0.0,
            packets,
            events,
        },
        warnings,
    };
    Outcome {
        document,
        transfers,
        packets: packet_rows,
        windows,
    }
}
