//! The memory of a site, through a real store: what one server learns the others know, and nothing that happens to the
//! store reaches those that only remember.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::net::Ipv4Addr;

use headstart_core::MemoryParams;
use headstart_kernel::{LiveMemory, Prefix};
use headstart_memory::{SitePaths, SiteState, SiteUrl};
use nix::sys::signal::Signal;
use support::*;

const S: u64 = 1_000_000_000;

const A: &str = "10.1.2.0/24";
const B: &str = "10.9.9.9/32";

#[test]
fn what_one_server_learns_the_others_know_with_its_age() {
    if skipped() {
        return;
    }
    let store = Store::start();
    let (first, second) = (Server::of(&store), Server::of(&store));
    first.learns_at(A, 40, LiveMemory::now_ns() - 600 * S);
    second.learns(B, 90);
    second.gets_to_know(A, 40);
    first.gets_to_know(B, 90);
    let (told, came) = (first.entry(A).unwrap(), second.entry(A).unwrap());
    assert_eq!(came.path, told.path);
    // One clock here; the message took its time.
    let younger_ns = came.learnt_ns.abs_diff(told.learnt_ns);
    assert!(younger_ns < 5 * S, "{younger_ns} ns");
    // One that comes later is told all of it.
    let third = Server::of(&store);
    third.gets_to_know(A, 40);
    third.gets_to_know(B, 90);
    // And it goes on: each on top of what the other had.
    third.learns(A, 44);
    first.gets_to_know(A, 44);
    first.learns(A, 48);
    second.gets_to_know(A, 48);
    third.gets_to_know(A, 48);
}

#[test]
fn a_failed_start_spreads_and_what_was_learnt_after_it_does_too() {
    if skipped() {
        return;
    }
    let store = Store::start();
    let (first, second) = (Server::of(&store), Server::of(&store));
    first.learns(A, 400);
    second.gets_to_know(A, 400);
    second.forgets(A);
    assert!(
        eventually(|| first.window(A).is_none()),
        "{:?}",
        first.entry(A)
    );
    // Nobody that comes later hears of it either.
    let third = Server::of(&store);
    third.learns(B, 20);
    first.gets_to_know(B, 20);
    assert_eq!(third.window(A), None);
    first.learns(A, 30);
    second.gets_to_know(A, 30);
    third.gets_to_know(A, 30);
}

#[test]
fn a_failure_that_could_not_be_told_beats_what_is_in_the_store() {
    if skipped() {
        return;
    }
    let store = Store::start();
    let (first, second) = (Server::of(&store), Server::of(&store));
    first.learns(A, 400);
    second.gets_to_know(A, 400);
    store.signal(Signal::SIGSTOP);
    second.gets_into(SiteState::Unreachable);
    second.forgets(A);
    store.signal(Signal::SIGCONT);
    assert!(
        eventually(|| first.window(A).is_none()),
        "{:?}",
        first.entry(A)
    );
    assert_eq!(second.window(A), None);
}

/// Neither knew of the other: both end with the same entry, and it is one that nobody starts from.
#[test]
fn two_servers_that_found_different_windows_at_the_same_time_both_abstain() {
    if skipped() {
        return;
    }
    let store = Store::start();
    let (first, second) = (Server::of(&store), Server::of(&store));
    first.gets_into(SiteState::Shared);
    second.gets_into(SiteState::Shared);
    store.signal(Signal::SIGSTOP);
    first.gets_into(SiteState::Unreachable);
    second.gets_into(SiteState::Unreachable);
    first.learns(A, 200);
    second.learns(A, 20);
    store.signal(Signal::SIGCONT);
    let why = |server: &Server| {
        let mut path = server.entry(A).unwrap().path;
        let event = headstart_core::Event::default();
        headstart_core::why_name(MemoryParams::default().recall(&mut path, &event))
    };
    let both = || why(&first) == "path-spread" && why(&second) == "path-spread";
    assert!(
        eventually(both),
        "{:?} {:?}",
        first.entry(A),
        second.entry(A)
    );
    let same = || first.entry(A).unwrap().path == second.entry(A).unwrap().path;
    assert!(
        eventually(same),
        "{:?} {:?}",
        first.entry(A),
        second.entry(A)
    );
}

