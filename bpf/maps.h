/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * The maps that startup.bpf.c and mark.bpf.c share. Each object declares them; the loader makes
 * them one.
 */
#ifndef HS_MAPS_H
#define HS_MAPS_H

#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include "contract.h"

#define NS_PER_US 1000

/* What is kept for each socket under a start-up. */
struct hs_conn {
	union su_state state;
	struct su_verdict verdict; /* the one that holds */
	__u64 learnt_bytes;	   /* acknowledged when the path memory was last told */
	__u64 why_at_us;	   /* when the last reason was given */
	__u64 stack_rate;	   /* the stack's own pacing rate, while ours stands in its place */
	__u32 mark_from_seq;
	__u32 mark_to_seq;   /* meaningful where mark_bounded */
	__u32 mark_next_seq; /* data before it has been sent once: a retransmission is never marked
			      */
	__u32 rtt_us;	     /* of the ACK that is being processed */
	__u32 rto_min_us;    /* what we have set; 0: nothing */
	__u32 why_cwnd_pkts; /* the window after the verdict that gave it */
	__u16 param_set;     /* the rule's parameters (flows.h); 0: those of hs_config */
	__u8 why;	     /* the last reason but SU_WHY_NONE */
	__u8 path_hit;	     /* the path was known */
	__u8 marking;
	__u8 mark_bounded;
	__u8 mark_but_last; /* the last packet that is written is not of the range */
	__u8 paced;	    /* we switched the socket's pacing on */
	__u8 alg;
	__u8 rate_saved;
	__u8 ruled; /* a rule gave the connection to the start-up: it has a flow (flows.h) */
	__u8 reno;  /* congestion avoidance is Reno's, not CUBIC's */
	/* Room to work in, for which the BPF stack is too small. */
	struct su_path path;	     /* what the start-up is told */
	struct hs_path_entry lesson; /* an entry while it is changed */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hs_conn);
} hs_conns SEC(".maps");

/* What applications said of their next transfer's size, in bytes (hint.bpf.c). */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} hs_hints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hs_config);
} hs_configs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HS_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} hs_counters SEC(".maps");

static __always_inline const struct hs_config *hs_config(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&hs_configs, &zero);
}

static __always_inline void hs_count(__u32 counter)
{
	__u64 *value = bpf_map_lookup_elem(&hs_counters, &counter);

	if (value)
		__sync_fetch_and_add(value, 1);
}

#endif
