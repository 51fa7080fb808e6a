//! A scenario in the simulator: every start-up, every case and all traffic, on all cores.

mod cases;
mod contender;
mod traffic;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use headstart_core::{Assignment, MemoryParams};
use headstart_scenario::{
    Cell, LinkCell, PacketRow, Scenario, SimQueueRow, SimTransferRow, SimWindowRow, TrafficCell,
    TransferRecord, WindowRow, cells_of,
};
use rayon::prelude::*;

pub use contender::{Contender, contenders};
pub use traffic::spec_of as traffic_spec;

use crate::SimError;

/// Why a scenario is not simulated.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The scenario names what is not there.
    #[error(transparent)]
    Scenario(#[from] headstart_scenario::ScenarioError),
    /// A choice of the caller that is not there.
    #[error("{0}")]
    Choice(String),
    /// It cannot be simulated.
    #[error("{file}: {cause}")]
    Sim {
        /// The scenario.
        file: String,
        /// What is wrong.
        cause: SimError,
    },
}

/// How far a study is, and the way to end it.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    done: AtomicU64,
}

impl Control {
    /// Ends it soon: what is done by then is kept.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it has been ended.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Counts a run that a caller carried out itself.
    pub fn count_run(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs that are done.
    pub fn runs(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Study {
    /// The scenario.
    pub scenario: Scenario,
    /// Who takes part.
    pub contenders: Vec<Contender>,
    /// How often each.
    pub repeat: u32,
    /// The seed of the first repeat; each has one of its own.
    pub seed: u64,
    /// Whether packets and windows are wanted.
    pub details: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
    memory_params: MemoryParams,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct StudyOutcome {
    /// Of the cases.
    pub cells: Vec<Cell>,
    /// Of the traffic.
    pub traffic: Vec<TrafficCell>,
    /// Of the links beneath the traffic.
    pub links: Vec<LinkCell>,
    /// The measured transfers of the cases.
    pub transfers: Vec<TransferRecord>,
    /// Their packets.
    pub packets: Vec<PacketRow>,
    /// Their windows.
    pub windows: Vec<WindowRow>,
    /// Packets that the forward bottlenecks carried.
    pub carried_pkts: u64,
    /// Steps of all runs.
    pub events: u64,
    /// It was ended before its time.
    pub stopped: bool,
}

/// Takes the rows of traffic, run by run in their order.
pub trait Rows: Send {
    /// Finished transfers of run `run`.
    fn transfers(&mut self, run: usize, rows: Vec<SimTransferRow>);
    /// Windows of run `run`.
    fn windows(&mut self, run: usize, rows: Vec<SimWindowRow>);
    /// Queues of run `run`.
    fn queues(&mut self, run: usize, rows: Vec<SimQueueRow>);
    /// Run `run` is over.
    fn over(&mut self, run: usize);
}

/// Keeps none.
impl Rows for () {
    fn transfers(&mut self, _run: usize, _rows: Vec<SimTransferRow>) {}
    fn windows(&mut self, _run: usize, _rows: Vec<SimWindowRow>) {}
    fn queues(&mut self, _run: usize, _rows: Vec<SimQueueRow>) {}
    fn over(&mut self, _run: usize) {}
}

/// The path memory's parameters: the defaults, and what `[simulation]` says.
fn memory_params(scenario: &Scenario) -> Result<MemoryParams, StudyError> {
    let mut params = MemoryParams::default();
    for text in &scenario.sim.memory_params {
        let set =
            Assignment::parse(text).and_then(|given| Ok(params.set(given.name, given.value)?));
        set.map_err(|cause| {
            let file = scenario.file();
            StudyError::Choice(format!(
                "{file}: [simulation] memory_params \"{text}\": {cause}"
            ))
        })?;
    }
    Ok(params)
}

impl Study {
    /// Checks the scenario's start-ups and parameters. `startups`, `repeat` and `seed` stand in place of
    /// the scenario's.
    ///
    /// # Errors
    /// [`StudyError`], with the place and the nearest name.
    pub fn new(
        scenario: Scenario,
        startups: Option<&[String]>,
        repeat: Option<u32>,
        seed: Option<u64>,
        settings: &[String],
        details: bool,
    ) -> Result<Study, StudyError> {
        let (contenders, warnings) = contenders(&scenario, startups, settings)?;
        let repeat = scenario.compare.repeat_or(repeat);
        let repeat = repeat.map_err(StudyError::Choice)?;
        let seed = seed.unwrap_or(scenario.seed);
        let study = Study {
            memory_params: memory_params(&scenario)?,
            scenario,
            contenders,
            repeat,
            seed,
            details,
            warnings,
        };
        for contender in &study.contenders {
            let spec = traffic::spec_of(&study.scenario, contender)?;
            spec.check().map_err(|cause| StudyError::Sim {
                file: study.scenario.file().to_owned(),
                cause,
            })?;
        }
        Ok(study)
    }

    /// How many runs it has.
    pub fn runs(&self) -> u64 {
        let each = self.scenario.cases.len() as u64 + u64::from(self.has_traffic());
        u64::from(self.repeat) * self.contenders.len() as u64 * each
    }

    fn has_traffic(&self) -> bool {
        !self.scenario.sim.traffic.is_empty()
    }

    /// Carries it out on the threads of the present rayon pool. The rows do not depend on their number.
    ///
    /// # Errors
    /// [`StudyError::Sim`].
    pub fn run(&self, control: &Control, rows: &mut dyn Rows) -> Result<StudyOutcome, StudyError> {
        let mut outcome = StudyOutcome::default();
        self.run_cases(control, &mut outcome)?;
        if self.has_traffic() {
            traffic::run(self, control, rows, &mut outcome)?;
        }
        outcome.stopped = control.stopped();
        Ok(outcome)
    }

    fn run_cases(&self, control: &Control, outcome: &mut StudyOutcome) -> Result<(), StudyError> {
        let mut jobs = Vec::new();
        for repeat in 0..self.repeat {
            for contender in &self.contenders {
                for case in &self.scenario.cases {
                    jobs.push((repeat, contender, case, jobs.len()));
                }
            }
        }
        let done: Result<Vec<Option<cases::CaseRun>>, StudyError> = jobs
            .par_iter()
            .map(|(repeat, contender, case, order)| {
                if control.stopped() {
                    return Ok(None);
                }
                let run = cases::run(self, contender, case, *repeat, *order)?;
                control.done.fetch_add(1, Ordering::Relaxed);
                Ok(Some(run))
            })
            .collect();
        for run in done?.into_iter().flatten() {
            outcome.transfers.push(run.record);
            outcome.packets.extend(run.packets);
            outcome.windows.extend(run.windows);
            outcome.carried_pkts += run.carried_pkts;
            outcome.events += run.events;
        }
        outcome.cells = cells_of(&outcome.transfers);
        Ok(())
    }
}
