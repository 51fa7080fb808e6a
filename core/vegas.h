/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * The slow start of TCP Vegas: the window doubles every other round trip; in between it stands, and
 * the rate is compared with the expected one. Source: Brakmo and Peterson, "TCP Vegas: End to End
 * Congestion Avoidance on a Global Internet", 1995, the modified slow-start mechanism. Departures
 * are named "DEVIATES:", choices where it is silent "DECISION:"; docs/vegas.md collects them.
 */
#ifndef SU_VEGAS_H
#define SU_VEGAS_H

#include "base.h"
#include "growth.h"

#define SU_VEGAS_PARAMS(P)                                                                         \
	SU_COMMON_PARAMS(P)                                                                        \
	P(gamma_pkts, 1, 0, 1000, "pkts", "leave with more than this in the queue")                \
	SU_GROWTH_PARAMS(P)

#define SU_VEGAS_USES 0

struct su_vegas_params {
	SU_VEGAS_PARAMS(SU_PARAM_FIELD)
};

enum su_vegas_round {
	SU_VEGAS_FIRST = 0, /* no ACK of it has come yet */
	SU_VEGAS_GROWS = 1,
	SU_VEGAS_RESTS = 2,
};

struct su_vegas_state {
	struct su_growth growth;
	uint64_t segment_bytes; /* where the distinguished segment begins: it is the first that was
				   sent in this round trip */
	uint32_t base_rtt_us;	/* least of all samples; 0: none yet */
	uint8_t round;		/* enum su_vegas_round */
	uint8_t reserved[3];
};

_Static_assert(sizeof(struct su_vegas_state) == 48, "kept for each socket");

static inline void su_vegas_restart(struct su_vegas_state *st, const struct su_event *ev)
{
	st->segment_bytes = ev->sent_bytes;
	st->round = SU_VEGAS_FIRST;
}

static inline void su_vegas_init(struct su_vegas_state *st, const struct su_vegas_params *prm,
				 const struct su_path *path, const struct su_event *ev,
				 struct su_verdict *v)
{
	(void)prm;
	(void)path;
	*st = (struct su_vegas_state){0};
	su_vegas_restart(st, ev);
	su_growth_open(&st->growth, ev, v);
}

static inline void su_vegas_on_idle(struct su_vegas_state *st, const struct su_vegas_params *prm,
				    const struct su_path *path, const struct su_event *ev,
				    struct su_verdict *v)
{
	(void)prm;
	(void)path;
	su_growth_on_idle(&st->growth, ev, v);
}

static inline void su_vegas_on_send(struct su_vegas_state *st, const struct su_vegas_params *prm,
				    const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	su_vegas_restart(st, ev);
	su_growth_on_send(&st->growth, ev, v);
}

/* "Expected = WindowSize / BaseRTT", the window being "the number of bytes in transit"; "Actual" is
 * what was sent until the distinguished segment was acknowledged, divided by its round-trip time.
 * Their difference times BaseRTT is what stands in the queue: sent (RTT - BaseRTT) / RTT.
 * DECISION: what was sent stands for the window, so that one which is not used whole does not seem
 * to be delayed. */
static inline int su_vegas_below_expected(const struct su_vegas_state *st,
					  const struct su_vegas_params *prm,
					  const struct su_event *ev)
{
	uint64_t sent_bytes = ev->sent_bytes - st->segment_bytes;
	uint64_t gamma_bytes = (uint64_t)prm->gamma_pkts * ev->mss_bytes;

	if (!ev->rtt_us || ev->rtt_us <= st->base_rtt_us)
		return 0;
	return sent_bytes * (ev->rtt_us - st->base_rtt_us) > gamma_bytes * ev->rtt_us;
}

static inline void su_vegas_on_ack(struct su_vegas_state *st, const struct su_vegas_params *prm,
				   const struct su_event *ev, struct su_verdict *v)
{
	uint32_t newly_pkts = su_growth_on_ack(&st->growth, ev, v);
	int ended = ev->acked_bytes > st->segment_bytes, below;

	if (ev->rtt_us && (!st->base_rtt_us || ev->rtt_us < st->base_rtt_us))
		st->base_rtt_us = ev->rtt_us;
	if (st->growth.phase != SU_PHASE_SLOW_START) {
		su_vegas_restart(st, ev);
		return;
	}
	/* "the congestion window stays fixed so a valid comparison ... can be made". */
	below = ended && st->round == SU_VEGAS_RESTS && su_vegas_below_expected(st, prm, ev);
	if (ended) {
		st->segment_bytes = ev->sent_bytes;
		st->round = st->round == SU_VEGAS_GROWS ? SU_VEGAS_RESTS : SU_VEGAS_GROWS;
	}
	if (below)
		su_growth_leave(&st->growth, ev, SU_WHY_RATE_BELOW_EXPECTED, v);
	else
		su_growth_by(&st->growth, ev, st->round == SU_VEGAS_GROWS ? newly_pkts : 0,
			     prm->max_window_pkts, v);
}

static inline void su_vegas_on_loss(struct su_vegas_state *st, const struct su_vegas_params *prm,
				    const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	su_vegas_restart(st, ev);
	su_growth_on_loss(&st->growth, ev, v);
}

static inline struct su_proof su_vegas_proof(const struct su_vegas_state *st,
					     const struct su_event *ev)
{
	return su_growth_proof(&st->growth, ev);
}

#endif
