/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * su_swift_start: Partridge et al., "A Swifter Start for TCP", 2002; sections are quoted as "3.1".
 * Unless a table says otherwise the round trip is 100 ms, segments are of 1000 bytes, and the burst
 * leaves at 1000 ms; its ACKs come at 1100, 1102, 1104 and 1106 ms. Then
 *    BW       = 1000 bytes / 2 ms  = 500000 bytes/s
 *    Capacity = 500000 * 0.1 s     = 50000 bytes = 50 segments
 *    cwnd     = 50 / gamma         = 25 with gamma = 2
 * and 25 segments in 100 ms are 250000 bytes/s.
 */
#include "table.h"

#define OPEN SU_EVENT_OPEN
#define IDLE SU_EVENT_IDLE
#define SEND SU_EVENT_SEND
#define LOSS SU_EVENT_LOSS

/* What the verdict must be; the evidence is that of slow start without loss. */
#define OWNED(in_phase, reason, cwnd, rate, burst)                                                 \
	.want = {.phase = SU_PHASE_##in_phase,                                                     \
		 .why = SU_WHY_##reason,                                                           \
		 .owns_slow_start = 1,                                                             \
		 .cwnd_pkts = cwnd,                                                                \
		 .pacing_bytes_per_s = rate,                                                       \
		 .burst_pkts = burst},                                                             \
	PROVES(AT_LEAST)
#define SLOW_STARTS(reason, cwnd)    OWNED(SLOW_START, reason, cwnd, 0, 0)
#define PACED(reason, cwnd, rate)    OWNED(SLOW_START, reason, cwnd, rate, 2)
#define NATIVE(reason, cwnd)	     .want = {.why = SU_WHY_##reason, .cwnd_pkts = cwnd}
#define STANDARD_AGAIN(reason, cwnd) NATIVE(reason, cwnd), PROVES(AT_LEAST)

#define AN_ACK(at_ms, sent, acked, cwnd)                                                           \
	SU_EVENT_ACK, .time_ms = at_ms, .srtt_ms = 100, .sent_pkts = sent, .acked_pkts = acked,    \
		      .cwnd_pkts = cwnd, .ssthresh_pkts = INF

/* How most stories begin. */
#define THE_BURST                                                                                  \
	{"the connection opens", OPEN,                                                             \
	 .srtt_ms = 100,	 .cwnd_pkts = 10,                                                  \
	 .ssthresh_pkts = INF,	 OWNED(ARMED, INITIAL_WINDOW, 4, 0, 0)},                           \
	{                                                                                          \
		"four segments leave", SEND, .time_ms = 1000, .srtt_ms = 100, .cwnd_pkts = 4,      \
					     .ssthresh_pkts = INF, .unpaced_pkts = 10,             \
					     OWNED(OPEN_LOOP, STARTED, 4, 0, 0)                    \
	}
/* 4.2: "When the first acknowledgement comes back, the sender duly transmits two segments." */
#define THE_FIRST_ACK                                                                              \
	THE_BURST,                                                                                 \
	{                                                                                          \
		"the first ACK: slow start", AN_ACK(1100, 4, 1, 4), SLOW_STARTS(ACK_CLOCK, 5)      \
	}
#define THE_PAIR                                                                                   \
	THE_FIRST_ACK,                                                                             \
	{                                                                                          \
		"the second: 1 segment in 2 ms", AN_ACK(1102, 6, 2, 5),                            \
			PACED(ESTIMATED, 25, 250000)                                               \
	}

