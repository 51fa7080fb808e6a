/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * su_hystart: Ha and Rhee, 2011, Algorithm 1. Most stories are of a round trip of 20 ms, so that a
 * train of 10 ms (dMin / 2) is of six ACKs, 2 ms apart, of two packets each.
 */
#include "growth.h"

/* clang-format off */
#define AN_ACK(ms, sent, acked, cwnd)                                                              \
	ACK, .time_ms = ms, .srtt_ms = 20, .sent_pkts = sent, .acked_pkts = acked,                 \
	.cwnd_pkts = cwnd, .ssthresh_pkts = INF
/* 10 packets in five ACKs: 28 - 20 = 8 ms are less than 20 / 2. Each ACK of 2 adds 2 to cwnd. */
#define A_FIRST_ROUND                                                                              \
	A_NEW_CONNECTION, TEN_LEAVE,                                                               \
	{"the first round begins with its first ACK", AN_ACK(20, 10, 2, 10), GROWS_TO(12)},        \
	{"2 ms", AN_ACK(22, 14, 4, 12), GROWS_TO(14)},                                             \
	{"4 ms", AN_ACK(24, 18, 6, 14), GROWS_TO(16)},                                             \
	{"6 ms", AN_ACK(26, 22, 8, 16), GROWS_TO(18)},                                             \
	{"8 ms, the last ACK of the round: 10 are not beyond 10", AN_ACK(28, 26, 10, 18),          \
	 GROWS_TO(20)}

static const struct row train[] = {
	A_FIRST_ROUND,
	{"12 are beyond the first round's 10: a round begins", AN_ACK(40, 30, 12, 20),
	 GROWS_TO(22)},
	{"2 ms", AN_ACK(42, 34, 14, 22), GROWS_TO(24)},
	{"4 ms", AN_ACK(44, 38, 16, 24), GROWS_TO(26)},
	{"6 ms", AN_ACK(46, 42, 18, 26), GROWS_TO(28)},
	{"8 ms", AN_ACK(48, 46, 20, 28), GROWS_TO(30)},
	{"10 ms >= 20 / 2 and 30 >= 16: found 1", AN_ACK(50, 50, 22, 30), LEAVES(ACK_TRAIN, 30)},
	{"congestion avoidance is the stack's", ACK, .time_ms = 52, .srtt_ms = 20, .sent_pkts = 52,
	 .acked_pkts = 24, .cwnd_pkts = 30, .ssthresh_pkts = 30, THE_STACKS(NONE)},
};

/* The spacing is 3 ms once, at 45: neither that ACK nor what follows is of the train. */
static const struct row broken[] = {
	A_FIRST_ROUND,
	{"a round begins", AN_ACK(40, 30, 12, 20), GROWS_TO(22)},
	{"2 ms", AN_ACK(42, 34, 14, 22), GROWS_TO(24)},
	{"3 ms later: significantly delayed", AN_ACK(45, 38, 16, 24), GROWS_TO(26)},
	{"1 ms later, but 4 ms from the train", AN_ACK(46, 42, 18, 26), GROWS_TO(28)},
	{"12 ms since the round began", AN_ACK(52, 46, 20, 28), GROWS_TO(30)},
};

static const struct row loose[] = {
	A_FIRST_ROUND,
	{"a round begins", AN_ACK(40, 30, 12, 20), GROWS_TO(22)},
	{"4 ms apart is close enough", AN_ACK(44, 34, 14, 22), GROWS_TO(24)},
	{"8 ms", AN_ACK(48, 38, 16, 24), GROWS_TO(26)},
	{"12 ms >= 10", AN_ACK(52, 42, 18, 26), LEAVES(ACK_TRAIN, 26)},
};

/* DEVIATES: an ACK of 6 packets stands for three of 2, and 6 ms are 3 x 2 ms. */
static const struct row stretched[] = {
	A_FIRST_ROUND,
	{"a round begins", AN_ACK(40, 30, 12, 20), GROWS_TO(22)},
	{"6 packets in 6 ms are of the train", AN_ACK(46, 34, 18, 22), GROWS_TO(28)},
	{"6 more, 12 ms >= 10", AN_ACK(52, 40, 24, 28), LEAVES(ACK_TRAIN, 28)},
};

