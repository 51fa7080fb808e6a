/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * su_standard: RFC 5681 3.1 and 4.1, RFC 6928, and the window after a pause by RFC 2861 as Linux
 * computes it (tcp_cwnd_restart).
 */
#include "growth.h"

#define SAYS(reason)	   .want = {.why = SU_WHY_##reason}
#define SETS(reason, pkts) .want = {.why = SU_WHY_##reason, .cwnd_pkts = pkts}
/* clang-format off */
static const struct row default_window[] = {
	{"the stack's own 10 are left as they are", OPEN, .cwnd_pkts = 10, .ssthresh_pkts = INF,
	 SAYS(INITIAL_WINDOW), PROVES(AT_LEAST)},
	{"data leaves", SEND, .cwnd_pkts = 10, .ssthresh_pkts = INF, SAYS(NONE), PROVES(AT_LEAST)},
	{"the stack's slow start goes on", ACK, .time_ms = 400, .sent_pkts = 10, .acked_pkts = 10,
	 .cwnd_pkts = 20, .ssthresh_pkts = INF, SAYS(NONE), PROVES(AT_LEAST)},
	{"a pause is the stack's affair", IDLE, .time_ms = 9400, .sent_pkts = 10, .acked_pkts = 10,
	 .cwnd_pkts = 20, .ssthresh_pkts = INF, .idle_ms = 9000, .rto_ms = 600, SAYS(NONE),
	 PROVES(AT_LEAST)},
	{"and so is the window after it", SEND, .time_ms = 9400, .sent_pkts = 10, .acked_pkts = 10,
	 .cwnd_pkts = 10, .ssthresh_pkts = INF, SAYS(NONE), PROVES(AT_LEAST)},
	{"a loss has the usual penalty", LOSS, SU_LOSS_FAST, .time_ms = 9800, .sent_pkts = 20,
	 .acked_pkts = 12, .cwnd_pkts = 12, .ssthresh_pkts = INF, SAYS(ORDINARY_LOSS),
	 PROVES(AT_LEAST)},
	{"the loss under repair makes the window exact", ACK, .recovery = SU_RECOVERY_FAST,
	 .time_ms = 9801, .sent_pkts = 20, .acked_pkts = 12, .sacked_pkts = 4, .cwnd_pkts = 6,
	 .ssthresh_pkts = 6, SAYS(NONE), PROVES(EXACT)},
	{"and so does congestion avoidance", ACK, .time_ms = 9900, .sent_pkts = 20,
	 .acked_pkts = 20, .cwnd_pkts = 6, .ssthresh_pkts = 6, SAYS(NONE), PROVES(EXACT)},
};

/* path_memory.h, DECISION: no more than was delivered in one round trip. A round trip ends when what
 * had been sent at its beginning is acknowledged. */
static const struct row proven[] = {
	{"an open connection has proven nothing", OPEN, .cwnd_pkts = 10, .ssthresh_pkts = INF,
	 SAYS(INITIAL_WINDOW), PROVES_PKTS(AT_LEAST, 0)},
	{"10 leave", SEND, .cwnd_pkts = 10, .ssthresh_pkts = INF, SAYS(NONE),
	 PROVES_PKTS(AT_LEAST, 0)},
	{"1 of them has come through; the round trip lasts", ACK, .time_ms = 400, .sent_pkts = 10, .acked_pkts = 1,
	 .cwnd_pkts = 10, .ssthresh_pkts = INF, SAYS(NONE), PROVES_PKTS(AT_LEAST, 0)},
	/* 20 / 2 = 10, and 10 were delivered in the first round trip. */
	{"all 10 have", ACK, .time_ms = 400, .sent_pkts = 28, .acked_pkts = 10, .cwnd_pkts = 20,
	 .ssthresh_pkts = INF, SAYS(NONE), PROVES_PKTS(AT_LEAST, 10)},
	/* 38 / 2 = 19, but 28 - 10 = 18 came through in the second round trip. */
	{"18 in the second round trip", ACK, .time_ms = 800, .sent_pkts = 28, .acked_pkts = 28,
	 .cwnd_pkts = 38, .ssthresh_pkts = INF, SAYS(NONE), PROVES_PKTS(AT_LEAST, 18)},
	/* Linux lets cwnd grow to twice what is in flight; 18 remain what came through. */
	{"5 in the third, cwnd stays", ACK, .time_ms = 1200, .sent_pkts = 33, .acked_pkts = 33,
	 .cwnd_pkts = 38, .ssthresh_pkts = INF, SAYS(NONE), PROVES_PKTS(AT_LEAST, 18)},
	{"in avoidance 12 - 1 = 11 is less than 18", ACK, .time_ms = 1600, .sent_pkts = 34,
	 .acked_pkts = 34, .cwnd_pkts = 12, .ssthresh_pkts = 12, SAYS(NONE),
	 PROVES_PKTS(EXACT, 11)},
};

