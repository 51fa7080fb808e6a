//! `headstart sim`: a scenario in the simulator.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use headstart_scenario::{
    Machine, ResultsDocument, ResultsError, Run, SCHEMA, Scenario, SimFiles, SimQueueRow,
    SimTransferRow, SimWindowRow, write_results,
};
use headstart_sim::study::{Control, Rows, Study, StudyError, StudyOutcome};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cells;
use crate::failure::Failure;
use crate::output::{self, Table};

/// Simulate a scenario, packet by packet in virtual time: its cases, or its traffic.
#[derive(Args)]
#[command(after_help = "Examples:
  headstart sim scenarios/satellite.toml
  headstart sim scenarios/peer-a.toml --startups cubic,reno --seed 7
  headstart sim scenarios/satellite.toml --param su_fast_start.maxburst_pkts=2 --json
  headstart sim scenarios/peer-c.toml --repeat 100 --out results/peer-c

The same scenario and seed give the same results, with any number of threads. Ctrl-C ends a run early and
keeps what is done. --out writes every transfer, window and queue as Parquet.")]
pub(crate) struct SimArgs {
    /// The scenario file.
    scenario: PathBuf,
    /// The start-ups to simulate, in place of the scenario's.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    startups: Option<Vec<String>>,
    /// How often, each time with another seed, in place of the scenario's.
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// The seed of the first repeat, in place of the scenario's.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// A parameter of a start-up; may be given several times.
    #[arg(long = "param", value_name = "STARTUP.NAME=VALUE")]
    params: Vec<String>,
    /// Write the results into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON document on standard output instead of the tables.
    #[arg(long)]
    json: bool,
    /// Threads; as many as there are CPUs unless given.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Failure {
        Failure::Usage(error.into())
    }
}

pub(crate) fn run(args: &SimArgs) -> Result<(), Failure> {
    let scenario = Scenario::load(&args.scenario).map_err(|error| Failure::Usage(error.into()))?;
    if scenario.has_several_paths() {
        return Err(Failure::Usage(anyhow::anyhow!(
            "{}: has several paths, and this verb simulates one; run headstart compare --on sim",
            scenario.file()
        )));
    }
    let study = Study::new(
        scenario,
        args.startups.as_deref(),
        args.repeat,
        args.seed,
        &args.params,
        args.out.is_some(),
    )?;
    for warning in &study.warnings {
        eprintln!("headstart: {warning}");
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.threads.unwrap_or(0))
        .build()
        .context("cannot start the threads of the simulation; give fewer --threads")?;
    let mut files = match &args.out {
        Some(dir) => Some(InOrder::new(dir).map_err(anyhow::Error::from)?),
        None => None,
    };
    let began = Instant::now();
    let outcome = run_with_progress(&study, &pool, files.as_mut())?;
    let document = document(&study, &outcome, began.elapsed());
    if let (Some(dir), Some(files)) = (&args.out, files) {
        let StudyOutcome {
            transfers,
            packets,
            windows,
            ..
        } = &outcome;
        files.finish().map_err(anyhow::Error::from)?;
        write_results(dir, &document, &study.scenario, transfers, packets, windows)
            .map_err(anyhow::Error::from)?;
    }
    if args.json {
        let text = serde_json::to_string_pretty(&document);
        output::print(&text.context("cannot write the results")?)?;
    } else {
        output::print(&report(&document))?;
        // Those of the study stand above already.
        for warning in document.warnings.iter().skip(study.warnings.len()) {
            eprintln!("headstart: {warning}");
        }
    }
    match outcome.stopped {
        true => Err(Failure::Command(130)),
        false => Ok(()),
    }
}