/* And to the letter, where one ACK is one ACK: 6 ms are more than 2 ms. */
static const struct row letter[] = {
	A_FIRST_ROUND,
	{"a round begins", AN_ACK(40, 30, 12, 20), GROWS_TO(22)},
	{"6 packets in 6 ms are not of the train", AN_ACK(46, 34, 18, 22), GROWS_TO(28)},
	{"6 more", AN_ACK(52, 40, 24, 28), GROWS_TO(34)},
};

/* dMin is the least of all samples: with 12 ms a train of 6 ms is enough. */
static const struct row low_ssthresh[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"the round begins, its sample is 12 ms", AN_ACK(20, 10, 1, 10), .rtt_us = 12000, GROWS_TO(11)},
	{"2 ms", AN_ACK(22, 12, 2, 11), .rtt_us = 12000, GROWS_TO(12)},
	{"4 ms", AN_ACK(24, 14, 3, 12), .rtt_us = 12000, GROWS_TO(13)},
	{"6 ms >= 12 / 2: found, but 13 < 16", AN_ACK(26, 16, 4, 13), .rtt_us = 12000, GROWS_TO(14)},
	{"it grows on", AN_ACK(27, 18, 6, 14), .rtt_us = 12000, GROWS_TO(16)},
	{"16: out", AN_ACK(28, 22, 7, 16), .rtt_us = 12000, LEAVES(ACK_TRAIN, 16)},
};

/* The delay of a first round of 100 ms: eta = max(2, ceil(100 / 16)) = 6.25 ms. Samples are two here,
 * and ACKs are 10 ms apart, so that there is no train. */
#define DELAYED(ms, sent, acked, cwnd, us)                                                         \
	ACK, .time_ms = ms, .srtt_ms = 100, .sent_pkts = sent, .acked_pkts = acked,                \
	.cwnd_pkts = cwnd, .ssthresh_pkts = INF, .rtt_us = us
#define A_ROUND_OF_100_MS                                                                          \
	A_NEW_CONNECTION, TEN_LEAVE,                                                               \
	{"a round begins: 105 ms", DELAYED(100, 10, 2, 10, 105000), GROWS_TO(12)},                 \
	{"100 ms is the least", DELAYED(110, 14, 4, 12, 100000), GROWS_TO(14)},                    \
	{"a third sample does not count", DELAYED(120, 18, 10, 14, 90000), GROWS_TO(20)}

static const struct row delay[] = {
	A_ROUND_OF_100_MS,
	{"a round begins: one sample is not enough", DELAYED(200, 30, 12, 20, 200000), GROWS_TO(22)},
	{"106.249 < 100 + 6.25", DELAYED(210, 34, 14, 22, 106249), GROWS_TO(24)},
	{"the round has its two", DELAYED(220, 38, 30, 24, 300000), GROWS_TO(40)},
	/* ceil(106249 / 16) = 6641: 106249 + 6641 = 112890. */
	{"a round begins", DELAYED(300, 70, 32, 40, 120000), GROWS_TO(42)},
	{"112.890 >= 106.249 + 6.641 and 42 >= 16: found 2", DELAYED(310, 74, 34, 42, 112890),
	 LEAVES(DELAY_INCREASE, 42)},
};

static const struct row almost[] = {
	A_ROUND_OF_100_MS,
	{"a round begins", DELAYED(200, 30, 12, 20, 200000), GROWS_TO(22)},
	{"106.250 >= 100 + 6.25", DELAYED(210, 34, 14, 22, 106250), LEAVES(DELAY_INCREASE, 22)},
};

/* eta is 2 ms at the least: of 20 ms the 16th part is 1.25. And 8 ms at the most: of 400 ms it is 25. */
static const struct row eta_bounds[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"a round begins: 20 ms", DELAYED(100, 10, 2, 10, 20000), GROWS_TO(12)},
	{"20 ms", DELAYED(110, 14, 10, 12, 20000), GROWS_TO(20)},
	{"a round begins", DELAYED(200, 30, 12, 20, 30000), GROWS_TO(22)},
	{"21.999 < 20 + 2", DELAYED(210, 34, 30, 22, 21999), GROWS_TO(40)},
	{"a round begins: 400 ms", DELAYED(600, 70, 32, 40, 400000), GROWS_TO(42)},
	{"400 >= 21.999 + 2", DELAYED(610, 74, 34, 42, 400000), LEAVES(DELAY_INCREASE, 42)},
};

