//! The glue between the sender and a start-up of `core/`: the same events at the same moments as
//! `bpf/startup.bpf.c` gives them, and the same obedience to the verdicts.

use headstart_core::{
    Connection, Ending, Event, EventKind, INFINITE_SSTHRESH, LossKind, Params, Phase, Recovery,
    Verdict,
};

use headstart_scenario::GrowthSpec;

use super::{Context, Sender, State};

const NS_PER_US: u64 = 1000;

/// How a start-up's phase last ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Reason code; `headstart_core::why_name` has its name.
    pub why: u8,
    /// The window then, in packets.
    pub cwnd_pkts: u32,
}

/// A connection under a start-up.
#[derive(Clone, Debug)]
pub(crate) struct StartupGlue {
    connection: Connection,
    verdict: Verdict,
    /// What the application says of the transfer's size; 0: nothing.
    pub(crate) hint_bytes: u64,
    /// The reason with which it left, since it was last asked for.
    exit: Option<Exit>,
    /// Whether that is final: not only that the data ended.
    left: bool,
}

impl StartupGlue {
    pub(crate) fn new(params: Params) -> StartupGlue {
        StartupGlue {
            connection: Connection::new(params),
            verdict: Verdict::default(),
            hint_bytes: 0,
            exit: None,
            left: false,
        }
    }
}

impl Sender {
    fn snapshot(&self, now_ns: u64, kind: EventKind) -> Event {
        let us = |value: u32| if value == u32::MAX { 0 } else { value };
        Event {
            now_us: now_ns / NS_PER_US,
            sent_bytes: self.nxt,
            acked_bytes: self.una,
            unsent_bytes: self.write_end - self.nxt,
            hint_bytes: self.startup.as_ref().map_or(0, |glue| glue.hint_bytes),
            delivered_pkts: self.delivered_total,
            lost_pkts: self.lost_total,
            inflight_pkts: self.in_flight(),
            cwnd_pkts: self.cwnd_pkts,
            ssthresh_pkts: self.ssthresh_pkts,
            rtt_us: if kind == EventKind::Ack {
                self.rtt_sample_us
            } else {
                0
            },
            srtt_us: self.rtt.srtt_us(),
            rttvar_us: self.rtt.rttvar_us(),
            min_rtt_us: us(self.rtt.min_us()),
            rto_us: self.rtt.rto_us(),
            mss_bytes: u32::from(self.transport.mss_bytes),
            peer_window_bytes: u32::try_from(self.window_end.saturating_sub(self.una))
                .unwrap_or(u32::MAX),
            retransmitted_pkts: self.resent_total as u32,
            kind: kind as u8,
            recovery: match self.state {
                State::Open | State::Disorder => Recovery::Open,
                State::Reducing | State::Recovery => Recovery::Fast,
                State::Loss => Recovery::Timeout,
            } as u8,
            sack_ok: u8::from(self.transport.uses_sack()),
            cwnd_limited: u8::from(self.window_is_used()),
            window_full: u8::from(self.cwnd_limited),
            ..Event::default()
        }
    }

    /// Gives `event` to the start-up and does what the verdict says. At LOSS the windows are the caller's.
    fn step(&mut self, ctx: &mut Context<'_>, event: &Event) {
        let Some(glue) = &mut self.startup else {
            return;
        };
        let reads_memory =
            event.kind == EventKind::Open as u8 || event.kind == EventKind::Idle as u8;
        let path = match reads_memory {
            true => ctx.memory.recall(self.destination, ctx.now_ns),
            false => None,
        };
        let verdict = glue.connection.step(path.as_ref(), event);
        if verdict.ending() != Ending::None && !glue.left {
            glue.left = verdict.ending() == Ending::Left;
            glue.exit = Some(Exit {
                why: verdict.why,
                cwnd_pkts: match verdict.cwnd_pkts {
                    0 => event.cwnd_pkts,
                    set => set,
                },
            });
        }
        let floor_moved = verdict.rto_min_us != glue.verdict.rto_min_us;
        glue.verdict = verdict;
        if event.kind != EventKind::Loss as u8 {
            if verdict.cwnd_pkts > 0 {
                self.cwnd_pkts = self.grown(event, &verdict);
            }
            if verdict.ssthresh_pkts > 0 {
                self.ssthresh_pkts = verdict.ssthresh_pkts;
                self.note_slow_start_end(ctx.now_ns);
            }
        }
        if verdict.pacing_bytes_per_s > 0 {
            if !self.paced {
                self.next_paced_ns = ctx.now_ns;
            }
            self.paced = true;
        } else if self.paced && self.pacing_ends(event, &verdict) {
            self.paced = false;
            self.timers.pace_ns = u64::MAX;
        }
        if floor_moved {
            let floor_us = (verdict.rto_min_us > 0).then_some(verdict.rto_min_us);
            self.rtt.set_floor_us(floor_us);
        }
        // Fast Start 3.3.4: a fine-grained timer watches "a fast start packet other than the first
        // one"; until the first ACK the earliest packet is the first one.
        let clocked = verdict.phase() == Some(Phase::Clocked) && verdict.rto_min_us > 0;
        if self.rtt.set_fine(clocked.then_some(verdict.rto_min_us))
            && event.kind == EventKind::Ack as u8
        {
            self.restart_timer(ctx.now_ns);
        }
    }

