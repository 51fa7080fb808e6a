/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * The adaptive start of TCP Westwood (Astart): ssthresh follows the eligible rate estimate (ERE),
 * so that slow start and congestion avoidance take turns until a packet is lost. Sources: Wang,
 * Pau, Yamada, Sanadidi and Gerla, "TCP Startup Performance in Large Bandwidth Delay Networks",
 * 2004, as Ha and Rhee, 2011, describe it in 3.4 and 5.2; the estimate is that of Wang, Valla,
 * Sanadidi and Gerla, "Adaptive Bandwidth Share Estimation in TCP Westwood", 2002. Departures are
 * named "DEVIATES:", choices where they are silent "DECISION:"; docs/westwood.md collects them.
 */
#ifndef SU_WESTWOOD_H
#define SU_WESTWOOD_H

#include "base.h"
#include "growth.h"

#define SU_WESTWOOD_PARAMS(P)                                                                      \
	SU_COMMON_PARAMS(P)                                                                        \
	P(first_ssthresh_pkts, 32, 0, 65535, "pkts",                                               \
	  "threshold of a new connection, which the estimate raises; 0: none")                     \
	P(min_interval_us, 2000, 1, 1000000, "us", "a rate is of no shorter time than this")       \
	P(throughput_percent, 60, 0, 99, "%", "weight of the past in the throughput")              \
	SU_GROWTH_PARAMS(P)

#define SU_WESTWOOD_USES 0

struct su_westwood_params {
	SU_WESTWOOD_PARAMS(SU_PARAM_FIELD)
};

/* A rate in the making: what was delivered since. */
struct su_westwood_span {
	uint64_t begin_us; /* 0: not begun */
	uint32_t begin_delivered_pkts;
	uint32_t reserved;
};

/* Rates are counted in packets for each 1000 s, which leaves room for slow ones. */
#define SU_WESTWOOD_RATE_US 1000000000ull
#define SU_WESTWOOD_MAX	    (1ull << 34) /* 17 million packets a second */

struct su_westwood_state {
	struct su_growth growth;
	struct su_westwood_span eligible;
	struct su_westwood_span throughput;
	uint64_t eligible_rate;
	uint64_t throughput_rate;
	uint32_t min_rtt_us;
	uint8_t over; /* a packet was lost */
	uint8_t reserved[3];
};

_Static_assert(sizeof(struct su_westwood_state) == 88, "kept for each socket");

static inline void su_westwood_forget(struct su_westwood_state *st)
{
	st->eligible.begin_us = 0;
	st->throughput.begin_us = 0;
	st->eligible_rate = 0;
	st->throughput_rate = 0;
	st->over = 0;
}

/* DECISION: Linux begins with an infinite threshold, which no estimate raises. */
static inline void su_westwood_init(struct su_westwood_state *st,
				    const struct su_westwood_params *prm,
				    const struct su_path *path, const struct su_event *ev,
				    struct su_verdict *v)
{
	uint32_t first_pkts = su_min_u32(prm->first_ssthresh_pkts, prm->max_window_pkts);

	(void)path;
	*st = (struct su_westwood_state){0};
	su_growth_open(&st->growth, ev, v);
	if (prm->first_ssthresh_pkts && ev->ssthresh_pkts >= SU_INFINITE_SSTHRESH &&
	    ev->cwnd_pkts < first_pkts)
		v->ssthresh_pkts = first_pkts;
}

static inline void su_westwood_on_idle(struct su_westwood_state *st,
				       const struct su_westwood_params *prm,
				       const struct su_path *path, const struct su_event *ev,
				       struct su_verdict *v)
{
	(void)prm;
	(void)path;
	su_westwood_forget(st);
	su_growth_on_idle(&st->growth, ev, v);
}

static inline void su_westwood_on_send(struct su_westwood_state *st,
				       const struct su_westwood_params *prm,
				       const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	st->eligible.begin_us = 0;
	st->throughput.begin_us = 0;
	su_growth_on_send(&st->growth, ev, v);
}

/* The rate since the span began, if that is @least_us ago; then it begins anew. 0: not yet. */
static inline uint64_t su_westwood_rate(struct su_westwood_span *span, const struct su_event *ev,
					uint64_t least_us)
{
	uint64_t over_us = ev->now_us - span->begin_us;
	uint32_t pkts = ev->delivered_pkts - span->begin_delivered_pkts;
	uint64_t rate = 0;

	if (span->begin_us && over_us < least_us)
		return 0;
	if (span->begin_us && over_us)
		rate = pkts * SU_WESTWOOD_RATE_US / over_us;
	span->begin_us = ev->now_us;
	span->begin_delivered_pkts = ev->delivered_pkts;
	return rate < SU_WESTWOOD_MAX ? rate : SU_WESTWOOD_MAX;
}

/* Packets that @rate delivers in the least round-trip time. */
static inline uint64_t su_westwood_pkts(const struct su_westwood_state *st, uint64_t rate)
{
	return rate * su_min_u32(st->min_rtt_us, 1u << 29) / SU_WESTWOOD_RATE_US;
}

/* Wang et al., 2002: "T_k = RTT (cwin - Th RTTmin) / cwin": the less of the window gets through,
 * the longer the time over which the rate is taken; where all of it does, it is of neighbouring
 * ACKs. DEVIATES: which is at least min_interval_us, since one ACK may stand for many packets. */