static const struct row eta_most[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"a round begins: 400 ms", DELAYED(400, 10, 2, 10, 400000), GROWS_TO(12)},
	{"400 ms", DELAYED(410, 14, 10, 12, 400000), GROWS_TO(20)},
	{"a round begins", DELAYED(800, 30, 12, 20, 500000), GROWS_TO(22)},
	{"407.999 < 400 + 8", DELAYED(810, 34, 30, 22, 407999), GROWS_TO(40)},
	{"a round begins", DELAYED(1300, 70, 32, 40, 500000), GROWS_TO(42)},
	{"415.999 >= 407.999 + 8", DELAYED(1310, 74, 34, 42, 415999), LEAVES(DELAY_INCREASE, 42)},
};

/* DEVIATES: an ACK of 16 packets counts as eight samples. */
static const struct row few_acks[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"a round of one ACK, which counts as five: too few", DELAYED(100, 10, 10, 10, 100000), GROWS_TO(20)},
	{"a round of one ACK of 16: 8 samples, 110 >= 100 + 6.25", DELAYED(200, 30, 26, 20, 110000),
	 LEAVES(DELAY_INCREASE, 20)},
};

static const struct row no_samples[] = {
	A_ROUND_OF_100_MS,
	{"an ACK without a round-trip time is no sample", DELAYED(200, 30, 12, 20, 0), .no_sample = 1,
	 GROWS_TO(22)},
	{"one sample", DELAYED(210, 34, 14, 22, 200000), GROWS_TO(24)},
	{"still one", DELAYED(220, 38, 16, 24, 0), .no_sample = 1, GROWS_TO(26)},
	{"two: min(200, 150) >= 106.25", DELAYED(230, 42, 18, 26, 150000), LEAVES(DELAY_INCREASE, 26)},
};

/* Both detectors off is plain slow start, without the stack's own HyStart. */
static const struct row neither[] = {
	A_FIRST_ROUND,
	{"a round begins", AN_ACK(40, 30, 12, 20), GROWS_TO(22)},
	{"2 ms", AN_ACK(42, 34, 14, 22), GROWS_TO(24)},
	{"4 ms", AN_ACK(44, 38, 16, 24), GROWS_TO(26)},
	{"6 ms", AN_ACK(46, 42, 18, 26), GROWS_TO(28)},
	{"8 ms", AN_ACK(48, 46, 20, 28), GROWS_TO(30)},
	{"10 ms, and a round trip of 200 ms", AN_ACK(50, 50, 40, 30), .rtt_us = 200000, GROWS_TO(50)},
};

/* "Timeout: dMin <- infinity, found <- 0". */
static const struct row timeout[] = {
	A_FIRST_ROUND,
	{"a round begins", AN_ACK(40, 30, 12, 20), GROWS_TO(22)},
	{"the timer: the usual penalty", LOSS, SU_LOSS_TIMEOUT, .time_ms = 400, .srtt_ms = 20,
	 .sent_pkts = 42, .acked_pkts = 12, .lost_pkts = 30, .cwnd_pkts = 22, .ssthresh_pkts = INF,
	 .want = {.why = SU_WHY_ORDINARY_LOSS}, PROVES(AT_LEAST)},
	{"slow start is ours again, from 1", ACK, .recovery = SU_RECOVERY_TIMEOUT, .time_ms = 440,
	 .srtt_ms = 20, .sent_pkts = 42, .acked_pkts = 13, .lost_pkts = 30, .cwnd_pkts = 1,
	 .ssthresh_pkts = 15, .rtt_us = 40000, .want = {.phase = SU_PHASE_SLOW_START,
	 .owns_slow_start = 1, .why = SU_WHY_SLOW_START, .cwnd_pkts = 2}, PROVES(EXACT)},
	{"until it comes to ssthresh", ACK, .recovery = SU_RECOVERY_TIMEOUT, .time_ms = 480,
	 .srtt_ms = 20, .sent_pkts = 42, .acked_pkts = 30, .lost_pkts = 30, .cwnd_pkts = 2,
	 .ssthresh_pkts = 15, .rtt_us = 40000, .want = {.phase = SU_PHASE_SLOW_START,
	 .owns_slow_start = 1, .cwnd_pkts = 15}, PROVES(EXACT)},
	{"from there it is the stack's", ACK, .time_ms = 481, .srtt_ms = 20, .sent_pkts = 57,
	 .acked_pkts = 42, .lost_pkts = 30, .cwnd_pkts = 15, .ssthresh_pkts = 15, THE_STACKS(SSTHRESH)},
};

