//! The shared path memory on the live kernel: which entry answers, when none does, and what peers that lie can do.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

#[path = "support/peer.rs"]
#[allow(
    unreachable_pub,
    dead_code,
    missing_docs,
    clippy::expect_used,
    reason = "a test's own tools"
)]
mod peer;
mod support;

use std::collections::HashSet;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::thread::{self, sleep};
use std::time::Duration;

use headstart_core::{EventKind, INFINITE_SSTHRESH, MemoryParams, Path, why_name};
use headstart_kernel::{Kernel, MemoryOptions, Options, PathEntry, Prefix, PrefixLengths};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{setsockopt, sockopt};
use peer::{MSS_BYTES, PORT, Said, Wire};
use support::*;

const RTT_MS: u64 = 100;

fn with_lengths(lengths: &[u8]) -> Options {
    Options {
        memory: MemoryOptions {
            lengths_v4: PrefixLengths::new(lengths.to_vec()),
            ..MemoryOptions::of_networks()
        },
        ..fast_start(&[])
    }
}

fn path(cwnd_pkts: u32) -> Path {
    let rtt_us = RTT_MS as u32 * 1000;
    Path {
        cwnd_pkts,
        ssthresh_pkts: INFINITE_SSTHRESH,
        srtt_us: rtt_us,
        rttvar_us: 1000,
        min_rtt_us: rtt_us,
        min_rtt_mean_us: rtt_us,
        samples: 1,
        ..Path::default()
    }
}

fn remember(kernel: &Kernel, prefix: &str, path: Path) {
    let prefix = prefix.parse().unwrap();
    kernel.remember(&PathEntry { prefix, path }).unwrap();
}

/// The first window of a new connection on the wire, and why it is so.
fn first_window(kernel: &Kernel, lane: &Lane) -> (usize, &'static str) {
    kernel.take_records().unwrap();
    let mut client = lane.connect();
    client.fetch(100_000);
    let flight = first_flight(&lane.wire(&client)).len();
    // Its end teaches the memory too.
    drop(client);
    sleep(Duration::from_millis(500));
    let records = kernel.take_records().unwrap();
    let opened = records
        .iter()
        .find(|record| record.event.kind == EventKind::Open as u8);
    (flight, why_name(opened.unwrap().verdict.why))
}

fn lane(kernel: &Kernel) -> Lane {
    let lane = Lane::new(kernel, 1, "20mbit", RTT_MS, 400);
    lane.server_uses("su_fast_start");
    lane
}

/// Paced over a round trip: the last few may come after the first ACK.
fn assert_window(seen: (usize, &str), pkts: usize) {
    assert_eq!(seen.1, "path-known");
    assert!((pkts - 5..=pkts).contains(&seen.0), "{seen:?}, not {pkts}");
}

#[test]
fn the_longest_prefix_that_is_known_answers() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&with_lengths(&[16, 24, 32])) else {
        return;
    };
    let lane = lane(&kernel);
    let host = lane.emulation.client().addr_v4();
    let prefixes = [32, 24, 16].map(|bits| Prefix::of(host.into(), bits));
    for known in 0..3 {
        // Each connection teaches all three.
        for prefix in prefixes {
            kernel.forget(prefix).unwrap();
        }
        for (prefix, cwnd_pkts) in prefixes.iter().zip([40, 20, 30]).skip(known) {
            remember(&kernel, &prefix.to_string(), path(cwnd_pkts));
        }
        assert_window(first_window(&kernel, &lane), [40, 20, 30][known]);
    }
    assert_eq!(kernel.paths().unwrap().len(), 3);
}

#[test]
fn where_the_connections_behind_a_prefix_disagree_only_a_longer_one_answers() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&with_lengths(&[24, 32])) else {
        return;
    };
    let lane = lane(&kernel);
    let spread = Path {
        window_mean_mpkts: 40_000,
        window_dev_mpkts: 20_000,
        samples: 5,
        ..path(40)
    };
    remember(&kernel, "10.77.1.0/24", spread);
    assert_eq!(first_window(&kernel, &lane), (10, "path-spread"));
    let host = lane.emulation.client().addr_v4();
    remember(&kernel, &host.to_string(), path(40));
    remember(&kernel, "10.77.1.0/24", spread);
    assert_window(first_window(&kernel, &lane), 40);
}

