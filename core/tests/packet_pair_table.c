/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * su_packet_pair: Hoe, 1996. The line through n points has the slope
 * (n Sxy - Sx Sy) / (n Sxx - Sx^2); times the round-trip time it is the threshold.
 */
#include "growth.h"

/* clang-format off */
#define AN_ACK(ms, sent, acked, cwnd)                                                              \
	ACK, .time_ms = ms, .srtt_ms = 100, .sent_pkts = sent, .acked_pkts = acked,                \
	.cwnd_pkts = cwnd, .ssthresh_pkts = INF
/* The threshold is set, and slow start goes on to it. */
#define GROWS_AND_SETS(pkts, ssthresh)                                                             \
	.want = {.phase = SU_PHASE_SLOW_START, .owns_slow_start = 1, .why = SU_WHY_PACKET_PAIR,    \
		 .cwnd_pkts = pkts, .ssthresh_pkts = ssthresh}, PROVES(AT_LEAST)

/* (0, 0), (2, 2), (4, 4), (6, 6): one packet each ms, 100 in 100 ms. */
static const struct row even[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"the first ACK is where the line begins", AN_ACK(100, 10, 1, 10), GROWS_TO(11)},
	{"2 packets, 2 ms", AN_ACK(102, 12, 3, 11), GROWS_TO(13)},
	{"three ACKs, but 4 < span_pkts = 6", AN_ACK(104, 16, 5, 13), GROWS_TO(15)},
	{"6 packets in 6 ms", AN_ACK(106, 20, 7, 15), GROWS_AND_SETS(17, 100)},
	{"one estimate is made", ACK, .time_ms = 107, .srtt_ms = 100, .sent_pkts = 24, .acked_pkts = 10,
	 .cwnd_pkts = 17, .ssthresh_pkts = 100, GROWS_TO(20)},
	{"slow start ends there", ACK, .time_ms = 300, .srtt_ms = 100, .sent_pkts = 124,
	 .acked_pkts = 100, .cwnd_pkts = 100, .ssthresh_pkts = 100, THE_STACKS(SSTHRESH)},
};

/* (0, 0), (2, 2), (5, 4), (6, 6): n = 4, Sx = 13, Sy = 12, Sxx = 65, Sxy = 60;
 * (240 - 156) / (260 - 169) = 84 / 91 a ms, x 100 ms = 92.3. */
static const struct row uneven[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"(0, 0)", AN_ACK(100, 10, 1, 10), GROWS_TO(11)},
	{"(2, 2)", AN_ACK(102, 12, 3, 11), GROWS_TO(13)},
	{"(5, 4)", AN_ACK(105, 16, 5, 13), GROWS_TO(15)},
	{"(6, 6)", AN_ACK(106, 20, 7, 15), GROWS_AND_SETS(17, 92)},
};

/* Three closely spaced ACKs: (0, 0), (2, 2), (4, 4). */
static const struct row letter[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"(0, 0)", AN_ACK(100, 10, 1, 10), GROWS_TO(11)},
	{"(2, 2)", AN_ACK(102, 12, 3, 11), GROWS_TO(13)},
	{"(4, 4)", AN_ACK(104, 16, 5, 13), GROWS_AND_SETS(15, 100)},
};

/* A gap of 26 ms is more than 100 / 4; the line begins anew. */
static const struct row gap[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"(0, 0)", AN_ACK(100, 10, 1, 10), GROWS_TO(11)},
	{"(2, 2)", AN_ACK(102, 12, 3, 11), GROWS_TO(13)},
	{"(28, 4) is not closely spaced: (0, 0)", AN_ACK(128, 16, 5, 13), GROWS_TO(15)},
	{"(1, 2)", AN_ACK(129, 20, 7, 15), GROWS_TO(17)},
	{"(2, 4): 2 packets a ms", AN_ACK(130, 24, 9, 17), GROWS_AND_SETS(19, 200)},
};

/* A round trip of 10 ms: 10 packets, and the window is 15 already. */
static const struct row small[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"(0, 0)", AN_ACK(10, 10, 1, 10), .rtt_us = 10000, GROWS_TO(11)},
	{"(2, 2)", AN_ACK(12, 12, 3, 11), .rtt_us = 10000, GROWS_TO(13)},
	{"(4, 4)", AN_ACK(14, 16, 5, 13), .rtt_us = 10000, GROWS_TO(15)},
	{"(6, 6): 10 < 15, slow start has come too far", AN_ACK(16, 20, 7, 15), .rtt_us = 10000,
	 LEAVES(PACKET_PAIR, 15)},
};

static const struct row same_time[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"no time passes", AN_ACK(100, 10, 1, 10), GROWS_TO(11)},
	{"no time", AN_ACK(100, 12, 3, 11), GROWS_TO(13)},
	{"no time, no rate", AN_ACK(100, 16, 8, 13), GROWS_TO(18)},
	/* (0, 0), (0, 2), (0, 7), (7, 9): n = 4, Sx = 7, Sy = 18, Sxx = 49, Sxy = 63;
	 * (252 - 126) / (196 - 49) = 126 / 147 a ms. */
	{"then it has one: 85.7", AN_ACK(107, 20, 10, 18), GROWS_AND_SETS(20, 85)},
};

static const struct row after_loss[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"(0, 0)", AN_ACK(100, 10, 1, 10), GROWS_TO(11)},
	{"a loss ends the time for estimates", LOSS, SU_LOSS_TIMEOUT, .time_ms = 400, .srtt_ms = 100,
	 .sent_pkts = 12, .acked_pkts = 1, .lost_pkts = 11, .cwnd_pkts = 11, .ssthresh_pkts = INF,
	 .want = {.why = SU_WHY_ORDINARY_LOSS}, PROVES(AT_LEAST)},
	{"(0, 0)", AN_ACK(500, 12, 2, 1), GROWS_FOR(SLOW_START, 2)},
	{"(3, 3)", AN_ACK(503, 12, 5, 2), GROWS_TO(5)},
	{"(6, 6)", AN_ACK(506, 12, 8, 5), GROWS_TO(8)},
};
/* clang-format on */

#define PACKET_PAIR .alg = SU_ALG_PACKET_PAIR
#define LETTER	    .settings = {SET(packet_pair, span_pkts, 0)}

static const struct table tables[] = {
	{"evenly_spaced_acks_give_the_bandwidth_delay_product", "Hoe, 1996", PACKET_PAIR,
	 ROWS(even)},
	{"the_line_is_the_one_of_least_squares", "Hoe, 1996", PACKET_PAIR, ROWS(uneven)},
	{"to_the_letter_three_acks_are_enough", "Hoe, 1996", PACKET_PAIR, LETTER, ROWS(letter)},
	{"an_ack_that_is_not_closely_spaced_begins_anew", "Hoe, 1996", PACKET_PAIR, LETTER,
	 ROWS(gap)},
	{"a_threshold_below_the_window_ends_slow_start", "DECISION", PACKET_PAIR, ROWS(small)},
	{"acks_at_one_time_have_no_rate", "packet_pair.h", PACKET_PAIR, ROWS(same_time)},
	{"after_a_loss_no_estimate_is_made", "DECISION", PACKET_PAIR, LETTER, ROWS(after_loss)},
};

int main(void)
{
	return run_tables(tables, sizeof(tables) / sizeof(tables[0]));
}