/* DECISION: what was delivered while the stack repaired does not grow the window. */
static const struct row fast_loss[] = {
	A_FIRST_ROUND,
	{"three duplicates: the usual penalty", LOSS, SU_LOSS_FAST, .time_ms = 41, .srtt_ms = 20,
	 .sent_pkts = 30, .acked_pkts = 10, .sacked_pkts = 3, .lost_pkts = 1, .cwnd_pkts = 20,
	 .ssthresh_pkts = INF, .want = {.why = SU_WHY_ORDINARY_LOSS}, PROVES(AT_LEAST)},
	{"repaired: congestion avoidance", ACK, .time_ms = 61, .srtt_ms = 20, .sent_pkts = 30,
	 .acked_pkts = 30, .lost_pkts = 1, .cwnd_pkts = 14, .ssthresh_pkts = 14, THE_STACKS(NONE)},
};

static const struct row undone[] = {
	A_FIRST_ROUND,
	{"three duplicates", LOSS, SU_LOSS_FAST, .time_ms = 41, .srtt_ms = 20,
	 .sent_pkts = 30, .acked_pkts = 10, .sacked_pkts = 3, .lost_pkts = 1, .cwnd_pkts = 20,
	 .ssthresh_pkts = INF, .want = {.why = SU_WHY_ORDINARY_LOSS}, PROVES(AT_LEAST)},
	{"the loss was none: 20 is the window again, and 17 at once are not counted", ACK,
	 .time_ms = 61, .srtt_ms = 20, .sent_pkts = 30, .acked_pkts = 30, .cwnd_pkts = 20,
	 .ssthresh_pkts = INF, OURS(SLOW_START)},
	{"the next 2 are", AN_ACK(81, 50, 32, 20), GROWS_TO(22)},
};

static const struct row after_idle[] = {
	A_FIRST_ROUND,
	{"a round begins", AN_ACK(40, 30, 12, 20), GROWS_TO(22)},
	{"2 ms", AN_ACK(42, 34, 14, 22), GROWS_TO(24)},
	{"4 ms", AN_ACK(44, 38, 16, 24), GROWS_TO(26)},
	{"6 ms", AN_ACK(46, 42, 18, 26), GROWS_TO(28)},
	{"8 ms", AN_ACK(48, 46, 20, 28), GROWS_TO(30)},
	{"10 ms: out", AN_ACK(50, 50, 22, 30), LEAVES(ACK_TRAIN, 30)},
	{"a pause", IDLE, .time_ms = 9000, .srtt_ms = 20, .sent_pkts = 50, .acked_pkts = 50,
	 .cwnd_pkts = 30, .ssthresh_pkts = 30, .idle_ms = 8000, .rto_ms = 220, THE_STACKS(NONE)},
	{"the stack restarts with 10 of 30: slow start is ours", SEND, .time_ms = 9000, .srtt_ms = 20,
	 .sent_pkts = 50, .acked_pkts = 50, .cwnd_pkts = 10, .ssthresh_pkts = 30, OURS(SLOW_START)},
	{"a round begins", ACK, .time_ms = 9020, .srtt_ms = 20, .sent_pkts = 60, .acked_pkts = 52,
	 .cwnd_pkts = 10, .ssthresh_pkts = 30, GROWS_TO(12)},
	{"with the dMin of before", ACK, .time_ms = 9022, .srtt_ms = 20, .sent_pkts = 60, .acked_pkts = 60,
	 .cwnd_pkts = 12, .ssthresh_pkts = 30, GROWS_TO(20)},
};