/* "With iw_pkts = 10 nothing is decided here: the stack's own start is left untouched, also where a
 * route gives it another initial window." */
static const struct row window_of_the_route[] = {
	{"ip route ... initcwnd 30", OPEN, .cwnd_pkts = 30, .ssthresh_pkts = INF,
	 SAYS(INITIAL_WINDOW), PROVES(AT_LEAST)},
};

/* RFC 6928 and the paper of 2010: the initial window is a parameter. */
static const struct row larger_window[] = {
	{"30 instead of the stack's 10", OPEN, .cwnd_pkts = 10, .ssthresh_pkts = INF,
	 SETS(INITIAL_WINDOW, 30), PROVES(AT_LEAST)},
	{"once it is set there is nothing to say", SEND, .cwnd_pkts = 30, .ssthresh_pkts = INF,
	 SAYS(NONE), PROVES(AT_LEAST)},
	{"also where the stack has 30 already", OPEN, .cwnd_pkts = 30, .ssthresh_pkts = INF,
	 SETS(INITIAL_WINDOW, 30), PROVES(AT_LEAST)},
};

/* setsockopt(TCP_CONGESTION) in the middle of a connection: the kernel opens it once more. */
static const struct row middle[] = {
	{"cwnd 57 with 60 packets through is no initial window", OPEN, .sent_pkts = 60,
	 .acked_pkts = 60, .cwnd_pkts = 57, .ssthresh_pkts = INF, SAYS(INITIAL_WINDOW),
	 PROVES(AT_LEAST)},
};

static const struct row smaller_window[] = {
	{"3 instead of the stack's 10, as RFC 3390 had it", OPEN, .cwnd_pkts = 10,
	 .ssthresh_pkts = INF, SETS(INITIAL_WINDOW, 3), PROVES(AT_LEAST)},
	/* The stack would restart from min(10, 8) = 8. */
	{"a pause: 8 >> 5 = 0, but not below min(3, 8) = 3", IDLE, .time_ms = 9000, .sent_pkts = 8,
	 .acked_pkts = 8, .cwnd_pkts = 8, .ssthresh_pkts = INF, .idle_ms = 3001, .rto_ms = 600,
	 SAYS(RESTART_WINDOW), PROVES(AT_LEAST)},
	{"3 when data leaves", SEND, .time_ms = 9000, .sent_pkts = 8, .acked_pkts = 8,
	 .cwnd_pkts = 8, .ssthresh_pkts = INF, SETS(RESTART_WINDOW, 3), PROVES(AT_LEAST)},
};

static const struct row window_of_1[] = {
	{"a route says 1, the parameter 30", OPEN, .cwnd_pkts = 1, .ssthresh_pkts = INF,
	 SETS(INITIAL_WINDOW, 30), PROVES(AT_LEAST)},
};

/* RFC 5681 3.1: "If the SYN or SYN/ACK is lost, the initial window used by a sender after a
 * correctly transmitted SYN MUST be one segment". Linux has set 1 by then. */
static const struct row lost_handshake[] = {
	{"1 stays 1, whatever the parameter", OPEN, .cwnd_pkts = 1, .ssthresh_pkts = INF,
	 .handshake_lost = 1, SAYS(HANDSHAKE_LOSS), PROVES(AT_LEAST)},
	{"and data leaves so", SEND, .cwnd_pkts = 1, .ssthresh_pkts = INF, SAYS(NONE),
	 PROVES(AT_LEAST)},
};

