//! What `headstart path` says at the end: a paragraph for people, a document for programs.

use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use headstart_path::background::BackgroundReport;
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
    background: &'a [BackgroundReport],
}

/// Prints the paragraph on standard error.
pub(super) fn print(report: &PathReport, background: &[BackgroundReport]) {
    eprintln!("{}", paragraph(report, background));
}

/// Prints the document on standard output.
pub(super) fn print_json(
    report: &PathReport,
    background: &[BackgroundReport],
    wall: Duration,
) -> anyhow::Result<()> {
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
        background,
    };
    let text = serde_json::to_string_pretty(&document).context("cannot write the results")?;
    writeln!(std::io::stdout(), "{text}").context("cannot print the results")
}

fn paragraph(report: &PathReport, background: &[BackgroundReport]) -> String {
    let mut text = format!(
        "headstart path:\n  down {}\n  up   {}",
        direction(&report.forward),
        direction(&report.reverse)
    );
    for source in background {
        text += &format!(
            "\n  {}: {:.1} MB received over {} connections",
            source.spec,
            source.received_bytes as f64 / 1e6,
            source.connections
        );
        if source.pages > 0 {
            text += &format!(", {} pages", source.pages);
        }
        if source.failures > 0 {
            text += &format!(", {} failed", source.failures);
        }
    }
    if let Some(log) = &report.log {
        text += &format!("\n  log: {} packets written", log.written_pkts);
    }
    for warning in &report.warnings {
        text += &format!("\nwarning: {warning}");
    }
    match report.valid {
        true => text += "\nvalid: the path was the one asked for",
        false => {
            for reason in &report.invalid_because {
                text += &format!("\ninvalid: {reason}");
            }
        }
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
        queue_delay_ms: waited,
        lateness_us: late,
        ..
    } = report;
    if *in_pkts == 0 {
        return format!("{rate}, {delay}, {queue}: no packet");
    }
    format!(
        "{rate}, {delay}, {queue}: {:.1} % used, goodput {}, {} of {in_pkts} packets dropped{}\n       \
         queue delay p50 {:.1}, p90 {:.1}, p99 {:.1}, max {:.1} ms; packets left late by p50 {:.0}, p99 \
         {:.0}, max {:.0} us",
        utilisation * 100.0,
        per_second(report.goodput_bits_per_s),
        report.dropped_pkts.total(),
        reasons(report),
        waited.p50,
        waited.p90,
        waited.p99,
        waited.max,
        late.p50,
        late.p99,
        late.max,
    )
}

/// A rate for people.
pub(super) fn per_second(bits_per_s: f64) -> String {
    match bits_per_s {
        rate if rate >= 999.5e6 => format!("{:.2} Gbit/s", rate / 1e9),
        rate if rate >= 999.5e3 => format!("{:.2} Mbit/s", rate / 1e6),
        rate => format!("{:.1} kbit/s", rate / 1e3),
    }
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
