//! Who is on the path: hosts, their names and their addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One end of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Where `--rate` comes from.
    Server,
    /// Where commands run.
    Client,
}

impl Side {
    /// Both, the server first.
    pub const BOTH: [Side; 2] = [Side::Server, Side::Client];
}

/// The most hosts on each side: the last byte of an IPv4 address tells 254 hosts apart, half of
/// them servers.
pub const MAX_HOSTS: u8 = 127;

/// One host of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostId {
    /// The end of the path at which it is.
    pub side: Side,
    /// From 1 to [`MAX_HOSTS`].
    pub number: u8,
}

impl HostId {
    /// The only host of this side, or the first one.
    #[must_use]
    pub const fn first(side: Side) -> HostId {
        HostId { side, number: 1 }
    }

    /// The last byte of its addresses: odd for servers, the next number for the client of a pair.
    fn last_byte(self) -> u8 {
        let server = 2 * (self.number - 1) + 1;
        match self.side {
            Side::Server => server,
            Side::Client => server + 1,
        }
    }

    /// Its addresses on a lane: `10.77.LANE.x` and `fd77:0:LANE::x`.
    #[must_use]
    pub fn addresses(self, lane: u8) -> (Ipv4Addr, Ipv6Addr) {
        let last = self.last_byte();
        let v6 = Ipv6Addr::new(0xfd77, 0, u16::from(lane), 0, 0, 0, 0, u16::from(last));
        (Ipv4Addr::new(10, 77, lane, last), v6)
    }

    /// Every name by which it can be reached: the first of a side also without its number.
    fn names(self) -> String {
        let word = match self.side {
            Side::Server => "server",
            Side::Client => "client",
        };
        match self.number {
            1 => format!("{word} {word}1"),
            number => format!("{word}{number}"),
        }
    }
}

impl fmt::Display for HostId {
    /// `server`, `client`, `server2`, ...
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names();
        f.pad(names.split(' ').next().unwrap_or_default())
    }
}

/// All hosts of a path with so many pairs, servers first.
pub(crate) fn all_hosts(pairs: u8) -> impl Iterator<Item = HostId> {
    let of = move |side| (1..=pairs).map(move |number| HostId { side, number });
    Side::BOTH.into_iter().flat_map(of)
}

/// The lines of a hosts file that make every host known by name: `server` with its IPv4 address
/// alone, so that no program tries IPv6 first and loses a round trip where the server listens on
/// IPv4 only; `server-v6` for the other.
pub(crate) fn hosts_file_lines(lane: u8, pairs: u8) -> String {
    let mut text = format!("# headstart path, lane {lane}\n");
    for host in all_hosts(pairs) {
        let (v4, v6) = host.addresses(lane);
        let names = host.names();
        let names_v6: Vec<String> = names.split(' ').map(|name| format!("{name}-v6")).collect();
        text += &format!("{v4}\t{names}\n{v6}\t{}\n", names_v6.join(" "));
    }
    text
}

/// Where a packet goes: the router's table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Routes {
    pub(crate) lane: u8,
    pub(crate) pairs: u8,
}

impl Routes {
    /// The place, from 0, of the host on the side `to` that a packet is for; `None` if there is
    /// none. With one host a side everything is for it: a program may have given it more addresses.
    pub(crate) fn place(self, to: Side, packet: &[u8]) -> Option<usize> {
        if self.pairs == 1 {
            return Some(0);
        }
        let last = match packet {
            [first, ..] if first >> 4 == 4 => match packet.get(16..20)? {
                [10, 77, lane, last] if *lane == self.lane => *last,
                _ => return None,
            },
            [first, ..] if first >> 4 == 6 => {
                let address: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
                let last = address[15];
                let ours = HostId::first(Side::Server).addresses(self.lane).1.octets();
                if address[..15] != ours[..15] {
                    return None;
                }
                last
            }
            _ => return None,
        };
        let number = last.checked_add(1)? / 2;
        let host = HostId { side: to, number };
        let is_there = (1..=self.pairs).contains(&number) && host.last_byte() == last;
        is_there.then(|| usize::from(number) - 1)
    }
}

/// The source and destination of a packet; `None` if it is not IP.
pub(crate) fn addresses_of(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match packet.first()? >> 4 {
        4 => {
            let at = |range| Some(IpAddr::from(<[u8; 4]>::try_from(packet.get(range)?).ok()?));
            Some((at(12..16)?, at(16..20)?))
        }
        6 => {
            let at = |range| Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(range)?).ok()?));
            Some((at(8..24)?, at(24..40)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn host(side: Side, number: u8) -> HostId {
        HostId { side, number }
    }

    fn packet_to(address: IpAddr) -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = match address {
            IpAddr::V4(v4) => PacketBuilder::ipv4([10, 77, 3, 1], v4.octets(), 64),
            IpAddr::V6(v6) => PacketBuilder::ipv6([1; 16], v6.octets(), 64),
        };
        builder.udp(1, 2).write(&mut packet, b"hi").unwrap();
        packet
    }

    #[test]
    fn hosts_have_names_and_addresses_in_pairs() {
        let (v4, v6) = host(Side::Server, 1).addresses(0);
        assert_eq!(
            (v4.to_string(), v6.to_string()),
            ("10.77.0.1".into(), "fd77::1".into())
        );
        let (v4, v6) = host(Side::Client, MAX_HOSTS).addresses(9);
        assert_eq!(v4.to_string(), "10.77.9.254");
        assert_eq!(v6.to_string(), "fd77:0:9::fe");
        assert_eq!(host(Side::Server, 1).to_string(), "server");
        assert_eq!(host(Side::Client, 12).to_string(), "client12");
        let lines = hosts_file_lines(3, 2);
        assert!(lines.contains("10.77.3.1\tserver server1\n"), "{lines}");
        assert!(lines.contains("fd77:0:3::4\tclient2-v6\n"), "{lines}");
    }

    #[test]
    fn a_packet_is_for_the_host_with_its_address_and_for_nobody_else() {
        let routes = Routes { lane: 3, pairs: 4 };
        for number in 1..=4 {
            let place = usize::from(number) - 1;
            for side in Side::BOTH {
                let (v4, v6) = host(side, number).addresses(3);
                assert_eq!(routes.place(side, &packet_to(v4.into())), Some(place));
                assert_eq!(routes.place(side, &packet_to(v6.into())), Some(place));
            }
            let (v4, _) = host(Side::Server, number).addresses(3);
            assert_eq!(
                routes.place(Side::Client, &packet_to(v4.into())),
                None,
                "own side"
            );
        }
        for stranger in [
            "10.77.3.0",
            "10.77.3.10",
            "10.77.3.255",
            "10.77.4.2",
            "fd77:0:4::2",
            "fd77:0:3::1:2",
        ] {
            let address: IpAddr = stranger.parse().unwrap();
            assert_eq!(
                routes.place(Side::Client, &packet_to(address)),
                None,
                "{stranger}"
            );
        }
        assert_eq!(routes.place(Side::Client, b"E"), None);
        let single = Routes { lane: 3, pairs: 1 };
        assert_eq!(
            single.place(Side::Client, &packet_to("192.0.2.1".parse().unwrap())),
            Some(0)
        );
    }
}