#[test]
fn a_round_trip_unlike_the_remembered_one_and_an_entry_too_old_are_not_used() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&with_lengths(&[24])) else {
        return;
    };
    let lane = lane(&kernel);
    let near = Path {
        srtt_us: 20_000,
        min_rtt_us: 20_000,
        min_rtt_mean_us: 20_000,
        ..path(40)
    };
    let far = Path {
        srtt_us: 600_000,
        min_rtt_us: 600_000,
        min_rtt_mean_us: 600_000,
        ..path(40)
    };
    for (what, why) in [(near, "path-contradicted"), (far, "path-contradicted")] {
        remember(&kernel, "10.77.1.0/24", what);
        assert_eq!(first_window(&kernel, &lane), (10, why));
    }
    let old = Path {
        age_us: 1_801_000_000,
        ..path(40)
    };
    remember(&kernel, "10.77.1.0/24", old);
    assert_eq!(first_window(&kernel, &lane), (10, "path-stale"));
}

#[test]
fn a_start_that_fails_throws_the_memory_away_at_once_under_every_length() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&with_lengths(&[16, 24, 32])) else {
        return;
    };
    // A tenth of what is remembered.
    let lane = Lane::new(&kernel, 1, "2mbit", RTT_MS, 15);
    lane.server_uses("su_fast_start");
    for prefix in ["10.77.0.0/16", "10.77.1.0/24"] {
        remember(&kernel, prefix, path(200));
    }
    let mut client = lane.connect();
    // More than is through by the time that the first loss is found: the connection lives on.
    writeln!(client.stream, "2000000").unwrap();
    let failed = (0..200).any(|_| {
        sleep(Duration::from_millis(20));
        let records = kernel.take_records().unwrap();
        records.iter().any(|record| record.verdict.forget_path == 1)
    });
    assert!(failed, "the start was meant to fail");
    assert_eq!(
        kernel.paths().unwrap(),
        [],
        "while the connection is still at work"
    );

    let mut second = lane.connect();
    second.fetch(3_000);
    let records = kernel.take_records().unwrap();
    let opened = |record: &&headstart_kernel::Record| record.event.kind == EventKind::Open as u8;
    let why = records.iter().find(opened).unwrap().verdict.why;
    assert_eq!(why_name(why), "path-unknown", "as the standard");
}

#[test]
fn no_more_entries_are_kept_than_there_is_room_for() {
    let _lock = one_at_a_time();
    let mut options = with_lengths(&[32]);
    options.memory.max_entries = 100;
    let Some(kernel) = kernel(&options) else {
        return;
    };
    for host in 0..2000u32 {
        let prefix = Prefix::of(Ipv4Addr::from_bits(0x0a00_0000 + host).into(), 32);
        kernel
            .remember(&PathEntry {
                prefix,
                path: path(40),
            })
            .unwrap();
    }
    let kept = kernel.paths().unwrap().len();
    assert!((1..=100).contains(&kept), "{kept} entries");
}

/// A server for a peer that is no TCP, in a namespace of its own: `body` gets the wire; each connection is sent so
/// many bytes.
fn with_a_peer(options: &Options, send_bytes: usize, body: impl FnOnce(&Kernel, &mut Wire) + Send) {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(options) else {
        return;
    };
    let inside = || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        let mut wire = Wire::new();
        let listener = TcpListener::bind((peer::SERVER, PORT)).unwrap();
        setsockopt(&listener, sockopt::TcpCongestion, &"su_fast_start".into()).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                // Detached: it ends when the peer resets the connection.
                thread::spawn(move || {
                    let _ = stream.write_all(&vec![b'x'; send_bytes]);
                    sleep(Duration::from_secs(3));
                });
            }
        });
        body(&kernel, &mut wire);
    };
    thread::scope(|scope| scope.spawn(inside).join()).unwrap();
}

/// The cap of the tests with a lying peer.
const CAP_PKTS: u32 = 50;

