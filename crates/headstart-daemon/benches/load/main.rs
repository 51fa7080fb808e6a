//! What the daemon costs a server: nginx answers with 20 KB, a client asks as fast as it can over many connections at
//! once, and native cubic takes turns with the daemon's rules, with and without records. `scripts/bench.sh --only load`
//! runs it, as root, on a machine that does nothing else; traffic is in namespaces of its own. Arguments: the number of
//! rounds and the connections of a turn, if not these.
//!
//! One nginx serves all: each contestant has a port, and the ports that a rule names were opened in a cgroup to which
//! the daemon's policy is attached; connections have their cgroup from there. Native cubic's are of another, in which
//! nothing is attached (that something is attached elsewhere costs it a test for each packet). So nothing has to be
//! started or stopped between turns: they are short and many, their order within a round is by chance, and what is said
//! of a contestant is the median of its ratios to native cubic in the same round, with the interval in which that median
//! lies with 95 % by the bootstrap. A second native cubic is among the contestants: what it differs by from the first is
//! the benchmark's own error.
//!
//! CPU of the server is its cgroup's, of the client its process's, of the daemon its cgroup's; the kernel's work for a
//! connection is done in the name of one of them. After a turn with records the daemon has time to write them, and its
//! CPU until then is the turn's, but for what it takes when nothing happens. That time would also have been missing to
//! the traffic: for connections a second it is added to the turn, spread over the CPUs. Files are closed often enough
//! that making them is counted, too.

#![allow(clippy::unwrap_used, reason = "a failed step of a benchmark ends it")]

#[path = "../../../headstart-kernel/tests/support/inside.rs"]
mod cgroup;
mod client;
mod stage;
#[path = "../../../headstart-kernel/benches/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::thread;

use client::{AT_ONCE, cpus};
use stage::{Daemon, SETTLE, Stage, Turn};
use support::median;

const ROUNDS: usize = 40;
const CONNECTIONS: usize = 1500;
const TRANSFER_BYTES: usize = 20_000;
/// Of each contestant, before the first round: caches are warm and the path is known.
const WARM_UP: usize = 500;
/// What records may cost, over native cubic.
const TARGET: f64 = 0.03;
/// Of the median, by the bootstrap.
const RESAMPLES: usize = 2000;

const NATIVE: &str = "cubic";

/// Who is measured: what the rule for its port says; without one no policy is attached to its connections.
struct Contestant {
    name: &'static str,
    rule: Option<&'static str>,
    records: bool,
}

const CONTESTANTS: [Contestant; 8] = [
    contestant(NATIVE, None, false),
    contestant("cubic, again", None, false),
    contestant("daemon", Some("leave-alone"), false),
    contestant("daemon, records", Some("leave-alone"), true),
    contestant("su_standard", Some("su_standard"), false),
    contestant("su_standard, records", Some("su_standard"), true),
    contestant("su_fast_start", Some("su_fast_start"), false),
    contestant("su_fast_start, records", Some("su_fast_start"), true),
];

const fn contestant(name: &'static str, rule: Option<&'static str>, records: bool) -> Contestant {
    Contestant {
        name,
        rule,
        records,
    }
}

/// The daemon's part, the mean of all turns: it closes a file now and then, of which a median would know nothing.
struct DaemonPart {
    cpu_us: f64,
    late_cpu_us: f64,
}

impl DaemonPart {
    fn of(turns: &[Turn]) -> DaemonPart {
        let mean =
            |what: fn(&Turn) -> f64| turns.iter().map(what).sum::<f64>() / turns.len() as f64;
        DaemonPart {
            cpu_us: mean(|turn| turn.daemon_cpu_us),
            late_cpu_us: mean(|turn| turn.late_cpu_us),
        }
    }

    fn connections_per_s(&self, turn: &Turn) -> f64 {
        1e6 / (turn.wall_us + self.late_cpu_us / cpus() as f64)
    }

    fn cpu_us(&self, turn: &Turn) -> f64 {
        turn.server_cpu_us + turn.client_cpu_us + self.cpu_us
    }
}

/// Chance that is the same in each run (SplitMix64, Steele et al. 2014).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((x ^ (x >> 31)) >> 33).unwrap() % bound
    }

    fn order(&mut self, number: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..number).collect();
        for last in (1..number).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}

/// A median, and the interval in which it lies with 95 %.
struct Ratio {
    median: f64,
    low: f64,
    high: f64,
}

