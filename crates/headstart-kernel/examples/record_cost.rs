//! What records cost: CPU time of a connection of 20 KB over loopback, without us, with a policy that has no rule, and
//! with each transfer of the server recorded. Both ends are in this process, the three take turns, and what is said is
//! the median of the differences within a round. Then, by the kernel's own count, what each program was called for and
//! took: that count costs some, so that these connections are others.
//!
//! `cargo run --release -p headstart-kernel --example record_cost [ROUNDS [without|attached|recorded]]` (as root). With a
//! name that contestant alone runs, for a profiler.

#![allow(
    clippy::unwrap_used,
    reason = "a measurement that cannot go on ends with the reason"
)]

#[path = "../tests/support/inside.rs"]
mod inside;
#[path = "../tests/support/rules.rs"]
mod rules;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::FromRawFd;
use std::time::Duration;

use headstart_kernel::{Cgroup, Kernel, Options, Policy};
use inside::inside;
use libbpf_rs::query::ProgInfoIter;
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{UsageWho, getrusage};
use rules::{policy_of, rule_of_port};

const BYTES: usize = 20_000;
const CONNECTIONS: u32 = 300;
const ROUNDS: usize = 200;
const NAMES: [&str; 3] = ["without", "attached", "recorded"];

fn cpu_us() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let us = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 * 1e6 + time.tv_usec() as f64;
    us(usage.user_time()) + us(usage.system_time())
}

/// CPU time of a connection, us.
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

struct Stage {
    listener: TcpListener,
    cgroup: Cgroup,
    kernel: Kernel,
}

impl Stage {
    fn policy(&self, which: usize) -> Option<Policy> {
        if which == 0 {
            return None;
        }
        let mut policy = Policy::attach(&self.kernel, self.cgroup.path()).unwrap();
        let port = self.listener.local_addr().unwrap().port();
        let rules = match which {
            2 => vec![rule_of_port(1, port)],
            _ => vec![],
        };
        policy.apply(&policy_of(rules)).unwrap();
        Some(policy)
    }

    /// CPU time of a connection, us, and how many records came of it.
    fn turn(&self, which: usize) -> (f64, usize) {
        let policy = self.policy(which);
        let cpu_us = batch(&self.listener);
        std::thread::sleep(Duration::from_millis(5));
        let records = policy.map_or(0, |policy| policy.take_transfers().unwrap().len());
        (cpu_us, records)
    }

    /// Calls and time of each program, by a connection.
    fn programs(&self, rounds: usize) {
        // SAFETY: it takes no pointers, and what it returns is ours.
        let counting = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        assert!(counting >= 0, "the kernel does not count");
        // SAFETY: it was just opened, and nothing else owns it. The kernel counts until it is closed.
        let _counting = unsafe { fs::File::from_raw_fd(counting) };
        let policy = self.policy(2);
        for _ in 0..rounds {
            batch(&self.listener);
        }
        let connections = f64::from(CONNECTIONS) * rounds as f64;
        println!(
            "\n{:12} {:>16} {:>8} {:>18}",
            "program", "calls/connection", "ns/call", "ns/connection"
        );
        for program in ProgInfoIter::default() {
            let name = program.name.to_string_lossy();
            // Others' programs of the name have been called too; those of a policy are the newest.
            if name.starts_with("hs_") && program.run_cnt > 0 {
                let (calls, ns) = (program.run_cnt as f64, program.run_time_ns as f64);
                println!(
                    "{name:12} {:16.2} {:8.0} {:18.0}",
                    calls / connections,
                    ns / calls,
                    ns / connections
                );
            }
        }
        drop(policy);
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments
        .next()
        .map_or(ROUNDS, |text| text.parse().unwrap());
    let alone = arguments.next();
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    let up = std::process::Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status();
    assert!(up.unwrap().success());
    let cgroup = Cgroup::create().unwrap();
    let options = Options {
        transfer_room_bytes: 1 << 24,
        ..Options::default()
    };
    let stage = Stage {
        // The server's side alone is of the cgroup, as on a server: connections have it from their listener.
        listener: inside(&cgroup, || TcpListener::bind("127.0.0.1:0").unwrap()),
        kernel: Kernel::load(&options).unwrap(),
        cgroup,
    };
    batch(&stage.listener);
    if let Some(name) = alone {
        let which = NAMES.iter().position(|known| *known == name).unwrap();
        let policy = stage.policy(which);
        for _ in 0..rounds {
            batch(&stage.listener);
            policy
                .as_ref()
                .map(|policy| policy.take_transfers().unwrap());
        }
        return;
    }
    let mut seen: [Vec<f64>; 3] = Default::default();
    let mut records = 0;
    for round in 0..rounds {
        for place in 0..3 {
            let which = (round + place) % 3;
            let (cpu_us, taken) = stage.turn(which);
            seen[which].push(cpu_us);
            records += taken;
        }
    }
    println!("CPU time of a connection, us, {rounds} rounds of {CONNECTIONS} connections");
    println!(
        "{:10} {:>6} {:>6}  more than without, in the same round: median (quartiles)",
        "", "least", "median"
    );
    let without = seen[0].clone();
    for (name, mut turns) in NAMES.into_iter().zip(seen) {
        let mut more: Vec<f64> = turns
            .iter()
            .zip(&without)
            .map(|(ours, theirs)| ours - theirs)
            .collect();
        let (middle, all) = (median(&mut more), median(&mut turns));
        let (low, high) = (more[rounds / 4], more[rounds - 1 - rounds / 4]);
        println!(
            "{name:10} {:6.1} {all:6.1}  {middle:5.2} ({low:.2} to {high:.2})",
            turns[0]
        );
    }
    println!("{records} records");
    stage.programs(20);
}
