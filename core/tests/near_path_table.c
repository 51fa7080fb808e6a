/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * registry.h: on a path with a shorter round trip than least_rtt_us no start-up starts, whichever
 * it is. The parameter's default is 1000 us.
 */
#include "table.h"

/* clang-format off */
/* A connection that opens. */
struct opening {
	const char *what;
	enum su_alg alg;
	struct setting setting;
	uint32_t srtt_us;      /* of the handshake; 0: not measured */
	uint32_t path_srtt_us; /* as remembered; 0: the path is not known */
	uint8_t iw_pkts;       /* configured for this destination or listener */
	int near;
};

#define LEAST(name, us) .setting = SET(name, least_rtt_us, us)

static const struct opening openings[] = {
	{"999 us are less than 1000", SU_ALG_FAST_START, .srtt_us = 999, .path_srtt_us = 999, .near = 1},
	{"1000 are not", SU_ALG_FAST_START, .srtt_us = 1000, .path_srtt_us = 999, .near = 0},
	{"a handshake that was not measured: the path's", SU_ALG_FAST_START, .path_srtt_us = 999, .near = 1},
	{"and that is longer", SU_ALG_FAST_START, .path_srtt_us = 1000, .near = 0},
	{"nothing is known", SU_ALG_SWIFT_START, .near = 0},
	{"the handshake is the newer of the two", SU_ALG_ADAPTIVE, .srtt_us = 999, .path_srtt_us = 30000, .near = 1},
	{"0: always", SU_ALG_FAST_START, LEAST(fast_start, 0), .srtt_us = 1, .path_srtt_us = 1, .near = 0},
	{"another value", SU_ALG_PACED, LEAST(paced, 30000), .srtt_us = 29999, .near = 1},
	{"swift start", SU_ALG_SWIFT_START, .srtt_us = 999, .near = 1},
	{"paced", SU_ALG_PACED, .srtt_us = 999, .near = 1},
	{"hystart", SU_ALG_HYSTART, .srtt_us = 999, .near = 1},
	{"limited", SU_ALG_LIMITED, .srtt_us = 999, .near = 1},
	{"westwood", SU_ALG_WESTWOOD, .srtt_us = 999, .near = 1},
	{"packet pair", SU_ALG_PACKET_PAIR, .srtt_us = 999, .near = 1},
	{"vegas", SU_ALG_VEGAS, .srtt_us = 999, .near = 1},
	/* The window that is configured is set on any path. */
	{"standard, which has nothing to do", SU_ALG_STANDARD, .srtt_us = 999, .near = 1},
	{"standard with a window of its own", SU_ALG_STANDARD, SET(standard, iw_pkts, 30), .srtt_us = 999, .near = 0},
	{"standard with a window for the destination", SU_ALG_STANDARD, .srtt_us = 999, .iw_pkts = 10, .near = 0},
	{"standard without HyStart", SU_ALG_STANDARD, SET(standard, hystart, 0), .srtt_us = 999, .near = 0},
};
/* clang-format on */

static union su_params params_for(const struct opening *o)
{
	const struct table table = {.alg = o->alg, .settings = {o->setting}};

	return params_of(&table);
}

static struct su_event event_at(enum su_event_kind kind, uint32_t srtt_us, uint8_t iw_pkts)
{
	return (struct su_event){
		.now_us = 1000000,
		.kind = (uint8_t)kind,
		.cwnd_pkts = 10,
		.ssthresh_pkts = INF,
		.srtt_us = srtt_us,
		.mss_bytes = MSS,
		.sack_ok = 1,
		.cwnd_limited = 1,
		.iw_pkts = iw_pkts,
	};
}

static void run_openings(struct tap *tap)
{
	const char *name = "below_least_rtt_us_nothing_starts";
	size_t i;

	printf("# %s (registry.h, DECISION)\n", name);
	for (i = 0; i < sizeof(openings) / sizeof(openings[0]); i++) {
		const struct opening *o = &openings[i];
		struct checking c = checking_row(name, i + 1, o->what);
		struct su_event ev = event_at(SU_EVENT_OPEN, o->srtt_us, o->iw_pkts);
		struct su_path path = {
			.cwnd_pkts = 40, .ending_mpkts = 40000, .srtt_us = o->path_srtt_us};
		union su_params prm = params_for(o);
		union su_state st = {.words = {0}};
		struct su_verdict got;

		su_step(o->alg, &st, &prm, o->path_srtt_us ? &path : NULL, &ev, &got);
		expect(&c, "near-path", (uint64_t)o->near, got.why == SU_WHY_NEAR_PATH);
		if (o->near) {
			struct su_verdict want = {.why = SU_WHY_NEAR_PATH};

			expect_verdict(&c, &want, &got);
		}
		report_row(tap, &c);
	}
}

/* The events of one connection. */
struct moment {
	const char *what;
	enum su_event_kind kind;
	uint32_t srtt_us;
	enum su_why why;
	enum su_phase phase;
	enum su_evidence evidence;
};

static const struct moment for_good[] = {
	{"the handshake took long", SU_EVENT_OPEN, 30000, SU_WHY_INITIAL_WINDOW, SU_PHASE_ARMED,
	 SU_EVIDENCE_AT_LEAST},
	{"after a pause it is near", SU_EVENT_IDLE, 999, SU_WHY_NEAR_PATH, SU_PHASE_NATIVE,
	 SU_EVIDENCE_NONE},
	{"data leaves as the stack lets it", SU_EVENT_SEND, 999, SU_WHY_NONE, SU_PHASE_NATIVE,
	 SU_EVIDENCE_NONE},
	{"an ACK changes nothing", SU_EVENT_ACK, 30000, SU_WHY_NONE, SU_PHASE_NATIVE,
	 SU_EVIDENCE_NONE},
	{"a loss has the stack's penalty", SU_EVENT_LOSS, 30000, SU_WHY_NONE, SU_PHASE_NATIVE,
	 SU_EVIDENCE_NONE},
	{"it is the stack's for good", SU_EVENT_IDLE, 30000, SU_WHY_NONE, SU_PHASE_NATIVE,
	 SU_EVIDENCE_NONE},
	{"the next connection is another", SU_EVENT_OPEN, 30000, SU_WHY_INITIAL_WINDOW,
	 SU_PHASE_ARMED, SU_EVIDENCE_AT_LEAST},
};

static void run_for_good(struct tap *tap)
{
	const char *name = "what_is_near_once_is_the_stacks_for_good_and_teaches_nothing";
	const struct table table = {.alg = SU_ALG_PACED};
	union su_params prm = params_of(&table);
	union su_state st = {.words = {0}};
	size_t i;

	printf("# %s (registry.h, DECISION)\n", name);
	for (i = 0; i < sizeof(for_good) / sizeof(for_good[0]); i++) {
		const struct moment *m = &for_good[i];
		struct checking c = checking_row(name, i + 1, m->what);
		struct su_event ev = event_at(m->kind, m->srtt_us, 0);
		struct su_verdict got;

		su_step(table.alg, &st, &prm, NULL, &ev, &got);
		expect(&c, "why", m->why, got.why);
		expect(&c, "phase", m->phase, got.phase);
		expect(&c, "evidence", m->evidence, su_proof(table.alg, &st, &ev).evidence);
		report_row(tap, &c);
	}
}

int main(void)
{
	struct tap tap = {0};

	run_openings(&tap);
	run_for_good(&tap);
	return report_end(&tap);
}
