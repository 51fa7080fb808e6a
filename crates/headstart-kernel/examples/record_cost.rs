//! What records cost: CPU time of a connection of 20 KB over loopback, without us, with a policy that matches
//! nothing, and with each transfer recorded. Both ends are in this process; the three take turns.
//!
//! `cargo run --release -p headstart-kernel --example record_cost` (as root)

#![allow(
    clippy::unwrap_used,
    reason = "a measurement that cannot go on ends with the reason"
)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use headstart_kernel::{Arm, Cgroup, Kernel, Options, Policy, PolicySpec, Rule, SHARE_ONE};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{UsageWho, getrusage};

const BYTES: usize = 20_000;
const CONNECTIONS: u32 = 300;
const TURNS: usize = 30;

fn cpu_us() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let us = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 * 1e6 + time.tv_usec() as f64;
    us(usage.user_time()) + us(usage.system_time())
}

fn batch(listener: &TcpListener) -> f64 {
    let data = [b'x'; BYTES];
    let mut got = [0; BYTES];
    let to = listener.local_addr().unwrap();
    let before = cpu_us();
    for _ in 0..CONNECTIONS {
        let mut client = TcpStream::connect(to).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(&data).unwrap();
        client.read_exact(&mut got).unwrap();
    }
    (cpu_us() - before) / f64::from(CONNECTIONS)
}

fn spec(rules: Vec<Rule>) -> PolicySpec {
    PolicySpec {
        salt: 0,
        sample: SHARE_ONE,
        arm_bits_v4: 24,
        arm_bits_v6: 48,
        rules,
    }
}

fn main() {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    let up = std::process::Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status();
    assert!(up.unwrap().success());
    let cgroup = Cgroup::create().unwrap();
    let home = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let home = home
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .unwrap()
        .to_owned();
    let root = cgroup.path().parent().unwrap().to_owned();
    let pid = std::process::id().to_string();
    std::fs::write(cgroup.path().join("cgroup.procs"), &pid).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = Options {
        transfer_room_bytes: 1 << 24,
        ..Options::default()
    };
    let kernel = Kernel::load(&options).unwrap();
    let port = listener.local_addr().unwrap().port();
    let recorded = Rule {
        id: 1,
        cgroup: None,
        ifindex: None,
        // The server's side alone, as on a server.
        ports: (port, port),
        destination: None,
        records: true,
        by_connection: false,
        arms: vec![Arm {
            share: SHARE_ONE,
            ..Arm::default()
        }],
    };
    let mut seen: [Vec<f64>; 3] = Default::default();
    let mut records = 0;
    batch(&listener);
    for _ in 0..TURNS {
        seen[0].push(batch(&listener));
        let mut policy = Policy::attach(&kernel, cgroup.path()).unwrap();
        seen[1].push(batch(&listener));
        policy.apply(&spec(vec![recorded.clone()])).unwrap();
        seen[2].push(batch(&listener));
        std::thread::sleep(Duration::from_millis(20));
        records += policy.take_transfers().unwrap().len();
    }
    std::fs::write(
        root.join(home.trim_start_matches('/')).join("cgroup.procs"),
        &pid,
    )
    .unwrap();
    println!("CPU time of a connection, us: least, median of {TURNS} turns of {CONNECTIONS}");
    for (name, mut turns) in ["without", "no rule", "recorded"].into_iter().zip(seen) {
        turns.sort_by(f64::total_cmp);
        println!("{name:10} {:6.1} {:6.1}", turns[0], turns[TURNS / 2]);
    }
    println!("{records} records");
}
