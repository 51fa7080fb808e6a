/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Swift Start: a burst of four segments, whose ACKs measure the path's capacity; then a fraction of
 * that capacity as the window, paced over a round trip, and paced slow start from there.
 * Source: Partridge, Rockwell, Allman, Krishnan, Sterbenz, "A Swifter Start for TCP", BBN Technical
 * Report 8339, 2002; sections are quoted as "3.1". Departures are named "DEVIATES:", choices where
 * it is silent "DECISION:"; docs/swift_start.md collects them with those of the kernel's side.
 */
#ifndef SU_SWIFT_START_H
#define SU_SWIFT_START_H

#include "base.h"
#include "paced_growth.h"
#include "path_memory.h"

#define SU_SWIFT_LEAST_BURST_PKTS 3u /* pkts; DECISION: of fewer the ACKs may be one */

#define SU_SWIFT_START_PARAMS(P)                                                                   \
	SU_COMMON_PARAMS(P)                                                                        \
	P(iw_pkts, 4, 3, 10, "pkts", "the burst that measures (3.1)")                              \
	P(gamma, 2, 1, 8, "divisor", "the window is the estimated capacity over this (3.1)")       \
	P(slope_acks, 9, 0, 9, "acks",                                                             \
	  "measure from the first ACK over so many more, or the burst's last; 0: the report's "    \
	  "packet pair")                                                                           \
	P(delay_guard, 1, 0, 1, "switch",                                                          \
	  "with slope_acks: estimate no more than by how much the burst lengthened the round "     \
	  "trip")                                                                                  \
	P(max_estimate_pkts, 2000, 10, 1000000, "pkts", "take no estimate for larger")             \
	P(growth_percent, 150, 150, 200, "%",                                                      \
	  "the window of a round trip to the one before (3.1)")                                    \
	SU_PACED_GROWTH_PARAMS(P)

#define SU_SWIFT_START_USES SU_USES_SHAPE

struct su_swift_start_params {
	SU_SWIFT_START_PARAMS(SU_PARAM_FIELD)
};

struct su_swift_start_state {
	struct su_rounds rounds;
	struct su_paced_growth growth;
	uint64_t burst_us;	  /* when the burst's first segment left: t_seg1 */
	uint64_t first_ack_us;	  /* t_ack1 */
	uint64_t begin_bytes;	  /* where the burst began */
	uint64_t burst_end_bytes; /* where it ended */
	struct su_acked acked;
	uint32_t begin_delivered_pkts; /* when the burst left */
	uint32_t first_ack_delivered_pkts;
	uint32_t rtt_us;       /* t_ack1 - t_seg1 */
	uint32_t initial_pkts; /* the window with which the stack itself would have started */
	uint32_t acks;	       /* of the burst, so far */
	uint8_t phase;	       /* enum su_phase */
	uint8_t estimated;
	uint8_t reserved[6];
};

_Static_assert(sizeof(struct su_swift_start_state) == 104, "kept for each socket");

/* What holds in the present phase, whatever the event was. */
static inline void su_swift_start_hold(const struct su_swift_start_state *st,
				       const struct su_swift_start_params *prm, uint8_t why,
				       const struct su_event *ev, struct su_verdict *v)
{
	uint32_t rtt_us = st->growth.clocked && ev->srtt_us ? ev->srtt_us : st->rtt_us;

	v->phase = st->phase;
	v->why = why;
	v->owns_slow_start = st->phase != SU_PHASE_NATIVE;
	if (!st->estimated)
		return;
	v->burst_pkts = prm->burst_pkts;
	v->pacing_bytes_per_s =
		su_paced_growth_rate_bytes_per_s(&st->growth, prm->growth_percent, prm->burst_pkts,
						 prm->clock_us, ev->mss_bytes, rtt_us);
}

/* 3.1: "... until the first slow-start ends, after which the sending TCP behaves according to the
 * standard TCP algorithms". */
static inline void su_swift_start_end(struct su_swift_start_state *st, uint8_t why,
				      struct su_verdict *v)
{
	st->phase = SU_PHASE_NATIVE;
	st->estimated = 0;
	v->phase = SU_PHASE_NATIVE;
	v->why = why;
}

