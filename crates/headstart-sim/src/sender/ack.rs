//! An acknowledgement arrives: what it tells, and what follows.

use super::{Context, Sender, State};
use crate::avoidance::{AckTrain, Growth};
use crate::packet::{Block, Blocks};
use crate::scoreboard::{EVER_RETRANS, LOST, RETRANS_OUT, SACKED};
use headstart_scenario::{GrowthSpec, RecoverySpec};

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement {
    /// The next byte expected.
    pub(crate) seq: u64,
    /// How far the receiver has room.
    pub(crate) window_end: u64,
    pub(crate) blocks: Blocks,
    /// The first block is of bytes that came twice (RFC 2883).
    pub(crate) duplicate_report: bool,
    /// When it left, in ms.
    pub(crate) stamp_ms: u32,
    /// The timestamp echoed, in ms.
    pub(crate) echo_ms: Option<u32>,
    /// ECN: a mark is echoed.
    pub(crate) congestion: bool,
}

/// What is new in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    /// The highest byte reported before it.
    prior_highest: u64,
    pub(super) prior_delivered: u32,
    /// Segments acknowledged cumulatively.
    pub(super) acked_pkts: u32,
    pub(super) newly_sacked_pkts: u32,
    /// An original transmission from before the recovery came.
    pub(super) original_came: bool,
    /// The acknowledgement repeats the one before, and tells nothing.
    pub(super) is_duplicate: bool,
    /// Bytes were reported as having come twice.
    pub(super) came_twice: bool,
    pub(super) congestion: bool,
    /// A segment that had been sent again is thought lost again.
    pub(super) lost_again: bool,
    /// The timer is to be restarted.
    pub(super) restart_timer: bool,
    pub(super) echo_ms: Option<u32>,
    resent_acked: bool,
    oldest_ns: Option<u64>,
    newest_ns: Option<u64>,
    oldest_sacked_ns: Option<u64>,
    newest_sacked_ns: Option<u64>,
    /// The lowest byte that came although later ones had come before, and was not sent again.
    late_from: Option<u64>,
}

impl News {
    pub(super) fn advanced(&self) -> bool {
        self.acked_pkts > 0
    }
}

impl Sender {
    pub(crate) fn on_ack(&mut self, ctx: &mut Context<'_>, ack: &Acknowledgement) {
        if ack.seq > self.nxt || ack.seq < self.una {
            return;
        }
        self.heard(ack.stamp_ms);
        let mut news = News {
            prior_highest: self.highest_sacked.max(self.una),
            prior_delivered: self.delivered_total,
            congestion: ack.congestion,
            echo_ms: ack.echo_ms,
            ..News::default()
        };
        let window_moved = ack.window_end != self.window_end && ack.seq == self.una;
        self.window_end = self.window_end.max(ack.window_end);
        if ack.blocks.len > 0 && self.transport.uses_sack() {
            self.take_blocks(ctx.now_ns, ack, &mut news);
        }
        if ack.seq > self.una {
            self.timeouts_in_a_row = 0;
            self.take_cumulative(ctx.now_ns, ack.seq, &mut news);
        } else {
            news.is_duplicate = !self.board.is_empty() && !window_moved;
        }
        if self.packets_out() == 0 && !news.advanced() {
            self.push(ctx);
            return self.refill(ctx);
        }
        let sample_us = self.take_samples(ctx.now_ns, &mut news);
        self.startup_acked(ctx, sample_us);
        if let Some(sample_us) = sample_us {
            self.measured(ctx.now_ns, sample_us);
        }
        let may_resend = match self.transport.recovery {
            RecoverySpec::Linux => self.linux_ack(ctx, &mut news),
            RecoverySpec::Sack => self.sack_ack(ctx, &mut news),
            RecoverySpec::NewRenoImpatient | RecoverySpec::NewRenoSteady => {
                self.new_reno_ack(ctx, &mut news);
                true
            }
        };
        if self.always_paced() && self.rtt.is_measured() {
            self.paced = true;
        }
        match may_resend {
            true => self.push(ctx),
            false => self.send_before_resending(ctx),
        }
        self.refill(ctx);
    }

