/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Where the flows of recorded connections stand that no start-up has: in a table. Storage of a
 * socket's own is asked for and freed with each connection, which was near half of what a record
 * cost. A connection whose place is taken has such storage all the same, and so has one under a
 * start-up, which looks for it there (startup.bpf.c).
 *
 * A place is the connection's from the end of the handshake until the connection is closed, both
 * seen with the socket's lock held. Arriving packets are looked at without it: a place that was
 * left rests, so that nobody who found it before still writes into it when it is another's.
 */
#ifndef HS_SLOTS_H
#define HS_SLOTS_H

#include "emit.h"

#define HS_SLOTS	     8192 /* a power of two; 1.4 MB */
#define HS_SLOT_REST_JIFFIES 25	  /* 25 to 250 ms, by the kernel's HZ */
#define HS_SLOT_FILLING	     (~0ull)

struct hs_slot {
	__u64 owner;	    /* the socket's cookie; 0: nobody's */
	__u64 socket;	    /* its address, for hs_flush_slots */
	__u64 left_jiffies; /* when the one before left */
	struct hs_flow flow;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HS_SLOTS);
	__type(key, __u32);
	__type(value, struct hs_slot);
} hs_slots SEC(".maps");

/* Cookies are numbered by CPU: those of connections that live at the same time mostly differ in
 * their last bits. */
static __always_inline struct hs_slot *slot_at(__u64 cookie)
{
	__u32 place = (__u32)cookie & (HS_SLOTS - 1);

	return bpf_map_lookup_elem(&hs_slots, &place);
}

static __always_inline __u64 cookie_of(const struct tcp_sock *tp)
{
	return tp->inet_conn.icsk_inet.sk.__sk_common.skc_cookie.counter;
}

/* NULL: the connection has none. */
static __always_inline struct hs_slot *slot_of(const struct tcp_sock *tp)
{
	__u64 cookie = cookie_of(tp);
	struct hs_slot *slot = slot_at(cookie);

	return slot && cookie && slot->owner == cookie ? slot : 0;
}

/* By its name, whoever chose it. */
static __always_inline int under_start_up(const struct tcp_sock *tp)
{
	const char *name = tp->inet_conn.icsk_ca_ops->name;

	return name[0] == 's' && name[1] == 'u' && name[2] == '_';
}

/* An empty one that nobody finds before enter_slot; NULL: there is none. */
static __always_inline struct hs_slot *take_slot(__u64 cookie)
{
	struct hs_slot *slot = slot_at(cookie);

	if (!slot || slot->owner || bpf_jiffies64() - slot->left_jiffies < HS_SLOT_REST_JIFFIES ||
	    __sync_val_compare_and_swap(&slot->owner, 0, HS_SLOT_FILLING))
		return 0;
	__builtin_memset(&slot->flow, 0, sizeof(slot->flow));
	return slot;
}

static __always_inline void enter_slot(struct hs_slot *slot, const struct tcp_sock *tp,
				       __u64 cookie)
{
	slot->socket = (__u64)(unsigned long)tp;
	__sync_lock_test_and_set(&slot->owner, cookie);
}

static __always_inline void leave_slot(struct hs_slot *slot)
{
	slot->left_jiffies = bpf_jiffies64();
	__sync_lock_test_and_set(&slot->owner, 0);
}

/* The flow of a connection that was put under a start-up later goes where that looks for it. */
static __always_inline struct hs_flow *move_to_socket(struct hs_slot *slot, struct bpf_sock *sk)
{
	struct hs_flow *flow;

	if (__sync_val_compare_and_swap(&slot->flow.phase, HS_FLOW_IDLE, HS_FLOW_RECORDING) !=
	    HS_FLOW_IDLE)
		return &slot->flow;
	flow = bpf_sk_storage_get(&hs_flows, sk, &slot->flow, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow) {
		slot->flow.phase = HS_FLOW_IDLE;
		return &slot->flow;
	}
	leave_slot(slot);
	flow->phase = HS_FLOW_IDLE;
	return flow;
}

static __always_inline struct hs_flow *flow_of(struct bpf_sock *sk, const struct tcp_sock *tp)
{
	struct hs_slot *slot = slot_of(tp);

	return slot ? &slot->flow : bpf_sk_storage_get(&hs_flows, sk, 0, 0);
}

/* As put_socket, of a socket of which only the address is known. */
static __always_inline void put_socket_at(struct hs_transfer *out, const struct tcp_sock *tp)
{
	const struct sock_common *common = &tp->inet_conn.icsk_inet.sk.__sk_common;
	const struct tcp_congestion_ops___named *ops = BPF_CORE_READ(tp, inet_conn.icsk_ca_ops);
	__u32 words[4] = {};

	out->end_rtt_us = BPF_CORE_READ(tp, srtt_us) >> 3;
	out->mss_bytes = BPF_CORE_READ(tp, mss_cache);
	out->local_port = BPF_CORE_READ(common, skc_num);
	out->remote_port = bpf_ntohs(BPF_CORE_READ(common, skc_dport));
	bpf_core_read(words, sizeof(words), &common->skc_v6_daddr);
	put_peer(out, BPF_CORE_READ(common, skc_family), BPF_CORE_READ(common, skc_daddr), words);
	bpf_core_read(out->control, sizeof(out->control), &ops->name);
	put_rate(out, BPF_CORE_READ(tp, rate_delivered), BPF_CORE_READ(tp, rate_interval_us),
		 out->mss_bytes, BPF_CORE_READ_BITFIELD_PROBED(tp, rate_app_limited));
}

/* Records a transfer that ended before @before_ns. Until that is claimed the connection has not
 * been closed: what was read is a living socket's. The words of a start-up cannot be read this way:
 * such a record is made by the next packet or the connection's end. */
static long flush_slot(__u32 place, __u64 *before_ns)
{
	struct hs_slot *slot = bpf_map_lookup_elem(&hs_slots, &place);
	struct hs_transfer out = {};
	__u64 owner;

	if (!slot)
		return 1;
	owner = slot->owner;
	if (!owner || owner == HS_SLOT_FILLING || slot->flow.phase != HS_FLOW_ENDED ||
	    slot->flow.end_ns > *before_ns)
		return 0;
	put_socket_at(&out, (const struct tcp_sock *)(unsigned long)slot->socket);
	if (out.control[0] == 's' && out.control[1] == 'u' && out.control[2] == '_')
		return 0;
	if (slot->owner != owner || __sync_val_compare_and_swap(&slot->flow.phase, HS_FLOW_ENDED,
								HS_FLOW_RECORDING) != HS_FLOW_ENDED)
		return 0;
	put_flow(&out, &slot->flow);
	out.flags |= HS_TRANSFER_COMPLETE;
	count_flow(bpf_ringbuf_output(&hs_transfers, &out, sizeof(out), BPF_RB_NO_WAKEUP)
			   ? HS_FLOW_RECORDS_LOST
			   : HS_FLOW_RECORDED);
	next_transfer(&slot->flow);
	count_flows(HS_FLOW_PENDING, -1);
	return 0;
}

#endif
