//! The records of transfers, against what was seen on the wire.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::collections::HashSet;
use std::io::Read;
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use headstart_core::{Params, Startup, why_name};
use headstart_kernel::{
    Arm, Cgroup, CgroupId, Kernel, Options, Policy, PolicySpec, Rule, SHARE_ONE, Transfer,
};
use headstart_path::{Direction, PacketRecord};
use support::*;

fn rule(id: u32, control: Option<&str>) -> Rule {
    Rule {
        id,
        cgroup: None,
        ifindex: None,
        ports: (0, u16::MAX),
        destination: None,
        records: true,
        by_connection: false,
        arms: vec![Arm {
            share: SHARE_ONE,
            control: control.map(str::to_owned),
            ..Arm::default()
        }],
    }
}

fn policy_of(rules: Vec<Rule>) -> PolicySpec {
    PolicySpec {
        salt: 1,
        sample: SHARE_ONE,
        arm_bits_v4: 24,
        arm_bits_v6: 48,
        rules,
    }
}

/// Lane and cgroup membership are the process's.
static ONE_STAGE: Mutex<()> = Mutex::new(());

struct Stage {
    policy: Policy,
    lane: Lane,
    kernel: Kernel,
    cgroup: Cgroup,
    _alone: MutexGuard<'static, ()>,
}

/// With all start-ups: their names are the machine's, so that such a test holds the lock.
fn stage(rate: &str, rtt_ms: u64, queue_pkts: u32) -> Option<Stage> {
    stage_of(everything(), rate, rtt_ms, queue_pkts)
}

/// Without any: nothing of the machine's is taken, and no lock is needed.
fn native_stage(rate: &str, rtt_ms: u64, queue_pkts: u32) -> Option<Stage> {
    stage_of(Options::default(), rate, rtt_ms, queue_pkts)
}

/// A server in a cgroup that the policy is attached to. `None`: the test is skipped.
fn stage_of(options: Options, rate: &str, rtt_ms: u64, queue_pkts: u32) -> Option<Stage> {
    let options = Options {
        transfer_room_bytes: 1 << 20,
        ..options
    };
    let alone = ONE_STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let kernel = kernel(&options)?;
    let cgroup = Cgroup::create().unwrap();
    let policy = Policy::attach(&kernel, cgroup.path()).unwrap();
    let lane = inside(&cgroup, || Lane::new(&kernel, 1, rate, rtt_ms, queue_pkts));
    Some(Stage {
        policy,
        lane,
        kernel,
        cgroup,
        _alone: alone,
    })
}

impl Stage {
    /// The next `count` records: the last ACK may still be on its way.
    fn records(&self, count: usize) -> Vec<Transfer> {
        let mut taken = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(20);
        while taken.len() < count && Instant::now() < deadline {
            taken.extend(self.policy.take_transfers().unwrap());
            if self.policy.counts().unwrap().pending > 0 {
                self.policy.flush().unwrap();
            }
            sleep(Duration::from_millis(10));
        }
        assert_eq!(taken.len(), count, "{taken:?}");
        taken
    }
}

/// What a capture says of a transfer: of the data after the one before, whose last byte is `from_seq`.
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
    std::io::Write::write_all(&mut client.stream, b"2000000\n").unwrap();
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
    let server = stage.lane.emulation.server();
    let listener = inside(&stage.cgroup, || {
        server
            .run(|| std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap())
            .unwrap()
    });
    let to = listener.local_addr().unwrap();
    for _ in 0..20 {
        let mut client = server.run(|| TcpStream::connect(to).unwrap()).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut accepted, &[b'x'; 20_000]).unwrap();
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
    let server = stage.lane.emulation.server();
    let listener = inside(&stage.cgroup, || {
        server
            .run(|| std::net::TcpListener::bind(("::", 8081)).unwrap())
            .unwrap()
    });
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let control = std::ffi::OsString::from("su_standard");
        nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::TcpCongestion, &control)
            .unwrap();
        for _ in 0..2 {
            stream.read_exact(&mut [0]).unwrap();
            std::io::Write::write_all(&mut stream, &[b'x'; 50_000]).unwrap();
        }
        stream.read_exact(&mut [0]).unwrap();
    });
    let to = std::net::SocketAddr::new(stage.lane.server.ip(), 8081);
    let client = stage.lane.emulation.client();
    let mut stream = client.run(|| TcpStream::connect(to).unwrap()).unwrap();
    for index in 0..2 {
        std::io::Write::write_all(&mut stream, b"?").unwrap();
        stream.read_exact(&mut [0; 50_000]).unwrap();
        let record = &stage.records(1)[0];
        assert_eq!((record.bytes, record.complete), (50_000, true));
        assert_eq!(
            (record.index, record.control.as_str()),
            (index, "su_standard")
        );
        assert!(index > 0 || record.why.is_some(), "{record:?}");
    }
    std::io::Write::write_all(&mut stream, b"?").unwrap();
    serving.join().unwrap();
}

