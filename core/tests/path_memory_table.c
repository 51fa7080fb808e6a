/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * What connections teach about a path: TCP Fast Start 3.3.2 and the decisions of path_memory.h.
 */
#include "table.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* ------------------------------------------------- one look at a connection */

struct look {
	const char *what;
	uint32_t cwnd_pkts;
	uint32_t ssthresh_pkts;
	enum su_recovery recovery;
	uint32_t most_pkts;   /* delivered in one round trip */
	uint32_t window_pkts; /* expected: the last window that got through */
	enum su_evidence evidence;
};

#define ENOUGH 1000 /* pkts */

/* 3.3.2: "In the former case [slow start], cwnd is set to half its old value. In the latter case
 * [congestion avoidance], it is set to its old value minus 1 segment." RFC 5681 3.1: slow start is
 * cwnd < ssthresh; we count equal as avoidance, as Linux does. */
static const struct look slow_start_and_avoidance[] = {
	{"slow start, no threshold yet: 70 / 2", 70, INF, SU_RECOVERY_OPEN, ENOUGH, 35,
	 SU_EVIDENCE_AT_LEAST},
	{"slow start, odd: 71 / 2 is rounded down", 71, INF, SU_RECOVERY_OPEN, ENOUGH, 35,
	 SU_EVIDENCE_AT_LEAST},
	{"one below the threshold is slow start: 40 / 2", 40, 41, SU_RECOVERY_OPEN, ENOUGH, 20,
	 SU_EVIDENCE_AT_LEAST},
	{"at the threshold is avoidance: 41 - 1", 41, 41, SU_RECOVERY_OPEN, ENOUGH, 40,
	 SU_EVIDENCE_EXACT},
	{"above the threshold is avoidance: 100 - 1", 100, 41, SU_RECOVERY_OPEN, ENOUGH, 99,
	 SU_EVIDENCE_EXACT},
	{"a window of 1 in slow start proves nothing: 1 / 2", 1, INF, SU_RECOVERY_OPEN, ENOUGH, 0,
	 SU_EVIDENCE_AT_LEAST},
	{"a window of 1 in avoidance proves nothing: 1 - 1", 1, 1, SU_RECOVERY_OPEN, ENOUGH, 0,
	 SU_EVIDENCE_EXACT},
	{"no window at all is not less than none", 0, 0, SU_RECOVERY_OPEN, ENOUGH, 0,
	 SU_EVIDENCE_EXACT},
};

/* DECISION in path_memory.h: while a loss is being repaired, ssthresh is what the stack makes of
 * the window; never more than cwnd. */
static const struct look repairing[] = {
	{"fast recovery: ssthresh 20 of cwnd 50", 50, 20, SU_RECOVERY_FAST, ENOUGH, 20,
	 SU_EVIDENCE_EXACT},
	{"fast recovery: cwnd 12 is the less", 12, 20, SU_RECOVERY_FAST, ENOUGH, 12,
	 SU_EVIDENCE_EXACT},
	{"after a timeout: cwnd 1 is the less", 1, 35, SU_RECOVERY_TIMEOUT, ENOUGH, 1,
	 SU_EVIDENCE_EXACT},
	{"the threshold was kept and is infinite: half of cwnd", 70, INF, SU_RECOVERY_FAST, ENOUGH,
	 35, SU_EVIDENCE_EXACT},
};

/* DECISION in path_memory.h: "no more than was delivered in one round trip". */
static const struct look delivered[] = {
	{"slow start: 684 in a round trip, and cwnd 1740 is not to be believed", 1740, INF,
	 SU_RECOVERY_OPEN, 684, 684, SU_EVIDENCE_AT_LEAST},
	{"slow start: all of 1740 / 2 came through", 1740, INF, SU_RECOVERY_OPEN, 870, 870,
	 SU_EVIDENCE_AT_LEAST},
	{"avoidance", 100, 41, SU_RECOVERY_OPEN, 30, 30, SU_EVIDENCE_EXACT},
	{"fast recovery", 50, 20, SU_RECOVERY_FAST, 15, 15, SU_EVIDENCE_EXACT},
	{"nothing came through yet", 10, INF, SU_RECOVERY_OPEN, 0, 0, SU_EVIDENCE_AT_LEAST},
};

