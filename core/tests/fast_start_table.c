/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * su_fast_start: Padmanabhan and Katz, "TCP Fast Start", 1998; sections are quoted as "3.3.1".
 * Unless a table says otherwise the path is known with a window of 35 packets of 1000 bytes,
 * ssthresh 64 and a round trip of 400 ms, and the stack leaves its first 10 packets unpaced, so
 * that the window leaves at (35 - 10) * 1000 bytes / 0.4 s = 62500 bytes/s (3.3.3).
 */
#include "table.h"

#define OPEN SU_EVENT_OPEN
#define IDLE SU_EVENT_IDLE
#define SEND SU_EVENT_SEND
#define ACK  SU_EVENT_ACK
#define LOSS SU_EVENT_LOSS

#define FAST	SU_LOSS_FAST
#define TIMEOUT SU_LOSS_TIMEOUT

/* What the verdict must be. The floor of the reset timer is reset_floor_us = 50 ms while a window
 * waits or is out (3.3.4), and bursts are of maxburst = 4 packets (3.3.3). */
#define NATIVE(reason) .want = {.why = SU_WHY_##reason}
#define ARMS(reason, cwnd, ssthresh)                                                               \
	.want = {.phase = SU_PHASE_ARMED,                                                          \
		 .why = SU_WHY_##reason,                                                           \
		 .burst_pkts = 1,                                                                  \
		 .rto_min_us = 50000,                                                              \
		 .cwnd_pkts = cwnd,                                                                \
		 .ssthresh_pkts = ssthresh}
#define ARMED(reason) ARMS(reason, 0, 0)
#define STARTS_UNLIKE(reason, cwnd, ssthresh, rate, burst, floor_us, from, to)                     \
	.want = {.phase = SU_PHASE_OPEN_LOOP,                                                      \
		 .why = SU_WHY_##reason,                                                           \
		 .cwnd_pkts = cwnd,                                                                \
		 .ssthresh_pkts = ssthresh,                                                        \
		 .pacing_bytes_per_s = rate,                                                       \
		 .burst_pkts = burst,                                                              \
		 .rto_min_us = floor_us,                                                           \
		 .mark_from_byte = from,                                                           \
		 .mark_to_byte = to}
#define STARTS(cwnd, ssthresh, rate, from)                                                         \
	STARTS_UNLIKE(STARTED, cwnd, ssthresh, rate, 4, 50000, from, SU_BUT_LAST)
