//! What the last minute was like, and what all of it was, by rule and arm: for `top` and for the metrics.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use hdrhistogram::Histogram;
use headstart_kernel::Prefix;

use crate::protocol::TopRow;
use crate::row::Row;

/// What `top` shows are the transfers of this time.
const WINDOW_NS: u64 = 10_000_000_000;
/// More than this many in the window are not held: a rate above 20,000/s is counted, its quantiles are of the newest.
const MOST_HELD: usize = 200_000;
const MOST_PREFIXES: usize = 20;

/// Since the daemon began.
#[derive(Clone, Debug, Default)]
pub struct Total {
    /// Transfers.
    pub transfers: u64,
    /// Of them, those that were broken off.
    pub incomplete: u64,
    /// Acknowledged bytes.
    pub bytes: u64,
    /// Bytes that were sent again.
    pub retransmitted_bytes: u64,
    /// Timeouts.
    pub rto_count: u64,
    /// Latencies up to each bound of [`LATENCY_BOUNDS_US`], then all.
    pub latency_counts: [u64; LATENCY_BOUNDS_US.len() + 1],
    /// Sum of all latencies, in us.
    pub latency_sum_us: u64,
}

/// Upper bounds of the latency histogram of the metrics, in us.
pub(crate) const LATENCY_BOUNDS_US: [u64; 12] = [
    1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000,
];

/// Rule and arm.
pub(crate) type Key = (Arc<str>, Arc<str>);

#[derive(Debug)]
struct Held {
    at_ns: u64,
    /// In [`Stats::totals`].
    place: u32,
    prefix: Prefix,
    latency_us: u64,
    bytes: u64,
    retransmitted_bytes: u64,
    rto_count: u32,
}

/// The counts of all rules and arms.
#[derive(Debug, Default)]
pub struct Stats {
    /// In the order in which they were first seen: few, and mostly the same again.
    totals: Vec<(Key, Total)>,
    held: VecDeque<Held>,
}

impl Stats {
    /// Counts a transfer that was taken at `now_ns`, `CLOCK_MONOTONIC`.
    pub fn add(&mut self, now_ns: u64, row: &Row) {
        let transfer = &row.transfer;
        let latency_us = transfer.latency_us();
        let place = self.place_of(row);
        let total = &mut self.totals[place].1;
        total.transfers += 1;
        total.incomplete += u64::from(!transfer.complete);
        total.bytes += transfer.bytes;
        total.retransmitted_bytes += transfer.retransmitted_bytes;
        total.rto_count += u64::from(transfer.rto_count);
        total.latency_sum_us += latency_us;
        let bound = LATENCY_BOUNDS_US.partition_point(|bound| *bound < latency_us);
        total.latency_counts[bound] += 1;
        if self.held.len() >= MOST_HELD {
            self.held.pop_front();
        }
        self.held.push_back(Held {
            at_ns: now_ns,
            place: u32::try_from(place).unwrap_or(u32::MAX),
            prefix: row.prefix,
            latency_us,
            bytes: transfer.bytes,
            retransmitted_bytes: transfer.retransmitted_bytes,
            rto_count: transfer.rto_count,
        });
    }

    fn place_of(&mut self, row: &Row) -> usize {
        let is_of = |of: &Arc<str>, name: &Arc<str>| Arc::ptr_eq(of, name) || of == name;
        let known = self
            .totals
            .iter()
            .position(|((rule, arm), _)| is_of(rule, &row.rule) && is_of(arm, &row.arm));
        known.unwrap_or_else(|| {
            let key = (row.rule.clone(), row.arm.clone());
            self.totals.push((key, Total::default()));
            self.totals.len() - 1
        })
    }

    /// Everything since the beginning, by rule and arm, in the order of their names.
    pub fn totals(&self) -> Vec<&(Key, Total)> {
        let mut totals: Vec<_> = self.totals.iter().collect();
        totals.sort_by(|a, b| a.0.cmp(&b.0));
        totals
    }

    /// The last ten seconds: by rule and arm, then the prefixes with the most transfers.
    pub fn top(&mut self, now_ns: u64) -> Vec<TopRow> {
        let oldest = now_ns.saturating_sub(WINDOW_NS);
        while self.held.front().is_some_and(|held| held.at_ns < oldest) {
            self.held.pop_front();
        }
        let mut by_arm: Vec<Vec<&Held>> = self.totals.iter().map(|_| Vec::new()).collect();
        let mut by_prefix: HashMap<Prefix, Vec<&Held>> = HashMap::new();
        for held in &self.held {
            by_arm[held.place as usize].push(held);
            by_prefix.entry(held.prefix).or_default().push(held);
        }
        let mut by_arm: Vec<_> = self
            .totals
            .iter()
            .map(|total| &total.0)
            .zip(by_arm)
            .collect();
        by_arm.retain(|(_, held)| !held.is_empty());
        by_arm.sort_by(|a, b| a.0.cmp(b.0));
        let mut rows: Vec<TopRow> = by_arm
            .into_iter()
            .map(|((rule, arm), held)| top_row(format!("{rule} / {arm}"), &held))
            .collect();
        let mut prefixes: Vec<_> = by_prefix.into_iter().collect();
        prefixes.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then(a.0.cmp(&b.0)));
        prefixes.truncate(MOST_PREFIXES);
        rows.extend(
            prefixes
                .iter()
                .map(|(prefix, held)| top_row(prefix.to_string(), held)),
        );
        rows
    }
}

fn top_row(name: String, held: &[&Held]) -> TopRow {
    let mut row = TopRow {
        name,
        transfers_per_s: held.len() as f64 / (WINDOW_NS as f64 / 1e9),
        ..TopRow::default()
    };
    let (mut bytes, mut retransmitted) = (0, 0);
    // 2 digits, up to a day.
    let mut histogram = Histogram::<u64>::new_with_max(86_400_000_000, 2).ok();
    for one in held {
        bytes += one.bytes;
        retransmitted += one.retransmitted_bytes;
        row.timeouts += u64::from(one.rto_count);
        if let Some(histogram) = &mut histogram {
            histogram.saturating_record(one.latency_us.max(1));
        }
    }
    row.retransmitted_percent =
        100.0 * retransmitted as f64 / (bytes + retransmitted).max(1) as f64;
    if let Some(histogram) = histogram {
        let ms = |quantile| histogram.value_at_quantile(quantile) as f64 / 1000.0;
        (row.p50_ms, row.p90_ms, row.p99_ms) = (ms(0.5), ms(0.9), ms(0.99));
    }
    row
}
