/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Standard: plain slow start from an initial window that is a parameter.
 * Source: RFC 5681 3.1 and 4.1, RFC 6928; the larger initial window is the paper of 2010 (IW10).
 * With iw_pkts = 10 and hystart = 1 nothing is decided here: the stack's own start is left
 * untouched, also where a route gives it another initial window. A window that is configured for
 * the destination or the listener (su_event.iw_pkts) stands above the parameter.
 */
#ifndef SU_STANDARD_H
#define SU_STANDARD_H

#include "base.h"
#include "growth.h"

#define SU_STANDARD_PARAMS(P)                                                                      \
	SU_COMMON_PARAMS(P)                                                                        \
	P(iw_pkts, SU_LINUX_IW_PKTS, 1, 100, "pkts",                                               \
	  "initial window, on a new connection and after idle")                                    \
	P(hystart, 1, 0, 1, "switch", "the stack's own exit from slow start (CUBIC's HyStart)")

#define SU_STANDARD_USES 0

struct su_standard_params {
	SU_STANDARD_PARAMS(SU_PARAM_FIELD)
};

struct su_standard_state {
	struct su_growth growth; /* owns slow start only where hystart = 0 */
	uint32_t restart_pkts;	 /* the window to set when data next leaves; 0: none */
	uint32_t reserved;
};

/* 0: the stack's own. @iw_pkts: that of the destination or listener. */
static inline uint32_t su_standard_iw(const struct su_standard_params *prm, uint8_t iw_pkts)
{
	if (iw_pkts)
		return iw_pkts;
	return prm->iw_pkts == SU_LINUX_IW_PKTS ? 0 : prm->iw_pkts;
}

/* Whether it does anything that the stack would not do by itself. */
static inline int su_standard_decides(const struct su_standard_params *prm, uint8_t iw_pkts)
{
	return su_standard_iw(prm, iw_pkts) || !prm->hystart;
}

static inline void su_standard_init(struct su_standard_state *st,
				    const struct su_standard_params *prm,
				    const struct su_path *path, const struct su_event *ev,
				    struct su_verdict *v)
{
	(void)path;
	*st = (struct su_standard_state){0};
	if (!prm->hystart)
		su_growth_open(&st->growth, ev, v);
	v->why = SU_WHY_INITIAL_WINDOW;
	/* RFC 5681 3.1: "If the SYN or SYN/ACK is lost, the initial window used ... MUST be one
	 * segment". */
	if (ev->handshake_lost) {
		v->why = SU_WHY_HANDSHAKE_LOSS;
		return;
	}
	/* In the middle of a connection the start is over. */
	if (ev->sent_bytes <= 1)
		v->cwnd_pkts = su_standard_iw(prm, ev->iw_pkts);
}

/* The window after a pause as Linux computes it (tcp_cwnd_restart, net/ipv4/tcp_output.c; RFC
 * 2861): halved for each RTO of the pause, down to the restart window min(IW, cwnd) of RFC
 * 5681 4.1. */
static inline uint32_t su_standard_restart_window(uint32_t iw_pkts, const struct su_event *ev)
{
	uint32_t floor_pkts = su_min_u32(iw_pkts, ev->cwnd_pkts);
	uint64_t halvings = ev->rto_us && ev->idle_us ? (ev->idle_us - 1) / ev->rto_us : 31;
	uint32_t cwnd_pkts = ev->cwnd_pkts >> (halvings < 31 ? halvings : 31);

	return su_max_u32(cwnd_pkts, floor_pkts);
}

static inline void su_standard_on_idle(struct su_standard_state *st,
				       const struct su_standard_params *prm,
				       const struct su_path *path, const struct su_event *ev,
				       struct su_verdict *v)
{
	uint32_t iw_pkts = su_standard_iw(prm, ev->iw_pkts);

	(void)path;
	if (!prm->hystart)
		su_growth_on_idle(&st->growth, ev, v);
	st->restart_pkts = 0;
	if (!iw_pkts)
		return;
	st->restart_pkts = su_standard_restart_window(iw_pkts, ev);
	v->why = SU_WHY_RESTART_WINDOW;
}

static inline void su_standard_on_send(struct su_standard_state *st,
				       const struct su_standard_params *prm,
				       const struct su_event *ev, struct su_verdict *v)
{
	if (prm->hystart)
		su_rounds_on_send(&st->growth.rounds, ev);
	else
		su_growth_on_send(&st->growth, ev, v);
	if (!st->restart_pkts)
		return;
	v->cwnd_pkts = st->restart_pkts;
	v->why = SU_WHY_RESTART_WINDOW;
	st->restart_pkts = 0;
}

static inline void su_standard_on_ack(struct su_standard_state *st,
				      const struct su_standard_params *prm,
				      const struct su_event *ev, struct su_verdict *v)
{
	/* Slow start as the stack's, to which no HyStart puts an end. */
	if (prm->hystart)
		su_rounds_on_ack(&st->growth.rounds, ev);
	else
		su_growth_by(&st->growth, ev, su_growth_on_ack(&st->growth, ev, v),
			     SU_INFINITE_SSTHRESH, v);
}

static inline void su_standard_on_loss(struct su_standard_state *st,
				       const struct su_standard_params *prm,
				       const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	su_growth_on_loss(&st->growth, ev, v);
	st->restart_pkts = 0;
}

static inline struct su_proof su_standard_proof(const struct su_standard_state *st,
						const struct su_event *ev)
{
	return su_growth_proof(&st->growth, ev);
}

#endif