static void run_looks(struct tap *tap, const char *name, const char *source,
		      const struct look *looks, size_t count)
{
	size_t i;

	printf("# %s (%s)\n", name, source);
	for (i = 0; i < count; i++) {
		const struct look *look = &looks[i];
		struct checking c = checking_row(name, i + 1, look->what);
		struct su_event ev = {.cwnd_pkts = look->cwnd_pkts,
				      .ssthresh_pkts = look->ssthresh_pkts,
				      .recovery = (uint8_t)look->recovery};
		struct su_rounds rounds = {.most_pkts = look->most_pkts};
		struct su_proof proof = su_proof_of(&ev, &rounds);

		expect(&c, "window_pkts", look->window_pkts, proof.window_pkts);
		expect(&c, "evidence", look->evidence, proof.evidence);
		report_row(tap, &c);
	}
}

/* ---------------------------------------------------------- round trips */

struct ack {
	const char *what;
	uint32_t sent_pkts;
	uint32_t acked_pkts;
	uint32_t sacked_pkts; /* beyond that */
	uint32_t lost_pkts;   /* thought lost so far */
	uint32_t most_pkts;   /* expected: the most in one round trip so far */
};

static const struct ack acks[] = {
	{"the first ACK of 3", 10, 3, 0, 0, 3},
	{"before packet 10 is acknowledged the round trip lasts", 20, 9, 0, 0, 3},
	{"10 ends it: 10 - 3", 24, 10, 0, 0, 7},
	{"before 24 nothing is counted, whatever comes selectively", 30, 15, 14, 0, 7},
	{"24 ends it; what came selectively was delivered too: 24 + 6 - 10", 40, 24, 6, 0, 20},
	{"a smaller round trip changes nothing: 41 - 30", 41, 41, 0, 0, 20},
	{"nor does a pause: 42 - 41", 81, 42, 0, 0, 20},
	{"81 - 42 = 39, but 2 were lost on the way: a round trip that is not believed", 110, 81, 0,
	 2, 20},
	{"110 - 81 = 29 without another loss are", 110, 110, 0, 2, 29},
};

static void run_acks(struct tap *tap)
{
	const char *name = "a_round_trip_ends_when_what_was_sent_at_its_beginning_is_acknowledged";
	struct su_rounds rounds = {0};
	size_t i;

	printf("# %s (path_memory.h, DECISION)\n", name);
	for (i = 0; i < COUNT(acks); i++) {
		struct checking c = checking_row(name, i + 1, acks[i].what);
		struct su_event ev = {.sent_bytes = (uint64_t)acks[i].sent_pkts * MSS,
				      .acked_bytes = (uint64_t)acks[i].acked_pkts * MSS,
				      .delivered_pkts = acks[i].acked_pkts + acks[i].sacked_pkts,
				      .lost_pkts = acks[i].lost_pkts};

		su_rounds_on_ack(&rounds, &ev);
		expect(&c, "most_pkts", acks[i].most_pkts, rounds.most_pkts);
		report_row(tap, &c);
	}
}

/* --------------------------------------------- one connection after another */

/* Each row is the end of a connection, and the memory that must be left. */
struct lesson {
	const char *what;
	struct su_event ev;
	enum su_evidence evidence;
	int changed;
	struct su_path left; /* expected; age and samples too */
};

/* clang-format off */
#define ENDED(cwnd, ssthresh, state, srtt, rttvar, min_rtt, delivered)                             \
	{.cwnd_pkts = cwnd, .ssthresh_pkts = ssthresh, .recovery = state, .srtt_us = srtt,         \
	 .rttvar_us = rttvar, .min_rtt_us = min_rtt, .delivered_pkts = delivered}
