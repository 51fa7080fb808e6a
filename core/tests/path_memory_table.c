/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * What connections teach about a path, and when it is told: TCP Fast Start 3.3.2, Network Adaptive
 * TCP Slow Start 3, and the decisions of path_memory.h.
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

/* Each row is the end of a connection, and the memory that must be left. A minute passes between
 * connections. The parameters are the defaults: a lifetime of 30 minutes, 25 % of history in the
 * ending window, a gain of 25 % in means and deviations, no window above 2000. */
struct lesson {
	const char *what;
	struct su_event ev;
	enum su_evidence evidence;
	enum su_learnt learnt;
	struct su_path left; /* expected; age, ending and samples too */
};

#define PARAM_DEFAULT(name, value, min, max, unit, help) value,
static const struct su_memory_params defaults = {SU_MEMORY_PARAMS(PARAM_DEFAULT)};

/* clang-format off */
#define ENDED(cwnd, ssthresh, state, srtt, min_rtt, lost)                                          \
	{.cwnd_pkts = cwnd, .ssthresh_pkts = ssthresh, .recovery = state, .srtt_us = srtt,         \
	 .rttvar_us = 9000, .min_rtt_us = min_rtt, .delivered_pkts = 60, .lost_pkts = lost,        \
	 .mss_bytes = MSS}
#define MINUTES(n) ((n) * 60 * SU_US_PER_S)
#define LEFT(age, cwnd, ssthresh, ending, mean, dev, srtt, min_rtt, rtt_mean, rtt_dev, lost, how,  \
	     times, rate)                                                                          \
	{.age_us = age, .cwnd_pkts = cwnd, .ssthresh_pkts = ssthresh, .ending_mpkts = ending,      \
	 .window_mean_mpkts = mean, .window_dev_mpkts = dev, .srtt_us = srtt, .rttvar_us = 9000,   \
	 .min_rtt_us = min_rtt, .min_rtt_mean_us = rtt_mean, .min_rtt_dev_us = rtt_dev,            \
	 .lost_pkts = lost, .ended = how, .samples = times, .rate_bytes_per_s = rate}

/* DECISION in path_memory.h: slow start only raises; avoidance and loss decide. ENOUGH = 1000 packets
 * of 1000 bytes came through in the best round trip of each, so that the rate is 1 MB / srtt. */
static const struct lesson short_transfers[] = {
	{"the first connection, 70 in slow start: 35 got through; it ended with 70",
	 ENDED(70, INF, SU_RECOVERY_OPEN, 400000, 390000, 0), SU_EVIDENCE_AT_LEAST, SU_LEARNT_SOMETHING,
	 LEFT(0, 35, INF, 70000, 0, 0, 400000, 390000, 390000, 0, 0, SU_ENDED_SLOW_START, 1, 2500000)},
	/* 70 * 0.25 + 20 * 0.75 = 32.5; deviation 0.25 * 10000, mean 390000 - 2500. The window is as
	 * old as it was. */
	{"a short response, 20 in slow start: 10 says nothing against 35, and counts as an ending",
	 ENDED(20, INF, SU_RECOVERY_OPEN, 500000, 380000, 0), SU_EVIDENCE_AT_LEAST, SU_LEARNT_SOMETHING,
	 LEFT(MINUTES(1), 35, INF, 32500, 0, 0, 500000, 380000, 387500, 2500, 0,
	      SU_ENDED_SLOW_START, 2, 2500000)},
	/* 32.5 * 0.25 + 80 * 0.75 = 68.125; |387500 - 387500| = 0: deviation 2500 * 0.75. */
	{"slow start towards a threshold of 90, 80 / 2 = 40: window and threshold rise",
	 ENDED(80, 90, SU_RECOVERY_OPEN, 400000, 387500, 0), SU_EVIDENCE_AT_LEAST, SU_LEARNT_SOMETHING,
	 LEFT(0, 40, 90, 68125, 0, 0, 400000, 387500, 387500, 1875, 0, SU_ENDED_SLOW_START, 3, 2500000)},
	/* 68.125 * 0.25 + 100 * 0.75 = 92.031; deviation 1875 * 0.75 = 1406.25. */
	{"slow start without a threshold, 100 / 2 = 50: the threshold known is kept",
	 ENDED(100, INF, SU_RECOVERY_OPEN, 400000, 387500, 0), SU_EVIDENCE_AT_LEAST, SU_LEARNT_SOMETHING,
	 LEFT(0, 50, 90, 92031, 0, 0, 400000, 387500, 387500, 1406, 0, SU_ENDED_SLOW_START, 4, 2500000)},
	/* 92.031 * 0.25 + 31 * 0.75 = 46.257; deviation 1406 * 0.75 = 1054.5. */
	{"avoidance at 31 - 1 = 30 lowers what is known: the first window that was found exactly",
	 ENDED(31, 25, SU_RECOVERY_OPEN, 400000, 387500, 2), SU_EVIDENCE_EXACT, SU_LEARNT_SOMETHING,
	 LEFT(0, 30, 25, 46257, 30000, 0, 400000, 387500, 387500, 1054, 2, SU_ENDED_AVOIDANCE, 5, 2500000)},
	/* min(12, 17) = 12: deviation 0.25 * 18 = 4.5, mean 30 - 4.5; 46.257 * 0.25 + 12 * 0.75. */
	{"a loss under repair: min(ssthresh 12, cwnd 17) = 12, and the spread",
	 ENDED(17, 12, SU_RECOVERY_FAST, 400000, 387500, 3), SU_EVIDENCE_EXACT, SU_LEARNT_SOMETHING,
	 LEFT(0, 12, 12, 20564, 25500, 4500, 400000, 387500, 387500, 790, 3, SU_ENDED_RECOVERY, 6, 2500000)},
	/* 40 of slow start is more than the mean of 25.5: 4.5 * 0.75 + 14.5 * 0.25 = 7; 25.5 + 3.625. */
	{"slow start beyond the mean of what was found exactly disagrees with it",
	 ENDED(80, 90, SU_RECOVERY_OPEN, 400000, 387500, 0), SU_EVIDENCE_AT_LEAST, SU_LEARNT_SOMETHING,
	 LEFT(0, 40, 90, 65141, 29125, 7000, 400000, 387500, 387500, 592, 0, SU_ENDED_SLOW_START, 7, 2500000)},
	{"no round trip without loss, 1 - 1 = 0: what was known is thrown away",
	 ENDED(1, 1, SU_RECOVERY_OPEN, 470000, 397000, 9), SU_EVIDENCE_EXACT, SU_LEARNT_TO_FORGET, {0}},
};