/* tcp_cwnd_restart: while ((delta -= rto) > 0 && cwnd > restart_cwnd) cwnd >>= 1. With an RTO of
 * 500 ms a pause of d ms halves once for each k >= 1 with d - 500 k > 0:
 *    501: k = 1                1 halving    400 -> 200
 *   1000: k = 1 (k = 2: 0)     1 halving    400 -> 200
 *   1001: k = 1, 2             2 halvings   400 -> 100
 *   1501: k = 1 .. 3           3 halvings   400 -> 50
 *   2001: k = 1 .. 4           4 halvings   400 -> 25, and not below min(30, 400) = 30 */
#define PAUSE_OF(ms, in_words)                                                                     \
	{"a pause of " in_words, IDLE, .time_ms = 100000 + (ms), .sent_pkts = 500,                 \
	 .acked_pkts = 500, .cwnd_pkts = 400, .ssthresh_pkts = 300, .idle_ms = ms, .rto_ms = 500,  \
	 SAYS(RESTART_WINDOW), PROVES(EXACT)}
#define RESTARTS_WITH(pkts, in_words)                                                              \
	{"restarts with " in_words, SEND, .sent_pkts = 500, .acked_pkts = 500, .cwnd_pkts = 10,    \
	 .ssthresh_pkts = 300, SETS(RESTART_WINDOW, pkts), PROVES(AT_LEAST)}

static const struct row decay[] = {
	PAUSE_OF(501, "1 ms more than the RTO"),      RESTARTS_WITH(200, "400 >> 1"),
	PAUSE_OF(1000, "two RTOs exactly"),           RESTARTS_WITH(200, "400 >> 1"),
	PAUSE_OF(1001, "1 ms more than two RTOs"),    RESTARTS_WITH(100, "400 >> 2"),
	PAUSE_OF(1501, "1 ms more than three RTOs"),  RESTARTS_WITH(50, "400 >> 3"),
	PAUSE_OF(2001, "1 ms more than four RTOs"),   RESTARTS_WITH(30, "min(30, 400), not 25"),
	PAUSE_OF(3600000, "an hour"),                 RESTARTS_WITH(30, "min(30, 400)"),
	{"the next data without a pause is left alone", SEND, .sent_pkts = 530, .acked_pkts = 530,
	 .cwnd_pkts = 60, .ssthresh_pkts = 300, SAYS(NONE), PROVES(AT_LEAST)},
};

/* RFC 5681 4.1: RW = min(IW, cwnd). */
static const struct row never_raised[] = {
	{"a pause with a window of 20", IDLE, .time_ms = 9000, .sent_pkts = 20, .acked_pkts = 20,
	 .cwnd_pkts = 20, .ssthresh_pkts = 20, .idle_ms = 8000, .rto_ms = 500,
	 SAYS(RESTART_WINDOW), PROVES(EXACT)},
	{"restarts with min(30, 20) = 20", SEND, .time_ms = 9000, .sent_pkts = 20,
	 .acked_pkts = 20, .cwnd_pkts = 10, .ssthresh_pkts = 20, SETS(RESTART_WINDOW, 20),
	 PROVES(AT_LEAST)},
};

static const struct row unknown_times[] = {
	{"a pause, and the RTO is not known: as long as any", IDLE, .time_ms = 9000,
	 .sent_pkts = 400, .acked_pkts = 400, .cwnd_pkts = 400, .ssthresh_pkts = 300,
	 .idle_ms = 8000, SAYS(RESTART_WINDOW), PROVES(EXACT)},
	{"restarts with min(30, 400)", SEND, .time_ms = 9000, .sent_pkts = 400, .acked_pkts = 400,
	 .cwnd_pkts = 10, .ssthresh_pkts = 300, SETS(RESTART_WINDOW, 30), PROVES(AT_LEAST)},
	{"a pause whose length is not known", IDLE, .time_ms = 9000, .sent_pkts = 400,
	 .acked_pkts = 400, .cwnd_pkts = 400, .ssthresh_pkts = 300, .rto_ms = 500,
	 SAYS(RESTART_WINDOW), PROVES(EXACT)},
	{"restarts with min(30, 400) too", SEND, .time_ms = 9000, .sent_pkts = 400,
	 .acked_pkts = 400, .cwnd_pkts = 10, .ssthresh_pkts = 300, SETS(RESTART_WINDOW, 30),
	 PROVES(AT_LEAST)},
};

