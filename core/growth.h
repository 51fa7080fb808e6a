/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * What the start-ups that grow the window themselves have in common: they own slow start while cwnd
 * is below ssthresh, and are out of the way otherwise.
 */
#ifndef SU_GROWTH_H
#define SU_GROWTH_H

#include "base.h"
#include "path_memory.h"
#include "slow_start.h"

/* Beyond 10 Gbit/s and 900 ms nothing is meant to start. */
#define SU_GROWTH_PARAMS(P)                                                                        \
	P(max_window_pkts, 65535, 2, 1000000, "pkts", "slow start ends here at the latest")

struct su_growth {
	struct su_rounds rounds;
	struct su_acked acked;
	uint8_t phase; /* SU_PHASE_NATIVE or SU_PHASE_SLOW_START */
	uint8_t blind; /* the stack repairs a loss and reports no ACKs */
	uint8_t reserved[2];
};

static inline void su_growth_phase(struct su_growth *g, uint8_t phase, uint8_t why,
				   struct su_verdict *v)
{
	g->phase = phase;
	v->phase = phase;
	v->owns_slow_start = phase == SU_PHASE_SLOW_START;
	v->why = why;
}

/* Slow start is ours wherever the stack's own would be: after the opening, a timeout, or a pause.
 */
static inline void su_growth_hold(struct su_growth *g, const struct su_event *ev,
				  struct su_verdict *v)
{
	if (!su_in_slow_start(ev))
		su_growth_phase(g, SU_PHASE_NATIVE,
				g->phase == SU_PHASE_NATIVE ? SU_WHY_NONE : SU_WHY_SSTHRESH, v);
	else
		su_growth_phase(g, SU_PHASE_SLOW_START,
				g->phase == SU_PHASE_NATIVE ? SU_WHY_SLOW_START : SU_WHY_NONE, v);
}

static inline void su_growth_open(struct su_growth *g, const struct su_event *ev,
				  struct su_verdict *v)
{
	*g = (struct su_growth){.acked = {ev->delivered_pkts}};
	su_growth_hold(g, ev, v);
	if (ev->handshake_lost && v->why == SU_WHY_SLOW_START)
		v->why = SU_WHY_HANDSHAKE_LOSS;
}

/* The stack is about to cut its window; the next SEND sees the new one. */
static inline void su_growth_on_idle(struct su_growth *g, const struct su_event *ev,
				     struct su_verdict *v)
{
	su_newly_acked(&g->acked, ev);
	su_growth_hold(g, ev, v);
}

static inline void su_growth_on_send(struct su_growth *g, const struct su_event *ev,
				     struct su_verdict *v)
{
	su_rounds_on_send(&g->rounds, ev);
	su_newly_acked(&g->acked, ev);
	su_growth_hold(g, ev, v);
}

/* The usual penalty. After a timeout the next ACK begins slow start anew. */
static inline void su_growth_on_loss(struct su_growth *g, const struct su_event *ev,
				     struct su_verdict *v)
{
	su_rounds_on_loss(&g->rounds, ev);
	su_newly_acked(&g->acked, ev);
	g->blind = ev->loss != SU_LOSS_TIMEOUT;
	su_growth_phase(g, SU_PHASE_NATIVE, SU_WHY_ORDINARY_LOSS, v);
}

/* Packets that this ACK delivers; 0 where slow start is not ours. DECISION: what was delivered
 * while the stack repaired a loss does not grow the window, also where the stack takes the loss
 * back. */
static inline uint32_t su_growth_on_ack(struct su_growth *g, const struct su_event *ev,
					struct su_verdict *v)
{
	uint32_t newly_pkts = su_newly_acked(&g->acked, ev);

	su_rounds_on_ack(&g->rounds, ev);
	su_growth_hold(g, ev, v);
	if (g->blind && ev->recovery != SU_RECOVERY_FAST) {
		g->blind = 0;
		newly_pkts = 0;
	}
	return g->phase == SU_PHASE_SLOW_START ? newly_pkts : 0;
}

/* Slow start ends at the window as it is: congestion avoidance goes on from here. */
static inline void su_growth_leave(struct su_growth *g, const struct su_event *ev, uint8_t why,
				   struct su_verdict *v)
{
	su_growth_phase(g, SU_PHASE_NATIVE, why, v);
	v->cwnd_pkts = 0;
	v->ssthresh_pkts = su_max_u32(ev->cwnd_pkts, 2);
}

/* @by_pkts more, up to ssthresh and @most_pkts, which ends slow start. Where the window is not what
 * limits sending, it stays (RFC 7661; Linux: tcp_is_cwnd_limited). */
static inline void su_growth_by(struct su_growth *g, const struct su_event *ev, uint32_t by_pkts,
				uint32_t most_pkts, struct su_verdict *v)
{
	uint32_t cwnd_pkts;

	if (g->phase != SU_PHASE_SLOW_START)
		return;
	if (ev->cwnd_pkts >= most_pkts) {
		su_growth_leave(g, ev, SU_WHY_MAX_WINDOW, v);
		return;
	}
	cwnd_pkts = su_slow_start_cwnd(ev, su_min_u32(by_pkts, most_pkts));
	cwnd_pkts = su_min_u32(cwnd_pkts, most_pkts);
	if (cwnd_pkts > ev->cwnd_pkts)
		v->cwnd_pkts = cwnd_pkts;
}

static inline struct su_proof su_growth_proof(const struct su_growth *g, const struct su_event *ev)
{
	return su_proof_of(ev, &g->rounds);
}

#endif
