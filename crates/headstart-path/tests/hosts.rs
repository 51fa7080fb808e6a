//! Several hosts through one pair of queues, their names, and cross-traffic between them.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod common;

use std::collections::HashMap;
use std::io::Read;
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{comes_true, start_or_skip, symmetric, udp};
use headstart_path::background::{Background, BackgroundConfig};
use headstart_path::{Direction, Emulation, HostId, Namespace, PathConfig, PathError, Side};

fn with_hosts(hosts: u16, lane: u8) -> PathConfig {
    PathConfig {
        hosts,
        ..symmetric("20mbit", "5ms", "drop-tail:100", lane)
    }
}

#[test]
fn every_host_reaches_every_host_of_the_other_side_and_only_that_one_gets_the_packet() {
    let Some(mut emulation) = start_or_skip(with_hosts(3, 50)) else {
        return;
    };
    let sockets = |side: &[Namespace]| side.iter().map(|host| udp(host, 9000)).collect::<Vec<_>>();
    let (servers, clients) = (sockets(emulation.servers()), sockets(emulation.clients()));
    for (from, to_side) in [(&servers, &clients), (&clients, &servers)] {
        for (number, sender) in from.iter().enumerate() {
            for (to_number, receiver) in to_side.iter().enumerate() {
                let said = format!("{number} to {to_number}");
                sender
                    .send_to(said.as_bytes(), receiver.local_addr().unwrap())
                    .unwrap();
                let mut heard = [0; 64];
                let (len, came_from) = receiver.recv_from(&mut heard).unwrap();
                assert_eq!(&heard[..len], said.as_bytes());
                assert_eq!(came_from, sender.local_addr().unwrap());
            }
        }
    }
    // An address on the path that nobody has: not sent on, and said so.
    servers[0]
        .send_to(b"hello?", ("10.77.50.99", 9000))
        .unwrap();
    assert!(comes_true(|| emulation
        .report()
        .unwrap()
        .forward
        .unroutable_pkts
        == 1));
    let second = HostId {
        side: Side::Client,
        number: 2,
    };
    assert_eq!(
        emulation.host(second).unwrap().addr_v4().to_string(),
        "10.77.50.4"
    );
    let fourth = HostId {
        number: 4,
        ..second
    };
    assert!(emulation.host(fourth).is_none());
    let report = emulation.stop().unwrap();
    assert_eq!((report.hosts, report.forward.out_pkts), (3, 9));
    assert!(
        report
            .warnings
            .iter()
            .any(|said| said.contains("no host has"))
    );
    let ours: IpAddr = emulation.servers()[0].addr_v4().into();
    assert!(
        emulation
            .take_packets()
            .iter()
            .any(|packet| packet.src_addr == Some(ours))
    );
}

#[test]
fn sixteen_pairs_are_up_and_down_soon() {
    let began = Instant::now();
    let Some(mut emulation) = start_or_skip(with_hosts(16, 51)) else {
        return;
    };
    let up = began.elapsed();
    emulation.stop().unwrap();
    println!("16 pairs: up in {up:?}, down in {:?}", began.elapsed() - up);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn more_hosts_than_addresses_are_refused() {
    let refused = Emulation::start(with_hosts(128, 52)).unwrap_err();
    assert!(refused.cannot_be() && !refused.cannot_here());
    assert!(matches!(refused, PathError::CannotBe(why) if why.contains("1 to 127")));
}

fn said_by(host: &Namespace, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::piped());
    let mut child = host.spawn(command).unwrap();
    let mut said = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    child.wait().unwrap();
    said
}

#[test]
fn hosts_are_known_by_name_inside_and_not_on_the_machine() {
    let machine = std::fs::read_to_string("/etc/hosts").unwrap();
    let Some(emulation) = start_or_skip(with_hosts(2, 53)) else {
        return;
    };
    for host in emulation.servers().iter().chain(emulation.clients()) {
        for (name, address) in [
            ("server", "10.77.53.1"),
            ("server1", "10.77.53.1"),
            ("client2", "10.77.53.4"),
            ("client-v6", "fd77:0:35::2"),
        ] {
            let said = said_by(host, "getent", &["hosts", name]);
            assert!(said.starts_with(&format!("{address} ")), "{name}: {said}");
        }
        assert!(said_by(host, "cat", &["/etc/hosts"]).ends_with(&machine));
    }
    assert_eq!(std::fs::read_to_string("/etc/hosts").unwrap(), machine);
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(
        !mounts.contains(" /etc/hosts ")
            || machine.contains("headstart")
            || !mounts.contains("headstart-")
    );
}

