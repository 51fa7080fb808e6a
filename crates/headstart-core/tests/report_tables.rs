//! Tables 1 and 2 of "A Swifter Start for TCP" (BBN Technical Report 8339, 2002): round trips and bytes until slow
//! start has reached the path's rate. They are arithmetic, and it is the start-ups' own that is checked here: each
//! round trip is given to `su_paced` (Table 1) and `su_swift_start` (Table 2) as the ACKs that it would bring.
//!
//! By the report's footnote 1: 100 ms, 984 bytes of payload, delayed ACKs, a first window of four segments, a factor
//! of 1.5 a round trip; the bytes are those sent by the end of the round trip in which slow start ends. All 15
//! columns come out to the byte.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

use headstart_core::{Connection, Event, EventKind, INFINITE_SSTHRESH, Params, Startup, Verdict};

const MSS_BYTES: u32 = 984;
/// Events count in microseconds, and at 10 Gb/s a segment takes less than one. Only the product of rate and round
/// trip matters: so all rates are a 10,000th here, and the round trip of 100 ms is 10,000 times as long.
const STRETCH: u64 = 10_000;
const RTT_US: u64 = 100_000 * STRETCH;

/// A path on which every segment is acknowledged, and what has been sent over it.
struct Road {
    connection: Connection,
    now_us: u64,
    sent: u64,
    acked: u64,
    cwnd_pkts: u32,
    verdict: Verdict,
}

impl Road {
    fn open(startup: &str, settings: &[(&str, u64)]) -> Road {
        let mut params = Params::new(Startup::named(startup).unwrap());
        params.set("growth_percent", 150).unwrap();
        params.set("max_window_pkts", 1_000_000).unwrap();
        if startup == "su_swift_start" {
            params.set("max_estimate_pkts", 1_000_000).unwrap();
        }
        for (name, value) in settings {
            params.set(name, *value).unwrap();
        }
        let mut road = Road {
            connection: Connection::new(params),
            now_us: 0,
            sent: 0,
            acked: 0,
            cwnd_pkts: 10,
            verdict: Verdict::default(),
        };
        road.tell(EventKind::Open);
        road.tell(EventKind::Send);
        road
    }

    fn tell(&mut self, kind: EventKind) {
        let in_flight = u32::try_from(self.sent - self.acked).unwrap();
        let event = Event {
            now_us: self.now_us,
            sent_bytes: self.sent * u64::from(MSS_BYTES),
            acked_bytes: self.acked * u64::from(MSS_BYTES),
            delivered_pkts: u32::try_from(self.acked).unwrap(),
            inflight_pkts: in_flight,
            cwnd_pkts: self.cwnd_pkts,
            ssthresh_pkts: INFINITE_SSTHRESH,
            srtt_us: u32::try_from(RTT_US).unwrap(),
            mss_bytes: MSS_BYTES,
            kind: kind as u8,
            cwnd_limited: 1,
            ..Event::default()
        };
        self.verdict = self.connection.step(None, &event);
        if self.verdict.cwnd_pkts > 0 {
            self.cwnd_pkts = self.verdict.cwnd_pkts;
        }
    }

    fn send(&mut self) {
        self.sent = self.sent.max(self.acked + u64::from(self.cwnd_pkts));
    }

    fn acknowledge(&mut self, packets: u64) {
        self.acked += packets;
        self.tell(EventKind::Ack);
    }

    /// A window leaves, and its ACKs come, one for two segments.
    fn round_trip(&mut self) -> u64 {
        let window = u64::from(self.cwnd_pkts);
        self.send();
        self.now_us += RTT_US;
        let mut left = window;
        while left > 0 {
            self.acknowledge(left.min(2));
            left -= left.min(2);
        }
        window
    }
}

/// The time of one segment's payload at the bottleneck, to the nearest microsecond.
fn segment_us(kbits_per_s: u64) -> u64 {
    let bits = u64::from(MSS_BYTES) * 8;
    (bits * 1_000 * STRETCH + kbits_per_s / 2) / kbits_per_s
}

/// The path's rate times its round trip, in segments.
fn capacity_pkts(kbits_per_s: u64) -> u64 {
    kbits_per_s * 100 / 8 / u64::from(MSS_BYTES)
}

