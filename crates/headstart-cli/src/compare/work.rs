//! The pieces of a comparison, one after the other: each path, each repeat, on the kernel and in the simulator.

use std::fs;
use std::io::IsTerminal;
use std::thread;
use std::time::Duration;

use headstart_compare::{CompareError, Control, Outcome, Plan, run as run_plan};
use headstart_scenario::{
    Ground, Listed, Machine, PacketRow, ResultsDocument, Run, SCHEMA, Scenario, TransferRecord,
    WindowRow, cells_of,
};
use headstart_sim::study::{Control as SimControl, Study};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::parts::{self, Part};
use super::{CompareArgs, On, in_guest};
use crate::failure::Failure;
use crate::virtual_kernel::Interruption;

/// How often progress is shown, and interruptions are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// What came of it.
pub(super) struct Done {
    pub(super) document: ResultsDocument,
    pub(super) transfers: Vec<TransferRecord>,
    pub(super) packets: Vec<PacketRow>,
    pub(super) windows: Vec<WindowRow>,
    pub(super) conditions: Conditions,
    /// It was ended early: the rest is of what was done by then.
    pub(super) interrupted: bool,
}

/// What a reader has to know of the machine's state while the kernel's part ran.
#[derive(Default)]
pub(super) struct Conditions {
    /// The command line.
    pub(super) command: String,
    /// When the parts began, sorted, as RFC 3339.
    pub(super) started: Vec<String>,
    /// Processes that wanted a CPU at the end of each part, over its last minute.
    pub(super) loads: Vec<f64>,
}

struct Worker<'a> {
    args: &'a CompareArgs,
    stop: Interruption,
    bar: ProgressBar,
    transfers: Vec<TransferRecord>,
    packets: Vec<PacketRow>,
    windows: Vec<WindowRow>,
    warnings: Vec<String>,
    conditions: Conditions,
    run: Run,
}

/// Runs all of `legs`, the scenario on each of its paths.
pub(super) fn run(
    args: &CompareArgs,
    scenario: &Scenario,
    legs: &[Scenario],
) -> Result<Done, Failure> {
    let stop = Interruption::watch()?;
    let mut worker = Worker {
        args,
        stop,
        bar: progress_bar(&scenario.name),
        transfers: Vec::new(),
        packets: Vec::new(),
        windows: Vec::new(),
        warnings: Vec::new(),
        conditions: Conditions {
            command: command(),
            ..Conditions::default()
        },
        run: Run {
            wall_s: 0.0,
            packets: 0,
            events: 0,
        },
    };
    let worked = worker.all(scenario, legs);
    worker.bar.finish_and_clear();
    let interrupted = match worked {
        Err(Failure::Command(130)) if !worker.transfers.is_empty() => true,
        worked => {
            worked?;
            false
        }
    };
    Ok(worker.done(scenario, legs, interrupted))
}

