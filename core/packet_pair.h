/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Packet-pair slow start: ssthresh from the spacing of the first ACKs, which is the bottleneck's,
 * and the round-trip time. Source: Hoe, "Improving the Start-up Behavior of a Congestion Control
 * Scheme for TCP", 1996. Departures are named "DEVIATES:", choices where it is silent "DECISION:";
 * docs/packet_pair.md collects them.
 */
#ifndef SU_PACKET_PAIR_H
#define SU_PACKET_PAIR_H

#include "base.h"
#include "growth.h"

#define SU_PACKET_PAIR_PARAMS(P)                                                                   \
	SU_COMMON_PARAMS(P)                                                                        \
	P(acks, 3, 2, 32, "ACKs", "closely spaced ACKs that make an estimate")                     \
	P(span_pkts, 6, 0, 64, "pkts", "and what they must have delivered; 0: anything")           \
	P(spacing_divisor, 4, 1, 64, "1",                                                          \
	  "ACKs are closely spaced where the gap is this part of the round-trip time")             \
	P(min_ssthresh_pkts, 2, 2, 65535, "pkts", "least threshold that is set")                   \
	SU_GROWTH_PARAMS(P)

#define SU_PACKET_PAIR_USES 0

struct su_packet_pair_params {
	SU_PACKET_PAIR_PARAMS(SU_PARAM_FIELD)
};

/* So that no sum of products wraps: 32 ACKs of 2^22 us make 2^49 us^2 at the most, times 32. */
#define SU_PACKET_PAIR_MAX_ACKS 32u
#define SU_PACKET_PAIR_MAX_US	(1u << 22) /* 4 s */
#define SU_PACKET_PAIR_MAX_PKTS (1u << 20)

/* A least-squares line through (time, packets) of ACKs, both since the first of them. */
struct su_packet_pair_state {
	struct su_growth growth;
	uint64_t first_us;
	uint64_t sum_us;
	uint64_t sum_pkts;
	uint64_t sum_us_us;
	uint64_t sum_us_pkts;
	uint32_t first_delivered_pkts;
	uint32_t latest_us; /* of the latest ACK, since the first */
	uint32_t acks;	    /* with the first; 0: none yet */
	uint32_t min_rtt_us;
	uint8_t done; /* the estimate was made, or the time for it is over */
	uint8_t reserved[7];
};

_Static_assert(sizeof(struct su_packet_pair_state) == 96, "kept for each socket");

static inline void su_packet_pair_init(struct su_packet_pair_state *st,
				       const struct su_packet_pair_params *prm,
				       const struct su_path *path, const struct su_event *ev,
				       struct su_verdict *v)
{
	(void)prm;
	(void)path;
	*st = (struct su_packet_pair_state){0};
	/* In the middle of a connection the start is over; a SYN counts as one byte on some stacks.
	 */
	st->done = ev->sent_bytes > 1;
	su_growth_open(&st->growth, ev, v);
}

/* DECISION: the estimate is of the start. After a pause slow start goes to the ssthresh that there
 * is. */
static inline void su_packet_pair_on_idle(struct su_packet_pair_state *st,
					  const struct su_packet_pair_params *prm,
					  const struct su_path *path, const struct su_event *ev,
					  struct su_verdict *v)
{
	(void)prm;
	(void)path;
	su_growth_on_idle(&st->growth, ev, v);
}

/* Between flights ACKs are not spaced by the bottleneck. */
static inline void su_packet_pair_on_send(struct su_packet_pair_state *st,
					  const struct su_packet_pair_params *prm,
					  const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	st->acks = 0;
	su_growth_on_send(&st->growth, ev, v);
}

static inline void su_packet_pair_first(struct su_packet_pair_state *st, const struct su_event *ev)
{
	st->first_us = ev->now_us;
	st->first_delivered_pkts = ev->delivered_pkts;
	st->latest_us = 0;
	st->sum_us = 0;
	st->sum_pkts = 0;
	st->sum_us_us = 0;
	st->sum_us_pkts = 0;
	st->acks = 1;
}