static const struct row forgotten[] = {
	{"a pause", IDLE, .time_ms = 9000, .sent_pkts = 400, .acked_pkts = 400, .cwnd_pkts = 400,
	 .ssthresh_pkts = INF, .idle_ms = 501, .rto_ms = 500, SAYS(RESTART_WINDOW),
	 PROVES(AT_LEAST)},
	{"a loss before data leaves", LOSS, SU_LOSS_TIMEOUT, .time_ms = 9001, .sent_pkts = 400,
	 .acked_pkts = 400, .cwnd_pkts = 10, .ssthresh_pkts = INF, SAYS(ORDINARY_LOSS),
	 PROVES(AT_LEAST)},
	{"the penalty stands", SEND, .time_ms = 9002, .sent_pkts = 400, .acked_pkts = 400,
	 .cwnd_pkts = 1, .ssthresh_pkts = 200, SAYS(NONE), PROVES(AT_LEAST)},
	{"another pause", IDLE, .time_ms = 19000, .sent_pkts = 400, .acked_pkts = 400,
	 .cwnd_pkts = 400, .ssthresh_pkts = INF, .idle_ms = 501, .rto_ms = 500,
	 SAYS(RESTART_WINDOW), PROVES(AT_LEAST)},
	{"a new connection in the same place", OPEN, .cwnd_pkts = 10, .ssthresh_pkts = INF,
	 SETS(INITIAL_WINDOW, 30), PROVES(AT_LEAST)},
	{"knows nothing of it", SEND, .cwnd_pkts = 30, .ssthresh_pkts = INF, SAYS(NONE),
	 PROVES(AT_LEAST)},
};

/* Slow start as the stack's own, but by our verdicts, so that CUBIC's HyStart has no say. */
static const struct row without_hystart[] = {
	{"slow start is ours, the initial window the stack's", OPEN, .cwnd_pkts = 10,
	 .ssthresh_pkts = INF, OURS(INITIAL_WINDOW)},
	TEN_LEAVE,
	{"2 are through: 12", ACK, .time_ms = 100, .srtt_ms = 100, .sent_pkts = 10, .acked_pkts = 2,
	 .cwnd_pkts = 10, .ssthresh_pkts = INF, GROWS_TO(12)},
	{"the rest, long after: no train of ACKs and no delay ends it", ACK, .time_ms = 400,
	 .srtt_ms = 400, .sent_pkts = 14, .acked_pkts = 14, .cwnd_pkts = 12, .ssthresh_pkts = INF,
	 GROWS_TO(24)},
	{"a loss does", LOSS, SU_LOSS_FAST, .time_ms = 500, .srtt_ms = 400, .sent_pkts = 38,
	 .acked_pkts = 14, .sacked_pkts = 3, .lost_pkts = 1, .cwnd_pkts = 24, .ssthresh_pkts = INF,
	 .want = {.why = SU_WHY_ORDINARY_LOSS}, PROVES(AT_LEAST)},
	{"and congestion avoidance is the stack's", ACK, .time_ms = 900, .srtt_ms = 400,
	 .sent_pkts = 38, .acked_pkts = 38, .lost_pkts = 1, .cwnd_pkts = 16, .ssthresh_pkts = 16,
	 THE_STACKS(NONE)},
	{"a pause", IDLE, .time_ms = 9000, .srtt_ms = 400, .sent_pkts = 38, .acked_pkts = 38,
	 .cwnd_pkts = 16, .ssthresh_pkts = 16, .idle_ms = 8000, .rto_ms = 600, THE_STACKS(NONE)},
	{"after it slow start is ours again", SEND, .time_ms = 9000, .srtt_ms = 400, .sent_pkts = 38,
	 .acked_pkts = 38, .cwnd_pkts = 10, .ssthresh_pkts = 16, OURS(SLOW_START)},
};