    /// The window that a verdict sets. Where the stack grows by the ACK, as Linux did with `tcp_abc` = 0, slow start
    /// that a start-up owns has no more than a packet for each ACK either. One that is paced grows by a rule of its own.
    fn grown(&self, event: &Event, verdict: &Verdict) -> u32 {
        let by_the_ack = self.transport.growth == GrowthSpec::PerAck
            && event.kind == EventKind::Ack as u8
            && verdict.owns_slow_start != 0
            && verdict.pacing_bytes_per_s == 0
            && verdict.phase() == Some(Phase::SlowStart);
        match by_the_ack {
            true => verdict.cwnd_pkts.min(self.cwnd_pkts.saturating_add(1)),
            false => verdict.cwnd_pkts,
        }
    }

    /// Fast Start 3.3.4: the reset timer does not "back off its retransmission timeout value". On
    /// Linux it does: a congestion control cannot stop it.
    pub(super) fn startup_keeps_timer(&self) -> bool {
        let recovers = |glue: &StartupGlue| glue.verdict.phase == Phase::Recovering as u8;
        !self.is_linux() && self.startup.as_deref().is_some_and(recovers)
    }

    fn learn(&self, ctx: &mut Context<'_>, event: &Event) {
        if let Some(glue) = &self.startup {
            let proof = glue.connection.proof(event);
            ctx.memory.learn(self.destination, ctx.now_ns, event, proof);
        }
    }

    pub(super) fn startup_open(&mut self, ctx: &mut Context<'_>) {
        if self.startup.is_some() {
            let mut event = self.snapshot(ctx.now_ns, EventKind::Open);
            event.handshake_lost = u8::from(self.handshake_lost);
            self.step(ctx, &event);
        }
    }

    pub(super) fn startup_idle(&mut self, ctx: &mut Context<'_>, idle_us: u64) {
        if self.startup.is_some() {
            let mut event = self.snapshot(ctx.now_ns, EventKind::Idle);
            event.idle_us = idle_us;
            self.learn(ctx, &event);
            self.step(ctx, &event);
        }
    }

    /// True when a start-up was asked.
    pub(super) fn startup_send(&mut self, ctx: &mut Context<'_>) -> bool {
        if self.startup.is_none() {
            return false;
        }
        let mut event = self.snapshot(ctx.now_ns, EventKind::Send);
        let sent_pkts = self.sent_total + self.resent_total;
        event.unpaced_pkts =
            u32::try_from(self.unpaced_pkts().saturating_sub(sent_pkts)).unwrap_or(0);
        self.step(ctx, &event);
        true
    }

    /// Linux's cong_avoid.
    pub(super) fn startup_ack(&mut self, ctx: &mut Context<'_>) {
        if self.startup.is_none() {
            return;
        }
        let event = self.snapshot(ctx.now_ns, EventKind::Ack);
        self.step(ctx, &event);
        if self.una >= self.nxt {
            let event = self.snapshot(ctx.now_ns, EventKind::Ack);
            self.learn(ctx, &event);
        }
    }

    /// Linux's pkts_acked: in fast recovery a start-up that repairs hears of ACKs from here.
    pub(super) fn startup_acked(&mut self, ctx: &mut Context<'_>, sample_us: Option<u32>) {
        self.rtt_sample_us = sample_us.unwrap_or(0);
        if self.state == State::Recovery && !self.transport.recovery.is_new_reno() {
            self.startup_ack_in_recovery(ctx);
        }
    }

