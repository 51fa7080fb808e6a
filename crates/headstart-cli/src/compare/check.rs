//! The simulator against the kernel, cell by cell.

use std::collections::BTreeMap;
use std::fmt::Write;

use headstart_scenario::{Cell, Extremes, Ground, ResultsDocument, Scenario};

use super::work::Conditions;

/// By how much a median transfer time may differ from the kernel's, as a share of it.
const TIME_SHARE: f64 = 0.05;
/// By how much the window at exit may: a share of the kernel's, or so many packets. Windows are counted in whole
/// packets: of one below 20 a packet is more than that share.
const WINDOW_SHARE: f64 = 0.05;
const WINDOW_PKTS: f64 = 1.0;
/// By how much the router's drops may: a share of the kernel's, or so many packets.
const DROPS_SHARE: f64 = 0.10;
const DROPS_PKTS: f64 = 5.0;

/// One cell on both.
struct Pair<'a> {
    kernel: &'a Cell,
    sim: &'a Cell,
    /// What differs by more than it may.
    faults: Vec<&'static str>,
    /// The window differs by more than its share, if by one packet only.
    window_is_strict_fault: bool,
}

impl Pair<'_> {
    fn time_share(&self) -> f64 {
        median(self.sim) / median(self.kernel) - 1.0
    }

    /// What kind of a difference it is.
    fn class(&self) -> &'static str {
        let why = |cell: &Cell| cell.exit.as_ref().map(|exit| exit.why.clone());
        let within = self
            .kernel
            .fct_ms
            .is_some_and(|fct| (fct.p10..=fct.p90).contains(&median(self.sim)));
        if why(self.kernel) != why(self.sim) {
            "leaves for another reason"
        } else if self.faults.contains(&"window") {
            "leaves for the same reason, at another window"
        } else if self.faults == ["time"] && within {
            "the time is within the kernel's own spread"
        } else if self.faults.contains(&"drops") {
            "leaves alike, loses another number of packets"
        } else {
            "leaves and loses alike, takes another time"
        }
    }
}

fn median(cell: &Cell) -> f64 {
    cell.fct_ms.map_or(f64::NAN, |fct| fct.median)
}

fn drops(cell: &Cell) -> f64 {
    cell.router_drops
        .as_ref()
        .map_or(0.0, |drops: &Extremes| drops.median)
}

fn window(cell: &Cell) -> Option<f64> {
    cell.exit.as_ref()?.cwnd_pkts.map(f64::from)
}

fn differs(share: f64, kernel: f64, sim: f64) -> bool {
    (sim - kernel).abs() > share * kernel
}

fn window_differs(kernel_pkts: f64, sim_pkts: f64) -> bool {
    differs(WINDOW_SHARE, kernel_pkts, sim_pkts) && (sim_pkts - kernel_pkts).abs() > WINDOW_PKTS
}

fn pairs(document: &ResultsDocument) -> Vec<Pair<'_>> {
    let on = |ground: Ground| document.cells.iter().filter(move |cell| cell.on == ground);
    let twin = |kernel: &Cell| {
        on(Ground::Sim).find(|sim| {
            sim.startup == kernel.startup
                && sim.path == kernel.path
                && sim.case == kernel.case
                && sim.bytes == kernel.bytes
        })
    };
    let mut pairs = Vec::new();
    for kernel in on(Ground::Kernel).filter(|cell| cell.n > 0) {
        let Some(sim) = twin(kernel).filter(|sim| sim.n > 0) else {
            continue;
        };
        let mut faults = Vec::new();
        if differs(TIME_SHARE, median(kernel), median(sim)) {
            faults.push("time");
        }
        let (dropped, simulated) = (drops(kernel), drops(sim));
        if differs(DROPS_SHARE, dropped, simulated) && (dropped - simulated).abs() > DROPS_PKTS {
            faults.push("drops");
        }
        let mut window_is_strict_fault = false;
        if let (Some(kernel), Some(sim)) = (window(kernel), window(sim)) {
            window_is_strict_fault = differs(WINDOW_SHARE, kernel, sim);
            if window_differs(kernel, sim) {
                faults.push("window");
            }
        }
        pairs.push(Pair {
            kernel,
            sim,
            faults,
            window_is_strict_fault,
        });
    }
    pairs
}