fn run_with_progress(
    study: &Study,
    pool: &rayon::ThreadPool,
    files: Option<&mut InOrder>,
) -> Result<StudyOutcome, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context("cannot watch for signals")?;
    }
    let bar = progress_bar(study);
    let control = Control::default();
    let outcome = thread::scope(|scope| {
        let control = &control;
        let running = scope.spawn(move || match files {
            Some(files) => pool.install(|| study.run(control, files)),
            None => pool.install(|| study.run(control, &mut ())),
        });
        let mut look = Duration::from_millis(1);
        while !running.is_finished() {
            if stop.load(Ordering::Relaxed) {
                control.stop();
            }
            bar.set_position(control.runs());
            thread::sleep(look);
            look = (look * 2).min(Duration::from_millis(50));
        }
        running
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    bar.finish_and_clear();
    Ok(outcome?)
}

fn progress_bar(study: &Study) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template(
        "{msg}  {wide_bar}  {pos}/{len} runs  {elapsed} elapsed, {eta} to go",
    );
    ProgressBar::with_draw_target(Some(study.runs()), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(study.scenario.name.clone())
}

fn document(study: &Study, outcome: &StudyOutcome, wall: Duration) -> ResultsDocument {
    let mut warnings = study.warnings.clone();
    if outcome.stopped {
        warnings.push("ended early: the results are of the runs that were done by then".to_owned());
    }
    let mut left_out: BTreeMap<&str, u32> = BTreeMap::new();
    for transfer in &outcome.transfers {
        if let Some(reason) = &transfer.invalid_reason {
            *left_out.entry(reason).or_default() += 1;
        }
    }
    for (reason, count) in left_out {
        warnings.push(format!(
            "{count} of {} transfers are left out: {reason}",
            outcome.transfers.len()
        ));
    }
    let unfinished: u64 = outcome.traffic.iter().map(|cell| cell.unfinished).sum();
    let endless = study.scenario.sim.traffic.len();
    if unfinished > 0 && outcome.traffic.iter().any(|cell| cell.fct_ms.is_some()) && endless > 0 {
        warnings.push(format!(
            "{unfinished} transfers were not over when their run ended, bulk flows among them; the times are of \
             the others"
        ));
    }
    ResultsDocument {
        schema: SCHEMA,
        verb: "sim".to_owned(),
        scenario: study.scenario.name.clone(),
        seed: study.seed,
        started: None,
        machine: Machine::here(),
        cells: outcome.cells.clone(),
        traffic: outcome.traffic.clone(),
        links: outcome.links.clone(),
        run: Run {
            wall_s: wall.as_secs_f64(),
            packets: outcome.carried_pkts,
            events: outcome.events,
        },
        warnings,
    }
}

fn report(document: &ResultsDocument) -> String {
    let mut parts = vec![format!(
        "{}: simulated, seed {}, {:.3} s, {} packets, {} events",
        document.scenario,
        document.seed,
        document.run.wall_s,
        document.run.packets,
        document.run.events,
    )];
    if !document.cells.is_empty() {
        parts.push(cells::table(&document.cells).to_string());
        parts.push(cells::LEGEND.to_owned());
    }
    if !document.traffic.is_empty() {
        parts.push(traffic_table(document).to_string());
        parts.push(link_table(document).to_string());
        parts.push(
            "median, p10, p90, mean: transfer time in ms, of finished transfers. busy: the share of the time in which\n\
             the link was sending."
                .to_owned(),
        );
    }
    parts.join("\n\n")
}

fn traffic_table(document: &ResultsDocument) -> Table {
    let header = [
        "traffic",
        "start-up",
        "runs",
        "transfers",
        "not over",
        "median ms",
        "p10",
        "p90",
        "mean",
        "retrans.",
        "Mbit/s",
    ];
    let mut table = Table::new(&header, 2..11);
    for cell in &document.traffic {
        let ms = |of: fn(&headstart_scenario::Summary) -> f64| {
            let value = cell.fct_ms.as_ref().map(of);
            value.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"))
        };
        let retransmitted = cell.retransmitted_pkts.as_ref();
        table.row([
            cell.group.clone(),
            cell.startup.clone(),
            cell.runs.to_string(),
            cell.transfers.to_string(),
            cell.unfinished.to_string(),
            ms(|fct| fct.median),
            ms(|fct| fct.p10),
            ms(|fct| fct.p90),
            ms(|fct| fct.mean),
            retransmitted.map_or_else(
                || "-".to_owned(),
                |counts| format!("{:.0} ({})", counts.median, counts.max),
            ),
            format!("{:.3}", cell.goodput_bit_per_s / 1e6),
        ]);
    }
    table
}

fn link_table(document: &ResultsDocument) -> Table {
    let header = [
        "link",
        "start-up",
        "packets",
        "drops",
        "longest queue",
        "busy",
    ];
    let mut table = Table::new(&header, 2..6);
    for cell in &document.links {
        table.row([
            cell.link.clone(),
            cell.startup.clone(),
            cell.out_pkts.to_string(),
            cell.dropped_pkts.to_string(),
            cell.longest_queue_pkts.to_string(),
            format!("{:.1} %", cell.utilisation * 100.0),
        ]);
    }
    table
}

/// Rows of one kind, as they come from a run.
enum Lot {
    Transfers(Vec<SimTransferRow>),
    Windows(Vec<SimWindowRow>),
    Queues(Vec<SimQueueRow>),
}

/// Writes the rows of run after run: those of a later run wait in memory for their turn, so that the
/// files do not depend on which thread is faster.
struct InOrder {
    files: SimFiles,
    turn: usize,
    waiting: BTreeMap<usize, (Vec<Lot>, bool)>,
    failed: Option<ResultsError>,
}

impl InOrder {
    fn new(dir: &Path) -> Result<InOrder, ResultsError> {
        Ok(InOrder {
            files: SimFiles::create(dir)?,
            turn: 0,
            waiting: BTreeMap::new(),
            failed: None,
        })
    }

    fn take(&mut self, run: usize, lot: Lot) {
        if run == self.turn {
            return self.write(&lot);
        }
        self.waiting.entry(run).or_default().0.push(lot);
    }

    fn write(&mut self, lot: &Lot) {
        if self.failed.is_some() {
            return;
        }
        let written = match lot {
            Lot::Transfers(rows) => self.files.transfers(rows),
            Lot::Windows(rows) => self.files.windows(rows),
            Lot::Queues(rows) => self.files.queues(rows),
        };
        self.failed = written.err();
    }

    fn finish(self) -> Result<(), ResultsError> {
        match self.failed {
            Some(error) => Err(error),
            None => self.files.finish(),
        }
    }
}

impl Rows for InOrder {
    fn transfers(&mut self, run: usize, rows: Vec<SimTransferRow>) {
        self.take(run, Lot::Transfers(rows));
    }

    fn windows(&mut self, run: usize, rows: Vec<SimWindowRow>) {
        self.take(run, Lot::Windows(rows));
    }

    fn queues(&mut self, run: usize, rows: Vec<SimQueueRow>) {
        self.take(run, Lot::Queues(rows));
    }

    fn over(&mut self, run: usize) {
        self.waiting.entry(run).or_default().1 = true;
        while let Some((_, true)) = self.waiting.get(&self.turn) {
            self.waiting.remove(&self.turn);
            self.turn += 1;
            // What the next one has sent so far; what it still sends is written as it comes.
            let lots = match self.waiting.get_mut(&self.turn) {
                Some((lots, _)) => std::mem::take(lots),
                None => Vec::new(),
            };
            lots.iter().for_each(|lot| self.write(lot));
        }
    }
}