#[test]
fn with_a_password_and_not_with_a_wrong_one() {
    if skipped() {
        return;
    }
    let store = Store::with_password("correct-horse");
    let (first, second) = (Server::of(&store), Server::of(&store));
    let wrong = store.url().replace("correct-horse", "battery-staple");
    let wrong = Server::at(SiteUrl::parse(&wrong, None).unwrap());
    first.learns(A, 40);
    wrong.learns(B, 66);
    second.gets_to_know(A, 40);
    wrong.gets_into(SiteState::Refused);
    let why = wrong.site.status().why.unwrap();
    assert!(!why.contains("staple"), "{why}");
    assert_eq!((wrong.window(A), wrong.window(B)), (None, Some(66)));
    assert_eq!(second.window(B), None);
}

#[test]
fn through_tls_where_the_certificate_is_good_and_not_where_it_is_not() {
    if skipped() {
        return;
    }
    let store = Store::with_tls();
    let trusted = SiteUrl::parse(&store.url(), Some(&store.authority())).unwrap();
    let (first, second) = (Server::at(trusted.clone()), Server::at(trusted));
    // The system's authorities did not sign it.
    let stranger = Server::at(SiteUrl::parse(&store.url(), None).unwrap());
    first.learns(A, 40);
    second.gets_to_know(A, 40);
    assert!(eventually(|| stranger.site.status().failures > 0));
    assert_eq!(stranger.site.status().exchanges, 0);
    let why = stranger.site.status().why.unwrap();
    assert!(why.contains("certificate"), "{why}");
    // Without TLS the same port says nothing.
    let plain = store.url().replace("rediss", "redis");
    let plain = Server::at(SiteUrl::parse(&plain, None).unwrap());
    assert!(eventually(|| plain.site.status().failures > 0));
    assert_eq!((stranger.window(A), plain.window(A)), (None, None));
}

/// What `server` does with its own memory while the store is in trouble: the same as ever.
fn remembers_as_ever(server: &Server) {
    for host in 0..1000u32 {
        let prefix = Prefix::of(Ipv4Addr::from_bits(0x0a40_0000 + host).into(), 32);
        server.learns(&prefix.to_string(), 10 + host);
        assert_eq!(server.window(&prefix.to_string()), Some(10 + host));
    }
}

#[test]
fn a_store_that_does_not_answer_is_not_waited_for_and_all_is_made_up_for() {
    if skipped() {
        return;
    }
    let store = Store::start();
    let (first, second) = (Server::of(&store), Server::of(&store));
    first.learns(A, 40);
    second.gets_to_know(A, 40);
    store.signal(Signal::SIGSTOP);
    first.gets_into(SiteState::Unreachable);
    let why = first.site.status().why.unwrap();
    assert!(why.contains("none within 2 s"), "{why}");
    remembers_as_ever(&first);
    assert_eq!(second.window(A), Some(40), "what is known stays");
    store.signal(Signal::SIGCONT);
    second.gets_to_know("10.64.0.0/32", 10);
    second.gets_to_know("10.64.3.231/32", 1009);
    first.gets_into(SiteState::Shared);
    assert_eq!(first.site.status().why, None);
}

#[test]
fn a_store_that_is_killed_and_comes_back_empty_is_told_all_again() {
    if skipped() {
        return;
    }
    let mut store = Store::start();
    let (first, second) = (Server::of(&store), Server::of(&store));
    first.learns(A, 40);
    second.gets_to_know(A, 40);
    store.kill();
    first.gets_into(SiteState::Unreachable);
    remembers_as_ever(&first);
    second.gets_into(SiteState::Unreachable);
    second.learns(B, 77);
    store.start_again();
    first.gets_to_know(B, 77);
    second.gets_to_know("10.64.3.231/32", 1009);
    assert_eq!(first.site.status().emptied, 1);
    let third = Server::of(&store);
    third.gets_to_know(A, 40);
}