/* clang-format off */
/* 3.1. The growth is by 1.5 a round trip: of 25 acknowledged, 12.5, rounded up 13. */
static const struct row pair[] = {
	THE_PAIR,
	{"the third ACK is of the burst: nothing grows", AN_ACK(1104, 10, 3, 25), PACED(NONE, 0, 250000)},
	{"nor by the fourth", AN_ACK(1106, 11, 4, 25), PACED(NONE, 0, 250000)},
	/* ceil(1 / 2) = 1. The round trip leads to 25 + 13 = 38: 380000 bytes/s. */
	{"the fifth is the first of the window", AN_ACK(1200, 29, 5, 25), PACED(NONE, 26, 380000)},
	{"1 of 2 is 1, and that has been given", AN_ACK(1204, 31, 6, 26), PACED(NONE, 26, 380000)},
	/* 24 of the window acknowledged: 12. */
	{"24 of the window are through", AN_ACK(1290, 65, 28, 26), PACED(NONE, 37, 380000)},
	/* 25 of 25: 13. The next round trip leads to 38 + 19 = 57. */
	{"all 25 are through", AN_ACK(1294, 66, 29, 37), PACED(NONE, 38, 570000)},
	{"the second round trip goes on so", AN_ACK(1300, 68, 31, 38), PACED(NONE, 39, 570000)},
	{"a loss has the usual penalty and ends the pacing", LOSS, SU_LOSS_FAST, .time_ms = 1400,
	 .srtt_ms = 100, .sent_pkts = 80, .acked_pkts = 40, .lost_pkts = 1, .cwnd_pkts = 39,
	 .ssthresh_pkts = INF, STANDARD_AGAIN(ORDINARY_LOSS, 0)},
	{"all the rest is the stack's", AN_ACK(1500, 90, 80, 19), STANDARD_AGAIN(NONE, 0)},
};

/* 50 / 1; 50 / 4 = 12.5; 50 / 8 = 6.25, and slow start has 6. */
static const struct row gamma_1[] = {
	THE_FIRST_ACK, {"the whole capacity", AN_ACK(1102, 6, 2, 5), PACED(ESTIMATED, 50, 500000)}};
static const struct row gamma_4[] = {
	THE_FIRST_ACK, {"a quarter", AN_ACK(1102, 6, 2, 5), PACED(ESTIMATED, 12, 120000)}};
static const struct row gamma_8[] = {
	THE_FIRST_ACK, {"an eighth", AN_ACK(1102, 6, 2, 5), PACED(ESTIMATE_SMALL, 6, 60000)}};

/* Table 2, 1.5 Mb/s: an estimate does not lower the window. 1000 bytes in 20 ms are 5 segments in a
 * round trip, a half of that 2. */
static const struct row small[] = {
	THE_FIRST_ACK,
	{"the estimate is 2, slow start has 6", AN_ACK(1120, 6, 2, 5), PACED(ESTIMATE_SMALL, 6, 60000)},
	{"the rest of the burst", AN_ACK(1160, 9, 4, 6), PACED(NONE, 0, 60000)},
	/* ceil(6 / 2) = 3: 9, the report's third round trip. Its goal is 9 + 5 = 14. */
	{"the six are through", AN_ACK(1260, 12, 10, 6), PACED(NONE, 9, 140000)},
};

/* Footnote 4: ACKs of two segments each, at 1100 and 1104. "So we would expect to underestimate the
 * available bandwidth by at least a factor of two": 1000 bytes / 4 ms * 0.1 s / 2 = 12.5. */
static const struct row delayed_acks[] = {
	THE_BURST,
	{"the first ACK is for two", AN_ACK(1100, 4, 2, 4), SLOW_STARTS(ACK_CLOCK, 6)},
	{"the second, 4 ms later, counts one", AN_ACK(1104, 8, 4, 6), PACED(ESTIMATED, 12, 120000)},
};
/* Over what the ACKs deliver: 2 segments / 4 ms * 0.1 s / 2 = 25. */
static const struct row delayed_acks_slope[] = {
	THE_BURST,
	{"the first ACK is for two", AN_ACK(1100, 4, 2, 4), SLOW_STARTS(ACK_CLOCK, 6)},
	{"the second, 4 ms later, delivers two", AN_ACK(1104, 8, 4, 6), PACED(ESTIMATED, 25, 250000)},
};

/* 2.3: compressed ACKs. The gap of the first two is 0; over all four it is 6 ms for 3 segments. */
static const struct row compressed_slope[] = {
	THE_FIRST_ACK,
	{"the second at once", AN_ACK(1100, 6, 2, 5), SLOW_STARTS(NONE, 6)},
	{"the third too late", AN_ACK(1105, 8, 3, 6), SLOW_STARTS(NONE, 7)},
	{"the fourth: 3 in 6 ms", AN_ACK(1106, 10, 4, 7), PACED(ESTIMATED, 25, 250000)},
};
/* 2.3: the ACKs wait together and come 0.1 ms apart, 8 ms late: 3 segments in 0.3 ms and 108 ms are a
 * capacity of 1080. The last took 108.3 ms, 8.3 more than the handshake: 4 segments in 8.3 ms are 52. */