static const struct lesson large_windows[] = {
	{"no window above the largest is remembered, and none is an ending",
	 ENDED(9000, 4000, SU_RECOVERY_OPEN, 400000, 390000, 0), SU_EVIDENCE_EXACT, SU_LEARNT_SOMETHING,
	 LEFT(0, 1000, 4000, 1000000, 1000000, 0, 400000, 390000, 390000, 0, 0, SU_ENDED_AVOIDANCE, 1,
	      2500000)},
};

static const struct lesson nothing_learnt[] = {
	{"no round trip was measured",
	 ENDED(70, INF, SU_RECOVERY_OPEN, 0, 0, 0), SU_EVIDENCE_AT_LEAST, SU_LEARNT_NOTHING, {0}},
	{"the window came from memory and was not used whole",
	 ENDED(70, INF, SU_RECOVERY_OPEN, 400000, 390000, 0), SU_EVIDENCE_NONE, SU_LEARNT_NOTHING, {0}},
	{"half of a window of 1 is none",
	 ENDED(1, INF, SU_RECOVERY_OPEN, 400000, 390000, 0), SU_EVIDENCE_AT_LEAST, SU_LEARNT_NOTHING, {0}},
	{"nor is 1 - 1 one, even when it is exact",
	 ENDED(1, 1, SU_RECOVERY_OPEN, 400000, 390000, 0), SU_EVIDENCE_EXACT, SU_LEARNT_NOTHING, {0}},
};
/* clang-format on */

static void expect_path(struct checking *c, const struct su_path *want, const struct su_path *got)
{
	size_t i;

	expect(c, "age_us", want->age_us, got->age_us);
	expect(c, "rate_bytes_per_s", want->rate_bytes_per_s, got->rate_bytes_per_s);
	expect(c, "cwnd_pkts", want->cwnd_pkts, got->cwnd_pkts);
	expect(c, "ssthresh_pkts", want->ssthresh_pkts, got->ssthresh_pkts);
	expect(c, "srtt_us", want->srtt_us, got->srtt_us);
	expect(c, "rttvar_us", want->rttvar_us, got->rttvar_us);
	expect(c, "min_rtt_us", want->min_rtt_us, got->min_rtt_us);
	expect(c, "ending_mpkts", want->ending_mpkts, got->ending_mpkts);
	expect(c, "window_mean_mpkts", want->window_mean_mpkts, got->window_mean_mpkts);
	expect(c, "window_dev_mpkts", want->window_dev_mpkts, got->window_dev_mpkts);
	expect(c, "min_rtt_mean_us", want->min_rtt_mean_us, got->min_rtt_mean_us);
	expect(c, "min_rtt_dev_us", want->min_rtt_dev_us, got->min_rtt_dev_us);
	expect(c, "lost_pkts", want->lost_pkts, got->lost_pkts);
	expect(c, "samples", want->samples, got->samples);
	expect(c, "ended", want->ended, got->ended);
	expect(c, "refused", want->refused, got->refused);
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
			.most_pkts = rounds.most_pkts,
		};

		if (path.cwnd_pkts)
			path.age_us += MINUTES(1);
		expect(&c, "learnt", (uint64_t)lesson->learnt,
		       (uint64_t)su_path_learn(&path, &defaults, &lesson->ev, proof));
		expect_path(&c, &lesson->left, &path);
		report_row(tap, &c);
	}
}

