//! A DOCSIS-like upstream: a modem asks for each burst, in a contention region or with the burst
//! before, and sends when the termination system says so. After DOCSIS 1.1 and 3.0 (CM-SP-MULPIv3.0,
//! sections 7.2.1 and 7.2.2); docs/links.md says what is left out.

use super::chance::Alternating;
use super::steady::Steady;
use crate::Rate;
use crate::access::DocsisSpec;
use crate::dice::{Dice, Purpose};

/// From the modem to the termination system and through it: at most 0.8 ms of cable, and some time
/// to make up the next MAP.
const PLANT_NS: u64 = 1_000_000;
/// Requests that a contention region has room for.
const REQUESTS_A_MAP: u64 = 4;
/// Data Backoff Start and End: the first window is 2^3 requests, the last 2^7.
const BACKOFF_START: u32 = 3;
const BACKOFF_END: u32 = 7;
/// After so many requests the modem gives up; here the last one is heard.
const MOST_REQUESTS: u32 = 16;
/// How often a grant is put off at most: what is put off for longer is lost, and asked for again.
const MOST_DEFERRALS: u32 = 64;

/// What grants of full size can carry, if each is asked for with the one before.
pub(crate) fn most_bits_per_s(spec: &DocsisSpec) -> u64 {
    let bits = u128::from(spec.grant_bytes) * 8 * 1_000_000_000;
    // Half a MAP to the one that answers, and half of that to the grant, in the mean.
    let cycle_ns = PLANT_NS + spec.map.as_ns();
    u64::try_from(bits / u128::from(cycle_ns)).unwrap_or(u64::MAX)
}

#[derive(Debug)]
pub(crate) struct Docsis {
    spec: DocsisSpec,
    origin_ns: u64,
    /// Sends what is granted.
    channel: Steady,
    /// Sends the same at the subscriber's rate: how far it is ahead is what is left of the burst.
    shaper: Steady,
    /// How far ahead of the shaper it may be.
    burst_ns: u64,
    others: Alternating,
    dice: Dice,
    request: Option<Request>,
}

/// What was asked for.
#[derive(Debug)]
struct Request {
    /// When it was sent: what comes later is not in it.
    asked_ns: u64,
    /// When its grant begins, or the next packet in it can.
    grant_ns: u64,
    bytes: u64,
    /// What is granted of it, at most.
    most_bytes: u64,
}

impl Docsis {
    pub(super) fn new(spec: &DocsisSpec, seed: u64, origin_ns: u64) -> Docsis {
        let burst_bits = u64::from(spec.burst_bytes) * 8;
        let at = |rate: Rate| {
            let mut steady = Steady::fixed(rate);
            steady.idle_until(origin_ns);
            steady
        };
        Docsis {
            origin_ns,
            channel: at(spec.channel),
            shaper: at(spec.rate),
            burst_ns: burst_bits * 1_000_000_000 / spec.rate.bits_per_s(),
            others: Alternating::new((spec.busy, spec.every), seed, Purpose::Bursts, origin_ns),
            dice: Dice::new(seed, Purpose::Attempts),
            request: None,
            spec: spec.clone(),
        }
    }

    pub(super) fn free_ns(&self) -> u64 {
        match &self.request {
            Some(request) => request.grant_ns,
            None => self.channel.free_ns(),
        }
    }

    /// A packet came and found nothing waiting: it has to be asked for.
    pub(super) fn idle_until(&mut self, now_ns: u64) {
        let grant_ns = self.request.as_ref().map(|request| request.grant_ns);
        if grant_ns.is_none_or(|grant_ns| grant_ns < now_ns) {
            self.ask(now_ns);
        }
    }

    /// A packet waits from now on.
    pub(super) fn waits(&mut self, now_ns: u64, wire_bytes: u32) {
        if let Some(request) = &mut self.request
            && now_ns <= request.asked_ns
        {
            request.bytes += u64::from(wire_bytes);
        }
    }

