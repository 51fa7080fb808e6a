//! A Wi-Fi-like radio: an access costs a time of its own and is for several packets, an attempt may
//! fail and is made again after a longer wait, and the rate changes. The times are those of IEEE
//! 802.11-2016 in the 5 GHz band; docs/links.md says what is left out.

use super::chance::{Alternating, Walk};
use crate::Rate;
use crate::access::WifiSpec;
use crate::dice::{Dice, Purpose};
use crate::packet::FULL_PACKET_BYTES;

/// aSlotTime, aSIFSTime (table 17-21, OFDM PHY, 20 MHz) and the DIFS made of them (10.3.7).
const SLOT_NS: u64 = 9_000;
const SIFS_NS: u64 = 16_000;
const DIFS_NS: u64 = SIFS_NS + 2 * SLOT_NS;
/// aCWmin and aCWmax, in slots (table 17-21).
const CW_MIN: u64 = 15;
const CW_MAX: u64 = 1023;
/// The preamble of an HT-mixed frame of one stream: L-STF, L-LTF, L-SIG, HT-SIG, HT-STF, HT-LTF.
const PREAMBLE_NS: u64 = 36_000;
/// A block acknowledgement of 32 bytes at 24 Mbit/s: 20 us of preamble and 3 symbols of 4 us.
const ACK_NS: u64 = 32_000;
/// What a packet carries on the air: A-MPDU delimiter 4, QoS header 26, LLC and SNAP 8, FCS 4.
const HEADER_BYTES: u64 = 42;
/// Attempts before the packets go whatever happens: the first and dot11ShortRetryLimit, 7.
const MOST_ATTEMPTS: u32 = 8;

/// How long so many bytes of packets are on the air.
fn airtime_ns(bytes: u64, rate: Rate) -> u64 {
    (bytes * 8 * 1_000_000_000).div_ceil(rate.bits_per_s())
}

/// Bits a second of full packets in full aggregates, retries of `fail` included, without bursts.
pub(crate) fn saturated(spec: &WifiSpec, rate: Rate) -> u64 {
    let packets = f64::from(spec.aggregate);
    let frame_bytes = u64::from(FULL_PACKET_BYTES) + HEADER_BYTES;
    let data_ns = packets * airtime_ns(frame_bytes, rate) as f64;
    let fixed_ns = (DIFS_NS + PREAMBLE_NS + SIFS_NS + ACK_NS) as f64;
    let (mut mean_ns, mut chance, mut window) = (0.0, 1.0, CW_MIN);
    for _ in 0..MOST_ATTEMPTS {
        let backoff_ns = (window * SLOT_NS) as f64 / 2.0;
        mean_ns += chance * (fixed_ns + backoff_ns + data_ns);
        chance *= spec.fail.as_f64();
        window = CW_MAX.min(2 * window + 1);
    }
    (packets * f64::from(FULL_PACKET_BYTES) * 8.0 * 1e9 / mean_ns) as u64
}

#[derive(Debug)]
pub(crate) struct Wifi {
    spec: WifiSpec,
    rate: Walk,
    interference: Alternating,
    dice: Dice,
    /// When the present access began, or when the next one can.
    free_ns: u64,
    access: Option<Access>,
    busy_ns: u64,
}

/// One access to the radio that more packets can join.
#[derive(Debug)]
struct Access {
    rate: Rate,
    room_pkts: u32,
    /// When the last packet in it is sent.
    sent_ns: u64,
}

impl Wifi {
    pub(super) fn new(spec: &WifiSpec, seed: u64, origin_ns: u64) -> Wifi {
        let last = spec.rates.len().saturating_sub(1);
        Wifi {
            spec: spec.clone(),
            rate: Walk::new(last, spec.hold, seed, Purpose::RateWalk, origin_ns),
            interference: Alternating::new(
                (spec.burst, spec.every),
                seed,
                Purpose::Bursts,
                origin_ns,
            ),
            dice: Dice::new(seed, Purpose::Attempts),
            free_ns: origin_ns,
            access: None,
            busy_ns: 0,
        }
    }

    pub(super) fn free_ns(&self) -> u64 {
        self.free_ns
    }

    pub(super) fn idle_until(&mut self, now_ns: u64) {
        // Those that could have joined were dropped before their turn.
        if let Some(access) = self.access.take() {
            self.end(&access);
        }
        self.free_ns = self.free_ns.max(now_ns);
    }

    /// An aggregate is made of what waits when the access begins: `free_ns` stays at that time until
    /// it is full or nothing waits any more.
    pub(super) fn send(&mut self, wire_bytes: u32, waiting_bytes: u64) -> u64 {
        let bytes = u64::from(wire_bytes) + HEADER_BYTES;
        let mut access = match self.access.take() {
            Some(access) => access,
            None => self.begin(bytes, waiting_bytes),
        };
        access.sent_ns = access
            .sent_ns
            .saturating_add(airtime_ns(bytes, access.rate));
        access.room_pkts -= 1;
        let sent_ns = access.sent_ns;
        match access.room_pkts > 0 && waiting_bytes > 0 {
            true => self.access = Some(access),
            false => self.end(&access),
        }
        sent_ns
    }