/* Takes the ACK up. One that is not closely spaced is the first of the next row. */
static inline void su_packet_pair_point(struct su_packet_pair_state *st,
					const struct su_packet_pair_params *prm,
					const struct su_event *ev)
{
	uint64_t us = ev->now_us - st->first_us;
	uint64_t pkts = ev->delivered_pkts - st->first_delivered_pkts;

	if (!st->acks || us > SU_PACKET_PAIR_MAX_US || pkts > SU_PACKET_PAIR_MAX_PKTS ||
	    (us - st->latest_us) * prm->spacing_divisor > st->min_rtt_us ||
	    st->acks >= SU_PACKET_PAIR_MAX_ACKS) {
		su_packet_pair_first(st, ev);
		return;
	}
	st->latest_us = (uint32_t)us;
	st->sum_us += us;
	st->sum_pkts += pkts;
	st->sum_us_us += us * us;
	st->sum_us_pkts += us * pkts;
	st->acks++;
}

/* The slope of the line times the round-trip time, in packets; 0: none. */
static inline uint32_t su_packet_pair_estimate(const struct su_packet_pair_state *st)
{
	uint64_t n = st->acks;
	uint64_t above = n * st->sum_us_pkts, below = n * st->sum_us_us;
	uint64_t pkts;
	int i;

	if (above <= st->sum_us * st->sum_pkts || below <= st->sum_us * st->sum_us)
		return 0;
	above -= st->sum_us * st->sum_pkts;
	below -= st->sum_us * st->sum_us;
	/* The product with the round-trip time has to fit: both lose bits, of 2^54 at the most. */
	for (i = 0; i < 6; i++) {
		if (above >> 32) {
			above >>= 4;
			below >>= 4;
		}
	}
	pkts = below ? above * st->min_rtt_us / below : SU_INFINITE_SSTHRESH;
	return pkts < SU_INFINITE_SSTHRESH ? (uint32_t)pkts : SU_INFINITE_SSTHRESH - 1;
}

/* DEVIATES: the guard span_pkts. A modern receiver merges packets and acknowledges many at once, so
 * that three ACKs may be two gaps of chance; the slope has to be over that many packets. */
static inline uint32_t su_packet_pair_ssthresh(struct su_packet_pair_state *st,
					       const struct su_packet_pair_params *prm,
					       const struct su_event *ev)
{
	uint32_t pkts;

	if (ev->rtt_us && (!st->min_rtt_us || ev->rtt_us < st->min_rtt_us))
		st->min_rtt_us = ev->rtt_us;
	if (st->done || !st->min_rtt_us)
		return 0;
	su_packet_pair_point(st, prm, ev);
	if (st->acks < prm->acks || ev->delivered_pkts - st->first_delivered_pkts < prm->span_pkts)
		return 0;
	pkts = su_packet_pair_estimate(st);
	if (!pkts)
		return 0;
	st->done = 1;
	return su_max_u32(pkts, prm->min_ssthresh_pkts);
}

static inline void su_packet_pair_on_ack(struct su_packet_pair_state *st,
					 const struct su_packet_pair_params *prm,
					 const struct su_event *ev, struct su_verdict *v)
{
	uint32_t newly_pkts = su_growth_on_ack(&st->growth, ev, v);
	uint32_t ssthresh_pkts = 0;
	struct su_event known = *ev;

	if (st->growth.phase == SU_PHASE_SLOW_START)
		ssthresh_pkts = su_packet_pair_ssthresh(st, prm, ev);
	if (ssthresh_pkts && ssthresh_pkts < ev->ssthresh_pkts) {
		if (ssthresh_pkts <= ev->cwnd_pkts) {
			su_growth_leave(&st->growth, ev, SU_WHY_PACKET_PAIR, v);
			return;
		}
		v->why = SU_WHY_PACKET_PAIR;
		v->ssthresh_pkts = ssthresh_pkts;
		known.ssthresh_pkts = ssthresh_pkts;
	}
	su_growth_by(&st->growth, &known, newly_pkts, prm->max_window_pkts, v);
}

static inline void su_packet_pair_on_loss(struct su_packet_pair_state *st,
					  const struct su_packet_pair_params *prm,
					  const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	st->done = 1;
	su_growth_on_loss(&st->growth, ev, v);
}

static inline struct su_proof su_packet_pair_proof(const struct su_packet_pair_state *st,
						   const struct su_event *ev)
{
	return su_growth_proof(&st->growth, ev);
}

#endif
