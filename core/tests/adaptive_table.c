/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * su_adaptive: Bhumralkar, Lung and Varaiya, "Network Adaptive TCP Slow Start", section 3.
 * Unless a table says otherwise transfers of this group end with W = 32 packets of 1000 bytes and
 * R = 400 ms. log2 32 = 5, so ss = 5 R = 2 s and maxpossible = 32 * 5 = 160 packets; a constant
 * rate of W is 32 * 1000 / 0.4 = 80000 bytes/s.
 */
#include "table.h"

#include "../adaptive.h"

#define OPEN SU_EVENT_OPEN
#define IDLE SU_EVENT_IDLE
#define SEND SU_EVENT_SEND
#define ACK  SU_EVENT_ACK
#define LOSS SU_EVENT_LOSS

#define FAST SU_LOSS_FAST

#define NATIVE(reason) .want = {.why = SU_WHY_##reason}
#define SETS(reason, pkts, threshold)                                                              \
	.want = {.why = SU_WHY_##reason, .cwnd_pkts = pkts, .ssthresh_pkts = threshold}
#define ARMED(reason) .want = {.phase = SU_PHASE_ARMED, .why = SU_WHY_##reason}
#define BEGINS(reason, pkts, threshold, rate)                                                      \
	.want = {.phase = SU_PHASE_OPEN_LOOP,                                                      \
		 .why = SU_WHY_##reason,                                                           \
		 .cwnd_pkts = pkts,                                                                \
		 .ssthresh_pkts = threshold,                                                       \
		 .pacing_bytes_per_s = rate}
#define KEEPS(reason, pkts, rate)                                                                  \
	.want = {.phase = SU_PHASE_CLOCKED,                                                        \
		 .why = SU_WHY_##reason,                                                           \
		 .cwnd_pkts = pkts,                                                                \
		 .pacing_bytes_per_s = rate}
#define FORGETS .want.forget_path = 1

#define NEW_CONNECTION OPEN, .srtt_ms = 380, .cwnd_pkts = 10, .ssthresh_pkts = INF
#define DATA_LEAVES(unsent)                                                                        \
	SEND, .srtt_ms = 380, .cwnd_pkts = 10, .ssthresh_pkts = INF, .unpaced_pkts = 10,           \
	      .unsent_pkts = unsent
#define AN_ACK(at_ms, sent, acked, unsent)                                                         \
	ACK, .time_ms = at_ms, .srtt_ms = 400, .sent_pkts = sent, .acked_pkts = acked,             \
	     .cwnd_pkts = 32, .ssthresh_pkts = 32, .unsent_pkts = unsent
/* clang-format off */
#define ARMED_BY_THE_GROUP                                                                         \
	{"the group is known; the size is not", NEW_CONNECTION, ARMED(PATH_KNOWN), PROVES(AT_LEAST)}

/* "we just perform the transfer at a constant rate equivalent to the current averaged value of the
 * congestion window". */
static const struct row method_1[] = {
	ARMED_BY_THE_GROUP,
	{"100 < 160 packets: 32 each round trip", DATA_LEAVES(100),
	 BEGINS(CONSTANT_RATE, 32, 32, 80000), PROVES(NONE)},
	{"the first ACK: still 100", AN_ACK(400, 32, 1, 68), KEEPS(ACK_CLOCK, 32, 80000), PROVES(NONE)},
	{"the window does not grow, whatever the stack makes of it", ACK, .time_ms = 500,
	 .srtt_ms = 400, .sent_pkts = 42, .acked_pkts = 11, .cwnd_pkts = 34, .ssthresh_pkts = 32,
	 .unsent_pkts = 58, KEEPS(NONE, 32, 80000), PROVES(NONE)},
	/* The first round trip ended with the ACK of 32: min(33 - 1, 31 after the first ACK). */
	{"W has got through whole: from here on it proves something", AN_ACK(800, 63, 32, 37),
	 KEEPS(NONE, 32, 80000), PROVES_PKTS(EXACT, 31)},
	{"all is sent and acknowledged: W stands, in congestion avoidance", AN_ACK(1700, 100, 100, 0),
	 NATIVE(VALIDATED), PROVES(EXACT)},
	{"more data without a pause is the stack's affair", SEND, .time_ms = 1800, .srtt_ms = 400,
	 .sent_pkts = 100, .acked_pkts = 100, .cwnd_pkts = 32, .ssthresh_pkts = 32, .unsent_pkts = 20,
	 NATIVE(NONE), PROVES(EXACT)},
	{"a pause: the next file of the paper's simulations", IDLE, .time_ms = 12000, .srtt_ms = 400,
	 .sent_pkts = 100, .acked_pkts = 100, .cwnd_pkts = 33, .ssthresh_pkts = 32, .idle_ms = 10000,
	 .rto_ms = 600, ARMED(PATH_KNOWN), PROVES(EXACT)},
	{"its size is 20", SEND, .time_ms = 12000, .srtt_ms = 400, .sent_pkts = 100,
	 .acked_pkts = 100, .cwnd_pkts = 10, .ssthresh_pkts = 32, .unsent_pkts = 20,
	 BEGINS(CONSTANT_RATE, 32, 32, 80000), PROVES(NONE)},
};

static const struct row boundary[] = {
	ARMED_BY_THE_GROUP,
	{"159 is \"smaller than maxpossible\"", DATA_LEAVES(159), BEGINS(CONSTANT_RATE, 32, 32, 80000)},
	ARMED_BY_THE_GROUP,
	{"160 is not: normal TCP", DATA_LEAVES(160), NATIVE(TRANSFER_LARGE), PROVES(AT_LEAST)},
	{"and stays so", AN_ACK(400, 10, 1, 150), NATIVE(NONE), PROVES(EXACT)},
};

/* "we initialize the starting window of our new transfer to half of the congestion window value". */
static const struct row method_2[] = {
	ARMED_BY_THE_GROUP,
	/* (16 - 10) * 1000 / 0.4. */
	{"100 < 160: begin with 16; the threshold is the stack's", DATA_LEAVES(100),
	 BEGINS(HALF_WINDOW, 16, 0, 15000), PROVES(NONE)},
	{"before the first ACK", AN_ACK(399, 16, 0, 84),
	 .want = {.phase = SU_PHASE_OPEN_LOOP, .pacing_bytes_per_s = 15000}, PROVES(NONE)},
	{"the first ACK: the stack's slow start goes on", AN_ACK(400, 16, 1, 84), NATIVE(ACK_CLOCK),
	 PROVES(NONE)},
	{"16 have got through", AN_ACK(800, 40, 16, 60), NATIVE(NONE), PROVES(EXACT)},
};

/* DECISION: least_window_pkts = 10, what the stack begins with. */
static const struct row method_2_small[] = {
	ARMED_BY_THE_GROUP,
	/* W = 4: maxpossible 8. 4 / 2 = 2. */
	{"7 < 8: half of 4 is less than what the stack begins with", DATA_LEAVES(7),
	 BEGINS(HALF_WINDOW, 10, 0, 0)},
};

static const struct row method_2_letter[] = {
	ARMED_BY_THE_GROUP,
	{"half of 4, \"at least 1\"", DATA_LEAVES(7), BEGINS(HALF_WINDOW, 2, 0, 0)},
};

static const struct row method_2_after_idle[] = {
	{"a pause", IDLE, .time_ms = 9000, .srtt_ms = 400, .sent_pkts = 90, .acked_pkts = 90,
	 .cwnd_pkts = 80, .ssthresh_pkts = INF, .idle_ms = 700, .rto_ms = 600, ARMED(PATH_KNOWN),
	 PROVES(AT_LEAST)},
	{"the stack's restart window of 40 is more than 16", SEND, .time_ms = 9000, .srtt_ms = 400,
	 .sent_pkts = 90, .acked_pkts = 90, .cwnd_pkts = 40, .ssthresh_pkts = INF, .unsent_pkts = 50,
	 NATIVE(PATH_SMALL), PROVES(AT_LEAST)},
};

/* The size: an application's word, else what is queued, and looked at again with the first ACK. */
static const struct row hint[] = {
	ARMED_BY_THE_GROUP,
	{"4 packets are queued, 200 are announced", DATA_LEAVES(4), .hint_pkts = 200,
	 NATIVE(TRANSFER_LARGE), PROVES(AT_LEAST)},
	ARMED_BY_THE_GROUP,
	{"4 are queued, 150 are announced", DATA_LEAVES(4), .hint_pkts = 150,
	 BEGINS(CONSTANT_RATE, 32, 32, 80000)},
	{"more is queued than was announced: that is what counts", AN_ACK(400, 32, 1, 128),
	 SETS(TRANSFER_GREW, 11, INF)},
};

static const struct row grew[] = {
	ARMED_BY_THE_GROUP,
	{"65 are queued", DATA_LEAVES(65), BEGINS(CONSTANT_RATE, 32, 32, 80000)},
	/* 32 + 128 = 160; normal TCP would have 10 + 2 by now, and no threshold. */
	{"at the first ACK 128 more: normal TCP", AN_ACK(400, 32, 2, 128), SETS(TRANSFER_GREW, 12, INF)},
	ARMED_BY_THE_GROUP,
	{"65 are queued", DATA_LEAVES(65), BEGINS(CONSTANT_RATE, 32, 32, 80000)},
	{"at the first ACK 127 more: 159", AN_ACK(400, 32, 2, 127), KEEPS(ACK_CLOCK, 32, 80000)},
	{"later it grows after all: congestion avoidance from W", AN_ACK(800, 64, 33, 96),
	 NATIVE(TRANSFER_GREW), PROVES(EXACT)},
};

static const struct row grew_in_the_first_window[] = {
	ARMED_BY_THE_GROUP,
	{"65 are queued", DATA_LEAVES(65), BEGINS(CONSTANT_RATE, 32, 32, 80000)},
	{"at the first ACK 100", AN_ACK(400, 32, 2, 68), KEEPS(ACK_CLOCK, 32, 80000)},
	/* 10 + 5. */
	{"160 before W got through whole: normal TCP", AN_ACK(410, 37, 5, 123), SETS(TRANSFER_GREW, 15, INF)},
};

static const struct row half_grew[] = {
	ARMED_BY_THE_GROUP,
	{"begin with 16", DATA_LEAVES(65), BEGINS(HALF_WINDOW, 16, 0, 15000)},
	{"at the first ACK 160: normal TCP, 10 + 1", AN_ACK(400, 16, 1, 144), SETS(TRANSFER_GREW, 11, INF)},
};

/* DECISION: a handshake of the application does not spend the start. */
static const struct row small_response[] = {
	ARMED_BY_THE_GROUP,
	{"3 packets of a handshake", DATA_LEAVES(3), BEGINS(CONSTANT_RATE, 32, 32, 80000)},
	{"all of it is acknowledged", AN_ACK(400, 3, 3, 0), ARMED(APP_LIMITED)},
	{"then 500 packets: large after all", SEND, .time_ms = 500, .srtt_ms = 400, .sent_pkts = 3,
	 .acked_pkts = 3, .cwnd_pkts = 32, .ssthresh_pkts = 32, .unsent_pkts = 500,
	 NATIVE(TRANSFER_LARGE), PROVES(NONE)},
};

static const struct row unknown[] = {
	{"nothing is known", NEW_CONNECTION, NATIVE(PATH_UNKNOWN), PROVES(AT_LEAST)},
	{"the stack's own start", DATA_LEAVES(5), NATIVE(NONE), PROVES(AT_LEAST)},
};
static const struct row refused[] = {
	{"the memory abstains, and says why", NEW_CONNECTION, NATIVE(PATH_SPREAD), PROVES(AT_LEAST)},
};
static const struct row of_1[] = {
	{"log2 1 = 0: no transfer is smaller than maxpossible", NEW_CONNECTION, NATIVE(PATH_SMALL),
	 PROVES(AT_LEAST)},
};
static const struct row lost_handshake[] = {
	{"the SYN was lost: 1 stays 1", OPEN, .srtt_ms = 380, .cwnd_pkts = 1, .ssthresh_pkts = INF,
	 .handshake_lost = 1, NATIVE(HANDSHAKE_LOSS), PROVES(AT_LEAST) },
};

static const struct row window_of_1[] = {
	{"the stack begins with 1, as a route says, or as TCP did when the paper was written", OPEN,
	 .srtt_ms = 380, .cwnd_pkts = 1, .ssthresh_pkts = INF, ARMED(PATH_KNOWN), PROVES(AT_LEAST)},
	{"100 < 160 packets: 32 each round trip", SEND, .srtt_ms = 380, .cwnd_pkts = 1,
	 .ssthresh_pkts = INF, .unpaced_pkts = 10, .unsent_pkts = 100,
	 BEGINS(CONSTANT_RATE, 32, 32, 80000), PROVES(NONE)},
};

/* "our transfer follows the semantics of regular TCP when it experiences packet loss". */
static const struct row loss[] = {
	ARMED_BY_THE_GROUP,
	{"the constant rate", DATA_LEAVES(100), BEGINS(CONSTANT_RATE, 32, 32, 80000)},
	{"the first ACK", AN_ACK(400, 32, 1, 68), KEEPS(ACK_CLOCK, 32, 80000)},
	{"a loss before W got through once: the usual penalty, and W is forgotten", LOSS, FAST,
	 .time_ms = 500, .srtt_ms = 400, .sent_pkts = 40, .acked_pkts = 9, .cwnd_pkts = 32,
	 .ssthresh_pkts = 32, NATIVE(ORDINARY_LOSS), FORGETS, PROVES(EXACT)},
	ARMED_BY_THE_GROUP,
	{"the constant rate", DATA_LEAVES(100), BEGINS(CONSTANT_RATE, 32, 32, 80000)},
	{"the first ACK", AN_ACK(400, 32, 1, 68), KEEPS(ACK_CLOCK, 32, 80000)},
	{"W gets through", AN_ACK(800, 63, 32, 37), KEEPS(NONE, 32, 80000), PROVES(EXACT)},
	{"a loss after that is a loss", LOSS, FAST, .time_ms = 900, .srtt_ms = 400, .sent_pkts = 70,
	 .acked_pkts = 40, .cwnd_pkts = 32, .ssthresh_pkts = 32, NATIVE(ORDINARY_LOSS), PROVES(EXACT)},
};

static const struct row unpaced[] = {
	ARMED_BY_THE_GROUP,
	{"as a burst", DATA_LEAVES(100), BEGINS(CONSTANT_RATE, 32, 32, 0)},
	{"and by the ACK clock", AN_ACK(400, 32, 1, 68), KEEPS(ACK_CLOCK, 32, 0)},
};
/* clang-format on */

#define GROUP(w, how)                                                                              \
	{                                                                                          \
		.cwnd_pkts = w, .ending_mpkts = (w)*1000u, .srtt_us = 400000, .ended = how         \
	}
static const struct su_path avoidance = GROUP(32, SU_ENDED_AVOIDANCE);
static const struct su_path slow_start = GROUP(32, SU_ENDED_SLOW_START);
static const struct su_path in_repair = GROUP(32, SU_ENDED_RECOVERY);
static const struct su_path of_4 = GROUP(4, SU_ENDED_SLOW_START);
static const struct su_path one = GROUP(1, SU_ENDED_AVOIDANCE);
static const struct su_path larger = GROUP(64, SU_ENDED_AVOIDANCE);
static const struct su_path abstains = {.refused = SU_WHY_PATH_SPREAD};

#define ADAPTIVE    .alg = SU_ALG_ADAPTIVE
#define TO(path_is) .path = &(path_is)
#define WITH(p, to) .settings = {SET(adaptive, p, to)}

static const struct table tables[] = {
	{"a_short_transfer_after_congestion_avoidance_has_a_constant_rate", "3, first method",
	 ADAPTIVE, TO(avoidance), ROWS(method_1)},
	{"maxpossible_is_w_log2_w_and_a_transfer_of_so_much_is_large", "3", ADAPTIVE, TO(avoidance),
	 ROWS(boundary)},
	{"w_is_never_taken_for_more_than_max_window", "DECISION", ADAPTIVE, TO(larger),
	 WITH(max_window_pkts, 32), ROWS(boundary)},
	{"a_short_transfer_after_slow_start_begins_with_half_of_w", "3, second method", ADAPTIVE,
	 TO(slow_start), ROWS(method_2)},
	{"a_transfer_that_ended_under_repair_had_not_found_its_window", "3, DECISION", ADAPTIVE,
	 TO(in_repair), ROWS(method_2)},
	{"half_of_a_small_w_is_not_less_than_the_standard", "3, DECISION", ADAPTIVE, TO(of_4),
	 ROWS(method_2_small)},
	{"by_the_letter_it_is", "3, second method", ADAPTIVE, TO(of_4), WITH(least_window_pkts, 1),
	 ROWS(method_2_letter)},
	{"half_of_w_is_not_less_than_the_restart_window_of_the_stack", "3, DECISION", ADAPTIVE,
	 TO(slow_start), ROWS(method_2_after_idle)},
	{"the_size_is_what_the_application_says_or_what_is_queued", "3", ADAPTIVE, TO(avoidance),
	 ROWS(hint)},
	{"a_transfer_that_turns_out_to_be_large_goes_on_as_usual", "3, third method", ADAPTIVE,
	 TO(avoidance), ROWS(grew)},
	{"also_when_it_grows_before_w_got_through_whole", "3, third method", ADAPTIVE,
	 TO(avoidance), ROWS(grew_in_the_first_window)},
	{"so_does_one_that_began_with_half_of_w", "3, third method", ADAPTIVE, TO(slow_start),
	 ROWS(half_grew)},
	{"a_small_response_does_not_spend_the_start", "3, DECISION", ADAPTIVE, TO(avoidance),
	 ROWS(small_response)},
	{"without_a_memory_it_is_normal_tcp", "3", ADAPTIVE, ROWS(unknown)},
	{"where_the_memory_abstains_it_is_normal_tcp", "path_memory.h", ADAPTIVE, TO(abstains),
	 ROWS(refused)},
	{"a_w_of_1_has_nothing_to_give", "3", ADAPTIVE, TO(one), ROWS(of_1)},
	{"a_lost_handshake_starts_at_one_segment", "RFC 5681 3.1", ADAPTIVE, TO(avoidance),
	 ROWS(lost_handshake)},
	{"an_initial_window_of_1_is_no_lost_handshake", "3", ADAPTIVE, TO(avoidance),
	 ROWS(window_of_1)},
	{"a_loss_has_the_usual_penalty", "3", ADAPTIVE, TO(avoidance), ROWS(loss)},
	{"without_pacing_each_window_is_a_burst", "3", ADAPTIVE, TO(avoidance), WITH(pacing, 0),
	 ROWS(unpaced)},
};

/* ---------------------------------------------------------- log2, ss, maxpossible */

struct number {
	uint32_t of;
	uint32_t expected;
};

/* floor(65536 log2 x), computed with 60 digits. */
static const struct number logarithms[] = {
	{0, 0},		{1, 0},		  {2, 65536},	    {3, 103872},     {10, 217705},
	{1000, 653117}, {65535, 1048574}, {65536, 1048576}, {32000, 980797}, {4294967295u, 2097151},
};

/* W in thousandths and floor(W log2 W), at a round trip of 400 ms. */
static const struct number possible[] = {
	{0, 0},	      {999, 0},	     {1000, 0},	       {1500, 0},
	{1600, 1},    {2000, 2},     {10000, 33},      {32000, 160},
	{34500, 176}, {100000, 664}, {2000000, 21931}, {65535000, 1048558},
};

static void run_numbers(struct tap *tap)
{
	size_t i;

	printf("# log2_and_maxpossible_are_what_the_paper_says (3)\n");
	for (i = 0; i < sizeof(logarithms) / sizeof(logarithms[0]); i++) {
		struct checking c = checking_row("log2_in_1_65536", i + 1, "log2");

		expect(&c, "log2", logarithms[i].expected, su_log2_q16(logarithms[i].of));
		report_row(tap, &c);
	}
	for (i = 0; i < sizeof(possible) / sizeof(possible[0]); i++) {
		struct checking c = checking_row("maxpossible", i + 1, "W log2 W");

		expect(&c, "maxpossible", possible[i].expected,
		       su_adaptive_maxpossible(possible[i].of, 400000));
		report_row(tap, &c);
	}
}

int main(void)
{
	struct tap tap = {0};
	size_t i;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		run_table(&tap, &tables[i]);
	run_numbers(&tap);
	return report_end(&tap);
}
