/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Network Adaptive TCP Slow Start: what the last transfers ended with, and the size of this one,
 * say how it is sent: at a constant rate, from a larger window, or as usual. Source: Bhumralkar,
 * Lung and Varaiya, section 3, quoted as "3". Departures are named "DEVIATES:", choices where it is
 * silent "DECISION:"; docs/adaptive.md collects them.
 */
#ifndef SU_ADAPTIVE_H
#define SU_ADAPTIVE_H

#include "base.h"
#include "path_memory.h"

#define SU_ADAPTIVE_PARAMS(P)                                                                      \
	SU_COMMON_PARAMS(P)                                                                        \
	P(pacing, 1, 0, 1, "switch", "spread the window over each RTT")                            \
	P(max_window_pkts, 2000, 2, 65535, "pkts", "take no W for larger")                         \
	P(least_window_pkts, SU_LINUX_IW_PKTS, 1, 100, "pkts",                                     \
	  "method 2: least initial window; 1 is the letter of 3")

#define SU_ADAPTIVE_USES (SU_USES_PATH | SU_USES_SHAPE)

struct su_adaptive_params {
	SU_ADAPTIVE_PARAMS(SU_PARAM_FIELD)
};

struct su_adaptive_state {
	struct su_rounds rounds;
	uint64_t begin_bytes; /* where the transfer began */
	uint64_t hint_bytes;  /* its size, as the application said */
	uint64_t rate_bytes_per_s;
	uint32_t w_mpkts; /* W: ending windows, filtered */
	uint32_t maxpossible_pkts;
	uint32_t window_pkts; /* with which the transfer begins */
	uint32_t srtt_us;
	uint32_t initial_pkts; /* the window with which the stack itself would have started */
	uint32_t stack_ssthresh_pkts;
	uint32_t begin_delivered_pkts;
	uint8_t phase;	       /* enum su_phase */
	uint8_t ended;	       /* enum su_ended: how the last transfer stood */
	uint8_t constant_rate; /* method 1 */
	uint8_t after_idle;
	uint8_t started; /* W is in use, and has not got through whole */
	uint8_t reserved[7];
};

_Static_assert(sizeof(struct su_adaptive_state) == 88, "kept for each socket");

#define SU_LOG2_FRACTION_BITS 16

/* log2 of @x in 1/65536, rounded down; 0 for 0. The mantissa is squared once for each bit of the
 * fraction: where the square is 2 or more, the bit is 1. */
static inline uint32_t su_log2_q16(uint32_t x)
{
	uint32_t whole = 0, log2, shift, bit, i;
	uint64_t mantissa;

	for (shift = 16; shift; shift >>= 1) {
		bit = (x >> whole) >> shift ? shift : 0;
		whole += bit;
	}
	if (!x)
		return 0;
	log2 = whole;
	mantissa = ((uint64_t)x << 31) >> whole; /* 1 to 2, in 1/2^31 */
	for (i = 0; i < SU_LOG2_FRACTION_BITS; i++) {
		mantissa = mantissa * mantissa >> 31;
		bit = (uint32_t)(mantissa >> 32);
		mantissa >>= bit;
		log2 = log2 << 1 | bit;
	}
	return log2;
}

#define SU_LOG2_OF_1000_Q16 653117u /* log2(1000) = 9.965784, in 1/65536 */

/* 3: "ss = R (log2 W)", the time that slow start takes to reach W. */
static inline uint64_t su_adaptive_slow_start_us(uint32_t w_mpkts, uint32_t rtt_us)
{
	uint32_t log2_q16 = su_log2_q16(w_mpkts);

	if (w_mpkts <= SU_MPKTS_PER_PKT || log2_q16 <= SU_LOG2_OF_1000_Q16)
		return 0;
	return (uint64_t)rtt_us * (log2_q16 - SU_LOG2_OF_1000_Q16) >> SU_LOG2_FRACTION_BITS;
}

/* 3: "maxpossible = (W x ss) / R", what a constant rate of W carries in that time. */
static inline uint32_t su_adaptive_maxpossible(uint32_t w_mpkts, uint32_t rtt_us)
{
	uint64_t ss_us = su_adaptive_slow_start_us(w_mpkts, rtt_us);

	return rtt_us ? (uint32_t)(w_mpkts * ss_us / rtt_us / SU_MPKTS_PER_PKT) : 0;
}

static inline void su_adaptive_end(struct su_adaptive_state *st, uint8_t why, struct su_verdict *v)
{
	st->phase = SU_PHASE_NATIVE;
	v->phase = SU_PHASE_NATIVE;
	v->why = why;
}

/* What holds in the present phase, whatever the event was. */
static inline void su_adaptive_hold(const struct su_adaptive_state *st,
				    const struct su_adaptive_params *prm, uint8_t why,
				    struct su_verdict *v)
{
	v->phase = st->phase;
	v->why = why;
	if (prm->pacing && (st->phase == SU_PHASE_OPEN_LOOP || st->phase == SU_PHASE_CLOCKED))
		v->pacing_bytes_per_s = st->rate_bytes_per_s;
	/* 3: "we just perform the transfer at a constant rate". The window does not grow. */
	if (st->phase == SU_PHASE_CLOCKED)
		v->cwnd_pkts = st->window_pkts;
}

