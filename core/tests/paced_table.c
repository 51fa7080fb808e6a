/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * su_paced: Partridge et al., "A Swifter Start for TCP", 2002, 4.3: slow start, paced, with no
 * estimate. Unless a table says otherwise the round trip is 100 ms and segments are of 1000 bytes:
 * n segments over a round trip are n * 10000 bytes/s.
 */
#include "table.h"

#define OPEN SU_EVENT_OPEN
#define IDLE SU_EVENT_IDLE
#define SEND SU_EVENT_SEND
#define LOSS SU_EVENT_LOSS

#define OWNED(in_phase, reason, cwnd, rate, burst)                                                 \
	.want = {.phase = SU_PHASE_##in_phase,                                                     \
		 .why = SU_WHY_##reason,                                                           \
		 .owns_slow_start = 1,                                                             \
		 .cwnd_pkts = cwnd,                                                                \
		 .pacing_bytes_per_s = rate,                                                       \
		 .burst_pkts = burst},                                                             \
	PROVES(AT_LEAST)
#define PACED(reason, cwnd, rate)    OWNED(SLOW_START, reason, cwnd, rate, 2)
#define NATIVE(reason, cwnd)	     .want = {.why = SU_WHY_##reason, .cwnd_pkts = cwnd}
#define STANDARD_AGAIN(reason, cwnd) NATIVE(reason, cwnd), PROVES(AT_LEAST)

#define AN_ACK(at_ms, sent, acked, cwnd)                                                           \
	SU_EVENT_ACK, .time_ms = at_ms, .srtt_ms = 100, .sent_pkts = sent, .acked_pkts = acked,    \
		      .cwnd_pkts = cwnd, .ssthresh_pkts = INF

#define OPENS_WITH(iw)                                                                             \
	{                                                                                          \
		"the connection opens", OPEN, .srtt_ms = 100, .cwnd_pkts = 10,                     \
					      .ssthresh_pkts = INF,                                \
					      OWNED(ARMED, INITIAL_WINDOW, iw, 0, 0)               \
	}
#define LEAVES_WITH(iw, rate)                                                                      \
	{                                                                                          \
		"its window leaves, over a round trip", SEND,                                      \
			.time_ms = 1000, .srtt_ms = 100, .cwnd_pkts = iw, .ssthresh_pkts = INF,    \
			PACED(STARTED, iw, rate)                                                   \
	}

/* clang-format off */
/* "The slow start algorithm of doubling the congestion window every round-trip time". */
static const struct row doubling[] = {
	OPENS_WITH(4), LEAVES_WITH(4, 40000),
	/* The round trip leads to 8. */
	{"one of the four is through", AN_ACK(1100, 4, 1, 4), PACED(NONE, 5, 80000)},
	/* The next leads to 16. */
	{"all four are", AN_ACK(1110, 8, 4, 5), PACED(NONE, 8, 160000)},
	{"7 of the 8 are through", AN_ACK(1210, 20, 11, 8), PACED(NONE, 15, 160000)},
	{"all 8 are", AN_ACK(1211, 22, 12, 15), PACED(NONE, 16, 320000)},
	{"a loss has the usual penalty and ends the pacing", LOSS, SU_LOSS_FAST, .time_ms = 1400,
	 .srtt_ms = 100, .sent_pkts = 28, .acked_pkts = 14, .lost_pkts = 1, .cwnd_pkts = 16,
	 .ssthresh_pkts = INF, STANDARD_AGAIN(ORDINARY_LOSS, 0)},
	{"all the rest is the stack's", AN_ACK(1500, 40, 30, 8), STANDARD_AGAIN(NONE, 0)},
};

/* Table 1: 4, 6, 9, 14, 21. */
static const struct row by_a_half[] = {
	OPENS_WITH(4), LEAVES_WITH(4, 40000),
	{"4 through", AN_ACK(1100, 4, 4, 4), PACED(NONE, 6, 90000)},
	{"6 through", AN_ACK(1200, 10, 10, 6), PACED(NONE, 9, 140000)},
	{"9 through: 4.5 is 5", AN_ACK(1300, 19, 19, 9), PACED(NONE, 14, 210000)},
	{"14 through", AN_ACK(1400, 33, 33, 14), PACED(NONE, 21, 320000)},
};

static const struct row window_of_10[] = {
	OPENS_WITH(10), LEAVES_WITH(10, 100000),
	{"one of the ten is through", AN_ACK(1100, 10, 1, 10), PACED(NONE, 11, 200000)},
};

/* Footnote 5, after the initial window: the 8 are paced, then standard. */
static const struct row first_round[] = {
	OPENS_WITH(4), LEAVES_WITH(4, 40000),
	{"all four are through", AN_ACK(1100, 4, 4, 4), PACED(NONE, 8, 160000)},
	{"7 of the 8 are", AN_ACK(1210, 20, 11, 8), PACED(NONE, 15, 160000)},
	{"all 8 are", AN_ACK(1211, 22, 12, 15), STANDARD_AGAIN(FIRST_ROUND, 16)},
	{"standard", AN_ACK(1220, 24, 13, 17), STANDARD_AGAIN(NONE, 0)},
};

static const struct row bounded[] = {
	OPENS_WITH(4), LEAVES_WITH(4, 40000),
	{"4 through", AN_ACK(1100, 4, 4, 4), PACED(NONE, 8, 160000)},
	{"8 through: 10, not 16", AN_ACK(1200, 12, 12, 8), STANDARD_AGAIN(MAX_WINDOW, 10)},
};
static const struct row bounded_at_once[] = {
	OPENS_WITH(10), LEAVES_WITH(10, 100000),
	{"10 through", AN_ACK(1100, 10, 10, 10), STANDARD_AGAIN(MAX_WINDOW, 10)},
};