#define COMPRESSED                                                                                 \
	THE_BURST,                                                                                 \
	{"the first ACK is 8 ms late", AN_ACK(1108, 4, 1, 4), SLOW_STARTS(ACK_CLOCK, 5)},           \
	{"the second follows", AN_ACK(1108, 6, 2, 5), .time_us = 100, SLOW_STARTS(NONE, 6)},        \
	{"and the third", AN_ACK(1108, 8, 3, 6), .time_us = 200, SLOW_STARTS(NONE, 7)}
static const struct row compressed[] = {
	COMPRESSED,
	{"the fourth: 52 / 2, over 108 ms", AN_ACK(1108, 10, 4, 7), .time_us = 300,
	 PACED(ESTIMATED, 26, 240740)},
};
static const struct row compressed_unguarded[] = {
	COMPRESSED,
	{"the fourth: 1080 / 2", AN_ACK(1108, 10, 4, 7), .time_us = 300,
	 PACED(ESTIMATED, 540, 5000000)},
};
static const struct row compressed_pair[] = {
	THE_FIRST_ACK,
	{"the second at once: no gap, and the stack's 10", AN_ACK(1100, 6, 2, 5),
	 STANDARD_AGAIN(NO_GAP, 10)},
	{"which the stack grows", AN_ACK(1102, 12, 3, 12), STANDARD_AGAIN(NONE, 0)},
};
static const struct row short_slope[] = {
	THE_FIRST_ACK,
	{"one more ACK", AN_ACK(1102, 6, 2, 5), SLOW_STARTS(NONE, 6)},
	{"the second more: 2 in 4 ms", AN_ACK(1104, 8, 3, 6), PACED(ESTIMATED, 25, 250000)},
};
static const struct row one_ack[] = {
	THE_BURST,
	{"one ACK for all four", AN_ACK(1100, 4, 4, 4), STANDARD_AGAIN(NO_GAP, 10)},
};
static const struct row short_burst[] = {
	THE_BURST,
	{"the application had two", AN_ACK(1100, 2, 1, 4), STANDARD_AGAIN(BURST_SHORT, 10)},
	{"the rest is the stack's", SEND, .time_ms = 1300, .srtt_ms = 100, .sent_pkts = 2, .acked_pkts = 2,
	 .cwnd_pkts = 10, .ssthresh_pkts = INF, .unpaced_pkts = 8, STANDARD_AGAIN(NONE, 0)},
};
static const struct row three_are_enough[] = {
	THE_BURST,
	{"the application had three", AN_ACK(1100, 3, 1, 4), SLOW_STARTS(ACK_CLOCK, 5)},
	{"2 ms", AN_ACK(1102, 3, 2, 5), SLOW_STARTS(NONE, 6)},
	{"4 ms for 2", AN_ACK(1104, 3, 3, 6), PACED(ESTIMATED, 25, 250000)},
};
static const struct row route_of_30[] = {
	{"ip route ... initcwnd 30", OPEN, .srtt_ms = 100, .cwnd_pkts = 30, .ssthresh_pkts = INF,
	 OWNED(ARMED, INITIAL_WINDOW, 4, 0, 0)},
	{"four segments leave", SEND, .time_ms = 1000, .srtt_ms = 100, .cwnd_pkts = 4,
	 .ssthresh_pkts = INF, OWNED(OPEN_LOOP, STARTED, 4, 0, 0)},
	{"one ACK for all four", AN_ACK(1100, 4, 4, 4), STANDARD_AGAIN(NO_GAP, 30)},
};

/* DECISION: the bound. 25 becomes 20; when they are through the stack's slow start goes on. */
static const struct row bounded[] = {
	THE_FIRST_ACK,
	{"20, not 25", AN_ACK(1102, 6, 2, 5), PACED(ESTIMATED, 20, 200000)},
	/* The goal is 20 + 10. */
	{"19 of them are through", AN_ACK(1290, 40, 23, 20), PACED(NONE, 20, 300000)},
	{"all are", AN_ACK(1295, 42, 24, 20), STANDARD_AGAIN(MAX_WINDOW, 20)},
};

/* DECISION: 25 becomes 20 here, too, but the window grows on. */
static const struct row bounded_estimate[] = {
	THE_FIRST_ACK,
	{"20, not 25", AN_ACK(1102, 6, 2, 5), PACED(ESTIMATED, 20, 200000)},
	{"19 of them are through", AN_ACK(1290, 40, 23, 20), PACED(NONE, 30, 300000)},
};

