//! From single transfers to the cells of the results document.

use std::collections::BTreeMap;

use crate::{Cell, Exit, Extremes, Summary, TransferRecord};

/// The start-up that all others are held against: the kernel's own default.
pub const NATIVE_STARTUP: &str = "cubic";

/// Summarises `transfers` into one cell for each start-up, ground, path, case and size.
///
/// Cells stand in the order in which their first transfer stands in `transfers`. Transfers that are not valid are counted and
/// otherwise left out. `ratio_to_native` is the cell's median over the median of the [`NATIVE_STARTUP`] cell of the same
/// ground, path, case and size among the same `transfers`; it is absent where there is none.
pub fn cells_of(transfers: &[TransferRecord]) -> Vec<Cell> {
    let mut groups: Vec<Vec<&TransferRecord>> = Vec::new();
    for transfer in transfers {
        match groups
            .iter_mut()
            .find(|group| same_cell(group[0], transfer))
        {
            Some(group) => group.push(transfer),
            None => groups.push(vec![transfer]),
        }
    }
    let mut cells: Vec<Cell> = groups.iter().map(|group| cell_of(group)).collect();
    let natives: Vec<Cell> = cells
        .iter()
        .filter(|cell| cell.startup == NATIVE_STARTUP)
        .cloned()
        .collect();
    for cell in &mut cells {
        let native = natives.iter().find(|native| {
            native.on == cell.on
                && native.path == cell.path
                && native.case == cell.case
                && native.bytes == cell.bytes
        });
        cell.ratio_to_native = native
            .and_then(|native| native.fct_ms)
            .zip(cell.fct_ms)
            .and_then(|(native, own)| ratio(own.median, native.median));
    }
    cells
}

fn same_cell(a: &TransferRecord, b: &TransferRecord) -> bool {
    a.startup == b.startup
        && a.on == b.on
        && a.path == b.path
        && a.case == b.case
        && a.bytes == b.bytes
}

fn cell_of(transfers: &[&TransferRecord]) -> Cell {
    let first = transfers[0];
    let valid: Vec<&TransferRecord> = transfers
        .iter()
        .copied()
        .filter(|transfer| transfer.valid)
        .collect();
    let fct_ms = summary_of(&valid, |transfer| transfer.fct_ms);
    let limit_ms = summary_of(&valid, |transfer| transfer.limit_ms).map(|limit| limit.median);
    Cell {
        startup: first.startup.clone(),
        on: first.on,
        path: first.path.clone(),
        case: first.case,
        bytes: first.bytes,
        n: count(valid.len()),
        invalid: count(transfers.len() - valid.len()),
        fct_ms,
        limit_ms,
        ratio_to_native: None,
        ratio_to_limit: fct_ms
            .zip(limit_ms)
            .and_then(|(fct, limit)| ratio(fct.median, limit)),
        retransmitted_pkts: extremes_of(&valid, |transfer| transfer.retransmitted_pkts),
        router_drops: extremes_of(&valid, |transfer| transfer.router_drops),
        exit: exit_of(&valid),
        valid: fct_ms.is_some() && valid.len() == transfers.len(),
    }
}

fn summary_of(transfers: &[&TransferRecord], of: fn(&TransferRecord) -> f64) -> Option<Summary> {
    let values: Vec<f64> = transfers.iter().map(|transfer| of(transfer)).collect();
    Summary::of(&values)
}

fn extremes_of(transfers: &[&TransferRecord], of: fn(&TransferRecord) -> u64) -> Option<Extremes> {
    let counts: Vec<u64> = transfers.iter().map(|transfer| of(transfer)).collect();
    Extremes::of(&counts)
}

/// The reason that ended most start-ups; of equally frequent ones, the first by name.
fn exit_of(transfers: &[&TransferRecord]) -> Option<Exit> {
    let mut windows_by_why: BTreeMap<&str, Vec<Option<u32>>> = BTreeMap::new();
    for transfer in transfers {
        if let Some(why) = &transfer.exit_why {
            windows_by_why
                .entry(why)
                .or_default()
                .push(transfer.exit_cwnd_pkts);
        }
    }
    let (why, windows) = windows_by_why
        .into_iter()
        .rev()
        .max_by_key(|(_, windows)| windows.len())?;
    let known: Vec<f64> = windows.into_iter().flatten().map(f64::from).collect();
    let cwnd_pkts = Summary::of(&known).map(|summary| summary.median.round() as u32);
    Some(Exit {
        why: why.to_owned(),
        cwnd_pkts,
    })
}