    /// What the blocks newly tell. Those that the last acknowledgement had are passed over.
    fn take_blocks(&mut self, now_ns: u64, ack: &Acknowledgement, news: &mut News) {
        let mss_bytes = u32::from(self.transport.mss_bytes);
        let prior_highest = news.prior_highest;
        let known = self.last_blocks;
        for (index, block) in ack.blocks.iter().enumerate() {
            if index == 0 && ack.duplicate_report {
                news.came_twice = true;
                self.undo.unproven_pkts = self.undo.unproven_pkts.saturating_sub(1);
                continue;
            }
            let end = self.board.number_at(block.end.max(ack.seq), mss_bytes);
            self.sack_walk_total += end - self.board.first();
            let Some(block) = unknown_part(block, &known) else {
                continue;
            };
            let from = self.board.number_at(block.start.max(ack.seq), mss_bytes);
            let to = self.board.number_at(block.end, mss_bytes);
            let Sender {
                board,
                sacked_pkts,
                lost_pkts,
                resent_pkts,
                delivered_total,
                rack,
                rtt,
                high,
                edge,
                sacked_above_edge,
                highest_sacked,
                ..
            } = self;
            let min_rtt_ns = u64::from(rtt.min_us()) * 1000;
            let mut above_edge = 0;
            let edge_start = match *edge {
                edge if edge <= board.first() => 0,
                edge if edge >= board.next() => u64::MAX,
                edge => board.get(edge).start,
            };
            board.mark_sacked(from, to, |segment| {
                let flags = segment.flags;
                if flags & LOST != 0 {
                    *lost_pkts -= 1;
                }
                if flags & RETRANS_OUT != 0 {
                    *resent_pkts -= 1;
                }
                if flags & EVER_RETRANS == 0 {
                    if segment.start < prior_highest {
                        news.late_from =
                            Some(news.late_from.unwrap_or(segment.start).min(segment.start));
                    }
                    if segment.end() <= *high {
                        news.original_came = true;
                    }
                    news.oldest_sacked_ns.get_or_insert(segment.sent_ns);
                    news.newest_sacked_ns = Some(segment.sent_ns);
                }
                segment.flags = (flags & EVER_RETRANS) | SACKED;
                *sacked_pkts += 1;
                *delivered_total = delivered_total.wrapping_add(1);
                news.newly_sacked_pkts += 1;
                above_edge += u32::from(segment.start >= edge_start);
                *highest_sacked = (*highest_sacked).max(segment.end());
                rack.advance(now_ns, segment, min_rtt_ns);
            });
            *sacked_above_edge += above_edge;
        }
        self.last_blocks = ack.blocks;
        if ack.duplicate_report {
            self.last_blocks.blocks[0] = Block::default();
        }
    }

    fn take_cumulative(&mut self, now_ns: u64, seq: u64, news: &mut News) {
        let uses_sack = self.transport.uses_sack();
        let prior_highest = news.prior_highest;
        let min_rtt_ns = u64::from(self.rtt.min_us()) * 1000;
        while !self.board.is_empty() {
            let head = self.board.get(self.board.first());
            if head.end() > seq {
                // Part of a segment: it stays out, the rest of it begins at seq.
                break;
            }
            let segment = self.board.pop();
            news.acked_pkts += 1;
            if segment.flags == 0 {
                news.oldest_ns.get_or_insert(segment.sent_ns);
                news.newest_ns = Some(segment.sent_ns);
                if segment.start < prior_highest {
                    news.late_from.get_or_insert(segment.start);
                }
                news.original_came |= segment.end() <= self.high;
                if uses_sack {
                    self.delivered_total = self.delivered_total.wrapping_add(1);
                    self.rack.advance(now_ns, &segment, min_rtt_ns);
                }
                continue;
            }
            self.take_marked(now_ns, &segment, min_rtt_ns, news);
        }
        self.una = seq;
        if !uses_sack {
            self.take_without_sack(news);
        }
    }

