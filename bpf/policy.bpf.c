// SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
/*
 * Policy: which connection gets which start-up, and whether its transfers are recorded. Decided
 * once, when the handshake is done and nothing has been sent, on the connection and not on the
 * listener.
 */
#include "transfer_watch.h"
#include "rules.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* Two of them: user space writes the one that is not in force, then switches. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct hs_policy);
} hs_policies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} hs_policy_in_force SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HS_RULE_STATS);
	__type(key, __u32); /* stats_place */
	__type(value, struct hs_rule_stats);
} hs_rule_stats SEC(".maps");

/* What live connections are moved to; written by user space before it runs hs_move_back. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hs_move);
} hs_moves SEC(".maps");

static __always_inline const struct hs_policy *policy_in_force(void)
{
	__u32 zero = 0;
	__u32 *which = bpf_map_lookup_elem(&hs_policy_in_force, &zero);
	__u32 slot;

	if (!which)
		return 0;
	slot = *which & 1;
	return bpf_map_lookup_elem(&hs_policies, &slot);
}

/* The cgroup of whoever made the socket, or the listener that it came from, with its ancestors. */
static __always_inline void find_cgroups(const struct tcp_sock *tp, struct hs_flow_key *key)
{
	struct cgroup *cgroup = BPF_CORE_READ(tp, inet_conn.icsk_inet.sk.sk_cgrp_data.cgroup);
	struct cgroup *ancestor;
	int level, i;

	if (!cgroup)
		return;
	level = BPF_CORE_READ(cgroup, level);
	for (i = 0; i < HS_CGROUP_LEVELS; i++) {
		if (i > level)
			break;
		if (bpf_core_read(&ancestor, sizeof(ancestor), &cgroup->ancestors[i]))
			break;
		key->cgroup_ids[i] = BPF_CORE_READ(ancestor, kn, id);
	}
}

static __always_inline void describe(const struct hs_policy *policy, const struct tcp_sock *tp,
				     struct hs_flow_key *key)
{
	struct hs_transfer peer = {};

	put_address(&peer, tp);
	key->family = peer.family;
	__builtin_memcpy(key->addr, peer.remote_addr, sizeof(key->addr));
	key->local_port = tp->inet_conn.icsk_inet.sk.__sk_common.skc_num;
	key->remote_port = bpf_ntohs(tp->inet_conn.icsk_inet.sk.__sk_common.skc_dport);
	if (policy->names_devices)
		key->ifindex = BPF_CORE_READ(tp, inet_conn.icsk_inet.sk.sk_dst_cache, dev, ifindex);
	if (policy->names_cgroups)
		find_cgroups(tp, key);
}

/* The kernel remembers in the socket that somebody chose: the application, or a BPF program before
 * us. A connection has it from its listener. */
static __always_inline int chosen_by_application(const struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD_PROBED(&tp->inet_conn, icsk_ca_setsockopt);
}

static __always_inline void set_control(struct bpf_sock_ops *ops, const struct tcp_sock *tp,
					const struct hs_arm *arm, struct hs_flow *flow,
					struct hs_rule_stats *stats)
{
	char control[HS_CONTROL_LENGTH];
	int cap_pkts = (int)arm->cap_pkts;

	if (cap_pkts)
		bpf_setsockopt(ops, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &cap_pkts, sizeof(cap_pkts));
	if (!arm->changes_control)
		return;
	if (chosen_by_application(tp)) {
		if (stats)
			__sync_fetch_and_add(&stats->app_chose, 1);
		return;
	}
	__builtin_memcpy(control, arm->control, sizeof(control));
	if (bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, control, sizeof(control))) {
		if (stats)
			__sync_fetch_and_add(&stats->refused, 1);
		return;
	}
	flow->chosen = 1;
	count_flow(HS_FLOW_OPENED);
	if (stats)
		__sync_fetch_and_add(&stats->chosen, 1);
}

static __always_inline int is_sampled(const struct hs_policy *policy)
{
	return policy->sample >= HS_SHARE_ONE ||
	       (bpf_get_prandom_u32() & (HS_SHARE_ONE - 1)) < policy->sample;
}