/// How many round trips until the window has reached the capacity, and the bytes sent by then.
fn to_full_rate(windows: impl Iterator<Item = u64>, capacity_pkts: u64, most: u64) -> (u64, u64) {
    let (mut round_trips, mut packets) = (0, 0);
    for window in windows {
        round_trips += 1;
        packets += window;
        if window > capacity_pkts || round_trips == most {
            break;
        }
    }
    (round_trips, packets * u64::from(MSS_BYTES))
}

/// Mb/s over the whole start-up, as the report rounds it: in kb/s.
fn rate_kbits_per_s((round_trips, bytes): (u64, u64)) -> u64 {
    (bytes * 8 + round_trips * 50) / (round_trips * 100)
}

#[test]
fn table_1_is_what_slow_start_by_a_half_comes_to() {
    // Rate in kb/s, round trips, bytes, data rate in kb/s and to how many kb/s the report rounds that.
    let table = [
        (1_500, 5, 53_136, 850, 1),
        (45_000, 14, 2_414_736, 14_000, 1_000),
        (155_000, 17, 8_179_008, 38_000, 1_000),
        (1_000_000, 21, 41_465_760, 158_000, 1_000),
        (10_000_000, 27, 472_490_232, 1_400_000, 1_000),
    ];
    for (kbits_per_s, round_trips, bytes, rate, precision) in table {
        let mut road = Road::open("su_paced", &[]);
        let windows = std::iter::repeat_with(|| road.round_trip());
        let found = to_full_rate(windows, capacity_pkts(kbits_per_s), u64::MAX);
        assert_eq!(found, (round_trips, bytes), "{kbits_per_s} kb/s");
        assert!(
            rate_kbits_per_s(found).abs_diff(rate) <= precision / 2,
            "{kbits_per_s} kb/s: {found:?}"
        );
    }
}

/// The windows of a swift start: the burst of four, whose first two ACKs come one by one; the estimate; its growth.
fn swift_windows(gamma: u64, kbits_per_s: u64) -> impl Iterator<Item = u64> {
    let mut road = Road::open("su_swift_start", &[("gamma", gamma), ("slope_acks", 0)]);
    let burst = u64::from(road.cwnd_pkts);
    road.send();
    road.now_us += RTT_US;
    road.acknowledge(1);
    road.send();
    road.now_us += segment_us(kbits_per_s);
    road.acknowledge(1);
    let estimate = road.cwnd_pkts;
    road.acknowledge(2);
    assert_eq!(
        road.cwnd_pkts, estimate,
        "the burst's last ACKs grow nothing"
    );
    std::iter::once(burst).chain(std::iter::repeat_with(move || road.round_trip()))
}

#[test]
fn table_2_is_what_swift_start_with_a_perfect_estimate_comes_to() {
    // gamma, rate in kb/s, round trips, bytes, data rate in kb/s and its precision.
    let table = [
        (2, 1_500, 4, 47_232, 945, 1),
        (2, 45_000, 4, 1_337_256, 27_000, 1_000),
        (2, 155_000, 4, 4_603_152, 92_000, 1_000),
        (2, 1_000_000, 4, 29_690_232, 594_000, 1_000),
        (2, 10_000_000, 4, 296_877_720, 5_938_000, 1_000),
        (8, 1_500, 5, 53_136, 850, 1),
        (8, 45_000, 7, 1_469_112, 17_000, 1_000),
        (8, 155_000, 7, 5_040_048, 58_000, 1_000),
        (8, 1_000_000, 7, 32_467_080, 371_000, 1_000),
        (8, 10_000_000, 7, 324_722_952, 3_711_000, 1_000),
    ];
    for (gamma, kbits_per_s, round_trips, bytes, rate, precision) in table {
        let windows = swift_windows(gamma, kbits_per_s);
        // Footnote 6: with gamma = 8 slow start ends a few packets into the eighth round trip; "we chose to treat
        // slow start as ending at the very end of round-trip seven".
        let most = if gamma == 8 { 7 } else { u64::MAX };
        let found = to_full_rate(windows, capacity_pkts(kbits_per_s), most);
        assert_eq!(
            found,
            (round_trips, bytes),
            "gamma {gamma}, {kbits_per_s} kb/s"
        );
        assert!(
            rate_kbits_per_s(found).abs_diff(rate) <= precision / 2,
            "gamma {gamma}, {kbits_per_s} kb/s: {found:?}"
        );
    }
}
