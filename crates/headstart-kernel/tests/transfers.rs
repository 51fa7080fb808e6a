//! The records of transfers, against what was seen on the wire.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use headstart_kernel::Transfer;
use headstart_path::{Direction, PacketRecord};
use support::*;

/// What a capture says of a transfer.
#[derive(Debug)]
struct Seen {
    first_data_ns: u64,
    last_ack_ns: u64,
    bytes: u64,
    retransmitted_pkts: u32,
    retransmitted_bytes: u64,
}

fn seen(packets: &[PacketRecord]) -> Seen {
    let all = data(packets);
    let first = all.first().unwrap().tcp.unwrap();
    let mut end = first.seq;
    let mut starts = HashSet::new();
    let (mut retransmitted_pkts, mut retransmitted_bytes) = (0, 0);
    for packet in &all {
        let tcp = packet.tcp.unwrap();
        let next = tcp.seq.wrapping_add(tcp.payload_bytes);
        if !starts.insert(tcp.seq) || (tcp.seq.wrapping_sub(end) as i32) < 0 {
            retransmitted_pkts += 1;
            retransmitted_bytes += u64::from(tcp.payload_bytes);
        }
        if (next.wrapping_sub(end) as i32) > 0 {
            end = next;
        }
    }
    let last_ack = packets
        .iter()
        .filter(|packet| packet.direction == Direction::Reverse)
        .filter(|packet| {
            packet
                .tcp
                .is_some_and(|tcp| tcp.flags.ack() && (tcp.ack.wrapping_sub(end) as i32) >= 0)
        })
        .filter_map(|packet| packet.left_ns)
        .min()
        .unwrap();
    Seen {
        first_data_ns: all[0].at_ns,
        last_ack_ns: last_ack,
        bytes: u64::from(end.wrapping_sub(first.seq)),
        retransmitted_pkts,
        retransmitted_bytes,
    }
}

/// The router reads a packet some time after it was sent: how long depends on the load of the machine, so that this
/// is wide. On an idle one it is some tens of us.
const ROUTER_LATENESS_NS: u64 = 20_000_000;

fn assert_equal(record: &Transfer, seen: &Seen) {
    assert!(record.complete);
    assert_eq!(record.bytes, seen.bytes, "{record:?}");
    assert_eq!(
        record.retransmitted_pkts, seen.retransmitted_pkts,
        "{record:?}"
    );
    assert_eq!(
        record.retransmitted_bytes, seen.retransmitted_bytes,
        "{record:?}"
    );
    let wire_ns = seen.last_ack_ns - seen.first_data_ns;
    let apart_ns = (record.end_ns - record.start_ns).abs_diff(wire_ns);
    eprintln!(
        "{}: {} bytes, {} retransmitted, {} us; {} us from what the wire says",
        record.control,
        record.bytes,
        record.retransmitted_pkts,
        record.latency_us(),
        apart_ns / 1000,
    );
    assert!(record.start_ns <= seen.first_data_ns, "{record:?} {seen:?}");
    assert!(apart_ns < ROUTER_LATENESS_NS, "{record:?} {seen:?}");
}

#[test]
fn a_record_says_what_the_wire_says_under_the_kernels_own_controls() {
    if let Some(stage) = native_stage("20mbit", 60, 1000) {
        compare_with_the_wire(stage, &["cubic", "bbr", "reno"]);
    }
}

#[test]
fn a_record_says_what_the_wire_says_under_start_ups() {
    let _lock = one_at_a_time();
    if let Some(stage) = stage("20mbit", 60, 1000) {
        compare_with_the_wire(stage, &["su_standard", "su_fast_start"]);
    }
}

fn compare_with_the_wire(mut stage: Stage, controls: &[&str]) {
    stage.policy.apply(&policy_of(vec![rule(7, None)])).unwrap();
    for control in controls.iter().copied() {
        stage.lane.server_uses(control);
        let mut client = stage.lane.connect();
        for (index, bytes) in [20_000, 1, 400_000].into_iter().enumerate() {
            client.fetch(bytes);
            let records = stage.records(1);
            let wire = stage.lane.wire(&client);
            let record = &records[0];
            assert_equal(record, &seen(&wire));
            assert_eq!(record.bytes, bytes as u64);
            assert_eq!(record.control, control);
            assert_eq!((record.rule_id, record.arm), (7, 0));
            assert_eq!(record.index, index as u32);
            assert_eq!(record.local_port, stage.lane.server.port());
            assert_eq!(record.remote_port, client.port);
            assert_eq!(record.remote_addr.to_string(), "10.77.1.2");
            assert!(record.passive);
            assert!(record.min_rtt_us.unwrap() >= 60_000);
            assert!(record.mss_bytes > 1000);
            if index == 0 {
                assert_eq!(record.idle_ns, None);
            }
            // The others remember nothing; what su_standard learnt of the path is su_fast_start's memory.
            if index == 0 && control == "su_fast_start" {
                assert!(
                    record.path_hit && record.initial_cwnd_pkts > 10,
                    "{record:?}"
                );
            } else if index == 0 {
                assert_eq!(record.initial_cwnd_pkts, 10);
            }
        }
    }
}

