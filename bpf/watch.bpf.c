// SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
/*
 * Watches the connections of a cgroup under any congestion control: a sample of the window at each
 * RTT sample of the kernel. Also gives the cgroup's new sockets the configured congestion control,
 * if there is one.
 */
#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "contract.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* Set before loading; src/watch.rs knows the layout. */
const volatile struct hs_watch_config {
	char congestion[16]; /* empty: leave the socket's own */
	__u32 samples;
} hs_watch_config = {};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} hs_samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HS_WATCH_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} hs_watch_counters SEC(".maps");

static __always_inline void count(__u32 counter, __u64 value)
{
	__u64 *slot = bpf_map_lookup_elem(&hs_watch_counters, &counter);

	if (slot)
		__sync_fetch_and_add(slot, value);
}

static __always_inline void choose(struct bpf_sock_ops *ops)
{
	char name[16];
	int i;

	if (!hs_watch_config.congestion[0])
		return;
		/* Not memcpy: without volatile clang takes the zeros that stand here at compile
		 * time. */
#pragma unroll
	for (i = 0; i < 16; i++)
		name[i] = hs_watch_config.congestion[i];
	if (bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
		count(HS_WATCH_REFUSED, 1);
	else
		count(HS_WATCH_CHOSEN, 1);
}

static __always_inline void sample(struct bpf_sock_ops *ops)
{
	struct hs_sample *out = bpf_ringbuf_reserve(&hs_samples, sizeof(*out), 0);
	__u32 ip4;

	if (!out) {
		count(HS_WATCH_SAMPLES_LOST, 1);
		return;
	}
	__builtin_memset(out, 0, sizeof(*out));
	out->at_ns = bpf_ktime_get_ns();
	out->acked_bytes = ops->bytes_acked;
	out->cwnd_pkts = ops->snd_cwnd;
	out->ssthresh_pkts = ops->snd_ssthresh;
	out->srtt_us = ops->srtt_us >> 3;
	out->inflight_pkts = ops->packets_out - ops->sacked_out - ops->lost_out + ops->retrans_out;
	out->total_retrans_pkts = ops->total_retrans;
	out->local_port = (__u16)ops->local_port;
	out->remote_port = (__u16)bpf_ntohl(ops->remote_port);
	if (ops->family == AF_INET) {
		out->family = 4;
		ip4 = ops->remote_ip4;
		__builtin_memcpy(out->remote_addr, &ip4, sizeof(ip4));
	} else {
		__u32 words[4];
		int i;

		/* The verifier wants each word read by itself; without volatile clang joins them.
		 */
#pragma unroll
		for (i = 0; i < 4; i++)
			words[i] = *(volatile __u32 *)&ops->remote_ip6[i];
		out->family = 6;
		__builtin_memcpy(out->remote_addr, words, sizeof(words));
	}
	bpf_ringbuf_submit(out, 0);
}

SEC("sockops")
int hs_watch(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	/* The handshake is done and nothing has been sent; the kernel has set the initial window
	 * and is about to initialise the congestion control (tcp_init_transfer,
	 * net/ipv4/tcp_input.c). The listener is left alone: it would hold the start-up after we
	 * are gone. */
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		choose(ops);
		if (hs_watch_config.samples) {
			bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags |
							       BPF_SOCK_OPS_RTT_CB_FLAG);
			sample(ops); /* the window with which it starts */
		}
		break;
	case BPF_SOCK_OPS_RTT_CB:
		sample(ops);
		break;
	}
	return 1;
}
