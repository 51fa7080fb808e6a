/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * The start-ups there are. This is the one place where a start-up is registered: include its file
 * and add its line to SU_STARTUPS; the kernel's and the native build, the parameter tables and the
 * tests follow.
 */
#ifndef SU_REGISTRY_H
#define SU_REGISTRY_H

#include "base.h"
#include "pacing.h"
#include "path_memory.h"
#include "standard.h"
#include "fast_start.h"
#include "swift_start.h"
#include "paced.h"
#include "hystart.h"
#include "limited.h"
#include "westwood.h"
#include "packet_pair.h"
#include "vegas.h"
#include "adaptive.h"

/* X(name, NAME, number, source). A number is never used again for something else: recordings carry
 * it. */
#define SU_STARTUPS(X)                                                                             \
	X(standard, STANDARD, 0, "RFC 5681, RFC 6928")                                             \
	X(fast_start, FAST_START, 1, "Padmanabhan and Katz, TCP Fast Start, 1998")                 \
	X(swift_start, SWIFT_START, 2, "Partridge et al., A Swifter Start for TCP, 2002, 3.1")     \
	X(paced, PACED, 3, "Partridge et al., A Swifter Start for TCP, 2002, 4.3")                 \
	X(adaptive, ADAPTIVE, 4, "Bhumralkar, Lung and Varaiya, Network Adaptive TCP Slow Start")  \
	X(hystart, HYSTART, 5, "Ha and Rhee, Taming the elephants: New TCP slow start, 2011")      \
	X(limited, LIMITED, 6, "RFC 3742")                                                         \
	X(westwood, WESTWOOD, 7, "Wang et al., TCP Startup Performance, 2004")                     \
	X(packet_pair, PACKET_PAIR, 8, "Hoe, Improving the Start-up Behavior of TCP, 1996")        \
	X(vegas, VEGAS, 9, "Brakmo and Peterson, TCP Vegas, 1995")

enum su_alg {
#define SU_ALG_ENUM(name, NAME, number, source) SU_ALG_##NAME = number,
	SU_STARTUPS(SU_ALG_ENUM)
#undef SU_ALG_ENUM
};

/* Behind a start-up's own state: what holds for all of them. */
struct su_common_state {
	uint64_t own[15];
	uint32_t near; /* no start-up on this connection: least_rtt_us */
	uint32_t reserved;
};

union su_state {
#define SU_STATE_MEMBER(name, NAME, number, source) struct su_##name##_state name;
	SU_STARTUPS(SU_STATE_MEMBER)
#undef SU_STATE_MEMBER
	struct su_common_state common;
	uint64_t words[16];
};

union su_params {
	struct su_common_params common;
#define SU_PARAMS_MEMBER(name, NAME, number, source) struct su_##name##_params name;
	SU_STARTUPS(SU_PARAMS_MEMBER)
#undef SU_PARAMS_MEMBER
	uint32_t words[SU_MAX_PARAMS];
};

/* enum su_uses, together. */
static inline uint32_t su_uses(enum su_alg alg)
{
	switch (alg) {
#define SU_USES_CASE(name, NAME, number, source)                                                   \
	case SU_ALG_##NAME:                                                                        \
		return SU_##NAME##_USES;
		SU_STARTUPS(SU_USES_CASE)
#undef SU_USES_CASE
	}
	return 0;
}

/* Whether a start-up's memory is of the local network as one group, where the peer is in it
 * (Adaptive 3: windows are pooled "across all of the hosts in the local network"). */
static inline int su_recalls_group(enum su_alg alg)
{
	return alg == SU_ALG_ADAPTIVE;
}