fn background(emulation: &Emulation, specs: &[&str]) -> Background {
    let configs: Vec<BackgroundConfig> = specs.iter().map(|spec| spec.parse().unwrap()).collect();
    Background::start(emulation, &configs, 7).unwrap()
}

#[test]
fn cross_traffic_runs_between_the_other_pairs_both_ways_and_is_counted() {
    let Some(mut emulation) = start_or_skip(with_hosts(3, 54)) else {
        return;
    };
    let running = background(
        &emulation,
        &[
            "bulk:4",
            "bulk:2,up,congestion=reno",
            "web:6,size=5kB,think=50ms",
        ],
    );
    assert!(comes_true(|| {
        let reports = running.reports();
        reports[0].received_bytes > 500_000
            && reports[1].received_bytes > 500_000
            && reports[2].pages > 10
    }));
    let reports = running.stop();
    assert_eq!(reports[0].connections, 4);
    assert_eq!(reports[1].spec, "bulk:2,up,congestion=reno");
    assert!(reports[2].connections >= reports[2].pages);
    assert!(
        reports.iter().all(|report| report.failures == 0),
        "{reports:?}"
    );
    let report = emulation.stop().unwrap();
    assert!(report.forward.out_bytes > reports[0].received_bytes);
    let packets = emulation.take_packets();
    let first = [
        emulation.servers()[0].addr_v4(),
        emulation.clients()[0].addr_v4(),
    ];
    let of_first = |address: Option<IpAddr>| first.iter().any(|&v4| address == Some(v4.into()));
    assert!(packets.len() > 500);
    assert!(
        packets
            .iter()
            .all(|packet| !of_first(packet.src_addr) && !of_first(packet.dst_addr)),
        "the first pair is left alone"
    );
}

#[test]
fn a_window_bounds_what_is_in_flight() {
    let Some(mut emulation) = start_or_skip(symmetric("20mbit", "20ms", "drop-tail:100", 55))
    else {
        return;
    };
    let running = background(&emulation, &["bulk:1,window=8KiB"]);
    assert!(comes_true(|| running.reports()[0].received_bytes > 200_000));
    running.stop();
    emulation.stop().unwrap();
    let (mut acknowledged, mut most) = (HashMap::new(), 0);
    for packet in emulation.take_packets() {
        let Some(tcp) = packet.tcp.filter(|tcp| tcp.flags.ack()) else {
            continue;
        };
        match packet.direction {
            Direction::Reverse => drop(acknowledged.insert(packet.src_port, tcp.ack)),
            Direction::Forward => {
                let Some(ack) = acknowledged.get(&packet.dst_port) else {
                    continue;
                };
                let end = tcp.seq.wrapping_add(tcp.payload_bytes);
                most = most.max(end.wrapping_sub(*ack));
            }
        }
    }
    println!("most in flight: {most} bytes");
    assert!((4000..=8192).contains(&most), "{most}");
}

#[test]
fn what_is_drawn_by_lot_is_the_same_for_the_same_seed_and_the_traffic_begins_when_told() {
    let Some(emulation) = start_or_skip(symmetric("20mbit", "5ms", "drop-tail:100", 56)) else {
        return;
    };
    let running = background(&emulation, &["bulk:1,start=400ms"]);
    thread::sleep(Duration::from_millis(150));
    assert_eq!(running.reports()[0].connections, 0);
    assert!(comes_true(|| running.reports()[0].connections == 1));
    let refused = "bulk:1,congestion=no_such_thing".parse().unwrap();
    let refused = Background::start(&emulation, &[refused], 7).unwrap_err();
    assert!(
        refused.to_string().contains("no_such_thing")
            && refused.to_string().contains("there are: ")
    );
}