/* A window that was learnt longer ago than the lifetime is no history of the next one. */
static void run_too_old(struct tap *tap)
{
	const char *name = "what_is_older_than_the_lifetime_is_no_history";
	struct checking c = checking_row(name, 1, "12 in slow start after 30 minutes and 1 us");
	struct su_event ev = {.cwnd_pkts = 24,
			      .ssthresh_pkts = INF,
			      .srtt_us = 100000,
			      .min_rtt_us = 90000,
			      .delivered_pkts = 24};
	struct su_proof proof = {
		.window_pkts = 12, .evidence = SU_EVIDENCE_AT_LEAST, .most_pkts = 12};
	struct su_path path = {
		.age_us = MINUTES(30) + 1, .cwnd_pkts = 500, .ending_mpkts = 500000, .samples = 70};

	printf("# %s (path_memory.h)\n", name);
	su_path_learn(&path, &defaults, &ev, proof);
	expect(&c, "cwnd_pkts", 12, path.cwnd_pkts);
	expect(&c, "ending_mpkts", 24000, path.ending_mpkts);
	expect(&c, "samples", 1, path.samples);
	report_row(tap, &c);
}

/* --------------------------------------------------- what a connection ended with */

struct ending {
	const char *what;
	uint32_t cwnd_pkts;
	uint32_t ssthresh_pkts;
	enum su_recovery recovery;
	uint32_t most_pkts;
	uint32_t window_pkts; /* expected */
	uint32_t by_the_letter;
};

static const struct ending endings[] = {
	{"slow start, 50 after round trips of 10, 20 and 10: no more than 2 * 20", 50, INF,
	 SU_RECOVERY_OPEN, 20, 40, 0},
	{"the same, and W is cwnd", 50, INF, SU_RECOVERY_OPEN, 20, 50, 1},
	{"under repair, and W is cwnd: the threshold", 50, 20, SU_RECOVERY_FAST, 45, 20, 1},
	{"slow start, 30 after 10 and 20", 30, INF, SU_RECOVERY_OPEN, 20, 30, 0},
	{"avoidance: 60 of which 45 came through", 60, 40, SU_RECOVERY_OPEN, 45, 45, 0},
	{"avoidance: all of 60 came through", 60, 40, SU_RECOVERY_OPEN, 61, 60, 0},
	{"under repair: the threshold of 20", 50, 20, SU_RECOVERY_FAST, 45, 20, 0},
	{"2 * 4294967295 is not taken modulo 2^32", 50, INF, SU_RECOVERY_OPEN, 0xffffffffu, 50, 0},
};

static void run_endings(struct tap *tap)
{
	const char *name = "a_transfer_ended_with_no_more_than_came_through_allows";
	size_t i;

	printf("# %s (Adaptive 3; path_memory.h, DECISION)\n", name);
	for (i = 0; i < COUNT(endings); i++) {
		struct checking c = checking_row(name, i + 1, endings[i].what);
		struct su_event ev = {.cwnd_pkts = endings[i].cwnd_pkts,
				      .ssthresh_pkts = endings[i].ssthresh_pkts,
				      .recovery = (uint8_t)endings[i].recovery};
		struct su_proof proof = {.most_pkts = endings[i].most_pkts};
		struct su_memory_params prm = defaults;

		prm.ending_is_cwnd = endings[i].by_the_letter;

		expect(&c, "ending", endings[i].window_pkts, su_ending_window(&prm, &ev, proof));
		report_row(tap, &c);
	}
}

/* ------------------------------------------------------------- what is told */

struct question {
	const char *what;
	struct su_path path;
	uint32_t srtt_us; /* of the connection that asks; 0: none yet */
	enum su_why why;
	uint32_t window_pkts; /* expected, where it is told */
};

/* clang-format off */
#define OF_100MS .srtt_us = 120000, .min_rtt_us = 100000, .min_rtt_mean_us = 100000
#define KNOWN_35 .cwnd_pkts = 35, .samples = 2, OF_100MS

