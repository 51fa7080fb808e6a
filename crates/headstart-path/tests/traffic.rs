//! Real packets through a real path. Margins are wide enough for a loaded machine.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod common;

use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{comes_true, numbers_received, start_or_skip, symmetric, transfer, udp};
use headstart_path::{Direction, DropReason, Emulation, PacketFate, PathError};

/// Sends numbered datagrams from the server to the client, all at once.
fn burst(emulation: &Emulation, datagrams: u32, bytes: usize) -> (UdpSocket, UdpSocket) {
    let (from, to) = (emulation.server(), emulation.client());
    let (sender, receiver) = (udp(from, 0), udp(to, 9000));
    let mut payload = vec![0; bytes];
    for number in 0..datagrams {
        payload[..4].copy_from_slice(&number.to_be_bytes());
        sender.send_to(&payload, (to.addr_v4(), 9000)).unwrap();
    }
    (sender, receiver)
}

#[test]
fn a_round_trip_takes_at_least_the_configured_time() {
    let Some(emulation) = start_or_skip(symmetric("100mbit", "30ms", "drop-tail:100", 1)) else {
        return;
    };
    let took = transfer(&emulation, emulation.server().addr_v4().into(), 1000).connect;
    assert!(took >= Duration::from_millis(60), "{took:?}");
    assert!(took < Duration::from_millis(160), "{took:?}");
}

#[test]
fn ipv6_works_at_once_and_takes_as_long() {
    let Some(emulation) = start_or_skip(symmetric("100mbit", "30ms", "drop-tail:100", 2)) else {
        return;
    };
    let took = transfer(&emulation, emulation.server().addr_v6().into(), 1000).connect;
    assert!(took >= Duration::from_millis(60), "{took:?}");
    assert!(took < Duration::from_millis(160), "{took:?}");
    assert!(
        emulation
            .take_packets()
            .iter()
            .all(|packet| packet.ip_version == 6)
    );
}

#[test]
fn tcp_gets_the_rate_that_was_asked_for() {
    let Some(mut emulation) = start_or_skip(symmetric("12mbit", "10ms", "drop-tail:100", 3)) else {
        return;
    };
    let done = transfer(&emulation, emulation.server().addr_v4().into(), 3_000_000);
    assert_eq!(done.bytes, 3_000_000);
    let goodput_bits_per_s = done.bytes as f64 * 8.0 / done.flow.as_secs_f64();
    let share = goodput_bits_per_s / (12e6 * 1448.0 / 1500.0);
    let report = emulation.stop().unwrap();
    println!("share of the rate: {share:.5}; {report:?}");
    assert!(share > 0.85, "{share}");
    // The first read gave more than nothing before the clock started: a few packets of 2000.
    assert!(share < 1.02, "{share}");
    assert!(report.forward.utilisation > 0.8, "{report:?}");
    let forward = &report.forward;
    let in_flight = forward.in_pkts - forward.out_pkts - forward.dropped_pkts.total();
    assert!(
        in_flight <= 2,
        "at most the end of the connection: {forward:?}"
    );
    assert!(report.forward.out_bytes > 3_000_000);
}

#[test]
fn a_queue_that_is_overrun_drops_and_the_log_agrees() {
    // 1500 bytes take 12 ms: the burst is long over before the queue has moved.
    let Some(mut emulation) = start_or_skip(symmetric("1mbit", "5ms", "drop-tail:5", 4)) else {
        return;
    };
    let (_sender, receiver) = burst(&emulation, 50, 1472);
    let numbers = numbers_received(&receiver);
    let packets = emulation.take_packets();
    let report = emulation.stop().unwrap();
    // One in transmission, five waiting; a machine that is late with the burst lets a few more through.
    assert!((6..=20).contains(&numbers.len()), "{numbers:?}");
    assert!(numbers.is_sorted());
    assert_eq!(packets.len(), 50);
    let full = PacketFate::Dropped(DropReason::QueueFull);
    let dropped = packets.iter().filter(|packet| packet.fate == full).count();
    assert_eq!(dropped + numbers.len(), 50);
    assert_eq!(
        report.forward.dropped_pkts.of(DropReason::QueueFull),
        dropped as u64
    );
    assert_eq!(report.forward.longest_queue_pkts, 5);
    assert!(
        packets
            .iter()
            .all(|packet| (packet.fate == full) == (packet.queue_len_pkts == 5))
    );
}

