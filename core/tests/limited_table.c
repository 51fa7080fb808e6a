/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * su_limited: RFC 3742, 2. MSS is 1000 bytes and max_ssthresh 100 packets, so that K = int(cwnd /
 * 50) and an ACK adds int(1000 / K) bytes.
 */
#include "growth.h"

/* clang-format off */
#define AN_ACK(sent, acked, cwnd)                                                                  \
	ACK, .time_ms = 100, .srtt_ms = 100, .sent_pkts = sent, .acked_pkts = acked,               \
	.cwnd_pkts = cwnd, .ssthresh_pkts = INF

static const struct row growth[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"below max_ssthresh the window doubles", AN_ACK(10, 10, 10), GROWS_TO(20)},
	{"cwnd <= max_ssthresh: a whole packet still at 100", AN_ACK(20, 11, 100), GROWS_TO(101)},
	/* K = int(101 / 50) = 2: 500 bytes. */
	{"half a packet is none yet", AN_ACK(21, 12, 101), OURS(LIMITED)},
	{"two halves are one", AN_ACK(22, 13, 101), GROWS_TO(102)},
	/* 149: K = 2; 150: K = 3, 333 bytes each, 150 x 333 = 49950. */
	{"at 149 it is half a packet", AN_ACK(23, 14, 149), OURS(NONE)},
	{"and half a packet", AN_ACK(24, 15, 149), GROWS_TO(150)},
	{"a window of 150 adds 49.95", AN_ACK(174, 165, 150), GROWS_TO(199)},
	/* K = 4: 250 + the 950 bytes that were left = 1200. */
	{"the rest is kept: 0.95 + 0.25 is 1.2", AN_ACK(175, 166, 200), GROWS_TO(201)},
	/* K = int(1000 / 50) = 20, 50 bytes each: 1000 x 50 + 200 bytes. */
	{"a window of 1000 adds 50", AN_ACK(1175, 1166, 1000), GROWS_TO(1050)},
	/* K = int(60000 / 50) = 1200 and int(1000 / 1200) = 0: the letter of the RFC. */
	{"beyond K = MSS it stands", AN_ACK(61175, 61166, 60000), OURS(NONE)},
};

/* DECISION: of an ACK of 20 packets at 90 the first 11 lead to 101, and 9 add 9 x 500 bytes. */
static const struct row across[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"90 + 11 + 4.5", AN_ACK(100, 20, 90), GROWS_TO(105)},
	{"0.5 + 0.5", AN_ACK(101, 21, 105), GROWS_FOR(LIMITED, 106)},
};

static const struct row again[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"half a packet is left over", AN_ACK(10, 1, 120), OURS(LIMITED)},
	{"a loss", LOSS, SU_LOSS_TIMEOUT, .time_ms = 400, .srtt_ms = 100, .sent_pkts = 10,
	 .acked_pkts = 1, .lost_pkts = 9, .cwnd_pkts = 120, .ssthresh_pkts = INF,
	 .want = {.why = SU_WHY_ORDINARY_LOSS}, PROVES(AT_LEAST)},
	{"slow start anew, from 1", AN_ACK(10, 2, 1), GROWS_FOR(SLOW_START, 2)},
	{"what was left over is gone, and the limit is said again", AN_ACK(10, 3, 120), OURS(LIMITED)},
	{"the application limits sending: nothing is even counted", AN_ACK(10, 4, 120), .app_limited = 1,
	 OURS(NONE)},
	{"0.5 + 0.5", AN_ACK(10, 5, 120), GROWS_TO(121)},
	{"a pause", IDLE, .time_ms = 9000, .srtt_ms = 100, .sent_pkts = 10, .acked_pkts = 10,
	 .cwnd_pkts = 121, .ssthresh_pkts = INF, .idle_ms = 8000, .rto_ms = 300, OURS(NONE)},
	{"then above the limit again", AN_ACK(20, 11, 120), OURS(LIMITED)},
};

/* "K = int(cwnd / (0.5 max_ssthresh))" with another max_ssthresh: int(40 / 10) = 4. */
static const struct row smaller[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"40 packets add 40 x 250 bytes, half of 20", AN_ACK(40, 40, 40), GROWS_FOR(LIMITED, 50)},
	{"max_window_pkts ends it", AN_ACK(41, 41, 60), LEAVES(MAX_WINDOW, 60)},
};
/* clang-format on */

#define LIMITED .alg = SU_ALG_LIMITED

static const struct table tables[] = {
	{"above_max_ssthresh_a_window_of_acks_adds_half_of_max_ssthresh", "RFC 3742, 2", LIMITED,
	 ROWS(growth)},
	{"an_ack_across_max_ssthresh_counts_in_two_parts", "DECISION", LIMITED, ROWS(across)},
	{"a_loss_or_a_pause_begins_anew", "RFC 3742, 2", LIMITED, ROWS(again)},
	{"max_ssthresh_is_a_parameter", "RFC 3742, 2", LIMITED,
	 .settings = {SET(limited, max_ssthresh_pkts, 20), SET(limited, max_window_pkts, 60)},
	 ROWS(smaller)},
};

int main(void)
{
	return run_tables(tables, sizeof(tables) / sizeof(tables[0]));
}