static const struct question questions[] = {
	{"nothing is known", {0}, 100000, SU_WHY_PATH_UNKNOWN, 0},
	{"35, a minute ago", {KNOWN_35, .age_us = MINUTES(1)}, 110000, SU_WHY_PATH_KNOWN, 35},
	{"as old as the lifetime", {KNOWN_35, .age_us = MINUTES(30)}, 110000, SU_WHY_PATH_KNOWN, 35},
	{"older", {KNOWN_35, .age_us = MINUTES(30) + 1}, 110000, SU_WHY_PATH_STALE, 0},
	{"9000, from a file: no more than 2000 is told", {.cwnd_pkts = 9000, OF_100MS}, 110000,
	 SU_WHY_PATH_KNOWN, 2000},
	/* 35 % of 40 is 14. */
	{"windows of 40 with a deviation of 14", {KNOWN_35, .window_mean_mpkts = 40000,
	 .window_dev_mpkts = 14000}, 110000, SU_WHY_PATH_KNOWN, 35},
	{"windows of 40 with a deviation of more", {KNOWN_35, .window_mean_mpkts = 40000,
	 .window_dev_mpkts = 14001}, 110000, SU_WHY_PATH_SPREAD, 0},
	{"one lesson cannot disagree with itself", {.cwnd_pkts = 35, .samples = 1, OF_100MS,
	 .window_mean_mpkts = 40000, .window_dev_mpkts = 14001}, 110000, SU_WHY_PATH_KNOWN, 35},
	{"round trips of 100 ms with a deviation of 36", {KNOWN_35, .min_rtt_dev_us = 36000}, 110000,
	 SU_WHY_PATH_SPREAD, 0},
	{"round trips of 0.1 ms may deviate by 5 ms: that is noise", {.cwnd_pkts = 35, .samples = 2,
	 .srtt_us = 200, .min_rtt_us = 100, .min_rtt_mean_us = 100, .min_rtt_dev_us = 90}, 150,
	 SU_WHY_PATH_KNOWN, 35},
	/* 120 + 50 % = 180; 100 - 50 % = 50. */
	{"a handshake of 180 ms", {KNOWN_35}, 180000, SU_WHY_PATH_KNOWN, 35},
	{"one of more is that of another path", {KNOWN_35}, 180001, SU_WHY_PATH_CONTRADICTED, 0},
	{"a handshake of 50 ms", {KNOWN_35}, 50000, SU_WHY_PATH_KNOWN, 35},
	{"one of less", {KNOWN_35}, 49999, SU_WHY_PATH_CONTRADICTED, 0},
	{"none was measured", {KNOWN_35}, 0, SU_WHY_PATH_KNOWN, 35},
	{"none is remembered", {.cwnd_pkts = 35}, 180001, SU_WHY_PATH_KNOWN, 35},
	{"a round trip of 4000 s", {.cwnd_pkts = 35, .srtt_us = 4000000000u, .min_rtt_us = 4000000000u},
	 4000000000u, SU_WHY_PATH_KNOWN, 35},
};
/* clang-format on */

static void run_questions(struct tap *tap)
{
	const char *name = "what_is_told_of_a_path_and_why_not";
	size_t i;

	printf("# %s (path_memory.h, DECISION)\n", name);
	for (i = 0; i < COUNT(questions); i++) {
		struct checking c = checking_row(name, i + 1, questions[i].what);
		struct su_path path = questions[i].path;
		struct su_event ev = {.srtt_us = questions[i].srtt_us};
		int told = questions[i].why == SU_WHY_PATH_KNOWN;

		expect(&c, "why", questions[i].why, su_path_recall(&path, &defaults, &ev));
		expect(&c, "cwnd_pkts", questions[i].window_pkts, path.cwnd_pkts);
		expect(&c, "refused", told ? 0 : questions[i].why, path.refused);
		expect(&c, "refusal", told ? SU_WHY_NONE : questions[i].why,
		       su_path_refusal(&path));
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
		    "TCP Fast Start 3.3.2; Adaptive 3; path_memory.h, DECISION", short_transfers,
		    COUNT(short_transfers));
	run_lessons(&tap, "a_window_is_remembered_no_larger_than_came_through",
		    "path_memory.h, DECISION", large_windows, COUNT(large_windows));
	run_lessons(&tap, "a_connection_that_proves_nothing_teaches_nothing",
		    "TCP Fast Start 3.3.2", nothing_learnt, COUNT(nothing_learnt));
	run_too_old(&tap);
	run_endings(&tap);
	run_questions(&tap);
	return report_end(&tap);
}
