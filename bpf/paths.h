/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * The path memory of the kernel's side: by destination prefix, least recently used out first. What
 * is learnt and when it is believed is core/path_memory.h's. A peer without a handshake gets no
 * congestion control and so no entry.
 */
#ifndef HS_PATHS_H
#define HS_PATHS_H

#include "maps.h"
#include <bpf/bpf_endian.h>

/* max_entries may be changed before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct hs_prefix);
	__type(value, struct hs_path_entry);
} hs_paths SEC(".maps");

/* The initial windows of destinations and listeners, in packets. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct hs_window_key);
	__type(value, __u32);
} hs_windows SEC(".maps");

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

/* The bits of word @i of an address that lie in a prefix of @bits. */
static __always_inline __be32 mask_of(__u32 bits, __u32 i)
{
	__u32 before = 32 * i, left = bits > before ? bits - before : 0;

	if (left > 32)
		left = 32;
	return bpf_htonl((__u32)(0xffffffff00000000ull >> left));
}

static __always_inline void cut(struct hs_prefix *prefix, const struct hs_prefix *whole, __u32 bits)
{
	__be32 words[4];
	__u32 i;

	__builtin_memcpy(words, whole->addr, sizeof(words));
#pragma unroll
	for (i = 0; i < 4; i++)
		words[i] &= mask_of(bits, i);
	*prefix = (struct hs_prefix){.family = whole->family, .bits = (__u8)bits};
	__builtin_memcpy(prefix->addr, words, sizeof(words));
}

/* Whether the peer is of the local network. */
static __always_inline int in_group(const struct hs_config *config, const struct hs_prefix *whole)
{
	struct hs_prefix prefix;
	__u32 i, j, same;

	for (i = 0; i < HS_MAX_GROUP_PREFIXES && i < config->group_prefixes; i++) {
		const struct hs_prefix *group = &config->group[i];

		if (group->family != whole->family)
			continue;
		cut(&prefix, whole, group->bits);
		same = 1;
#pragma unroll
		for (j = 0; j < 16; j++)
			same &= prefix.addr[j] == group->addr[j];
		if (same)
			return 1;
	}
	return 0;
}

/* The core's judgement and its folding are global functions: the verifier looks at each once, and
 * not again for every prefix length and every way that leads there. They check nothing of the
 * kernel's that is not theirs to know: all pointers are to memory of ours. */
__noinline int hs_judge(struct su_path *path, const struct hs_config *config,
			const struct su_event *ev)
{
	if (!path || !config || !ev)
		return SU_WHY_PATH_UNKNOWN;
	return su_path_recall(path, &config->memory, ev);
}

__noinline int hs_fold(struct su_path *path, const struct hs_config *config,
		       const struct su_event *ev, const struct su_proof *proof)
{
	if (!path || !config || !ev || !proof)
		return SU_LEARNT_NOTHING;
	return su_path_learn(path, &config->memory, ev, *proof);
}

static __always_inline __u64 age_us(const struct hs_path_entry *entry, __u64 now_ns)
{
	return entry->path.age_us + (now_ns - entry->learnt_ns) / NS_PER_US;
}

/* One entry: what is remembered under @key, judged for this connection. */
static __always_inline enum su_why ask(const struct hs_config *config, const struct hs_prefix *key,
				       const struct su_event *ev, struct su_path *path)
{
	struct hs_path_entry *entry = bpf_map_lookup_elem(&hs_paths, key);

	if (!entry)
		return SU_WHY_PATH_UNKNOWN;
	*path = entry->path;
	path->age_us = age_us(entry, bpf_ktime_get_boot_ns());
	return hs_judge(path, config, ev);
}

static __always_inline const __u8 *lengths(const struct hs_config *config, __u8 family)
{
	return family == 4 ? config->prefix_bits_v4 : config->prefix_bits_v6;
}

/* The longest prefix of which anything recent is remembered answers, also with a refusal: what is
 * remembered of a shorter one is of more paths, not of this one. */
static __noinline int recall(struct sock *sk, struct hs_conn *conn, const struct su_event *ev)
{
	const struct hs_config *config = hs_config();
	struct hs_prefix whole = {}, key = {.family = HS_GROUP};
	struct su_path *path = &conn->path;
	enum su_why why;
	int i, stale = 0;

	if (!config)
		return 0;
	whole.family = (__u8)peer(sk, whole.addr);
	if (su_recalls_group(conn->alg) && in_group(config, &whole)) {
		why = ask(config, &key, ev, path);
		return why != SU_WHY_PATH_UNKNOWN;
	}
	for (i = 0; i < HS_MAX_PREFIX_LENGTHS; i++) {
		__u8 bits = lengths(config, whole.family)[i];

		if (bits == HS_NO_LENGTH)
			break;
		cut(&key, &whole, bits);
		why = ask(config, &key, ev, path);
		if (why != SU_WHY_PATH_UNKNOWN && why != SU_WHY_PATH_STALE)
			return 1;
		stale |= why == SU_WHY_PATH_STALE;
	}
	return stale;
}

