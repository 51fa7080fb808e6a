//! Simulations for Python: many scenarios at once on all cores, with the interpreter free meanwhile.

use std::collections::HashMap;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use headstart_scenario::Scenario;
use headstart_sim::Simulation;
use headstart_sim::study::{Contender, Control, Study, StudyError, traffic_spec};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::columns::{self, RunName};
use crate::observe::{Keeper, LinkTotal, RunBatches};
use crate::scenario::ScenarioError;
use crate::table::Table;

/// How often the interpreter is asked for signals, at first and at most.
const FIRST_LOOK: Duration = Duration::from_micros(200);
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// One scenario of a sweep: its file's name for errors, its text, and what stands in place of its own.
#[derive(FromPyObject)]
pub(crate) struct Variant {
    #[pyo3(item)]
    file: String,
    #[pyo3(item)]
    text: String,
    #[pyo3(item)]
    startups: Option<Vec<String>>,
    #[pyo3(item)]
    repeat: Option<u32>,
    #[pyo3(item)]
    seed: Option<u64>,
    #[pyo3(item)]
    settings: Vec<String>,
}

/// What is kept beside the transfers.
#[derive(Clone, Copy)]
struct Details {
    flows: bool,
    queues: bool,
    packets: bool,
}

/// A variant that is ready to run.
struct Ready {
    number: u32,
    study: Study,
    groups: Vec<String>,
    links: Vec<String>,
}

/// One run of a variant, or all of its cases.
enum Job<'a> {
    Traffic(&'a Ready, &'a Contender, u32),
    Cases(&'a Ready),
}

/// The batches of a job, by the table's name.
type Batches = Vec<(&'static str, Vec<RecordBatch>)>;

#[derive(Debug)]
enum Failure {
    Study(StudyError),
    Arrow(ArrowError),
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Failure {
        Failure::Study(error)
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Failure {
        Failure::Arrow(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Study(StudyError::Scenario(error)) => {
                ScenarioError::new_err(error.to_string())
            }
            Failure::Study(error) => PyValueError::new_err(error.to_string()),
            Failure::Arrow(error) => PyRuntimeError::new_err(error.to_string()),
        }
    }
}

/// Simulates `variants`. Answers the tables by name, the scenarios' warnings, and the counts of events.
///
/// `progress(done, total)` is called now and then. Ctrl-C ends it.
#[pyfunction]
#[pyo3(signature = (variants, *, threads=0, flows=false, queues=false, packets=false, progress=None))]
pub(crate) fn simulate(
    py: Python<'_>,
    variants: Vec<Variant>,
    threads: usize,
    flows: bool,
    queues: bool,
    packets: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(HashMap<&'static str, Table>, Vec<String>)> {
    let details = Details {
        flows,
        queues,
        packets,
    };
    let ready = (0..)
        .zip(&variants)
        .map(|(number, variant)| ready(number, variant, details))
        .collect::<PyResult<Vec<Ready>>>()?;
    let warnings = ready
        .iter()
        .flat_map(|ready| ready.study.warnings.iter().cloned())
        .collect();
    let jobs = jobs_of(&ready);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let control = Control::default();
    let outcome = py.detach(|| -> PyResult<_> {
        std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                pool.install(|| {
                    jobs.par_iter()
                        .map(|job| run(job, details, &control))
                        .collect::<Result<Vec<Batches>, Failure>>()
                })
            });
            let watched = watch(&running, &control, jobs.len(), progress.as_ref());
            let done = running
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            watched?;
            Ok(done?)
        })
    })?;
    Ok((tables(outcome).map_err(Failure::from)?, warnings))
}

/// Until the simulation is over: shows progress, and ends it on a signal.
fn watch<T>(
    running: &std::thread::ScopedJoinHandle<'_, T>,
    control: &Control,
    total: usize,
    progress: Option<&Py<PyAny>>,
) -> PyResult<()> {
    let mut look = FIRST_LOOK;
    let mut told = None;
    while !running.is_finished() {
        std::thread::sleep(look);
        look = (look * 2).min(LONGEST_LOOK);
        let done = control.runs();
        let asked = Python::attach(|py| -> PyResult<()> {
            py.check_signals()?;
            if let Some(progress) = progress
                && told != Some(done)
            {
                told = Some(done);
                progress.call1(py, (done, total))?;
            }
            Ok(())
        });
        if let Err(error) = asked {
            control.stop();
            return Err(error);
        }
    }
    Ok(())
}

fn ready(number: u32, variant: &Variant, details: Details) -> PyResult<Ready> {
    let scenario = Scenario::parse(&variant.file, &variant.text)
        .map_err(|error| ScenarioError::new_err(error.to_string()))?;
    let study = Study::new(
        scenario,
        variant.startups.as_deref(),
        variant.repeat,
        variant.seed,
        &variant.settings,
        details.flows || details.packets,
    )
    .map_err(Failure::from)?;
    let sim = &study.scenario.sim;
    Ok(Ready {
        number,
        groups: sim.traffic.iter().map(|group| group.name.clone()).collect(),
        links: sim.links.iter().map(|(name, _)| name.clone()).collect(),
        study,
    })
}