#[test]
fn every_datagram_is_in_the_log_once_and_nothing_else() {
    let Some(mut emulation) = start_or_skip(symmetric("50mbit", "5ms", "drop-tail:1000", 5)) else {
        return;
    };
    let (sender, receiver) = burst(&emulation, 200, 100);
    assert_eq!(numbers_received(&receiver), (0..200).collect::<Vec<u32>>());
    // A record follows its packet: the last may be a moment behind the receiver.
    let mut packets = emulation.take_packets();
    assert!(comes_true(
        || emulation.report().unwrap().forward.out_pkts == 200
    ));
    packets.extend(emulation.take_packets());
    assert_eq!(
        packets.len(),
        200,
        "nothing but the datagrams is on the path"
    );
    for packet in &packets {
        assert_eq!(
            (packet.direction, packet.fate),
            (Direction::Forward, PacketFate::Delivered)
        );
        assert_eq!(
            (packet.ip_version, packet.protocol, packet.wire_bytes),
            (4, 17, 128)
        );
        assert_eq!(packet.src_port, sender.local_addr().unwrap().port());
        assert_eq!((packet.dst_port, packet.tcp), (9000, None));
        assert!(packet.left_ns.unwrap() - packet.at_ns >= 5_000_000);
    }
    assert!(packets.is_sorted_by_key(|packet| packet.at_ns));
    assert!(emulation.take_packets().is_empty());
    assert_eq!(emulation.stop().unwrap().forward.out_pkts, 200);
}

#[test]
fn what_is_in_the_link_at_the_stop_is_logged_as_in_flight() {
    let Some(mut emulation) = start_or_skip(symmetric("50mbit", "20s", "drop-tail:100", 6)) else {
        return;
    };
    let _sockets = burst(&emulation, 10, 100);
    assert!(comes_true(
        || emulation.report().unwrap().forward.in_pkts == 10
    ));
    assert!(emulation.take_packets().is_empty(), "no fate is known yet");
    emulation.stop().unwrap();
    let packets = emulation.take_packets();
    assert_eq!(packets.len(), 10);
    assert!(
        packets
            .iter()
            .all(|p| p.fate == PacketFate::InFlight && p.left_ns.is_none())
    );
}

#[test]
fn the_log_shows_a_tcp_connection_as_it_was() {
    let Some(mut emulation) = start_or_skip(symmetric("50mbit", "5ms", "drop-tail:100", 7)) else {
        return;
    };
    transfer(&emulation, emulation.server().addr_v4().into(), 20_000);
    emulation.stop().unwrap();
    let packets = emulation.take_packets();
    let first = packets[0].tcp.unwrap();
    assert!(first.flags.syn() && !first.flags.ack());
    assert_eq!(packets[0].direction, Direction::Reverse);
    let data = packets
        .iter()
        .filter(|packet| packet.direction == Direction::Forward);
    let payload_bytes: u32 = data
        .filter_map(|packet| packet.tcp)
        .map(|t| t.payload_bytes)
        .sum();
    assert_eq!(payload_bytes, 20_000);
    assert!(
        packets.iter().all(|packet| packet.wire_bytes <= 1500),
        "no offload"
    );
}

#[test]
fn two_paths_side_by_side_do_not_disturb_each_other() {
    let slow = symmetric("10mbit", "40ms", "drop-tail:100", 8);
    let quick = symmetric("20mbit", "5ms", "drop-tail:100", 9);
    let (Some(slow), Some(quick)) = (start_or_skip(slow), start_or_skip(quick)) else {
        return;
    };
    assert_eq!(slow.server().addr_v4().to_string(), "10.77.8.1");
    assert_eq!(quick.client().addr_v6().to_string(), "fd77:0:9::2");
    let (slow_took, quick_took) = std::thread::scope(|scope| {
        let go = |path| move || transfer(path, path.server().addr_v4().into(), 500_000);
        let (slow, quick) = (scope.spawn(go(&slow)), scope.spawn(go(&quick)));
        (slow.join().unwrap(), quick.join().unwrap())
    });
    assert!(slow_took.connect >= Duration::from_millis(80));
    assert!(quick_took.connect >= Duration::from_millis(10));
    assert!(
        quick_took.connect < Duration::from_millis(80),
        "{:?}",
        quick_took.connect
    );
    let stray = |path: &Emulation| {
        path.take_packets()
            .iter()
            .any(|packet| packet.protocol != 6)
    };
    assert!(!stray(&slow) && !stray(&quick));
}

