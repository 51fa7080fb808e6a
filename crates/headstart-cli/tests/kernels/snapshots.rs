//! What each start-up does in virtual time, against the file that says what it did.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::names_in;

/// Another build's program takes another number of instructions, and an instruction is a nanosecond: a packet leaves
/// a little earlier, and what is estimated from it is a packet larger. Between two boots of one build nothing differs.
/// Times of a snapshot hold within this much, in ms, or `BUILDS_DIFFER` of them.
const BUILDS_DIFFER_MS: f64 = 1.5;

/// Packets of a snapshot hold within this many, or `BUILDS_DIFFER` of them.
const BUILDS_DIFFER_PKTS: f64 = 2.0;

/// See `BUILDS_DIFFER_MS`; a share.
const BUILDS_DIFFER: f64 = 0.03;

/// Round trips whose packets a snapshot holds. Later ones follow from all that differed before them.
const HELD_ROUND_TRIPS: usize = 4;

/// With queues this short a microsecond decides which packet finds them full, and another build may lose another one:
/// two boots of one build agree on it, a snapshot does not hold for it.
const UNSETTLED: [&str; 2] = [
    "1mbit, 400 ms there and back, queue of 8",
    "1.5mbit, 100 ms there and back, queue of 3",
];

/// What a boot has written to `out`, the files `names`, against the snapshots. With `ACCEPT=1` it becomes them.
pub(crate) fn compare(out: &Path, names: &BTreeSet<String>) {
    let snapshots = Path::new(env!("CARGO_MANIFEST_DIR")).join("../headstart-kernel/tests/exact");
    let summaries: BTreeSet<&String> = names.iter().filter(|name| name.ends_with(".txt")).collect();
    if std::env::var_os("ACCEPT").is_some_and(|accept| !accept.is_empty()) {
        fs::create_dir_all(&snapshots).unwrap();
        for name in &summaries {
            fs::copy(out.join(name), snapshots.join(name)).unwrap();
        }
        return;
    }
    let mut differences = Vec::new();
    for name in &summaries {
        let now = fs::read_to_string(out.join(name)).unwrap();
        match fs::read_to_string(snapshots.join(name)) {
            Ok(then) => differences.extend(
                differences_of(&then, &now)
                    .into_iter()
                    .map(|what| format!("{name}:{what}")),
            ),
            Err(_) => differences.push(format!("{name}: there is no snapshot yet; now:\n{now}")),
        }
    }
    for name in names_in(&snapshots) {
        if !names.contains(&name) {
            differences.push(format!("{name}: a snapshot of a start-up that is no more"));
        }
    }
    assert!(
        differences.is_empty(),
        "{}\nIf this is as it should be: make test-kernels ACCEPT=1, and look at what git diff shows",
        differences.join("\n")
    );
}

/// What a snapshot holds of a summary: not the unsettled paths, and of each transfer the decisions until growth is the
/// native control's for the first time, and the packets of the first round trips. How long a transfer took that a
/// start-up took up again after that follows from all of its estimates, each of which differs a little: it is not held.
fn settled(summary: &str) -> Vec<String> {
    let (mut path_kept, mut handed_over) = (true, false);
    let mut transfer_at = None;
    let mut kept: Vec<String> = Vec::new();
    for line in summary.lines() {
        let indent = line.len() - line.trim_start().len();
        match indent {
            0 => path_kept = !UNSETTLED.contains(&line),
            2 => (handed_over, transfer_at) = (false, path_kept.then_some(kept.len())),
            _ => {}
        }
        let decision = indent == 4 && line.contains(" cwnd ");
        if decision && handed_over {
            if let Some(transfer) = transfer_at.and_then(|at| kept.get_mut(at)) {
                *transfer = without_time(transfer);
            }
        } else if path_kept {
            kept.push(first_round_trips(line));
        }
        handed_over |= decision && line.contains(" Native ");
    }
    kept
}

