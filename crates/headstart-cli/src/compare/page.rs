//! A comparison as a page of tables: what `docs/results.md` is made by.

use std::fmt::Write;

use headstart_scenario::{ByteSize, CaseKind, Cell, Ground, ResultsDocument, Scenario};

use super::work::Conditions;

/// Slow start with no way out but loss: what no burst of ours is to be worse than.
const PLAIN: &str = "su_standard{hystart=0}";

/// When it was measured, and how busy the machine was.
pub(super) fn when(conditions: &Conditions) -> String {
    let (Some(first), Some(last)) = (conditions.started.first(), conditions.started.last()) else {
        return "Nothing was measured on the kernel.".to_owned();
    };
    let most = conditions.loads.iter().copied().fold(0.0, f64::max);
    let least = conditions
        .loads
        .iter()
        .copied()
        .fold(f64::INFINITY, f64::min);
    format!(
        "The kernel's part was measured in {} pieces that began between {first} and {last}, at a load (processes that \
         want a CPU, by the last minute) of {least:.1} to {most:.1}.",
        conditions.started.len()
    )
}

/// How a cell's start-up left.
pub(super) fn exit(cell: &Cell) -> String {
    match &cell.exit {
        None => "–".to_owned(),
        Some(exit) => match exit.cwnd_pkts {
            Some(cwnd_pkts) => format!("{} at {cwnd_pkts}", exit.why),
            None => exit.why.clone(),
        },
    }
}

fn drops(cell: &Cell) -> f64 {
    cell.router_drops.as_ref().map_or(0.0, |drops| drops.median)
}

/// `412 (0.83), 12 lost`.
fn time(cell: Option<&Cell>) -> String {
    let Some(cell) = cell else {
        return "not measured".to_owned();
    };
    let Some(fct) = cell.fct_ms else {
        return "not valid".to_owned();
    };
    let mut text = format!("{:.0}", fct.median);
    if let Some(ratio) = cell.ratio_to_native {
        let _ = write!(text, " ({ratio:.2})");
    }
    if drops(cell) > 0.0 {
        let _ = write!(text, ", {:.0} lost", drops(cell));
    }
    text
}

pub(super) fn page(
    document: &ResultsDocument,
    legs: &[Scenario],
    conditions: &Conditions,
) -> String {
    let cells: Vec<&Cell> = document
        .cells
        .iter()
        .filter(|cell| cell.on == Ground::Kernel)
        .collect();
    let valid: u32 = cells.iter().map(|cell| cell.n).sum();
    let invalid: u32 = cells.iter().map(|cell| cell.invalid).sum();
    let mut text = format!(
        "# Results\n\n\
         Written by `{}`; do not edit.\n\n\
         Linux {}, {} CPUs, seed {}. {valid} valid transfers; {invalid} left out, for the machine was too busy to be the\n\
         path asked for. {}\n\n\
         Each entry: median transfer time in ms, handshake included (in brackets: over that of native cubic), and the\n\
         median of the packets that the router dropped, where there are any. n: valid transfers in a cell, fewest to most.\n\
         *left*: the reason with which the start-up left slow start or its own window, and the congestion window in\n\
         packets then, of the largest transfer. `{PLAIN}` is plain slow start: it ends by loss alone.\n",
        conditions.command,
        document.machine.kernel,
        document.machine.cpus,
        document.seed,
        when(conditions),
    );
    for leg in legs {
        let _ = write!(
            text,
            "\n## {}: {}, {}, {}\n",
            leg.path_name.as_deref().unwrap_or("The path"),
            leg.path.forward.rate,
            leg.path.rtt(),
            leg.path.forward.queue,
        );
        if cells.iter().all(|cell| cell.path != leg.path_name) {
            text.push_str("\nNot measured.\n");
        }
        for kind in CaseKind::ALL {
            table(&mut text, leg, kind, &cells);
        }
        if !leg.left_out.is_empty() {
            let names: Vec<String> = leg
                .left_out
                .iter()
                .map(|case| format!("{} of {}", case.kind(), case.bytes()))
                .collect();
            let _ = write!(
                text,
                "\nLeft out, for the path needs too long for it: {}.\n",
                names.join(", ")
            );
        }
    }
    bursts(&mut text, &cells);
    text
}