    /// A segment is acknowledged that was reported, thought lost or sent again before.
    fn take_marked(
        &mut self,
        now_ns: u64,
        segment: &crate::scoreboard::Segment,
        min_rtt_ns: u64,
        news: &mut News,
    ) {
        if segment.has(RETRANS_OUT) {
            self.resent_pkts -= 1;
        }
        if segment.has(LOST) {
            self.lost_pkts -= 1;
        }
        if segment.has(EVER_RETRANS) {
            news.resent_acked |= !segment.has(SACKED);
        }
        if segment.has(SACKED) {
            self.sacked_pkts -= 1;
            // The segment's own number is that before the first one now.
            if self.board.first() > self.edge {
                self.sacked_above_edge = self.sacked_above_edge.saturating_sub(1);
            }
            return;
        }
        if !segment.has(EVER_RETRANS) {
            news.oldest_ns.get_or_insert(segment.sent_ns);
            news.newest_ns = Some(segment.sent_ns);
            news.original_came |= segment.end() <= self.high;
        }
        if self.transport.uses_sack() {
            self.delivered_total = self.delivered_total.wrapping_add(1);
            self.rack.advance(now_ns, segment, min_rtt_ns);
        }
    }

    /// Without SACK a duplicate stood for a packet that came; now they are told apart. Nor does an acknowledgement of
    /// something sent again say that what it covers beyond that has only come now: F-RTO cannot go by it (Linux:
    /// tcp_clean_rtx_queue).
    fn take_without_sack(&mut self, news: &mut News) {
        news.original_came &= !news.resent_acked;
        let counted = self.duplicates.min(news.acked_pkts.saturating_sub(1));
        self.delivered_total = self
            .delivered_total
            .wrapping_add(news.acked_pkts.saturating_sub(counted));
    }

    /// The sample for the timer, and returns that for the congestion control and the minimum.
    fn take_samples(&mut self, now_ns: u64, news: &mut News) -> Option<u32> {
        let since = |sent_ns: u64| u32::try_from((now_ns - sent_ns) / 1000).unwrap_or(u32::MAX);
        let clean = !news.resent_acked;
        let mut oldest_us = news.oldest_ns.filter(|_| clean).map(since);
        let mut newest_us = news.newest_ns.filter(|_| clean).map(since);
        oldest_us = oldest_us.or(news.oldest_sacked_ns.map(since));
        newest_us = news.newest_sacked_ns.map(since).or(newest_us);
        if oldest_us.is_none() && news.advanced() {
            // RFC 7323, section 4: the timestamp tells which transmission it was.
            let now_ms = (now_ns / 1_000_000) as u32;
            oldest_us = news
                .echo_ms
                .map(|echo_ms| now_ms.wrapping_sub(echo_ms).saturating_mul(1000).max(1000));
            newest_us = oldest_us;
        }
        if let Some(newest_us) = newest_us {
            self.rtt.see_minimum(now_ns, newest_us.max(1));
        }
        let measured = match oldest_us {
            Some(oldest_us) => {
                self.rtt.measure(oldest_us, self.una, self.nxt);
                self.backoff = 0;
                true
            }
            None => false,
        };
        if news.advanced() {
            news.restart_timer = true;
        } else if let (true, Some(oldest_ns)) = (measured, news.oldest_sacked_ns) {
            // The timer runs on where what was reported left before the first segment last did.
            let head_ns = self.board.get(self.board.first()).sent_ns;
            news.restart_timer = oldest_ns < head_ns;
        }
        if let Some(late_from) = news.late_from {
            self.reordering_seen(late_from);
        }
        self.rtt_sample_us = newest_us.unwrap_or(0);
        newest_us
    }

    /// Something came later than what was sent after it, and had not been sent again.
    fn reordering_seen(&mut self, from: u64) {
        if !self.is_linux() || self.highest_sacked <= from {
            return;
        }
        let mss_bytes = u64::from(self.transport.mss_bytes.max(1));
        let pkts = (self.highest_sacked - from).div_ceil(mss_bytes);
        // Linux: tcp_max_reordering, 300.
        let pkts = u32::try_from(pkts).unwrap_or(u32::MAX).min(300);
        self.reordering_pkts = self.reordering_pkts.max(pkts);
        self.rack.reordering_seen = true;
    }

