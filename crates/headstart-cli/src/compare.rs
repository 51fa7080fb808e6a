//! `headstart compare`: one scenario, several start-ups, side by side.

mod check;
mod in_guest;
mod page;
mod parts;
mod work;

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use headstart_compare::CompareError;
use headstart_scenario::{ByteSize, Ground, ResultsDocument, Scenario, nearest, write_results};

use crate::cells;
use crate::failure::Failure;
use crate::output;

/// Compare start-ups: the same scenario for each, side by side, on a real kernel over an emulated path.
#[derive(Args)]
#[command(after_help = "Examples:
  headstart compare scenarios/satellite.toml
  headstart compare scenarios/satellite.toml --startups cubic,su_fast_start --repeat 3
  headstart compare scenarios/satellite.toml --startups 'su_standard,su_standard{iw_pkts=30}'
  headstart compare scenarios/satellite.toml --param su_fast_start.maxburst_pkts=2
  headstart compare scenarios/satellite.toml --out results/satellite --json > satellite.json
  headstart compare scenarios/kernel-matrix.toml --out results/matrix --page results.md
  headstart compare scenarios/kernel-matrix.toml --on kernel,sim --out results/matrix --check validation.md
  headstart compare scenarios/satellite.toml --on virtual     the same bytes each time; no root

--out keeps every transfer, packet and window as Parquet, with the scenario; `headstart-lab report DIR` draws
them. A scenario with details = false keeps the transfers alone; its comparison goes on where it was ended
(Ctrl-C) when it is called again with the same --out.")]
pub(crate) struct CompareArgs {
    /// The scenario file.
    scenario: PathBuf,
    /// The start-ups to compare, in place of the scenario's; NAME{PARAMETER=VALUE;...} has parameters of its own.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    startups: Option<Vec<String>>,
    /// Where to run: on kernel and sim, one or both, or on virtual.
    #[arg(
        long,
        value_enum,
        value_name = "A,B",
        value_delimiter = ',',
        default_value = "kernel"
    )]
    on: Vec<On>,
    /// With --on virtual: the beginning of the kernel's release; without, the newest that was fetched.
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// Only these of the scenario's paths.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    paths: Option<Vec<String>>,
    /// Only cases of these sizes.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    sizes: Option<Vec<ByteSize>>,
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
    /// Hold the simulator against the kernel, and write what agrees and what does not into this file (Markdown).
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Write the tables into this file (Markdown).
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Measure nothing more on the kernel: take what a comparison that can be resumed has left in --out.
    #[arg(long, requires = "out")]
    as_is: bool,
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
    /// In the simulator.
    Sim,
    /// On Debian's kernel in virtual time: each run gives the same bytes (see `headstart virtual`).
    Virtual,
}

pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let scenario = Scenario::load(&args.scenario).map_err(|error| Failure::Usage(error.into()))?;
    if args.check.is_some() && !(args.on.contains(&On::Kernel) && args.on.contains(&On::Sim)) {
        return Err(usage(
            "--check holds the simulator against the kernel: add --on kernel,sim",
        ));
    }
    if args.as_is && scenario.compare.details {
        return Err(usage(
            "--as-is is for scenarios with details = false: only their comparisons can be resumed",
        ));
    }
    let legs = legs(args, &scenario)?;
    if args.on.contains(&On::Virtual) {
        if args.on.len() > 1 || args.page.is_some() {
            return Err(usage(
                "--on virtual runs alone, without --page: leave the others out, and compare the folders of --out",
            ));
        }
        return in_guest::run(args, &scenario, &legs);
    }
    if args.kernel.is_some() {
        return Err(usage(
            "--kernel chooses among the kernels of `headstart virtual fetch`: add --on virtual",
        ));
    }
    let done = work::run(args, &scenario, &legs)?;
    let document = &done.document;
    if let Some(dir) = &args.out {
        write_results(
            dir,
            document,
            &scenario,
            &done.transfers,
            &done.packets,
            &done.windows,
        )
        .map_err(anyhow::Error::from)?;
    }
    if let Some(file) = &args.check {
        let text = check::page(document, &legs, &done.conditions);
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if let Some(file) = &args.page {
        let text = page::page(document, &legs, &done.conditions);
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if args.json {
        let text = serde_json::to_string_pretty(document);
        output::print(&text.context("cannot write the results")?)?;
    } else {
        print_report(document)?;
    }
    match done.interrupted {
        true => Err(Failure::Command(130)),
        false => Ok(()),
    }
}

fn print_report(document: &ResultsDocument) -> Result<(), Failure> {
    output::print(&report(document))?;
    for warning in &document.warnings {
        eprintln!("headstart: {warning}");
    }
    Ok(())
}

fn usage(text: &str) -> Failure {
    Failure::Usage(anyhow!("{text}"))
}

/// A scenario for each path that was asked for, with the cases that were.
fn legs(args: &CompareArgs, scenario: &Scenario) -> Result<Vec<Scenario>, Failure> {
    let mut legs = scenario.on_each_path();
    if let Some(wanted) = &args.paths {
        let known: Vec<&str> = legs
            .iter()
            .filter_map(|leg| leg.path_name.as_deref())
            .collect();
        if let Some(stranger) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
            let hint = match nearest(stranger, &known) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None if known.is_empty() => {
                    "the scenario has one, without a name: leave --paths away".to_owned()
                }
                None => format!("there are: {}", known.join(", ")),
            };
            return Err(usage(&format!(
                "--paths: no path is called \"{stranger}\"; {hint}"
            )));
        }
        legs.retain(|leg| {
            leg.path_name
                .as_ref()
                .is_some_and(|name| wanted.contains(name))
        });
    }
    if let Some(sizes) = &args.sizes {
        for leg in &mut legs {
            leg.cases.retain(|case| sizes.contains(&case.bytes()));
            leg.left_out.retain(|case| sizes.contains(&case.bytes()));
        }
    }
    let had_cases = !scenario.cases.is_empty();
    legs.retain(|leg| !leg.cases.is_empty() || !had_cases);
    if legs.is_empty() {
        return Err(usage(
            "no case is left to compare; give other --paths or --sizes",
        ));
    }
    Ok(legs)
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