#[test]
fn a_setting_of_one_namespace_is_nobody_elses() {
    let Some(emulation) = start_or_skip(symmetric("10mbit", "1ms", "drop-tail:10", 10)) else {
        return;
    };
    let name = "/proc/sys/net/ipv4/tcp_congestion_control";
    let (machine, read) = (std::fs::read_to_string(name).unwrap(), || {
        std::fs::read_to_string(name)
    });
    let before = emulation.client().run(read).unwrap().unwrap();
    emulation
        .server()
        .set_sysctl("net.ipv4.tcp_congestion_control", "reno")
        .unwrap();
    assert_eq!(emulation.server().run(read).unwrap().unwrap(), "reno\n");
    assert_eq!(emulation.client().run(read).unwrap().unwrap(), before);
    assert_eq!(read().unwrap(), machine);
    let refused = emulation
        .server()
        .set_sysctl("net.ipv4.no_such_thing", "1")
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("cannot set net.ipv4.no_such_thing to \"1\""),
        "{refused}"
    );
    assert!(emulation.server().set_sysctl("vm.swappiness", "1").is_err());
    assert!(
        emulation
            .server()
            .set_sysctl("net./../vm.swappiness", "1")
            .is_err()
    );
}

#[test]
fn a_command_runs_inside_and_its_port_is_seen() {
    let Some(emulation) = start_or_skip(symmetric("10mbit", "1ms", "drop-tail:10", 11)) else {
        return;
    };
    let server = emulation.server();
    assert!(server.listening_tcp_ports().unwrap().is_empty());
    let listener = server
        .run(|| std::net::TcpListener::bind("0.0.0.0:8080").unwrap())
        .unwrap();
    assert_eq!(server.listening_tcp_ports().unwrap(), [8080]);
    assert!(emulation.client().listening_tcp_ports().unwrap().is_empty());
    drop(listener);

    let inside = |mut child: std::process::Child| {
        let mut shown = String::new();
        std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut shown).unwrap();
        child.wait().unwrap();
        shown.trim().to_owned()
    };
    let mut command = Command::new("readlink");
    command.arg("/proc/self/ns/net").stdout(Stdio::piped());
    server.command(&mut command).unwrap();
    assert_eq!(
        inside(command.spawn().unwrap()),
        format!("net:[{}]", server.inode())
    );
    let mut command = Command::new("readlink");
    command.arg("/proc/self/ns/net").stdout(Stdio::piped());
    let child = emulation.client().spawn(command).unwrap();
    assert_eq!(
        inside(child),
        format!("net:[{}]", emulation.client().inode())
    );

    let missing = server.spawn(Command::new("no-such-program")).unwrap_err();
    assert!(matches!(missing, PathError::Command { .. }));
    assert!(missing.to_string().contains("no-such-program"));
}

#[test]
fn a_path_is_up_and_down_within_a_second() {
    let started = Instant::now();
    let Some(mut emulation) = start_or_skip(symmetric("10mbit", "1ms", "drop-tail:10", 12)) else {
        return;
    };
    let up = started.elapsed();
    emulation.stop().unwrap();
    println!("up in {up:?}, down in {:?}", started.elapsed() - up);
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_queue_without_room_is_refused_before_anything_is_made() {
    let mut config = symmetric("10mbit", "1ms", "drop-tail:10", 13);
    config.reverse.queue = headstart_path::QueueSpec::drop_tail(0);
    let refused = headstart_path::Emulation::start(config).unwrap_err();
    assert!(matches!(
        refused,
        PathError::BadQueue {
            direction: "reverse",
            ..
        }
    ));
    assert!(!refused.cannot_here());
}
