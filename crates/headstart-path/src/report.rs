//! What an emulated path did, and whether it was the path that was asked for.

use hdrhistogram::Histogram;
use headstart_link::{Counters, DropCounts, LinkConfig, QueueSpec, RateSpec, Span};
use serde::Serialize;

use crate::logs::LogReport;

/// Packets that leave later than this at the 99th percentile, or come to the link so much too late,
/// make the run invalid: the path was not the one asked for.
pub(crate) const LATE_P99_LIMIT_US: f64 = 500.0;

/// Quantiles of one measured quantity; all 0 where nothing was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// Half of the values are at most this.
    pub p50: f64,
    /// 9 of 10 values are at most this.
    pub p90: f64,
    /// 99 of 100 values are at most this.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
}

impl Quantiles {
    /// Of a histogram of nanoseconds, in units of `unit_ns`.
    fn of(histogram_ns: &Histogram<u64>, unit_ns: f64) -> Quantiles {
        let at = |quantile| histogram_ns.value_at_quantile(quantile) as f64 / unit_ns;
        Quantiles {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: histogram_ns.max() as f64 / unit_ns,
        }
    }
}

/// A histogram of times from 1 ns to 1000 s, to three digits.
pub(crate) fn time_histogram() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, 1_000_000_000_000, 3) {
        Ok(histogram) => histogram,
        Err(error) => unreachable!("constant bounds: {error}"),
    }
}

/// What the router counted of one direction.
#[derive(Debug, Clone)]
pub(crate) struct DirectionStats {
    pub(crate) config: LinkConfig,
    pub(crate) began_ns: u64,
    pub(crate) counters: Counters,
    pub(crate) lateness_ns: Histogram<u64>,
    pub(crate) queue_delay_ns: Histogram<u64>,
    pub(crate) first_in_ns: Option<u64>,
    pub(crate) last_out_ns: Option<u64>,
    /// Behind the headers of TCP and UDP, of packets that reached the far end.
    pub(crate) payload_bytes: u64,
    /// Packets that the far end's device did not take.
    pub(crate) failed_writes: u64,
    /// Packets to an address that no host has.
    pub(crate) unroutable_pkts: u64,
    /// How much too late packets came to the link, at most, because they were not read before.
    pub(crate) held_up_ns: Histogram<u64>,
}

/// A few numbers of one direction at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Glance {
    /// Bytes that have reached the far end.
    pub out_bytes: u64,
    /// Packets that the link has dropped.
    pub dropped_pkts: u64,
    /// Packets that wait now.
    pub queue_len_pkts: u32,
    /// How late the latest packet was since the last glance, in us.
    pub latest_us: f64,
}

/// One direction of the path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionReport {
    /// The rate that was asked for.
    pub rate: RateSpec,
    /// The delay that was asked for.
    pub delay: Span,
    /// The queue that was asked for.
    pub queue: QueueSpec,
    /// When the link's time began: that of its schedule or trace, on [`crate::monotonic_ns`]'s clock.
    pub began_ns: u64,
    /// Packets that came to the router.
    pub in_pkts: u64,
    /// Bytes that came to the router, IP headers included.
    pub in_bytes: u64,
    /// Packets that reached the far end.
    pub out_pkts: u64,
    /// Bytes that reached the far end.
    pub out_bytes: u64,
    /// Packets that the link dropped, by reason.
    pub dropped_pkts: DropCounts,
    /// Bytes that the link dropped.
    pub dropped_bytes: u64,
    /// Copies that the link made; they are among those that reached the far end.
    pub duplicated_pkts: u64,
    /// Packets that the queue gave a congestion mark.
    pub marked_pkts: u64,
    /// The most packets that ever waited.
    pub longest_queue_pkts: u32,
    /// How long the transmitter was sending, in ms.
    pub busy_ms: f64,
    /// The transmitter's share of busy time between the first packet in and the last one out, 0 to 1.
    pub utilisation: f64,
    /// Payload of TCP and UDP that reached the far end, a second, in bit/s: from the first packet in to
    /// the last one out, less the delay. What was sent twice and came twice counts twice.
    pub goodput_bits_per_s: f64,
    /// How long the packets that reached the far end had waited for the transmitter, in ms.
    pub queue_delay_ms: Quantiles,
    /// How long after its due time a packet was handed to the far end, in us.
    pub lateness_us: Quantiles,
    /// Packets lost before the router could read them: it did not keep up.
    pub lost_before_router_pkts: u64,
    /// Packets that the far end's device refused, its interface being down.
    pub failed_writes_pkts: u64,
    /// Packets to an address that no host has; they are not among those that came.
    pub unroutable_pkts: u64,
    /// How much too late packets were sent because the router had not read them before, at most, in
    /// us: the time in which the transmitter stood still while they may have waited.
    pub held_up_us: Quantiles,
}

