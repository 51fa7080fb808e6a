/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * A transfer's record: filled from the socket when the ACK that ended the transfer has been dealt
 * with, and handed to user space.
 */
#ifndef HS_EMIT_H
#define HS_EMIT_H

#include "flows.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries,
	       1 << 24); /* 110,000 records: user space takes them ten times a second */
} hs_transfers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HS_FLOW_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} hs_flow_counters SEC(".maps");

static __always_inline void count_flows(__u32 counter, __s64 by)
{
	__u64 *value = bpf_map_lookup_elem(&hs_flow_counters, &counter);

	if (value)
		__sync_fetch_and_add(value, by);
}

static __always_inline void count_flow(__u32 counter)
{
	count_flows(counter, 1);
}

static __always_inline void put_peer(struct hs_transfer *out, __u16 family, __be32 v4,
				     __u32 words[4])
{
	out->family = 6;
	/* A listener for both families has IPv4 peers as ::ffff:a.b.c.d. */
	if (family == AF_INET || (!words[0] && !words[1] && words[2] == bpf_htonl(0xffff))) {
		words[0] = v4;
		words[1] = 0;
		words[2] = 0;
		words[3] = 0;
		out->family = 4;
	}
	__builtin_memcpy(out->remote_addr, words, sizeof(out->remote_addr));
}

static __always_inline void put_address(struct hs_transfer *out, const struct tcp_sock *tp)
{
	const struct sock_common *common = &tp->inet_conn.icsk_inet.sk.__sk_common;
	__u32 words[4];

	words[0] = common->skc_v6_daddr.in6_u.u6_addr32[0];
	words[1] = common->skc_v6_daddr.in6_u.u6_addr32[1];
	words[2] = common->skc_v6_daddr.in6_u.u6_addr32[2];
	words[3] = common->skc_v6_daddr.in6_u.u6_addr32[3];
	put_peer(out, common->skc_family, common->skc_daddr, words);
}

static __always_inline void put_control(struct hs_transfer *out, const struct tcp_sock *tp)
{
	const __u64 *name = (const __u64 *)tp->inet_conn.icsk_ca_ops->name;
	__u64 words[HS_CONTROL_LENGTH / sizeof(__u64)] = {name[0], name[1]};

	__builtin_memcpy(out->control, words, sizeof(words));
}

/* The words of the start-up, where they are of this transfer: said since the end of the one before.
 */
static __always_inline void put_why(struct hs_transfer *out, const struct hs_flow *flow,
				    const struct hs_conn *conn)
{
	if (!conn)
		return;
	if (conn->path_hit)
		out->flags |= HS_TRANSFER_PATH_HIT;
	if (conn->why && conn->why_at_us >= flow->last_end_ns / NS_PER_US) {
		out->flags |= HS_TRANSFER_WHY;
		out->why = conn->why;
		out->why_cwnd_pkts = conn->why_cwnd_pkts;
	}
}

/* As the kernel tells it in TCP_INFO (tcp_compute_delivery_rate, net/ipv4/tcp.c). */
static __always_inline void put_rate(struct hs_transfer *out, __u32 delivered_pkts,
				     __u32 interval_us, __u32 mss_bytes, int app_limited)
{
	if (!delivered_pkts || !interval_us)
		return;
	out->rate_bytes_per_s = (__u64)delivered_pkts * mss_bytes * SU_US_PER_S / interval_us;
	if (app_limited)
		out->flags |= HS_TRANSFER_RATE_APP_LIMITED;
}

static __always_inline void put_socket(struct hs_transfer *out, const struct tcp_sock *tp)
{
	const struct sock_common *common = &tp->inet_conn.icsk_inet.sk.__sk_common;

	out->end_rtt_us = tp->srtt_us >> 3;
	out->mss_bytes = tp->mss_cache;
	out->local_port = common->skc_num;
	out->remote_port = bpf_ntohs(common->skc_dport);
	put_address(out, tp);
	put_control(out, tp);
	put_rate(out, tp->rate_delivered, tp->rate_interval_us, tp->mss_cache,
		 BPF_CORE_READ_BITFIELD(tp, rate_app_limited));
}

static __always_inline void put_flow(struct hs_transfer *out, const struct hs_flow *flow)
{
	out->start_ns = flow->start_ns;
	out->end_ns = flow->end_ns;
	out->bytes = flow->bytes;
	out->idle_ns = flow->last_end_ns ? flow->start_ns - flow->last_end_ns : 0;
	out->retrans_bytes = flow->retrans_bytes;
	out->retrans_pkts = flow->retrans_pkts;
	out->lost_pkts = flow->lost_pkts;
	out->rto_count = flow->rto_count - flow->begin_rto_count;
	out->min_rtt_us = flow->min_rtt_us;
	out->start_rtt_us = flow->start_rtt_us;
	out->initial_cwnd_pkts = flow->initial_cwnd_pkts;
	out->end_cwnd_pkts = flow->end_cwnd_pkts;
	out->exit_cwnd_pkts = flow->exit_cwnd_pkts;
	out->peer_initial_window_bytes = flow->peer_initial_window_bytes;
	out->index = flow->transfers;
	out->rule_id = flow->rule_id;
	out->arm = flow->arm;
	if (flow->app_limited)
		out->flags |= HS_TRANSFER_APP_LIMITED;
	if (flow->peer_limited)
		out->flags |= HS_TRANSFER_PEER_LIMITED;
	if (flow->passive)
		out->flags |= HS_TRANSFER_PASSIVE;
}

/* What is sent again belongs to a transfer: the next begins with what this one left. */
static __always_inline void next_transfer(struct hs_flow *flow)
{
	flow->begin_retrans_bytes += flow->retrans_bytes;
	flow->begin_retrans_pkts += flow->retrans_pkts;
	flow->begin_lost_pkts += flow->lost_pkts;
	flow->begin_rto_count = flow->rto_count;
	flow->transfers++;
	flow->last_end_ns = flow->end_ns;
	flow->phase = HS_FLOW_IDLE;
}

/* Records the transfer, whose phase is RECORDING. @conn: NULL where no start-up has the connection.
 * Not inlined: several places of a program want it, and code that is called once in a while is
 * slow by the lines of it that have to be fetched. */
static __attribute__((noinline)) void emit(struct hs_flow *flow, const struct tcp_sock *tp,
					   const struct hs_conn *conn, int complete)
{
	struct hs_transfer *out;

	out = bpf_ringbuf_reserve(&hs_transfers, sizeof(*out), 0);
	if (!out) {
		count_flow(HS_FLOW_RECORDS_LOST);
	} else {
		__builtin_memset(out, 0, sizeof(*out));
		put_flow(out, flow);
		put_socket(out, tp);
		if (complete)
			out->flags |= HS_TRANSFER_COMPLETE;
		put_why(out, flow, conn);
		/* User space looks by the clock: a wake-up for each would cost more than the
		 * record. */
		bpf_ringbuf_submit(out, BPF_RB_NO_WAKEUP);
		count_flow(HS_FLOW_RECORDED);
	}
	next_transfer(flow);
}

/* Records the transfer if it has ended and nobody else does. */
static __always_inline void emit_ended(struct hs_flow *flow, const struct tcp_sock *tp,
				       const struct hs_conn *conn)
{
	if (flow->phase == HS_FLOW_ENDED &&
	    __sync_val_compare_and_swap(&flow->phase, HS_FLOW_ENDED, HS_FLOW_RECORDING) ==
		    HS_FLOW_ENDED) {
		emit(flow, tp, conn, 1);
		count_flows(HS_FLOW_PENDING, -1);
	}
}

#endif
