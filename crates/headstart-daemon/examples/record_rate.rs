//! How many records a second the daemon's writer takes, and for how long it does not look at the kernel's buffer.
//!
//! The daemon's loop without the kernel: ten times a second as many transfers as come in that time are made rows and
//! taken, once a second and by batches they are written, and full files are closed beside it. What counts is how much of the time it
//! needs, and its longest step: the kernel's buffer holds 110,376 records meanwhile.
//!
//! usage: record_rate [RECORDS_PER_S [SECONDS [DIR]]], DIR being made if it is not there

mod support;

use std::env;
use std::error::Error;
use std::net::Ipv4Addr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use headstart_kernel::Transfer;
use support::{STEPS_PER_S, Writer};

const S: u64 = 1_000_000_000;
/// `hs_transfers` of `bpf/emit.h`: 16 MiB, 144 bytes a record and 8 before each (`BPF_RINGBUF_HDR_SZ`).
const ROOM_RECORDS: f64 = ((16 << 20) / 152) as f64;

/// Sizes, times and prefixes as various as real ones: a file of equal rows would be easy to write.
fn transfer(number: u64) -> Transfer {
    let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let small = u32::try_from(noise % 200_000).unwrap_or(0);
    Transfer {
        start_ns: number * 20_000,
        end_ns: number * 20_000 + 1000 * noise % S,
        bytes: noise % 500_000,
        retransmitted_bytes: if noise.is_multiple_of(20) { 1448 } else { 0 },
        retransmitted_pkts: u32::from(noise.is_multiple_of(20)),
        lost_pkts: u32::from(noise.is_multiple_of(20)),
        rto_count: 0,
        rate_bytes_per_s: Some(noise),
        rate_app_limited: noise.is_multiple_of(2),
        min_rtt_us: Some(small),
        start_rtt_us: Some(small + 100),
        end_rtt_us: Some(small + 200),
        initial_cwnd_pkts: 10,
        end_cwnd_pkts: small % 100,
        exit_cwnd_pkts: (noise.is_multiple_of(3)).then_some(small % 100),
        why: Some((1, 10)),
        peer_initial_window_bytes: 65_535,
        mss_bytes: 1448,
        index: small % 4,
        idle_ns: None,
        rule_id: 1,
        arm: 0,
        complete: true,
        app_limited: noise.is_multiple_of(5),
        peer_limited: false,
        path_hit: noise.is_multiple_of(2),
        passive: true,
        control: "su_fast_start".into(),
        local_port: 443,
        remote_addr: Ipv4Addr::from_bits(u32::try_from(noise).unwrap_or(0)).into(),
        remote_port: 50_000,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let rate: u64 = arguments.next().map_or(Ok(50_000), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(60), |text| text.parse())?;
    let mut writer = Writer::below(arguments.next())?;
    let mut number = 0;
    let (mut busy, mut longest) = (Duration::ZERO, Duration::ZERO);
    let began = Instant::now();
    for step in 0..seconds * STEPS_PER_S {
        let next = number + rate / STEPS_PER_S;
        let transfers: Vec<Transfer> = (number..next).map(transfer).collect();
        number = next;
        // As the daemon, which waits; what closes files needs the time between.
        let due = Duration::from_millis(1000 * step / STEPS_PER_S);
        sleep(due.saturating_sub(began.elapsed()));
        let at = Instant::now();
        writer.step(step, transfers)?;
        busy += at.elapsed();
        longest = longest.max(at.elapsed());
    }
    let took_s = began.elapsed().as_secs_f64();
    let counts = writer.close()?;
    println!(
        "{} of {number} rows in {} files in {took_s:.1} s, {} dropped",
        counts.rows_written, counts.files_closed, counts.rows_dropped
    );
    println!(
        "the loop is busy for {:.1} % of the time at {rate} records/s; its longest step is {:.0} ms, the kernel's \
         buffer lasts {:.0} ms",
        100.0 * busy.as_secs_f64() / took_s,
        longest.as_secs_f64() * 1000.0,
        1000.0 * ROOM_RECORDS / rate as f64
    );
    Ok(())
}