/// The page: how many cells agree, and those that do not, the worst first.
pub(super) fn page(
    document: &ResultsDocument,
    legs: &[Scenario],
    conditions: &Conditions,
) -> String {
    let pairs = pairs(document);
    let mut failed: Vec<&Pair<'_>> = pairs
        .iter()
        .filter(|pair| !pair.faults.is_empty())
        .collect();
    failed.sort_by(|a, b| b.time_share().abs().total_cmp(&a.time_share().abs()));
    let good = pairs.len() - failed.len();
    let strictly_good = pairs
        .iter()
        .filter(|pair| pair.faults.is_empty() && !pair.window_is_strict_fault)
        .count();
    let mut text = format!(
        "# The simulator against the kernel\n\n\
         Written by `{}`; do not edit.\n\n\
         One scenario file on both: the simulator, and Linux {} on {} CPUs over an emulated path. A cell agrees where\n\
         the median transfer time is within 5 % of the kernel's, the packets that the router dropped are within 10 % or\n\
         5 packets, and the window with which the start-up left is within 5 % or one packet. {}\n\n\
         **{good} of {} cells agree**; with windows within 5 % alone, {strictly_good}.\n\n",
        conditions.command,
        document.machine.kernel,
        document.machine.cpus,
        super::page::when(conditions),
        pairs.len(),
    );
    let names: Vec<&str> = legs
        .iter()
        .filter_map(|leg| leg.path_name.as_deref())
        .filter(|name| {
            pairs
                .iter()
                .any(|pair| pair.kernel.path.as_deref() == Some(name))
        })
        .collect();
    text.push_str("| start-up |");
    for name in &names {
        let _ = write!(text, " {name} |");
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(names.len()));
    text.push('\n');
    let mut startups: Vec<&str> = Vec::new();
    for pair in &pairs {
        if !startups.contains(&pair.kernel.startup.as_str()) {
            startups.push(&pair.kernel.startup);
        }
    }
    for startup in startups {
        let _ = write!(text, "| `{startup}` |");
        for name in &names {
            let of = |pair: &&Pair<'_>| {
                pair.kernel.startup == startup && pair.kernel.path.as_deref() == Some(name)
            };
            let all = pairs.iter().filter(of).count();
            let agree = pairs
                .iter()
                .filter(of)
                .filter(|pair| pair.faults.is_empty())
                .count();
            let _ = write!(text, " {agree} of {all} |");
        }
        text.push('\n');
    }
    if failed.is_empty() {
        return text;
    }
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    for pair in &failed {
        *classes.entry(pair.class()).or_default() += 1;
    }
    text.push_str("\n## Cells that do not agree\n\n| reason | cells |\n|---|---|\n");
    for (class, number) in classes {
        let _ = writeln!(text, "| {class} | {number} |");
    }
    text.push_str(
        "\nThe greatest difference in time first; kernel / simulator. n: valid transfers on the kernel.\n\n\
         | path | case | bytes | start-up | n | median ms | time | drops | left | reason |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for pair in failed {
        let (kernel, sim) = (pair.kernel, pair.sim);
        let _ = writeln!(
            text,
            "| {} | {} | {} | `{}` | {} | {:.0} / {:.0} | {:+.1} % | {:.0} / {:.0} | {} / {} | {} |",
            kernel.path.as_deref().unwrap_or("-"),
            kernel.case,
            kernel.bytes,
            kernel.startup,
            kernel.n,
            median(kernel),
            median(sim),
            pair.time_share() * 100.0,
            drops(kernel),
            drops(sim),
            super::page::exit(kernel),
            super::page::exit(sim),
            pair.class(),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_may_be_a_twentieth_or_a_packet_off() {
        assert!(!window_differs(18.0, 19.0) && window_differs(18.0, 20.0));
        assert!(!window_differs(1000.0, 1050.0) && window_differs(1000.0, 1051.0));
    }
}
