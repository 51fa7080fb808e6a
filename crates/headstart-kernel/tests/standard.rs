//! `su_standard` on the live kernel: plain slow start, as native, with the initial window a parameter.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::thread::sleep;
use std::time::Duration;

use headstart_kernel::Options;
use support::*;

const RTT_MS: u64 = 100;

#[test]
fn su_standard_sends_the_same_flights_as_native_cubic() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&everything()) else {
        return;
    };
    let lane = Lane::wide(&kernel, RTT_MS);
    let mut seen = Vec::new();
    for name in ["cubic", "su_standard"] {
        lane.server_uses(name);
        let mut client = lane.connect();
        client.fetch(400_000);
        seen.push(flights(&lane.wire(&client), RTT_MS));
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(
        seen[0],
        [10, 20, 40, 80, 127],
        "five round trips of plain slow start"
    );
}

#[test]
fn the_initial_window_is_a_parameter_on_a_new_connection_and_after_idle() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&only("su_standard", &[("iw_pkts", 30)])) else {
        return;
    };
    let lane = Lane::wide(&kernel, RTT_MS);
    lane.server_uses("su_standard");
    let mut client = lane.connect();
    client.fetch(200_000);
    assert_eq!(flights(&lane.wire(&client), RTT_MS)[0], 30);
    // Long enough for any window to have decayed to the restart window.
    sleep(Duration::from_secs(4));
    client.fetch(200_000);
    assert_eq!(flights(&lane.wire(&client), RTT_MS)[0], 30);
}

#[test]
fn a_rule_for_a_destination_or_a_listener_stands_above_the_parameter() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&Options {
        windows: vec![
            "10.77.0.0/16=20".parse().unwrap(),
            "10.77.1.0/24=30".parse().unwrap(),
        ],
        ..everything()
    }) else {
        return;
    };
    let lane = Lane::wide(&kernel, RTT_MS);
    lane.server_uses("su_standard");
    let first = |client: &mut Client| {
        client.fetch(100_000);
        flights(&lane.wire(client), RTT_MS)[0]
    };
    let mut client = lane.connect();
    assert_eq!(first(&mut client), 30, "the longest prefix");
    assert_eq!(first(&mut lane.connect_v6()), 10, "no rule: the parameter");
    sleep(Duration::from_secs(4));
    assert_eq!(first(&mut client), 30, "after idle too");
    // Set while it runs; a rule for the listener goes first.
    kernel.set_window(&":8080=3".parse().unwrap()).unwrap();
    assert_eq!(first(&mut lane.connect()), 3);
    assert_eq!(first(&mut lane.connect_v6()), 3);
    kernel
        .set_window(&"10.77.1.0/24:8080=5".parse().unwrap())
        .unwrap();
    assert_eq!(first(&mut lane.connect()), 5);
}

#[test]
fn a_rule_is_honoured_where_our_side_opens_the_connection() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&Options {
        windows: vec!["10.77.1.0/24=25".parse().unwrap()],
        ..everything()
    }) else {
        return;
    };
    let lane = Lane::wide(&kernel, RTT_MS);
    let to = std::net::SocketAddr::new(lane.emulation.client().addr_v4().into(), 9090);
    let listener = lane
        .emulation
        .client()
        .run(|| std::net::TcpListener::bind(to).unwrap())
        .unwrap();
    let taker = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::copy(&mut stream, &mut std::io::sink()).unwrap()
    });
    let mut stream = lane
        .emulation
        .server()
        .run(|| {
            let socket = nix::sys::socket::socket(
                nix::sys::socket::AddressFamily::Inet,
                nix::sys::socket::SockType::Stream,
                nix::sys::socket::SockFlag::empty(),
                None,
            )
            .unwrap();
            let name = "su_standard".into();
            nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::TcpCongestion, &name)
                .unwrap();
            let addr: nix::sys::socket::SockaddrStorage = to.into();
            nix::sys::socket::connect(std::os::fd::AsRawFd::as_raw_fd(&socket), &addr).unwrap();
            std::net::TcpStream::from(socket)
        })
        .unwrap();
    std::io::Write::write_all(&mut stream, &[b'x'; 100_000]).unwrap();
    drop(stream);
    assert_eq!(taker.join().unwrap(), 100_000);
    assert_eq!(flights(&lane.emulation.take_packets(), RTT_MS)[0], 25);
}

#[test]
fn after_idle_su_standard_restarts_as_native_cubic_does() {
    let _lock = one_at_a_time();
    let Some(kernel) = kernel(&everything()) else {
        return;
    };
    let lane = Lane::wide(&kernel, RTT_MS);
    for name in ["cubic", "su_standard"] {
        lane.server_uses(name);
        let mut client = lane.connect();
        client.fetch(100_000);
        lane.wire(&client);
        sleep(Duration::from_secs(4));
        client.fetch(100_000);
        assert_eq!(flights(&lane.wire(&client), RTT_MS)[0], 10, "{name}");
    }
}
