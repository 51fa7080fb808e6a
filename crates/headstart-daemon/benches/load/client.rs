//! The client, a process of its own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

use crate::TRANSFER_BYTES;
use crate::support::inside;

/// Connections that it has open at the same time.
pub(crate) const AT_ONCE: usize = 16;
/// A server that answers no more ends the benchmark.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks for the page `connections` times, and prints seconds, median and 99th percentile of the set-up in us, and its
/// CPU time in us. Its threads stay on their CPUs: where the scheduler puts them is no contestant's merit.
pub(crate) fn run(namespace: &str, addr: &str, port: u16, connections: usize) {
    let (ready, all) = (Barrier::new(AT_ONCE + 1), Barrier::new(AT_ONCE + 1));
    thread::scope(|scope| {
        let (ready, all) = (&ready, &all);
        let threads: Vec<_> = (0..AT_ONCE)
            .map(|number| {
                let mine = connections / AT_ONCE + usize::from(number < connections % AT_ONCE);
                let ask = move || {
                    let mut cpu = CpuSet::new();
                    cpu.set(number % cpus()).unwrap();
                    // Where it may not, it goes without.
                    let _ = sched_setaffinity(Pid::from_raw(0), &cpu);
                    ready.wait();
                    let set_up_us = || match get(addr, port) {
                        Ok(set_up) => set_up.as_secs_f64() * 1e6,
                        // The others would wait for this thread for ever.
                        Err(error) => {
                            eprintln!("{addr}:{port}: {error}");
                            std::process::exit(1);
                        }
                    };
                    let set_ups: Vec<f64> = (0..mine).map(|_| set_up_us()).collect();
                    all.wait();
                    set_ups
                };
                scope.spawn(move || inside(namespace, "client", ask))
            })
            .collect();
        ready.wait();
        let (began, before) = (Instant::now(), own_cpu_us());
        all.wait();
        let (took_s, cpu) = (began.elapsed().as_secs_f64(), own_cpu_us() - before);
        let mut set_ups: Vec<f64> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        set_ups.sort_by(f64::total_cmp);
        let quantile =
            |percent: usize| set_ups[(set_ups.len() * percent / 100).min(set_ups.len() - 1)];
        println!("{took_s} {} {} {cpu}", quantile(50), quantile(99));
    });
}

/// Fetches the page, and says how long the handshake took.
pub(crate) fn get(addr: &str, port: u16) -> std::io::Result<Duration> {
    let began = Instant::now();
    let mut connection = TcpStream::connect((addr, port))?;
    let set_up = began.elapsed();
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.write_all(b"GET /page HTTP/1.0\r\n\r\n")?;
    let (mut buffer, mut got) = ([0; 65_536], 0);
    loop {
        match connection.read(&mut buffer)? {
            0 => break,
            read => got += read,
        }
    }
    assert!(got >= TRANSFER_BYTES, "{got} bytes came");
    Ok(set_up)
}

fn own_cpu_us() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    (usage.user_time() + usage.system_time()).num_microseconds() as f64
}

pub(crate) fn cpus() -> usize {
    thread::available_parallelism().unwrap().get()
}
