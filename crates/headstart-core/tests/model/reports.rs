//! What the sender tells the start-up, how it obeys the answer, and what it learns of the path.

use headstart_core::{Event, EventKind, Learnt, LossKind, MemoryParams, Path, Verdict};

use super::{Lesson, Stack, Step};

/// Never what limits sending here.
const PEER_WINDOW_BYTES: u32 = u32::MAX;

impl Stack {
    pub(super) fn event(&self, kind: EventKind) -> Event {
        let mss = u64::from(self.birth.mss_bytes);
        Event {
            now_us: self.now_us,
            sent_bytes: self.next * mss,
            acked_bytes: self.una * mss,
            delivered_pkts: self.delivered_pkts,
            lost_pkts: self.lost_pkts,
            inflight_pkts: self.in_flight(),
            cwnd_pkts: self.cwnd_pkts,
            ssthresh_pkts: self.ssthresh_pkts,
            srtt_us: self.srtt_us,
            rttvar_us: self.rttvar_us,
            min_rtt_us: self.min_rtt_us,
            rto_us: self.rto_us(),
            mss_bytes: self.birth.mss_bytes,
            kind: kind as u8,
            recovery: self.recovery as u8,
            sack_ok: u8::from(self.birth.sack),
            unsent_bytes: self.written.saturating_sub(self.next) * mss,
            peer_window_bytes: PEER_WINDOW_BYTES,
            cwnd_limited: u8::from(self.cwnd_pkts < 2 * self.peak_pkts),
            window_full: u8::from(self.cwnd_pkts <= self.peak_pkts),
            handshake_lost: u8::from(
                kind == EventKind::Open && self.birth.initial_window_pkts == 1,
            ),
            ..Event::default()
        }
    }

    pub(super) fn loss_event(&self, loss: LossKind) -> Event {
        Event {
            loss: loss as u8,
            ..self.event(EventKind::Loss)
        }
    }

    pub(super) fn ask(&mut self, event: Event) -> Verdict {
        let verdict = self.connection.step(self.path.as_ref(), &event);
        if event.kind != EventKind::Loss as u8 {
            if verdict.cwnd_pkts > 0 {
                self.cwnd_pkts = verdict.cwnd_pkts;
            }
            if verdict.ssthresh_pkts > 0 {
                self.ssthresh_pkts = verdict.ssthresh_pkts;
            }
        }
        if verdict.forget_path != 0 {
            self.path = None;
        }
        self.verdict = verdict;
        self.steps.push(Step { event, verdict });
        verdict
    }

    pub(super) fn learn(&mut self, event: &Event) {
        let proof = self.connection.proof(event);
        let before = self.path.unwrap_or_default();
        let mut after = before;
        let learnt = MemoryParams::default().learn(&mut after, event, proof);
        let changed = learnt != Learnt::Nothing;
        if changed {
            self.path = (after.cwnd_pkts > 0).then_some(after);
        }
        self.lessons.push(Lesson {
            event: *event,
            proof,
            before,
            after,
            changed,
            most_in_flight: self.most_in_flight,
        });
    }

    /// The connection ends; what it leaves of its path.
    pub(crate) fn close(&mut self) -> Option<Path> {
        let event = self.event(EventKind::Ack);
        self.learn(&event);
        self.path
    }
}
