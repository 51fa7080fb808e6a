//! `headstart exec`: any program's connections under a start-up.

use std::cell::RefCell;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use headstart_core::{
    Assignment, Ending as StartEnding, Event, EventKind, INFINITE_SSTHRESH, Params, Phase, Startup,
    Verdict, why_help, why_name,
};
use headstart_kernel::{
    Attachment, Cgroup, Counter, Kernel, KernelError, Options, RecordLevel, Watch, WatchOptions,
    WindowRule,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::memory::{MemoryArgs, is_held};
use crate::process::{Ending, check_exists, program_of};

/// How often we look whether the program has ended.
const STEP: Duration = Duration::from_millis(20);

/// Run a program with its TCP connections under a start-up.
///
/// The start-up is in the kernel as long as the program, or anything that it started, runs. When headstart ends,
/// however it ends (before Linux 6.4: not after kill -9; see doctor --clean), the start-up is gone for new connections, and open connections go on with it until they close.
/// A congestion control that the program chooses for a socket by itself is overridden.
#[derive(Args)]
#[command(after_help = "Examples:
  headstart exec --startup su_fast_start -- nginx -g 'daemon off;'
  headstart exec --startup su_fast_start --param maxburst_pkts=2 -- iperf3 -s
  headstart exec --startup su_standard --iw 10.0.0.0/8=30 --iw :8080=3 -- ./server
  headstart exec --startup su_adaptive --local-network 10.0.0.0/8 -- ./server
  ss -ti                            names the start-up of each connection")]
pub(crate) struct ExecArgs {
    /// The start-up; `headstart list` names them.
    #[arg(long, value_name = "NAME")]
    startup: String,
    /// A parameter of the start-up; may be given several times.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// The initial window of a destination (10.0.0.0/8=30), of a listener (:8080=3) or both (10.0.0.0/8:8080=5), for
    /// su_standard; may be given several times. A rule for a port goes first, then the longest prefix.
    #[arg(long = "iw", value_name = "RULE")]
    windows: Vec<WindowRule>,
    #[command(flatten)]
    memory: MemoryArgs,
    /// The DSCP of packets with low drop priority. 1 is "lower effort" (RFC 8622).
    #[arg(long, value_name = "DSCP", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: u8,
    /// Mark low drop priority on this device only; may be given several times. Default: all devices.
    #[arg(long = "dev", value_name = "DEVICE")]
    devices: Vec<String>,
    /// Print what the start-up decides, a line each, on standard error.
    #[arg(long)]
    verbose: bool,
    /// Print a line at the end: paths known, packets marked.
    #[arg(long)]
    summary: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &ExecArgs) -> Result<(), Failure> {
    let params = parse_params(args).map_err(Failure::Usage)?;
    let memory = args.memory.options().map_err(Failure::Usage)?;
    check_exists(&args.command)?;
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for signals")?;
    let record_level = if args.verbose {
        RecordLevel::Decisions
    } else {
        RecordLevel::Nothing
    };
    let options = Options {
        startups: vec![params],
        dscp: args.dscp,
        record_level,
        memory,
        windows: args.windows.clone(),
        ..Options::default()
    };
    let joined = is_held();
    let kernel = Kernel::load(&options).map_err(of_kernel)?;
    let keeper = RefCell::new(args.memory.load(&kernel, joined)?);
    let learnt = || kernel.paths().ok();
    let _marks = mark_devices(&kernel, params.startup(), &args.devices)?;
    let cgroup = Cgroup::create().map_err(of_kernel)?;
    let _hints = kernel.take_hints(&cgroup).map_err(of_kernel)?;
    let chosen = WatchOptions {
        congestion: Some(args.startup.clone()),
        samples: false,
    };
    let watch = Watch::attach(&cgroup, &chosen).map_err(of_kernel)?;

    let mut command = Command::new(program_of(&args.command)?);
    command.args(&args.command[1..]);
    cgroup.enter(&mut command).map_err(of_kernel)?;
    let mut child = command.spawn().context("cannot start the program")?;
    let tell = || {
        keeper.borrow_mut().tick(learnt);
        if args.verbose {
            tell_decisions(&kernel)
        } else {
            Ok(())
        }
    };
    let status = wait_for_all(&mut child, &cgroup, &mut signals, tell)?;
    keeper.borrow_mut().save(learnt);
    let refused = watch.refused().map_err(of_kernel)?;
    if refused > 0 {
        eprintln!(
            "headstart: the kernel refused {refused} connections the start-up {}",
            args.startup
        );
    }
    if args.summary {
        summarise(&kernel, &args.startup)?;
    }
    match Ending::of(status).code() {
        0 => Ok(()),
        code => Err(Failure::Command(code)),
    }
}

fn parse_params(args: &ExecArgs) -> Result<Params, anyhow::Error> {
    let mut params = Params::new(Startup::named(&args.startup)?);
    for setting in &args.params {
        Assignment::parse(setting)
            .and_then(|given| Ok(params.set(given.name, given.value)?))
            .with_context(|| format!("--param {setting}"))?;
    }
    if !args.windows.is_empty() && params.startup().name() != "su_standard" {
        return Err(anyhow!(
            "--iw: only su_standard has an initial window of its own; this is {}",
            args.startup
        ));
    }
    Ok(params)
}

fn of_kernel(error: KernelError) -> Failure {
    match error {
        KernelError::CannotHere { .. } => Failure::CannotHere(error.into()),
        error => Failure::Run(error.into()),
    }
}

/// A start-up that marks nothing needs no marker, which would look at every packet of the device.
fn mark_devices(
    kernel: &Kernel,
    startup: Startup,
    named: &[String],
) -> Result<Vec<Attachment>, Failure> {
    let marker = kernel.marker().map_err(of_kernel)?;
    let mut marks = Vec::new();
    let interfaces = nix::net::if_::if_nameindex().context("cannot list the network devices")?;
    for name in named {
        if !interfaces
            .iter()
            .any(|interface| interface.name().to_string_lossy() == *name)
        {
            return Err(Failure::Usage(anyhow!(
                "--dev {name}: there is no such device"
            )));
        }
    }
    for interface in interfaces.iter().filter(|_| startup.marks()) {
        let name = interface.name().to_string_lossy();
        if !named.is_empty() && !named.iter().any(|wanted| *wanted == name) {
            continue;
        }
        match marker.attach(interface.index()) {
            Ok(mark) => marks.push(mark),
            Err(error) if named.is_empty() => tracing::warn!("{name}: {error}"),
            Err(error) => return Err(of_kernel(error)),
        }
    }
    Ok(marks)
}

/// Until the program and all that it started have ended: a server may put itself into the background.
fn wait_for_all(
    child: &mut Child,
    cgroup: &Cgroup,
    signals: &mut Signals,
    tell: impl Fn() -> Result<(), Failure>,
) -> Result<ExitStatus, Failure> {
    let mut ended = None;
    loop {
        tell()?;
        for signal in signals.pending() {
            pass_on(signal, child, ended.is_some(), cgroup);
        }
        if ended.is_none() {
            ended = child.try_wait().context("cannot wait for the program")?;
        }
        if let Some(status) = ended
            && !cgroup.is_populated().map_err(of_kernel)?
        {
            return Ok(status);
        }
        sleep(STEP);
    }
}

/// The terminal sends Ctrl-C to the program itself; from anywhere else it comes to us alone.
fn pass_on(signal: i32, child: &Child, child_ended: bool, cgroup: &Cgroup) {
    if signal == SIGINT && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        return;
    }
    let pids = if child_ended {
        std::fs::read_to_string(cgroup.path().join("cgroup.procs")).unwrap_or_default()
    } else {
        child.id().to_string()
    };
    for pid in pids.lines().filter_map(|pid| pid.parse().ok()) {
        let _ = kill(Pid::from_raw(pid), Signal::try_from(signal).ok());
    }
}