/* Footnote 5. */
static const struct row first_round[] = {
	THE_PAIR,
	{"24 of the window are through", AN_ACK(1290, 65, 28, 25), PACED(NONE, 37, 380000)},
	{"all 25 are through: standard", AN_ACK(1294, 66, 29, 37), STANDARD_AGAIN(FIRST_ROUND, 38)},
	{"and stays so", AN_ACK(1300, 68, 31, 40), STANDARD_AGAIN(NONE, 0)},
};

/* 4.2 and 5: bursts of two, on the ticks of a clock. 2000 bytes at 250000 bytes/s are 8 ms: with a
 * clock of 10 ms they leave each 10 ms, 200000 bytes/s. */
static const struct row ticks_of_10_ms[] = {
	THE_FIRST_ACK,
	{"2 segments each 10 ms", AN_ACK(1102, 6, 2, 5), PACED(ESTIMATED, 25, 200000)},
	/* 38 in 100 ms: 2000 bytes each 5.26 ms, and so each 10. */
	{"and no faster later", AN_ACK(1200, 29, 5, 25), PACED(NONE, 26, 200000)},
};
static const struct row one_a_transmission[] = {
	THE_FIRST_ACK,
	{"1 segment each 4 ms", AN_ACK(1102, 6, 2, 5), OWNED(SLOW_START, ESTIMATED, 25, 250000, 1)},
};
/* Growth by 2: the round trip leads to 50. */
static const struct row doubling[] = {
	THE_PAIR,
	{"the first of the window", AN_ACK(1200, 29, 5, 25), PACED(NONE, 26, 500000)},
	{"all 25 are through", AN_ACK(1294, 66, 29, 26), PACED(NONE, 50, 1000000)},
};

/* RFC 7661: a window that is not used does not grow; and data after a gap has no ACK clock, so that
 * the window is spread over a round trip again. */
static const struct row application[] = {
	THE_PAIR,
	{"the application gave 4 more", AN_ACK(1202, 10, 6, 25), .app_limited = 1,
	 PACED(NONE, 25, 250000)},
	{"all is through", AN_ACK(1206, 10, 10, 25), .app_limited = 1, PACED(NONE, 25, 250000)},
	{"more data after 100 ms", SEND, .time_ms = 1306, .srtt_ms = 125, .sent_pkts = 10, .acked_pkts = 10,
	 .cwnd_pkts = 25, .ssthresh_pkts = INF, PACED(NONE, 0, 200000)},
	{"and it is acknowledged", AN_ACK(1406, 35, 12, 25), PACED(NONE, 26, 380000)},
};

static const struct row rests[] = {
	THE_PAIR,
	{"a pause", IDLE, .time_ms = 9000, .srtt_ms = 100, .sent_pkts = 20, .acked_pkts = 20,
	 .cwnd_pkts = 30, .ssthresh_pkts = INF, .idle_ms = 7000, .rto_ms = 300,
	 STANDARD_AGAIN(PAUSED, 0)},
	{"data leaves with the stack's window", SEND, .time_ms = 9000, .srtt_ms = 100, .sent_pkts = 20,
	 .acked_pkts = 20, .cwnd_pkts = 10, .ssthresh_pkts = INF, STANDARD_AGAIN(NONE, 0)},
	{"another pause", IDLE, .time_ms = 19000, .srtt_ms = 100, .sent_pkts = 20, .acked_pkts = 20,
	 .cwnd_pkts = 30, .ssthresh_pkts = INF, .idle_ms = 7000, .rto_ms = 300,
	 STANDARD_AGAIN(NONE, 0)},
};
static const struct row rests_first[] = {
	{"the connection opens", OPEN, .srtt_ms = 100, .cwnd_pkts = 10, .ssthresh_pkts = INF,
	 OWNED(ARMED, INITIAL_WINDOW, 4, 0, 0)},
	{"and rests", IDLE, .time_ms = 9000, .srtt_ms = 100, .cwnd_pkts = 4, .ssthresh_pkts = INF,
	 .idle_ms = 9000, .rto_ms = 300, OWNED(ARMED, NONE, 0, 0, 0)},
	{"four segments leave", SEND, .time_ms = 9000, .srtt_ms = 100, .cwnd_pkts = 4,
	 .ssthresh_pkts = INF, OWNED(OPEN_LOOP, STARTED, 4, 0, 0)},
};

