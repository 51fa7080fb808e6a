/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * su_vegas: Brakmo and Peterson, 1995, the modified slow-start mechanism. What stands in the queue
 * is sent (RTT - BaseRTT) / RTT packets.
 */
#include "growth.h"

/* clang-format off */
#define AN_ACK(ms, sent, acked, cwnd, rtt)                                                         \
	ACK, .time_ms = ms, .srtt_ms = 100, .sent_pkts = sent, .acked_pkts = acked,                \
	.cwnd_pkts = cwnd, .ssthresh_pkts = INF, .rtt_us = rtt
/* Rounds go by the first segment that was sent in them: 1, 11, 31, 51, 91. */
#define FOUR_ROUNDS                                                                                \
	A_NEW_CONNECTION, TEN_LEAVE,                                                               \
	{"the first ACK: a round of growth", AN_ACK(100, 10, 1, 10, 100000), GROWS_TO(11)},        \
	{"10 are through", AN_ACK(106, 12, 10, 11, 106000), GROWS_TO(20)},                         \
	{"segment 11 is through: a round of rest", AN_ACK(200, 30, 11, 20, 100000), OURS(NONE)},   \
	{"the window stands", AN_ACK(212, 31, 30, 20, 112000), OURS(NONE)},                        \
	{"segment 31, 20 sent, 100 - 100: growth", AN_ACK(300, 50, 31, 20, 100000), GROWS_TO(21)}, \
	{"50 are through", AN_ACK(320, 52, 50, 21, 120000), GROWS_TO(40)},                         \
	{"segment 51: rest", AN_ACK(400, 90, 51, 40, 100000), OURS(NONE)}

static const struct row leaves[] = {
	FOUR_ROUNDS,
	/* 40 x 2.564 / 102.564 = 0.99996. */
	{"segment 91, 40 sent, less than 1 is in the queue: growth", AN_ACK(503, 130, 91, 40, 102564),
	 GROWS_TO(80)},
	{"segment 131: rest", AN_ACK(600, 210, 131, 80, 100000), OURS(NONE)},
	/* 80 x 2 / 102 = 1.57. */
	{"segment 211, 80 sent: 1.57 > gamma = 1", AN_ACK(702, 290, 211, 80, 102000),
	 LEAVES(RATE_BELOW_EXPECTED, 80)},
	{"congestion avoidance is the stack's", ACK, .time_ms = 703, .srtt_ms = 100, .sent_pkts = 291,
	 .acked_pkts = 212, .cwnd_pkts = 80, .ssthresh_pkts = 80, THE_STACKS(NONE)},
};

static const struct row exactly[] = {
	FOUR_ROUNDS,
	/* 40 x 2.565 / 102.565 = 1.0003. */
	{"segment 91, 40 sent: more than 1", AN_ACK(503, 130, 91, 40, 102565),
	 LEAVES(RATE_BELOW_EXPECTED, 40)},
};

static const struct row gamma_three[] = {
	FOUR_ROUNDS,
	/* 40 x 8.1 / 108.1 = 2.997. */
	{"2.997 is not more than 3", AN_ACK(503, 130, 91, 40, 108100), GROWS_TO(80)},
};

/* DECISION: of a window of 40 the application used 4, and 4 x 20 / 120 = 0.67. */
static const struct row unused[] = {
	FOUR_ROUNDS,
	{"4 sent in the round", AN_ACK(503, 94, 91, 40, 120000), .app_limited = 1, OURS(NONE)},
};

static const struct row no_sample[] = {
	FOUR_ROUNDS,
	{"segment 91 has no round-trip time: no comparison", AN_ACK(503, 130, 91, 40, 0), .no_sample = 1,
	 GROWS_TO(80)},
};

/* After a pause the first flight is no round of rest: nothing was compared with it before. */
static const struct row resumed[] = {
	FOUR_ROUNDS,
	{"a pause", IDLE, .time_ms = 9000, .srtt_ms = 100, .sent_pkts = 91, .acked_pkts = 91,
	 .cwnd_pkts = 40, .ssthresh_pkts = INF, .idle_ms = 8000, .rto_ms = 300, OURS(NONE)},
	{"10 leave", SEND, .time_ms = 9000, .srtt_ms = 100, .sent_pkts = 91, .acked_pkts = 91,
	 .cwnd_pkts = 10, .ssthresh_pkts = INF, OURS(NONE)},
	{"their first ACK is late, and they grow", AN_ACK(9200, 101, 92, 10, 200000), GROWS_TO(11)},
	{"10 are through", AN_ACK(9210, 103, 101, 11, 200000), GROWS_TO(20)},
	{"segment 102: rest", AN_ACK(9400, 121, 102, 20, 200000), OURS(NONE)},
	{"segment 122, 20 sent, 20 x 100 / 200 = 10 with the BaseRTT of before",
	 AN_ACK(9600, 141, 122, 20, 200000), LEAVES(RATE_BELOW_EXPECTED, 20)},
};

static const struct row capped[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"up to max_window_pkts", AN_ACK(100, 10, 10, 10, 100000), GROWS_TO(15)},
	{"where slow start ends", AN_ACK(101, 25, 11, 15, 100000), LEAVES(MAX_WINDOW, 15)},
};
/* clang-format on */

#define VEGAS .alg = SU_ALG_VEGAS

static const struct table tables[] = {
	{"the_window_doubles_every_other_round_trip_until_gamma", "TCP Vegas, modified slow start",
	 VEGAS, ROWS(leaves)},
	{"the_queue_is_compared_to_the_microsecond", "TCP Vegas, gamma", VEGAS, ROWS(exactly)},
	{"gamma_is_a_parameter", "TCP Vegas, gamma", VEGAS, .settings = {SET(vegas, gamma_pkts, 3)},
	 ROWS(gamma_three)},
	{"a_window_that_is_not_used_does_not_seem_delayed", "DECISION", VEGAS, ROWS(unused)},
	{"without_a_round_trip_time_nothing_is_compared", "TCP Vegas", VEGAS, ROWS(no_sample)},
	{"a_pause_begins_a_round_and_keeps_base_rtt", "DECISION", VEGAS, ROWS(resumed)},
	{"max_window_pkts_ends_slow_start", "growth.h", VEGAS,
	 .settings = {SET(vegas, max_window_pkts, 15)}, ROWS(capped)},
};

int main(void)
{
	return run_tables(tables, sizeof(tables) / sizeof(tables[0]));
}
