/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * What a start-up was told and what it answered, into the ring buffer.
 */
#ifndef HS_RECORDS_H
#define HS_RECORDS_H

#include "maps.h"
#include "paths.h" /* peer() */
#include <bpf/bpf_endian.h>

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} hs_records SEC(".maps");

static __always_inline void record(struct sock *sk, const struct hs_conn *conn,
				   const struct su_event *ev, const struct su_path *path,
				   __u8 old_phase)
{
	const struct hs_config *config = hs_config();
	struct hs_record *out;

	if (!config || config->record_level == HS_RECORD_NOTHING)
		return;
	if (config->record_level == HS_RECORD_DECISIONS && conn->verdict.why == SU_WHY_NONE &&
	    conn->verdict.phase == old_phase)
		return;
	out = bpf_ringbuf_reserve(&hs_records, sizeof(*out), 0);
	if (!out) {
		hs_count(HS_COUNTER_RECORDS_LOST);
		return;
	}
	__builtin_memset(out, 0, sizeof(*out));
	out->at_ns = bpf_ktime_get_ns();
	out->socket = (__u64)(unsigned long)sk;
	out->alg = conn->alg;
	out->local_port = sk->__sk_common.skc_num;
	out->remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	out->family = (__u8)peer(sk, out->remote_addr);
	out->event = *ev;
	out->verdict = conn->verdict;
	if (path) {
		out->path_known = 1;
		out->path = *path;
	}
	bpf_ringbuf_submit(out, 0);
}

#endif