/* What is left behind is an entry without a window, which answers nothing: whoever shares this
 * memory with other machines learns from it that the path was forgotten, and when. */
static __always_inline void forget(struct hs_conn *conn, const struct hs_prefix *key)
{
	struct hs_path_entry *entry = &conn->lesson;

	__builtin_memset(entry, 0, sizeof(*entry));
	entry->learnt_ns = bpf_ktime_get_boot_ns();
	bpf_map_update_elem(&hs_paths, key, entry, BPF_ANY);
}

static __always_inline void tell(const struct hs_config *config, struct hs_conn *conn,
				 const struct hs_prefix *key, const struct su_event *ev,
				 const struct su_proof *proof)
{
	struct hs_path_entry *known = bpf_map_lookup_elem(&hs_paths, key);
	struct hs_path_entry *entry = &conn->lesson;
	__u64 now_ns = bpf_ktime_get_boot_ns(), since_boot_us;
	int learnt;

	__builtin_memset(entry, 0, sizeof(*entry));
	if (known) {
		*entry = *known;
		entry->path.age_us = age_us(known, now_ns);
	}
	learnt = hs_fold(&entry->path, config, ev, proof);
	if (learnt == SU_LEARNT_TO_FORGET) {
		forget(conn, key);
	} else if (learnt == SU_LEARNT_SOMETHING) {
		since_boot_us = now_ns / NS_PER_US;
		if (since_boot_us > entry->path.age_us)
			since_boot_us = entry->path.age_us;
		entry->learnt_ns = now_ns - since_boot_us * NS_PER_US;
		entry->path.age_us -= since_boot_us;
		/* In place where there is one: a new element of an LRU map costs several times as
		 * much. Two connections of one prefix that end together may leave some values of
		 * the one and some of the other; each is one that was learnt. */
		if (known)
			*known = *entry;
		else
			bpf_map_update_elem(&hs_paths, key, entry, BPF_ANY);
	}
}

/* Folds @proof into all entries that the peer belongs to; or, without one, forgets them all: a
 * start from any of them would have failed. */
static __noinline void teach(struct sock *sk, struct hs_conn *conn, const struct su_event *ev,
			     const struct su_proof *proof)
{
	const struct hs_config *config = hs_config();
	struct hs_prefix whole = {}, key = {.family = HS_GROUP};
	int i;

	if (!config)
		return;
	whole.family = (__u8)peer(sk, whole.addr);
	if (in_group(config, &whole)) {
		if (proof)
			tell(config, conn, &key, ev, proof);
		else
			forget(conn, &key);
	}
	for (i = 0; i < HS_MAX_PREFIX_LENGTHS; i++) {
		__u8 bits = lengths(config, whole.family)[i];

		if (bits == HS_NO_LENGTH)
			break;
		cut(&key, &whole, bits);
		if (proof)
			tell(config, conn, &key, ev, proof);
		else
			forget(conn, &key);
	}
}

static __always_inline void learn(struct sock *sk, enum su_alg alg, struct hs_conn *conn,
				  const struct su_event *ev)
{
	struct su_proof proof;

	if (!su_is_lesson(conn->learnt_bytes, ev))
		return;
	proof = su_proof(alg, &conn->state, ev);
	if (proof.evidence == SU_EVIDENCE_NONE)
		return;
	conn->learnt_bytes = ev->acked_bytes;
	teach(sk, conn, ev, &proof);
}

/* The initial window that is configured for this destination or listener; 0: none. A rule for the
 * port stands above one for any port, a longer prefix above a shorter one. */
static __noinline __u8 initial_window(struct sock *sk)
{
	const struct hs_config *config = hs_config();
	struct hs_window_key key = {};
	__u32 *window;

	if (!config || !config->windows)
		return 0;
	key.family = (__u8)peer(sk, key.addr);
	key.match_bits = 32 + (key.family == 4 ? 32 : 128);
	key.local_port = sk->__sk_common.skc_num;
	window = bpf_map_lookup_elem(&hs_windows, &key);
	if (!window) {
		key.local_port = 0;
		window = bpf_map_lookup_elem(&hs_windows, &key);
	}
	return window ? (__u8)*window : 0;
}

#endif
