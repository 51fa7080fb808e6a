/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Slow start that is paced: a window that grows by a factor each round trip, spread over that round
 * trip. For start-ups that own slow start.
 * Source: Partridge et al., "A Swifter Start for TCP", BBN Technical Report 8339, 2002, 3.1: "We
 * continue pacing (but growing the window normally, at 1.5 to 2 times per round-trip) until the
 * first slow-start ends". Where it is silent, "DECISION:" says what we took.
 */
#ifndef SU_PACED_GROWTH_H
#define SU_PACED_GROWTH_H

#include "base.h"
#include "slow_start.h"

/* The parameters of every paced slow start. */
#define SU_PACED_GROWTH_PARAMS(P)                                                                  \
	P(burst_pkts, 2, 1, 64, "pkts", "most segments a transmission while paced (4.2)")          \
	P(clock_us, 0, 0, 100000, "us", "granularity of the clock that paces (4.2, 5); 0: exact")  \
	P(first_round_only, 0, 0, 1, "switch",                                                     \
	  "pace the first round trip only, then standard slow start (footnote 5)")                 \
	P(max_window_pkts, 65535, 10, 1000000, "pkts",                                             \
	  "no larger window from the start-up: the stack's slow start goes on from there")

/* A round trip is a window acknowledged. DECISION: counted in packets and not by a position in the
 * stream: what the application leaves unused of the window then does not count as a round trip. */
struct su_paced_growth {
	uint32_t base_pkts;  /* the window with which the round trip began */
	uint32_t acked_pkts; /* of it, so far */
	uint32_t clocked;    /* ACKs of this window have begun to come */
	uint32_t reserved;
};

/* What part of @pkts the window grows by; rounded up, as an ACK for one packet of a pair counts for
 * the pair (the report's Tables 1 and 2 count so). */
static inline uint32_t su_paced_growth_of(uint32_t pkts, uint32_t growth_percent)
{
	return (uint32_t)(((uint64_t)pkts * (growth_percent - 100) + 99) / 100);
}

/* The window of @base_pkts begins to leave; no ACK clocks it. */
static inline void su_paced_growth_begin(struct su_paced_growth *growth, uint32_t base_pkts)
{
	*growth = (struct su_paced_growth){.base_pkts = base_pkts};
}

/* The window after an ACK of @newly_pkts packets, by the same limits as slow start has
 * (su_slow_start_cwnd), and no larger than @max_pkts. *@round_over is set where it ends a round
 * trip. */
static inline uint32_t su_paced_growth_cwnd(struct su_paced_growth *growth, uint32_t growth_percent,
					    uint32_t max_pkts, const struct su_event *ev,
					    uint32_t newly_pkts, int *round_over)
{
	uint32_t before_pkts = su_paced_growth_of(growth->acked_pkts, growth_percent);
	uint32_t cwnd_pkts;

	*round_over = 0;
	if (!ev->cwnd_limited || !newly_pkts)
		return ev->cwnd_pkts;
	growth->clocked = 1;
	/* No more than the window can have been out. */
	growth->acked_pkts += su_min_u32(newly_pkts, growth->base_pkts - growth->acked_pkts);
	cwnd_pkts = su_slow_start_cwnd(ev, su_paced_growth_of(growth->acked_pkts, growth_percent) -
						   before_pkts);
	cwnd_pkts = su_min_u32(cwnd_pkts, max_pkts);
	if (growth->acked_pkts >= growth->base_pkts) {
		*round_over = 1;
		growth->base_pkts = cwnd_pkts;
		growth->acked_pkts = 0;
	}
	return cwnd_pkts;
}

/* 3.1: "we pace out the segments over roughly one round-trip time". DECISION: the rate is that of
 * the window to which this round trip leads; at the rate of the present window the pacing, and not
 * the ACKs, would slow the growth: 1.42 in place of 1.5, 1.76 in place of 2. Where no ACK has come
 * for the window yet it is the window itself.
 *
 * 5: "a segment that should be transmitted at 0.5 ms may be transmitted at 1 ms": bursts leave at
 * the first tick of the clock that is not too early. */
static inline uint64_t su_paced_growth_rate_bytes_per_s(const struct su_paced_growth *growth,
							uint32_t growth_percent,
							uint32_t burst_pkts, uint32_t clock_us,
							uint32_t mss_bytes, uint32_t rtt_us)
{
	uint32_t window_pkts = growth->base_pkts;
	uint64_t rate_bytes_per_s, burst_bytes = (uint64_t)burst_pkts * mss_bytes;
	uint64_t interval_us;

	if (growth->clocked)
		window_pkts += su_paced_growth_of(growth->base_pkts, growth_percent);
	rate_bytes_per_s = su_rate_bytes_per_s(window_pkts, mss_bytes, rtt_us);
	if (!clock_us)
		return rate_bytes_per_s;
	interval_us = (burst_bytes * SU_US_PER_S + rate_bytes_per_s - 1) / rate_bytes_per_s;
	interval_us = (interval_us + clock_us - 1) / clock_us * clock_us;
	rate_bytes_per_s = interval_us ? burst_bytes * SU_US_PER_S / interval_us : 0;
	return rate_bytes_per_s ? rate_bytes_per_s : 1;
}

#endif