/* Takes up what is remembered; which method it will be is decided when the size is known. */
static inline void su_adaptive_arm(struct su_adaptive_state *st,
				   const struct su_adaptive_params *prm, const struct su_path *path,
				   const struct su_event *ev, struct su_verdict *v)
{
	uint8_t why = su_path_refusal(path);
	uint32_t max_mpkts = prm->max_window_pkts * SU_MPKTS_PER_PKT;

	if (why != SU_WHY_NONE) {
		su_adaptive_end(st, why, v);
		return;
	}
	st->w_mpkts = su_min_u32(path->ending_mpkts, max_mpkts);
	st->ended = path->ended;
	/* 3: of srtt "we use only the value obtained from the most recent connection". DECISION: if
	 * the handshake took longer, that. */
	st->srtt_us = su_max_u32(path->srtt_us, ev->srtt_us);
	st->maxpossible_pkts = su_adaptive_maxpossible(st->w_mpkts, st->srtt_us);
	if (!st->maxpossible_pkts) {
		su_adaptive_end(st, SU_WHY_PATH_SMALL, v);
		return;
	}
	st->phase = SU_PHASE_ARMED;
	su_adaptive_hold(st, prm, SU_WHY_PATH_KNOWN, v);
}

static inline void su_adaptive_init(struct su_adaptive_state *st,
				    const struct su_adaptive_params *prm,
				    const struct su_path *path, const struct su_event *ev,
				    struct su_verdict *v)
{
	*st = (struct su_adaptive_state){.initial_pkts = SU_LINUX_IW_PKTS};
	if (ev->handshake_lost) {
		v->why = SU_WHY_HANDSHAKE_LOSS;
		return;
	}
	/* Unless it is the middle of a connection; a SYN counts as one byte on some stacks. */
	if (ev->sent_bytes <= 1)
		st->initial_pkts = ev->cwnd_pkts;
	su_adaptive_arm(st, prm, path, ev, v);
}

/* Section 5: each flow sends its files one after another, with a pause between: the next file is a
 * transfer as on a new connection, with the memory as it is by then. */
static inline void su_adaptive_on_idle(struct su_adaptive_state *st,
				       const struct su_adaptive_params *prm,
				       const struct su_path *path, const struct su_event *ev,
				       struct su_verdict *v)
{
	st->after_idle = 1;
	st->started = 0;
	st->hint_bytes = 0;
	su_adaptive_arm(st, prm, path, ev, v);
}

/* The size of the transfer, in packets. What is queued when the first packet leaves is the least
 * that it has; more may come. */
static inline uint64_t su_adaptive_size(const struct su_adaptive_state *st,
					const struct su_event *ev)
{
	uint64_t bytes = ev->sent_bytes - st->begin_bytes + ev->unsent_bytes;

	if (bytes < st->hint_bytes)
		bytes = st->hint_bytes;
	return ev->mss_bytes ? (bytes + ev->mss_bytes - 1) / ev->mss_bytes : ~0ull;
}

/* 3: the first two methods are for what is "smaller than maxpossible". */
static inline int su_adaptive_is_large(const struct su_adaptive_state *st,
				       const struct su_event *ev)
{
	return su_adaptive_size(st, ev) >= st->maxpossible_pkts;
}