#[test]
fn a_store_that_is_flushed_is_told_all_again() {
    if skipped() {
        return;
    }
    let store = Store::start();
    let (first, second) = (Server::of(&store), Server::of(&store));
    first.learns(A, 40);
    second.gets_to_know(A, 40);
    store.say(&["FLUSHALL"]);
    assert!(eventually(
        || first.site.status().emptied == 1 && second.site.status().emptied == 1
    ));
    let third = Server::of(&store);
    third.gets_to_know(A, 40);
    assert_eq!((first.window(A), second.window(A)), (Some(40), Some(40)));
}

#[test]
fn a_store_of_which_one_key_was_evicted_begins_anew() {
    if skipped() {
        return;
    }
    for key in [
        "headstart:1:site",
        "headstart:1:paths",
        "headstart:1:changes",
    ] {
        let store = Store::start();
        let (first, second) = (Server::of(&store), Server::of(&store));
        first.learns(A, 40);
        second.gets_to_know(A, 40);
        store.say(&["DEL", key]);
        // What is lost is found out when something is told.
        second.learns(B, 50);
        first.gets_to_know(B, 50);
        let third = Server::of(&store);
        third.gets_to_know(A, 40);
        third.gets_to_know(B, 50);
    }
}

#[test]
fn a_store_that_is_full_is_read_and_is_told_when_there_is_room() {
    if skipped() {
        return;
    }
    let store = Store::start();
    let (first, second) = (Server::of(&store), Server::of(&store));
    first.learns(A, 40);
    second.gets_to_know(A, 40);
    store.say(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    store.say(&["CONFIG", "SET", "maxmemory", "1"]);
    remembers_as_ever(&first);
    first.gets_into(SiteState::Full);
    let why = first.site.status().why.unwrap();
    assert!(why.contains("maxmemory"), "{why}");
    let third = Server::of(&store);
    third.gets_to_know(A, 40);
    assert_eq!(second.window("10.64.0.0/32"), None);
    store.say(&["CONFIG", "SET", "maxmemory", "0"]);
    second.gets_to_know("10.64.3.231/32", 1009);
    first.gets_into(SiteState::Shared);
}

#[test]
fn garbage_in_the_store_is_counted_and_believed_by_nobody() {
    if skipped() {
        return;
    }
    let store = Store::start();
    let first = Server::of(&store);
    first.learns(A, 40);
    assert!(eventually(|| first.site.status().told > 0));
    let good = "1800000000000000 x 40 50 60000 4000 50000 1000000 40000 40000 0 50000 0 0 1 2";
    let huge = "9".repeat(100_000);
    let entries = [
        ("10.3.0.0/24", "hello"),
        ("10.3.1.0/24", ""),
        ("10.3.2.0/24", huge.as_str()),
        ("10.3.3.0/24", &good.replace(" 40 ", " 99999999999 ")),
        ("no prefix", good),
        ("\n\u{1b}[31m", good),
        // Of the year 2027, as the store's clock has it.
        ("10.3.4.0/24", good),
    ];
    for (number, (prefix, text)) in entries.iter().enumerate() {
        store.say(&["HSET", "headstart:1:paths", prefix, text]);
        let change = store.say(&["HINCRBY", "headstart:1:site", "changes", "1"]);
        let redis::Value::Int(change) = change else {
            panic!("{number}: {change:?}")
        };
        store.say(&["ZADD", "headstart:1:changes", &change.to_string(), prefix]);
    }
    // Nobody's change: the list goes on behind it.
    store.say(&["HSET", "headstart:1:paths", "10.3.5.0/24", "hello"]);
    store.say(&["ZADD", "headstart:1:changes", "inf", "10.3.5.0/24"]);
    let second = Server::of(&store);
    second.gets_to_know(A, 40);
    let counted = || second.site.status().rejected == entries.len() as u64;
    assert!(eventually(counted), "{:?}", second.site.status());
    let shown = second.site.status().last_rejected.unwrap();
    assert!(
        !shown.contains('\u{1b}') && !shown.contains('\n'),
        "{shown}"
    );
    assert_eq!(second.paths(), 1);
    first.learns(B, 70);
    second.gets_to_know(B, 70);
    // What stands in a path's way is written over.
    first.learns("10.3.0.0/24", 35);
    second.gets_to_know("10.3.0.0/24", 35);
}

#[test]
fn keys_of_another_kind_are_refused_until_they_are_gone() {
    if skipped() {
        return;
    }
    let store = Store::start();
    store.say(&["SET", "headstart:1:site", "another program's"]);
    let (first, second) = (Server::of(&store), Server::of(&store));
    first.learns(A, 40);
    first.gets_into(SiteState::Refused);
    let why = first.site.status().why.unwrap();
    assert!(why.contains("WRONGTYPE"), "{why}");
    store.say(&["DEL", "headstart:1:site"]);
    second.gets_to_know(A, 40);
}

#[test]
fn whoever_looks_sees_all_that_is_in_the_store_and_changes_nothing() {
    if skipped() {
        return;
    }
    let store = Store::start();
    let url = SiteUrl::parse(&store.url(), None).unwrap();
    assert_eq!(SitePaths::read(&url).unwrap(), SitePaths::default());
    let server = Server::of(&store);
    for number in 0..1200 {
        server.learns(&format!("10.{}.{}.0/24", number / 256, number % 256), 20);
    }
    server.learns("10.9.9.9/32", 77);
    server.learns("10.8.8.8/32", 30);
    let known = |count: usize| SitePaths::read(&url).unwrap().paths.len() == count;
    assert!(eventually(|| known(1202)));
    server.forgets("10.8.8.8/32");
    assert!(eventually(|| known(1201)));
    store.say(&["HSET", "headstart:1:paths", "10.1.2.0/24", "nonsense"]);
    let before = store.say(&["HGETALL", "headstart:1:paths"]);
    let site = SitePaths::read(&url).unwrap();
    assert_eq!((site.paths.len(), site.rejected), (1200, 1));
    let host = site
        .paths
        .iter()
        .find(|entry| entry.prefix.bits() == Some(32));
    assert_eq!(host.unwrap().path.cwnd_pkts, 77);
    assert_eq!(before, store.say(&["HGETALL", "headstart:1:paths"]));
}

#[test]
fn a_window_above_the_cap_of_this_server_comes_as_the_cap() {
    if skipped() {
        return;
    }
    let store = Store::start();
    let mut large = MemoryParams::default();
    large.set("max_window_pkts", 65_535).unwrap();
    let url = SiteUrl::parse(&store.url(), None).unwrap();
    let first = Server::alone().joins(url, large);
    let second = Server::of(&store);
    first.learns(A, 60_000);
    second.gets_to_know(A, 2000);
    let path = second.entry(A).unwrap().path;
    assert!(path.ending_mpkts <= 2_000_000 && path.window_mean_mpkts <= 2_000_000);
    assert_eq!(second.site.status().capped, 1);
}

/// More than one message each way, and more than one exchange.
#[test]
fn a_large_memory_is_shared_whole_and_told_once() {
    if skipped() {
        return;
    }
    const PATHS: u32 = 40_000;
    let store = Store::start();
    let url = SiteUrl::parse(&store.url(), None).unwrap();
    let first = Server::alone();
    // All at one moment: what tells them apart is the prefix alone.
    let at_ns = LiveMemory::now_ns();
    for host in 0..PATHS {
        let prefix = Prefix::of(Ipv4Addr::from_bits(0x0a40_0000 + host).into(), 32);
        first.learns_at(&prefix.to_string(), 10 + host % 100, at_ns);
    }
    let first = first.joins(url, MemoryParams::default());
    let second = Server::of(&store);
    let whole = || second.paths() == PATHS as usize;
    assert!(
        eventually(whole),
        "{:?} {:?}",
        first.site.status(),
        second.site.status()
    );
    assert_eq!(second.window("10.64.0.7/32"), Some(17));
    // Some rounds later nothing was told twice, and nothing back.
    let rounds = first.site.status().exchanges + 3;
    assert!(eventually(|| first.site.status().exchanges >= rounds));
    assert_eq!(first.site.status().told, u64::from(PATHS));
    assert_eq!(second.site.status().told, 0);
}