#[test]
fn the_connections_end_with_the_last_byte_is_no_byte_of_the_transfer() {
    let Some(mut stage) = native_stage("20mbit", 30, 400) else {
        return;
    };
    stage.policy.apply(&policy_of(vec![rule(1, None)])).unwrap();
    let listener = inside(&stage.cgroup, || {
        let server = stage.lane.emulation.server();
        server
            .run(|| std::net::TcpListener::bind(("::", 8081)).unwrap())
            .unwrap()
    });
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The FIN leaves with the last data.
        std::io::Write::write_all(&mut stream, &[b'x'; 50_000]).unwrap();
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
    let listener = inside(&stage.cgroup, || {
        let server = stage.lane.emulation.server();
        server
            .run(|| std::net::TcpListener::bind(("::", 8081)).unwrap())
            .unwrap()
    });
    let serving = std::thread::spawn(move || {
        let (mut paused, _) = listener.accept().unwrap();
        paused.set_nodelay(true).unwrap();
        // More before each ACK can have come back, so that it is one transfer, over several round trips.
        for _ in 0..20 {
            std::io::Write::write_all(&mut paused, &[b'x'; 1000]).unwrap();
            sleep(Duration::from_millis(20));
        }
        drop(paused);
        let (mut held, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut held, &[b'x'; 300_000]).unwrap();
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

#[test]
fn a_rule_chooses_by_port_prefix_and_cgroup_and_the_first_that_matches_decides() {
    let _lock = one_at_a_time();
    let Some(mut stage) = stage("20mbit", 20, 400) else {
        return;
    };
    let here = CgroupId::of(stage.cgroup.path()).unwrap();
    let elsewhere = CgroupId {
        id: here.id + 1,
        ..here
    };
    let mut by_cgroup = rule(1, Some("su_standard"));
    by_cgroup.cgroup = Some(elsewhere);
    let mut by_port = rule(2, Some("su_standard"));
    by_port.ports = (9000, 9999);
    let mut by_prefix = rule(3, Some("su_standard"));
    by_prefix.destination = Some(("10.78.0.0".parse().unwrap(), 16));
    let mut all_of_it = rule(4, Some("su_fast_start"));
    all_of_it.cgroup = Some(here);
    all_of_it.ports = (8080, 8080);
    all_of_it.destination = Some(("10.77.1.0".parse().unwrap(), 24));
    let rules = vec![by_cgroup, by_port, by_prefix, all_of_it, rule(5, None)];
    stage.policy.apply(&policy_of(rules)).unwrap();
    stage.lane.connect().fetch(5_000);
    let record = &stage.records(1)[0];
    assert_eq!(
        (record.rule_id, record.control.as_str()),
        (4, "su_fast_start")
    );
    let stats = stage.policy.rule_stats(4).unwrap();
    assert_eq!((stats.matched, stats.chosen, stats.app_chose), (1, 1, 0));
    assert_eq!(stage.policy.rule_stats(1).unwrap().matched, 0);
    let why = record.why.map(|(why, _)| why_name(why));
    assert!(why.is_some(), "{record:?}");
    // IPv6 falls through to the last rule, which leaves alone.
    stage.lane.connect_v6().fetch(5_000);
    let record = &stage.records(1)[0];
    assert_eq!(record.rule_id, 5);
    assert!(!record.control.starts_with("su_"));
}

#[test]
fn what_the_application_chose_itself_is_left_alone() {
    let Some(mut stage) = native_stage("20mbit", 20, 400) else {
        return;
    };
    stage
        .policy
        .apply(&policy_of(vec![rule(1, Some("reno"))]))
        .unwrap();
    // Also where it chose what it would have had anyway.
    for control in ["cubic", "reno", "bbr"] {
        stage.lane.server_uses(control);
        stage.lane.connect().fetch(5_000);
        assert_eq!(stage.records(1)[0].control, control);
    }
    let stats = stage.policy.rule_stats(1).unwrap();
    assert_eq!((stats.matched, stats.chosen, stats.app_chose), (3, 0, 3));
}

#[test]
fn two_rules_give_one_start_up_their_own_parameters_and_a_reload_leaves_open_connections_alone() {
    let _lock = one_at_a_time();
    let Some(mut stage) = stage("50mbit", 60, 400) else {
        return;
    };
    let with = |id: u32, iw_pkts: u64, port: u16| {
        let mut params = Params::new(Startup::named("su_standard").unwrap());
        params.set("iw_pkts", iw_pkts).unwrap();
        let mut rule = rule(id, Some("su_standard"));
        rule.arms[0].params = Some(params);
        rule.ports = (port, port);
        rule
    };
    stage
        .policy
        .apply(&policy_of(vec![with(1, 3, 8080), with(2, 20, 8081)]))
        .unwrap();
    let mut client = stage.lane.connect();
    client.fetch(50_000);
    assert_eq!(stage.records(1)[0].initial_cwnd_pkts, 3);
    stage
        .policy
        .apply(&policy_of(vec![with(3, 30, 8080)]))
        .unwrap();
    // Longer than the RTO: the window is cut to the restart window, which is the connection's own initial one.
    sleep(Duration::from_secs(3));
    client.fetch(50_000);
    let record = &stage.records(1)[0];
    assert_eq!((record.rule_id, record.initial_cwnd_pkts), (1, 3));
    stage.lane.connect().fetch(50_000);
    let record = &stage.records(1)[0];
    assert_eq!((record.rule_id, record.initial_cwnd_pkts), (3, 30));
}

#[test]
fn a_cap_is_above_every_window() {
    let Some(mut stage) = native_stage("50mbit", 60, 1000) else {
        return;
    };
    let mut capped = rule(1, Some("cubic"));
    capped.arms[0].cap_pkts = Some(16);
    stage.policy.apply(&policy_of(vec![capped])).unwrap();
    let mut client = stage.lane.connect();
    client.fetch(300_000);
    let record = &stage.records(1)[0];
    assert_eq!(record.control, "cubic");
    assert!(record.end_cwnd_pkts <= 16, "{record:?}");
}

#[test]
fn off_moves_live_connections_back_and_new_ones_are_left_alone() {
    let Some(mut stage) = native_stage("20mbit", 40, 400) else {
        return;
    };
    stage
        .policy
        .apply(&policy_of(vec![rule(1, Some("reno"))]))
        .unwrap();
    let mut client = stage.lane.connect();
    client.fetch(100_000);
    assert_eq!(stage.records(1)[0].control, "reno");
    assert_eq!(stage.policy.counts().unwrap().live(), 1);
    stage.policy.apply(&policy_of(Vec::new())).unwrap();
    // The walk sees the namespace that it is made in; here the connection is in another.
    stage.policy.move_back("cubic", None).unwrap();
    assert_eq!(stage.policy.counts().unwrap().moved, 0);
    let (policy, server) = (&stage.policy, stage.lane.emulation.server());
    in_namespace(server, || policy.move_back("cubic", None).unwrap());
    let counts = stage.policy.counts().unwrap();
    assert_eq!((counts.moved, counts.stayed, counts.live()), (1, 0, 0));
    client.fetch(100_000);
    assert_eq!(stage.records(1)[0].control, "cubic", "it is still recorded");
    stage.lane.connect().fetch(10_000);
    sleep(Duration::from_millis(200));
    assert!(stage.policy.take_transfers().unwrap().is_empty());
    drop(stage.kernel);
}

/// In the calling thread: what the policy holds stays on its thread.
fn in_namespace(namespace: &headstart_path::Namespace, work: impl FnOnce()) {
    let own = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
    let other = namespace
        .run(|| std::fs::File::open("/proc/thread-self/ns/net").unwrap())
        .unwrap();
    nix::sched::setns(other, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
    work();
    nix::sched::setns(own, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
}