    pub(super) fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// All attempts but the last, which succeeds, and what comes before its first packet.
    fn begin(&mut self, bytes: u64, waiting_bytes: u64) -> Access {
        let index = self.rate.at(self.free_ns);
        let rate = self.spec.rates[index];
        // What fails is an aggregate as long as this one will be, if all packets are of one size.
        let pkts = (1 + waiting_bytes / bytes).min(u64::from(self.spec.aggregate));
        let data_ns = airtime_ns(pkts * bytes, rate);
        let (mut now_ns, mut window) = (self.free_ns, CW_MIN);
        for attempt in 1..=MOST_ATTEMPTS {
            let backoff_ns = self.dice.up_to(window) * SLOT_NS;
            let begins_ns = now_ns.saturating_add(DIFS_NS + backoff_ns + PREAMBLE_NS);
            let fail = match self.interference.is_on_at(begins_ns) {
                true => self.spec.burst_fail,
                false => self.spec.fail,
            };
            if !self.dice.happens(fail) || attempt == MOST_ATTEMPTS {
                now_ns = begins_ns;
                break;
            }
            // The acknowledgement does not come.
            now_ns = begins_ns.saturating_add(data_ns + SIFS_NS + ACK_NS);
            window = CW_MAX.min(2 * window + 1);
        }
        Access {
            rate,
            room_pkts: self.spec.aggregate,
            sent_ns: now_ns,
        }
    }

    fn end(&mut self, access: &Access) {
        let end_ns = access.sent_ns.saturating_add(SIFS_NS + ACK_NS);
        self.busy_ns += end_ns - self.free_ns;
        self.free_ns = end_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateSpec;
    use crate::access::AccessSpec;

    fn spec(text: &str) -> WifiSpec {
        match text.parse() {
            Ok(RateSpec::Access(AccessSpec::Wifi(spec))) => spec,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn wifi(text: &str) -> Wifi {
        Wifi::new(&spec(text), 7, 0)
    }

    /// Without chance but for the first backoff of 0 to 15 slots.
    const SURE: &str = "wifi:54mbit,fail=0,every=0s";

    #[test]
    fn a_lone_packet_takes_an_access_of_its_own() {
        let mut wifi = wifi(SURE);
        let sent_ns = wifi.send(1500, 0);
        let least_ns = DIFS_NS + PREAMBLE_NS + airtime_ns(1542, wifi.spec.rates[0]);
        let backoff_ns = sent_ns - least_ns;
        assert!(backoff_ns.is_multiple_of(SLOT_NS) && backoff_ns <= CW_MIN * SLOT_NS);
        assert_eq!(wifi.free_ns(), sent_ns + SIFS_NS + ACK_NS);
        assert_eq!(wifi.busy_ns(), wifi.free_ns());
    }

    #[test]
    fn packets_that_wait_share_an_access_up_to_its_size() {
        let mut wifi = wifi(&format!("{SURE},aggregate=3"));
        let packet_ns = airtime_ns(1542, wifi.spec.rates[0]);
        let sent: Vec<u64> = (0..4)
            .map(|left| wifi.send(1500, 1500 * (3 - left)))
            .collect();
        assert_eq!([sent[1] - sent[0], sent[2] - sent[1]], [packet_ns; 2]);
        assert!(sent[3] >= sent[2] + SIFS_NS + ACK_NS + DIFS_NS + PREAMBLE_NS + packet_ns);
    }

    #[test]
    fn what_waits_when_the_access_begins_is_what_is_in_it() {
        let mut wifi = wifi(SURE);
        wifi.send(1500, 1500);
        assert_eq!(wifi.free_ns(), 0, "the second one is sent with the first");
        wifi.send(1500, 0);
        assert!(wifi.free_ns() > 0);
        // The second one is dropped in place of being sent.
        wifi.send(1500, 1500);
        wifi.idle_until(10_000_000);
        assert_eq!(wifi.free_ns(), 10_000_000);
        assert!(wifi.busy_ns() < 10_000_000);
    }

    /// Bits a second over a minute of full packets that never stop coming.
    fn carried(text: &str) -> f64 {
        let mut wifi = wifi(text);
        let mut bits = 0.0;
        while wifi.free_ns() < 600_000_000_000 {
            wifi.send(1500, 1_000_000);
            bits += 12_000.0;
        }
        bits / 600.0
    }

    #[test]
    fn full_packets_that_never_stop_coming_are_carried_at_the_nominal_rate() {
        for text in [
            "wifi:every=0s,hold=20ms",
            "wifi:54mbit,aggregate=1,every=0s,fail=30%",
        ] {
            let nominal = text.parse::<RateSpec>().unwrap().nominal().bits_per_s() as f64;
            let carried = carried(text);
            assert!(
                (carried / nominal - 1.0).abs() < 0.03,
                "{text}: {carried}, {nominal}"
            );
        }
        assert!(carried("wifi:54mbit,burst=100ms,every=100ms") < 0.8 * carried(SURE));
    }

    #[test]
    fn bursts_of_interference_delay_by_many_milliseconds() {
        let mut wifi = wifi("wifi:54mbit,fail=0,burst=50ms,every=500ms,aggregate=1");
        let delays_ms: Vec<u64> = (0..10_000u64)
            .map(|number| {
                let came_ns = number * 10_000_000;
                wifi.idle_until(came_ns);
                (wifi.send(100, 0) - came_ns) / 1_000_000
            })
            .collect();
        let slow = delays_ms.iter().filter(|&&ms| ms >= 3).count();
        assert!((150..1500).contains(&slow), "{slow}");
        assert!(delays_ms.iter().filter(|&&ms| ms == 0).count() > 8500);
    }
}
