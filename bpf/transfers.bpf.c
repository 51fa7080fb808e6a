// SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
/*
 * Sees transfers begin and end, under any congestion control.
 * Source: An Argument for Increasing TCP's Initial Congestion Window (2010), 3: T_ACK - T_Res1.
 *
 * A transfer begins when the first byte leaves while nothing is outstanding, and ends when the ACK
 * arrives for all that the application has written. Both are seen on the packets of the cgroup's
 * sockets. Arriving packets are seen before TCP deals with them, without the socket's lock: the end
 * is noted here, and recorded when the ACK has been dealt with (policy.bpf.c at the RTT sample,
 * startup.bpf.c after the verdict), at the latest with the next packet, the connection's end, or
 * the next look of user space (hs_flush).
 */
#include "emit.h"

char _license[] SEC("license") = "Dual MIT/GPL";

#define IPPROTO_TCP    6
#define IPV6_HLEN      40
#define TCP_HLEN       20
#define PASS	       1
#define FLUSH_AFTER_NS 500000000ull /* an ACK is dealt with long before */

static __always_inline int fin_sent(const struct tcp_sock *tp)
{
	switch (tp->inet_conn.icsk_inet.sk.__sk_common.skc_state) {
	case TCP_FIN_WAIT1:
	case TCP_LAST_ACK:
	case TCP_CLOSING:
		return 1;
	default:
		return 0;
	}
}

/* Behind the last byte that the application has written. */
static __always_inline __u32 data_end(const struct tcp_sock *tp)
{
	return tp->write_seq - fin_sent(tp);
}

/* What is read of a TCP header. */
struct tcp_header {
	__u32 seq, ack;
	__u32 payload_bytes; /* of the whole packet, however many segments it will be */
};

/* 0: it was read. The packet begins with the network header, and TCP has put its own headers into
 * the linear part: no helper has to copy them. */
static __always_inline int read_header(struct __sk_buff *skb, struct tcp_header *header)
{
	const __u8 *packet = (const __u8 *)(long)skb->data;
	const __u8 *end = (const __u8 *)(long)skb->data_end;
	const __u8 *tcp;
	__u32 at;

	if (packet + IPV6_HLEN > end)
		return -1;
	if (packet[0] >> 4 == 4) {
		at = (packet[0] & 15) * 4;
		if (packet[9] != IPPROTO_TCP)
			return -1;
	} else {
		at = IPV6_HLEN;
		if (packet[6] != IPPROTO_TCP)
			return -1;
	}
	tcp = packet + at;
	/* Or clang adds the offsets up anew for each field, which the verifier cannot follow. */
	barrier_var(tcp);
	if (tcp + TCP_HLEN > end)
		return -1;
	header->seq = bpf_ntohl(*(const __be32 *)(tcp + 4));
	header->ack = bpf_ntohl(*(const __be32 *)(tcp + 8));
	header->payload_bytes = skb->len - at - (tcp[12] >> 4) * 4;
	return 0;
}

static __always_inline struct bpf_sock *full_socket(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	return sk ? bpf_sk_fullsock(sk) : 0;
}

static __always_inline void begin(struct hs_flow *flow, const struct tcp_sock *tp, __u32 seq)
{
	flow->start_ns = bpf_ktime_get_ns();
	flow->begin_seq = seq;
	flow->begin_acked_bytes = tp->bytes_acked;
	flow->begin_retrans_bytes = tp->bytes_retrans;
	flow->begin_retrans_pkts = tp->total_retrans;
	flow->begin_lost_pkts = tp->lost;
	flow->begin_rto_count = flow->rto_count;
	flow->min_rtt_us = 0;
	flow->start_rtt_us = tp->srtt_us >> 3;
	flow->initial_cwnd_pkts = tp->snd_cwnd;
	flow->exit_cwnd_pkts = 0;
	flow->drained = 0;
	flow->app_limited = 0;
	flow->peer_limited = 0;
	flow->in_slow_start = tp->snd_cwnd < tp->snd_ssthresh;
	flow->phase = HS_FLOW_ACTIVE;
}

