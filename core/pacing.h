/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * When the pacing that a start-up asked for ends: its verdicts ask for none any more, but what they
 * have kept back must not leave as one burst. For whoever carries start-ups; none of them asks.
 * Source: TCP Fast Start (Padmanabhan and Katz, 1998), 3.3.3; RFC 6928; where they are silent,
 * "DECISION:" says what we took.
 */
#ifndef SU_PACING_H
#define SU_PACING_H

#include "base.h"

/* DECISION: what a connection may begin with at once (RFC 6928), and what Linux paces none of
 * (tcp_update_skb_after_send, net/ipv4/tcp_output.c). */
#define SU_AT_ONCE_PKTS SU_LINUX_IW_PKTS

/* Whether it is the pacing, and not the window, the peer or the application, that keeps more data
 * back than may leave at once. @v is the answer to @ev and in force. After a loss ACKs let it out.
 * DECISION: where nothing was lost, after a mark of the network or a drop in a local queue, they do
 * not: until the first of them cwnd is as large as it was, and when the reduction is over it is
 * ssthresh, which may be far above what is in flight (Linux: tcp_enter_cwr and
 * tcp_end_cwnd_reduction). Congestion is no reason to send as a burst what was to be spread. */
static inline int su_held_back(const struct su_event *ev, const struct su_verdict *v)
{
	uint32_t cwnd_pkts = v->cwnd_pkts ? v->cwnd_pkts : ev->cwnd_pkts;
	uint64_t at_once_bytes = SU_AT_ONCE_PKTS * (uint64_t)ev->mss_bytes;
	uint64_t flight_bytes = ev->sent_bytes - ev->acked_bytes;
	int lost = ev->kind == SU_EVENT_LOSS && ev->loss != SU_LOSS_ECN;

	if (lost || ev->recovery != SU_RECOVERY_OPEN || ev->window_full)
		return 0;
	return cwnd_pkts > (uint64_t)ev->inflight_pkts + SU_AT_ONCE_PKTS &&
	       ev->unsent_bytes > at_once_bytes &&
	       ev->peer_window_bytes > flight_bytes + at_once_bytes;
}

/* Whether the pacing that earlier verdicts asked for is over, when @v, which asks for none, has
 * answered @ev. DECISION: it is left on until the window is acknowledged, unless the start-up owns
 * slow start: native HyStart measures its ACK trains by it. And it is left on, at the stack's rate,
 * until nothing is held back by it: the peer's window may have kept back a part of ours, which
 * would leave as one burst. */
static inline int su_pacing_is_over(const struct su_event *ev, const struct su_verdict *v)
{
	if (v->phase == SU_PHASE_NATIVE)
		return !su_held_back(ev, v);
	return v->phase == SU_PHASE_ARMED || v->owns_slow_start;
}

#endif