/* Nothing could be measured. DECISION: then the burst of four was for nothing, and the connection
 * gets the window with which the stack would have started. */
static inline void su_swift_start_fall_back(struct su_swift_start_state *st,
					    const struct su_swift_start_params *prm, uint8_t why,
					    const struct su_event *ev, struct su_verdict *v)
{
	uint32_t initial_pkts = su_min_u32(st->initial_pkts, prm->max_window_pkts);

	su_swift_start_end(st, why, v);
	if (initial_pkts > ev->cwnd_pkts)
		v->cwnd_pkts = initial_pkts;
}

static inline void su_swift_start_init(struct su_swift_start_state *st,
				       const struct su_swift_start_params *prm,
				       const struct su_path *path, const struct su_event *ev,
				       struct su_verdict *v)
{
	(void)path;
	*st = (struct su_swift_start_state){.initial_pkts = ev->cwnd_pkts};
	st->acked.delivered_pkts = ev->delivered_pkts;
	/* RFC 5681 3.1: "If the SYN or SYN/ACK is lost, the initial window used ... MUST be one
	 * segment". */
	if (ev->handshake_lost) {
		v->why = SU_WHY_HANDSHAKE_LOSS;
		return;
	}
	/* A SYN counts as one byte on some stacks. */
	if (ev->sent_bytes > 1) {
		v->why = SU_WHY_MID_CONNECTION;
		return;
	}
	st->phase = SU_PHASE_ARMED;
	su_swift_start_hold(st, prm, SU_WHY_INITIAL_WINDOW, ev, v);
	v->cwnd_pkts = prm->iw_pkts;
}

/* DECISION: the report speaks of the start of a connection only. After a pause the stack restarts
 * as it does without us. A connection that rests before its first data has not started yet. */
static inline void su_swift_start_on_idle(struct su_swift_start_state *st,
					  const struct su_swift_start_params *prm,
					  const struct su_path *path, const struct su_event *ev,
					  struct su_verdict *v)
{
	(void)path;
	if (st->phase == SU_PHASE_NATIVE || st->phase == SU_PHASE_ARMED)
		su_swift_start_hold(st, prm, SU_WHY_NONE, ev, v);
	else
		su_swift_start_end(st, SU_WHY_PAUSED, v);
}

static inline void su_swift_start_on_send(struct su_swift_start_state *st,
					  const struct su_swift_start_params *prm,
					  const struct su_event *ev, struct su_verdict *v)
{
	su_rounds_on_send(&st->rounds, ev);
	if (st->phase == SU_PHASE_ARMED) {
		st->phase = SU_PHASE_OPEN_LOOP;
		st->begin_bytes = ev->sent_bytes;
		st->begin_delivered_pkts = ev->delivered_pkts;
		st->burst_us = ev->now_us;
		su_swift_start_hold(st, prm, SU_WHY_STARTED, ev, v);
		v->cwnd_pkts = prm->iw_pkts;
		return;
	}
	/* The application has paused for less than the RTO: the ACK clock is gone, the window is
	 * spread over a round trip once more. */
	if (st->estimated) {
		su_paced_growth_begin(&st->growth, ev->cwnd_pkts);
		st->rtt_us = ev->srtt_us ? ev->srtt_us : st->rtt_us;
	}
	su_swift_start_hold(st, prm, SU_WHY_NONE, ev, v);
}

/* Until there is an estimate, slow start. */
static inline uint32_t su_swift_start_slow_start(const struct su_swift_start_params *prm,
						 const struct su_event *ev, uint32_t newly_pkts)
{
	return su_min_u32(su_slow_start_cwnd(ev, newly_pkts), prm->max_window_pkts);
}

/* The first ACK of the burst: t_ack1. */
static inline void su_swift_start_first_ack(struct su_swift_start_state *st,
					    const struct su_swift_start_params *prm,
					    const struct su_event *ev, uint32_t newly_pkts,
					    struct su_verdict *v)
{
	uint64_t rtt_us = ev->now_us - st->burst_us;

