/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * What a start-up is told of a socket: its fields as an event.
 */
#ifndef HS_EVENTS_H
#define HS_EVENTS_H

#include "maps.h"
#include <bpf/bpf_core_read.h>

static __always_inline struct tcp_sock *tcp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *icsk(struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

static __always_inline struct hs_conn *find(struct sock *sk)
{
	return bpf_sk_storage_get(&hs_conns, tcp(sk), 0, 0);
}

static __always_inline __u8 recovery(struct sock *sk)
{
	switch (icsk(sk)->icsk_ca_state) {
	case TCP_CA_CWR:
	case TCP_CA_Recovery:
		return SU_RECOVERY_FAST;
	case TCP_CA_Loss:
		return SU_RECOVERY_TIMEOUT;
	default:
		return SU_RECOVERY_OPEN;
	}
}

/* As tcp_is_cwnd_limited (include/net/tcp.h). */
static __always_inline __u8 cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* With an ACK, and when data leaves, the stack has just looked at the clock: tcp_ack and
 * tcp_write_xmit are called behind tcp_mstamp_refresh. */
static __always_inline __u64 now_us(const struct tcp_sock *tp, __u8 kind)
{
	if (kind == SU_EVENT_ACK || kind == SU_EVENT_SEND)
		return tp->tcp_mstamp;
	return bpf_ktime_get_ns() / NS_PER_US;
}

static __always_inline void snapshot(struct sock *sk, const struct hs_conn *conn, __u8 kind,
				     struct su_event *ev)
{
	struct tcp_sock *tp = tcp(sk);

	*ev = (struct su_event){
		.now_us = now_us(tp, kind),
		.sent_bytes = tp->bytes_acked + (tp->snd_nxt - tp->snd_una),
		.acked_bytes = tp->bytes_acked,
		.unsent_bytes = tp->write_seq - tp->snd_nxt,
		.delivered_pkts = tp->delivered,
		.lost_pkts = tp->lost,
		.inflight_pkts = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out,
		.cwnd_pkts = tp->snd_cwnd,
		.ssthresh_pkts = tp->snd_ssthresh,
		.rtt_us = kind == SU_EVENT_ACK ? conn->rtt_us : 0,
		.srtt_us = tp->srtt_us >> 3,
		.rttvar_us = tp->rttvar_us >> 2,
		.min_rtt_us = tp->rtt_min.s[0].v,
		.mss_bytes = tp->mss_cache,
		.peer_window_bytes = tp->snd_wnd,
		.retransmitted_pkts = tp->total_retrans,
		.kind = kind,
		.recovery = recovery(sk),
		.sack_ok = BPF_CORE_READ_BITFIELD(tp, rx_opt.sack_ok) & 1,
		.cwnd_limited = cwnd_limited(tp),
		.window_full = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) & 1,
	};
	ev->rto_us = ev->srtt_us + tp->rttvar_us;
}

/* Of the kinds of loss, SU_LOSS_PARTIAL_ACK does not come from here. DEVIATES: from Fast
 * Start 3.3.4, slow start on a partial ACK without SACK: in fast recovery Linux asks no congestion
 * control. Called from ssthresh(), before the kernel changes its state. The timer's handler clears
 * icsk_pending before it enters loss; on the way of an ACK a timer is always pending
 * (net/ipv4/tcp_timer.c). Without any packet marked lost it is a reduction after ECN, or after a
 * drop in the local queue. */
static __always_inline __u8 loss_kind(struct sock *sk)
{
	if (!icsk(sk)->icsk_pending)
		return SU_LOSS_TIMEOUT;
	return tcp(sk)->lost_out ? SU_LOSS_FAST : SU_LOSS_ECN;
}

#endif