    pub(super) fn startup_ack_in_recovery(&mut self, ctx: &mut Context<'_>) {
        let repairs = self
            .startup
            .as_ref()
            .is_some_and(|glue| glue.verdict.phase == Phase::Recovering as u8);
        if repairs {
            let event = self.snapshot(ctx.now_ns, EventKind::Ack);
            self.step(ctx, &event);
        }
    }

    /// The start-up's threshold after a loss, if it has one.
    pub(super) fn startup_loss(&mut self, ctx: &mut Context<'_>, loss: LossKind) -> Option<u32> {
        self.startup.as_ref()?;
        let mut event = self.snapshot(ctx.now_ns, EventKind::Loss);
        event.loss = loss as u8;
        self.step(ctx, &event);
        let ssthresh_pkts = self.startup.as_ref()?.verdict.ssthresh_pkts;
        (ssthresh_pkts > 0).then_some(ssthresh_pkts)
    }

    /// `NewReno`'s partial ACK: the window that the start-up wants instead, if any.
    pub(super) fn startup_partial(&mut self, ctx: &mut Context<'_>) -> Option<u32> {
        self.startup.as_ref()?;
        let ssthresh_pkts = self.startup_loss(ctx, LossKind::PartialAck);
        let cwnd_pkts = self.startup.as_ref()?.verdict.cwnd_pkts;
        if cwnd_pkts == 1 {
            self.ssthresh_pkts = ssthresh_pkts.unwrap_or(self.ssthresh_pkts);
        }
        (cwnd_pkts > 0).then_some(cwnd_pkts)
    }

    /// The connection ends.
    pub(crate) fn close(&mut self, ctx: &mut Context<'_>) {
        if self.startup.is_some() {
            let event = self.snapshot(ctx.now_ns, EventKind::Ack);
            self.learn(ctx, &event);
        }
    }

    pub(super) fn startup_owns_slow_start(&self) -> bool {
        self.cwnd_pkts < self.ssthresh_pkts
            && self
                .startup
                .as_ref()
                .is_some_and(|glue| glue.verdict.owns_slow_start != 0)
    }

    pub(super) fn startup_rate(&self) -> Option<u64> {
        let rate = self.startup.as_ref()?.verdict.pacing_bytes_per_s;
        (rate > 0).then_some(rate)
    }

    pub(super) fn startup_burst(&self) -> Option<u32> {
        let burst_pkts = self.startup.as_ref()?.verdict.burst_pkts;
        (burst_pkts > 0).then_some(burst_pkts)
    }

    /// Whether new data from `start` to `end` leaves with low drop priority.
    pub(super) fn startup_marks(&self, start: u64, end: u64) -> bool {
        let verdict = self.startup.as_ref().map(|glue| &glue.verdict);
        verdict.is_some_and(|verdict| verdict.marks(start, end, self.write_end))
    }

    /// What is sent again in fast recovery goes by this floor under cwnd.
    pub(super) fn apply_recovery_floor(&mut self) {
        let floor_pkts = self
            .startup
            .as_ref()
            .map_or(0, |glue| glue.verdict.recovery_cwnd_pkts);
        if self.state == State::Recovery && floor_pkts > self.cwnd_pkts {
            self.cwnd_pkts = floor_pkts;
        }
    }

    /// Slow start ends for the first time where ssthresh first has a value.
    pub(super) fn note_slow_start_end(&mut self, now_ns: u64) {
        if self.slow_start_end.is_none() && self.ssthresh_pkts < INFINITE_SSTHRESH {
            self.slow_start_end = Some(crate::SlowStartEnd {
                at_ns: now_ns,
                cwnd_pkts: self.cwnd_pkts,
                ssthresh_pkts: self.ssthresh_pkts,
            });
        }
    }

    /// How the start-up left, and forgets it: the next transfer has its own.
    pub(crate) fn take_exit(&mut self) -> Option<Exit> {
        let glue = self.startup.as_mut()?;
        glue.left = false;
        glue.exit.take()
    }

    /// The application tells the transfer's size.
    pub(crate) fn hint(&mut self, bytes: u64) {
        if let Some(glue) = &mut self.startup {
            glue.hint_bytes = bytes;
        }
    }
}