    pub(super) fn send(&mut self, wire_bytes: u32, waiting_bytes: u64) -> u64 {
        let began_ns = self.free_ns();
        self.channel.idle_until(began_ns);
        self.shaper.idle_until(began_ns);
        let sent_ns = self.channel.send(wire_bytes);
        self.shaper.send(wire_bytes);
        let (asked_ns, granted_bytes) = match self.request.take() {
            Some(request) => (request.asked_ns, request.bytes.min(request.most_bytes)),
            None => (began_ns, 0),
        };
        // There are no fragments: a packet that begins within the grant ends in it.
        let left_bytes = granted_bytes.saturating_sub(u64::from(wire_bytes));
        if waiting_bytes == 0 {
            return sent_ns;
        }
        if left_bytes > 0 {
            self.request = Some(Request {
                asked_ns,
                grant_ns: sent_ns,
                bytes: left_bytes,
                most_bytes: left_bytes,
            });
        } else if self.may_ask_from_ns() <= began_ns {
            // Piggybacked on this burst.
            self.request = Some(Request {
                asked_ns: began_ns,
                grant_ns: self.grant(began_ns).max(sent_ns),
                bytes: waiting_bytes,
                most_bytes: self.most_bytes(began_ns),
            });
        } else {
            self.ask(sent_ns);
            if let Some(request) = &mut self.request {
                request.bytes += waiting_bytes;
            }
        }
        sent_ns
    }

    pub(super) fn busy_ns(&self) -> u64 {
        self.shaper.busy_ns()
    }

    /// When the subscriber's rate allows for more.
    fn may_ask_from_ns(&self) -> u64 {
        self.shaper.free_ns().saturating_sub(self.burst_ns)
    }

    /// What may be asked for at `now_ns`: what is left of the burst, and at least something.
    fn most_bytes(&self, now_ns: u64) -> u64 {
        let ahead_ns = self.shaper.free_ns().saturating_sub(now_ns);
        let left_ns = u128::from(self.burst_ns.saturating_sub(ahead_ns));
        let left_bits = left_ns * u128::from(self.spec.rate.bits_per_s()) / 1_000_000_000;
        let left_bytes = u64::try_from(left_bits / 8).unwrap_or(u64::MAX);
        left_bytes.clamp(1, u64::from(self.spec.grant_bytes))
    }

    /// Asks in the contention region, from `from_ns` on.
    fn ask(&mut self, from_ns: u64) {
        let map_ns = self.spec.map.as_ns();
        let mut from_ns = from_ns
            .max(self.channel.free_ns())
            .max(self.may_ask_from_ns());
        let mut backoff = BACKOFF_START;
        let mut asked_ns = from_ns;
        for number in 1..=MOST_REQUESTS {
            let skipped = self.dice.up_to((1 << backoff) - 1) / REQUESTS_A_MAP;
            asked_ns = self.next_map_ns(from_ns).saturating_add(skipped * map_ns);
            let collide = match self.others.is_on_at(asked_ns) {
                true => self.spec.busy_collide,
                false => self.spec.collide,
            };
            if !self.dice.happens(collide) || number == MOST_REQUESTS {
                break;
            }
            // The MAP that should have named it comes without.
            from_ns = self.next_map_ns(asked_ns + PLANT_NS).saturating_add(map_ns);
            backoff = BACKOFF_END.min(backoff + 1);
        }
        let grant_ns = self.grant(asked_ns);
        self.request = Some(Request {
            asked_ns,
            grant_ns,
            bytes: 0,
            most_bytes: self.most_bytes(asked_ns),
        });
    }

    /// When the grant for a request begins: somewhere in what the next MAP describes, or a later
    /// one while the others are busy.
    fn grant(&mut self, asked_ns: u64) -> u64 {
        let map_ns = self.spec.map.as_ns();
        let next_ns = self.next_map_ns(asked_ns.saturating_add(PLANT_NS));
        let mut grant_ns = next_ns.saturating_add(self.dice.up_to(map_ns - 1));
        for _ in 0..MOST_DEFERRALS {
            let busy = self.others.is_on_at(grant_ns);
            if !busy || !self.dice.happens(self.spec.busy_defer) {
                break;
            }
            grant_ns = grant_ns.saturating_add(map_ns);
        }
        grant_ns
    }