SEC("cgroup_skb/egress")
int hs_departs(struct __sk_buff *skb)
{
	struct bpf_sock *sk = full_socket(skb);
	struct hs_flow *flow;
	struct tcp_header header;
	struct tcp_sock *tp;

	if (!sk)
		return PASS;
	flow = bpf_sk_storage_get(&hs_flows, sk, 0, 0);
	if (!flow || !flow->records || flow->phase == HS_FLOW_ACTIVE)
		return PASS;
	tp = bpf_skc_to_tcp_sock(sk);
	/* Data that leaves for the first time is not counted as sent yet. */
	if (!tp || tp->snd_nxt == tp->write_seq)
		return PASS;
	if (read_header(skb, &header) || !header.payload_bytes || header.seq != tp->snd_nxt)
		return PASS;
	emit_ended(flow, tp, bpf_sk_storage_get(&hs_conns, sk, 0, 0));
	if (flow->phase == HS_FLOW_IDLE)
		begin(flow, tp, header.seq);
	return PASS;
}

/* Sequence numbers alone say how many bytes they were, but for multiples of 4 GiB. */
static __always_inline __u64 bytes_until(const struct hs_flow *flow, const struct tcp_sock *tp,
					 __u32 end_seq)
{
	__u64 nearly = tp->bytes_acked - flow->begin_acked_bytes;

	return nearly + (__u64)(__s64)(__s32)(end_seq - flow->begin_seq - (__u32)nearly);
}

/* The application limited a transfer that once had nothing left to send and went on all the same;
 * the peer, one whose next packet had to wait for its window. */
static __always_inline void see_limits(struct hs_flow *flow, const struct tcp_sock *tp)
{
	__u32 end = data_end(tp);

	if (flow->drained && end != flow->drained_seq)
		flow->app_limited = 1;
	if (tp->snd_nxt == tp->write_seq) {
		flow->drained = 1;
		flow->drained_seq = end;
	}
	if (BPF_CORE_READ_BITFIELD(tp, chrono_type) == TCP_CHRONO_RWND_LIMITED)
		flow->peer_limited = 1;
}

SEC("cgroup_skb/ingress")
int hs_arrives(struct __sk_buff *skb)
{
	struct bpf_sock *sk = full_socket(skb);
	struct hs_flow *flow;
	struct tcp_header header;
	struct tcp_sock *tp;
	__u32 end;

	if (!sk)
		return PASS;
	flow = bpf_sk_storage_get(&hs_flows, sk, 0, 0);
	if (!flow || flow->phase != HS_FLOW_ACTIVE)
		return PASS;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || read_header(skb, &header))
		return PASS;
	see_limits(flow, tp);
	end = data_end(tp);
	if ((__s32)(header.ack - end) < 0 || (__s32)(header.ack - tp->snd_nxt) > 0)
		return PASS;
	flow->end_ns = bpf_ktime_get_ns();
	flow->bytes = bytes_until(flow, tp, end);
	flow->end_cwnd_pkts = tp->snd_cwnd;
	if (__sync_val_compare_and_swap(&flow->phase, HS_FLOW_ACTIVE, HS_FLOW_ENDED) ==
	    HS_FLOW_ACTIVE)
		count_flow(HS_FLOW_PENDING);
	return PASS;
}

/* What no callback has recorded: the last ACK gave no RTT sample, or came while a start-up repaired
 * losses. */
SEC("iter/bpf_sk_storage_map")
int hs_flush(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct hs_flow *flow = ctx->value;
	struct sock *sk = ctx->sk;
	struct tcp_sock *tp;

	if (!flow || !sk || flow->phase != HS_FLOW_ENDED ||
	    bpf_ktime_get_ns() - flow->end_ns < FLUSH_AFTER_NS)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp)
		emit_ended(flow, tp, bpf_sk_storage_get(&hs_conns, sk, 0, 0));
	return 0;
}