impl DirectionReport {
    pub(crate) fn new(stats: &DirectionStats, lost_before_router_pkts: u64) -> DirectionReport {
        let counters = stats.counters;
        let span_ns = match (stats.first_in_ns, stats.last_out_ns) {
            (Some(first), Some(last)) => last.saturating_sub(first),
            _ => 0,
        };
        // The last packet's delay is no time in which the transmitter could have been busy.
        let span_ns = span_ns.saturating_sub(stats.config.delay.as_ns());
        let utilisation = if span_ns == 0 {
            0.0
        } else {
            (counters.busy_ns as f64 / span_ns as f64).min(1.0)
        };
        DirectionReport {
            rate: stats.config.rate.clone(),
            delay: stats.config.delay,
            began_ns: stats.began_ns,
            queue: stats.config.queue,
            in_pkts: counters.in_pkts,
            in_bytes: counters.in_bytes,
            out_pkts: counters.out_pkts,
            out_bytes: counters.out_bytes,
            dropped_pkts: counters.dropped_pkts,
            dropped_bytes: counters.dropped_bytes,
            duplicated_pkts: counters.duplicated_pkts,
            marked_pkts: counters.marked_pkts,
            longest_queue_pkts: counters.longest_queue_pkts,
            busy_ms: counters.busy_ns as f64 / 1e6,
            utilisation,
            goodput_bits_per_s: match span_ns {
                0 => 0.0,
                _ => stats.payload_bytes as f64 * 8e9 / span_ns as f64,
            },
            queue_delay_ms: Quantiles::of(&stats.queue_delay_ns, 1e6),
            lateness_us: Quantiles::of(&stats.lateness_ns, 1e3),
            lost_before_router_pkts,
            failed_writes_pkts: stats.failed_writes,
            unroutable_pkts: stats.unroutable_pkts,
            held_up_us: Quantiles::of(&stats.held_up_ns, 1e3),
        }
    }

    /// Why this direction was not the one asked for.
    fn objections(&self, name: &str) -> Vec<String> {
        let mut objections = Vec::new();
        if self.lateness_us.p99 > LATE_P99_LIMIT_US {
            objections.push(format!(
                "{name}: packets left {:.0} us late (99th percentile; at most {LATE_P99_LIMIT_US:.0}): \
                 the machine was too busy for this rate",
                self.lateness_us.p99
            ));
        }
        if self.held_up_us.p99 > LATE_P99_LIMIT_US {
            objections.push(format!(
                "{name}: the link stood still for {:.0} us (99th percentile; at most \
                 {LATE_P99_LIMIT_US:.0}) while packets waited to be read: the router did not keep up \
                 with this rate",
                self.held_up_us.p99
            ));
        }
        if self.lost_before_router_pkts > 0 {
            objections.push(format!(
                "{name}: {} packets were lost before the router could read them: it did not keep up",
                self.lost_before_router_pkts
            ));
        }
        if self.failed_writes_pkts > 0 {
            objections.push(format!(
                "{name}: {} packets were refused by the far end's device",
                self.failed_writes_pkts
            ));
        }
        objections
    }
}

