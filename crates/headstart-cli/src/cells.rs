//! The table of cells, as `compare` and `sim` print it.

use headstart_scenario::{Cell, Ground};

use crate::output::Table;

/// What its columns mean.
pub(crate) const LEGEND: &str = "\
median, p10, p90: transfer time in ms. x cubic, x limit: the median over that of native cubic, and over
what the path allows: its round trips and the size over the rate. retrans., drops: median (most).";

/// One row a cell; a path, a case and a size are named once.
pub(crate) fn table(cells: &[Cell]) -> Table {
    let mut table = Table::new(
        &[
            "case",
            "bytes",
            "start-up",
            "n",
            "median ms",
            "p10",
            "p90",
            "x cubic",
            "x limit",
            "retrans.",
            "drops",
            "exit",
        ],
        3..11,
    );
    let several_grounds = cells.iter().any(|cell| cell.on != cells[0].on);
    let mut last = None;
    let mut last_path = None;
    for cell in cells {
        if cell.path != last_path {
            let mut name = vec![cell.path.clone().unwrap_or_default()];
            name.resize(12, String::new());
            table.row(name);
            last_path.clone_from(&cell.path);
            last = None;
        }
        let case = (cell.case, cell.bytes);
        let heads = if last == Some(case) {
            [String::new(), String::new()]
        } else {
            [cell.case.to_string(), cell.bytes.to_string()]
        };
        last = Some(case);
        let mut row = row(cell);
        if several_grounds && cell.on != Ground::Kernel {
            row[0] = format!("{}, {}", cell.startup, cell.on.name());
        }
        table.row(heads.into_iter().chain(row));
    }
    table
}

fn row(cell: &Cell) -> Vec<String> {
    let none = || "-".to_owned();
    let ratio = |ratio: Option<f64>| ratio.map_or_else(none, |ratio| format!("{ratio:.2}"));
    let ms = |ms: Option<f64>| ms.map_or_else(none, |ms| format!("{ms:.1}"));
    let counts = |counts: &Option<headstart_scenario::Extremes>| {
        counts.as_ref().map_or_else(none, |counts| {
            format!("{:.0} ({})", counts.median, counts.max)
        })
    };
    let n = if cell.invalid == 0 {
        cell.n.to_string()
    } else {
        format!("{} (+{} invalid)", cell.n, cell.invalid)
    };
    let exit = cell
        .exit
        .as_ref()
        .map_or_else(none, |exit| match exit.cwnd_pkts {
            Some(cwnd_pkts) => format!("{} at {cwnd_pkts}", exit.why),
            None => exit.why.clone(),
        });
    vec![
        cell.startup.clone(),
        n,
        ms(cell.fct_ms.map(|fct| fct.median)),
        ms(cell.fct_ms.map(|fct| fct.p10)),
        ms(cell.fct_ms.map(|fct| fct.p90)),
        ratio(cell.ratio_to_native),
        ratio(cell.ratio_to_limit),
        counts(&cell.retransmitted_pkts),
        counts(&cell.router_drops),
        exit,
    ]
}
