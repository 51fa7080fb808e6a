//! The assignment to the arms of an experiment: of destination prefixes and of connections what `hs_place` of
//! `bpf/rules.h` computes, and of slices of time.

use std::net::IpAddr;

use crate::policy_layout::octets;

/// The whole, in shares of arms and in the sampling (`HS_SHARE_ONE`).
pub const SHARE_ONE: u32 = 65_536;

/// The finaliser of MurmurHash3 (Appleby, public domain).
const fn mix(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// The salt that a text stands for: FNV-1a, 64 bits.
pub fn salt_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Where the prefix of `bits` bits that `addr` lies in stands under `salt`, 0 to [`SHARE_ONE`] - 1. An arm has the
/// places from the shares of those before it to its own.
pub fn assign(salt: u64, addr: IpAddr, bits: u8) -> u32 {
    place(hash_prefix(salt, addr, bits))
}

/// Where the connection to `remote_port` of `addr` from our `local_port` stands under `salt`, by itself.
pub fn assign_connection(salt: u64, addr: IpAddr, local_port: u16, remote_port: u16) -> u32 {
    let whole = if addr.to_canonical().is_ipv4() {
        32
    } else {
        128
    };
    let ports = u64::from(local_port) << 16 | u64::from(remote_port);
    place(mix(hash_prefix(salt, addr, whole) ^ ports))
}

/// Where the slice of time with this number stands under `salt`.
pub fn assign_slice(salt: u64, number: u64) -> u32 {
    place(mix(mix(salt) ^ number))
}

fn place(hash: u64) -> u32 {
    (hash as u32) & (SHARE_ONE - 1)
}

fn hash_prefix(salt: u64, addr: IpAddr, bits: u8) -> u64 {
    let (family, addr) = octets(addr);
    let first = mix(salt ^ (u64::from(family) << 8 | u64::from(bits)));
    let (words, _) = addr.as_chunks::<4>();
    words.iter().zip(0u32..).fold(first, |hash, (word, index)| {
        let left = u32::from(bits).saturating_sub(32 * index).min(32);
        let mask = u32::MAX.checked_shl(32 - left).unwrap_or(0);
        mix(hash ^ u64::from(u32::from_be_bytes(*word) & mask))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(salt: &str) -> Vec<u32> {
        let salt = salt_of(salt);
        (0..10_000u32)
            .map(|n| std::net::Ipv4Addr::from(0x0a00_0000 + (n << 8)))
            .map(|addr| assign(salt, addr.into(), 24))
            .collect()
    }

    fn assert_even(places: &[u32]) {
        let mut cells = [0u32; 16];
        for place in places {
            cells[(place / (SHARE_ONE / 16)) as usize] += 1;
        }
        let expected = places.len() as f64 / 16.0;
        let chi_squared: f64 = cells
            .iter()
            .map(|cell| (f64::from(*cell) - expected).powi(2) / expected)
            .sum();
        // 15 degrees of freedom: 37.7 is passed by one hash in a thousand.
        assert!(chi_squared < 37.7, "{chi_squared} {cells:?}");
    }

    #[test]
    fn neighbouring_prefixes_spread_evenly_over_the_shares() {
        assert_even(&places("a"));
    }

    /// One client whose ports go up by two, as Linux takes them.
    #[test]
    fn connections_of_one_client_spread_evenly_over_the_shares() {
        let (salt, client) = (salt_of("a"), "203.0.113.7".parse().unwrap());
        let ports = (0..10_000u16).map(|n| 32_768 + 2 * n);
        let places: Vec<u32> = ports
            .map(|port| assign_connection(salt, client, 443, port))
            .collect();
        assert_even(&places);
    }

    #[test]
    fn slices_of_time_spread_evenly_and_one_tells_nothing_of_the_next() {
        let salt = salt_of("a");
        let places: Vec<u32> = (0..10_000)
            .map(|n| assign_slice(salt, 2_900_000 + n))
            .collect();
        assert_even(&places);
        let half = SHARE_ONE / 2;
        let alike = places
            .windows(2)
            .filter(|pair| (pair[0] < half) == (pair[1] < half))
            .count();
        // Half of 9,999, with a standard deviation of 50.
        assert!((4_800..5_200).contains(&alike), "{alike}");
    }

    #[test]
    fn a_connection_stands_where_its_four_numbers_say_and_nowhere_else() {
        let salt = salt_of("x");
        let at =
            |addr: &str, ours, theirs| assign_connection(salt, addr.parse().unwrap(), ours, theirs);
        assert_eq!(at("10.1.2.3", 443, 5000), at("::ffff:10.1.2.3", 443, 5000));
        for other in [
            at("10.1.2.4", 443, 5000),
            at("10.1.2.3", 444, 5000),
            at("10.1.2.3", 443, 5001),
            at("10.1.2.3", 5000, 443),
        ] {
            assert_ne!(at("10.1.2.3", 443, 5000), other);
        }
    }

    #[test]
    fn another_salt_is_another_assignment_that_knows_nothing_of_the_first() {
        let half = SHARE_ONE / 2;
        let both = places("a")
            .into_iter()
            .zip(places("b"))
            .filter(|(a, b)| (*a < half) == (*b < half))
            .count();
        // Half of 10,000, with a standard deviation of 50.
        assert!((4_800..5_200).contains(&both), "{both}");
    }

    #[test]
    fn all_addresses_of_a_prefix_stand_at_one_place() {
        let salt = salt_of("x");
        let at = |addr: &str| assign(salt, addr.parse().unwrap(), 24);
        assert_eq!(at("10.1.2.3"), at("10.1.2.200"));
        assert_ne!(at("10.1.2.3"), at("10.1.3.3"));
    }
}
