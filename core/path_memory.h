/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * What a connection teaches about its path.
 * Source: TCP Fast Start (Padmanabhan and Katz, 1998), 3.3.2; where it is silent, "DECISION:" says
 * what we took.
 */
#ifndef SU_PATH_MEMORY_H
#define SU_PATH_MEMORY_H

#include "base.h"

/* The most packets that were delivered in one round trip of the connection. Linux lets cwnd grow to
 * twice of what is in flight, so cwnd alone does not say what got through. */
struct su_rounds {
	uint64_t end_bytes; /* the present round trip ends when this is acknowledged */
	uint32_t begin_delivered_pkts;
	uint32_t most_pkts;
	uint32_t lost_pkts; /* when the round trip began */
	uint32_t reserved;
};

/* Nothing is in flight: the round trip of what leaves now begins here, and ends when that is
 * acknowledged. */
static inline void su_rounds_on_send(struct su_rounds *rounds, const struct su_event *ev)
{
	rounds->begin_delivered_pkts = ev->delivered_pkts;
	rounds->lost_pkts = ev->lost_pkts;
	rounds->end_bytes = SU_OPEN_END;
}

/* A round trip with losses or marks is none to go by; and while the stack repairs or reduces, it
 * may report no ACK at all, so that the round trip seems longer than it was. */
static inline void su_rounds_on_loss(struct su_rounds *rounds, const struct su_event *ev)
{
	rounds->lost_pkts = ev->lost_pkts - 1;
}

static inline void su_rounds_on_ack(struct su_rounds *rounds, const struct su_event *ev)
{
	if (rounds->end_bytes == SU_OPEN_END)
		rounds->end_bytes = ev->sent_bytes;
	if (ev->acked_bytes < rounds->end_bytes)
		return;
	if (ev->lost_pkts == rounds->lost_pkts)
		rounds->most_pkts = su_max_u32(rounds->most_pkts,
					       ev->delivered_pkts - rounds->begin_delivered_pkts);
	rounds->begin_delivered_pkts = ev->delivered_pkts;
	rounds->lost_pkts = ev->lost_pkts;
	rounds->end_bytes = ev->sent_bytes;
}

/* What the present window proves about the path. */
enum su_evidence {
	SU_EVIDENCE_NONE = 0,	  /* the window came from memory and was not used whole */
	SU_EVIDENCE_AT_LEAST = 1, /* slow start without loss: it carries this much, perhaps more */
	SU_EVIDENCE_EXACT = 2,	  /* found by congestion avoidance, or after a loss */
};

struct su_proof {
	uint32_t window_pkts; /* the last window that got through without loss */
	uint32_t evidence;    /* enum su_evidence */
};

/* "The most recent congestion window size at which an entire window of data was transmitted
 * successfully" (3.3.2): half of cwnd in slow start, cwnd - 1 in congestion avoidance. DECISION: no
 * more than was delivered in one round trip, see above. And while a loss is being repaired, cwnd is
 * not a window that got through; ssthresh is what the stack makes of it. */
static inline uint32_t su_loss_free_window(const struct su_event *ev,
					   const struct su_rounds *rounds)
{
	uint32_t window_pkts;

	if (ev->recovery != SU_RECOVERY_OPEN && ev->ssthresh_pkts < SU_INFINITE_SSTHRESH)
		window_pkts = su_min_u32(ev->ssthresh_pkts, ev->cwnd_pkts);
	else if (ev->cwnd_pkts < ev->ssthresh_pkts)
		window_pkts = ev->cwnd_pkts / 2;
	else
		window_pkts = ev->cwnd_pkts ? ev->cwnd_pkts - 1 : 0;
	return su_min_u32(window_pkts, rounds->most_pkts);
}

static inline struct su_proof su_proof_of(const struct su_event *ev, const struct su_rounds *rounds)
{
	int in_slow_start = ev->recovery == SU_RECOVERY_OPEN && ev->cwnd_pkts < ev->ssthresh_pkts;

	return (struct su_proof){
		.window_pkts = su_loss_free_window(ev, rounds),
		.evidence = in_slow_start ? SU_EVIDENCE_AT_LEAST : SU_EVIDENCE_EXACT,
	};
}

/* Folds the connection as it now stands into @path. Returns 1 when @path changed.
 * DECISION: a short transfer that ends in slow start says only that the path carries at least this
 * much; it never lowers what is known. Otherwise each small response on a fat path would shrink the
 * next start. */
static inline int su_path_learn(struct su_path *path, const struct su_event *ev,
				struct su_proof proof)
{
	uint32_t window_pkts = proof.window_pkts, evidence = proof.evidence;
	int known = path->cwnd_pkts != 0;

	if (!ev->srtt_us || !ev->delivered_pkts || evidence == SU_EVIDENCE_NONE)
		return 0;
	if (evidence == SU_EVIDENCE_AT_LEAST && known && window_pkts < path->cwnd_pkts)
		return 0;
	/* DECISION: where no round trip at all was without loss, what was known was wrong: it is
	 * forgotten. */
	if (!window_pkts && !known)
		return 0;

	path->cwnd_pkts = window_pkts;
	if (!known || evidence == SU_EVIDENCE_EXACT || ev->ssthresh_pkts < SU_INFINITE_SSTHRESH)
		path->ssthresh_pkts = ev->ssthresh_pkts;
	path->srtt_us = ev->srtt_us;
	path->rttvar_us = ev->rttvar_us;
	path->min_rtt_us = ev->min_rtt_us;
	path->ended = ev->recovery != SU_RECOVERY_OPEN	  ? SU_ENDED_RECOVERY
		      : ev->cwnd_pkts < ev->ssthresh_pkts ? SU_ENDED_SLOW_START
							  : SU_ENDED_AVOIDANCE;
	path->samples++;
	path->age_us = 0;
	return 1;
}

#endif
