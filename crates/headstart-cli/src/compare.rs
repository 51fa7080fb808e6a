//! `headstart compare`: one scenario, several start-ups, side by side.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use headstart_compare::{CompareError, Control, Outcome, Plan, run as run_plan};
use headstart_scenario::{ResultsDocument, Scenario, write_results};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cells;
use crate::failure::Failure;
use crate::output;

/// Compare start-ups: the same scenario for each, side by side, on the live kernel over an emulated path.
#[derive(Args)]
#[command(after_help = "Examples:
  headstart compare scenarios/satellite.toml
  headstart compare scenarios/satellite.toml --startups cubic,su_fast_start --repeat 3
  headstart compare scenarios/satellite.toml --param su_fast_start.maxburst_pkts=2
  headstart compare scenarios/satellite.toml --out results/satellite --json > satellite.json

--out keeps every transfer, packet and window as Parquet, with the scenario; `headstart-lab report DIR` draws
them.")]
pub(crate) struct CompareArgs {
    /// The scenario file.
    scenario: PathBuf,
    /// The start-ups to compare, in place of the scenario's.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    startups: Option<Vec<String>>,
    /// Where to run.
    #[arg(long, value_enum, default_value_t = On::Kernel)]
    on: On,
    /// How often to measure each case, in place of the scenario's.
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// The seed, in place of the scenario's.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// A parameter of a start-up; may be given several times.
    #[arg(long = "param", value_name = "STARTUP.NAME=VALUE")]
    params: Vec<String>,
    /// Write the results into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON document on standard output instead of the table.
    #[arg(long)]
    json: bool,
}

/// Where start-ups can be compared.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum On {
    /// On this machine's kernel, over an emulated path.
    Kernel,
}

pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let On::Kernel = args.on;
    let scenario = Scenario::load(&args.scenario).map_err(|error| Failure::Usage(error.into()))?;
    let plan = Plan::new(
        scenario,
        args.startups.as_deref(),
        args.repeat,
        args.seed,
        &args.params,
    )?;
    for warning in &plan.warnings {
        eprintln!("headstart: {warning}");
    }
    let outcome = run_with_progress(&plan)?;
    if let Some(dir) = &args.out {
        let Outcome {
            document,
            transfers,
            packets,
            windows,
        } = &outcome;
        write_results(dir, document, &plan.scenario, transfers, packets, windows)
            .map_err(anyhow::Error::from)?;
    }
    if args.json {
        let text = serde_json::to_string_pretty(&outcome.document);
        return output::print(&text.context("cannot write the results")?);
    }
    output::print(&report(&outcome.document))?;
    for warning in &outcome.document.warnings {
        eprintln!("headstart: {warning}");
    }
    Ok(())
}

impl From<CompareError> for Failure {
    fn from(error: CompareError) -> Failure {
        if let CompareError::Interrupted = error {
            eprintln!("headstart: {error}");
            return Failure::Command(130);
        }
        let (bad_input, cannot_here) = (error.bad_input(), error.cannot_here());
        let error = anyhow::Error::from(error);
        match (bad_input, cannot_here) {
            (true, _) => Failure::Usage(error),
            (_, true) => Failure::CannotHere(error),
            _ => Failure::Run(error),
        }
    }
}

/// Runs the plan in a thread of its own and shows how far it is.
fn run_with_progress(plan: &Plan) -> Result<Outcome, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context("cannot watch for signals")?;
    }
    let bar = progress_bar(plan);
    let control = Control::default();
    let outcome = thread::scope(|scope| {
        let running = scope.spawn(|| run_plan(plan, &control));
        while !running.is_finished() {
            if stop.load(Ordering::Relaxed) {
                control.stop();
            }
            bar.set_position(control.transfers());
            thread::sleep(Duration::from_millis(50));
        }
        running
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    bar.finish_and_clear();
    Ok(outcome?)
}

fn progress_bar(plan: &Plan) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template(
        "{msg}  {wide_bar}  {pos}/{len} transfers  {elapsed} elapsed, {eta} to go",
    );
    ProgressBar::with_draw_target(Some(plan.transfers()), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(plan.scenario.name.clone())
}

fn report(document: &ResultsDocument) -> String {
    let table = cells::table(&document.cells);
    let machine = &document.machine;
    format!(
        "{}: Linux {}, {} CPUs, seed {}, {:.0} s\n\n{table}\n\n{}",
        document.scenario,
        machine.kernel,
        machine.cpus,
        document.seed,
        document.run.wall_s,
        cells::LEGEND,
    )
}