    /// The first beginning of a MAP's time from `from_ns` on.
    fn next_map_ns(&self, from_ns: u64) -> u64 {
        let map_ns = self.spec.map.as_ns();
        let maps = from_ns.saturating_sub(self.origin_ns).div_ceil(map_ns);
        self.origin_ns.saturating_add(maps.saturating_mul(map_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateSpec;
    use crate::access::AccessSpec;

    const MS: u64 = 1_000_000;

    fn docsis(text: &str) -> Docsis {
        match text.parse() {
            Ok(RateSpec::Access(AccessSpec::Docsis(spec))) => Docsis::new(&spec, 7, 0),
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Nobody else on the cable.
    const ALONE: &str = "docsis:5mbit,collide=0,every=0s";

    /// A packet comes alone at `now_ns`; how long until its last bit is sent.
    fn lone(modem: &mut Docsis, now_ns: u64, wire_bytes: u32) -> u64 {
        modem.idle_until(now_ns);
        modem.waits(now_ns, wire_bytes);
        modem.send(wire_bytes, 0) - now_ns
    }

    #[test]
    fn a_lone_packet_waits_for_a_request_and_a_grant() {
        let mut modem = docsis(ALONE);
        for number in 1..1000 {
            let delay_ns = lone(&mut modem, number * 100 * MS + 1, 64);
            // To the next MAP, at most one more of backoff, the plant, a MAP, and a place in it.
            assert!((3 * MS..=9 * MS).contains(&delay_ns), "{delay_ns}");
        }
    }

    #[test]
    fn others_that_are_busy_make_it_swing_by_tens_of_milliseconds() {
        let mut modem = docsis("docsis:5mbit");
        let delays_ms: Vec<u64> = (1..10_000u64)
            .map(|number| lone(&mut modem, number * 100 * MS, 64) / MS)
            .collect();
        let mean = delays_ms.iter().sum::<u64>() / 10_000;
        let slow = delays_ms.iter().filter(|&&ms| ms >= 20).count();
        assert!((4..15).contains(&mean), "{mean}");
        assert!((200..2500).contains(&slow), "{slow}");
    }

    #[test]
    fn what_waits_at_the_request_is_in_the_grant_and_what_comes_later_is_not() {
        let mut modem = docsis(ALONE);
        modem.idle_until(1);
        modem.waits(1, 500);
        let asked_ns = modem.request.as_ref().map_or(0, |request| request.asked_ns);
        modem.waits(asked_ns, 500);
        modem.waits(asked_ns + 1, 500);
        let first_ns = modem.send(500, 1000);
        assert_eq!(modem.free_ns(), first_ns, "the second one is in the grant");
        let second_ns = modem.send(500, 500);
        // The third one is asked for with the second.
        assert!(modem.free_ns() >= second_ns.max(first_ns + PLANT_NS));
        assert!(modem.free_ns() <= first_ns + PLANT_NS + 4 * MS);
    }

    #[test]
    fn a_long_upload_is_sent_at_the_subscribers_rate() {
        for text in ["docsis:384kbit", "docsis:5mbit", ALONE] {
            let rate = text.parse::<RateSpec>().unwrap().nominal().bits_per_s() as f64;
            let mut modem = docsis(text);
            modem.idle_until(0);
            let (mut bits, mut sent_ns) = (0.0, 0);
            while sent_ns < 600_000 * MS {
                sent_ns = modem.send(1500, 15_000);
                bits += 12_000.0;
            }
            let carried = bits * 1e9 / sent_ns as f64;
            // While the others are busy it may get less, and does not get it back.
            assert!(
                (0.7 * rate..=1.001 * rate).contains(&carried),
                "{text}: {carried}"
            );
        }
    }

    #[test]
    fn nothing_is_sent_beyond_the_burst_and_the_rate() {
        let mut modem = docsis("docsis:384kbit,channel=10240kbit,collide=0,every=0s");
        modem.idle_until(0);
        let mut sent_bits = 0;
        for _ in 0..1000 {
            let began_ns = modem.free_ns();
            let allowed = 3044 * 8 + began_ns * 384 / 1_000_000;
            assert!(sent_bits <= allowed, "{sent_bits} at {began_ns}");
            modem.send(1500, 100_000);
            sent_bits += 12_000;
        }
    }
}
