/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Paced: slow start, its window spread over each round trip, with no estimate of the capacity.
 * Source: Partridge et al., "A Swifter Start for TCP", BBN Technical Report 8339, 2002, 4.3: "a TCP
 * that paces but does not do capacity estimation (i.e., just follows the slow start algorithm of
 * doubling the congestion window every round-trip time)". Where it is silent: "DECISION:".
 */
#ifndef SU_PACED_H
#define SU_PACED_H

#include "base.h"
#include "paced_growth.h"
#include "path_memory.h"

#define SU_PACED_PARAMS(P)                                                                         \
	SU_COMMON_PARAMS(P)                                                                        \
	P(iw_pkts, 4, 1, 100, "pkts", "initial window of a new connection (4.2)")                  \
	P(growth_percent, 200, 150, 200, "%",                                                      \
	  "the window of a round trip to the one before (4.3)")                                    \
	SU_PACED_GROWTH_PARAMS(P)

#define SU_PACED_USES SU_USES_SHAPE

struct su_paced_params {
	SU_PACED_PARAMS(SU_PARAM_FIELD)
};

struct su_paced_state {
	struct su_rounds rounds;
	struct su_paced_growth growth;
	struct su_acked acked;
	uint8_t phase;	    /* enum su_phase */
	uint8_t past_first; /* the initial window has been acknowledged */
	uint8_t reserved[2];
};

_Static_assert(sizeof(struct su_paced_state) == 48, "kept for each socket");

/* What holds in the present phase, whatever the event was. Without a round trip time nothing is
 * paced. */
static inline void su_paced_hold(const struct su_paced_state *st, const struct su_paced_params *prm,
				 uint8_t why, const struct su_event *ev, struct su_verdict *v)
{
	v->phase = st->phase;
	v->why = why;
	v->owns_slow_start = st->phase != SU_PHASE_NATIVE;
	if (st->phase != SU_PHASE_SLOW_START || !ev->srtt_us)
		return;
	v->burst_pkts = prm->burst_pkts;
	v->pacing_bytes_per_s =
		su_paced_growth_rate_bytes_per_s(&st->growth, prm->growth_percent, prm->burst_pkts,
						 prm->clock_us, ev->mss_bytes, ev->srtt_us);
}

static inline void su_paced_end(struct su_paced_state *st, uint8_t why, struct su_verdict *v)
{
	st->phase = SU_PHASE_NATIVE;
	v->phase = SU_PHASE_NATIVE;
	v->why = why;
}

static inline void su_paced_init(struct su_paced_state *st, const struct su_paced_params *prm,
				 const struct su_path *path, const struct su_event *ev,
				 struct su_verdict *v)
{
	(void)path;
	*st = (struct su_paced_state){.acked = {ev->delivered_pkts}};
	if (ev->handshake_lost) {
		v->why = SU_WHY_HANDSHAKE_LOSS;
		return;
	}
	if (ev->sent_bytes > 1) {
		v->why = SU_WHY_MID_CONNECTION;
		return;
	}
	st->phase = SU_PHASE_ARMED;
	su_paced_hold(st, prm, SU_WHY_INITIAL_WINDOW, ev, v);
	v->cwnd_pkts = su_min_u32(prm->iw_pkts, prm->max_window_pkts);
}

/* DECISION: as in Swift Start, "the first slow-start" is what is paced: after a pause the stack
 * restarts as it does without us. */
static inline void su_paced_on_idle(struct su_paced_state *st, const struct su_paced_params *prm,
				    const struct su_path *path, const struct su_event *ev,
				    struct su_verdict *v)
{
	(void)path;
	if (st->phase == SU_PHASE_SLOW_START)
		su_paced_end(st, SU_WHY_PAUSED, v);
	else
		su_paced_hold(st, prm, SU_WHY_NONE, ev, v);
}

/* DECISION: the initial window is paced too, over the round trip of the handshake. DEVIATES: Linux
 * paces none of a connection's first 10 packets. */
static inline void su_paced_on_send(struct su_paced_state *st, const struct su_paced_params *prm,
				    const struct su_event *ev, struct su_verdict *v)
{
	uint8_t why = SU_WHY_NONE;

	su_rounds_on_send(&st->rounds, ev);
	su_paced_growth_begin(&st->growth, ev->cwnd_pkts);
	if (st->phase == SU_PHASE_ARMED) {
		st->phase = SU_PHASE_SLOW_START;
		why = SU_WHY_STARTED;
		v->cwnd_pkts = su_min_u32(prm->iw_pkts, prm->max_window_pkts);
		su_paced_growth_begin(&st->growth, v->cwnd_pkts);
	}
	su_paced_hold(st, prm, why, ev, v);
}

static inline void su_paced_on_ack(struct su_paced_state *st, const struct su_paced_params *prm,
				   const struct su_event *ev, struct su_verdict *v)
{
	uint32_t newly_pkts = su_newly_acked(&st->acked, ev);
	int round_over = 0;

	su_rounds_on_ack(&st->rounds, ev);
	if (st->phase != SU_PHASE_SLOW_START) {
		su_paced_hold(st, prm, SU_WHY_NONE, ev, v);
		return;
	}
	if (!su_in_slow_start(ev)) {
		su_paced_end(st, SU_WHY_SSTHRESH, v);
		return;
	}
	v->cwnd_pkts = su_paced_growth_cwnd(&st->growth, prm->growth_percent, prm->max_window_pkts,
					    ev, newly_pkts, &round_over);
	/* Footnote 5. The initial window is no round trip of pacing: on Linux it is a burst. */
	if (round_over && prm->first_round_only && st->past_first)
		su_paced_end(st, SU_WHY_FIRST_ROUND, v);
	else if (round_over && st->growth.base_pkts >= prm->max_window_pkts)
		su_paced_end(st, SU_WHY_MAX_WINDOW, v);
	else
		su_paced_hold(st, prm, SU_WHY_NONE, ev, v);
	st->past_first |= (uint8_t)round_over;
}

static inline void su_paced_on_loss(struct su_paced_state *st, const struct su_paced_params *prm,
				    const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	su_rounds_on_loss(&st->rounds, ev);
	su_paced_end(st, SU_WHY_ORDINARY_LOSS, v);
}

static inline struct su_proof su_paced_proof(const struct su_paced_state *st,
					     const struct su_event *ev)
{
	return su_proof_of(ev, &st->rounds);
}

#endif