static inline void su_adaptive_on_send(struct su_adaptive_state *st,
				       const struct su_adaptive_params *prm,
				       const struct su_event *ev, struct su_verdict *v)
{
	uint32_t w_pkts = st->w_mpkts / SU_MPKTS_PER_PKT;
	uint32_t paced_pkts;

	su_rounds_on_send(&st->rounds, ev);
	if (st->phase != SU_PHASE_ARMED) {
		su_adaptive_hold(st, prm, SU_WHY_NONE, v);
		return;
	}
	st->begin_bytes = ev->sent_bytes;
	st->begin_delivered_pkts = ev->delivered_pkts;
	if (ev->hint_bytes)
		st->hint_bytes = ev->hint_bytes;
	/* Method 3: "normal TCP". */
	if (su_adaptive_is_large(st, ev)) {
		su_adaptive_end(st, SU_WHY_TRANSFER_LARGE, v);
		return;
	}
	/* Method 1, if the last transfer ended "in congestion avoidance": a rate "equivalent to the
	 * current averaged value". Method 2: "half of the congestion window value", and at least 1.
	 * DECISION: a transfer that ended while a loss was being repaired is taken as one that had
	 * not found its window. DECISION: the stack begins with 10 today; least_window_pkts keeps
	 * method 2 from being slower than the standard. */
	st->constant_rate = st->ended == SU_ENDED_AVOIDANCE;
	st->window_pkts =
		st->constant_rate ? w_pkts : su_max_u32(w_pkts / 2, prm->least_window_pkts);
	st->window_pkts = su_min_u32(st->window_pkts, prm->max_window_pkts);
	if (!st->constant_rate && st->after_idle && ev->cwnd_pkts >= st->window_pkts) {
		su_adaptive_end(st, SU_WHY_PATH_SMALL, v);
		return;
	}
	/* DEVIATES: Linux paces none of a connection's first 10 packets. Method 1 goes on at its
	 * constant rate; the window of method 2 is spread over one RTT. */
	paced_pkts = st->window_pkts;
	if (!st->constant_rate)
		paced_pkts -= su_min_u32(paced_pkts, ev->unpaced_pkts);
	st->rate_bytes_per_s =
		paced_pkts ? su_rate_bytes_per_s(paced_pkts, ev->mss_bytes, st->srtt_us) : 0;
	st->stack_ssthresh_pkts = ev->ssthresh_pkts;
	st->started = 1;
	st->after_idle = 0;
	st->phase = SU_PHASE_OPEN_LOOP;
	su_adaptive_hold(st, prm, st->constant_rate ? SU_WHY_CONSTANT_RATE : SU_WHY_HALF_WINDOW, v);
	v->cwnd_pkts = st->window_pkts;
	if (st->constant_rate)
		v->ssthresh_pkts = su_max_u32(st->window_pkts, 2);
}

/* It has turned out to be large: method 3 from here on, with the window that normal TCP would have
 * by now; or, where W has got through whole, with W and in congestion avoidance. */
static inline void su_adaptive_grew(struct su_adaptive_state *st, const struct su_event *ev,
				    struct su_verdict *v)
{
	uint32_t newly_pkts = ev->delivered_pkts - st->begin_delivered_pkts;

	su_adaptive_end(st, SU_WHY_TRANSFER_GREW, v);
	if (!st->started)
		return;
	v->cwnd_pkts = su_min_u32(st->initial_pkts + newly_pkts, st->window_pkts);
	v->ssthresh_pkts = st->stack_ssthresh_pkts;
}

/* When the first ACK comes most of the transfer has been written. */
static inline void su_adaptive_first_ack(struct su_adaptive_state *st, const struct su_event *ev,
					 struct su_verdict *v)
{
	if (su_adaptive_is_large(st, ev)) {
		su_adaptive_grew(st, ev, v);
	} else if (st->constant_rate) {
		st->phase = SU_PHASE_CLOCKED;
		v->why = SU_WHY_ACK_CLOCK;
	} else {
		su_adaptive_end(st, SU_WHY_ACK_CLOCK, v);
	}
}

static inline void su_adaptive_on_ack(struct su_adaptive_state *st,
				      const struct su_adaptive_params *prm,
				      const struct su_event *ev, struct su_verdict *v)
{
	int first = st->phase == SU_PHASE_OPEN_LOOP && ev->acked_bytes > st->begin_bytes;

	su_rounds_on_ack(&st->rounds, ev);
	if (st->started && ev->delivered_pkts - st->begin_delivered_pkts >= st->window_pkts)
		st->started = 0;
	if (first)
		su_adaptive_first_ack(st, ev, v);
	if (st->phase == SU_PHASE_CLOCKED) {
		if (ev->acked_bytes >= ev->sent_bytes && !ev->unsent_bytes) {
			/* The transfer is over. W that got through whole stands, in congestion
			 * avoidance; otherwise it was a handshake of the application (TLS) or a
			 * small response, and the next data is decided on anew. */
			if (!st->started) {
				su_adaptive_end(st, SU_WHY_VALIDATED, v);
				return;
			}
			st->phase = SU_PHASE_ARMED;
			st->hint_bytes = 0;
			v->why = SU_WHY_APP_LIMITED;
		} else if (su_adaptive_is_large(st, ev)) {
			su_adaptive_grew(st, ev, v);
			return;
		}
	}
	su_adaptive_hold(st, prm, v->why, v);
}

/* 3: "our transfer follows the semantics of regular TCP when it experiences packet loss". */
static inline void su_adaptive_on_loss(struct su_adaptive_state *st,
				       const struct su_adaptive_params *prm,
				       const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	su_rounds_on_loss(&st->rounds, ev);
	/* DECISION: a loss before W has got through once: what is remembered is wrong. */
	if (st->started) {
		v->forget_path = 1;
		st->rounds.most_pkts = 0;
		st->started = 0;
	}
	su_adaptive_end(st, SU_WHY_ORDINARY_LOSS, v);
}

/* DECISION: a window from memory that was not used whole proves nothing; it would confirm itself.
 */
static inline struct su_proof su_adaptive_proof(const struct su_adaptive_state *st,
						const struct su_event *ev)
{
	struct su_proof proof = su_proof_of(ev, &st->rounds);

	if (st->started)
		proof.evidence = SU_EVIDENCE_NONE;
	return proof;
}

#endif
