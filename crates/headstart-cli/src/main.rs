//! `headstart`: parse the command line, call the crates, print what they say.

mod cells;
#[cfg(feature = "kernel")]
mod compare;
#[cfg(feature = "kernel")]
mod daemon;
#[cfg(feature = "kernel")]
mod doctor;
#[cfg(feature = "kernel")]
mod exec;
mod failure;
mod list;
#[cfg(feature = "kernel")]
mod memory;
#[cfg(not(feature = "kernel"))]
mod no_kernel;
mod output;
mod path;
#[cfg(feature = "kernel")]
mod paths;
mod process;
mod sim;
#[cfg(feature = "kernel")]
mod virtual_kernel;

#[cfg(not(feature = "kernel"))]
use no_kernel::{compare, daemon, doctor, exec, paths, virtual_kernel};

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
    Doctor(doctor::DoctorArgs),
    List(list::ListArgs),
    Compare(compare::CompareArgs),
    Sim(sim::SimArgs),
    Path(Box<path::PathArgs>),
    Exec(Box<exec::ExecArgs>),
    Paths(paths::PathsArgs),
    Virtual(virtual_kernel::VirtualArgs),
    Run(daemon::RunArgs),
    Status(daemon::StatusArgs),
    Top(daemon::TopArgs),
    Explain(daemon::ExplainArgs),
    Reload(daemon::ReloadArgs),
    Off(daemon::OffArgs),
    On(daemon::OnArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // A service's log says what it does; a tool is silent when all is well.
    let level = match cli.verb {
        Verb::Run(_) => tracing::Level::INFO,
        _ => tracing::Level::WARN,
    };
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::builder()
                .with_default_directive(level.into())
                .with_env_var("HEADSTART_LOG")
                .from_env_lossy(),
        )
        .with_writer(std::io::stderr)
        .init();
    let done: Result<(), Failure> = match cli.verb {
        Verb::Doctor(args) => doctor::run(&args),
        Verb::List(args) => list::run(&args),
        Verb::Compare(args) => compare::run(&args),
        Verb::Sim(args) => sim::run(&args),
        Verb::Path(args) => path::run(*args),
        Verb::Exec(args) => exec::run(&args),
        Verb::Paths(args) => paths::run(&args),
        Verb::Virtual(args) => virtual_kernel::run(&args),
        Verb::Run(args) => daemon::run(&args),
        Verb::Status(args) => daemon::status(&args),
        Verb::Top(args) => daemon::top(&args),
        Verb::Explain(args) => daemon::explain(&args),
        Verb::Reload(args) => daemon::reload(&args),
        Verb::Off(args) => daemon::off(&args),
        Verb::On(args) => daemon::on(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
