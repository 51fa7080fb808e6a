//! The metrics, for Prometheus: text over HTTP, on a loopback address.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use crate::daemon::Message;
use crate::protocol::{BucketStatus, MemoryStatus, Status};
use crate::stats::{LATENCY_BOUNDS_US, Stats};

/// What Prometheus knows the format by.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves the metrics until the process ends.
pub(crate) fn serve(
    address: SocketAddr,
    to: Sender<Message>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let server = tiny_http::Server::http(address)?;
    thread::Builder::new()
        .name("hs-metrics".to_owned())
        .spawn(move || {
            for request in server.incoming_requests() {
                let text = (request.url() == "/metrics").then(|| ask(&to)).flatten();
                let answer = match text {
                    Some(text) => {
                        let answer = tiny_http::Response::from_string(text);
                        match tiny_http::Header::from_bytes("Content-Type", TEXT_FORMAT) {
                            Ok(header) => answer.with_header(header),
                            Err(()) => answer,
                        }
                    }
                    None => tiny_http::Response::from_string("only /metrics is here\n")
                        .with_status_code(404),
                };
                let _ = request.respond(answer);
            }
        })?;
    Ok(())
}

fn ask(to: &Sender<Message>) -> Option<String> {
    let (reply, answer) = channel();
    to.send(Message::Metrics(reply)).ok()?;
    answer.recv_timeout(Duration::from_secs(10)).ok()
}

/// One family of metrics.
fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn one(text: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    family(text, name, kind, help);
    let _ = writeln!(text, "{name} {value}");
}