/// The peers are on this machine.
fn capped(max_entries: u32) -> Options {
    let mut options = Options {
        startups: fast_start(&[("least_rtt_us", 0)]).startups,
        ..with_lengths(&[32, 24])
    };
    let mut params = MemoryParams::default();
    params.set("max_window_pkts", u64::from(CAP_PKTS)).unwrap();
    // A loaded machine may answer late; that is not what is tested.
    params.set("rtt_slack_us", 1_000_000).unwrap();
    options.memory.params = params;
    options.memory.max_entries = max_entries;
    options
}

#[test]
fn a_peer_that_acknowledges_what_it_never_got_gets_no_more_than_the_cap() {
    const BYTES: u32 = 8_000_000;
    with_a_peer(&capped(1000), BYTES as usize, |kernel, wire| {
        let from = Ipv4Addr::new(10, 1, 2, 3);
        let first = wire.shake_hands(from, 2000);
        let mut highest = first;
        while highest.wrapping_sub(first) < BYTES {
            let Some(segment) = wire.hear(Duration::from_secs(3)) else {
                panic!("the server stopped at {}", highest.wrapping_sub(first));
            };
            let end = segment.seq.wrapping_add(segment.bytes);
            if end.wrapping_sub(highest).cast_signed() > 0 {
                highest = end;
            }
            // Five packets more than came, and a megabyte more: the first may be under way, the second cannot be.
            wire.acknowledge(from, 2000, highest.wrapping_add(5 * u32::from(MSS_BYTES)));
            wire.acknowledge(from, 2000, highest.wrapping_add(1_000_000));
            wire.acknowledge(from, 2000, highest);
        }
        wire.acknowledge(from, 2000, highest);
        sleep(Duration::from_millis(100));
        let most = kernel.take_records().unwrap();
        let most = most
            .iter()
            .map(|record| record.event.cwnd_pkts)
            .max()
            .unwrap();
        assert!(most > 2 * CAP_PKTS, "the lie was meant to pay: cwnd {most}");
        let paths = kernel.paths().unwrap();
        assert_eq!(paths.len(), 2, "{paths:?}");
        for entry in paths {
            assert!((11..=CAP_PKTS).contains(&entry.path.cwnd_pkts), "{entry:?}");
            assert!(entry.path.ending_mpkts <= CAP_PKTS * 1000, "{entry:?}");
        }

        // The next connection of the liar: what it is sent before it acknowledges anything.
        wire.shake_hands(from, 2001);
        let mut sent = HashSet::new();
        while let Some(segment) = wire.hear(Duration::from_millis(100)) {
            if segment.to_port == 2001 && segment.bytes > 0 {
                sent.insert(segment.seq);
            }
        }
        // A tail loss probe may send one beyond the window (RFC 8985, 7.3).
        assert!(
            (11..=CAP_PKTS as usize + 1).contains(&sent.len()),
            "{} packets",
            sent.len()
        );
        wire.reset(from, 2000, highest);
    });
}

#[test]
fn a_flood_of_made_up_peers_neither_makes_entries_nor_more_of_them_than_there_is_room_for() {
    with_a_peer(&capped(64), 3000, |kernel, wire| {
        for n in 0..5000u32 {
            let [_, _, high, low] = n.to_be_bytes();
            wire.say(Said {
                from: Ipv4Addr::new(10, high, low, 9),
                port: 2000,
                seq: 1000,
                ack: None,
                syn: true,
                rst: false,
            });
        }
        while wire.hear(Duration::from_millis(100)).is_some() {}
        assert_eq!(kernel.paths().unwrap(), [], "no handshake, no entry");

        for n in 0..200u8 {
            let from = Ipv4Addr::new(10, 200, n, 9);
            let first = wire.shake_hands(from, 3000);
            let mut got = 0;
            while got < 3000 {
                let segment = wire.hear(Duration::from_secs(5)).unwrap();
                if segment.to == from && !segment.syn {
                    got = got.max(segment.seq.wrapping_add(segment.bytes).wrapping_sub(first));
                    wire.acknowledge(from, 3000, first.wrapping_add(got));
                }
            }
            wire.reset(from, 3000, first.wrapping_add(got));
        }
        sleep(Duration::from_millis(200));
        let kept = kernel.paths().unwrap().len();
        assert!(
            (1..=64).contains(&kept),
            "{kept} entries of 400 that were taught"
        );
    });
}
