//! The packet log: what came to the router, and what became of it.

use etherparse::{NetSlice, SlicedPacket, TcpSlice, TransportSlice};
use headstart_link::DropReason;
use serde::Serialize;

/// Which way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the server to the client: "down".
    Forward,
    /// From the client to the server: "up".
    Reverse,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketFate {
    /// It reached the far end.
    Delivered,
    /// The link dropped it.
    Dropped(DropReason),
    /// It was in the link when the emulation stopped.
    InFlight,
}

/// The flags of a TCP header, as its bits: FIN is the lowest, CWR the highest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// FIN.
    #[must_use]
    pub fn fin(self) -> bool {
        self.0 & 0x01 != 0
    }

    /// SYN.
    #[must_use]
    pub fn syn(self) -> bool {
        self.0 & 0x02 != 0
    }

    /// RST.
    #[must_use]
    pub fn rst(self) -> bool {
        self.0 & 0x04 != 0
    }

    /// ACK.
    #[must_use]
    pub fn ack(self) -> bool {
        self.0 & 0x10 != 0
    }
}

/// The TCP header of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TcpRecord {
    /// Sequence number of the first payload byte.
    pub seq: u32,
    /// Acknowledgement number; without meaning unless `flags` has ACK.
    pub ack: u32,
    /// Bytes of payload.
    pub payload_bytes: u32,
    /// Flags.
    pub flags: TcpFlags,
}

/// One packet of the log. Times are on [`crate::monotonic_ns`]'s clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PacketRecord {
    /// When it came to the router.
    pub at_ns: u64,
    /// When it was handed to the far end, unless it was not.
    pub left_ns: Option<u64>,
    /// Which way it went.
    pub direction: Direction,
    /// 4 or 6; 0 where the header could not be read.
    pub ip_version: u8,
    /// The IP header's protocol, or the IPv6 next header past the extensions: 6 is TCP, 17 UDP.
    pub protocol: u8,
    /// Source port of TCP or UDP, otherwise 0.
    pub src_port: u16,
    /// Destination port of TCP or UDP, otherwise 0.
    pub dst_port: u16,
    /// Bytes from the IP header on: what occupies the wire.
    pub wire_bytes: u32,
    /// Differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// Explicit congestion notification, 0 to 3.
    pub ecn: u8,
    /// The TCP header, if it is TCP.
    pub tcp: Option<TcpRecord>,
    /// Packets that waited in the queue when it came.
    pub queue_len_pkts: u32,
    /// What became of it.
    pub fate: PacketFate,
}

impl PacketRecord {
    /// What can be said of a packet on its arrival; nothing more than its size if it is not IP.
    pub(crate) fn on_arrival(at_ns: u64, direction: Direction, packet: &[u8]) -> PacketRecord {
        let mut record = PacketRecord {
            at_ns,
            left_ns: None,
            direction,
            ip_version: 0,
            protocol: 0,
            src_port: 0,
            dst_port: 0,
            wire_bytes: u32::try_from(packet.len()).unwrap_or(u32::MAX),
            dscp: 0,
            ecn: 0,
            tcp: None,
            queue_len_pkts: 0,
            fate: PacketFate::InFlight,
        };
        if let Ok(sliced) = SlicedPacket::from_ip(packet) {
            record.read_net(&sliced);
            record.read_transport(&sliced);
        }
        record
    }

    fn read_net(&mut self, sliced: &SlicedPacket<'_>) {
        match &sliced.net {
            Some(NetSlice::Ipv4(ip)) => {
                self.ip_version = 4;
                self.protocol = ip.payload_ip_number().0;
                (self.dscp, self.ecn) = (ip.header().dcp().value(), ip.header().ecn().value());
            }
            Some(NetSlice::Ipv6(ip)) => {
                self.ip_version = 6;
                self.protocol = ip.payload().ip_number.0;
                (self.dscp, self.ecn) = (ip.header().dscp().value(), ip.header().ecn().value());
            }
            _ => {}
        }
    }

    fn read_transport(&mut self, sliced: &SlicedPacket<'_>) {
        match &sliced.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                (self.src_port, self.dst_port) = (tcp.source_port(), tcp.destination_port());
                self.tcp = Some(tcp_record(tcp));
            }
            Some(TransportSlice::Udp(udp)) => {
                (self.src_port, self.dst_port) = (udp.source_port(), udp.destination_port());
            }
            _ => {}
        }
    }
}

fn tcp_record(tcp: &TcpSlice<'_>) -> TcpRecord {
    TcpRecord {
        seq: tcp.sequence_number(),
        ack: tcp.acknowledgment_number(),
        payload_bytes: u32::try_from(tcp.payload().len()).unwrap_or(u32::MAX),
        // Byte 13 of the header holds the flags; a TcpSlice has at least 20 bytes.
        flags: TcpFlags(tcp.slice()[13]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpNumber, PacketBuilder};

    fn on_arrival(packet: &[u8]) -> PacketRecord {
        PacketRecord::on_arrival(7, Direction::Forward, packet)
    }

    #[test]
    fn the_headers_of_a_tcp_packet_are_read() {
        let mut packet = Vec::new();
        PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64)
            .tcp(80, 40_000, 1_000, 65_535)
            .ack(2_000)
            .fin()
            .write(&mut packet, b"hello")
            .unwrap();
        packet[1] = (8 << 2) | 2; // DSCP CS1, ECT(0); the IP checksum is not looked at.
        let record = on_arrival(&packet);
        assert_eq!((record.ip_version, record.protocol), (4, 6));
        assert_eq!((record.src_port, record.dst_port), (80, 40_000));
        assert_eq!((record.dscp, record.ecn, record.wire_bytes), (8, 2, 45));
        let tcp = record.tcp.unwrap();
        assert_eq!((tcp.seq, tcp.ack, tcp.payload_bytes), (1_000, 2_000, 5));
        assert!(tcp.flags.ack() && tcp.flags.fin() && !tcp.flags.syn() && !tcp.flags.rst());
    }

    #[test]
    fn the_headers_of_an_ipv6_udp_packet_are_read() {
        let mut packet = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64)
            .udp(53, 5353)
            .write(&mut packet, b"hi")
            .unwrap();
        packet[0] = 0x6b; // Traffic class 0xb8: DSCP EF, no ECN.
        packet[1] = 0x80;
        let record = on_arrival(&packet);
        assert_eq!(
            (record.ip_version, record.protocol, record.dscp, record.ecn),
            (6, 17, 46, 0)
        );
        assert_eq!(
            (record.src_port, record.dst_port, record.tcp),
            (53, 5353, None)
        );
    }

    #[test]
    fn a_packet_without_ports_and_a_packet_that_is_not_ip_are_still_logged() {
        let mut packet = Vec::new();
        PacketBuilder::ipv4([1; 4], [2; 4], 64)
            .write(&mut packet, IpNumber::IGMP, b"whatever")
            .unwrap();
        let record = on_arrival(&packet);
        assert_eq!(
            (record.ip_version, record.protocol, record.src_port),
            (4, 2, 0)
        );
        let record = on_arrival(b"not a packet");
        assert_eq!((record.ip_version, record.wire_bytes), (0, 12));
    }
}
