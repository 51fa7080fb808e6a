//! What the emulated wire says of one transfer.

use headstart_path::{Direction, PacketFate, PacketRecord, TcpRecord};

/// A packet of the transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WirePacket {
    /// Since the transfer began.
    pub(crate) t_ms: f64,
    pub(crate) is_data: bool,
    pub(crate) from_byte: u64,
    pub(crate) to_byte: u64,
    pub(crate) low_priority: bool,
    pub(crate) retransmission: bool,
    pub(crate) dropped: bool,
}

/// One transfer, as the router saw it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WireTransfer {
    /// When the client's first packet of it came to the router: its SYN on a fresh connection, else its request.
    pub(crate) began_ns: u64,
    /// When its last packet did.
    pub(crate) ended_ns: u64,
    pub(crate) packets: Vec<WirePacket>,
    pub(crate) retransmitted_pkts: u64,
    pub(crate) router_drops: u64,
}

/// Cuts the last transfer of the client's connection `port` out of `log`; `low_priority_dscp` is what we mark with.
/// `None` when the log holds no request on that connection.
pub(crate) fn last_transfer(
    log: &[PacketRecord],
    port: u16,
    low_priority_dscp: u8,
) -> Option<WireTransfer> {
    let of_connection = |packet: &&PacketRecord| match packet.direction {
        Direction::Forward => packet.dst_port == port,
        Direction::Reverse => packet.src_port == port,
    };
    let connection: Vec<(&PacketRecord, TcpRecord)> = log
        .iter()
        .filter(of_connection)
        .filter_map(|packet| packet.tcp.map(|tcp| (packet, tcp)))
        .collect();
    let is_request = |(packet, tcp): &&(&PacketRecord, TcpRecord)| {
        packet.direction == Direction::Reverse && tcp.payload_bytes > 0
    };
    // A request that had to be sent again began when it was sent first.
    let last = connection.iter().rfind(is_request)?;
    let (request, request_tcp) = *connection
        .iter()
        .find(|entry| is_request(entry) && entry.1.seq == last.1.seq)
        .unwrap_or(last);
    let requests = connection
        .iter()
        .filter(is_request)
        .map(|entry| entry.1.seq);
    let first_request = requests.min_by_key(|seq| seq.wrapping_sub(request_tcp.seq).cast_signed());
    let syn = connection
        .iter()
        .find(|(packet, tcp)| packet.direction == Direction::Reverse && tcp.flags.syn());
    let began_ns = match syn {
        Some((syn, _)) if first_request == Some(request_tcp.seq) => syn.at_ns,
        _ => request.at_ns,
    };
    // What the client has received so far is where the response begins in the stream.
    let base = request_tcp.ack;
    Some(read(&connection, began_ns, base, low_priority_dscp))
}

fn read(
    connection: &[(&PacketRecord, TcpRecord)],
    began_ns: u64,
    base: u32,
    low_priority_dscp: u8,
) -> WireTransfer {
    let mut transfer = WireTransfer {
        began_ns,
        ended_ns: began_ns,
        packets: Vec::new(),
        retransmitted_pkts: 0,
        router_drops: 0,
    };
    let mut sent_to = 0;
    for (packet, tcp) in connection
        .iter()
        .filter(|(packet, _)| packet.at_ns >= began_ns)
    {
        let is_data = packet.direction == Direction::Forward && tcp.payload_bytes > 0;
        let is_ack = packet.direction == Direction::Reverse && tcp.flags.ack();
        let dropped = matches!(packet.fate, PacketFate::Dropped(_));
        transfer.router_drops += u64::from(dropped);
        transfer.ended_ns = packet.at_ns;
        // Before the base there is only what belongs to an earlier transfer; FIN and SYN carry no bytes.
        let offset = |seq: u32| u64::try_from(seq.wrapping_sub(base).cast_signed()).ok();
        let range = if is_data {
            offset(tcp.seq).map(|from| (from, from + u64::from(tcp.payload_bytes)))
        } else if is_ack {
            offset(tcp.ack).map(|to| (to, to))
        } else {
            None
        };
        let Some((from_byte, to_byte)) = range else {
            continue;
        };
        let retransmission = is_data && from_byte < sent_to;
        transfer.retransmitted_pkts += u64::from(retransmission);
        if is_data {
            sent_to = sent_to.max(to_byte);
        }
        transfer.packets.push(WirePacket {
            t_ms: (packet.at_ns - began_ns) as f64 / 1e6,
            is_data,
            from_byte,
            to_byte,
            low_priority: is_data && packet.dscp == low_priority_dscp,
            retransmission,
            dropped,
        });
    }
    transfer
}

