/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Words for the tables of the start-ups that grow the window themselves (core/growth.h).
 */
#ifndef SU_TESTS_GROWTH_H
#define SU_TESTS_GROWTH_H

#include "table.h"

#define OPEN SU_EVENT_OPEN
#define IDLE SU_EVENT_IDLE
#define SEND SU_EVENT_SEND
#define ACK  SU_EVENT_ACK
#define LOSS SU_EVENT_LOSS

/* Slow start is the start-up's: it sets the window, if at all. */
#define OURS(reason)                                                                               \
	.want = {.phase = SU_PHASE_SLOW_START, .owns_slow_start = 1, .why = SU_WHY_##reason},      \
	PROVES(AT_LEAST)
#define GROWS_TO(pkts)                                                                             \
	.want = {.phase = SU_PHASE_SLOW_START, .owns_slow_start = 1, .cwnd_pkts = pkts},           \
	PROVES(AT_LEAST)
#define GROWS_FOR(reason, pkts)                                                                    \
	.want = {.phase = SU_PHASE_SLOW_START,                                                     \
		 .owns_slow_start = 1,                                                             \
		 .why = SU_WHY_##reason,                                                           \
		 .cwnd_pkts = pkts},                                                               \
	PROVES(AT_LEAST)
/* Slow start ends where it is. The event is of the moment before. */
#define LEAVES(reason, pkts)                                                                       \
	.want = {.phase = SU_PHASE_NATIVE, .why = SU_WHY_##reason, .ssthresh_pkts = pkts},         \
	PROVES(AT_LEAST)
/* Not slow start: as the stack would without us. */
#define THE_STACKS(reason) .want = {.why = SU_WHY_##reason}, PROVES(EXACT)

#define A_NEW_CONNECTION                                                                           \
	{                                                                                          \
		"a new connection: slow start is ours", OPEN,                                      \
			.cwnd_pkts = 10, .ssthresh_pkts = INF, OURS(SLOW_START)                    \
	}
#define TEN_LEAVE                                                                                  \
	{                                                                                          \
		"10 leave", SEND, .cwnd_pkts = 10, .ssthresh_pkts = INF, OURS(NONE)                \
	}

#endif
