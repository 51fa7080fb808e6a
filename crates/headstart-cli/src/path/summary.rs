//! What `headstart path` says at the end: a paragraph for people, a document for programs.

use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use headstart_path::{DirectionReport, PathReport};
use headstart_scenario::{Machine, Run, SCHEMA};
use serde::Serialize;

/// The results document of this verb.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    verb: &'static str,
    machine: Machine,
    run: Run,
    warnings: &'a [String],
    path: &'a PathReport,
}

/// Prints the paragraph on standard error.
pub(super) fn print(report: &PathReport) {
    eprintln!("{}", paragraph(report));
}

/// Prints the document on standard output.
pub(super) fn print_json(report: &PathReport, wall: Duration) -> anyhow::Result<()> {
    let (forward, reverse) = (&report.forward, &report.reverse);
    let document = Document {
        schema: SCHEMA,
        verb: "path",
        machine: Machine::here(),
        run: Run {
            wall_s: wall.as_secs_f64(),
            packets: forward.out_pkts,
            events: forward.in_pkts + forward.out_pkts + reverse.in_pkts + reverse.out_pkts,
        },
        warnings: &report.warnings,
        path: report,
    };
    let text = serde_json::to_string_pretty(&document).context("cannot write the results")?;
    writeln!(std::io::stdout(), "{text}").context("cannot print the results")
}

fn paragraph(report: &PathReport) -> String {
    let mut text = format!(
        "headstart path: down {}; up {}.",
        direction(&report.forward),
        direction(&report.reverse)
    );
    for warning in &report.warnings {
        text += &format!("\nwarning: {warning}");
    }
    for reason in &report.invalid_because {
        text += &format!("\ninvalid: {reason}");
    }
    text
}

fn direction(report: &DirectionReport) -> String {
    let DirectionReport {
        rate,
        delay,
        queue,
        in_pkts,
        utilisation,
        ..
    } = report;
    if *in_pkts == 0 {
        return format!("{rate}, {delay}, {queue}: no packet");
    }
    format!(
        "{rate}, {delay}, {queue}: {:.1} % used, {} of {in_pkts} packets dropped{}, queue delay \
         {:.1} ms median and {:.1} ms at most, packets {:.0} us late (median), {:.0} us (p99)",
        utilisation * 100.0,
        report.dropped_pkts.total(),
        reasons(report),
        report.queue_delay_ms.p50,
        report.queue_delay_ms.max,
        report.lateness_us.p50,
        report.lateness_us.p99,
    )
}

/// The drops by kind, in brackets; nothing if there is no drop.
fn reasons(report: &DirectionReport) -> String {
    let reasons: Vec<String> = report
        .dropped_pkts
        .by_reason()
        .map(|(reason, pkts)| format!("{pkts} {reason}"))
        .collect();
    match reasons.is_empty() {
        true => String::new(),
        false => format!(" ({})", reasons.join(", ")),
    }
}
