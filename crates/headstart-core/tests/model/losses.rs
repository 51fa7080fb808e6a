//! How the sender finds losses, and what a loss does to its window.

use headstart_core::{Event, INFINITE_SSTHRESH, LossKind, Recovery, Verdict};

use super::Stack;

/// RFC 5681: three duplicate ACKs.
const DUPLICATES: u64 = 3;

impl Stack {
    pub(super) fn find_losses(&mut self, partial: bool) {
        let mut found: Vec<u64> = Vec::new();
        if self.birth.sack {
            // As RACK (RFC 8985): what was sent after it has come through; so a lost repair is seen too.
            let overtaken = |turn: u64| turn + DUPLICATES <= self.latest_turn;
            found.extend(
                self.flying
                    .iter()
                    .filter(|(_, turn)| overtaken(**turn))
                    .map(|(n, _)| n),
            );
        } else if self.recovery == Recovery::Fast && partial {
            let event = self.loss_event(LossKind::PartialAck);
            let verdict = self.ask(event);
            if verdict.cwnd_pkts == 1 {
                self.enter(Recovery::Timeout, event, verdict);
                found.extend(self.flying.keys());
            } else {
                found.extend(self.flying.get_key_value(&self.una).map(|(n, _)| n));
            }
        } else if self.duplicates >= DUPLICATES && self.recovery == Recovery::Open {
            found.extend(self.flying.get_key_value(&self.una).map(|(n, _)| n));
        }
        self.think_lost(&found);
        if !found.is_empty() && self.recovery == Recovery::Open {
            let event = self.loss_event(LossKind::Fast);
            let verdict = self.ask(event);
            self.enter(Recovery::Fast, event, verdict);
        }
    }

    fn think_lost(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.flying.remove(number);
            self.lost.insert(*number);
            self.lost_pkts += 1;
        }
    }

    /// The retransmission timer expires. False when nothing is out.
    pub(crate) fn time_out(&mut self) -> bool {
        if self.una == self.next {
            return false;
        }
        let event = self.loss_event(LossKind::Timeout);
        self.most_in_flight = u32::MAX;
        let verdict = self.ask(event);
        let all: Vec<_> = self.flying.keys().copied().collect();
        self.think_lost(&all);
        self.enter(Recovery::Timeout, event, verdict);
        self.backoff += 1;
        self.duplicates = 0;
        self.timer_since_us = self.now_us;
        true
    }

    /// An ACK says that the network marked a packet. False when there is nothing to reduce.
    pub(crate) fn echo_congestion(&mut self) -> bool {
        if self.una == self.next || self.recovery != Recovery::Open {
            return false;
        }
        let event = self.loss_event(LossKind::Ecn);
        self.most_in_flight = u32::MAX;
        let verdict = self.ask(event);
        self.enter(Recovery::Fast, event, verdict);
        true
    }

    /// The penalty: what the verdict says, else half of what is in flight (RFC 5681 3.1). As in Linux, fast
    /// recovery takes no ssthresh above cwnd unless it is infinite.
    fn enter(&mut self, recovery: Recovery, event: Event, verdict: Verdict) {
        let fast = recovery == Recovery::Fast;
        self.ssthresh_pkts = match verdict.ssthresh_pkts {
            0 => (event.cwnd_pkts / 2).max(2),
            kept if fast && kept < INFINITE_SSTHRESH => kept.min(event.cwnd_pkts).max(2),
            kept => kept,
        };
        if !fast {
            self.cwnd_pkts = 1;
        }
        self.recovery = recovery;
        self.recovery_point = self.next;
    }

    pub(super) fn end_recovery(&mut self) {
        if self.recovery == Recovery::Fast && self.ssthresh_pkts < INFINITE_SSTHRESH {
            self.cwnd_pkts = self.ssthresh_pkts;
        }
        self.recovery = Recovery::Open;
        self.duplicates = 0;
    }
}