static const struct row limits[] = {
	A_NEW_CONNECTION, TEN_LEAVE,
	{"the application limits sending: 10 stay", AN_ACK(20, 4, 4, 10), .app_limited = 1, OURS(NONE)},
	{"up to max_window_pkts, here 15", AN_ACK(60, 14, 14, 10), GROWS_TO(15)},
	{"where slow start ends", AN_ACK(90, 20, 20, 15), LEAVES(MAX_WINDOW, 15)},
};

static const struct row lost_handshake[] = {
	{"the stack starts at 1 (RFC 5681 3.1)", OPEN, .cwnd_pkts = 1, .ssthresh_pkts = INF,
	 .handshake_lost = 1, OURS(HANDSHAKE_LOSS)},
	{"one leaves", SEND, .cwnd_pkts = 1, .ssthresh_pkts = INF, OURS(NONE)},
	{"and grows as ever", AN_ACK(20, 1, 1, 1), GROWS_TO(2)},
};
/* clang-format on */

#define HYSTART	    .alg = SU_ALG_HYSTART
#define TWO_SAMPLES .settings = {SET(hystart, samples, 2)}

static const struct table tables[] = {
	{"an_ack_train_of_half_a_round_trip_ends_slow_start", "Algorithm 1, first exit point",
	 HYSTART, ROWS(train)},
	{"an_ack_that_is_not_closely_spaced_ends_the_train", "4.2.1", HYSTART, ROWS(broken)},
	{"the_spacing_is_a_parameter", "Algorithm 1", HYSTART,
	 .settings = {SET(hystart, ack_spacing_us, 4000)}, ROWS(loose)},
	{"a_stretched_ack_stands_for_several", "DEVIATES", HYSTART, ROWS(stretched)},
	{"to_the_letter_a_stretched_ack_ends_the_train", "Algorithm 1", HYSTART,
	 .settings = {SET(hystart, stretch_pkts, 0)}, ROWS(letter)},
	{"slow_start_never_ends_below_low_ssthresh", "Algorithm 1, low_ssthresh", HYSTART,
	 ROWS(low_ssthresh)},
	{"a_growing_delay_ends_slow_start", "Algorithm 1, second exit point", HYSTART, TWO_SAMPLES,
	 ROWS(delay)},
	{"the_delay_has_grown_at_exactly_eta", "Algorithm 1", HYSTART, TWO_SAMPLES, ROWS(almost)},
	{"eta_is_2_ms_at_the_least", "Algorithm 1", HYSTART,
	 .settings = {SET(hystart, samples, 2), SET(hystart, ack_train, 0)}, ROWS(eta_bounds)},
	{"eta_is_8_ms_at_the_most", "Algorithm 1", HYSTART, TWO_SAMPLES, ROWS(eta_most)},
	{"a_stretched_ack_counts_as_several_samples", "DEVIATES", HYSTART, ROWS(few_acks)},
	{"an_ack_without_a_round_trip_time_is_no_sample", "Algorithm 1", HYSTART, TWO_SAMPLES,
	 ROWS(no_samples)},
	{"without_its_detectors_it_is_plain_slow_start", "Algorithm 1", HYSTART,
	 .settings = {SET(hystart, ack_train, 0), SET(hystart, delay_increase, 0)}, ROWS(neither)},
	{"a_timeout_forgets_everything", "Algorithm 1, Timeout", HYSTART, ROWS(timeout)},
	{"a_loss_has_the_usual_penalty", "RFC 5681 3.2", HYSTART, ROWS(fast_loss)},
	{"what_came_during_a_repair_does_not_grow_the_window", "DECISION", HYSTART, ROWS(undone)},
	{"after_a_pause_it_looks_anew", "DECISION", HYSTART, ROWS(after_idle)},
	{"nothing_grows_beyond_what_limits_it", "RFC 7661; max_window_pkts", HYSTART,
	 .settings = {SET(hystart, max_window_pkts, 15)}, ROWS(limits)},
	{"a_lost_handshake_starts_at_one_segment", "RFC 5681 3.1", HYSTART, ROWS(lost_handshake)},
};

int main(void)
{
	return run_tables(tables, sizeof(tables) / sizeof(tables[0]));
}