_Static_assert(sizeof(union su_state) == 128, "kept for each socket");
#define SU_STATE_FITS(name, NAME, number, source)                                                  \
	_Static_assert(sizeof(struct su_##name##_state) <=                                         \
			       __builtin_offsetof(struct su_common_state, near),                   \
		       "a state larger than the room that is kept for it");
SU_STARTUPS(SU_STATE_FITS)
#undef SU_STATE_FITS
_Static_assert(sizeof(union su_params) == 64, "more than SU_MAX_PARAMS parameters");

/* Whether the connection is left to the stack, because its round trip is so short that a start-up
 * has next to nothing to gain on it: 0 is a round trip that is not known. su_standard sets the
 * windows that are configured on any path, and without one it does nothing anyway. */
static inline int su_is_near(enum su_alg alg, const union su_params *prm, uint32_t rtt_us,
			     uint8_t iw_pkts)
{
	if (alg == SU_ALG_STANDARD && su_standard_decides(&prm->standard, iw_pkts))
		return 0;
	return rtt_us && rtt_us < prm->common.least_rtt_us;
}

/* The round trip is that of the handshake, or of the connection so far; where none was measured,
 * that of the path. What is near once is near for good: its start-up hears of nothing more. */
static inline int su_stays_native(enum su_alg alg, union su_state *st, const union su_params *prm,
				  const struct su_path *path, const struct su_event *ev,
				  struct su_verdict *v)
{
	uint32_t rtt_us = ev->srtt_us || !path ? ev->srtt_us : path->srtt_us;

	if (ev->kind == SU_EVENT_OPEN)
		st->common.near = 0;
	if (st->common.near || (ev->kind != SU_EVENT_OPEN && ev->kind != SU_EVENT_IDLE) ||
	    !su_is_near(alg, prm, rtt_us, ev->iw_pkts))
		return st->common.near != 0;
	*st = (union su_state){.common = {.near = 1}};
	v->why = SU_WHY_NEAR_PATH;
	return 1;
}

/* Gives @ev to the start-up @alg. @path is NULL where nothing is known of the path; only OPEN and
 * IDLE read it. @v is overwritten. */
static inline __attribute__((always_inline)) void
su_step(enum su_alg alg, union su_state *st, const union su_params *prm, const struct su_path *path,
	const struct su_event *ev, struct su_verdict *v)
{
	*v = (struct su_verdict){0};
	if (su_stays_native(alg, st, prm, path, ev, v))
		return;
	switch (alg) {
#define SU_STEP(name, NAME, number, source)                                                        \
	case SU_ALG_##NAME:                                                                        \
		if (ev->kind == SU_EVENT_OPEN)                                                     \
			su_##name##_init(&st->name, &prm->name, path, ev, v);                      \
		else if (ev->kind == SU_EVENT_IDLE)                                                \
			su_##name##_on_idle(&st->name, &prm->name, path, ev, v);                   \
		else if (ev->kind == SU_EVENT_SEND)                                                \
			su_##name##_on_send(&st->name, &prm->name, ev, v);                         \
		else if (ev->kind == SU_EVENT_ACK)                                                 \
			su_##name##_on_ack(&st->name, &prm->name, ev, v);                          \
		else if (ev->kind == SU_EVENT_LOSS)                                                \
			su_##name##_on_loss(&st->name, &prm->name, ev, v);                         \
		break;
		SU_STARTUPS(SU_STEP)
#undef SU_STEP
	}
}

/* What the connection proves of its path. Of a path on which nothing starts nothing is kept. */
static inline __attribute__((always_inline)) struct su_proof
su_proof(enum su_alg alg, const union su_state *st, const struct su_event *ev)
{
	if (st->common.near)
		return (struct su_proof){.evidence = SU_EVIDENCE_NONE};
	switch (alg) {
#define SU_PROOF_CASE(name, NAME, number, source)                                                  \
	case SU_ALG_##NAME:                                                                        \
		return su_##name##_proof(&st->name, ev);
		SU_STARTUPS(SU_PROOF_CASE)
#undef SU_PROOF_CASE
	}
	return (struct su_proof){.evidence = SU_EVIDENCE_NONE};
}

#endif
