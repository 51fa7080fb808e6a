//! The few fields of an IP header that a queue looks at, read without parsing the rest.

/// The byte of code point and congestion bits: IPv4's second, IPv6's traffic class; 0 if the packet
/// is neither.
fn traffic_class(packet: &[u8]) -> u8 {
    match *packet {
        [first, second, ..] if first >> 4 == 4 => second,
        [first, second, ..] if first >> 4 == 6 => first << 4 | second >> 4,
        _ => 0,
    }
}

/// Differentiated services code point.
pub(crate) fn dscp(packet: &[u8]) -> u8 {
    traffic_class(packet) >> 2
}

/// Whether the sender understands a congestion mark: any of the two ECN bits is set (RFC 3168).
pub(crate) fn ecn_capable(packet: &[u8]) -> bool {
    traffic_class(packet) & 0b11 != 0
}

/// The congestion bits, 0 to 3.
pub(crate) fn ecn(packet: &[u8]) -> u8 {
    traffic_class(packet) & 0b11
}

/// Sets Congestion Experienced, and IPv4's checksum with it.
pub(crate) fn mark_congestion(packet: &mut [u8]) {
    set_ecn(packet, 0b11);
}

/// Sets the congestion bits, 0 to 3, and IPv4's checksum with them.
pub(crate) fn set_ecn(packet: &mut [u8], ecn: u8) {
    match packet {
        [first, second, _, _, _, _, _, _, _, _, sum_high, sum_low, ..] if *first >> 4 == 4 => {
            // RFC 1624: HC' = ~(~HC + ~m + m'), for the first word of the header.
            let before = u16::from_be_bytes([*first, *second]);
            *second = *second & !0b11 | ecn;
            let after = u16::from_be_bytes([*first, *second]);
            let sum = u16::from_be_bytes([*sum_high, *sum_low]);
            let [high, low] = (!ones_sum([!sum, !before, after])).to_be_bytes();
            (*sum_high, *sum_low) = (high, low);
        }
        [first, second, ..] if *first >> 4 == 6 => *second = *second & !(0b11 << 4) | ecn << 4,
        _ => {}
    }
}

