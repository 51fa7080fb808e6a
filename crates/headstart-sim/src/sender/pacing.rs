//! When the next packet may leave, where packets are spaced.

use super::Sender;
use headstart_core::{Event, Phase, Verdict};
use headstart_scenario::PacingSpec;

/// Linux paces none of a connection's first packets (tcp_update_skb_after_send).
const UNPACED_PKTS: u64 = 10;

impl Sender {
    /// Whether a packet may leave now; if not, a timer is set. Packets leave in chunks.
    pub(super) fn pace(&mut self, now_ns: u64, chunk_pkts: &mut u32) -> bool {
        if *chunk_pkts > 0 || self.sent_total + self.resent_total < self.unpaced_pkts() {
            *chunk_pkts = chunk_pkts.saturating_sub(1);
            return true;
        }
        let may = self.may_leave(now_ns);
        if may {
            *chunk_pkts = self.chunk_pkts() - 1;
        }
        may
    }

    /// Whether a burst may leave now; if not, a timer is set.
    pub(super) fn may_leave(&mut self, now_ns: u64) -> bool {
        let unpaced = self.sent_total + self.resent_total < self.unpaced_pkts();
        if unpaced || now_ns >= self.next_paced_ns {
            return true;
        }
        self.timers.pace_ns = self.next_paced_ns;
        false
    }

    /// The papers' own stacks pace from the first packet on.
    pub(super) fn unpaced_pkts(&self) -> u64 {
        match self.is_linux() {
            true => UNPACED_PKTS,
            false => 0,
        }
    }

    /// tcp_tso_autosize of Linux: a millisecond's data, and no less than the start-up's burst or 2.
    /// Others have no bursts but the start-up's.
    pub(super) fn chunk_pkts(&self) -> u32 {
        if !self.is_linux() {
            return self.startup_burst().unwrap_or(1).max(1);
        }
        let millisecond_bytes = self.pacing_rate() >> 10;
        let pkts = millisecond_bytes / u64::from(self.transport.mss_bytes.max(1));
        let least_pkts = self.startup_burst().unwrap_or(2).max(1);
        u32::try_from(pkts)
            .unwrap_or(u32::MAX)
            .clamp(least_pkts, 44.max(least_pkts))
    }

    pub(super) fn pacing_rate(&self) -> u64 {
        self.startup_rate().unwrap_or_else(|| self.stack_rate())
    }

    /// tcp_update_pacing_rate of Linux: twice the window a round trip, 1.2 times from half of ssthresh. As there, a round
    /// trip that was never measured does not divide: nothing is spaced before there is something to space it by.
    pub(super) fn stack_rate(&self) -> u64 {
        let percent = match self.cwnd_pkts < self.ssthresh_pkts / 2 {
            true => 200,
            false => 120,
        };
        let pkts = u64::from(self.cwnd_pkts.max(self.packets_out()));
        let bytes = pkts * u64::from(self.transport.mss_bytes);
        let srtt_us = self.rtt.srtt_us().max(1);
        bytes * percent * 10_000 / u64::from(srtt_us)
    }

    /// Whether the pacing that earlier verdicts asked for ends with `verdict`, the answer to `event`, which asks for
    /// none. The papers' own stacks do not ask what it holds back.
    pub(super) fn pacing_ends(&self, event: &Event, verdict: &Verdict) -> bool {
        let left = verdict.phase() == Some(Phase::Native);
        !self.always_paced() && ((left && !self.is_linux()) || verdict.pacing_is_over(event))
    }

    pub(super) fn always_paced(&self) -> bool {
        self.transport.pacing == PacingSpec::Linux
    }
}
