//! The packet log: what came to the router, and what became of it.

use std::net::IpAddr;

use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpSlice, TransportSlice};
use headstart_link::DropReason;
use serde::Serialize;

use crate::header;
use crate::hosts::{HostId, Side, addresses_of};

/// Congestion Experienced (RFC 3168, 5).
const CONGESTION_EXPERIENCED: u8 = 3;

/// Which way a packet goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the server to the client: "down".
    #[default]
    Forward,
    /// From the client to the server: "up".
    Reverse,
}

impl Direction {
    /// Where its packets come from.
    #[must_use]
    pub const fn from(self) -> Side {
        match self {
            Direction::Forward => Side::Server,
            Direction::Reverse => Side::Client,
        }
    }

    /// Where its packets go.
    #[must_use]
    pub const fn to(self) -> Side {
        match self {
            Direction::Forward => Side::Client,
            Direction::Reverse => Side::Server,
        }
    }

    /// As in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
        }
    }
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketFate {
    /// It reached the far end.
    Delivered,
    /// The link dropped it.
    Dropped(DropReason),
    /// It was in the link when the emulation stopped.
    #[default]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TcpRecord {
    /// Sequence number of the first payload byte.
    pub seq: u32,
    /// Acknowledgement number; without meaning unless `flags` has ACK.
    pub ack: u32,
    /// Bytes of payload.
    pub payload_bytes: u32,
    /// Flags.
    pub flags: TcpFlags,
    /// The receive window as it stands in the header, not scaled.
    pub window: u16,
}

/// What the router knows of a packet without looking into it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passage {
    /// Arrivals are counted from 0, both directions together.
    pub(crate) number: u64,
    pub(crate) direction: Direction,
    /// The places, from 0, of the hosts that it came from and went to.
    pub(crate) from_place: u8,
    pub(crate) to_place: u8,
    pub(crate) at_ns: u64,
    pub(crate) queue_len_pkts: u32,
    pub(crate) started_ns: Option<u64>,
    pub(crate) due_ns: Option<u64>,
    pub(crate) left_ns: Option<u64>,
    pub(crate) dropped_ns: Option<u64>,
    pub(crate) fate: PacketFate,
    pub(crate) is_copy: bool,
    /// Its congestion bits when it came.
    pub(crate) ecn: u8,
}

impl Passage {
    fn host(side: Side, place: u8) -> HostId {
        let number = place.saturating_add(1);
        HostId { side, number }
    }

    /// The host that sent it.
    pub(crate) fn from(&self) -> HostId {
        Passage::host(self.direction.from(), self.from_place)
    }

    /// The host that it is for.
    pub(crate) fn to(&self) -> HostId {
        Passage::host(self.direction.to(), self.to_place)
    }
}

/// One packet of the log. Times are on [`crate::monotonic_ns`]'s clock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PacketRecord {
    /// The packets that came to the router before it, both directions together. A copy has its
    /// original's number.
    pub number: u64,
    /// When it came to the router.
    pub at_ns: u64,
    /// When its transmission began; `None` for one that was dropped before, or not reached.
    pub started_ns: Option<u64>,
    /// When it was due at the far end.
    pub due_ns: Option<u64>,
    /// When it was handed to the far end, unless it was not.
    pub left_ns: Option<u64>,
    /// When it was dropped, unless it was not.
    pub dropped_ns: Option<u64>,
    /// Which way it went.
    pub direction: Direction,
    /// 4 or 6; 0 where the header could not be read.
    pub ip_version: u8,
    /// Whose it is.
    pub src_addr: Option<IpAddr>,
    /// For whom it is.
    pub dst_addr: Option<IpAddr>,
    /// The IP header's protocol, or the IPv6 next header past the extensions: 6 is TCP, 17 UDP.
    pub protocol: u8,
    /// Source port of TCP or UDP, otherwise 0.
    pub src_port: u16,
    /// Destination port of TCP or UDP, otherwise 0.
    pub dst_port: u16,
    /// The number by which FQ-CoDel tells flows apart.
    pub flow_hash: u64,
    /// Bytes from the IP header on: what occupies the wire.
    pub wire_bytes: u32,
    /// Differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// Explicit congestion notification as it came, 0 to 3.
    pub ecn: u8,
    /// Whether the queue set Congestion Experienced.
    pub marked: bool,
    /// The TCP header, if it is TCP.
    pub tcp: Option<TcpRecord>,
    /// Packets that waited in the queue when it came.
    pub queue_len_pkts: u32,
    /// What became of it.
    pub fate: PacketFate,
    /// Whether it is the second of two, made by duplication on the wire.
    pub is_copy: bool,
}

