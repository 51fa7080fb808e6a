//! `headstart path`: runs a command behind an emulated path.

mod command;
mod server;
mod summary;

use std::ffi::OsString;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use headstart_path::{
    Emulation, LinkConfig, Namespace, PathConfig, PathError, PathReport, QueueSpec, Rate, Span,
};

use crate::failure::Failure;
use crate::process::Ending;
use command::Events;
use server::Server;

/// The packets that a queue of one bandwidth-delay product is counted in.
const FULL_PACKET_BYTES: u32 = 1500;

/// The least that a queue holds by default: Linux sends as many at once on a new connection.
const LEAST_QUEUE_PKTS: u32 = 10;

/// Run a command behind an emulated path.
///
/// Makes two network namespaces, a server's and a client's, with a router of the given rate, delay
/// and queue between them, and runs CMD on the client's side. Needs root. Everything is gone
/// afterwards; no default of the machine is changed.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PathArgs {
    /// Rate from server to client ("down"), like 12mbit, 1.5mbit or 100kbit
    #[arg(long)]
    rate: Rate,

    /// Rate from client to server ("up") [default: as --rate]
    #[arg(long, value_name = "RATE")]
    reverse_rate: Option<Rate>,

    /// Round-trip time of the empty path, half of it each way, like 400ms
    #[arg(long, value_name = "TIME")]
    rtt: Span,

    /// Queue in front of the server-to-client link, like drop-tail:400 (packets)
    /// [default: drop-tail of one bandwidth-delay product, at least 10 packets]
    #[arg(long)]
    queue: Option<QueueSpec>,

    /// Queue in front of the client-to-server link [default: as --queue]
    #[arg(long, value_name = "QUEUE")]
    reverse_queue: Option<QueueSpec>,

    /// Start this shell command on the server's side first, and wait until its TCP port listens
    #[arg(long, value_name = "CMD")]
    server: Option<String>,

    /// The port to wait for [default: any]
    #[arg(long, value_name = "PORT", requires = "server", value_parser = clap::value_parser!(u16).range(1..))]
    server_port: Option<u16>,

    /// Tells paths side by side apart: the addresses are 10.77.LANE.1 and .2
    #[arg(long, default_value_t = 0)]
    lane: u8,

    /// Print the results as one JSON document on standard output; CMD's output goes to standard error
    #[arg(long)]
    json: bool,

    /// The command and its arguments, run on the client's side
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
CMD and the server find the addresses in their environment: HEADSTART_SERVER and HEADSTART_CLIENT
(IPv4), HEADSTART_SERVER6 and HEADSTART_CLIENT6 (IPv6).

Examples:
  headstart path --rate 10mbit --rtt 120ms -- sh -c 'ping -c 3 $HEADSTART_SERVER'

  headstart path --rate 12mbit --reverse-rate 1mbit --rtt 400ms --queue drop-tail:400 \\
      --server 'python3 -m http.server 8080' --server-port 8080 \\
      -- sh -c 'curl -so /dev/null -w \"%{time_total} s\\n\" http://$HEADSTART_SERVER:8080/'

Exit code: CMD's own; 1 the run failed, 2 wrong usage, 3 this machine cannot, 130 and 143 when
interrupted or terminated.";

impl PathArgs {
    fn config(&self) -> PathConfig {
        let queue = self.queue.unwrap_or_else(|| {
            let bytes = FULL_PACKET_BYTES;
            QueueSpec::drop_tail_of_one_bdp(self.rate, self.rtt, bytes, LEAST_QUEUE_PKTS)
        });
        let reverse_delay_ns = self.rtt.as_ns() / 2;
        let forward = LinkConfig {
            rate: self.rate,
            delay: Span::from_ns(self.rtt.as_ns() - reverse_delay_ns),
            queue,
        };
        let reverse = LinkConfig {
            rate: self.reverse_rate.unwrap_or(self.rate),
            delay: Span::from_ns(reverse_delay_ns),
            queue: self.reverse_queue.unwrap_or(queue),
        };
        PathConfig {
            forward,
            reverse,
            lane: self.lane,
            log_packets: false,
        }
    }
}

/// Runs the command and tears everything down.
pub(crate) fn run(args: PathArgs) -> Result<(), Failure> {
    crate::process::check_exists(&args.command)?;
    let events = Events::watch().context("cannot watch for signals")?;
    let emulation = Emulation::start(args.config())?;
    let started = Instant::now();
    let (ending, report) = run_on(emulation, &args, &events)?;
    summary::print(&report);
    if args.json {
        summary::print_json(&report, started.elapsed()).map_err(Failure::Run)?;
    }
    match ending.code() {
        0 => Ok(()),
        code => Err(Failure::Command(code)),
    }
}

/// Server, command, teardown. The emulation stops on every way out of here.
fn run_on(
    mut emulation: Emulation,
    args: &PathArgs,
    events: &Events,
) -> Result<(Ending, PathReport), Failure> {
    let server = match &args.server {
        None => None,
        Some(line) => {
            let mut server = Server::start(emulation.server(), line, &environment(&emulation))?;
            if let Some(signal) =
                server.wait_for_port(emulation.server(), args.server_port, events)?
            {
                return Err(Failure::Command(Ending::Signalled(signal).code()));
            }
            Some(server)
        }
    };
    let mut command = command::prepare(&args.command, args.json)?;
    command.envs(environment(&emulation));
    let ending = command::run_to_end(emulation.client(), command, events)?;
    let server_warning = server.and_then(Server::end);
    let mut report = emulation.stop()?;
    report.warnings.extend(server_warning);
    Ok((ending, report))
}

/// Where the two sides find each other.
fn environment(emulation: &Emulation) -> [(&'static str, String); 4] {
    let side = |side: &Namespace| (side.addr_v4().to_string(), side.addr_v6().to_string());
    let (server, server6) = side(emulation.server());
    let (client, client6) = side(emulation.client());
    [
        ("HEADSTART_SERVER", server),
        ("HEADSTART_CLIENT", client),
        ("HEADSTART_SERVER6", server6),
        ("HEADSTART_CLIENT6", client6),
    ]
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Failure {
        if error.cannot_here() {
            Failure::CannotHere(error.into())
        } else {
            Failure::Run(error.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        path: PathArgs,
    }

    fn config(arguments: &str) -> PathConfig {
        let arguments = ["path"]
            .into_iter()
            .chain(arguments.split(' '))
            .chain(["--", "true"]);
        Only::try_parse_from(arguments).unwrap().path.config()
    }

    #[test]
    fn the_reverse_direction_is_as_the_forward_one_unless_it_is_told_otherwise() {
        let path = config("--rate 12mbit --rtt 400ms");
        assert_eq!(path.reverse, path.forward);
        assert_eq!(path.forward.queue.to_string(), "drop-tail:400");
        assert_eq!(path.forward.delay.to_string(), "200ms");
        let path =
            config("--rate 12mbit --reverse-rate 1mbit --rtt 0ms --reverse-queue drop-tail:5");
        assert_eq!(path.reverse.rate.to_string(), "1mbit");
        assert_eq!(path.reverse.queue.to_string(), "drop-tail:5");
        assert_eq!(path.forward.queue.to_string(), "drop-tail:10");
    }

    #[test]
    fn an_odd_round_trip_time_loses_no_nanosecond() {
        let path = config("--rate 12mbit --rtt 3ns");
        assert_eq!(
            (path.forward.delay.as_ns(), path.reverse.delay.as_ns()),
            (2, 1)
        );
    }
}