static __always_inline void established(struct bpf_sock_ops *ops, __u8 passive)
{
	const struct hs_policy *policy = policy_in_force();
	const struct hs_rule *rule;
	const struct hs_arm *arm;
	struct hs_rule_stats *stats;
	struct hs_flow_key key = {};
	struct hs_choice choice;
	struct bpf_sock *sk = ops->sk;
	struct hs_slot *slot = 0;
	struct tcp_sock *tp;
	struct hs_flow *flow;
	__u32 flags, place;
	__u64 cookie = 0;

	if (!policy || !policy->rules || !sk)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return;
	describe(policy, tp, &key);
	choice = hs_choose(policy, &key);
	if (choice.rule >= HS_MAX_RULES || choice.arm >= HS_MAX_ARMS)
		return;
	rule = hs_rule_at(policy, choice.rule);
	arm = &rule->arm[choice.arm];
	place = rule->stats_place;
	stats = bpf_map_lookup_elem(&hs_rule_stats, &place);
	if (stats)
		__sync_fetch_and_add(&stats->matched, 1);
	if (!rule->records && !arm->changes_control && !arm->cap_pkts)
		return;
	if (!arm->changes_control && !under_start_up(tp)) {
		cookie = bpf_get_socket_cookie(ops);
		slot = take_slot(cookie);
	}
	if (slot)
		flow = &slot->flow;
	else
		flow = bpf_sk_storage_get(&hs_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow)
		return;
	flow->rule_id = rule->rule_id;
	flow->arm = (__u8)choice.arm;
	flow->param_set = arm->param_set;
	flow->passive = passive;
	flow->peer_initial_window_bytes = tp->snd_wnd;
	flow->records = rule->records && is_sampled(policy);
	flags = ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG;
	if (flow->records) {
		flags |= BPF_SOCK_OPS_RTT_CB_FLAG | BPF_SOCK_OPS_RTO_CB_FLAG;
		/* A SYN may have been sent again. */
		flow->begin_retrans_bytes = tp->bytes_retrans;
		flow->begin_retrans_pkts = tp->total_retrans;
		flow->begin_lost_pkts = tp->lost;
	}
	if (slot)
		enter_slot(slot, tp, cookie);
	bpf_sock_ops_cb_flags_set(ops, (int)flags);
	set_control(ops, tp, arm, flow, stats);
}

SEC("sockops")
int hs_policy(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		established(ops, 0);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		established(ops, 1);
		break;
	case BPF_SOCK_OPS_RTO_CB:
		timed_out(ops);
		break;
	case BPF_SOCK_OPS_RTT_CB:
		sampled(ops);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ops->args[1] == TCP_CLOSE)
			closed(ops);
		break;
	}
	return 1;
}

/* The policy's answer for a connection that is not there: `headstart explain`, and the tests. */
SEC("syscall")
int hs_explain(struct hs_explain *ctx)
{
	const struct hs_policy *policy = policy_in_force();
	struct hs_flow_key key;

	if (!policy)
		return -1;
	__builtin_memcpy(&key, &ctx->key, sizeof(key));
	ctx->choice = hs_choose(policy, &key);
	return 0;
}

/* Moves the connections of the reader's network namespace that we gave a congestion control back to
 * a native one. */
SEC("iter/tcp")
int hs_move_back(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	int rto_min_us = 200000; /* TCP_RTO_MIN, include/net/tcp.h */
	struct hs_flow *flow;
	struct hs_conn *conn;
	struct tcp_sock *tp;
	char control[HS_CONTROL_LENGTH];
	struct hs_move *move;
	__u32 zero = 0;

	if (!common)
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	flow = bpf_sk_storage_get(&hs_flows, tp, 0, 0);
	if (!flow || !flow->chosen)
		return 0;
	move = bpf_map_lookup_elem(&hs_moves, &zero);
	if (!move || (move->rule_id != HS_NO_RULE && move->rule_id != flow->rule_id))
		return 0;
	__builtin_memcpy(control, move->control, sizeof(control));
	if (bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, control, sizeof(control))) {
		count_flow(HS_FLOW_STAYED);
		return 0;
	}
	conn = bpf_sk_storage_get(&hs_conns, tp, 0, 0);
	if (conn && conn->rto_min_us)
		bpf_setsockopt(tp, SOL_TCP, TCP_BPF_RTO_MIN, &rto_min_us, sizeof(rto_min_us));
	/* Nothing marks, and nothing answers for a start-up any more. */
	bpf_sk_storage_delete(&hs_conns, tp);
	flow->chosen = 0;
	count_flow(HS_FLOW_MOVED);
	return 0;
}
