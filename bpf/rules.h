/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Which rule and which arm a connection gets. Nothing here knows a socket.
 */
#ifndef HS_RULES_H
#define HS_RULES_H

#include "transfers.h"

/* The first @bits bits of word @index of an address, in the order of the network. */
static __always_inline uint32_t hs_word_mask(int bits, int index)
{
	int left = bits - 32 * index;

	if (left >= 32)
		return 0xffffffffu;
	return left <= 0 ? 0 : bpf_htonl(0xffffffffu << (32 - left));
}

static __always_inline uint64_t hs_mix(uint64_t x)
{
	/* The finaliser of MurmurHash3 (Appleby, public domain): every bit of x reaches every bit
	 * of the result. */
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ (x >> 33);
}

/* Alike for all addresses of the prefix. crates/headstart-kernel/src/assign.rs computes the same.
 */
static __always_inline uint64_t hs_hash_prefix(uint64_t salt, uint8_t family, int bits,
					       const uint8_t addr[16])
{
	uint64_t hash = hs_mix(salt ^ ((uint64_t)family << 8 | (uint32_t)bits));
	uint32_t words[4];
	int i;

	__builtin_memcpy(words, addr, sizeof(words));
#pragma unroll
	for (i = 0; i < 4; i++)
		hash = hs_mix(hash ^ bpf_ntohl(words[i] & hs_word_mask(bits, i)));
	return hash;
}

/* Where a connection stands among the shares of the arms, 0 to HS_SHARE_ONE - 1: with all others of
 * its peer's prefix, or alone. */
static __always_inline uint32_t hs_place(const struct hs_policy *policy, const struct hs_rule *rule,
					 const struct hs_flow_key *key)
{
	int whole = key->family == 4 ? 32 : 128;
	int together = key->family == 4 ? policy->arm_bits_v4 : policy->arm_bits_v6;
	int bits = rule->by_connection ? whole : together;
	uint64_t hash = hs_hash_prefix(policy->salt, key->family, bits, key->addr);

	if (rule->by_connection)
		hash = hs_mix(hash ^ ((uint32_t)key->local_port << 16 | key->remote_port));
	return (uint32_t)hash & (HS_SHARE_ONE - 1);
}

static __always_inline int hs_rule_matches(const struct hs_rule *rule,
					   const struct hs_flow_key *key)
{
	uint32_t ours[4], theirs[4];
	int i;

	if (rule->cgroup_id &&
	    key->cgroup_ids[rule->cgroup_level & (HS_CGROUP_LEVELS - 1)] != rule->cgroup_id)
		return 0;
	if (rule->ifindex && rule->ifindex != key->ifindex)
		return 0;
	if (key->local_port < rule->port_from || key->local_port > rule->port_to)
		return 0;
	if (!rule->family)
		return 1;
	if (rule->family != key->family)
		return 0;
	__builtin_memcpy(ours, rule->addr, sizeof(ours));
	__builtin_memcpy(theirs, key->addr, sizeof(theirs));
#pragma unroll
	for (i = 0; i < 4; i++)
		if ((ours[i] ^ theirs[i]) & hs_word_mask(rule->bits, i))
			return 0;
	return 1;
}

static __always_inline uint32_t hs_choose_arm(const struct hs_policy *policy,
					      const struct hs_rule *rule,
					      const struct hs_flow_key *key)
{
	uint32_t place, arm;

	if (rule->arms <= 1)
		return 0;
	place = hs_place(policy, rule, key);

#pragma unroll
	for (arm = 0; arm < HS_MAX_ARMS - 1; arm++)
		if (arm + 1 >= rule->arms || place < rule->arm[arm].upto)
			break;
	return arm;
}

struct hs_search {
	const struct hs_policy *policy;
	const struct hs_flow_key *key;
	uint32_t rule; /* the first that matches; HS_MAX_RULES: none */
};

/* The rule at @i; the mask is for the verifier of Linux 6.1, which loses bounds between two reads.
 */
static __always_inline const struct hs_rule *hs_rule_at(const struct hs_policy *policy, uint32_t i)
{
	barrier_var(i);
	return &policy->rule[i & (HS_MAX_RULES - 1)];
}
_Static_assert((HS_MAX_RULES & (HS_MAX_RULES - 1)) == 0, "a mask");

static long hs_try_rule(uint32_t i, struct hs_search *search)
{
	if (i >= search->policy->rules)
		return 1;
	if (!hs_rule_matches(hs_rule_at(search->policy, i), search->key))
		return 0;
	search->rule = i;
	return 1;
}

/* By a function of the kernel's: the verifier of Linux 6.1 walks a loop once for each rule and each
 * way through the one before it, and gives up. */
static __always_inline struct hs_choice hs_choose(const struct hs_policy *policy,
						  const struct hs_flow_key *key)
{
	struct hs_search search = {.policy = policy, .key = key, .rule = HS_MAX_RULES};
	struct hs_choice choice = {.rule = HS_MAX_RULES};

	bpf_loop(HS_MAX_RULES, hs_try_rule, &search, 0);
	if (search.rule < HS_MAX_RULES) {
		choice.rule = search.rule;
		choice.arm = hs_choose_arm(policy, hs_rule_at(policy, search.rule), key);
	}
	return choice;
}

#endif
