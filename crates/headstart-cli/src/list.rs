//! `headstart list`: the start-ups there are.

use anyhow::Context;
use clap::Args;
use headstart_core::{MemoryParams, Param, Startup};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, Table};

/// List the start-ups: name, source, where each runs, parameters.
#[derive(Args)]
#[command(after_help = "Examples:
  headstart list                    names, sources and parameters
  headstart list --json | jq '.[].name'")]
pub(crate) struct ListArgs {
    /// Print one JSON array, one object a start-up, with its parameters.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    source: &'static str,
    kernel: bool,
    sim: bool,
    parameters: Vec<Param>,
}

impl Row {
    fn of(startup: Startup) -> Row {
        Row {
            name: startup.name(),
            source: startup.source(),
            kernel: cfg!(feature = "kernel"),
            sim: true,
            parameters: startup.params().collect(),
        }
    }
}

pub(crate) fn run(args: &ListArgs) -> Result<(), Failure> {
    let rows: Vec<Row> = Startup::all().map(Row::of).collect();
    if args.json {
        let text = serde_json::to_string_pretty(&rows).context("cannot write the list")?;
        return output::print(&text);
    }
    let mut table = Table::new(&["start-up", "runs in", "source"], 0..0);
    for row in &rows {
        let runs_in = [(row.kernel, "kernel"), (row.sim, "sim")];
        let runs_in: Vec<&str> = runs_in
            .into_iter()
            .filter_map(|(runs, place)| runs.then_some(place))
            .collect();
        table.row([
            row.name.to_owned(),
            runs_in.join(", "),
            row.source.to_owned(),
        ]);
    }
    let mut parameters = Table::new(&["parameter", "default", "range", "unit", "what"], 1..2);
    for row in &rows {
        for param in &row.parameters {
            parameters.row([
                format!("{}.{}", row.name, param.name),
                param.default.to_string(),
                format!("{} to {}", param.min, param.max),
                param.unit.to_owned(),
                param.help.to_owned(),
            ]);
        }
    }
    for param in MemoryParams::params() {
        parameters.row([
            format!("memory.{}", param.name),
            param.default.to_string(),
            format!("{} to {}", param.min, param.max),
            param.unit.to_owned(),
            param.help.to_owned(),
        ]);
    }
    output::print(&format!("{table}\n\n{parameters}"))
}