fn ratio(own: f64, other: f64) -> Option<f64> {
    (other > 0.0).then(|| own / other)
}

fn count(transfers: usize) -> u32 {
    u32::try_from(transfers).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CaseKind, Ground};

    fn transfer(startup: &str, case: CaseKind, fct_ms: f64) -> TransferRecord {
        TransferRecord {
            startup: startup.to_owned(),
            on: Ground::Kernel,
            path: None,
            case,
            repeat: 0,
            order: 0,
            lane: 0,
            bytes: 51_200,
            fct_ms,
            connect_ms: 0.0,
            limit_ms: 400.0,
            retransmitted_pkts: 0,
            router_drops: 0,
            exit_why: None,
            exit_cwnd_pkts: None,
            valid: true,
            invalid_reason: None,
        }
    }

    #[test]
    fn a_cell_is_compared_with_native_cubic_of_the_same_case_only() {
        let cells = cells_of(&[
            transfer("su_fast_start", CaseKind::ResumeWarm, 500.0),
            transfer("cubic", CaseKind::ResumeWarm, 1200.0),
            transfer("cubic", CaseKind::NewCold, 1600.0),
            transfer("cubic", CaseKind::ResumeWarm, 1000.0),
            transfer("su_fast_start", CaseKind::NewWarm, 900.0),
        ]);
        let ratios: Vec<_> = cells
            .iter()
            .map(|cell| {
                (
                    cell.startup.as_str(),
                    cell.case,
                    cell.n,
                    cell.ratio_to_native,
                )
            })
            .collect();
        assert_eq!(
            ratios,
            [
                (
                    "su_fast_start",
                    CaseKind::ResumeWarm,
                    1,
                    Some(500.0 / 1100.0)
                ),
                ("cubic", CaseKind::ResumeWarm, 2, Some(1.0)),
                ("cubic", CaseKind::NewCold, 1, Some(1.0)),
                ("su_fast_start", CaseKind::NewWarm, 1, None),
            ]
        );
    }

    #[test]
    fn a_transfer_that_is_not_valid_is_counted_but_not_summarised() {
        let mut bad = transfer("cubic", CaseKind::NewCold, 9999.0);
        bad.valid = false;
        bad.router_drops = 77;
        let cells = cells_of(&[transfer("cubic", CaseKind::NewCold, 800.0), bad.clone()]);
        assert_eq!(
            (cells[0].n, cells[0].invalid, cells[0].valid),
            (1, 1, false)
        );
        assert_eq!(cells[0].fct_ms.map(|fct| fct.median), Some(800.0));
        assert_eq!(cells[0].ratio_to_limit, Some(2.0));
        assert_eq!(
            cells[0].router_drops,
            Some(Extremes {
                median: 0.0,
                max: 0
            })
        );

        let cells = cells_of(&[bad]);
        assert_eq!(
            (cells[0].n, cells[0].invalid, cells[0].valid),
            (0, 1, false)
        );
        assert_eq!(cells[0].fct_ms, None);
        assert_eq!(cells[0].ratio_to_native, None);
    }

    #[test]
    fn the_exit_is_the_most_frequent_reason_with_the_median_window_of_its_transfers() {
        let exits = [
            ("loss", Some(10)),
            ("ack_train", Some(30)),
            ("ack_train", Some(41)),
        ];
        let transfers: Vec<TransferRecord> = exits
            .into_iter()
            .map(|(why, exit_cwnd_pkts)| TransferRecord {
                exit_why: Some(why.to_owned()),
                exit_cwnd_pkts,
                ..transfer("su_hystart", CaseKind::NewCold, 800.0)
            })
            .collect();
        let expected = Exit {
            why: "ack_train".to_owned(),
            cwnd_pkts: Some(36),
        };
        assert_eq!(cells_of(&transfers)[0].exit, Some(expected));
    }

    #[test]
    fn of_equally_frequent_exit_reasons_the_first_by_name_is_told() {
        let transfers: Vec<TransferRecord> = ["loss", "delay"]
            .into_iter()
            .map(|why| TransferRecord {
                exit_why: Some(why.to_owned()),
                ..transfer("su_hystart", CaseKind::NewCold, 800.0)
            })
            .collect();
        let expected = Exit {
            why: "delay".to_owned(),
            cwnd_pkts: None,
        };
        assert_eq!(cells_of(&transfers)[0].exit, Some(expected));
    }
}