fn jobs_of(ready: &[Ready]) -> Vec<Job<'_>> {
    let mut jobs = Vec::new();
    for ready in ready {
        let study = &ready.study;
        if !study.scenario.cases.is_empty() {
            jobs.push(Job::Cases(ready));
        }
        if study.scenario.sim.traffic.is_empty() {
            continue;
        }
        for contender in &study.contenders {
            for repeat in 0..study.repeat {
                jobs.push(Job::Traffic(ready, contender, repeat));
            }
        }
    }
    jobs
}

fn run(job: &Job<'_>, details: Details, control: &Control) -> Result<Batches, Failure> {
    if control.stopped() {
        return Ok(Vec::new());
    }
    match job {
        Job::Cases(ready) => run_cases(ready, control),
        Job::Traffic(ready, contender, repeat) => {
            run_traffic(ready, contender, *repeat, details, control)
        }
    }
}

fn run_cases(ready: &Ready, control: &Control) -> Result<Batches, Failure> {
    let mut study = ready.study.clone();
    study.scenario.sim.traffic.clear();
    let outcome = study.run(control, &mut ())?;
    let number = ready.number;
    Ok(vec![
        (
            "cases",
            vec![columns::case_transfers(number, &outcome.transfers)?],
        ),
        (
            "case_packets",
            vec![columns::case_packets(number, &outcome.packets)?],
        ),
        (
            "case_windows",
            vec![columns::case_windows(number, &outcome.windows)?],
        ),
    ])
}

fn run_traffic(
    ready: &Ready,
    contender: &Contender,
    repeat: u32,
    details: Details,
    control: &Control,
) -> Result<Batches, Failure> {
    let study = &ready.study;
    let spec = traffic_spec(&study.scenario, contender)?;
    // As `headstart sim` has it: each repeat has a seed of its own.
    let seed = study.seed.wrapping_add(u64::from(repeat));
    let simulation = Simulation::new(spec, seed).map_err(|cause| StudyError::Sim {
        file: study.scenario.file().to_owned(),
        cause,
    })?;
    let name = RunName {
        variant: ready.number,
        startup: &contender.name,
        repeat,
        groups: &ready.groups,
        links: &ready.links,
    };
    macro_rules! kept {
        ($flows:literal $queues:literal $packets:literal) => {{
            let mut keeper = Keeper::<'_, $flows, $queues, $packets>::new(&name, control);
            let outcome = simulation.run(&mut keeper);
            (outcome, keeper.finish()?)
        }};
    }
    let (outcome, batches): (_, RunBatches) = match (details.flows, details.queues, details.packets)
    {
        (false, false, false) => kept!(false false false),
        (true, false, false) => kept!(true false false),
        (false, true, false) => kept!(false true false),
        (true, true, false) => kept!(true true false),
        (false, false, true) => kept!(false false true),
        (true, false, true) => kept!(true false true),
        (false, true, true) => kept!(false true true),
        (true, true, true) => kept!(true true true),
    };
    let links: Vec<LinkTotal> = (0..)
        .zip(&outcome.links)
        .map(|(number, counters)| LinkTotal {
            number,
            counters: *counters,
            run_ns: outcome.end_ns,
        })
        .collect();
    control.count_run();
    Ok(vec![
        ("transfers", batches.transfers),
        ("flows", batches.flows),
        ("queues", batches.queues),
        ("packets", batches.packets),
        ("links", vec![columns::links(&name, &links)?]),
    ])
}

/// Puts the jobs' batches together, in the order of the jobs, whatever thread was faster.
fn tables(outcome: Vec<Batches>) -> Result<HashMap<&'static str, Table>, ArrowError> {
    let nothing = RunName {
        variant: 0,
        startup: "",
        repeat: 0,
        groups: &[],
        links: &[],
    };
    let mut empty = HashMap::from([
        ("transfers", columns::transfers(&nothing, &[])?),
        ("flows", columns::flows(&nothing, &[])?),
        ("queues", columns::queues(&nothing, &[])?),
        ("packets", columns::packets(&nothing, &[])?),
        ("links", columns::links(&nothing, &[])?),
        ("cases", columns::case_transfers(0, &[])?),
        ("case_packets", columns::case_packets(0, &[])?),
        ("case_windows", columns::case_windows(0, &[])?),
    ]);
    let mut batches: HashMap<&'static str, Vec<RecordBatch>> = HashMap::new();
    for (name, more) in outcome.into_iter().flatten() {
        batches.entry(name).or_default().extend(more);
    }
    let named = empty.drain().map(|(name, empty)| {
        let own = batches.remove(name).unwrap_or_default();
        (name, Table::new(&empty, own))
    });
    Ok(named.collect())
}