    /// The congestion control sees the sample: `HyStart` may end slow start.
    fn measured(&mut self, now_ns: u64, sample_us: u32) {
        let in_slow_start = self.cwnd_pkts < self.ssthresh_pkts;
        let rate_bytes_per_s = if in_slow_start { self.stack_rate() } else { 0 };
        let train = AckTrain {
            now_ns,
            una: self.una,
            nxt: self.nxt,
            cwnd_pkts: self.cwnd_pkts,
            rate_bytes_per_s,
            paced: self.paced,
        };
        let found = self.avoidance.measured(sample_us, in_slow_start, &train);
        if found && !self.startup_owns_slow_start() {
            self.ssthresh_pkts = self.cwnd_pkts;
            self.note_slow_start_end(now_ns);
        }
    }

    /// The window grows by what was delivered, where it is what limits sending.
    pub(super) fn grow(&mut self, ctx: &mut Context<'_>, news: &News) {
        self.startup_ack(ctx);
        if self.startup_owns_slow_start() || !self.window_is_used() {
            return;
        }
        let delivered_pkts = self.delivered_total.wrapping_sub(news.prior_delivered);
        let acked_pkts = match self.transport.growth {
            GrowthSpec::PerPacket => delivered_pkts,
            GrowthSpec::PerAck => 1,
        };
        if acked_pkts == 0 {
            return;
        }
        self.cwnd_pkts = self.avoidance.grow(&Growth {
            now_ns: ctx.now_ns,
            cwnd_pkts: self.cwnd_pkts,
            ssthresh_pkts: self.ssthresh_pkts,
            slow_start_pkts: acked_pkts,
            acked_pkts,
        });
    }

    /// Whether this acknowledgement may let the window grow.
    pub(super) fn may_grow(&self, news: &News) -> bool {
        !matches!(self.state, State::Reducing | State::Recovery)
            && (news.advanced()
                || (self.reordering_pkts > self.transport.dupthresh && news.newly_sacked_pkts > 0))
    }
}

/// What of `block` none of `known` had; as one run, which may hold known bytes in its middle.
fn unknown_part(block: Block, known: &Blocks) -> Option<Block> {
    let mut part = block;
    for old in known.iter() {
        if old.start <= part.start && old.end > part.start {
            part.start = old.end;
        }
        if old.end >= part.end && old.start < part.end {
            part.end = old.start.max(part.start);
        }
        if part.start >= part.end {
            return None;
        }
    }
    (part.start < part.end).then_some(part)
}

impl super::Rack {
    /// RFC 8985, 6.2, step 2: a segment was delivered.
    fn advance(&mut self, now_ns: u64, segment: &crate::scoreboard::Segment, min_rtt_ns: u64) {
        let rtt_ns = now_ns - segment.sent_ns;
        // Sooner than any round trip: it was the first transmission that came.
        if rtt_ns < min_rtt_ns && segment.has(EVER_RETRANS) {
            return;
        }
        self.advanced = true;
        self.rtt_ns = rtt_ns;
        let end = segment.end();
        if (segment.sent_ns, end) > (self.sent_ns, self.end) {
            self.sent_ns = segment.sent_ns;
            self.end = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u64, end: u64) -> Block {
        Block { start, end }
    }

    #[test]
    fn only_what_the_last_acknowledgement_did_not_tell_is_looked_at() {
        let mut known = Blocks::default();
        known.push(block(100, 200));
        known.push(block(300, 400));
        assert_eq!(unknown_part(block(100, 200), &known), None);
        assert_eq!(unknown_part(block(100, 250), &known), Some(block(200, 250)));
        assert_eq!(unknown_part(block(50, 200), &known), Some(block(50, 100)));
        assert_eq!(unknown_part(block(100, 400), &known), Some(block(200, 300)));
        assert_eq!(unknown_part(block(50, 450), &known), Some(block(50, 450)));
        assert_eq!(unknown_part(block(500, 600), &known), Some(block(500, 600)));
    }
}