/// As the text format wants a label's value.
fn label(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// The text format, version 0.0.4.
pub(crate) fn text_of(status: &Status, stats: &Stats) -> String {
    let mut text = String::new();
    let t = &mut text;
    one(
        t,
        "headstart_uptime_seconds",
        "gauge",
        "Since the daemon began.",
        status.uptime_s,
    );
    one(
        t,
        "headstart_live_connections",
        "gauge",
        "Connections under a congestion control of ours.",
        status.live_connections,
    );
    one(
        t,
        "headstart_moved_back_total",
        "counter",
        "Connections moved back to a native control.",
        status.moved_back,
    );
    one(
        t,
        "headstart_paths_known",
        "gauge",
        "Prefixes in the path memory.",
        status.paths_known,
    );
    one(
        t,
        "headstart_marked_packets_total",
        "counter",
        "Packets sent with low drop priority.",
        status.marked_pkts,
    );
    one(
        t,
        "headstart_resident_bytes",
        "gauge",
        "Memory of the daemon.",
        status.resident_bytes,
    );
    let records = &status.records;
    one(
        t,
        "headstart_records_total",
        "counter",
        "Transfers recorded.",
        records.recorded,
    );
    one(
        t,
        "headstart_records_lost_total",
        "counter",
        "Transfers whose record found no room in the kernel.",
        records.lost,
    );
    one(
        t,
        "headstart_records_dropped_total",
        "counter",
        "Records dropped because the disk took none for too long.",
        records.dropped,
    );
    one(
        t,
        "headstart_record_files_total",
        "counter",
        "Files of records closed.",
        records.files,
    );
    one(
        t,
        "headstart_records_failing",
        "gauge",
        "1: records cannot be written now.",
        u64::from(records.error.is_some()),
    );
    memory(t, &status.memory);
    if let Some(bucket) = &records.bucket {
        bucket_metrics(t, bucket);
    }
    family(
        t,
        "headstart_rule_connections_total",
        "counter",
        "Connections by rule and what became of them.",
    );
    for rule in &status.rules {
        let name = label(&rule.name);
        for (what, value) in [
            ("matched", rule.matched),
            ("chosen", rule.chosen),
            ("app-chose", rule.app_chose),
            ("refused", rule.refused),
        ] {
            let _ = writeln!(
                t,
                "headstart_rule_connections_total{{rule=\"{name}\",what=\"{what}\"}} {value}"
            );
        }
    }
    family(
        t,
        "headstart_rule_off",
        "gauge",
        "1: the rule is off, by the guard or by hand.",
    );
    for rule in &status.rules {
        let off = u8::from(rule.state == "off");
        let _ = writeln!(
            t,
            "headstart_rule_off{{rule=\"{}\"}} {off}",
            label(&rule.name)
        );
    }
    transfers(t, stats);
    text
}

fn bucket_metrics(t: &mut String, bucket: &BucketStatus) {
    let values = [
        (
            "headstart_bucket_waiting_files",
            "gauge",
            "Closed files that are not in the bucket yet.",
            bucket.waiting_files,
        ),
        (
            "headstart_bucket_waiting_bytes",
            "gauge",
            "Size of the closed files that are not in the bucket yet.",
            bucket.waiting_bytes,
        ),
        (
            "headstart_bucket_uploaded_files_total",
            "counter",
            "Files that the bucket has confirmed.",
            bucket.uploaded_files,
        ),
        (
            "headstart_bucket_uploaded_bytes_total",
            "counter",
            "Size of the files that the bucket has confirmed.",
            bucket.uploaded_bytes,
        ),
        (
            "headstart_bucket_dropped_files_total",
            "counter",
            "Files dropped because too many waited for the bucket.",
            bucket.dropped_files,
        ),
        (
            "headstart_bucket_dropped_records_total",
            "counter",
            "Records in the dropped files.",
            bucket.dropped_rows,
        ),
        (
            "headstart_bucket_failures_total",
            "counter",
            "Uploads that failed, each try.",
            bucket.failures,
        ),
        (
            "headstart_bucket_failing",
            "gauge",
            "1: the last try to upload failed.",
            u64::from(bucket.error.is_some()),
        ),
    ];
    for (name, kind, help, value) in values {
        one(t, name, kind, help, value);
    }
}

fn memory(t: &mut String, memory: &MemoryStatus) {
    one(
        t,
        "headstart_memory_failing",
        "gauge",
        "1: the path memory cannot be saved now.",
        u64::from(memory.error.is_some()),
    );
    let Some(site) = &memory.site else {
        return;
    };
    for (name, kind, help, value) in [
        (
            "headstart_site_shared",
            "gauge",
            "1: what is learnt comes from the site and goes there.",
            u64::from(site.shared),
        ),
        (
            "headstart_site_told_total",
            "counter",
            "Paths told to the site.",
            site.told,
        ),
        (
            "headstart_site_taken_total",
            "counter",
            "Paths taken from the site.",
            site.taken,
        ),
        (
            "headstart_site_capped_total",
            "counter",
            "Paths from the site with a value above our cap.",
            site.capped,
        ),
        (
            "headstart_site_rejected_total",
            "counter",
            "What stood in the site's store and was no path.",
            site.rejected,
        ),
        (
            "headstart_site_failures_total",
            "counter",
            "Exchanges with the site that did not go through.",
            site.failures,
        ),
    ] {
        one(t, name, kind, help, value);
    }
}

fn transfers(t: &mut String, stats: &Stats) {
    type Of = fn(&crate::stats::Total) -> u64;
    let counters: [(&str, &str, Of); 5] = [
        ("headstart_transfers_total", "Transfers.", |total| {
            total.transfers
        }),
        (
            "headstart_transfers_incomplete_total",
            "Transfers that were broken off.",
            |total| total.incomplete,
        ),
        (
            "headstart_transfer_bytes_total",
            "Bytes acknowledged.",
            |total| total.bytes,
        ),
        (
            "headstart_retransmitted_bytes_total",
            "Bytes sent again.",
            |total| total.retransmitted_bytes,
        ),
        (
            "headstart_timeouts_total",
            "Retransmission timeouts.",
            |total| total.rto_count,
        ),
    ];
    for (name, help, of) in counters {
        family(t, name, "counter", help);
        for ((rule, arm), total) in stats.totals() {
            let _ = writeln!(
                t,
                "{name}{{rule=\"{}\",arm=\"{}\"}} {}",
                label(rule),
                label(arm),
                of(total)
            );
        }
    }
    let name = "headstart_transfer_latency_seconds";
    family(
        t,
        name,
        "histogram",
        "From the first byte sent to the last acknowledged.",
    );
    for ((rule, arm), total) in stats.totals() {
        let of = format!("rule=\"{}\",arm=\"{}\"", label(rule), label(arm));
        let mut sum = 0;
        for (bound_us, count) in LATENCY_BOUNDS_US.iter().zip(total.latency_counts) {
            sum += count;
            let le = *bound_us as f64 / 1e6;
            let _ = writeln!(t, "{name}_bucket{{{of},le=\"{le}\"}} {sum}");
        }
        let _ = writeln!(t, "{name}_bucket{{{of},le=\"+Inf\"}} {}", total.transfers);
        let _ = writeln!(
            t,
            "{name}_sum{{{of}}} {}",
            total.latency_sum_us as f64 / 1e6
        );
        let _ = writeln!(t, "{name}_count{{{of}}} {}", total.transfers);
    }
}
