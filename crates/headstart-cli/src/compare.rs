//! `headstart compare`: one scenario, several start-ups, side by side.

mod in_guest;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use headstart_compare::{CompareError, Control, Outcome, Plan, run as run_plan};
use headstart_scenario::{Ground, ResultsDocument, Scenario, write_results};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cells;
use crate::failure::Failure;
use crate::output;
use crate::virtual_kernel::Interruption;

/// How often progress is shown, and interruptions are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Compare start-ups: the same scenario for each, side by side, on a real kernel over an emulated path.
#[derive(Args)]
#[command(after_help = "Examples:
  headstart compare scenarios/satellite.toml
  headstart compare scenarios/satellite.toml --startups cubic,su_fast_start --repeat 3
  headstart compare scenarios/satellite.toml --param su_fast_start.maxburst_pkts=2
  headstart compare scenarios/satellite.toml --out results/satellite --json > satellite.json
  headstart compare scenarios/satellite.toml --on virtual     the same bytes each time; no root

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
    /// This is the guest of `--on virtual`.
    #[arg(long, hide = true)]
    in_guest: bool,
}

/// Where start-ups can be compared.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum On {
    /// On this machine's kernel, over an emulated path.
    Kernel,
    /// On Debian's kernel in virtual time: each run gives the same bytes (see `headstart virtual`).
    Virtual,
}

pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let scenario = Scenario::load(&args.scenario).map_err(|error| Failure::Usage(error.into()))?;
    match args.on {
        On::Kernel => run_here(args, scenario),
        On::Virtual => in_guest::run(args, &scenario),
    }
}

fn run_here(args: &CompareArgs, scenario: Scenario) -> Result<(), Failure> {
    let mut plan = Plan::new(
        scenario,
        args.startups.as_deref(),
        args.repeat,
        args.seed,
        &args.params,
    )?;
    for warning in &plan.warnings {
        eprintln!("headstart: {warning}");
    }
    if args.in_guest {
        plan = plan.in_virtual_time();
    }
    let outcome = run_with_progress(&plan, args.in_guest)?;
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
    print_report(&outcome.document)
}

fn print_report(document: &ResultsDocument) -> Result<(), Failure> {
    output::print(&report(document))?;
    for warning in &document.warnings {
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
fn run_with_progress(plan: &Plan, in_guest: bool) -> Result<Outcome, Failure> {
    let stop = Interruption::watch()?;
    let bar = progress_bar(&plan.scenario.name, plan.transfers());
    let control = Control::default();
    let outcome = thread::scope(|scope| {
        let running = scope.spawn(|| run_plan(plan, &control));
        while !running.is_finished() {
            if stop.look().is_break() {
                control.stop();
            }
            bar.set_position(control.transfers());
            if in_guest {
                in_guest::tell_progress(control.transfers());
            }
            thread::sleep(LOOK);
        }
        running
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    bar.finish_and_clear();
    Ok(outcome?)
}

fn progress_bar(name: &str, transfers: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template(
        "{msg}  {wide_bar}  {pos}/{len} transfers  {elapsed} elapsed, {eta} to go",
    );
    ProgressBar::with_draw_target(Some(transfers), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(name.to_owned())
}

fn report(document: &ResultsDocument) -> String {
    let table = cells::table(&document.cells);
    let machine = &document.machine;
    let in_virtual_time = document.cells.iter().any(|cell| cell.on == Ground::Virtual);
    let time = if in_virtual_time {
        " of virtual time"
    } else {
        ""
    };
    format!(
        "{}: Linux {}, {} CPUs, seed {}, {:.0} s{time}\n\n{table}\n\n{}",
        document.scenario,
        machine.kernel,
        machine.cpus,
        document.seed,
        document.run.wall_s,
        cells::LEGEND,
    )
}
