/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * What a verdict does to a socket: marks, pacing, the floor of its timer. The windows are set by
 * whoever asked for the verdict.
 */
#ifndef HS_VERDICTS_H
#define HS_VERDICTS_H

#include "events.h"

#define LINUX_RTO_MIN_US   200000 /* TCP_RTO_MIN, include/net/tcp.h */
#define LINUX_UNPACED_PKTS 10	  /* tcp_update_skb_after_send, net/ipv4/tcp_output.c */

static __always_inline void apply_marks(struct sock *sk, struct hs_conn *conn,
					const struct su_event *ev)
{
	const struct su_verdict *v = &conn->verdict;
	struct tcp_sock *tp = tcp(sk);

	if (v->mark_from_byte == v->mark_to_byte) {
		conn->marking = 0;
		return;
	}
	if (!conn->marking)
		conn->mark_next_seq = tp->snd_nxt;
	conn->mark_from_seq = tp->snd_una + (__u32)(v->mark_from_byte - ev->acked_bytes);
	conn->mark_to_seq = tp->snd_una + (__u32)(v->mark_to_byte - ev->acked_bytes);
	conn->mark_bounded = v->mark_to_byte < SU_BUT_LAST;
	conn->mark_but_last = v->mark_to_byte == SU_BUT_LAST;
	conn->marking = 1;
}

/* The application's own limit (SO_MAX_PACING_RATE) stands above ours. */
static __always_inline void set_pacing_rate(struct sock *sk, __u64 rate)
{
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

/* DEVIATES: from Fast Start 3.3.3, bursts of maxburst: above maxburst packets a millisecond TSO
 * autosizing builds larger ones, of one millisecond's data (tcp_tso_autosize). Without fq the
 * socket's own pacing does it; where fq is in use its status is left alone.
 */
static __always_inline void apply_pacing(struct sock *sk, struct hs_conn *conn,
					 const struct su_event *ev)
{
	const struct su_verdict *v = &conn->verdict;

	if (conn->rate_saved && v->phase != SU_PHASE_ARMED) {
		sk->sk_pacing_rate = conn->stack_rate;
		conn->rate_saved = 0;
	}
	if (v->pacing_bytes_per_s) {
		if (sk->sk_pacing_status == SK_PACING_NONE) {
			sk->sk_pacing_status = SK_PACING_NEEDED;
			conn->paced = 1;
		}
		set_pacing_rate(sk, v->pacing_bytes_per_s);
	} else if (conn->paced && su_pacing_is_over(ev, v)) {
		if (sk->sk_pacing_status == SK_PACING_NEEDED)
			sk->sk_pacing_status = SK_PACING_NONE;
		conn->paced = 0;
	}
}

/* DEVIATES: from Fast Start 3.3.4, whose timer is srtt + 4 rttvar without a floor, and which does
 * not back off the RTO: the kernel's own timer is used, with a lower floor (which it takes up with
 * the next RTT sample), and it backs off. The kernel's default is restored; a floor of a route or
 * of tcp_rto_min_us is not known here. */
static __always_inline void apply_rto_min(struct sock *sk, struct hs_conn *conn)
{
	int us = conn->verdict.rto_min_us ? conn->verdict.rto_min_us : LINUX_RTO_MIN_US;

	if (conn->verdict.rto_min_us == conn->rto_min_us)
		return;
	bpf_setsockopt(sk, SOL_TCP, TCP_BPF_RTO_MIN, &us, sizeof(us));
	conn->rto_min_us = conn->verdict.rto_min_us;
}

#endif
