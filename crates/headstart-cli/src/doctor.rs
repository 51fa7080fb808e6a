//! `headstart doctor`: what this machine can do, and what is left over.

use std::fmt;

use anyhow::{Context, anyhow};
use clap::Args;
use headstart_kernel::{CheckVerdict, Leftover, Probe, leftovers};
use headstart_path::{LeftProcess, left_processes};
use serde_json::json;

use crate::failure::Failure;
use crate::output::{self, Table};

/// Say what this machine can do, what is missing and how to get it; find and remove what a crash left.
#[derive(Args)]
#[command(after_help = "Examples:
  headstart doctor                  look; change nothing
  sudo headstart doctor --clean     also remove what a crash left behind

Exit codes: 0 start-ups can run in this kernel, 3 they cannot.")]
pub(crate) struct DoctorArgs {
    /// Remove what is left over. What a running headstart holds is never touched.
    #[arg(long)]
    clean: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let probe = Probe::run();
    let left: Vec<Left> = leftovers()
        .into_iter()
        .map(Left::OfKernel)
        .chain(left_processes().into_iter().map(Left::OfPath))
        .collect();
    // Shown before anything is ended; the removal goes on past what cannot be removed.
    if args.clean && !args.json && !left.is_empty() {
        eprintln!("headstart: removing:");
        left.iter().for_each(|item| eprintln!("  {item}"));
    }
    let mut failed = Vec::new();
    if args.clean {
        failed.extend(left.iter().filter_map(|item| item.remove().err()));
    }
    let verdict = probe.require();
    if args.json {
        let document = json!({
            "schema": 1,
            "verb": "doctor",
            "can_run_startups": verdict.is_ok(),
            "checks": probe.checks,
            "leftovers": left.iter().map(Left::to_string).collect::<Vec<_>>(),
            "cleaned": args.clean && failed.is_empty(),
        });
        let text = serde_json::to_string_pretty(&document).context("cannot write the findings")?;
        output::print(&text)?;
    } else {
        output::print(&findings(&probe, &left, args.clean))?;
    }
    if let Some(error) = failed.into_iter().next() {
        return Err(Failure::Run(error));
    }
    verdict.map_err(|error| Failure::CannotHere(anyhow!(error)))
}

/// Something of ours without an owner.
enum Left {
    OfKernel(Leftover),
    OfPath(LeftProcess),
}

impl Left {
    fn remove(&self) -> anyhow::Result<()> {
        match self {
            Left::OfKernel(item) => Ok(item.remove()?),
            Left::OfPath(process) => process
                .end()
                .with_context(|| format!("cannot end {process}")),
        }
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Left::OfKernel(item) => item.fmt(f),
            Left::OfPath(process) => process.fmt(f),
        }
    }
}

fn findings(probe: &Probe, left: &[Left], cleaned: bool) -> String {
    let mut table = Table::new(&["", "check", "found", "what to do"], 0..0);
    for check in &probe.checks {
        let mark = match check.verdict {
            CheckVerdict::Ok => "ok",
            CheckVerdict::Limited => "limited",
            CheckVerdict::Missing | CheckVerdict::MissingForPaths => "MISSING",
        };
        table.row([
            mark.to_owned(),
            check.name.to_owned(),
            check.found.clone(),
            check.remedy.unwrap_or_default().to_owned(),
        ]);
    }
    let mut text = table.to_string();
    if left.is_empty() {
        text.push_str("\n\nNothing is left over.");
    } else {
        text.push_str(if cleaned {
            "\n\nRemoved:"
        } else {
            "\n\nLeft over (--clean removes it):"
        });
        for item in left {
            text.push_str(&format!("\n  {item}"));
        }
    }
    text
}
