//! `headstart`: parse the command line, call the crates, print what they say.

mod failure;
mod path;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

/// Makes the first round trips of a TCP connection fast, without a kernel patch, and proves it.
#[derive(Parser)]
#[command(name = "headstart", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Path(path::PathArgs),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_env("HEADSTART_LOG"))
        .with_writer(std::io::stderr)
        .init();
    let cli = Cli::parse();
    let done: Result<(), Failure> = match cli.verb {
        Verb::Path(args) => path::run(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