#[test]
fn retransmissions_and_timeouts_are_those_of_the_wire() {
    // A queue that slow start overflows.
    let Some(mut stage) = native_stage("10mbit", 80, 15) else {
        return;
    };
    stage.policy.apply(&policy_of(vec![rule(1, None)])).unwrap();
    let mut any = 0;
    for control in ["cubic", "bbr", "reno"] {
        stage.lane.server_uses(control);
        let mut client = stage.lane.connect();
        for bytes in [600_000, 300_000] {
            client.fetch(bytes);
            let records = stage.records(1);
            assert_equal(&records[0], &seen(&stage.lane.wire(&client)));
            any += records[0].retransmitted_pkts;
        }
    }
    assert!(any > 0, "nothing was lost: the test shows nothing");
}

/// Without timestamps an ACK of what was sent twice gives no RTT sample: where it is a transfer's last, nothing of the
/// stack's tells us.
#[test]
fn without_timestamps_records_say_what_the_wire_says_all_the_same() {
    let Some(mut stage) = native_stage("10mbit", 80, 15) else {
        return;
    };
    let client = stage.lane.emulation.client();
    client.set_sysctl("net.ipv4.tcp_timestamps", "0").unwrap();
    stage.policy.apply(&policy_of(vec![rule(1, None)])).unwrap();
    let mut any = 0;
    for control in ["cubic", "bbr", "reno"] {
        stage.lane.server_uses(control);
        let mut client = stage.lane.connect();
        // Sizes at whose ends slow start has overflown the queue, with whatever is repaired last.
        for bytes in [60_000, 70_000, 80_000, 90_000] {
            client.fetch(bytes);
            let records = stage.records(1);
            assert_equal(&records[0], &seen(&stage.lane.wire(&client)));
            assert_eq!(records[0].bytes, bytes as u64);
            any += records[0].retransmitted_pkts;
        }
    }
    assert!(any > 0, "nothing was lost: the test shows nothing");
}

#[test]
fn ipv6_is_recorded_alike() {
    let Some(mut stage) = native_stage("20mbit", 20, 400) else {
        return;
    };
    stage.policy.apply(&policy_of(vec![rule(1, None)])).unwrap();
    let mut client = stage.lane.connect_v6();
    client.fetch(100_000);
    let records = stage.records(1);
    assert_equal(&records[0], &seen(&stage.lane.wire(&client)));
    assert_eq!(records[0].remote_addr.to_string(), "fd77:0:1::2");
}

#[test]
fn a_connection_that_is_broken_off_leaves_an_incomplete_record() {
    let Some(mut stage) = native_stage("5mbit", 50, 400) else {
        return;
    };
    stage.policy.apply(&policy_of(vec![rule(1, None)])).unwrap();
    let mut client = stage.lane.connect();
    client.stream.write_all(b"2000000\n").unwrap();
    let mut some = [0; 10_000];
    client.stream.read_exact(&mut some).unwrap();
    // What the peer has not read becomes a reset.
    drop(client);
    let records = stage.records(1);
    assert!(!records[0].complete);
    assert!(records[0].bytes >= 10_000 && records[0].bytes < 2_000_000);
}

/// On loopback the ACK comes before the stack has counted the packet as sent.
#[test]
fn a_transfer_to_the_same_machine_is_recorded_though_it_is_acknowledged_while_it_is_sent() {
    let Some(mut stage) = native_stage("20mbit", 30, 400) else {
        return;
    };
    stage.policy.apply(&policy_of(vec![rule(1, None)])).unwrap();
    let listener = stage.listen(("127.0.0.1", 0));
    let to = listener.local_addr().unwrap();
    let server = stage.lane.emulation.server();
    for _ in 0..20 {
        let mut client = server.run(|| TcpStream::connect(to).unwrap()).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        accepted.write_all(&[b'x'; 20_000]).unwrap();
        client.read_exact(&mut [0; 20_000]).unwrap();
        drop(accepted);
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        drop(client);
        let record = &stage.records(1)[0];
        assert_eq!((record.bytes, record.complete), (20_000, true));
        assert!(record.end_ns >= record.start_ns, "{record:?}");
    }
}

