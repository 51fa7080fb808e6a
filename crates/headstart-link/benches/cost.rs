//! What a packet costs in each kind of link: `cargo bench -p headstart-link`. "item/s" is packets a
//! second; a sample is 100,000 packets.
//!
//! Offers 1.05 times what the link carries, by packets of 1500 bytes that are the size of a
//! simulator's. Allocates nothing a packet.

#![allow(clippy::unwrap_used, reason = "a failed step ends the measurement")]

use divan::Bencher;
use divan::counter::ItemsCount;
use headstart_link::{Link, LinkConfig, Packet, RateSpec, Trace};

const PACKETS: u64 = 100_000;
/// At 100 Mbit/s a packet takes 120 us.
const GAP_NS: u64 = 120_000 * 100 / 105;

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

fn main() {
    divan::main();
}

/// Drop-tail and 50 ms.
fn plain() -> LinkConfig {
    with_queue("drop-tail:1bdp")
}

fn with_queue(queue: &str) -> LinkConfig {
    let (rate, delay) = ("100mbit".parse().unwrap(), "50ms".parse().unwrap());
    LinkConfig::new(rate, delay, queue.parse().unwrap())
}

/// Each sample goes on where the one before ended: on a link whose queue is full.
fn measure(bencher: Bencher<'_, '_>, config: &LinkConfig) {
    let mut link = Link::new(config).unwrap();
    let (mut now_ns, mut number) = (0, 0);
    let mut offer = || {
        for _ in 0..PACKETS {
            now_ns += GAP_NS;
            number += 1;
            link.arrive(now_ns, Small { number });
            while link.pop_due(now_ns).is_some() {}
            link.take_dropped().for_each(drop);
        }
        link.counters().out_pkts
    };
    offer();
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(offer);
}

#[divan::bench(args = [
    "drop-tail:1bdp",
    "priority:1bdp",
    "red:1bdp,min=100,max=300",
    "priority-red:1bdp,min=100,max=300",
    "codel:1bdp",
    "fq-codel:1bdp",
])]
fn queue(bencher: Bencher<'_, '_>, queue: &str) {
    measure(bencher, &with_queue(queue));
}

#[divan::bench(args = [
    "100mbit@0s,90mbit@1s,repeat@2s",
    "wifi:130mbit",
    "docsis:98mbit,channel=120mbit,grant_bytes=60000,burst_bytes=60000",
])]
fn rate(bencher: Bencher<'_, '_>, rate: &str) {
    measure(bencher, &plain().with_rate(rate.parse().unwrap()));
}

#[divan::bench]
fn trace(bencher: Bencher<'_, '_>) {
    let lines: String = (0..1000)
        .map(|line| format!("{}\n", line * 120 / 1000 + 1))
        .collect();
    let trace = Trace::parse("100 Mbit/s", &lines).unwrap();
    measure(bencher, &plain().with_rate(RateSpec::Trace(trace)));
}

#[divan::bench(args = ["1%", "gilbert-elliott:p=1%,r=25%"])]
fn loss(bencher: Bencher<'_, '_>, loss: &str) {
    let loss = Some(loss.parse().unwrap());
    measure(bencher, &LinkConfig { loss, ..plain() });
}

#[divan::bench(args = ["5ms", "5ms,unordered"])]
fn jitter(bencher: Bencher<'_, '_>, jitter: &str) {
    let jitter = Some(jitter.parse().unwrap());
    measure(bencher, &LinkConfig { jitter, ..plain() });
}

#[divan::bench(args = ["exp:5ms", "lognormal:5ms,1"])]
fn flow_delay(bencher: Bencher<'_, '_>, delay: &str) {
    let flow_delay = Some(delay.parse().unwrap());
    measure(
        bencher,
        &LinkConfig {
            flow_delay,
            ..plain()
        },
    );
}