static inline uint64_t su_westwood_interval_us(const struct su_westwood_state *st,
					       const struct su_westwood_params *prm,
					       const struct su_event *ev)
{
	uint64_t through_pkts = su_westwood_pkts(st, st->throughput_rate);
	uint64_t interval_us = 0;

	if (ev->cwnd_pkts > through_pkts)
		interval_us = (ev->cwnd_pkts - through_pkts) * ev->srtt_us / ev->cwnd_pkts;
	return interval_us > prm->min_interval_us ? interval_us : prm->min_interval_us;
}

/* 1 - alpha = 2 dt / (2 tau + dt) of @gap; all of it where dt is 2 tau. */
static inline uint64_t su_westwood_part(uint64_t gap, uint64_t tau2_us, uint64_t over_us)
{
	uint64_t whole_us = tau2_us + over_us;

	return gap / whole_us * 2 * over_us + gap % whole_us * 2 * over_us / whole_us;
}

/* Wang et al., 2002: "alpha_k = (2 tau_k - dt) / (2 tau_k + dt)". DECISION: tau_k is one round
 * trip, its least value; how it grows with the network's instability is left out. DEVIATES: samples
 * are of one interval after another, and do not slide: for a history of ACKs there is no room. */
static inline void su_westwood_filter(struct su_westwood_state *st, const struct su_event *ev,
				      uint64_t sample, uint64_t over_us)
{
	uint64_t tau2_us = 2ull * su_min_u32(ev->srtt_us, 1u << 29);
	uint64_t most_us = over_us < tau2_us ? over_us : tau2_us;
	uint64_t old = st->eligible_rate;

	if (!old || !tau2_us)
		st->eligible_rate = sample;
	else if (sample >= old)
		st->eligible_rate += su_westwood_part(sample - old, tau2_us, most_us);
	else
		st->eligible_rate -= su_westwood_part(old - sample, tau2_us, most_us);
}

static inline void su_westwood_measure(struct su_westwood_state *st,
				       const struct su_westwood_params *prm,
				       const struct su_event *ev)
{
	uint64_t over_us = ev->now_us - st->eligible.begin_us;
	uint64_t sample;

	if (ev->rtt_us && (!st->min_rtt_us || ev->rtt_us < st->min_rtt_us))
		st->min_rtt_us = ev->rtt_us;
	/* "Th_k = 0.6 Th_k-1 + 0.4 Th", of one round trip each. */
	sample = su_westwood_rate(&st->throughput, ev, ev->srtt_us);
	if (sample && st->throughput_rate)
		st->throughput_rate = (st->throughput_rate * prm->throughput_percent +
				       sample * (100 - prm->throughput_percent)) /
				      100;
	else if (sample)
		st->throughput_rate = sample;
	sample = su_westwood_rate(&st->eligible, ev, su_westwood_interval_us(st, prm, ev));
	if (sample)
		su_westwood_filter(st, ev, sample, over_us);
}

/* Astart: "if (ssthresh < ERE RTTmin / seg_size) ssthresh = ERE RTTmin / seg_size". Ha and
 * Rhee, 5.2: "sets ssthresh to ERE if ERE is larger than cwnd". */
static inline uint32_t su_westwood_ssthresh(const struct su_westwood_state *st,
					    const struct su_westwood_params *prm,
					    const struct su_event *ev)
{
	uint64_t pkts = su_westwood_pkts(st, st->eligible_rate);

	if (pkts > prm->max_window_pkts)
		pkts = prm->max_window_pkts;
	if (st->over || pkts <= ev->cwnd_pkts)
		return 0;
	if (ev->ssthresh_pkts < SU_INFINITE_SSTHRESH && pkts <= ev->ssthresh_pkts)
		return 0;
	return (uint32_t)pkts;
}

static inline void su_westwood_on_ack(struct su_westwood_state *st,
				      const struct su_westwood_params *prm,
				      const struct su_event *ev, struct su_verdict *v)
{
	struct su_event raised = *ev;
	uint32_t newly_pkts, ssthresh_pkts;

	su_westwood_measure(st, prm, ev);
	ssthresh_pkts = su_westwood_ssthresh(st, prm, ev);
	if (ssthresh_pkts && ev->recovery == SU_RECOVERY_OPEN)
		raised.ssthresh_pkts = ssthresh_pkts;
	newly_pkts = su_growth_on_ack(&st->growth, &raised, v);
	su_growth_by(&st->growth, &raised, newly_pkts, prm->max_window_pkts, v);
	if (raised.ssthresh_pkts != ev->ssthresh_pkts) {
		v->why = SU_WHY_RATE_ESTIMATE;
		v->ssthresh_pkts = raised.ssthresh_pkts;
	}
}

/* "until a packet loss occurs" (Ha and Rhee, 3.4). A timeout begins it anew. */
static inline void su_westwood_on_loss(struct su_westwood_state *st,
				       const struct su_westwood_params *prm,
				       const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	su_westwood_forget(st);
	st->over = ev->loss != SU_LOSS_TIMEOUT;
	su_growth_on_loss(&st->growth, ev, v);
}

static inline struct su_proof su_westwood_proof(const struct su_westwood_state *st,
						const struct su_event *ev)
{
	return su_growth_proof(&st->growth, ev);
}

#endif