/// Its flow was in the table; the start-up looks for it in the socket.
#[test]
fn a_start_up_that_the_application_chooses_after_the_handshake_is_in_the_record_with_its_words() {
    let _lock = one_at_a_time();
    let Some(mut stage) = stage("20mbit", 30, 400) else {
        return;
    };
    stage.policy.apply(&policy_of(vec![rule(1, None)])).unwrap();
    let listener = stage.listen(("::", 8081));
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let control = std::ffi::OsString::from("su_standard");
        nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::TcpCongestion, &control)
            .unwrap();
        for _ in 0..2 {
            stream.read_exact(&mut [0]).unwrap();
            stream.write_all(&[b'x'; 50_000]).unwrap();
        }
        stream.read_exact(&mut [0]).unwrap();
    });
    let to = std::net::SocketAddr::new(stage.lane.server.ip(), 8081);
    let client = stage.lane.emulation.client();
    let mut stream = client.run(|| TcpStream::connect(to).unwrap()).unwrap();
    for index in 0..2 {
        stream.write_all(b"?").unwrap();
        stream.read_exact(&mut [0; 50_000]).unwrap();
        let record = &stage.records(1)[0];
        assert_eq!((record.bytes, record.complete), (50_000, true));
        assert_eq!(
            (record.index, record.control.as_str()),
            (index, "su_standard")
        );
        assert!(index > 0 || record.why.is_some(), "{record:?}");
    }
    stream.write_all(b"?").unwrap();
    serving.join().unwrap();
}

#[test]
fn the_connections_end_with_the_last_byte_is_no_byte_of_the_transfer() {
    let Some(mut stage) = native_stage("20mbit", 30, 400) else {
        return;
    };
    stage.policy.apply(&policy_of(vec![rule(1, None)])).unwrap();
    let listener = stage.listen(("::", 8081));
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The FIN leaves with the last data.
        stream.write_all(&[b'x'; 50_000]).unwrap();
    });
    let to = std::net::SocketAddr::new(stage.lane.server.ip(), 8081);
    let mut stream = stage
        .lane
        .emulation
        .client()
        .run(|| TcpStream::connect(to).unwrap())
        .unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    drop(stream);
    serving.join().unwrap();
    let records = stage.records(1);
    assert!(records[0].complete);
    assert_eq!(records[0].bytes, 50_000);
}

#[test]
fn an_application_that_pauses_and_a_peer_with_a_small_window_are_told_apart() {
    let Some(mut stage) = native_stage("20mbit", 100, 400) else {
        return;
    };
    stage.policy.apply(&policy_of(vec![rule(1, None)])).unwrap();
    let listener = stage.listen(("::", 8081));
    let serving = std::thread::spawn(move || {
        let (mut paused, _) = listener.accept().unwrap();
        paused.set_nodelay(true).unwrap();
        // More before each ACK can have come back, so that it is one transfer, over several round trips.
        for _ in 0..20 {
            paused.write_all(&[b'x'; 1000]).unwrap();
            sleep(Duration::from_millis(20));
        }
        drop(paused);
        let (mut held, _) = listener.accept().unwrap();
        held.write_all(&[b'x'; 300_000]).unwrap();
    });
    let to = std::net::SocketAddr::new(stage.lane.server.ip(), 8081);
    let client = stage.lane.emulation.client();
    let fetch = || {
        let mut stream = client.run(|| TcpStream::connect(to).unwrap()).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all.len()
    };
    assert_eq!(fetch(), 20_000);
    let paused = stage.records(1);
    assert!(
        paused[0].app_limited && !paused[0].peer_limited,
        "{paused:?}"
    );
    client
        .set_sysctl("net.ipv4.tcp_rmem", "4096 8192 8192")
        .unwrap();
    assert_eq!(fetch(), 300_000);
    let held = stage.records(1);
    assert!(held[0].peer_limited && !held[0].app_limited, "{held:?}");
    assert!(held[0].peer_initial_window_bytes < 20_000);
    serving.join().unwrap();
}