#define LEFT(cwnd, ssthresh, srtt, rttvar, min_rtt, how, times)                                    \
	{.cwnd_pkts = cwnd, .ssthresh_pkts = ssthresh, .srtt_us = srtt, .rttvar_us = rttvar,       \
	 .min_rtt_us = min_rtt, .ended = how, .samples = times}

/* DECISION in path_memory.h: slow start only raises; avoidance and loss decide. */
static const struct lesson short_transfers[] = {
	{"the first connection, 70 in slow start: 35, and its times as they are",
	 ENDED(70, INF, SU_RECOVERY_OPEN, 400000, 9000, 390000, 60), SU_EVIDENCE_AT_LEAST, 1,
	 LEFT(35, INF, 400000, 9000, 390000, SU_ENDED_SLOW_START, 1)},
	{"a short response, 20 in slow start: 10 says nothing against 35",
	 ENDED(20, INF, SU_RECOVERY_OPEN, 500000, 8000, 380000, 10), SU_EVIDENCE_AT_LEAST, 0,
	 LEFT(35, INF, 400000, 9000, 390000, SU_ENDED_SLOW_START, 1)},
	{"70 in slow start once more: the same window, newer times",
	 ENDED(70, INF, SU_RECOVERY_OPEN, 410000, 8000, 391000, 60), SU_EVIDENCE_AT_LEAST, 1,
	 LEFT(35, INF, 410000, 8000, 391000, SU_ENDED_SLOW_START, 2)},
	{"slow start towards a threshold of 90, 80 / 2 = 40: window and threshold rise",
	 ENDED(80, 90, SU_RECOVERY_OPEN, 420000, 7000, 392000, 80), SU_EVIDENCE_AT_LEAST, 1,
	 LEFT(40, 90, 420000, 7000, 392000, SU_ENDED_SLOW_START, 3)},
	{"slow start without a threshold, 100 / 2 = 50: the threshold known is kept",
	 ENDED(100, INF, SU_RECOVERY_OPEN, 430000, 6000, 393000, 99), SU_EVIDENCE_AT_LEAST, 1,
	 LEFT(50, 90, 430000, 6000, 393000, SU_ENDED_SLOW_START, 4)},
	{"avoidance at 31 - 1 = 30 lowers what is known",
	 ENDED(31, 25, SU_RECOVERY_OPEN, 440000, 5000, 394000, 300), SU_EVIDENCE_EXACT, 1,
	 LEFT(30, 25, 440000, 5000, 394000, SU_ENDED_AVOIDANCE, 5)},
	{"a loss under repair: min(ssthresh 12, cwnd 17) = 12",
	 ENDED(17, 12, SU_RECOVERY_FAST, 450000, 4000, 395000, 40), SU_EVIDENCE_EXACT, 1,
	 LEFT(12, 12, 450000, 4000, 395000, SU_ENDED_RECOVERY, 6)},
	{"a failed start that is back in slow start without a threshold: 18 / 2 = 9 is exact",
	 ENDED(18, INF, SU_RECOVERY_OPEN, 460000, 3000, 396000, 40), SU_EVIDENCE_EXACT, 1,
	 LEFT(9, INF, 460000, 3000, 396000, SU_ENDED_SLOW_START, 7)},
	{"no round trip without loss, 1 - 1 = 0: what was known is forgotten",
	 ENDED(1, 1, SU_RECOVERY_OPEN, 470000, 2000, 397000, 40), SU_EVIDENCE_EXACT, 1,
	 LEFT(0, 1, 470000, 2000, 397000, SU_ENDED_AVOIDANCE, 8)},
};