/* 3.1: "until the first slow-start ends". A route may give an ssthresh. */
#define A_LOW_THRESHOLD .ssthresh_pkts = 20
static const struct row threshold[] = {
	{"the connection opens", OPEN, .srtt_ms = 100, .cwnd_pkts = 10, A_LOW_THRESHOLD,
	 OWNED(ARMED, INITIAL_WINDOW, 4, 0, 0)},
	{"four segments leave", SEND, .time_ms = 1000, .srtt_ms = 100, .cwnd_pkts = 4, A_LOW_THRESHOLD,
	 OWNED(OPEN_LOOP, STARTED, 4, 0, 0)},
	{"the first ACK", SU_EVENT_ACK, .time_ms = 1100, .srtt_ms = 100, .sent_pkts = 4, .acked_pkts = 1,
	 .cwnd_pkts = 4, A_LOW_THRESHOLD, SLOW_STARTS(ACK_CLOCK, 5)},
	{"20, not 25", SU_EVENT_ACK, .time_ms = 1102, .srtt_ms = 100, .sent_pkts = 6, .acked_pkts = 2,
	 .cwnd_pkts = 5, A_LOW_THRESHOLD, PACED(ESTIMATED, 20, 200000)},
	{"slow start is over", SU_EVENT_ACK, .time_ms = 1104, .srtt_ms = 100, .sent_pkts = 8, .acked_pkts = 3,
	 .cwnd_pkts = 20, A_LOW_THRESHOLD, NATIVE(SSTHRESH, 0), PROVES(EXACT)},
};

static const struct row lost_burst[] = {
	THE_BURST,
	{"the timer", LOSS, SU_LOSS_TIMEOUT, .time_ms = 1300, .srtt_ms = 100, .sent_pkts = 4,
	 .cwnd_pkts = 4, .ssthresh_pkts = INF, STANDARD_AGAIN(ORDINARY_LOSS, 0)},
	{"slow start is the stack's", SU_EVENT_ACK, .recovery = SU_RECOVERY_TIMEOUT, .time_ms = 1400,
	 .srtt_ms = 100, .sent_pkts = 4, .acked_pkts = 1, .cwnd_pkts = 1, .ssthresh_pkts = 2,
	 NATIVE(NONE, 0), PROVES(EXACT)},
};
static const struct row marked_by_the_network[] = {
	THE_PAIR,
	{"an echo of congestion", LOSS, SU_LOSS_ECN, .time_ms = 1250, .srtt_ms = 100, .sent_pkts = 20,
	 .acked_pkts = 10, .cwnd_pkts = 26, .ssthresh_pkts = INF, STANDARD_AGAIN(ORDINARY_LOSS, 0)},
};

/* RFC 5681 3.1. */
static const struct row lost_handshake[] = {
	{"1 stays 1", OPEN, .srtt_ms = 1100, .cwnd_pkts = 1, .ssthresh_pkts = INF,
	 .handshake_lost = 1, STANDARD_AGAIN(HANDSHAKE_LOSS, 0)},
	{"and data leaves so", SEND, .time_ms = 1000, .srtt_ms = 1100, .cwnd_pkts = 1, .ssthresh_pkts = INF,
	 STANDARD_AGAIN(NONE, 0)},
};
static const struct row middle[] = {
	{"60 packets have been sent", OPEN, .srtt_ms = 100, .sent_pkts = 60, .acked_pkts = 60,
	 .cwnd_pkts = 57, .ssthresh_pkts = INF, STANDARD_AGAIN(MID_CONNECTION, 0)},
	{"data leaves as without us", SEND, .srtt_ms = 100, .sent_pkts = 60, .acked_pkts = 60,
	 .cwnd_pkts = 57, .ssthresh_pkts = INF, STANDARD_AGAIN(NONE, 0)},
};

#define SWIFT	   .alg = SU_ALG_SWIFT_START
#define PAIR	   SET(swift_start, slope_acks, 0)
#define PAIR_AND(p, to) .settings = {PAIR, SET(swift_start, p, to)}
#define THE_REPORTS .settings = {PAIR}