impl Worker<'_> {
    fn all(&mut self, scenario: &Scenario, legs: &[Scenario]) -> Result<(), Failure> {
        let mut plans = Vec::new();
        if self.args.on.contains(&On::Kernel) {
            for leg in legs {
                plans.push(self.plan(leg)?);
            }
        }
        let transfers = plans.iter().map(Plan::transfers).sum();
        self.bar.set_length(transfers);
        if scenario.compare.details {
            for plan in &plans {
                let outcome = self.carry_out(plan)?;
                self.take(outcome);
            }
        } else {
            let repeats = plans.first().map_or(0, |plan| plan.repeat);
            for repeat in 0..repeats {
                for plan in &plans {
                    self.part(plan, repeat)?;
                }
            }
        }
        if self.args.on.contains(&On::Sim) {
            for leg in legs {
                self.simulate(leg)?;
            }
        }
        Ok(())
    }

    fn plan(&mut self, leg: &Scenario) -> Result<Plan, Failure> {
        let args = self.args;
        let plan = Plan::new(
            leg.clone(),
            args.startups.as_deref(),
            args.repeat,
            args.seed,
            &args.params,
        )?;
        self.warn(&plan.warnings);
        Ok(match args.in_guest {
            true => plan.in_virtual_time(),
            false => plan,
        })
    }

    /// One repeat over one path; what of it was measured before is taken from the folder.
    fn part(&mut self, plan: &Plan, repeat: u32) -> Result<(), Failure> {
        let leg = &plan.scenario;
        let asked = parts::asked(self.args, leg);
        // What the guest writes is brought back as a whole.
        let out = self.args.out.as_ref().filter(|_| !self.args.in_guest);
        let file = out.map(|dir| parts::file(dir, leg, repeat));
        let kept = match &file {
            Some(file) => parts::read(file, &asked)?,
            None => None,
        };
        let mut part = kept.unwrap_or_else(|| Part::new(&asked));
        let mut rest = Plan {
            first_repeat: repeat,
            repeat: 1,
            ..plan.clone()
        };
        rest.runners
            .retain(|runner| !part.has(&runner.label) && !self.args.as_is);
        let there = plan.transfers() / u64::from(plan.repeat) - rest.transfers();
        self.bar.inc(there);
        if !rest.runners.is_empty() {
            rest.side_by_side = rest.side_by_side.min(rest.runners.len());
            let outcome = self.carry_out(&rest)?;
            // A part that was measured in pieces began with the first, and is judged by the busiest.
            if part.started.is_empty() {
                part.started = outcome.document.started.clone().unwrap_or_default();
            }
            part.wall_s += outcome.document.run.wall_s;
            part.load = part.load.max(load());
            part.packets += outcome.document.run.packets;
            part.transfers.extend(outcome.transfers);
            if let Some(file) = &file {
                parts::write(file, &part)?;
            }
        }
        self.run.wall_s += part.wall_s;
        self.run.packets += part.packets;
        if !part.transfers.is_empty() {
            self.conditions.started.push(part.started);
            self.conditions.loads.push(part.load);
        }
        let runs = |transfer: &TransferRecord| {
            plan.runners
                .iter()
                .any(|runner| runner.label == transfer.startup)
        };
        self.transfers
            .extend(part.transfers.into_iter().filter(runs));
        Ok(())
    }

    /// Runs `plan` in a thread of its own and shows how far it is.
    fn carry_out(&self, plan: &Plan) -> Result<Outcome, Failure> {
        if self.stop.look().is_break() {
            return Err(CompareError::Interrupted.into());
        }
        if let Some(path) = &plan.scenario.path_name {
            self.bar
                .set_message(format!("{}, {path}", plan.scenario.name));
        }
        let before = self.bar.position();
        let control = Control::default();
        let outcome = thread::scope(|scope| {
            let running = scope.spawn(|| run_plan(plan, &control));
            while !running.is_finished() {
                if self.stop.look().is_break() {
                    control.stop();
                }
                let transfers = before + control.transfers();
                self.bar.set_position(transfers);
                if self.args.in_guest {
                    in_guest::tell_progress(transfers);
                }
                thread::sleep(LOOK);
            }
            running
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        Ok(outcome?)
    }

    fn take(&mut self, outcome: Outcome) {
        self.conditions
            .started
            .extend(outcome.document.started.clone());
        self.conditions.loads.push(load());
        self.run.wall_s += outcome.document.run.wall_s;
        self.run.packets += outcome.document.run.packets;
        self.run.events += outcome.document.run.events;
        self.warn(&outcome.document.warnings);
        self.transfers.extend(outcome.transfers);
        self.packets.extend(outcome.packets);
        self.windows.extend(outcome.windows);
    }

    fn simulate(&mut self, leg: &Scenario) -> Result<(), Failure> {
        let args = self.args;
        let study = Study::new(
            leg.clone(),
            args.startups.as_deref(),
            args.repeat,
            args.seed,
            &args.params,
            leg.compare.details && args.out.is_some(),
        )?;
        self.warn(&study.warnings);
        let control = SimControl::default();
        let began = std::time::Instant::now();
        let outcome = thread::scope(|scope| {
            let running = scope.spawn(|| study.run(&control, &mut ()));
            while !running.is_finished() {
                if self.stop.look().is_break() {
                    control.stop();
                }
                thread::sleep(LOOK);
            }
            running
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        self.run.wall_s += began.elapsed().as_secs_f64();
        self.run.packets += outcome.carried_pkts;
        self.run.events += outcome.events;
        self.transfers.extend(outcome.transfers);
        self.packets.extend(outcome.packets);
        self.windows.extend(outcome.windows);
        match outcome.stopped {
            true => Err(CompareError::Interrupted.into()),
            false => Ok(()),
        }
    }

    fn warn(&mut self, warnings: &[String]) {
        for warning in warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
    }

    fn done(mut self, scenario: &Scenario, legs: &[Scenario], interrupted: bool) -> Done {
        let args = self.args;
        let contestants: Vec<String> = match &args.startups {
            Some(texts) => texts.iter().map(|text| text.trim().to_owned()).collect(),
            None => scenario
                .compare
                .startups
                .iter()
                .map(|Listed { name, .. }| name.clone())
                .collect(),
        };
        // Results are shown in the order of the scenario, whatever the order of the run.
        let leg_of = |row: &TransferRecord| legs.iter().position(|leg| leg.path_name == row.path);
        self.transfers.sort_by_cached_key(|row| {
            let leg = leg_of(row);
            let case = leg.and_then(|leg| {
                legs[leg]
                    .cases
                    .iter()
                    .position(|case| case.kind() == row.case && case.bytes().bytes() == row.bytes)
            });
            let contestant = contestants.iter().position(|label| *label == row.startup);
            (leg, case, contestant, row.on, row.repeat)
        });
        for leg in legs.iter().filter(|leg| !leg.left_out.is_empty()) {
            let sizes: Vec<String> = leg
                .left_out
                .iter()
                .map(|case| format!("{} of {}", case.kind(), case.bytes()))
                .collect();
            self.warnings.push(format!(
                "{}: left out, for the path needs more than limit_s for it: {}",
                leg.path_name.as_deref().unwrap_or(&scenario.name),
                sizes.join(", ")
            ));
        }
        let invalid = self
            .transfers
            .iter()
            .filter(|row| !row.valid && row.on == Ground::Kernel)
            .count();
        if invalid > 0 && !scenario.compare.details {
            self.warnings.push(format!(
                "{invalid} of {} transfers are left out: the emulated path was not the one asked for, \
                 the machine was too busy",
                self.transfers.len()
            ));
        }
        if interrupted {
            self.warnings
                .push("ended early: the results are of what was done by then".to_owned());
        }
        self.conditions.started.sort();
        let started = self.conditions.started.first().cloned();
        let document = ResultsDocument {
            schema: SCHEMA,
            verb: "compare".to_owned(),
            scenario: scenario.name.clone(),
            seed: args.seed.unwrap_or(scenario.seed),
            started,
            machine: Machine::here(),
            cells: cells_of(&self.transfers),
            traffic: Vec::new(),
            links: Vec::new(),
            run: self.run,
            warnings: self.warnings,
        };
        Done {
            document,
            transfers: self.transfers,
            packets: self.packets,
            windows: self.windows,
            conditions: self.conditions,
            interrupted,
        }
    }
}

/// The command as it was given, for the pages.
fn command() -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    format!("headstart {}", words.join(" "))
}

/// The machine's load over the last minute.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|load| load.parse().ok())
        .unwrap_or(0.0)
}

pub(super) fn progress_bar(name: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template(
        "{msg}  {wide_bar}  {pos}/{len} transfers  {elapsed} elapsed, {eta} to go",
    );
    ProgressBar::with_draw_target(Some(0), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(name.to_owned())
}