static const struct lesson nothing_learnt[] = {
	{"no round trip was measured",
	 ENDED(70, INF, SU_RECOVERY_OPEN, 0, 0, 0, 60), SU_EVIDENCE_AT_LEAST, 0, {0}},
	{"nothing was delivered: the handshake alone says nothing of the window",
	 ENDED(10, INF, SU_RECOVERY_OPEN, 400000, 9000, 390000, 0), SU_EVIDENCE_AT_LEAST, 0, {0}},
	{"the window came from memory and was not used whole",
	 ENDED(70, INF, SU_RECOVERY_OPEN, 400000, 9000, 390000, 20), SU_EVIDENCE_NONE, 0, {0}},
	{"half of a window of 1 is none",
	 ENDED(1, INF, SU_RECOVERY_OPEN, 400000, 9000, 390000, 1), SU_EVIDENCE_AT_LEAST, 0, {0}},
	{"nor is 1 - 1 one, even when it is exact",
	 ENDED(1, 1, SU_RECOVERY_OPEN, 400000, 9000, 390000, 1), SU_EVIDENCE_EXACT, 0, {0}},
};
/* clang-format on */

static void expect_path(struct checking *c, const struct su_path *want, const struct su_path *got)
{
	size_t i;

	expect(c, "age_us", want->age_us, got->age_us);
	expect(c, "cwnd_pkts", want->cwnd_pkts, got->cwnd_pkts);
	expect(c, "ssthresh_pkts", want->ssthresh_pkts, got->ssthresh_pkts);
	expect(c, "srtt_us", want->srtt_us, got->srtt_us);
	expect(c, "rttvar_us", want->rttvar_us, got->rttvar_us);
	expect(c, "min_rtt_us", want->min_rtt_us, got->min_rtt_us);
	expect(c, "samples", want->samples, got->samples);
	expect(c, "ended", want->ended, got->ended);
	for (i = 0; i < sizeof(got->reserved); i++)
		expect(c, "reserved", 0, got->reserved[i]);
}

static void run_lessons(struct tap *tap, const char *name, const char *source,
			const struct lesson *lessons, size_t count)
{
	struct su_path path = {0};
	size_t i;

	printf("# %s (%s)\n", name, source);
	for (i = 0; i < count; i++) {
		const struct lesson *lesson = &lessons[i];
		struct checking c = checking_row(name, i + 1, lesson->what);
		struct su_rounds rounds = {.most_pkts = ENOUGH};
		struct su_proof proof = {
			.window_pkts = su_loss_free_window(&lesson->ev, &rounds),
			.evidence = lesson->evidence,
		};
		struct su_path want = lesson->left;

		/* A minute passes between connections; learning makes the memory new. */
		if (path.cwnd_pkts)
			path.age_us += 60 * SU_US_PER_S;
		if (!lesson->changed)
			want.age_us = path.age_us;
		expect(&c, "changed", (uint64_t)lesson->changed,
		       (uint64_t)su_path_learn(&path, &lesson->ev, proof));
		expect_path(&c, &want, &path);
		report_row(tap, &c);
	}
}

int main(void)
{
	struct tap tap = {0};

	run_looks(&tap, "half_of_cwnd_in_slow_start_cwnd_minus_one_in_congestion_avoidance",
		  "TCP Fast Start 3.3.2", slow_start_and_avoidance,
		  COUNT(slow_start_and_avoidance));
	run_looks(&tap, "while_a_loss_is_repaired_ssthresh_is_the_window_that_got_through",
		  "path_memory.h, DECISION", repairing, COUNT(repairing));
	run_looks(&tap, "no_window_is_larger_than_what_came_through_in_one_round_trip",
		  "path_memory.h, DECISION", delivered, COUNT(delivered));
	run_acks(&tap);
	run_lessons(&tap, "a_short_transfer_never_lowers_what_is_known_of_the_path",
		    "TCP Fast Start 3.3.2; path_memory.h, DECISION", short_transfers,
		    COUNT(short_transfers));
	run_lessons(&tap, "a_connection_that_proves_nothing_teaches_nothing",
		    "TCP Fast Start 3.3.2", nothing_learnt, COUNT(nothing_learnt));
	return report_end(&tap);
}