static const struct table tables[] = {
	{"the_gap_of_two_acks_gives_the_window_and_it_is_paced_and_grows", "3.1", SWIFT, THE_REPORTS, ROWS(pair)},
	{"with_gamma_1_the_window_is_the_whole_capacity", "3.1", SWIFT, PAIR_AND(gamma, 1), ROWS(gamma_1)},
	{"with_gamma_4_it_is_a_quarter", "3.1", SWIFT, PAIR_AND(gamma, 4), ROWS(gamma_4)},
	{"with_gamma_8_it_is_an_eighth", "3.1", SWIFT, PAIR_AND(gamma, 8), ROWS(gamma_8)},
	{"an_estimate_does_not_lower_the_window_of_slow_start", "Table 2, 1.5 Mb/s", SWIFT, THE_REPORTS, ROWS(small)},
	{"the_pair_counts_one_segment_where_acks_are_delayed", "3.1, footnote 4", SWIFT, THE_REPORTS,
	 ROWS(delayed_acks)},
	{"a_slope_counts_what_the_acks_deliver", "3.1, DECISION", SWIFT, ROWS(delayed_acks_slope)},
	{"a_slope_is_not_misled_by_two_acks_at_once", "2.3, DECISION", SWIFT, ROWS(compressed_slope)},
	{"acks_that_waited_together_are_known_by_the_round_trip", "2.3, DECISION", SWIFT, ROWS(compressed)},
	{"the_guard_by_delay_may_be_off", "2.3", SWIFT, .settings = {SET(swift_start, delay_guard, 0)},
	 ROWS(compressed_unguarded)},
	{"a_pair_without_a_gap_is_given_up_for_the_stacks_own_start", "2.3, DECISION", SWIFT, THE_REPORTS,
	 ROWS(compressed_pair)},
	{"a_slope_may_end_before_the_burst", "3.1, DECISION", SWIFT, .settings = {SET(swift_start, slope_acks, 2)},
	 ROWS(short_slope)},
	{"one_ack_for_the_whole_burst_measures_nothing", "DECISION", SWIFT, ROWS(one_ack)},
	{"fewer_than_three_segments_measure_nothing", "DECISION", SWIFT, ROWS(short_burst)},
	{"three_segments_are_a_burst", "DECISION", SWIFT, ROWS(three_are_enough)},
	{"the_window_of_the_route_is_what_it_falls_back_to", "DECISION", SWIFT, ROWS(route_of_30)},
	{"no_window_is_larger_than_max_window", "DECISION", SWIFT, PAIR_AND(max_window_pkts, 20), ROWS(bounded)},
	{"no_estimate_is_larger_than_max_estimate", "DECISION", SWIFT, PAIR_AND(max_estimate_pkts, 20),
	 ROWS(bounded_estimate)},
	{"pacing_may_be_for_the_first_round_trip_only", "footnote 5", SWIFT, PAIR_AND(first_round_only, 1),
	 ROWS(first_round)},
	{"bursts_leave_on_the_ticks_of_the_clock", "4.2, 5", SWIFT, PAIR_AND(clock_us, 10000), ROWS(ticks_of_10_ms)},
	{"the_burst_of_a_transmission_is_a_parameter", "4.2", SWIFT, PAIR_AND(burst_pkts, 1), ROWS(one_a_transmission)},
	{"the_window_may_double", "3.1", SWIFT, PAIR_AND(growth_percent, 200), ROWS(doubling)},
	{"what_the_application_leaves_unused_does_not_grow", "RFC 7661", SWIFT, THE_REPORTS, ROWS(application)},
	{"after_a_pause_the_stack_restarts_as_it_does", "3.1, DECISION", SWIFT, THE_REPORTS, ROWS(rests)},
	{"a_connection_that_rests_before_its_first_data_has_not_started", "DECISION", SWIFT, ROWS(rests_first)},
	{"a_window_at_ssthresh_ends_it", "3.1", SWIFT, THE_REPORTS, ROWS(threshold)},
	{"a_loss_of_the_burst_has_the_usual_penalty", "3.1", SWIFT, ROWS(lost_burst)},
	{"a_mark_of_the_network_is_a_loss", "RFC 3168 6.1.2", SWIFT, THE_REPORTS, ROWS(marked_by_the_network)},
	{"a_lost_handshake_starts_at_one_segment", "RFC 5681 3.1", SWIFT, ROWS(lost_handshake)},
	{"chosen_in_the_middle_of_a_connection_nothing_is_started", "base.h", SWIFT, ROWS(middle)},
};
/* clang-format on */

int main(void)
{
	return run_tables(tables, sizeof(tables) / sizeof(tables[0]));
}
