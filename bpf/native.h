/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * The kernel's own congestion control beneath a start-up: CUBIC, or Reno where the parameter `reno`
 * says so. Where a verdict owns slow start, neither grows the window below ssthresh, and CUBIC's
 * HyStart cannot end it.
 */
#ifndef HS_NATIVE_H
#define HS_NATIVE_H

#include "maps.h"

extern void cubictcp_init(struct sock *sk) __ksym;
/* One of these two: from Linux 7.1 the second. */
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_cwnd_event_tx_start(struct sock *sk) __ksym __weak;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 new_state) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* As it was when the connection came under the start-up: its state is in the one's or the other's
 * form. */
static __always_inline int is_reno(const struct hs_conn *conn)
{
	return conn && conn->reno;
}

static __always_inline int owns_slow_start(const struct sock *sk, const struct hs_conn *conn)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;

	return conn && conn->verdict.owns_slow_start && tp->snd_cwnd < tp->snd_ssthresh;
}

static __always_inline void native_init(struct sock *sk, const struct hs_conn *conn)
{
	if (!is_reno(conn))
		cubictcp_init(sk);
}

/* These three write CUBIC's own state and nothing else (net/ipv4/tcp_cubic.c). Reno has none: they
 * are called for it too, which costs less than to ask. */
static __always_inline void native_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	/* Known when the program is loaded: the verifier leaves the call out where it cannot be
	 * made. */
	if (bpf_core_field_exists(struct tcp_congestion_ops, cwnd_event_tx_start))
		return;
	cubictcp_cwnd_event(sk, event);
}

static __always_inline void native_tx_start(struct sock *sk)
{
	cubictcp_cwnd_event_tx_start(sk);
}

static __always_inline void native_state(struct sock *sk, __u8 state)
{
	cubictcp_state(sk, state);
}

static __always_inline __u32 native_ssthresh(struct sock *sk, const struct hs_conn *conn)
{
	return is_reno(conn) ? tcp_reno_ssthresh(sk) : cubictcp_recalc_ssthresh(sk);
}

static __always_inline void native_cong_avoid(struct sock *sk, const struct hs_conn *conn,
					      __u32 ack, __u32 acked)
{
	if (owns_slow_start(sk, conn))
		return;
	if (is_reno(conn))
		tcp_reno_cong_avoid(sk, ack, acked);
	else
		cubictcp_cong_avoid(sk, ack, acked);
}

/* CUBIC needs each sample for its minimum of the delay; its HyStart, which sits in the same
 * function, ends slow start by setting ssthresh. */
static __always_inline void native_acked(struct sock *sk, const struct hs_conn *conn,
					 const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 ssthresh = tp->snd_ssthresh;
	int owned = owns_slow_start(sk, conn);

	if (is_reno(conn))
		return;
	cubictcp_acked(sk, sample);
	if (owned)
		tp->snd_ssthresh = ssthresh;
}

#endif