impl Ratio {
    fn of(values: Vec<f64>, chance: &mut Chance) -> Ratio {
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let again = values.iter().map(|_| values[chance.below(values.len())]);
                median(again.collect())
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        Ratio {
            median: median(values),
            low: medians[RESAMPLES / 40],
            high: medians[RESAMPLES - 1 - RESAMPLES / 40],
        }
    }

    /// Where `worse` is what may be had.
    fn verdict(&self, worse: f64) -> &'static str {
        let beyond = |value: f64| match worse > 1.0 {
            true => value > worse,
            false => value < worse,
        };
        match (beyond(self.low), beyond(self.high)) {
            (false, false) => "met",
            (true, true) => "missed",
            _ => "open",
        }
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!(
            "{:.3} ({:.3}-{:.3})",
            self.median, self.low, self.high
        ))
    }
}

fn measure(
    stage: &Stage,
    over_veth: bool,
    rounds: usize,
    connections: usize,
    chance: &mut Chance,
) -> usize {
    for index in 0..CONTESTANTS.len() {
        stage.ask(index, over_veth, WARM_UP);
    }
    thread::sleep(2 * SETTLE);
    let mut turns: Vec<Vec<Turn>> = CONTESTANTS.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for index in chance.order(CONTESTANTS.len()) {
            turns[index].push(stage.turn(index, over_veth, connections));
        }
    }
    println!(
        "\n{:23} {:>6} {:>8} {:>8}  {:>6} {:>6} {:>6}  {:19}  {:19}  {:19}  at most 3 % worse",
        if over_veth { "veth" } else { "loopback" },
        "conn/s",
        "p50, us",
        "p99, us",
        "server",
        "client",
        "daemon",
        "conn/s x cubic",
        "p99 x cubic",
        "CPU x cubic",
    );
    let native = DaemonPart::of(&turns[0]);
    for (contestant, mine) in CONTESTANTS.iter().zip(&turns) {
        let of = |what: &dyn Fn(&Turn) -> f64| median(mine.iter().map(what).collect());
        let daemon = DaemonPart::of(mine);
        let mut ratio = |what: &dyn Fn(&DaemonPart, &Turn) -> f64| {
            let pairs = mine.iter().zip(&turns[0]);
            let ratios = pairs.map(|(mine, theirs)| what(&daemon, mine) / what(&native, theirs));
            Ratio::of(ratios.collect(), chance)
        };
        let per_s = ratio(&DaemonPart::connections_per_s);
        let p99 = ratio(&|_, turn| turn.set_up_p99_us);
        let cpu = ratio(&DaemonPart::cpu_us);
        println!(
            "{:23} {:6.0} {:8.0} {:8.0}  {:6.1} {:6.1} {:6.2}  {per_s:19}  {p99:19}  {cpu:19}  {} {} {}",
            contestant.name,
            of(&|turn| daemon.connections_per_s(turn)),
            of(&|turn| turn.set_up_p50_us),
            of(&|turn| turn.set_up_p99_us),
            of(&|turn| turn.server_cpu_us),
            of(&|turn| turn.client_cpu_us),
            daemon.cpu_us,
            per_s.verdict(1.0 - TARGET),
            p99.verdict(1.0 + TARGET),
            cpu.verdict(1.0 + TARGET),
        );
    }
    let recorded = CONTESTANTS.iter().filter(|contestant| contestant.records);
    recorded.count() * (WARM_UP + rounds * connections)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["daemon", file] => headstart_daemon::run(Path::new(file)).unwrap(),
        ["client", namespace, addr, port, connections] => client::run(
            namespace,
            addr,
            port.parse().unwrap(),
            connections.parse().unwrap(),
        ),
        _ => {
            let numbers: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
            let rounds = numbers.first().copied().unwrap_or(ROUNDS);
            let connections = numbers.get(1).copied().unwrap_or(CONNECTIONS);
            let load = fs::read_to_string("/proc/loadavg").unwrap();
            let mut stage = Stage::new();
            println!(
                "nginx, {connections} connections of {TRANSFER_BYTES} bytes a turn, {AT_ONCE} at once, {rounds} rounds, \
                 their order by chance; medians of rounds;\nratios: median of those within a round (95 % of the \
                 bootstrap); CPU of a connection in us; load {};\nthe daemon takes {:.0} us of a second when nothing \
                 happens",
                load.split(' ').next().unwrap(),
                stage.idle_us_per_s
            );
            let mut chance = Chance(1);
            let mut wanted = 0;
            for over_veth in [false, true] {
                wanted += measure(&stage, over_veth, rounds, connections, &mut chance);
            }
            let rows = stage.running.take().map(Daemon::end);
            assert_eq!(rows, Some(wanted), "records");
        }
    }
}