/// What an emulated path did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathReport {
    /// The emulation's lane.
    pub lane: u8,
    /// Servers, and as many clients.
    pub hosts: usize,
    /// Server to client.
    pub forward: DirectionReport,
    /// Client to server.
    pub reverse: DirectionReport,
    /// Whether the path was the one asked for.
    pub valid: bool,
    /// If not, why.
    pub invalid_because: Vec<String>,
    /// What was not as it should be, but does not spoil the run.
    pub warnings: Vec<String>,
    /// What became of the log files, if some were asked for and the path has ended.
    pub log: Option<LogReport>,
}

impl PathReport {
    pub(crate) fn new(
        lane: u8,
        hosts: usize,
        [forward, reverse]: [DirectionReport; 2],
        mut warnings: Vec<String>,
        log: Option<LogReport>,
    ) -> PathReport {
        for (name, direction) in [("forward", &forward), ("reverse", &reverse)] {
            if direction.unroutable_pkts > 0 {
                warnings.push(format!(
                    "{name}: {} packets were for an address that no host has",
                    direction.unroutable_pkts
                ));
            }
        }
        if let Some(lost) = log
            .as_ref()
            .map(|log| log.lost_pkts)
            .filter(|lost| *lost > 0)
        {
            warnings.push(format!(
                "{lost} packets are not in the log: it could not be written as fast as they came"
            ));
        }
        let mut invalid_because = forward.objections("forward");
        invalid_because.extend(reverse.objections("reverse"));
        let valid = invalid_because.is_empty();
        PathReport {
            lane,
            hosts,
            forward,
            reverse,
            valid,
            invalid_because,
            warnings,
            log,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(lateness_ns: &[u64]) -> DirectionStats {
        let (rate, delay) = ("12mbit".parse().unwrap(), "10ms".parse().unwrap());
        let config = LinkConfig::new(rate, delay, "drop-tail:10".parse().unwrap());
        let mut histogram = time_histogram();
        lateness_ns
            .iter()
            .for_each(|&ns| histogram.saturating_record(ns));
        DirectionStats {
            config,
            began_ns: 0,
            counters: Counters {
                busy_ns: 5_000_000,
                ..Counters::default()
            },
            lateness_ns: histogram,
            queue_delay_ns: time_histogram(),
            first_in_ns: Some(1_000_000),
            last_out_ns: Some(21_000_000),
            payload_bytes: 0,
            failed_writes: 0,
            unroutable_pkts: 0,
            held_up_ns: time_histogram(),
        }
    }

    fn report(lateness_ns: &[u64], lost: u64) -> PathReport {
        let quiet = DirectionReport::new(&stats(&[]), 0);
        let forward = DirectionReport::new(&stats(lateness_ns), lost);
        PathReport::new(0, 1, [forward, quiet], Vec::new(), None)
    }

    #[test]
    fn a_path_that_left_its_packets_in_time_is_valid() {
        let report = report(&[30_000; 1000], 0);
        assert!(report.valid && report.invalid_because.is_empty());
        assert!((report.forward.lateness_us.p50 - 30.0).abs() < 0.1);
        assert!(
            (report.forward.utilisation - 0.5).abs() < 1e-9,
            "5 ms of 20 ms less the delay"
        );
    }

    #[test]
    fn a_link_that_stood_still_because_nobody_read_is_not_the_one_asked_for() {
        let with = |held_up_ns| {
            let mut stats = stats(&[30_000; 1000]);
            (0..1000).for_each(|_| stats.held_up_ns.saturating_record(held_up_ns));
            let forward = DirectionReport::new(&stats, 0);
            let quiet = DirectionReport::new(&self::stats(&[]), 0);
            PathReport::new(0, 1, [forward, quiet], Vec::new(), None)
        };
        assert!(with(400_000).valid);
        let held_up = with(600_000);
        assert!(
            held_up.invalid_because[0].contains("did not keep up"),
            "{held_up:?}"
        );
    }

    #[test]
    fn a_path_that_was_late_or_lost_packets_is_invalid_and_says_why() {
        let late = report(&[600_000; 1000], 0);
        assert!(!late.valid);
        assert!(late.invalid_because[0].contains("forward: packets left 600 us late"));
        let lossy = report(&[30_000; 1000], 3);
        assert!(lossy.invalid_because[0].contains("3 packets were lost before the router"));
    }
}