/// The head of a transfer without how long it took.
fn without_time(head: &str) -> String {
    head.split(": ").next().unwrap_or(head).to_owned()
}

/// A line of round trips, cut after those that are held; any other line as it is.
fn first_round_trips(line: &str) -> String {
    match line.split_once("a round trip: ") {
        Some((before, counts)) => {
            let held: Vec<&str> = counts.split(' ').take(HELD_ROUND_TRIPS).collect();
            format!("{before}a round trip: {}", held.join(" "))
        }
        None => line.to_owned(),
    }
}

/// Lines that differ, with their numbers among those that are held.
fn differences_of(then: &str, now: &str) -> Vec<String> {
    let (then, now) = (settled(then), settled(now));
    let line = |lines: &[String], at: usize| {
        lines
            .get(at)
            .map_or_else(|| "(nothing)".to_owned(), Clone::clone)
    };
    (0..then.len().max(now.len()))
        .map(|at| (at + 1, line(&then, at), line(&now, at)))
        .filter(|(_, then, now)| !same(then, now))
        .map(|(number, then, now)| format!("{number}: was {then:?}, is {now:?}"))
        .collect()
}

fn same(then: &str, now: &str) -> bool {
    let (then, now): (Vec<&str>, Vec<&str>) = (
        then.split_whitespace().collect(),
        now.split_whitespace().collect(),
    );
    then.len() == now.len()
        && then
            .iter()
            .zip(&now)
            .all(|(then, now)| same_word(then, now))
}

/// Equal, or two times or two counts that are as near as two builds may be.
fn same_word(then: &str, now: &str) -> bool {
    let number = |word: &str| {
        let word = word.trim_end_matches(',');
        let (digits, allowed) = match word.strip_suffix("ms") {
            Some(digits) => (digits, BUILDS_DIFFER_MS),
            None => (word, BUILDS_DIFFER_PKTS),
        };
        digits.parse::<f64>().ok().map(|number| (number, allowed))
    };
    match (number(then), number(now)) {
        (Some((then, allowed)), Some((now, _))) => {
            (then - now).abs() <= allowed.max(BUILDS_DIFFER * then)
        }
        _ => then == now,
    }
}

#[test]
fn a_snapshot_holds_but_for_what_two_builds_differ_by() {
    let then = "a path\n  cold 10 bytes: 100.4ms\n    packets 7, again 0\n    a round trip: 4 8 16 32 60 100\n    \
        estimated SlowStart cwnd 425 ssthresh -\n    ssthresh Native cwnd 40 ssthresh 40\n  \
        cold 90 bytes: 700.4ms\n    ssthresh Native cwnd 30 ssthresh 30\n    more Native cwnd 5";
    let change = |what: &str, by: &str| differences_of(then, &then.replace(what, by)).len();
    assert_eq!(change("100.4ms", "101.8ms"), 0);
    assert_eq!(change("100.4ms", "104.0ms"), 1);
    assert_eq!(change("700.4ms", "900.4ms"), 0);
    assert_eq!(change("cold 90", "warm 90"), 1);
    assert_eq!(change("again 0", "again 2"), 0);
    assert_eq!(change("again 0", "again 3"), 1);
    assert_eq!(change("425", "436"), 0);
    assert_eq!(change("425", "440"), 1);
    assert_eq!(change("ssthresh -", "ssthresh 440"), 1);
    assert_eq!(change("60 100", "30 130 5"), 0);
    assert_eq!(change(" 32 ", " 35 "), 1);
    assert_eq!(change("estimated", "ack-train"), 1);
    assert_eq!(change("SlowStart", "OpenLoop"), 1);
    assert_eq!(
        change("more Native cwnd 5", "more Native cwnd 50\n  one"),
        1
    );
    assert_eq!(change("more Native cwnd 5", "other Native cwnd 50"), 0);
    // What follows the hand-over was not held before either.
    assert_eq!(change("a path", UNSETTLED[0]), then.lines().count() - 1);
}
