/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Limited slow start: above max_ssthresh the window grows by half of max_ssthresh a round trip, and
 * no longer doubles. Source: RFC 3742, 2. Choices where it is silent are named "DECISION:";
 * docs/limited.md collects them.
 */
#ifndef SU_LIMITED_H
#define SU_LIMITED_H

#include "base.h"
#include "growth.h"

#define SU_LIMITED_PARAMS(P)                                                                       \
	SU_COMMON_PARAMS(P)                                                                        \
	P(max_ssthresh_pkts, 100, 2, 65535, "pkts", "above this the growth is limited")            \
	SU_GROWTH_PARAMS(P)

#define SU_LIMITED_USES 0

struct su_limited_params {
	SU_LIMITED_PARAMS(SU_PARAM_FIELD)
};

struct su_limited_state {
	struct su_growth growth;
	uint32_t fraction_bytes; /* grown, and less than a packet */
	uint32_t limited;	 /* the window has come to max_ssthresh */
};

_Static_assert(sizeof(struct su_limited_state) == 40, "kept for each socket");

static inline void su_limited_init(struct su_limited_state *st, const struct su_limited_params *prm,
				   const struct su_path *path, const struct su_event *ev,
				   struct su_verdict *v)
{
	(void)prm;
	(void)path;
	*st = (struct su_limited_state){0};
	su_growth_open(&st->growth, ev, v);
}

static inline void su_limited_on_idle(struct su_limited_state *st,
				      const struct su_limited_params *prm,
				      const struct su_path *path, const struct su_event *ev,
				      struct su_verdict *v)
{
	(void)prm;
	(void)path;
	st->limited = 0;
	su_growth_on_idle(&st->growth, ev, v);
}

static inline void su_limited_on_send(struct su_limited_state *st,
				      const struct su_limited_params *prm,
				      const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	su_growth_on_send(&st->growth, ev, v);
}

/* "K = int(cwnd / (0.5 max_ssthresh)); cwnd += int(MSS / K)". A window in packets keeps the rest in
 * bytes. */
static inline uint32_t su_limited_slowly(struct su_limited_state *st,
					 const struct su_limited_params *prm, uint32_t cwnd_pkts,
					 uint32_t newly_pkts, uint32_t mss_bytes)
{
	uint64_t k = 2ull * cwnd_pkts / su_max_u32(prm->max_ssthresh_pkts, 1);
	uint64_t grown_bytes;
	uint32_t pkts;

	if (!mss_bytes)
		return 0;
	grown_bytes = st->fraction_bytes + (uint64_t)newly_pkts * (mss_bytes / (k ? k : 1));
	pkts = (uint32_t)(grown_bytes / mss_bytes);
	st->fraction_bytes = (uint32_t)(grown_bytes % mss_bytes);
	return pkts;
}

/* "For each arriving ACK in slow-start". DECISION: an ACK of several packets counts as an ACK for
 * each (RFC 3465, and the stack's own slow start), of which those up to max_ssthresh come first; K
 * is that of where the limit begins. */
static inline void su_limited_on_ack(struct su_limited_state *st,
				     const struct su_limited_params *prm, const struct su_event *ev,
				     struct su_verdict *v)
{
	uint32_t newly_pkts = su_growth_on_ack(&st->growth, ev, v);
	uint32_t by_pkts = 0;

	if (!ev->cwnd_limited)
		return;
	/* "If (cwnd <= max_ssthresh) cwnd += MSS". */
	if (ev->cwnd_pkts <= prm->max_ssthresh_pkts)
		by_pkts = su_min_u32(newly_pkts, prm->max_ssthresh_pkts - ev->cwnd_pkts + 1);
	if (newly_pkts > by_pkts)
		by_pkts += su_limited_slowly(st, prm, ev->cwnd_pkts + by_pkts, newly_pkts - by_pkts,
					     ev->mss_bytes);
	if (st->growth.phase == SU_PHASE_SLOW_START) {
		if (!st->limited && ev->cwnd_pkts > prm->max_ssthresh_pkts)
			v->why = SU_WHY_LIMITED;
		st->limited = ev->cwnd_pkts > prm->max_ssthresh_pkts;
	}
	su_growth_by(&st->growth, ev, by_pkts, prm->max_window_pkts, v);
}

static inline void su_limited_on_loss(struct su_limited_state *st,
				      const struct su_limited_params *prm,
				      const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	st->fraction_bytes = 0;
	st->limited = 0;
	su_growth_on_loss(&st->growth, ev, v);
}

static inline struct su_proof su_limited_proof(const struct su_limited_state *st,
					       const struct su_event *ev)
{
	return su_growth_proof(&st->growth, ev);
}

#endif
