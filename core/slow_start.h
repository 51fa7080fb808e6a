/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Slow start as the stack does it, for start-ups that own it (su_verdict.owns_slow_start).
 * Source: RFC 5681 3.1; Linux: tcp_slow_start, net/ipv4/tcp_cong.c.
 */
#ifndef SU_SLOW_START_H
#define SU_SLOW_START_H

#include "base.h"

/* Counts what each ACK newly delivers. Tell it of every event, or the next ACK counts too much. */
struct su_acked {
	uint32_t delivered_pkts;
};

/* Packets delivered since the last event that was told. */
static inline uint32_t su_newly_acked(struct su_acked *acked, const struct su_event *ev)
{
	uint32_t newly_pkts = ev->delivered_pkts - acked->delivered_pkts;

	acked->delivered_pkts = ev->delivered_pkts;
	return newly_pkts;
}

static inline int su_in_slow_start(const struct su_event *ev)
{
	return ev->recovery != SU_RECOVERY_FAST && ev->cwnd_pkts < ev->ssthresh_pkts;
}

/* The window after an ACK of @newly_pkts packets: one packet more for each that was delivered, up
 * to ssthresh; and no more than it is where it is not what limits sending (RFC 7661; Linux:
 * tcp_is_cwnd_limited). */
static inline uint32_t su_slow_start_cwnd(const struct su_event *ev, uint32_t newly_pkts)
{
	if (!ev->cwnd_limited)
		return ev->cwnd_pkts;
	return su_min_u32(ev->cwnd_pkts + newly_pkts, su_max_u32(ev->ssthresh_pkts, ev->cwnd_pkts));
}

#endif