impl PacketRecord {
    /// Of a packet as it is at the end of its passage; nothing more than its size if it is not IP.
    /// `packet` may be cut behind its headers.
    pub(crate) fn new(passage: &Passage, packet: &[u8], wire_bytes: u32) -> PacketRecord {
        let mut record = PacketRecord {
            number: passage.number,
            at_ns: passage.at_ns,
            started_ns: passage.started_ns,
            due_ns: passage.due_ns,
            left_ns: passage.left_ns,
            dropped_ns: passage.dropped_ns,
            direction: passage.direction,
            flow_hash: header::flow_hash(packet),
            wire_bytes,
            queue_len_pkts: passage.queue_len_pkts,
            fate: passage.fate,
            is_copy: passage.is_copy,
            ..PacketRecord::default()
        };
        if let Some((source, destination)) = addresses_of(packet) {
            (record.src_addr, record.dst_addr) = (Some(source), Some(destination));
        }
        // Lax: the payload may have been cut off.
        if let Ok(sliced) = LaxSlicedPacket::from_ip(packet) {
            record.read_net(&sliced);
            record.read_transport(&sliced, header::payload_bytes(packet, wire_bytes));
        }
        record.marked = record.ecn == CONGESTION_EXPERIENCED && passage.ecn != record.ecn;
        record.ecn = passage.ecn;
        record
    }

    fn read_net(&mut self, sliced: &LaxSlicedPacket<'_>) {
        match &sliced.net {
            Some(LaxNetSlice::Ipv4(ip)) => {
                self.ip_version = 4;
                self.protocol = ip.payload_ip_number().0;
                (self.dscp, self.ecn) = (ip.header().dcp().value(), ip.header().ecn().value());
            }
            Some(LaxNetSlice::Ipv6(ip)) => {
                self.ip_version = 6;
                self.protocol = ip.payload().ip_number.0;
                (self.dscp, self.ecn) = (ip.header().dscp().value(), ip.header().ecn().value());
            }
            _ => {}
        }
    }

    fn read_transport(&mut self, sliced: &LaxSlicedPacket<'_>, payload_bytes: u32) {
        match &sliced.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                (self.src_port, self.dst_port) = (tcp.source_port(), tcp.destination_port());
                self.tcp = Some(tcp_record(tcp, payload_bytes));
            }
            Some(TransportSlice::Udp(udp)) => {
                (self.src_port, self.dst_port) = (udp.source_port(), udp.destination_port());
            }
            _ => {}
        }
    }
}

fn tcp_record(tcp: &TcpSlice<'_>, payload_bytes: u32) -> TcpRecord {
    TcpRecord {
        seq: tcp.sequence_number(),
        ack: tcp.acknowledgment_number(),
        payload_bytes,
        // Byte 13 of the header holds the flags; a TcpSlice has at least 20 bytes.
        flags: TcpFlags(tcp.slice()[13]),
        window: tcp.window_size(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpNumber, PacketBuilder};

    fn on_arrival(packet: &[u8]) -> PacketRecord {
        let passage = Passage {
            number: 0,
            direction: Direction::Forward,
            from_place: 0,
            to_place: 0,
            at_ns: 7,
            queue_len_pkts: 0,
            started_ns: None,
            due_ns: None,
            left_ns: None,
            dropped_ns: None,
            fate: PacketFate::InFlight,
            is_copy: false,
            ecn: header::ecn(packet),
        };
        let whole = u32::try_from(packet.len()).unwrap();
        let record = PacketRecord::new(&passage, packet, whole);
        // What is kept of a packet for the log is enough to say the same.
        let cut = &packet[..packet.len().min(crate::capture::HEADER_BYTES)];
        assert_eq!(PacketRecord::new(&passage, cut, whole), record);
        record
    }

    #[test]
    fn the_headers_of_a_tcp_packet_are_read() {
        let mut packet = Vec::new();
        PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64)
            .tcp(80, 40_000, 1_000, 65_535)
            .ack(2_000)
            .fin()
            .write(&mut packet, &[b'x'; 500])
            .unwrap();
        packet[1] = (8 << 2) | 2; // DSCP CS1, ECT(0); the IP checksum is not looked at.
        let record = on_arrival(&packet);
        assert_eq!((record.ip_version, record.protocol), (4, 6));
        assert_eq!((record.src_port, record.dst_port), (80, 40_000));
        assert_eq!((record.dscp, record.ecn, record.wire_bytes), (8, 2, 540));
        let tcp = record.tcp.unwrap();
        assert_eq!((tcp.seq, tcp.ack, tcp.payload_bytes), (1_000, 2_000, 500));
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
