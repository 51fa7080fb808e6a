// SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
/*
 * Feeds one event to the BPF build of the core. The test runs a recorded connection through this
 * and through the native build and compares verdicts and states byte for byte.
 */
#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include "contract.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* Pointers into the context may not be passed on, and on the stack there is no room. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hs_replay);
} hs_replays SEC(".maps");

SEC("syscall")
int hs_replay(struct hs_replay *ctx)
{
	__u32 zero = 0;
	struct hs_replay *step = bpf_map_lookup_elem(&hs_replays, &zero);
	const struct su_path *known;

	if (!step)
		return -1;
	*step = *ctx;
	known = step->path_known ? &step->path : 0;
	switch (step->alg) {
#define REPLAY(name, NAME, number, source)                                                         \
	case SU_ALG_##NAME:                                                                        \
		su_step(SU_ALG_##NAME, &step->state, &step->params, known, &step->event,           \
			&step->verdict);                                                           \
		break;
		SU_STARTUPS(REPLAY)
#undef REPLAY
	default:
		return -1;
	}
	ctx->state = step->state;
	ctx->verdict = step->verdict;
	return 0;
}
