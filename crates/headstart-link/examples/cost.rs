//! What a packet costs in each kind of link: `cargo run --release -p headstart-link --example cost`.
//!
//! Offers 1.05 times what the link carries, by packets of 1500 bytes that are the size of a
//! simulator's, and prints nanoseconds of wall time a packet that came. Allocates nothing a packet.

#![allow(clippy::unwrap_used, reason = "a failed step ends the measurement")]

use std::time::Instant;

use headstart_link::{Link, LinkConfig, Packet};

const PACKETS: u64 = 5_000_000;
const REPEATS: usize = 5;

#[derive(Clone, Copy)]
struct Small {
    number: u64,
}

impl Packet for Small {
    fn wire_bytes(&self) -> u32 {
        1500
    }

    fn dscp(&self) -> u8 {
        u8::from(self.number % 8 < 3)
    }

    fn flow_hash(&self) -> u64 {
        self.number % 16
    }
}

/// Nanoseconds a packet.
fn cost(config: &LinkConfig) -> f64 {
    // 100 Mbit/s: 120 us a packet.
    let gap_ns = 120_000 * 100 / 105;
    let mut link = Link::new(config).unwrap();
    let started = Instant::now();
    let mut now_ns = 0;
    for number in 0..PACKETS {
        now_ns += gap_ns;
        link.arrive(now_ns, Small { number });
        while link.pop_due(now_ns).is_some() {}
        link.take_dropped().for_each(drop);
    }
    started.elapsed().as_nanos() as f64 / PACKETS as f64
}

fn main() {
    let plain = |queue: &str| {
        let (rate, delay) = ("100mbit".parse().unwrap(), "50ms".parse().unwrap());
        LinkConfig::new(rate, delay, queue.parse().unwrap())
    };
    let mut all = Vec::new();
    for queue in [
        "drop-tail:1bdp",
        "priority:1bdp",
        "red:1bdp,min=100,max=300",
        "priority-red:1bdp,min=100,max=300",
        "codel:1bdp",
        "fq-codel:1bdp",
    ] {
        all.push((queue.to_owned(), plain(queue)));
    }
    let mut with = |what: &str, change: &dyn Fn(&mut LinkConfig)| {
        let mut config = plain("drop-tail:1bdp");
        change(&mut config);
        all.push((format!("drop-tail, {what}"), config));
    };
    with("loss 1%", &|config| {
        config.loss = Some("1%".parse().unwrap())
    });
    with("jitter 5ms", &|config| {
        config.jitter = Some("5ms".parse().unwrap())
    });
    with("jitter 5ms,unordered", &|config| {
        config.jitter = Some("5ms,unordered".parse().unwrap());
    });
    with("schedule", &|config| {
        config.rate = "100mbit@0s,90mbit@1s,repeat@2s".parse().unwrap();
    });
    with("trace", &|config| {
        let lines: String = (0..1000)
            .map(|line| format!("{}\n", line * 120 / 1000 + 1))
            .collect();
        config.rate = headstart_link::RateSpec::Trace(
            headstart_link::Trace::parse("100 Mbit/s", &lines).unwrap(),
        );
    });
    for (name, config) in all {
        let best = (0..REPEATS)
            .map(|_| cost(&config))
            .fold(f64::INFINITY, f64::min);
        println!("{best:6.1} ns a packet  {name}");
    }
}