#define OPEN_LOOP(rate, from) STARTS_UNLIKE(NONE, 0, 0, rate, 4, 50000, from, SU_BUT_LAST)
#define CLOCKED(reason)                                                                            \
	.want = {.phase = SU_PHASE_CLOCKED, .why = SU_WHY_##reason, .rto_min_us = 50000}
#define RECOVERING(reason, cwnd, ssthresh, recovery_cwnd)                                          \
	.want = {.phase = SU_PHASE_RECOVERING,                                                     \
		 .why = SU_WHY_##reason,                                                           \
		 .cwnd_pkts = cwnd,                                                                \
		 .ssthresh_pkts = ssthresh,                                                        \
		 .recovery_cwnd_pkts = recovery_cwnd}
#define RECOVERED(cwnd, ssthresh)                                                                  \
	.want = {.why = SU_WHY_RECOVERED, .cwnd_pkts = cwnd, .ssthresh_pkts = ssthresh}

/* How most stories begin. */
#define NEW_CONNECTION OPEN, .srtt_ms = 380, .cwnd_pkts = 10, .ssthresh_pkts = INF
#define ARMED_BY_THE_PATH                                                                          \
	{                                                                                          \
		"the path is known", NEW_CONNECTION, ARMS(PATH_KNOWN, 35, 64)                      \
	}
#define THE_WINDOW_LEAVES                                                                          \
	{                                                                                          \
		"the window begins to leave", SEND, .srtt_ms = 380, .cwnd_pkts = 35,               \
						    .ssthresh_pkts = 64, .unpaced_pkts = 10,       \
						    STARTS(0, 64, 62500, 1)                        \
	}
#define AN_ACK(at_ms, sent, acked, sacked)                                                         \
	ACK, .time_ms = at_ms, .srtt_ms = 400, .sent_pkts = sent, .acked_pkts = acked,             \
	     .sacked_pkts = sacked, .cwnd_pkts = 35, .ssthresh_pkts = 64
#define A_LOSS(kind, at_ms, sent, acked, sacked)                                                   \
	LOSS, .loss = kind, .time_ms = at_ms, .srtt_ms = 400, .sent_pkts = sent,                   \
	      .acked_pkts = acked, .sacked_pkts = sacked, .cwnd_pkts = 35, .ssthresh_pkts = 64
#define THE_FIRST_ACK                                                                              \
	{                                                                                          \
		"the first ACK", AN_ACK(400, 35, 1, 0), CLOCKED(ACK_CLOCK)                         \
	}
/* Two rows; the connection is 60 packets old then. The most in one round trip: 60 - 20 = 40. */
#define A_ROUND_TRIP_OF_40                                                                         \
	{"the first 20 packets come through, 60 are out", AN_ACK(400, 60, 20, 0), NATIVE(NONE),    \
	 PROVES(AT_LEAST)},                                                                        \
	{                                                                                          \
		"the other 40 come through", AN_ACK(800, 60, 60, 0), NATIVE(NONE),                 \
			PROVES(AT_LEAST)                                                           \
	}

#include "fast_start_window.h"
#include "fast_start_recovery.h"

static const struct su_path known = {.cwnd_pkts = 35, .ssthresh_pkts = 64, .srtt_us = 400000};
static const struct su_path nothing_known = {.ssthresh_pkts = 64, .srtt_us = 400000};
static const struct su_path half_an_hour_old = {
	.age_us = 1800000000ull, .cwnd_pkts = 35, .ssthresh_pkts = 64, .srtt_us = 400000};
static const struct su_path older = {
	.age_us = 1800000001ull, .cwnd_pkts = 35, .ssthresh_pkts = 64, .srtt_us = 400000};
static const struct su_path of_10 = {.cwnd_pkts = 10, .ssthresh_pkts = 64, .srtt_us = 400000};
static const struct su_path of_11 = {.cwnd_pkts = 11, .ssthresh_pkts = 64, .srtt_us = 400000};
static const struct su_path of_20 = {.cwnd_pkts = 20, .ssthresh_pkts = 64, .srtt_us = 400000};
static const struct su_path without_rtt = {.cwnd_pkts = 35, .ssthresh_pkts = 64};
/* 4 000 s for a round trip: 1 packet of 1000 bytes takes less than a byte each second. */
static const struct su_path slow = {.cwnd_pkts = 11, .ssthresh_pkts = 64, .srtt_us = 4000000000u};

#define FAST_START  .alg = SU_ALG_FAST_START
#define TO(path_is) .path = &(path_is)
#define WITH(p, to) .settings = {SET(fast_start, p, to)}

/* clang-format off */
static const struct table tables[] = {
	/* fast_start_window.h */
	{"a_whole_window_that_gets_through_is_validated", "3.3.1, 3.3.2", FAST_START, TO(known),
	 ROWS(validated)},
	{"fast_start_leaves_the_first_packet_unmarked", "3.3.1", FAST_START, TO(known),
	 ROWS(first_unmarked)},
	{"a_small_response_does_not_spend_the_window", "3.3.1, DECISION", FAST_START, TO(known),
	 ROWS(small_response)},
	{"a_response_without_a_pause_never_lowers_the_window_of_the_stack", "3.1", FAST_START, TO(known),
	 ROWS(never_lowers)},
	{"nothing_is_paced_where_the_stack_paces_nothing", "3.3.3, DEVIATES", FAST_START, TO(known),
	 ROWS(unpaced)},
	{"the_larger_of_handshake_and_cached_round_trip_paces", "3.3.2, DECISION", FAST_START,
	 TO(known), ROWS(larger_rtt)},
	{"the_rate_is_never_zero", "3.3.3", FAST_START, TO(slow), ROWS(slow_path)},
	{"the_largest_burst_is_a_parameter", "3.3.3", FAST_START, TO(known),
	 WITH(maxburst_pkts, 2), ROWS(smaller_bursts)},
	{"without_pacing_the_window_leaves_at_once", "3.3.3", FAST_START, TO(known),
	 WITH(pacing, 0), ROWS(without_pacing)},
	{"by_the_letter_all_but_the_first_packet_are_marked", "3.3.1", FAST_START, TO(known),
	 WITH(mark_last, 1), ROWS(by_the_letter)},
	{"without_drop_priority_nothing_is_marked", "3.2", FAST_START, TO(known),
	 WITH(drop_priority, 0), ROWS(without_priority)},
	{"a_path_older_than_max_age_is_not_used", "3.3.1, DECISION", FAST_START, TO(older),
	 ROWS(stale)},
	{"a_path_as_old_as_max_age_is_used", "3.3.1, DECISION", FAST_START, TO(half_an_hour_old),
	 ROWS(not_stale)},
	{"max_age_is_a_parameter", "3.3.1, DECISION", FAST_START, TO(half_an_hour_old),
	 WITH(max_age_s, 1799), ROWS(stale)},
	{"a_path_of_which_nothing_is_known_is_started_as_usual", "3.1", FAST_START, ROWS(unknown)},
	{"a_path_without_a_window_is_not_known", "3.1", FAST_START, TO(nothing_known),
	 ROWS(unknown)},
	{"a_lost_handshake_is_not_started_fast", "RFC 5681 3.1", FAST_START, TO(known),
	 ROWS(lost_handshake)},
	{"an_initial_window_of_1_is_no_lost_handshake", "3.3.1", FAST_START, TO(known),
	 ROWS(window_of_1)},
	{"a_window_of_10_is_no_larger_than_the_stacks_own", "RFC 6928", FAST_START, TO(of_10),
	 ROWS(small_path)},
	{"a_window_of_11_is_used", "RFC 6928", FAST_START, TO(of_11), ROWS(least_path)},
	{"a_route_with_a_larger_initial_window_is_not_started_lower", "base.h, PATH_SMALL",
	 FAST_START, TO(of_20), ROWS(larger_initial_window)},
	{"a_start_up_chosen_in_the_middle_of_a_connection_takes_no_window_for_the_initial_one",
	 "base.h", FAST_START, ROWS(middle)},
	{"without_a_round_trip_time_nothing_is_paced_and_nothing_started", "3.3.3", FAST_START,
	 TO(without_rtt), ROWS(without_a_round_trip)},
	{"a_window_is_never_larger_than_max_window", "DECISION", FAST_START, TO(known),
	 WITH(max_window_pkts, 20), ROWS(capped)},
	{"without_sack_nothing_is_started_by_default", "3.3.4, DEVIATES", FAST_START, TO(known),
	 .no_sack = 1, ROWS(no_sack)},
	{"after_a_pause_half_of_the_window_of_slow_start_is_used", "3.3.2", FAST_START,
	 ROWS(resumed_slow_start)},
	{"after_a_pause_one_less_than_the_window_of_avoidance_is_used", "3.3.2", FAST_START,
	 ROWS(resumed_avoidance)},
	{"after_a_pause_no_more_is_used_than_came_through_in_a_round_trip", "3.3.2, DECISION",
	 FAST_START, ROWS(resumed_delivered)},
	{"after_a_short_pause_the_larger_window_of_the_stack_stands", "3.3.2, DECISION",
	 FAST_START, ROWS(short_pause)},
	{"a_pause_longer_than_max_age_is_not_started", "3.3.1, DECISION", FAST_START,
	 ROWS(long_pause)},
	{"a_pause_with_a_small_window_is_not_started", "3.3.2", FAST_START, ROWS(small_pause)},
	{"a_window_not_used_whole_stands_after_a_pause", "3.3.2, DECISION", FAST_START, TO(known),
	 ROWS(stands)},
	/* fast_start_recovery.h */
	{"the_reset_timer_cuts_cwnd_to_one_and_keeps_ssthresh", "3.3.4, slow start without penalty",
	 FAST_START, TO(known), WITH(timeout_window_pkts, 1), ROWS(reset_timer)},
	{"by_default_the_slow_start_after_the_timer_begins_as_the_standard_does", "3.3.4, DECISION",
	 FAST_START, TO(known), ROWS(reset_timer_today)},
	{"with_sack_the_losses_are_repaired_without_penalty", "3.3.4, DECISION", FAST_START,
	 TO(known), ROWS(repaired)},
	{"a_repair_begins_with_the_initial_window_of_the_stack", "3.3.4, DECISION", FAST_START,
	 TO(known), ROWS(repaired_from_30)},
	{"a_repair_never_has_a_larger_window_than_the_start", "3.3.4, DECISION", FAST_START,
	 TO(known), ROWS(capped_repair)},
	{"a_repair_that_loses_more_than_can_have_been_lost_at_first_is_congestion",
	 "3.3.4, DECISION", FAST_START, TO(known), ROWS(lost_again)},
	{"the_ack_that_shows_a_loss_ends_the_open_loop_too", "3.3.1, 3.3.4", FAST_START, TO(known),
	 ROWS(loss_by_first_ack)},
	{"a_timeout_in_fast_recovery_is_slow_start_without_penalty", "3.3.4", FAST_START,
	 TO(known), WITH(timeout_window_pkts, 1), ROWS(timeout_in_recovery)},
	{"without_sack_a_partial_ack_starts_slow_start_at_once", "3.3.4, multiple losses",
	 FAST_START, TO(known), WITH(require_sack, 0), .no_sack = 1, ROWS(partial_ack)},
	{"a_loss_of_the_first_packet_is_an_ordinary_loss", "3.3.4", FAST_START, TO(known),
	 ROWS(first_lost)},
	{"a_loss_beyond_the_window_is_an_ordinary_loss", "3.3.1, 3.3.4", FAST_START, TO(known),
	 ROWS(beyond)},
	{"a_loss_beyond_the_window_during_its_repair_is_ordinary", "3.3.4", FAST_START, TO(known),
	 ROWS(beyond_in_repair)},
	{"a_mark_of_the_network_is_an_ordinary_loss", "RFC 3168 6.1.2", FAST_START, TO(known),
	 ROWS(ecn)},
	{"without_quick_recovery_a_loss_of_the_window_is_ordinary", "4, fs-pdrop-noflr",
	 FAST_START, TO(known), WITH(quick_recovery, 0), ROWS(no_quick_recovery)},
	{"a_loss_before_the_start_is_an_ordinary_loss", "3.3.4", FAST_START, TO(known),
	 ROWS(before)},
	{"nothing_is_validated_while_the_stack_repairs", "3.3.2", FAST_START, TO(known),
	 ROWS(not_while_repairing)},
	{"a_pause_forgets_that_a_start_failed", "3.3.2", FAST_START, TO(known), ROWS(forgets)},
	{"the_timeout_of_one_start_is_forgotten_by_the_next", "3.3.4", FAST_START, TO(known),
	 ROWS(second_start)},
	{"a_pause_in_the_middle_of_a_repair_has_no_window_to_go_by", "3.3.2, DECISION", FAST_START,
	 TO(known), ROWS(pause_in_repair)},
};
/* clang-format on */

int main(void)
{
	return run_tables(tables, sizeof(tables) / sizeof(tables[0]));
}
