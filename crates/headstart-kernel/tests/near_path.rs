//! Where the round trip is shorter than `least_rtt_us` nothing starts, and nothing is kept.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use headstart_core::{Params, Startup, why_name};
use headstart_kernel::{Options, RecordLevel};
use nix::sys::socket::{setsockopt, sockopt};
use support::*;

const FAR_MS: u64 = 30;
const BYTES: usize = 20_000;

/// A transfer under `startup` within the server's own machine: its round trip is some 50 us. Returns the client's port.
fn fetch_at_home(lane: &Lane, startup: &str) -> u16 {
    let server = lane.emulation.server();
    let listener = server
        .run(|| TcpListener::bind(("127.0.0.1", 0)).unwrap())
        .unwrap();
    setsockopt(&listener, sockopt::TcpCongestion, &OsString::from(startup)).unwrap();
    let to: SocketAddr = listener.local_addr().unwrap();
    let mut client = server.run(|| TcpStream::connect(to).unwrap()).unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    accepted.write_all(&[b'x'; BYTES]).unwrap();
    drop(accepted);
    let mut body = Vec::new();
    client.read_to_end(&mut body).unwrap();
    assert_eq!(body.len(), BYTES);
    client.local_addr().unwrap().port()
}

/// All start-ups. The round trip of a loaded machine may be longer than a millisecond: the bound is out of its reach.
fn all(least_rtt_us: u64, record_level: RecordLevel) -> Options {
    let params = Startup::all().map(|startup| {
        let mut params = Params::new(startup);
        params.set("least_rtt_us", least_rtt_us).unwrap();
        params
    });
    Options {
        startups: params.collect(),
        record_level,
        ..everything()
    }
}

#[test]
fn no_start_up_starts_below_least_rtt_us_and_each_says_so() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&all(1_000_000, RecordLevel::Events)) else {
        return;
    };
    let lane = Lane::new(&kernel, 1, "100mbit", FAR_MS, 1000);
    for startup in Startup::all() {
        let port = fetch_at_home(&lane, startup.name());
        let records = of_socket(&kernel.take_records().unwrap(), port);
        let said: Vec<&str> = that_say_why(&records).iter().map(|said| said.0).collect();
        assert_eq!(said, ["near-path"], "{startup:?}");
    }
    assert!(kernel.paths().unwrap().is_empty(), "nothing is learnt");
}

#[test]
fn with_least_rtt_us_0_a_start_up_starts_on_any_path() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&all(0, RecordLevel::Events)) else {
        return;
    };
    let lane = Lane::new(&kernel, 1, "100mbit", FAR_MS, 1000);
    for startup in Startup::all() {
        let port = fetch_at_home(&lane, startup.name());
        let records = of_socket(&kernel.take_records().unwrap(), port);
        let whys: Vec<&str> = records
            .iter()
            .map(|record| why_name(record.verdict.why))
            .collect();
        assert!(
            !whys.contains(&"near-path") && !whys.is_empty(),
            "{startup:?}: {whys:?}"
        );
    }
    assert!(!kernel.paths().unwrap().is_empty(), "the path is learnt");
}

/// Without records nothing at all is kept of such a connection; of one to another place everything is.
#[test]
fn a_connection_that_nobody_watches_is_left_to_the_stack() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&all(25_000, RecordLevel::Nothing)) else {
        return;
    };
    let lane = Lane::new(&kernel, 1, "100mbit", FAR_MS, 1000);
    for startup in Startup::all() {
        fetch_at_home(&lane, startup.name());
        lane.server_uses(startup.name());
        let before = kernel.paths().unwrap().len();
        assert_eq!(before, 0, "{startup:?}");
        let mut client = lane.connect();
        client.fetch(BYTES);
        drop(client);
        // The last acknowledgement is on its way.
        let mut learnt = Vec::new();
        for _ in 0..50 {
            sleep(Duration::from_millis(100));
            learnt = kernel.paths().unwrap();
            if !learnt.is_empty() {
                break;
            }
        }
        assert!(!learnt.is_empty(), "{startup:?}");
        for entry in learnt {
            kernel.forget(entry.prefix).unwrap();
        }
    }
}
