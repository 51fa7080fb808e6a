//! The window that Linux offers, and how long it acknowledges every packet.
//!
//! Two things of `tcp_input.c` work together. `tcp_rcv_space_adjust` measures once a round trip what
//! was read, and lets the buffer follow; `tcp_grow_window` lets the window that is offered follow the
//! buffer by two segments a packet, and each packet with which it grows is acknowledged at once.

/// Linux: `TCP_MAX_QUICKACKS`, packets acknowledged at once at the start and after a long pause.
const QUICK_ACKS: u32 = 16;
/// Linux: `TCP_INIT_CWND`, what is expected of the first round trip.
const FIRST_ROUND_PKTS: u64 = 10;
/// A smaller packet does not let the window grow (tcp_event_data_recv).
const LEAST_GROWING_BYTES: u16 = 128;
/// Linux takes half of the buffer for data until it has seen a full segment, and then the share that
/// data has of what holds it (6.6 and later; tcp_measure_rcv_mss): of 1448 bytes in 2304 that is
/// 160/256. What is counted here are windows, so that the buffer becomes larger by a quarter.
const MEASURED_SHARE: u64 = 160;
const FIRST_SHARE: u64 = 128;
/// Linux: `TCP_RTO_MIN`, 200 ms.
const LEAST_RTO_US: u64 = 200_000;

/// Packets that are still to be acknowledged at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QuickAcks(u32);

impl QuickAcks {
    pub(crate) fn enter(&mut self) {
        self.0 = self.0.max(QUICK_ACKS);
    }

    pub(crate) fn on(self) -> bool {
        self.0 > 0
    }

    pub(crate) fn acknowledged(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
}

/// The window of a receiver whose buffer follows what is read; the application reads at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrowingWindow {
    /// What the buffer has room for.
    buffer_bytes: u64,
    /// How far the window may grow (window_clamp).
    clamp_bytes: u64,
    /// What is offered (rcv_ssthresh).
    offered_bytes: u64,
    most_bytes: u64,
    /// The window scale option: what is offered is a multiple of this (RFC 7323, 2.3).
    unit_bytes: u64,
    /// What was read in the round trip before, and where and when the present one began.
    round_bytes: u64,
    round_from: u64,
    round_since_ns: u64,
    /// Smoothed, times 8; 0: never measured.
    rtt_8us: u64,
    last_echo_ms: Option<u32>,
    /// Without timestamps a round trip is a window: until this has come, and since when.
    window_end: u64,
    window_since_ns: u64,
    last_came_ns: Option<u64>,
    /// A full segment has come.
    share_is_measured: bool,
}

/// So that 16 bits can tell the largest buffer, of which a window is half (tcp_select_initial_window).
fn unit_bytes(first_bytes: u32, most_bytes: u32) -> u64 {
    match most_bytes > first_bytes {
        true => 1 << (2 * u64::from(most_bytes)).ilog2().saturating_sub(15),
        false => 1,
    }
}

impl GrowingWindow {
    pub(crate) fn new(first_bytes: u32, most_bytes: u32) -> GrowingWindow {
        GrowingWindow {
            buffer_bytes: first_bytes.into(),
            clamp_bytes: first_bytes.into(),
            offered_bytes: first_bytes.into(),
            most_bytes: most_bytes.into(),
            unit_bytes: unit_bytes(first_bytes, most_bytes),
            round_bytes: 0,
            round_from: 0,
            round_since_ns: 0,
            rtt_8us: 0,
            last_echo_ms: None,
            window_end: 0,
            window_since_ns: 0,
            last_came_ns: None,
            share_is_measured: false,
        }
    }

    pub(crate) fn bytes(&self) -> u32 {
        let offered_bytes = self.offered_bytes.next_multiple_of(self.unit_bytes);
        u32::try_from(offered_bytes).unwrap_or(u32::MAX)
    }

    /// Round-trip time as the receiver sees it; 0: never measured.
    pub(crate) fn rtt_us(&self) -> u64 {
        self.rtt_8us >> 3
    }