fn table(text: &mut String, leg: &Scenario, kind: CaseKind, cells: &[&Cell]) {
    let sizes: Vec<ByteSize> = leg
        .cases
        .iter()
        .filter(|case| case.kind() == kind)
        .map(headstart_scenario::Case::bytes)
        .collect();
    let mine: Vec<&Cell> = cells
        .iter()
        .copied()
        .filter(|cell| cell.path == leg.path_name && cell.case == kind)
        .collect();
    let (Some(largest), false) = (sizes.last(), mine.is_empty()) else {
        return;
    };
    let _ = write!(text, "\n### {kind}\n\n| start-up | n |");
    for size in &sizes {
        let _ = write!(text, " {size} |");
    }
    let _ = write!(
        text,
        " left |\n|---|---|{}---|\n",
        "---|".repeat(sizes.len())
    );
    let mut startups: Vec<&str> = Vec::new();
    for cell in &mine {
        if !startups.contains(&cell.startup.as_str()) {
            startups.push(&cell.startup);
        }
    }
    for startup in startups {
        let find = |size: &ByteSize| {
            mine.iter()
                .copied()
                .find(|cell| cell.startup == startup && cell.bytes == size.bytes())
        };
        let numbers: Vec<u32> = sizes
            .iter()
            .map(|size| find(size).map_or(0, |cell| cell.n))
            .collect();
        let (fewest, most) = (
            numbers.iter().min().unwrap_or(&0),
            numbers.iter().max().unwrap_or(&0),
        );
        let n = if fewest == most {
            most.to_string()
        } else {
            format!("{fewest}–{most}")
        };
        let _ = write!(text, "| `{startup}` | {n} |");
        for size in &sizes {
            let _ = write!(text, " {} |", time(find(size)));
        }
        let _ = writeln!(
            text,
            " {} |",
            find(largest).map_or_else(|| "–".to_owned(), exit)
        );
    }
}

/// Where a start-up of ours loses more than plain slow start does.
fn bursts(text: &mut String, cells: &[&Cell]) {
    let plain = |cell: &Cell| {
        cells.iter().copied().find(|other| {
            other.startup == PLAIN
                && other.path == cell.path
                && other.case == cell.case
                && other.bytes == cell.bytes
        })
    };
    let compared: Vec<(&Cell, &Cell)> = cells
        .iter()
        .copied()
        .filter(|cell| cell.startup.starts_with("su_") && cell.startup != PLAIN)
        .filter(|cell| cell.n > 0)
        .filter_map(|cell| Some((cell, plain(cell).filter(|plain| plain.n > 0)?)))
        .collect();
    if compared.is_empty() {
        return;
    }
    let worse: Vec<&(&Cell, &Cell)> = compared
        .iter()
        .filter(|(cell, plain)| drops(cell) > drops(plain))
        .collect();
    let _ = write!(
        text,
        "\n## Loss bursts\n\nOf {} cells of ours, {} lose more packets at the router than plain slow start (`{PLAIN}`) in the \
         same\ncell{}\n",
        compared.len(),
        worse.len(),
        if worse.is_empty() { "." } else { ":" },
    );
    if worse.is_empty() {
        return;
    }
    text.push_str("\n| path | case | bytes | start-up | lost | plain slow start | left |\n|---|---|---|---|---|---|---|\n");
    for (cell, plain) in worse {
        let _ = writeln!(
            text,
            "| {} | {} | {} | `{}` | {:.0} | {:.0} | {} |",
            cell.path.as_deref().unwrap_or("-"),
            cell.case,
            ByteSize::from_bytes(cell.bytes),
            cell.startup,
            drops(cell),
            drops(plain),
            exit(cell),
        );
    }
}
