//! The files that a run writes, read back.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

mod common;

use std::fs::File;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use common::{start_or_skip, symmetric, transfer, udp};
use headstart_path::{LogFiles, PathConfig};
use nix::sys::socket::{setsockopt, sockopt};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};

/// A run with some drops, marks and copies; the files and what the path says of itself.
fn run(lane: u8, snap_bytes: u32) -> Option<(tempfile::TempDir, headstart_path::PathReport)> {
    let dir = tempfile::tempdir().unwrap();
    let mut config = PathConfig {
        log_files: LogFiles {
            parquet: Some(dir.path().join("fates.parquet")),
            pcap: Some(dir.path().join("both.pcapng")),
            snap_bytes,
        },
        hosts: 2,
        ..symmetric(
            "5mbit",
            "5ms",
            "red:30,min=2,max=20,max_p=10%,w_q=20%,ecn",
            lane,
        )
    };
    config.forward.duplicate = Some("2%".parse().unwrap());
    let mut emulation = start_or_skip(config)?;
    let (server, client) = (&emulation.servers()[1], &emulation.clients()[1]);
    let (socket, _sink) = (udp(server, 0), udp(client, 9000));
    setsockopt(&socket, sockopt::Ipv4Tos, &(8 << 2 | 2)).unwrap();
    for _ in 0..50 {
        socket
            .send_to(&[7; 1000], (client.addr_v4(), 9000))
            .unwrap();
    }
    transfer(&emulation, emulation.server().addr_v4().into(), 200_000);
    std::thread::sleep(Duration::from_millis(50));
    let report = emulation.stop().unwrap();
    Some((dir, report))
}

fn numbers<'a>(batch: &'a RecordBatch, name: &str) -> &'a [u64] {
    batch[name].as_primitive::<UInt64Type>().values()
}

#[test]
fn every_packets_fate_is_in_the_parquet_file() {
    let Some((dir, report)) = run(60, 0) else {
        return;
    };
    let log = report.log.as_ref().unwrap();
    assert_eq!((log.lost_pkts, log.failures.len()), (0, 0));
    let file = File::open(dir.path().join("fates.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let batches: Vec<RecordBatch> = reader
        .with_batch_size(1_000_000)
        .build()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let [batch] = &batches[..] else {
        panic!("{} batches", batches.len());
    };
    assert_eq!(batch.num_rows() as u64, log.written_pkts);
    let in_pkts = report.forward.in_pkts + report.reverse.in_pkts;
    let is_copy = batch["is_copy"].as_boolean();
    assert_eq!(is_copy.true_count() as u64, report.forward.duplicated_pkts);
    assert!(is_copy.true_count() > 0);
    assert_eq!((batch.num_rows() - is_copy.true_count()) as u64, in_pkts);
    let fates = batch["fate"].as_string::<i32>();
    let dropped = fates
        .iter()
        .flatten()
        .filter(|fate| *fate == "dropped")
        .count() as u64;
    assert_eq!(
        dropped,
        report.forward.dropped_pkts.total() + report.reverse.dropped_pkts.total()
    );
    assert_eq!(
        batch["drop_reason"].len() - batch["drop_reason"].null_count(),
        dropped as usize
    );
    assert_eq!(
        batch["marked"].as_boolean().true_count() as u64,
        report.forward.marked_pkts
    );
    assert!(report.forward.marked_pkts > 0 && dropped > 0, "{report:?}");
    let (at, left) = (numbers(batch, "at_ns"), numbers(batch, "left_ns"));
    let (due, started) = (numbers(batch, "due_ns"), numbers(batch, "started_ns"));
    for row in (0..batch.num_rows()).filter(|&row| fates.value(row) == "delivered") {
        assert!(at[row] <= started[row] && started[row] < due[row] && due[row] <= left[row]);
        assert!(due[row] - started[row] >= 5_000_000, "the delay");
    }
    let (from, to) = (
        batch["from_host"].as_string::<i32>(),
        batch["to_host"].as_string::<i32>(),
    );
    let protocol = batch["protocol"].as_primitive::<UInt8Type>();
    let dscp = batch["dscp"].as_primitive::<UInt8Type>();
    let wire_bytes = batch["wire_bytes"].as_primitive::<UInt32Type>();
    let datagrams: Vec<usize> = (0..batch.num_rows())
        .filter(|&row| protocol.value(row) == 17 && !is_copy.value(row))
        .collect();
    assert_eq!(datagrams.len(), 50);
    for row in datagrams {
        assert_eq!((from.value(row), to.value(row)), ("server2", "client2"));
        assert_eq!((dscp.value(row), wire_bytes.value(row)), (8, 1028));
        assert!(batch["tcp_seq"].is_null(row));
    }
}

#[test]
fn both_sides_are_in_the_pcapng_in_the_order_of_time_with_drops_in_comments() {
    for (lane, snap_bytes) in [(61, 0), (62, 128)] {
        let Some((dir, report)) = run(lane, snap_bytes) else {
            return;
        };
        let file = File::open(dir.path().join("both.pcapng")).unwrap();
        let mut reader = PcapNgReader::new(file).unwrap();
        let (mut interfaces, mut last, mut sent, mut got, mut drops) =
            (Vec::new(), Duration::ZERO, [0u64; 4], [0u64; 4], 0);
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::InterfaceDescription(interface) => {
                    assert_eq!(interface.linktype, DataLink::RAW);
                    interfaces.push(format!("{:?}", interface.options));
                }
                Block::EnhancedPacket(packet) => {
                    assert!(packet.timestamp >= last, "in the order of time");
                    last = packet.timestamp;
                    let kept = match snap_bytes {
                        0 => packet.original_len,
                        most => packet.original_len.min(most),
                    };
                    assert_eq!(packet.data.len(), kept as usize);
                    assert_eq!(packet.data[0] >> 4, 4);
                    let interface = packet.interface_id as usize;
                    let is_sent = packet.options.contains(&EnhancedPacketOption::Flags(2));
                    match is_sent {
                        true => sent[interface] += 1,
                        false => got[interface] += 1,
                    }
                    let comment = packet.options.iter().find_map(|option| match option {
                        EnhancedPacketOption::Comment(comment) => Some(comment.clone()),
                        _ => None,
                    });
                    if comment
                        .as_ref()
                        .is_some_and(|said| said.starts_with("dropped: "))
                    {
                        assert!(is_sent, "at the side where it came in");
                        assert!(comment.unwrap().contains("packets waited"));
                        drops += 1;
                    }
                    // What came unmarked is shown unmarked.
                    assert!(!is_sent || packet.data[1] & 3 != 3);
                }
                _ => {}
            }
        }
        assert_eq!(interfaces.len(), 4);
        assert!(interfaces[3].contains("client2") && interfaces[3].contains("IfTsResol(9)"));
        let (forward, reverse) = (&report.forward, &report.reverse);
        assert_eq!(
            (sent[0] + sent[1], sent[2] + sent[3]),
            (forward.in_pkts, reverse.in_pkts)
        );
        assert_eq!(
            (got[2] + got[3], got[0] + got[1]),
            (forward.out_pkts, reverse.out_pkts)
        );
        assert_eq!(sent[1], 50);
        assert_eq!(
            drops,
            forward.dropped_pkts.total() + reverse.dropped_pkts.total()
        );
        let wall = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        assert!(wall - last < Duration::from_secs(60), "on the wall clock");
    }
}
