/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * The path memory of the kernel's side: by destination prefix, least recently used out first. What
 * is learnt and when it is believed is core/path_memory.h's.
 */
#ifndef HS_PATHS_H
#define HS_PATHS_H

#include "maps.h"
#include <bpf/bpf_endian.h>

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct hs_prefix);
	__type(value, struct hs_path_entry);
} hs_paths SEC(".maps");

/* The low 8 - bits of a byte are cleared; @bits: of the prefix, counted from this byte. */
static __always_inline __u8 masked(__u8 byte, int bits)
{
	if (bits >= 8)
		return byte;
	return bits <= 0 ? 0 : byte & (__u8)(0xff00 >> bits);
}

static __always_inline int peer(struct sock *sk, __u8 addr[16])
{
	const struct sock_common *common = &sk->__sk_common;
	const __be32 *words = common->skc_v6_daddr.in6_u.u6_addr32;

	__builtin_memset(addr, 0, 16);
	/* A listener for both families has IPv4 peers as ::ffff:a.b.c.d. */
	if (common->skc_family == AF_INET ||
	    (!words[0] && !words[1] && words[2] == bpf_htonl(0xffff))) {
		__be32 v4 = common->skc_daddr;

		__builtin_memcpy(addr, &v4, sizeof(v4));
		return 4;
	}
	__builtin_memcpy(addr, common->skc_v6_daddr.in6_u.u6_addr8, 16);
	return 6;
}

static __always_inline void prefix_of(struct sock *sk, struct hs_prefix *prefix)
{
	const struct hs_config *config = hs_config();
	__u8 addr[16];
	int i, bits;

	*prefix = (struct hs_prefix){.family = (__u8)peer(sk, addr)};
	if (!config)
		return;
	prefix->bits = prefix->family == 4 ? config->prefix_bits_v4 : config->prefix_bits_v6;
	bits = prefix->bits;
#pragma unroll
	for (i = 0; i < 16; i++)
		prefix->addr[i] = masked(addr[i], bits - 8 * i);
}

static __always_inline int recall(struct sock *sk, struct su_path *path)
{
	struct hs_path_entry *entry;
	struct hs_prefix prefix;

	prefix_of(sk, &prefix);
	entry = bpf_map_lookup_elem(&hs_paths, &prefix);
	if (!entry)
		return 0;
	*path = entry->path;
	path->age_us = (bpf_ktime_get_ns() - entry->learnt_ns) / NS_PER_US;
	return 1;
}

static __always_inline void learn(struct sock *sk, enum su_alg alg, const struct hs_conn *conn,
				  const struct su_event *ev)
{
	struct su_proof proof = su_proof(alg, &conn->state, ev);
	struct hs_path_entry entry = {};
	struct hs_path_entry *known;
	struct hs_prefix prefix;

	if (proof.evidence == SU_EVIDENCE_NONE)
		return;
	prefix_of(sk, &prefix);
	known = bpf_map_lookup_elem(&hs_paths, &prefix);
	if (known)
		entry = *known;
	if (!su_path_learn(&entry.path, ev, proof))
		return;
	entry.learnt_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&hs_paths, &prefix, &entry, BPF_ANY);
}

#endif