/* 4 in 100 ms: two each 50 ms, a multiple of 10. 8: two each 25, and so each 30: 66666 bytes/s. */
static const struct row ticks_of_10_ms[] = {
	OPENS_WITH(4), LEAVES_WITH(4, 40000),
	{"one of the four is through", AN_ACK(1100, 4, 1, 4), PACED(NONE, 5, 66666)},
};

static const struct row without_rtt[] = {
	{"the connection opens", OPEN, .cwnd_pkts = 10, .ssthresh_pkts = INF,
	 OWNED(ARMED, INITIAL_WINDOW, 4, 0, 0)},
	{"its window leaves", SEND, .time_ms = 1000, .cwnd_pkts = 4, .ssthresh_pkts = INF,
	 OWNED(SLOW_START, STARTED, 4, 0, 0)},
	{"the first ACK measures it", AN_ACK(1100, 4, 1, 4), PACED(NONE, 5, 80000)},
};

static const struct row application[] = {
	OPENS_WITH(4), LEAVES_WITH(4, 40000),
	{"the application had one", AN_ACK(1100, 1, 1, 4), .app_limited = 1, PACED(NONE, 4, 40000)},
	{"more data: a window over a round trip", SEND, .time_ms = 1250, .srtt_ms = 100, .sent_pkts = 1,
	 .acked_pkts = 1, .cwnd_pkts = 4, .ssthresh_pkts = INF, PACED(NONE, 0, 40000)},
	{"that is used whole", AN_ACK(1350, 5, 2, 4), PACED(NONE, 5, 80000)},
};

static const struct row rests[] = {
	OPENS_WITH(4),
	{"a rest before the first data", IDLE, .time_ms = 900, .srtt_ms = 100, .cwnd_pkts = 4,
	 .ssthresh_pkts = INF, .idle_ms = 900, .rto_ms = 300, OWNED(ARMED, NONE, 0, 0, 0)},
	LEAVES_WITH(4, 40000),
	{"a pause", IDLE, .time_ms = 9000, .srtt_ms = 100, .sent_pkts = 4, .acked_pkts = 4, .cwnd_pkts = 8,
	 .ssthresh_pkts = INF, .idle_ms = 7000, .rto_ms = 300, STANDARD_AGAIN(PAUSED, 0)},
	{"the stack restarts", SEND, .time_ms = 9000, .srtt_ms = 100, .sent_pkts = 4, .acked_pkts = 4,
	 .cwnd_pkts = 8, .ssthresh_pkts = INF, STANDARD_AGAIN(NONE, 0)},
};

static const struct row threshold[] = {
	OPENS_WITH(4), LEAVES_WITH(4, 40000),
	{"6, not 8", SU_EVENT_ACK, .time_ms = 1100, .srtt_ms = 100, .sent_pkts = 4, .acked_pkts = 4,
	 .cwnd_pkts = 4, .ssthresh_pkts = 6, PACED(NONE, 6, 120000)},
	{"slow start is over", SU_EVENT_ACK, .time_ms = 1200, .srtt_ms = 100, .sent_pkts = 10, .acked_pkts = 10,
	 .cwnd_pkts = 6, .ssthresh_pkts = 6, NATIVE(SSTHRESH, 0), PROVES(EXACT)},
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
};

#define PACED_START .alg = SU_ALG_PACED
#define WITH(p, to) .settings = {SET(paced, p, to)}

static const struct table tables[] = {
	{"the_window_doubles_each_round_trip_and_is_spread_over_it", "4.3", PACED_START, ROWS(doubling)},
	{"the_window_may_grow_by_a_half", "3.1, Table 1", PACED_START, WITH(growth_percent, 150), ROWS(by_a_half)},
	{"the_initial_window_is_a_parameter", "RFC 6928", PACED_START, WITH(iw_pkts, 10), ROWS(window_of_10)},
	{"pacing_may_be_for_the_first_round_trip_only", "footnote 5", PACED_START, WITH(first_round_only, 1),
	 ROWS(first_round)},
	{"no_window_is_larger_than_max_window", "DECISION", PACED_START, WITH(max_window_pkts, 10), ROWS(bounded)},
	{"nor_is_the_initial_one", "DECISION", PACED_START,
	 .settings = {SET(paced, max_window_pkts, 10), SET(paced, iw_pkts, 30)}, ROWS(bounded_at_once)},
	{"bursts_leave_on_the_ticks_of_the_clock", "4.2, 5", PACED_START, WITH(clock_us, 10000), ROWS(ticks_of_10_ms)},
	{"without_a_round_trip_time_nothing_is_paced", "DECISION", PACED_START, ROWS(without_rtt)},
	{"what_the_application_leaves_unused_does_not_grow", "RFC 7661", PACED_START, ROWS(application)},
	{"after_a_pause_the_stack_restarts_as_it_does", "3.1, DECISION", PACED_START, ROWS(rests)},
	{"a_window_at_ssthresh_ends_it", "3.1", PACED_START, ROWS(threshold)},
	{"a_lost_handshake_starts_at_one_segment", "RFC 5681 3.1", PACED_START, ROWS(lost_handshake)},
	{"chosen_in_the_middle_of_a_connection_nothing_is_started", "base.h", PACED_START, ROWS(middle)},
};
/* clang-format on */

int main(void)
{
	return run_tables(tables, sizeof(tables) / sizeof(tables[0]));
}
