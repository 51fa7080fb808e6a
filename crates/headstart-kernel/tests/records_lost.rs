//! Records that find no room: each is counted, and none is lost that is not.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use headstart_kernel::{Cgroup, Kernel, Options, Policy, Transfer};
use nix::sys::resource::{Resource, setrlimit};
use support::{Inside, policy_of, rule_of_port};

const ROOM_BYTES: u32 = 1 << 12;
/// 144 bytes and 8 before them (`BPF_RINGBUF_HDR_SZ`).
const ROOM_RECORDS: usize = (ROOM_BYTES / 152) as usize;

/// Question and answer: each answer is a transfer of the server, which ends with the next question's ACK.
fn answers(client: &mut TcpStream, server: &mut TcpStream, number: usize) {
    let mut byte = [0];
    for _ in 0..number {
        client.write_all(b"?").unwrap();
        server.read_exact(&mut byte).unwrap();
        server.write_all(b"!").unwrap();
        client.read_exact(&mut byte).unwrap();
    }
}

/// A cgroup is the whole process's.
static ONE_INSIDE: Mutex<()> = Mutex::new(());

#[test]
fn what_finds_no_room_is_counted_and_with_room_nothing_is_lost() {
    // No name is registered: no lock is needed.
    let Some(kernel): Option<Kernel> = support::kernel(&Options {
        transfer_room_bytes: ROOM_BYTES,
        ..Options::default()
    }) else {
        return;
    };
    let _alone = ONE_INSIDE.lock().unwrap_or_else(PoisonError::into_inner);
    let cgroup = Cgroup::create().unwrap();
    let inside = Inside::of(&cgroup);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let mut policy = Policy::attach(&kernel, cgroup.path()).unwrap();
    let rules = vec![rule_of_port(1, to.port())];
    policy.apply(&policy_of(rules)).unwrap();
    let mut client = TcpStream::connect(to).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();

    answers(&mut client, &mut server, 1000);
    let counts = policy.counts().unwrap();
    let (recorded, lost) = (counts.recorded, counts.records_lost);
    // The last answer's ACK may be on its way, and its record too.
    assert!((999..=1000).contains(&(recorded + lost)), "{counts:?}");
    assert!(
        recorded > 0 && recorded <= ROOM_RECORDS as u64,
        "{counts:?}"
    );
    let first: Vec<Transfer> = policy.take_transfers().unwrap();
    assert_eq!(first.len() as u64, recorded);

    let mut taken = 0;
    for _ in 0..100 {
        answers(&mut client, &mut server, 10);
        taken += policy.take_transfers().unwrap().len() as u64;
    }
    let after = policy.counts().unwrap();
    assert!(
        after.records_lost - lost <= 1,
        "but for the one under way: {after:?}"
    );
    assert_eq!(taken, after.recorded - recorded);
    assert!((1999..=2000).contains(&(after.recorded + after.records_lost)));
    drop(inside);
}

/// Those that find their place in the table taken have their flows elsewhere (`bpf/slots.h`).
#[test]
fn more_connections_than_the_table_has_places_are_all_recorded() {
    const PLACES: usize = 8192;
    const CONNECTIONS: usize = PLACES + 800;
    let Some(kernel): Option<Kernel> = support::kernel(&Options {
        transfer_room_bytes: 1 << 22,
        ..Options::default()
    }) else {
        return;
    };
    // Two descriptors each.
    let descriptors = Resource::RLIMIT_NOFILE;
    setrlimit(descriptors, 20_000, 20_000).unwrap();
    let _alone = ONE_INSIDE.lock().unwrap_or_else(PoisonError::into_inner);
    let cgroup = Cgroup::create().unwrap();
    let inside = Inside::of(&cgroup);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let mut policy = Policy::attach(&kernel, cgroup.path()).unwrap();
    let rules = vec![rule_of_port(1, to.port())];
    policy.apply(&policy_of(rules)).unwrap();
    let mut pairs: Vec<(TcpStream, TcpStream)> = (0..CONNECTIONS)
        .map(|_| {
            let client = TcpStream::connect(to).unwrap();
            (client, listener.accept().unwrap().0)
        })
        .collect();
    for (client, server) in &mut pairs {
        server.write_all(b"!").unwrap();
        client.read_exact(&mut [0]).unwrap();
    }
    drop(pairs);
    let mut taken: Vec<Transfer> = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(20);
    while taken.len() < CONNECTIONS && Instant::now() < deadline {
        policy.flush().unwrap();
        taken.extend(policy.take_transfers().unwrap());
        sleep(Duration::from_millis(20));
    }
    assert_eq!(taken.len(), CONNECTIONS);
    let whole = |transfer: &&Transfer| transfer.complete && transfer.bytes == 1;
    assert_eq!(taken.iter().filter(whole).count(), CONNECTIONS);
    drop(inside);
}