	st->burst_end_bytes = ev->sent_bytes;
	st->first_ack_us = ev->now_us;
	st->first_ack_delivered_pkts = ev->delivered_pkts;
	st->rtt_us = rtt_us < ~0u ? (uint32_t)rtt_us : ~0u;
	st->acks = 1;
	st->phase = SU_PHASE_SLOW_START;
	if (newly_pkts + ev->inflight_pkts < SU_SWIFT_LEAST_BURST_PKTS) {
		su_swift_start_fall_back(st, prm, SU_WHY_BURST_SHORT, ev, v);
		return;
	}
	if (ev->acked_bytes >= st->burst_end_bytes) {
		su_swift_start_fall_back(st, prm, SU_WHY_NO_GAP, ev, v);
		return;
	}
	/* 4.2: "When the first acknowledgement comes back, the sender duly transmits two segments."
	 */
	v->cwnd_pkts = su_swift_start_slow_start(prm, ev, newly_pkts);
	su_swift_start_hold(st, prm, SU_WHY_ACK_CLOCK, ev, v);
}

/* @pkts in @over_us: the packets of a round trip, over gamma. */
static inline uint32_t su_swift_start_part(const struct su_swift_start_state *st,
					   const struct su_swift_start_params *prm, uint64_t pkts,
					   uint64_t over_us)
{
	uint64_t window_pkts = pkts * st->rtt_us / (over_us * prm->gamma);

	return window_pkts < prm->max_estimate_pkts ? (uint32_t)window_pkts
						    : prm->max_estimate_pkts;
}

/* 2.3, ACK compression: where the ACKs have waited together, the time between them says nothing;
 * the time for which they waited is in the round trip of the last. DECISION: a burst of N back to
 * back lengthens it by N segments' times, over the shortest there was, that of the handshake. An
 * estimate by that is never too large, unless the handshake waited as well. */
static inline uint32_t su_swift_start_by_delay(const struct su_swift_start_state *st,
					       const struct su_swift_start_params *prm,
					       const struct su_event *ev)
{
	uint64_t rtt_us = ev->now_us - st->burst_us;
	uint64_t pkts = ev->delivered_pkts - st->begin_delivered_pkts;

	if (!prm->delay_guard || !prm->slope_acks || !ev->min_rtt_us || rtt_us <= ev->min_rtt_us ||
	    rtt_us - ev->min_rtt_us > ~0u)
		return prm->max_estimate_pkts;
	return su_swift_start_part(st, prm, pkts, rtt_us - ev->min_rtt_us);
}

/* 3.1: BW = SegSize / (t_ack2 - t_ack1), Capacity = BW * (t_ack1 - t_seg1), over gamma. (The report
 * prints the first as its reciprocal.) In packets the segment's size cancels out. 0: nothing to
 * measure. */
static inline uint32_t su_swift_start_window(const struct su_swift_start_state *st,
					     const struct su_swift_start_params *prm,
					     const struct su_event *ev)
{
	uint64_t gap_us = ev->now_us - st->first_ack_us;
	/* Footnote 4: most TCPs send one ACK for two segments, but one ACK may be for one segment:
	 * "we compute the available bandwidth by dividing the size of one segment". Over several
	 * ACKs what they deliver is counted. */
	uint64_t pkts = prm->slope_acks ? ev->delivered_pkts - st->first_ack_delivered_pkts : 1;

	if (!gap_us || gap_us > ~0u)
		return 0;
	return su_min_u32(su_swift_start_part(st, prm, pkts, gap_us),
			  su_swift_start_by_delay(st, prm, ev));
}

/* An ACK of the burst beyond its first. */
static inline void su_swift_start_measure(struct su_swift_start_state *st,
					  const struct su_swift_start_params *prm,
					  const struct su_event *ev, uint32_t newly_pkts,
					  struct su_verdict *v)
{
	uint32_t most_acks = prm->slope_acks ? prm->slope_acks + 1 : 2;
	uint32_t cwnd_pkts = su_swift_start_slow_start(prm, ev, newly_pkts), window_pkts;
	uint8_t why = SU_WHY_ESTIMATED;

