/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * su_westwood: Astart (Wang et al., 2004) with the estimate of Wang et al., 2002. Rates in the
 * comments are packets a second; the round trip is 100 ms, so that 200 a second are 20 packets.
 */
#include "growth.h"

/* clang-format off */
#define AN_ACK(ms, sent, acked, cwnd, ssthresh)                                                    \
	ACK, .time_ms = ms, .srtt_ms = 100, .sent_pkts = sent, .acked_pkts = acked,                \
	.cwnd_pkts = cwnd, .ssthresh_pkts = ssthresh
#define SETS_SSTHRESH(reason, ssthresh)                                                            \
	.want = {.phase = SU_PHASE_SLOW_START, .owns_slow_start = 1, .why = SU_WHY_##reason,       \
		 .ssthresh_pkts = ssthresh}, PROVES(AT_LEAST)

#define UP_TO_32                                                                                   \
	{"a new connection has a threshold", OPEN, .cwnd_pkts = 10, .ssthresh_pkts = INF,          \
	 SETS_SSTHRESH(SLOW_START, 32)},                                                           \
	{"10 leave", SEND, .cwnd_pkts = 10, .ssthresh_pkts = 32, OURS(NONE)},                      \
	{"both rates begin here", AN_ACK(100, 10, 1, 10, 32), GROWS_TO(11)},                       \
	/* Th is 0: T = 100 ms. */                                                                 \
	{"50 ms are too short", AN_ACK(150, 12, 10, 11, 32), GROWS_TO(20)},                        \
	/* Th = 20 / 0.1 = 200, which is the window of 20: T = 2 ms. ERE = 200, 20 packets. */     \
	{"20 in 100 ms: 20 are not more than the window", AN_ACK(200, 30, 21, 20, 32), GROWS_TO(31)}, \
	/* T = 100 (31 - 20) / 31 = 35 ms. */                                                      \
	{"5 ms are too short", AN_ACK(205, 52, 31, 31, 32), GROWS_TO(32)},                         \
	/* Th = 0.6 x 200 + 0.4 x 320 = 248; T = 100 (32 - 24) / 32 = 25 ms; the sample is 320, dt = 100,
	 * 1 - alpha = 200 / 300: ERE = 200 + 80 = 280. */                                         \
	{"at the threshold the stack goes on; 28 are less than 32", AN_ACK(300, 63, 53, 32, 32),   \
	 THE_STACKS(SSTHRESH)}

static const struct row raised[] = {
	UP_TO_32,
	/* The sample is 20 / 0.025 = 800, dt = 25, 1 - alpha = 50 / 225: ERE = 280 + 115.6 = 395.6. */
	{"20 in 25 ms: 39 > 32, slow start goes on", AN_ACK(325, 90, 73, 32, 32),
	 .want = {.phase = SU_PHASE_SLOW_START, .owns_slow_start = 1, .why = SU_WHY_RATE_ESTIMATE,
		  .cwnd_pkts = 39, .ssthresh_pkts = 39}, PROVES(EXACT)},
	{"up to 39", AN_ACK(326, 112, 74, 39, 39), THE_STACKS(SSTHRESH)},
};

static const struct row lost[] = {
	UP_TO_32,
	{"a packet is lost", LOSS, SU_LOSS_FAST, .time_ms = 310, .srtt_ms = 100, .sent_pkts = 70,
	 .acked_pkts = 53, .sacked_pkts = 3, .lost_pkts = 1, .cwnd_pkts = 32, .ssthresh_pkts = 32,
	 .want = {.why = SU_WHY_ORDINARY_LOSS}, PROVES(EXACT)},
	{"repaired", AN_ACK(420, 90, 73, 22, 22), THE_STACKS(NONE)},
	{"whatever the rate is, the threshold stands", AN_ACK(520, 290, 273, 22, 22), THE_STACKS(NONE)},
};

/* "or re-starts after a coarse timeout": 100 in 100 ms are 1000 a second, 100 packets. */
static const struct row timeout[] = {
	UP_TO_32,
	{"the timer", LOSS, SU_LOSS_TIMEOUT, .time_ms = 800, .srtt_ms = 100, .sent_pkts = 63,
	 .acked_pkts = 53, .lost_pkts = 10, .cwnd_pkts = 32, .ssthresh_pkts = 32,
	 .want = {.why = SU_WHY_ORDINARY_LOSS}, PROVES(EXACT)},
	{"repaired; both rates begin here", AN_ACK(900, 63, 63, 22, 22), THE_STACKS(NONE)},
	{"100 > 22", AN_ACK(1000, 185, 163, 22, 22),
	 .want = {.phase = SU_PHASE_SLOW_START, .owns_slow_start = 1, .why = SU_WHY_RATE_ESTIMATE,
		  .cwnd_pkts = 100, .ssthresh_pkts = 100}, PROVES(EXACT)},
};

/* Ha and Rhee, 5.2: "sets ssthresh to ERE if ERE is larger than cwnd". */
static const struct row infinite[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"both rates begin here", AN_ACK(100, 10, 1, 10, INF), GROWS_TO(11)},
	{"20 are not more than 20", AN_ACK(200, 30, 21, 20, INF), GROWS_TO(40)},
	/* T = 2 ms where Th RTT = 20 and cwnd = 20; the sample is 100 / 0.02 = 5000, dt = 20,
	 * 1 - alpha = 40 / 220: ERE = 200 + 872.7 = 1072.7. */
	{"107 are", AN_ACK(220, 130, 121, 20, INF),
	 .want = {.phase = SU_PHASE_SLOW_START, .owns_slow_start = 1, .why = SU_WHY_RATE_ESTIMATE,
		  .cwnd_pkts = 107, .ssthresh_pkts = 107}, PROVES(AT_LEAST)},
};

/* The threshold is no more than max_window_pkts, at which slow start ends. */
static const struct row capped[] = {
	{"a new connection", OPEN, .cwnd_pkts = 10, .ssthresh_pkts = INF, SETS_SSTHRESH(SLOW_START, 20)},
	{"10 leave", SEND, .cwnd_pkts = 10, .ssthresh_pkts = 20, OURS(NONE)},
	{"10 are through", AN_ACK(100, 10, 10, 10, 20), GROWS_TO(20)},
	{"at the threshold", AN_ACK(200, 30, 11, 20, 20), THE_STACKS(SSTHRESH)},
	{"1000 packets in 100 ms: no more", AN_ACK(300, 1020, 1011, 20, 20), THE_STACKS(NONE)},
};
/* clang-format on */

#define WESTWOOD .alg = SU_ALG_WESTWOOD

static const struct table tables[] = {
	{"the_estimate_raises_the_threshold_and_slow_start_goes_on", "Astart", WESTWOOD,
	 ROWS(raised)},
	{"a_loss_ends_the_adaptive_start", "Ha and Rhee, 3.4", WESTWOOD, ROWS(lost)},
	{"a_timeout_begins_it_anew", "Astart", WESTWOOD, ROWS(timeout)},
	{"an_infinite_threshold_becomes_the_estimate", "Ha and Rhee, 5.2", WESTWOOD,
	 .settings = {SET(westwood, first_ssthresh_pkts, 0)}, ROWS(infinite)},
	{"no_threshold_is_above_max_window_pkts", "growth.h", WESTWOOD,
	 .settings = {SET(westwood, max_window_pkts, 20)}, ROWS(capped)},
};

int main(void)
{
	return run_tables(tables, sizeof(tables) / sizeof(tables[0]));
}