    /// Data came (tcp_event_data_recv, tcp_grow_window). With `may_grow` it is in order, or the sender is told of it by
    /// SACK: else the window stays as it is, or the acknowledgement would be no duplicate (tcp_data_queue_ofo).
    pub(crate) fn came(
        &mut self,
        now_ns: u64,
        len_bytes: u16,
        mss_bytes: u16,
        may_grow: bool,
        quick: &mut QuickAcks,
    ) {
        match self.last_came_ns {
            None => {
                // One segment of the buffer stays in reserve (tcp_init_buffer_space).
                self.clamp_bytes = self.buffer_bytes.saturating_sub(mss_bytes.into());
                self.offered_bytes = self.offered_bytes.min(self.clamp_bytes);
                self.round_bytes = FIRST_ROUND_PKTS * u64::from(mss_bytes);
                quick.enter();
            }
            Some(last_ns) if (now_ns - last_ns) / 1000 > self.rto_us() => quick.enter(),
            Some(_) => {}
        }
        self.last_came_ns = Some(now_ns);
        if len_bytes >= mss_bytes && !self.share_is_measured {
            self.share_is_measured = true;
            let advertised_bytes = u64::from(self.bytes());
            let bytes = self.buffer_bytes * MEASURED_SHARE / FIRST_SHARE;
            self.let_buffer_be(bytes);
            // What was advertised stands (tcp_set_window_clamp).
            self.offered_bytes = advertised_bytes.min(self.clamp_bytes);
        }
        let room_bytes = self.clamp_bytes.saturating_sub(self.offered_bytes);
        if may_grow && len_bytes >= LEAST_GROWING_BYTES && room_bytes > 0 {
            self.offered_bytes += room_bytes.min(2 * u64::from(mss_bytes));
            quick.0 |= 1;
        }
    }

    /// The application has set the buffer: the window stays as it is.
    pub(crate) fn fix(&mut self, bytes: u32) {
        self.offered_bytes = bytes.into();
        self.clamp_bytes = bytes.into();
    }

    /// What came out of order, up to `ahead_bytes` beyond the next byte, needs room as well.
    pub(crate) fn keeps_ahead(&mut self, ahead_bytes: u64) {
        self.let_buffer_be(2 * self.round_bytes + ahead_bytes);
    }

    fn let_buffer_be(&mut self, window_bytes: u64) {
        let window_bytes = window_bytes.min(self.most_bytes);
        if window_bytes > self.buffer_bytes {
            self.buffer_bytes = window_bytes;
            self.clamp_bytes = window_bytes;
        }
    }

    /// RFC 6298 after one measurement, as the client has it after the handshake.
    fn rto_us(&self) -> u64 {
        let rtt_us = self.rtt_us();
        rtt_us + (2 * rtt_us).max(LEAST_RTO_US)
    }

    /// A full segment came that echoes when an acknowledgement had left (tcp_rcv_rtt_measure_ts).
    pub(crate) fn measure_by_echo(&mut self, now_ns: u64, echo_ms: u32) {
        if self.last_echo_ms == Some(echo_ms) {
            return;
        }
        self.last_echo_ms = Some(echo_ms);
        let now_ms = (now_ns / 1_000_000) as u32;
        let sample_us = u64::from(now_ms.wrapping_sub(echo_ms).max(1)) * 1000;
        self.rtt_8us = match self.rtt_8us {
            // What is shorter counts at once (6.16 and later; tcp_rcv_rtt_update).
            rtt_8us if rtt_8us == 0 || sample_us * 8 < rtt_8us => sample_us * 8,
            rtt_8us => rtt_8us + sample_us - (rtt_8us >> 3),
        };
    }

    /// Without timestamps: how long it took until what could be sent had come (tcp_rcv_rtt_measure).
    pub(crate) fn measure_by_window(&mut self, now_ns: u64, next: u64) {
        if next < self.window_end {
            return;
        }
        if self.window_end > 0 {
            let sample_8us = ((now_ns - self.window_since_ns) / 1000).max(1) * 8;
            if self.rtt_8us == 0 || sample_8us < self.rtt_8us {
                self.rtt_8us = sample_8us;
            }
        }
        self.window_end = next + self.offered_bytes;
        self.window_since_ns = now_ns;
    }

