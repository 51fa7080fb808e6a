// SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
/*
 * An application's word on the size of its next transfer: setsockopt(fd, IPPROTO_TCP,
 * HS_HINT_OPTION, &bytes, 8). There is no such option in the kernel; in the cgroup on which this is
 * attached it is taken, and elsewhere it fails with ENOPROTOOPT and does no harm. Any program may
 * say it: it needs no right that a socket does not already have.
 */
#include "maps.h"

char _license[] SEC("license") = "Dual MIT/GPL";

SEC("cgroup/setsockopt")
int hs_hint(struct bpf_sockopt *ctx)
{
	__u64 *bytes = ctx->optval;
	__u64 *hint;

	if (ctx->level != SOL_TCP || ctx->optname != HS_HINT_OPTION)
		return 1;
	if (!ctx->sk || (void *)(bytes + 1) > ctx->optval_end)
		return 0; /* EPERM */
	hint = bpf_sk_storage_get(&hs_hints, ctx->sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!hint)
		return 0;
	*hint = *bytes;
	ctx->optlen = -1; /* the kernel is not asked */
	return 1;
}
