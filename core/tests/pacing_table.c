/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * pacing.h: when the pacing that a start-up asked for ends. Segments are of 1000 bytes; what leaves
 * at once at a connection's beginning is 10 of them.
 */
#include "table.h"

/* A window of 100 packets, of which 40 are in flight and 60 could leave; 500 more wait, and the
 * peer takes 200. */
struct moment {
	const char *what;
	enum su_event_kind kind;
	enum su_loss_kind loss;
	enum su_recovery recovery;
	enum su_phase phase;
	uint32_t cwnd_pkts;	/* by the event; 0: 100 */
	uint32_t set_cwnd_pkts; /* by the verdict; 0: not set */
	uint32_t unsent_pkts;	/* 0: 500 */
	uint32_t peer_pkts;	/* its window; 0: 200 */
	uint8_t window_full;
	uint8_t owns_slow_start;
	int over;
};

/* clang-format off */
static const struct moment moments[] = {
	{"sixty packets would leave at once", SU_EVENT_ACK, .over = 0},
	{"the window lets ten go", SU_EVENT_ACK, .cwnd_pkts = 50, .over = 1},
	{"it lets eleven go", SU_EVENT_ACK, .cwnd_pkts = 51, .over = 0},
	{"the window is smaller than what is in flight", SU_EVENT_ACK, .cwnd_pkts = 20, .over = 1},
	{"the verdict's window is what counts: smaller", SU_EVENT_ACK, .set_cwnd_pkts = 50, .over = 1},
	{"and larger", SU_EVENT_ACK, .cwnd_pkts = 50, .set_cwnd_pkts = 100, .over = 0},
	{"the application has written ten", SU_EVENT_ACK, .unsent_pkts = 10, .over = 1},
	{"it has written eleven", SU_EVENT_ACK, .unsent_pkts = 11, .over = 0},
	/* 40 are in flight. */
	{"the peer takes ten more", SU_EVENT_ACK, .peer_pkts = 50, .over = 1},
	{"it takes eleven", SU_EVENT_ACK, .peer_pkts = 51, .over = 0},
	{"the window was full: nothing was held back", SU_EVENT_ACK, .window_full = 1, .over = 1},
	{"data leaves an empty pipe", SU_EVENT_SEND, .over = 0},
	{"a loss", SU_EVENT_LOSS, .loss = SU_LOSS_FAST, .over = 1},
	{"the timer", SU_EVENT_LOSS, .loss = SU_LOSS_TIMEOUT, .over = 1},
	{"a mark, or a drop in a local queue: nothing was lost", SU_EVENT_LOSS, .loss = SU_LOSS_ECN, .over = 0},
	{"and nothing is held back", SU_EVENT_LOSS, .loss = SU_LOSS_ECN, .cwnd_pkts = 50, .over = 1},
	{"a loss is being repaired: ACKs let the rest out", SU_EVENT_ACK,
	 .recovery = SU_RECOVERY_FAST, .over = 1},
	{"so in slow start after a timeout", SU_EVENT_ACK, .recovery = SU_RECOVERY_TIMEOUT, .over = 1},
	/* HyStart measures its ACK trains by the pacing until the window is acknowledged. */
	{"the window is not all acknowledged", SU_EVENT_ACK, .phase = SU_PHASE_CLOCKED,
	 .unsent_pkts = 1, .over = 0},
	{"nor repaired", SU_EVENT_ACK, .phase = SU_PHASE_RECOVERING, .unsent_pkts = 1, .over = 0},
	{"it waits for the next data", SU_EVENT_ACK, .phase = SU_PHASE_ARMED, .over = 1},
	{"a start-up that grows the window itself goes on without", SU_EVENT_ACK,
	 .phase = SU_PHASE_SLOW_START, .owns_slow_start = 1, .over = 1},
};
/* clang-format on */

static uint32_t or_else(uint32_t pkts, uint32_t usual_pkts)
{
	return pkts ? pkts : usual_pkts;
}

int main(void)
{
	const char *name = "pacing_ends_when_it_holds_no_more_back_than_may_leave_at_once";
	struct tap tap = {0};
	size_t i;

	printf("# %s (pacing.h, DECISION)\n", name);
	for (i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
		const struct moment *m = &moments[i];
		struct checking c = checking_row(name, i + 1, m->what);
		struct su_event ev = {
			.sent_bytes = 70 * MSS,
			.acked_bytes = 30 * MSS,
			.inflight_pkts = 40,
			.cwnd_pkts = or_else(m->cwnd_pkts, 100),
			.unsent_bytes = or_else(m->unsent_pkts, 500) * (uint64_t)MSS,
			.peer_window_bytes = or_else(m->peer_pkts, 200) * MSS,
			.mss_bytes = MSS,
			.kind = (uint8_t)m->kind,
			.loss = (uint8_t)m->loss,
			.recovery = (uint8_t)m->recovery,
			.window_full = m->window_full,
		};
		struct su_verdict v = {
			.cwnd_pkts = m->set_cwnd_pkts,
			.phase = (uint8_t)m->phase,
			.owns_slow_start = m->owns_slow_start,
		};

		expect(&c, "over", (uint64_t)m->over, (uint64_t)su_pacing_is_over(&ev, &v));
		report_row(&tap, &c);
	}
	return report_end(&tap);
}