/// What the start-up has decided since the last time: who, what happened, why, and the window.
fn tell_decisions(kernel: &Kernel) -> Result<(), Failure> {
    for record in kernel.take_records().map_err(of_kernel)? {
        let verdict = &record.verdict;
        let phase = verdict.phase().map_or("?", Phase::name);
        let mut line = format!(
            "{:.6} {} -> {} {} {phase}: {}",
            record.at_ns as f64 / 1e9,
            record.local_port,
            SocketAddr::new(record.remote_addr, record.remote_port),
            record.startup.name(),
            why_name(verdict.why),
        );
        line += &windows(&record.event, verdict);
        if verdict.pacing_bytes_per_s > 0 {
            line += &format!(
                ", {:.1} Mbit/s",
                verdict.pacing_bytes_per_s as f64 * 8.0 / 1e6
            );
        }
        eprintln!("{line} ({})", why_help(verdict.why));
    }
    Ok(())
}

/// The window that is set; at an exit both as they are then, set or not.
fn windows(event: &Event, verdict: &Verdict) -> String {
    let or_else = |set: u32, there: u32| if set > 0 { set } else { there };
    if verdict.ending() == StartEnding::None {
        return match verdict.cwnd_pkts {
            0 => String::new(),
            set => format!(", cwnd {set} pkts"),
        };
    }
    let cwnd_pkts = or_else(verdict.cwnd_pkts, event.cwnd_pkts);
    let ssthresh = match or_else(verdict.ssthresh_pkts, event.ssthresh_pkts) {
        INFINITE_SSTHRESH.. => "infinite".to_owned(),
        pkts => format!("{pkts} pkts"),
    };
    // The stack takes its penalty after it has asked for the start-up's.
    let penalised = event.kind == EventKind::Loss as u8 && verdict.ssthresh_pkts == 0;
    let when = if penalised { " before the penalty" } else { "" };
    format!(", cwnd {cwnd_pkts} pkts, ssthresh {ssthresh}{when}")
}

