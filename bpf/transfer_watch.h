/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Sees transfers begin and end, under any congestion control.
 * Source: An Argument for Increasing TCP's Initial Congestion Window (2010), 3: T_ACK - T_Res1.
 *
 * A transfer begins when the first byte leaves while nothing is outstanding, and ends when the ACK
 * arrives for all that the application has written. Only packets that arrive are looked at, before
 * TCP deals with them and without the socket's lock. The first after a beginning finds the socket
 * as it was then, and when that was: the stack keeps the time at which data last left while nothing
 * was outstanding, until an ACK for it is dealt with. A timeout that comes before is told.
 *
 * The end is noted, and recorded when the ACK has been dealt with (policy.bpf.c at the RTT sample,
 * startup.bpf.c after the verdict), at the latest with the next packet, the connection's end, or
 * the next look of user space (hs_flush).
 */
#ifndef HS_TRANSFER_WATCH_H
#define HS_TRANSFER_WATCH_H

#include "slots.h"

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
	__u32 ack;
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
	header->ack = bpf_ntohl(*(const __be32 *)(tcp + 8));
	return 0;
}

/* Notes the beginning of a transfer, if data has left since the one before. A peer on this machine
 * acknowledges a packet (@ack) while it is still being sent, before the stack counts it as sent. */
static __always_inline void begin(struct hs_flow *flow, const struct tcp_sock *tp, __u32 ack)
{
	__u32 una = tp->snd_una;
	__u64 start_ns = tp->first_tx_mstamp * NS_PER_US;

	/* What is outstanding may be a FIN alone. */
	if ((__s32)(data_end(tp) - una) <= 0)
		return;
	if (tp->snd_nxt == una) {
		if ((__s32)(ack - una) <= 0 || (__s32)(ack - tp->write_seq) > 0)
			return;
		start_ns = tp->tcp_mstamp * NS_PER_US;
	}
	flow->start_ns = start_ns > flow->last_end_ns ? start_ns : flow->last_end_ns;
	flow->begin_seq = una;
	flow->begin_acked_bytes = tp->bytes_acked;
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

/* Without the socket's lock: of several that see the same packets one takes the step. */
static __always_inline void end(struct hs_flow *flow, const struct tcp_sock *tp, __u64 bytes)
{
	flow->end_ns = bpf_ktime_get_ns();
	flow->bytes = bytes;
	flow->end_cwnd_pkts = tp->snd_cwnd;
	flow->retrans_bytes = tp->bytes_retrans - flow->begin_retrans_bytes;
	flow->retrans_pkts = tp->total_retrans - flow->begin_retrans_pkts;
	flow->lost_pkts = tp->lost - flow->begin_lost_pkts;
}

SEC("cgroup_skb/ingress")
int hs_arrives(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct tcp_header header;
	struct hs_slot *slot;
	struct hs_flow *flow;
	struct tcp_sock *tp;
	__u32 last;

	if (!sk)
		return PASS;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return PASS;
	slot = slot_of(tp);
	if (!slot)
		flow = bpf_sk_storage_get(&hs_flows, sk, 0, 0);
	else if (slot->flow.phase == HS_FLOW_IDLE && under_start_up(tp))
		flow = move_to_socket(slot, sk);
	else
		flow = &slot->flow;
	if (!flow || !flow->records)
		return PASS;
	/* The ACK that ended it has been dealt with. */
	if (flow->phase == HS_FLOW_ENDED && (__s32)(tp->snd_una - flow->end_seq) >= 0)
		emit_ended(flow, tp, bpf_sk_storage_get(&hs_conns, sk, 0, 0));
	if (read_header(skb, &header))
		return PASS;
	if (flow->phase == HS_FLOW_IDLE)
		begin(flow, tp, header.ack);
	if (flow->phase != HS_FLOW_ACTIVE)
		return PASS;
	see_limits(flow, tp);
	last = data_end(tp);
	if ((__s32)(header.ack - last) < 0 || (__s32)(header.ack - tp->snd_nxt) > 0)
		return PASS;
	end(flow, tp, bytes_until(flow, tp, last));
	flow->end_seq = last;
	if (__sync_val_compare_and_swap(&flow->phase, HS_FLOW_ACTIVE, HS_FLOW_ENDED) ==
	    HS_FLOW_ACTIVE)
		count_flow(HS_FLOW_PENDING);
	return PASS;
}

/* The kernel has just taken an RTT sample from an ACK, once a round trip: what the ACK acknowledged
 * is off its lists, and the congestion control has not been told yet. */
static __always_inline void sampled(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct hs_flow *flow;
	struct tcp_sock *tp;
	__u32 rtt_us;

	if (!sk)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return;
	flow = flow_of(sk, tp);
	if (!flow || flow->phase == HS_FLOW_IDLE)
		return;
	/* Of the packet that left last of those that are known to have arrived. */
	rtt_us = tp->rack.rtt_us;
	if (rtt_us && (!flow->min_rtt_us || rtt_us < flow->min_rtt_us))
		flow->min_rtt_us = rtt_us;
	if (flow->in_slow_start && tp->snd_cwnd >= tp->snd_ssthresh) {
		flow->exit_cwnd_pkts = tp->snd_cwnd;
		flow->in_slow_start = 0;
	}
	/* A start-up has not had its last word yet (startup.bpf.c). */
	if (flow->phase == HS_FLOW_ENDED && !bpf_sk_storage_get(&hs_conns, sk, 0, 0))
		emit_ended(flow, tp, 0);
}

/* The window has not been cut yet. */
static __always_inline void timed_out(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct hs_flow *flow;
	struct tcp_sock *tp;

	if (!sk)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return;
	flow = flow_of(sk, tp);
	if (!flow)
		return;
	if (flow->phase == HS_FLOW_ENDED)
		emit_ended(flow, tp, bpf_sk_storage_get(&hs_conns, sk, 0, 0));
	if (flow->phase == HS_FLOW_IDLE)
		begin(flow, tp, tp->snd_una);
	flow->rto_count++;
}

static __always_inline void closed(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct hs_slot *slot;
	struct hs_flow *flow;
	struct tcp_sock *tp;

	if (!sk)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return;
	slot = slot_of(tp);
	flow = slot ? &slot->flow : bpf_sk_storage_get(&hs_flows, sk, 0, 0);
	if (!flow)
		return;
	if (flow->records) {
		if (flow->phase == HS_FLOW_ENDED)
			emit_ended(flow, tp, bpf_sk_storage_get(&hs_conns, sk, 0, 0));
		if (flow->phase == HS_FLOW_IDLE)
			begin(flow, tp, tp->snd_una);
		if (flow->phase == HS_FLOW_ACTIVE) {
			end(flow, tp, tp->bytes_acked - flow->begin_acked_bytes);
			emit(flow, tp, bpf_sk_storage_get(&hs_conns, sk, 0, 0), 0);
		}
	}
	if (flow->chosen)
		count_flow(HS_FLOW_CLOSED);
	flow->chosen = 0;
	if (slot)
		leave_slot(slot);
}

/* What nothing else has recorded: the last ACK gave no RTT sample, or came while a start-up
 * repaired losses, and nothing has arrived since. */
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

/* The same for those in the table. */
SEC("syscall")
int hs_flush_slots(void *ctx)
{
	__u64 before_ns = bpf_ktime_get_ns() - FLUSH_AFTER_NS;

	bpf_loop(HS_SLOTS, flush_slot, &before_ns, 0);
	return 0;
}

#endif
