// SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
/*
 * Feeds one event to the BPF build of the core. The test runs a recorded connection through this
 * and through the native build and compares verdicts and states byte for byte.
 */
#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include "contract.h"

char _license[] SEC("license") = "Dual MIT/GPL";

SEC("syscall")
int hs_replay(struct hs_replay *ctx)
{
	/* On the stack: the context may only be read and written directly, not passed on by
	 * pointer. */
	union su_params params = ctx->params;
	union su_state state = ctx->state;
	struct su_path path = ctx->path;
	struct su_event event = ctx->event;
	struct su_verdict verdict;
	const struct su_path *known = ctx->path_known ? &path : 0;

	switch (ctx->alg) {
#define REPLAY(name, NAME, number, source)                                                         \
	case SU_ALG_##NAME:                                                                        \
		su_step(SU_ALG_##NAME, &state, &params, known, &event, &verdict);                  \
		break;
		SU_STARTUPS(REPLAY)
#undef REPLAY
	default:
		return -1;
	}
	ctx->state = state;
	ctx->verdict = verdict;
	return 0;
}
