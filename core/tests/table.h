/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Tables: a list of events in time and the verdict that each must give. One table is one story,
 * told on one connection; its name is a sentence. The numbers that are expected are computed by
 * hand, from the paper, in the comment beside them. Output: TAP.
 */
#ifndef SU_TESTS_TABLE_H
#define SU_TESTS_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "../registry.h"

/* One segment is 1000 bytes, so that a position in packets is read off a position in bytes. */
#define MSS 1000u
#define INF SU_INFINITE_SSTHRESH

#define MAX_SETTINGS 3

struct setting {
	uint32_t word_plus_1; /* 0: none */
	uint32_t value;
};

/* A parameter that is not at its default: SET(fast_start, pacing, 0). */
#define SET(name, param, to)                                                                       \
	{                                                                                          \
		(uint32_t)(offsetof(struct su_##name##_params, param) / sizeof(uint32_t) + 1), to  \
	}

/* What is not set in a row is 0; positions count packets since the connection opened. */
struct row {
	const char *what; /* the row in a sentence */
	enum su_event_kind event;
	enum su_loss_kind loss;
	enum su_recovery recovery;
	uint32_t time_ms;
	uint32_t sent_pkts;
	uint32_t acked_pkts;  /* cumulatively */
	uint32_t sacked_pkts; /* beyond that */
	uint32_t lost_pkts;   /* thought lost so far */
	uint32_t cwnd_pkts;
	uint32_t ssthresh_pkts;
	uint32_t srtt_ms;
	uint32_t idle_ms;
	uint32_t rto_ms;
	uint32_t unpaced_pkts;
	uint32_t time_us; /* beyond time_ms */
	uint32_t rtt_us;  /* this ACK's sample; 0: srtt_ms, unless no_sample */
	int no_sample;
	int app_limited;      /* the application limits sending, not the window */
	uint32_t unsent_pkts; /* written and not yet sent */
	uint32_t hint_pkts;   /* the transfer's size, as the application says */
	uint8_t iw_pkts;      /* configured for this destination or listener */
	int handshake_lost;   /* the SYN or SYN-ACK */
	struct su_verdict want;
	enum su_evidence evidence; /* what the connection then proves of its path */
	int window_asked;	   /* and the window that it proves, where that is of interest */
	uint32_t window_pkts;
};

#define PROVES(evidence_is)	       .evidence = SU_EVIDENCE_##evidence_is
#define PROVES_PKTS(evidence_is, pkts) PROVES(evidence_is), .window_asked = 1, .window_pkts = pkts

struct table {
	const char *name;   /* the story in a sentence */
	const char *source; /* the clause that it follows */
	enum su_alg alg;
	struct setting settings[MAX_SETTINGS];
	const struct su_path *path; /* what is remembered of the path; NULL: nothing */
	int no_sack;		    /* the peer sends no selective ACKs */
	const struct row *rows;
	size_t row_count;
};

#define ROWS(rows_of) .rows = rows_of, .row_count = sizeof(rows_of) / sizeof((rows_of)[0])

struct tap {
	unsigned int tests;
	unsigned int failed;
};

/* The fields of one row, while they are compared. */
struct checking {
	const char *table;
	size_t row; /* from 1 */
	const char *what;
	unsigned int wrong;
	char report[4096];
	size_t used;
};

static inline struct checking checking_row(const char *table, size_t row, const char *what)
{
	return (struct checking){.table = table, .row = row, .what = what};
}

static inline void expect(struct checking *c, const char *field, uint64_t want, uint64_t got)
{
	int written;

	if (want == got)
		return;
	c->wrong++;
	written = snprintf(c->report + c->used, sizeof(c->report) - c->used,
			   "# %s, row %zu (%s): %s: expected %llu, got %llu\n", c->table, c->row,
			   c->what, field, (unsigned long long)want, (unsigned long long)got);
	if (written > 0 && (size_t)written < sizeof(c->report) - c->used)
		c->used += (size_t)written;
}

static inline void report_row(struct tap *tap, const struct checking *c)
{
	tap->tests++;
	if (c->wrong)
		tap->failed++;
	printf("%s %u - %s: %s\n%s", c->wrong ? "not ok" : "ok", tap->tests, c->table, c->what,
	       c->report);
}

/* Closes the output; the exit code of the program. */
static inline int report_end(const struct tap *tap)
{
	printf("1..%u\n", tap->tests);
	if (tap->failed)
		printf("# %u of %u rows failed\n", tap->failed, tap->tests);
	return tap->failed ? 1 : 0;
}

/* ------------------------------------------------------ verdicts of a start-up */

#define DEFAULT_VALUE(name, value, min, max, unit, help) value,
#define DEFAULT_CASE(name, NAME, number, source)                                                   \
	case SU_ALG_##NAME:                                                                        \
		prm.name = (struct su_##name##_params){SU_##NAME##_PARAMS(DEFAULT_VALUE)};         \
		break;

static inline union su_params params_of(const struct table *table)
{
	union su_params prm = {.words = {0}};
	size_t i;

	switch (table->alg) {
		SU_STARTUPS(DEFAULT_CASE)
	}
	for (i = 0; i < MAX_SETTINGS; i++)
		if (table->settings[i].word_plus_1)
			prm.words[table->settings[i].word_plus_1 - 1] = table->settings[i].value;
	return prm;
}

static inline struct su_event event_of(const struct table *table, const struct row *row)
{
	uint32_t delivered_pkts = row->acked_pkts + row->sacked_pkts;

	return (struct su_event){
		.now_us = row->time_ms * 1000ull + row->time_us,
		.sent_bytes = (uint64_t)row->sent_pkts * MSS,
		.acked_bytes = (uint64_t)row->acked_pkts * MSS,
		.idle_us = row->idle_ms * 1000ull,
		.delivered_pkts = delivered_pkts,
		.lost_pkts = row->lost_pkts,
		.inflight_pkts = row->sent_pkts - delivered_pkts,
		.cwnd_pkts = row->cwnd_pkts,
		.ssthresh_pkts = row->ssthresh_pkts,
		.rtt_us = row->event != SU_EVENT_ACK || row->no_sample ? 0
			  : row->rtt_us				       ? row->rtt_us
								       : row->srtt_ms * 1000u,
		.srtt_us = row->srtt_ms * 1000u,
		.rttvar_us = row->srtt_ms * 500u,
		.min_rtt_us = row->srtt_ms * 1000u,
		.rto_us = row->rto_ms * 1000u,
		.mss_bytes = MSS,
		.unpaced_pkts = row->unpaced_pkts,
		.unsent_bytes = (uint64_t)row->unsent_pkts * MSS,
		.hint_bytes = (uint64_t)row->hint_pkts * MSS,
		.iw_pkts = row->iw_pkts,
		.handshake_lost = row->handshake_lost != 0,
		.kind = (uint8_t)row->event,
		.loss = (uint8_t)row->loss,
		.recovery = (uint8_t)row->recovery,
		.sack_ok = !table->no_sack,
		.cwnd_limited = !row->app_limited,
	};
}

static inline void expect_verdict(struct checking *c, const struct su_verdict *want,
				  const struct su_verdict *got)
{
	expect(c, "pacing_bytes_per_s", want->pacing_bytes_per_s, got->pacing_bytes_per_s);
	expect(c, "mark_from_byte", want->mark_from_byte, got->mark_from_byte);
	expect(c, "mark_to_byte", want->mark_to_byte, got->mark_to_byte);
	expect(c, "cwnd_pkts", want->cwnd_pkts, got->cwnd_pkts);
	expect(c, "ssthresh_pkts", want->ssthresh_pkts, got->ssthresh_pkts);
	expect(c, "burst_pkts", want->burst_pkts, got->burst_pkts);
	expect(c, "rto_min_us", want->rto_min_us, got->rto_min_us);
	expect(c, "recovery_cwnd_pkts", want->recovery_cwnd_pkts, got->recovery_cwnd_pkts);
	expect(c, "phase", want->phase, got->phase);
	expect(c, "why", want->why, got->why);
	expect(c, "forget_path", want->forget_path, got->forget_path);
	expect(c, "owns_slow_start", want->owns_slow_start, got->owns_slow_start);
}

static inline void run_table(struct tap *tap, const struct table *table)
{
	union su_params prm = params_of(table);
	union su_state st = {.words = {0}};
	size_t i;

	printf("# %s (%s)\n", table->name, table->source);
	for (i = 0; i < table->row_count; i++) {
		const struct row *row = &table->rows[i];
		struct checking c = checking_row(table->name, i + 1, row->what);
		struct su_event ev = event_of(table, row);
		struct su_verdict got;
		struct su_proof proof;

		su_step(table->alg, &st, &prm, table->path, &ev, &got);
		expect_verdict(&c, &row->want, &got);
		proof = su_proof(table->alg, &st, &ev);
		expect(&c, "evidence", row->evidence, proof.evidence);
		if (row->window_asked)
			expect(&c, "proven window_pkts", row->window_pkts, proof.window_pkts);
		report_row(tap, &c);
	}
}

static inline int run_tables(const struct table *tables, size_t count)
{
	struct tap tap = {0};
	size_t i;

	for (i = 0; i < count; i++)
		run_table(&tap, &tables[i]);
	return report_end(&tap);
}

#endif
