//! How long things take: a path to come and to go, a round trip, a transfer.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use headstart_path::{Emulation, PathConfig, Span};
use serde::Serialize;

use crate::{listener, path};

#[derive(Serialize)]
pub(crate) struct Setup {
    hosts: u16,
    up_ms: Vec<f64>,
    down_ms: Vec<f64>,
}

pub(crate) fn setup(hosts: u16, times: usize) -> Setup {
    let mut setup = Setup {
        hosts,
        up_ms: Vec::new(),
        down_ms: Vec::new(),
    };
    for _ in 0..times {
        let began = Instant::now();
        let config = PathConfig {
            hosts,
            ..path("10mbit", "10ms", 100)
        };
        let mut emulation = Emulation::start(config).unwrap();
        let up = began.elapsed();
        emulation.stop().unwrap();
        setup.up_ms.push(ms(up));
        setup.down_ms.push(ms(began.elapsed() - up));
    }
    println!(
        "{hosts:>3} pair(s): up in {:.0} ms, down in {:.0} ms (medians of {times})",
        median(&setup.up_ms),
        median(&setup.down_ms)
    );
    setup
}

#[derive(Serialize)]
pub(crate) struct RoundTrip {
    configured_us: f64,
    excess_p50_us: f64,
    excess_p99_us: f64,
}

/// How much longer than configured a round trip of a small datagram takes.
pub(crate) fn round_trip(rtt: &str) -> RoundTrip {
    let emulation = Emulation::start(path("100mbit", rtt, 100)).unwrap();
    let (server, client) = (emulation.server(), emulation.client());
    let echo = server
        .run(|| UdpSocket::bind((server.addr_v4(), 7)).unwrap())
        .unwrap();
    let socket = client
        .run(|| UdpSocket::bind((client.addr_v4(), 0)).unwrap())
        .unwrap();
    socket.connect((server.addr_v4(), 7)).unwrap();
    echo.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let times = 200;
    let answering = thread::spawn(move || {
        let mut datagram = [0; 64];
        for _ in 0..times {
            let (len, from) = echo.recv_from(&mut datagram).unwrap();
            echo.send_to(&datagram[..len], from).unwrap();
        }
    });
    let configured_us = rtt.parse::<Span>().unwrap().as_ns() as f64 / 1e3;
    // Each of the 28 + 16 bytes takes its time on both links, too.
    let sending_us = 2.0 * 44.0 * 8.0 / 100.0;
    let mut excess_us = Vec::new();
    for _ in 0..times {
        thread::sleep(Duration::from_millis(2));
        let began = Instant::now();
        socket.send(&[0; 16]).unwrap();
        socket.recv(&mut [0; 64]).unwrap();
        excess_us.push(began.elapsed().as_nanos() as f64 / 1e3 - configured_us - sending_us);
    }
    answering.join().unwrap();
    let result = RoundTrip {
        configured_us,
        excess_p50_us: quantile(&excess_us, 0.5),
        excess_p99_us: quantile(&excess_us, 0.99),
    };
    println!(
        "round trip of {rtt}: longer by {:.0} us (p50), {:.0} us (p99)",
        result.excess_p50_us, result.excess_p99_us
    );
    result
}

#[derive(Serialize)]
pub(crate) struct Repeated {
    bytes: usize,
    median_ms: f64,
    sd_ms: f64,
    each_ms: Vec<f64>,
}

/// Fresh connections, from the handshake to the last byte, with a request in between.
pub(crate) fn repeated(bytes: usize) -> Repeated {
    let mut emulation = Emulation::start(path("100mbit", "102ms", 850)).unwrap();
    let (listener, client) = (listener(&emulation), emulation.client());
    let address = listener.local_addr().unwrap();
    let times = 10;
    let serving = thread::spawn(move || {
        let response = vec![0; bytes];
        for _ in 0..times {
            let (mut connection, _) = listener.accept().unwrap();
            connection.read_exact(&mut [0; 1]).unwrap();
            connection.write_all(&response).unwrap();
        }
    });
    let fetch = || {
        let began = Instant::now();
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(&[0]).unwrap();
        let mut response = vec![0; bytes];
        connection.read_exact(&mut response).unwrap();
        ms(began.elapsed())
    };
    let each_ms: Vec<f64> = client
        .run(|| (0..times).map(|_| fetch()).collect())
        .unwrap();
    serving.join().unwrap();
    let report = emulation.stop().unwrap();
    let mean = each_ms.iter().sum::<f64>() / each_ms.len() as f64;
    let squares: f64 = each_ms.iter().map(|each| (each - mean).powi(2)).sum();
    let result = Repeated {
        bytes,
        median_ms: median(&each_ms),
        sd_ms: (squares / (each_ms.len() - 1) as f64).sqrt(),
        each_ms,
    };
    println!(
        "{bytes} bytes, cubic, 100 Mbit/s, 102 ms, 850 packets: median {:.1} ms, sd {:.2} ms ({times} times; valid: {})",
        result.median_ms, result.sd_ms, report.valid
    );
    result
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value at this share of the sorted ones, between neighbours in proportion.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = share * (sorted.len() - 1) as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] * (1.0 - part) + sorted[high] * part
}