/* A rule for the destination or the listener stands above the parameter, which is 30 here. */
static const struct row configured[] = {
	{"3 for this destination, not 30", OPEN, .cwnd_pkts = 10, .ssthresh_pkts = INF,
	 .iw_pkts = 3, SETS(INITIAL_WINDOW, 3), PROVES(AT_LEAST)},
	{"10 is set, too, where a route says 20", OPEN, .cwnd_pkts = 20, .ssthresh_pkts = INF,
	 .iw_pkts = 10, SETS(INITIAL_WINDOW, 10), PROVES(AT_LEAST)},
	{"none for this one", OPEN, .cwnd_pkts = 10, .ssthresh_pkts = INF, SETS(INITIAL_WINDOW, 30),
	 PROVES(AT_LEAST)},
	{"a lost handshake is 1 all the same", OPEN, .cwnd_pkts = 1, .ssthresh_pkts = INF,
	 .iw_pkts = 3, .handshake_lost = 1, SAYS(HANDSHAKE_LOSS), PROVES(AT_LEAST)},
	/* 400 >> 4 = 25; not below min(50, 400). */
	{"a pause: the restart window of a rule of 50", IDLE, .time_ms = 9000, .sent_pkts = 500,
	 .acked_pkts = 500, .cwnd_pkts = 400, .ssthresh_pkts = 300, .idle_ms = 2001, .rto_ms = 500,
	 .iw_pkts = 50, SAYS(RESTART_WINDOW), PROVES(EXACT)},
	{"50 when data leaves", SEND, .time_ms = 9000, .sent_pkts = 500, .acked_pkts = 500,
	 .cwnd_pkts = 10, .ssthresh_pkts = 300, SETS(RESTART_WINDOW, 50), PROVES(AT_LEAST)},
};
/* clang-format on */

#define STANDARD   .alg = SU_ALG_STANDARD
#define WITH_IW(n) .settings = {SET(standard, iw_pkts, n)}

static const struct table tables[] = {
	{"with_the_default_initial_window_nothing_is_decided", "RFC 6928; standard.h", STANDARD,
	 ROWS(default_window)},
	{"no_more_is_proven_than_came_through_in_one_round_trip", "TCP Fast Start 3.3.2, DECISION",
	 STANDARD, ROWS(proven)},
	{"with_the_default_the_initial_window_of_the_route_is_kept", "standard.h", STANDARD,
	 ROWS(window_of_the_route)},
	{"a_larger_initial_window_is_set_when_the_connection_opens", "RFC 5681 3.1, RFC 6928",
	 STANDARD, WITH_IW(30), ROWS(larger_window)},
	{"a_start_up_chosen_in_the_middle_of_a_connection_leaves_its_window", "base.h", STANDARD,
	 WITH_IW(30), ROWS(middle)},
	{"a_smaller_initial_window_is_set_and_is_the_restart_window", "RFC 5681 3.1 and 4.1",
	 STANDARD, WITH_IW(3), ROWS(smaller_window)},
	{"a_lost_handshake_starts_at_one_segment", "RFC 5681 3.1", STANDARD, WITH_IW(30),
	 ROWS(lost_handshake)},
	{"an_initial_window_of_1_is_no_lost_handshake", "RFC 6928", STANDARD, WITH_IW(30),
	 ROWS(window_of_1)},
	{"the_window_halves_for_each_rto_of_the_pause", "RFC 2861; tcp_cwnd_restart", STANDARD,
	 WITH_IW(30), ROWS(decay)},
	{"a_pause_never_raises_the_window", "RFC 5681 4.1", STANDARD, WITH_IW(30),
	 ROWS(never_raised)},
	{"without_an_rto_or_a_length_a_pause_is_long", "RFC 5681 4.1", STANDARD, WITH_IW(30),
	 ROWS(unknown_times)},
	{"without_hystart_nothing_but_a_loss_or_ssthresh_ends_slow_start", "RFC 5681 3.1", STANDARD,
	 .settings = {SET(standard, hystart, 0)}, ROWS(without_hystart)},
	{"a_rule_for_the_destination_or_the_listener_stands_above_the_parameter", "standard.h",
	 STANDARD, WITH_IW(30), ROWS(configured)},
	{"a_loss_or_a_new_connection_forgets_the_restart_window", "RFC 5681 3.1", STANDARD,
	 WITH_IW(30), ROWS(forgotten)},
};

int main(void)
{
	return run_tables(tables, sizeof(tables) / sizeof(tables[0]));
}