	st->acks++;
	if (st->acks < most_acks && ev->acked_bytes < st->burst_end_bytes) {
		v->cwnd_pkts = cwnd_pkts;
		su_swift_start_hold(st, prm, SU_WHY_NONE, ev, v);
		return;
	}
	if (ev->now_us <= st->first_ack_us) {
		su_swift_start_fall_back(st, prm, SU_WHY_NO_GAP, ev, v);
		return;
	}
	/* Table 2, 1.5 Mb/s: with gamma = 8 the estimate is 2 segments, and the report counts slow
	 * start's 6 in its place: an estimate does not lower the window. */
	window_pkts = su_min_u32(su_swift_start_window(st, prm, ev), prm->max_window_pkts);
	window_pkts = su_min_u32(window_pkts, ev->ssthresh_pkts);
	if (window_pkts <= cwnd_pkts) {
		why = SU_WHY_ESTIMATE_SMALL;
		window_pkts = cwnd_pkts;
	}
	st->estimated = 1;
	su_paced_growth_begin(&st->growth, window_pkts);
	v->cwnd_pkts = window_pkts;
	su_swift_start_hold(st, prm, why, ev, v);
}

/* How many packets of the window an ACK of @newly_pkts acknowledges. The estimate is "the
 * congestion window size for the next round-trip time": what is left of the burst does not make it
 * grow. */
static inline uint32_t su_swift_start_beyond_burst(const struct su_swift_start_state *st,
						   const struct su_event *ev, uint32_t newly_pkts)
{
	uint64_t beyond_pkts;

	if (ev->acked_bytes <= st->burst_end_bytes || !ev->mss_bytes)
		return 0;
	beyond_pkts = (ev->acked_bytes - st->burst_end_bytes - 1) / ev->mss_bytes + 1;
	return beyond_pkts < newly_pkts ? (uint32_t)beyond_pkts : newly_pkts;
}

static inline void su_swift_start_grow(struct su_swift_start_state *st,
				       const struct su_swift_start_params *prm,
				       const struct su_event *ev, uint32_t newly_pkts,
				       struct su_verdict *v)
{
	uint32_t window_pkts = su_swift_start_beyond_burst(st, ev, newly_pkts);
	int round_over = 0;

	if (window_pkts)
		v->cwnd_pkts =
			su_paced_growth_cwnd(&st->growth, prm->growth_percent, prm->max_window_pkts,
					     ev, window_pkts, &round_over);
	if (round_over && prm->first_round_only)
		su_swift_start_end(st, SU_WHY_FIRST_ROUND, v);
	else if (round_over && st->growth.base_pkts >= prm->max_window_pkts)
		su_swift_start_end(st, SU_WHY_MAX_WINDOW, v);
	else
		su_swift_start_hold(st, prm, SU_WHY_NONE, ev, v);
}

static inline void su_swift_start_on_ack(struct su_swift_start_state *st,
					 const struct su_swift_start_params *prm,
					 const struct su_event *ev, struct su_verdict *v)
{
	uint32_t newly_pkts = su_newly_acked(&st->acked, ev);

	su_rounds_on_ack(&st->rounds, ev);
	if (st->phase == SU_PHASE_NATIVE || st->phase == SU_PHASE_ARMED ||
	    (st->phase == SU_PHASE_OPEN_LOOP && ev->acked_bytes <= st->begin_bytes))
		su_swift_start_hold(st, prm, SU_WHY_NONE, ev, v);
	else if (!su_in_slow_start(ev))
		su_swift_start_end(st, SU_WHY_SSTHRESH, v);
	else if (st->phase == SU_PHASE_OPEN_LOOP)
		su_swift_start_first_ack(st, prm, ev, newly_pkts, v);
	else if (!st->estimated)
		su_swift_start_measure(st, prm, ev, newly_pkts, v);
	else
		su_swift_start_grow(st, prm, ev, newly_pkts, v);
}

static inline void su_swift_start_on_loss(struct su_swift_start_state *st,
					  const struct su_swift_start_params *prm,
					  const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	su_rounds_on_loss(&st->rounds, ev);
	su_swift_start_end(st, SU_WHY_ORDINARY_LOSS, v);
}

static inline struct su_proof su_swift_start_proof(const struct su_swift_start_state *st,
						   const struct su_event *ev)
{
	return su_proof_of(ev, &st->rounds);
}

#endif