/// The sum in ones' complement.
fn ones_sum(words: [u16; 3]) -> u16 {
    let mut sum: u32 = words.into_iter().map(u32::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // Folded: 16 bits are left.
    sum as u16
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Bytes behind the headers of IP and of TCP or UDP, in a packet of `wire_bytes` of which the
/// headers are here.
pub(crate) fn payload_bytes(packet: &[u8], wire_bytes: u32) -> u32 {
    let (network_bytes, protocol) = match packet {
        [first, ..] if first >> 4 == 4 && packet.len() >= 20 => {
            (usize::from(first & 0x0f) * 4, packet[9])
        }
        [first, ..] if first >> 4 == 6 && packet.len() >= 40 => (40, packet[6]),
        _ => return 0,
    };
    let transport_bytes = match protocol {
        // The data offset, in words, is the upper half of byte 12.
        TCP => packet
            .get(network_bytes + 12)
            .map_or(0, |byte| usize::from(byte >> 4) * 4),
        UDP => 8,
        _ => 0,
    };
    let headers = u32::try_from(network_bytes + transport_bytes).unwrap_or(u32::MAX);
    wire_bytes.saturating_sub(headers)
}

/// A number for the flow of a packet: of addresses, protocol, and ports where they stand right
/// behind the header. What has none, or a fragment, is told apart by the rest alone. Both
/// directions of a flow have the same, so that they share what is drawn for the flow.
pub(crate) fn flow_hash(packet: &[u8]) -> u64 {
    let (addresses, protocol, payload_at) = match packet {
        [first, ..] if first >> 4 == 4 && packet.len() >= 20 => {
            let is_fragment = packet[6] & 0x3f != 0 || packet[7] != 0;
            let at = if is_fragment {
                usize::MAX
            } else {
                usize::from(first & 0x0f) * 4
            };
            (&packet[12..20], packet[9], at)
        }
        [first, ..] if first >> 4 == 6 && packet.len() >= 40 => (&packet[8..40], packet[6], 40),
        _ => return 0,
    };
    let ports = match protocol {
        TCP | UDP => payload_at
            .checked_add(4)
            .and_then(|end| packet.get(payload_at..end))
            .unwrap_or_default(),
        _ => &[],
    };
    let (source, destination) = addresses.split_at(addresses.len() / 2);
    let (source_port, destination_port) = ports.split_at(ports.len() / 2);
    let mut ends = [(source, source_port), (destination, destination_port)];
    ends.sort_unstable();
    // FNV-1a; who needs more mixes it.
    let bytes = ends
        .into_iter()
        .flat_map(|(address, port)| address.iter().chain(port));
    bytes
        .chain([&protocol])
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{Ipv4HeaderSlice, PacketBuilder};

    fn v4_between(ports: (u16, u16), traffic_class: u8) -> Vec<u8> {
        let mut packet = Vec::new();
        PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64)
            .udp(ports.0, ports.1)
            .write(&mut packet, b"hi")
            .unwrap();
        packet[1] = traffic_class;
        let sum = Ipv4HeaderSlice::from_slice(&packet)
            .unwrap()
            .to_header()
            .calc_header_checksum();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    fn v4(traffic_class: u8) -> Vec<u8> {
        v4_between((53, 5353), traffic_class)
    }

    fn v6(traffic_class: u8) -> Vec<u8> {
        let mut packet = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64)
            .udp(53, 5353)
            .write(&mut packet, b"hi")
            .unwrap();
        packet[0] = 0x60 | traffic_class >> 4;
        packet[1] = traffic_class << 4 | packet[1] & 0x0f;
        packet
    }

    #[test]
    fn the_code_point_is_read_from_both_kinds_of_header() {
        for code_point in [0, 1, 8, 46, 63] {
            assert_eq!(dscp(&v4(code_point << 2 | 2)), code_point);
            assert_eq!(dscp(&v6(code_point << 2 | 1)), code_point);
        }
        assert_eq!(dscp(b"\0no packet"), 0);
        assert_eq!(dscp(b"E"), 0, "a lone byte");
    }

    #[test]
    fn a_mark_changes_the_congestion_bits_and_keeps_the_checksum_right() {
        for traffic_class in [0b00, 0b01, 0b10, 0b11, 0xb8 | 0b10, 0xfe] {
            for mut packet in [v4(traffic_class), v6(traffic_class)] {
                let before = packet.clone();
                assert_eq!(ecn_capable(&packet), traffic_class & 0b11 != 0);
                mark_congestion(&mut packet);
                assert_eq!(dscp(&packet), traffic_class >> 2);
                assert!(ecn_capable(&packet));
                let changed = before.iter().zip(&packet).filter(|(a, b)| a != b);
                let is_v4 = packet[0] >> 4 == 4;
                assert!(changed.count() <= if is_v4 { 3 } else { 1 });
                if is_v4 {
                    let header = Ipv4HeaderSlice::from_slice(&packet).unwrap().to_header();
                    assert_eq!(header.header_checksum, header.calc_header_checksum());
                    assert_eq!(packet[1] & 0b11, 0b11);
                }
            }
        }
        let mut packet = v4(0b11);
        set_ecn(&mut packet, 0b10);
        assert_eq!(packet, v4(0b10));
        mark_congestion(&mut []);
        mark_congestion(&mut [0x45, 0]);
    }

    /// The packet of the other direction.
    fn turned(mut packet: Vec<u8>) -> Vec<u8> {
        packet[12..20].rotate_left(4);
        packet[20..24].rotate_left(2);
        packet
    }

    #[test]
    fn packets_of_one_flow_have_one_hash_and_those_of_two_have_two() {
        let hash = |ports| flow_hash(&v4_between(ports, 0));
        assert_eq!(hash((53, 5353)), hash((53, 5353)));
        assert_eq!(flow_hash(&v4(0)), flow_hash(&v4(0xb8)));
        assert_eq!(
            hash((53, 5353)),
            flow_hash(&turned(v4_between((53, 5353), 0)))
        );
        let others = [hash((53, 5354)), hash((54, 5353)), flow_hash(&v6(0)), 0];
        assert!(others.iter().all(|&other| other != hash((53, 5353))));
        // Fragments have no ports but the first: all of them go by their addresses.
        let (mut first, mut second) = (v4_between((1, 2), 0), v4_between((3, 4), 0));
        (first[6], second[7]) = (0x20, 1);
        assert_eq!(flow_hash(&first), flow_hash(&second));
        assert_eq!(flow_hash(b"\0no packet"), 0);
        assert_ne!(flow_hash(&v4(0)[..20]), 0);
    }
}
