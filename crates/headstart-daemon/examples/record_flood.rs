//! Records from the kernel to the files at the highest rate that this machine makes transfers: clients and servers in
//! threads of this process send a byte to and fro over loopback, each answer is a transfer that is recorded, and the
//! daemon's loop empties the kernel's buffer ten times a second and writes once a second and by batches. No start-up is
//! registered.
//!
//! `cargo run --release -p headstart-daemon --example record_flood [PAIRS [SECONDS [DIR]]]` (as root), DIR being made if
//! it is not there

#[path = "../../headstart-kernel/tests/support/inside.rs"]
mod inside;
#[path = "../../headstart-kernel/tests/support/rules.rs"]
mod rules;
mod support;

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use headstart_kernel::{Cgroup, Kernel, Options, Policy};
use inside::Inside;
use rules::{policy_of, rule_of_port};
use support::{STEPS_PER_S, Writer};

/// What the daemon uses.
const RECORD_ROOM_BYTES: u32 = 1 << 24;

fn to_and_fro(
    listener: &TcpListener,
    done: &AtomicU64,
    ended: &AtomicBool,
) -> Result<(), std::io::Error> {
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let mut byte = [0];
    while !ended.load(Ordering::Relaxed) {
        client.write_all(b"?")?;
        server.read_exact(&mut byte)?;
        server.write_all(b"!")?;
        client.read_exact(&mut byte)?;
        done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let pairs: u32 = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let mut writer = Writer::below(arguments.next())?;
    let cgroup = Cgroup::create()?;
    let inside = Inside::of(&cgroup);

    let listeners = (0..pairs).map(|_| TcpListener::bind("127.0.0.1:0"));
    let listeners: Vec<TcpListener> = listeners.collect::<Result<_, _>>()?;
    let options = Options {
        transfer_room_bytes: RECORD_ROOM_BYTES,
        ..Options::default()
    };
    let kernel = Kernel::load(&options)?;
    let ports = listeners.iter().map(|l| l.local_addr().map(|at| at.port()));
    let ports: Vec<u16> = ports.collect::<Result<_, _>>()?;
    let mut policy = Policy::attach(&kernel, cgroup.path())?;
    let rules = (1..).zip(ports).map(|(id, port)| rule_of_port(id, port));
    policy.apply(&policy_of(rules.collect()))?;

    let (done, ended) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let threads: Vec<_> = listeners
        .into_iter()
        .map(|listener| {
            let (done, ended) = (Arc::clone(&done), Arc::clone(&ended));
            thread::spawn(move || to_and_fro(&listener, &done, &ended))
        })
        .collect();
    let mut taken = 0;
    let began = Instant::now();
    let mut step = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        // As the daemon, which waits between two looks, however long the look before took.
        thread::sleep(Duration::from_millis(1000 / STEPS_PER_S));
        step += 1;
        let transfers = policy.take_transfers()?;
        taken += transfers.len();
        writer.step(step, transfers)?;
    }
    let took_s = began.elapsed().as_secs_f64();
    let made = done.load(Ordering::Relaxed);
    ended.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")??;
    }
    drop(inside);
    let rest = policy.take_transfers()?;
    taken += rest.len();
    writer.step(step, rest)?;
    let written = writer.close()?;
    let counts = policy.counts()?;
    println!(
        "{:.0} transfers/s for {took_s:.1} s; {taken} taken, {} lost, {} rows written, {} dropped",
        made as f64 / took_s,
        counts.records_lost,
        written.rows_written,
        written.rows_dropped
    );
    Ok(())
}