#[cfg(test)]
mod tests {
    use headstart_path::{DropReason, TcpFlags};

    use super::*;

    const PORT: u16 = 40_000;
    const SERVER_ISS: u32 = u32::MAX - 1000; // wraps within the first transfer

    fn packet(
        at_ms: u64,
        direction: Direction,
        seq: u32,
        ack: u32,
        bytes: u32,
        flags: u8,
    ) -> PacketRecord {
        let (src_port, dst_port) = if direction == Direction::Forward {
            (8080, PORT)
        } else {
            (PORT, 8080)
        };
        PacketRecord {
            at_ns: at_ms * 1_000_000,
            direction,
            ip_version: 4,
            protocol: 6,
            src_port,
            dst_port,
            wire_bytes: bytes + 52,
            tcp: Some(TcpRecord {
                seq,
                ack,
                payload_bytes: bytes,
                flags: TcpFlags(flags),
                ..TcpRecord::default()
            }),
            fate: PacketFate::Delivered,
            ..PacketRecord::default()
        }
    }

    /// A connection with two requests; the second response loses its second packet, which is sent again.
    fn log() -> Vec<PacketRecord> {
        let base = SERVER_ISS.wrapping_add(1);
        let second = base.wrapping_add(2000);
        let mut marked = packet(
            530,
            Direction::Forward,
            second.wrapping_add(1000),
            300,
            1000,
            0x10,
        );
        marked.dscp = 1;
        marked.fate = PacketFate::Dropped(DropReason::QueueFull);
        vec![
            packet(0, Direction::Reverse, 99, 0, 0, 0x02),
            packet(5, Direction::Forward, SERVER_ISS, 100, 0, 0x12),
            packet(10, Direction::Reverse, 100, base, 100, 0x18),
            packet(20, Direction::Forward, base, 200, 1000, 0x10),
            packet(
                21,
                Direction::Forward,
                base.wrapping_add(1000),
                200,
                1000,
                0x18,
            ),
            packet(30, Direction::Reverse, 200, second, 0, 0x10),
            packet(500, Direction::Reverse, 200, second, 100, 0x18),
            packet(520, Direction::Forward, second, 300, 1000, 0x10),
            marked,
            packet(
                540,
                Direction::Reverse,
                300,
                second.wrapping_add(1000),
                0,
                0x10,
            ),
            packet(
                700,
                Direction::Forward,
                second.wrapping_add(1000),
                300,
                1000,
                0x18,
            ),
            packet(
                710,
                Direction::Reverse,
                300,
                second.wrapping_add(2000),
                0,
                0x10,
            ),
        ]
    }

    #[test]
    fn a_fresh_connections_transfer_begins_with_its_syn() {
        let transfer = last_transfer(&log()[..6], PORT, 1).unwrap();
        assert_eq!(transfer.began_ns, 0);
        let data: Vec<_> = transfer
            .packets
            .iter()
            .filter(|packet| packet.is_data)
            .collect();
        assert_eq!(data.len(), 2);
        assert_eq!((data[0].from_byte, data[1].to_byte), (0, 2000));
        assert_eq!(transfer.retransmitted_pkts, 0);
    }

    #[test]
    fn a_resumed_connections_transfer_begins_with_its_request_and_counts_from_there() {
        let transfer = last_transfer(&log(), PORT, 1).unwrap();
        assert_eq!(transfer.began_ns, 500_000_000);
        let data: Vec<_> = transfer
            .packets
            .iter()
            .filter(|packet| packet.is_data)
            .collect();
        assert_eq!(data.len(), 3);
        assert_eq!(data[0].from_byte, 0);
        assert!(data[1].dropped && data[1].low_priority && !data[1].retransmission);
        assert!(data[2].retransmission && !data[2].dropped);
        assert_eq!((transfer.retransmitted_pkts, transfer.router_drops), (1, 1));
    }

    #[test]
    fn a_connection_without_a_request_has_no_transfer() {
        assert_eq!(last_transfer(&log()[..2], PORT, 1), None);
        assert_eq!(last_transfer(&log(), PORT + 1, 1), None);
    }
}
