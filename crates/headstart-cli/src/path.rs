//! `headstart path`: runs a command behind an emulated path.

mod args;
mod command;
mod server;
mod shell;
mod status;
mod summary;
mod wire;

use std::ffi::OsString;
use std::time::Instant;

use anyhow::{Context, anyhow};
use headstart_path::background::{Background, BackgroundReport};
use headstart_path::{Emulation, Namespace, PathError, PathReport, left_processes};

use crate::failure::Failure;
use crate::process::Ending;
pub(crate) use args::PathArgs;
use command::Events;
use server::Server;
use status::Status;

/// What came of a run.
struct Outcome {
    ending: Ending,
    report: PathReport,
    background: Vec<BackgroundReport>,
}

/// Runs the command and tears everything down.
pub(crate) fn run(args: PathArgs) -> Result<(), Failure> {
    let line = match args.shell {
        true => shell::command_line()?,
        false => args.command.clone(),
    };
    crate::process::check_exists(&line)?;
    let events = Events::watch().context("cannot watch for signals")?;
    let config = args.config().map_err(Failure::Usage)?;
    end_what_a_killed_run_left();
    let emulation = Emulation::start(config)?;
    let started = Instant::now();
    let outcome = run_on(emulation, &args, &line, &events)?;
    if !args.quiet {
        summary::print(&outcome.report, &outcome.background);
    }
    if args.json {
        summary::print_json(&outcome.report, &outcome.background, started.elapsed())
            .map_err(Failure::Run)?;
    }
    let log_failures = outcome.report.log.iter().flat_map(|log| &log.failures);
    if let Some(failure) = log_failures.into_iter().next() {
        return Err(Failure::Run(anyhow!("the log {failure}")));
    }
    match outcome.ending.code() {
        0 => Ok(()),
        code => Err(Failure::Command(code)),
    }
}

/// A run that was killed could not do it itself.
fn end_what_a_killed_run_left() {
    for left in left_processes() {
        match left.end() {
            Ok(()) => eprintln!("headstart: ended what a killed run left behind: {left}"),
            Err(error) => eprintln!("headstart: cannot end {left}: {error}"),
        }
    }
}

/// Server, cross-traffic, command, teardown. The emulation stops on every way out of here.
fn run_on(
    mut emulation: Emulation,
    args: &PathArgs,
    line: &[OsString],
    events: &Events,
) -> Result<Outcome, Failure> {
    let environment = environment(&emulation)?;
    let server = match &args.server {
        None => None,
        Some(line) => {
            let mut server = Server::start(emulation.server(), line, &environment)?;
            if let Some(signal) =
                server.wait_for_port(emulation.server(), args.server_port, events)?
            {
                return Err(Failure::Command(Ending::Signalled(signal).code()));
            }
            Some(server)
        }
    };
    let background = Background::start(&emulation, &args.background, args.wire.seed())?;
    let mut command = command::prepare(line, args.json)?;
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    // A shell has the terminal to itself.
    let shows_status = !(args.quiet || args.json || args.shell);
    let ending = {
        let _prompt = match args.shell {
            true => Some(shell::prepare(&mut command, line, args.lane)?),
            false => None,
        };
        let status = Status::start(&emulation, shows_status);
        let ending = command::run_to_end(emulation.client(), command, events, args.shell);
        status.end();
        ending?
    };
    let background = background.stop();
    let server_warning = server.and_then(Server::end);
    let mut report = emulation.stop()?;
    report.warnings.extend(server_warning);
    Ok(Outcome {
        ending,
        report,
        background,
    })
}

/// Where the hosts find each other.
fn environment(emulation: &Emulation) -> Result<Vec<(&'static str, String)>, PathError> {
    let (servers, clients) = (emulation.servers(), emulation.clients());
    let v4 = |side: &[Namespace]| words(side.iter().map(|host| host.addr_v4().to_string()));
    let v6 = |side: &[Namespace]| words(side.iter().map(|host| host.addr_v6().to_string()));
    let entrances = |side: &[Namespace]| -> Result<String, PathError> {
        let entrances: Result<Vec<String>, _> = side.iter().map(Namespace::entrance).collect();
        Ok(words(entrances?.into_iter()))
    };
    let (server, client) = (emulation.server(), emulation.client());
    Ok(vec![
        ("HEADSTART_SERVER", server.addr_v4().to_string()),
        ("HEADSTART_CLIENT", client.addr_v4().to_string()),
        ("HEADSTART_SERVER6", server.addr_v6().to_string()),
        ("HEADSTART_CLIENT6", client.addr_v6().to_string()),
        ("HEADSTART_SERVERS", v4(servers)),
        ("HEADSTART_CLIENTS", v4(clients)),
        ("HEADSTART_SERVERS6", v6(servers)),
        ("HEADSTART_CLIENTS6", v6(clients)),
        ("HEADSTART_NS_SERVERS", entrances(servers)?),
        ("HEADSTART_NS_CLIENTS", entrances(clients)?),
        ("HEADSTART_LANE", server.lane().to_string()),
    ])
}

fn words(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<String>>().join(" ")
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Failure {
        if error.cannot_here() {
            Failure::CannotHere(error.into())
        } else if error.cannot_be() || matches!(error, PathError::Background { .. }) {
            Failure::Usage(error.into())
        } else {
            Failure::Run(error.into())
        }
    }
}
