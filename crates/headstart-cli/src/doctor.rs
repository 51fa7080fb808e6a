//! `headstart doctor`: what this machine can do, and what is left over.

use anyhow::{Context, anyhow};
use clap::Args;
use headstart_kernel::{CheckVerdict, Leftover, Probe, leftovers};
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
    let left = leftovers();
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
            "leftovers": left.iter().map(Leftover::to_string).collect::<Vec<_>>(),
            "cleaned": args.clean && failed.is_empty(),
        });
        let text = serde_json::to_string_pretty(&document).context("cannot write the findings")?;
        output::print(&text)?;
    } else {
        output::print(&findings(&probe, &left, args.clean))?;
    }
    if let Some(error) = failed.into_iter().next() {
        return Err(Failure::Run(error.into()));
    }
    verdict.map_err(|error| Failure::CannotHere(anyhow!(error)))
}

fn findings(probe: &Probe, left: &[Leftover], cleaned: bool) -> String {
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