fn summarise(kernel: &Kernel, startup: &str) -> Result<(), Failure> {
    let paths = kernel.paths().map_err(of_kernel)?;
    let marked = kernel.counter(Counter::MarkedPkts).map_err(of_kernel)?;
    eprintln!(
        "headstart: {startup}: {} paths known, {marked} packets marked",
        paths.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind) -> Event {
        Event {
            kind: kind as u8,
            cwnd_pkts: 349,
            ssthresh_pkts: INFINITE_SSTHRESH,
            ..Event::default()
        }
    }

    fn said(kind: EventKind, why: &str, verdict: Verdict) -> String {
        let number = (0..=u8::MAX).find(|number| why_name(*number) == why);
        let verdict = Verdict {
            why: number.unwrap(),
            ..verdict
        };
        windows(&event(kind), &verdict)
    }

    #[test]
    fn at_an_exit_both_windows_are_said_as_they_are_then() {
        let left = Verdict::default();
        let set = Verdict {
            cwnd_pkts: 30,
            ssthresh_pkts: 84,
            ..left
        };
        let (ack, loss) = (EventKind::Ack, EventKind::Loss);
        let validated = said(ack, "validated", left);
        assert_eq!(validated, ", cwnd 349 pkts, ssthresh infinite");
        let recovered = said(ack, "recovered", set);
        assert_eq!(recovered, ", cwnd 30 pkts, ssthresh 84 pkts");
        let penalised = said(loss, "ordinary-loss", left);
        assert_eq!(
            penalised,
            ", cwnd 349 pkts, ssthresh infinite before the penalty"
        );
        let kept = Verdict {
            phase: Phase::Recovering as u8,
            ssthresh_pkts: 84,
            ..left
        };
        assert_eq!(
            said(loss, "start-loss", kept),
            ", cwnd 349 pkts, ssthresh 84 pkts"
        );
    }

    #[test]
    fn while_it_goes_on_only_the_window_that_is_set_is_said() {
        let started = Verdict {
            phase: Phase::OpenLoop as u8,
            cwnd_pkts: 100,
            ..Verdict::default()
        };
        let send = EventKind::Send;
        assert_eq!(said(send, "started", started), ", cwnd 100 pkts");
        let clocked = Verdict {
            phase: Phase::Clocked as u8,
            ..Verdict::default()
        };
        assert_eq!(said(EventKind::Ack, "ack-clock", clocked), "");
    }
}