    /// All before `next` was read (tcp_rcv_space_adjust).
    pub(crate) fn read(&mut self, now_ns: u64, next: u64) {
        let since_us = (now_ns - self.round_since_ns) / 1000;
        if self.rtt_8us == 0 || since_us < self.rtt_us() {
            return;
        }
        let read_bytes = next - self.round_from;
        if read_bytes > self.round_bytes {
            // Twice, for it is a round trip late; and as much again as it has grown, for slow start.
            let grown = u128::from(read_bytes - self.round_bytes);
            let extra = u128::from(2 * read_bytes) * grown / u128::from(self.round_bytes.max(1));
            let extra_bytes = u64::try_from(2 * extra).unwrap_or(u64::MAX);
            self.let_buffer_be((2 * read_bytes).saturating_add(extra_bytes));
            self.round_bytes = read_bytes;
        }
        self.round_from = next;
        self.round_since_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u16 = 1000;

    /// `rounds` round trips of 100 ms, each with twice the packets of the one before, acknowledged or
    /// not as `quick` says. Returns how many of each round were acknowledged at once, and the window.
    fn slow_start(rounds: u32) -> (Vec<u32>, u32) {
        let mut window = GrowingWindow::new(65_535, 32 << 20);
        let mut quick = QuickAcks::default();
        let mut next = 0;
        let mut at_once = Vec::new();
        for round in 1..=rounds {
            let mut pkts = 0;
            for number in 0..10 << (round - 1) {
                let now_ns = u64::from(round) * 100_000_000 + number * 10_000;
                next += u64::from(MSS);
                window.measure_by_echo(now_ns, (round - 1) * 100);
                window.came(now_ns, MSS, MSS, true, &mut quick);
                window.read(now_ns, next);
                pkts += u32::from(quick.on());
                quick.acknowledged();
            }
            at_once.push(pkts);
        }
        (at_once, window.bytes())
    }

    /// Measured on Linux 6.18: 22 to 23, where `TCP_MAX_QUICKACKS` is 16.
    #[test]
    fn the_first_full_segment_lets_the_window_grow_and_six_or_seven_more_are_acknowledged_at_once()
    {
        let mut window = GrowingWindow::new(65_535, 32 << 20);
        let mut quick = QuickAcks::default();
        let mut at_once = 0;
        for number in 0..40 {
            window.came(number, 1448, 1448, true, &mut quick);
            at_once += u32::from(quick.on());
            quick.acknowledged();
        }
        assert_eq!(at_once, 22);
        assert_eq!(window.bytes(), 81_920);
    }

    #[test]
    fn sixteen_packets_are_acknowledged_at_once_and_all_while_the_window_grows() {
        let (at_once, _) = slow_start(5);
        assert_eq!(at_once[0], 10);
        assert!((12..20).contains(&at_once[1]), "the rest: {at_once:?}");
        // From here on the buffer grows, and the window behind it, two segments a packet: of 80 packets
        // and of 160 most.
        assert!(at_once[3] > 40 && at_once[4] > 80, "{at_once:?}");
    }

    #[test]
    fn what_comes_out_of_order_and_is_not_reported_leaves_the_window_as_it_is() {
        let mut window = GrowingWindow::new(65_535, 32 << 20);
        let mut quick = QuickAcks::default();
        window.came(0, 1448, 1448, true, &mut quick);
        let before = window.bytes();
        window.came(1, 1448, 1448, false, &mut quick);
        assert_eq!(window.bytes(), before);
        window.came(2, 1448, 1448, true, &mut quick);
        assert!(window.bytes() > before);
    }

    #[test]
    fn the_window_grows_by_two_segments_a_packet_and_not_at_once() {
        let (_, before) = slow_start(2);
        // 65,535 and a quarter, to the next multiple of 2048.
        assert_eq!(before, 81_920);
        let (at_once, after) = slow_start(3);
        assert!(at_once[2] > 0);
        assert!(
            after <= before + 2 * 40 * u32::from(MSS),
            "{before} {after}"
        );
    }

    #[test]
    fn a_pause_longer_than_the_timer_makes_it_acknowledge_at_once_again() {
        let mut window = GrowingWindow::new(65_535, 65_535);
        let mut quick = QuickAcks::default();
        window.measure_by_echo(100_000_000, 0);
        for number in 0..17 {
            window.came(100_000_000 + number, MSS, MSS, true, &mut quick);
            quick.acknowledged();
        }
        assert!(!quick.on());
        window.came(399_000_000, MSS, MSS, true, &mut quick);
        assert!(!quick.on(), "299 ms after the last, less than 300");
        window.came(800_000_000, MSS, MSS, true, &mut quick);
        assert!(quick.on());
    }
}
