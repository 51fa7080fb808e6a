/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * What a connection teaches about its path, and when what was learnt may be used.
 * Sources: TCP Fast Start (Padmanabhan and Katz, 1998), 3.3.2; Network Adaptive TCP Slow Start
 * (Bhumralkar, Lung and Varaiya), 3, after TCP/SPAND; where they are silent, "DECISION:" says what
 * we took.
 */
#ifndef SU_PATH_MEMORY_H
#define SU_PATH_MEMORY_H

#include "base.h"

/* The memory is one for all start-ups, and so are these. */
#define SU_MEMORY_PARAMS(P)                                                                        \
	P(lifetime_s, 1800, 1, 604800, "s", "use nothing that was learnt longer ago")              \
	P(max_window_pkts, 2000, 2, 65535, "pkts", "remember no larger window, and tell none")     \
	P(history_pct, 25, 0, 99, "%", "weight of what was before in the filtered ending window")  \
	P(spread_gain_pct, 25, 1, 100, "%", "weight of the newest in means and mean deviations")   \
	P(max_spread_pct, 35, 1, 1000, "%", "abstain where the deviation is more of the mean")     \
	P(min_samples, 2, 2, 1000, "times", "judge the spread from so many lessons on")            \
	P(rtt_tolerance_pct, 50, 1, 1000, "%",                                                     \
	  "abstain where the new connection's round trip is so far outside min_rtt to srtt")       \
	P(rtt_slack_us, 5000, 0, 1000000, "us", "and by so much at the least")                     \
	P(ending_is_cwnd, 0, 0, 1, "switch",                                                       \
	  "the filtered ending window is of cwnd as it stands, the letter of Adaptive 3")

struct su_memory_params {
	SU_MEMORY_PARAMS(SU_PARAM_FIELD)
};

_Static_assert(sizeof(struct su_memory_params) == 36, "mirrored in abi.rs and contract.rs");

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
	uint32_t most_pkts;   /* the most that was delivered in one round trip without loss */
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
		.most_pkts = rounds->most_pkts,
	};
}

/* How a connection stands, "by comparing the value of the cwnd ... with the ssthresh value of the
 * same transfer" (Adaptive 3). */
static inline uint8_t su_ended_of(const struct su_event *ev)
{
	if (ev->recovery != SU_RECOVERY_OPEN)
		return SU_ENDED_RECOVERY;
	return ev->cwnd_pkts < ev->ssthresh_pkts ? SU_ENDED_SLOW_START : SU_ENDED_AVOIDANCE;
}

/* The window with which a transfer ended (Adaptive 3). DECISION: Linux lets cwnd grow to twice of
 * what is in flight in slow start, and leaves it where it is when the application sends less: no
 * more counts than what came through allows. ending_is_cwnd is for a stack as the paper's, whose
 * cwnd grows with every ACK. */
static inline uint32_t su_ending_window(const struct su_memory_params *prm,
					const struct su_event *ev, struct su_proof proof)
{
	uint64_t most_pkts = proof.most_pkts;
	uint32_t cwnd_pkts = ev->cwnd_pkts;
	uint8_t ended = su_ended_of(ev);

	if (ended == SU_ENDED_SLOW_START)
		most_pkts *= 2;
	if (ended == SU_ENDED_RECOVERY)
		cwnd_pkts = su_min_u32(cwnd_pkts, ev->ssthresh_pkts);
	if (prm->ending_is_cwnd)
		return cwnd_pkts;
	return cwnd_pkts < most_pkts ? cwnd_pkts : (uint32_t)most_pkts;
}

#define SU_MPKTS_PER_PKT 1000u

/* A filter of weight @gain_pct for the newest. */
static inline uint32_t su_fold(uint32_t old, uint32_t newest, uint32_t gain_pct)
{
	return (uint32_t)(((uint64_t)old * (100u - gain_pct) + (uint64_t)newest * gain_pct) / 100u);
}

/* Mean and mean deviation, as RFC 6298 has them for the round trip: the deviation from the old mean
 * first. A mean of 0: nothing has been folded in. */
static inline void su_fold_spread(uint32_t *mean, uint32_t *deviation, uint32_t newest,
				  uint32_t gain_pct)
{
	uint32_t off = *mean > newest ? *mean - newest : newest - *mean;

	if (!*mean) {
		*mean = newest;
		return;
	}
	*deviation = su_fold(*deviation, off, gain_pct);
	*mean = su_fold(*mean, newest, gain_pct);
}

static inline int su_is_stale(const struct su_path *path, const struct su_memory_params *prm)
{
	return path->age_us > (uint64_t)prm->lifetime_s * SU_US_PER_S;
}

/* "Values ... are updated upon completion of any given file transfer" (Adaptive 3). Whether there
 * has been one since @learnt_bytes were acknowledged; a FIN counts as one byte on some stacks. */
static inline int su_is_lesson(uint64_t learnt_bytes, const struct su_event *ev)
{
	return ev->acked_bytes > learnt_bytes + 1;
}

enum su_learnt {
	SU_LEARNT_NOTHING = 0,
	SU_LEARNT_SOMETHING = 1,
	SU_LEARNT_TO_FORGET = 2, /* what was known was wrong, and is thrown away */
};

/* The window and what belongs to it. DECISION: a short transfer that ends in slow start says only
 * that the path carries at least this much; it never lowers what is known. Otherwise each small
 * response on a fat path would shrink the next start. Nor does it disagree with anything: the
 * spread is of windows that were found exactly, and of what came through beyond their mean. */
static inline void su_learn_window(struct su_path *path, const struct su_memory_params *prm,
				   const struct su_event *ev, struct su_proof proof)
{
	uint32_t window_pkts = su_min_u32(proof.window_pkts, prm->max_window_pkts);
	uint32_t window_mpkts = window_pkts * SU_MPKTS_PER_PKT;
	int exact = proof.evidence == SU_EVIDENCE_EXACT, known = path->cwnd_pkts != 0;

	if (exact || (path->window_mean_mpkts && window_mpkts > path->window_mean_mpkts))
		su_fold_spread(&path->window_mean_mpkts, &path->window_dev_mpkts, window_mpkts,
			       prm->spread_gain_pct);
	if (!window_pkts || (!exact && window_pkts < path->cwnd_pkts))
		return;
	path->cwnd_pkts = window_pkts;
	if (!known || exact || ev->ssthresh_pkts < SU_INFINITE_SSTHRESH)
		path->ssthresh_pkts = ev->ssthresh_pkts;
	path->rate_bytes_per_s = su_rate_bytes_per_s(proof.most_pkts, ev->mss_bytes, ev->srtt_us);
	path->age_us = 0;
}

/* Folds the connection as it now stands into @path, whose age_us is set. */
static inline enum su_learnt su_path_learn(struct su_path *path, const struct su_memory_params *prm,
					   const struct su_event *ev, struct su_proof proof)
{
	uint32_t ending_mpkts;

	if (!ev->srtt_us || !ev->delivered_pkts || proof.evidence == SU_EVIDENCE_NONE)
		return SU_LEARNT_NOTHING;
	/* DECISION: where no round trip at all was without loss, what was known was wrong. */
	if (!proof.window_pkts && proof.evidence == SU_EVIDENCE_EXACT && path->cwnd_pkts) {
		*path = (struct su_path){0};
		return SU_LEARNT_TO_FORGET;
	}
	if (!proof.window_pkts)
		return SU_LEARNT_NOTHING;

	if (su_is_stale(path, prm))
		*path = (struct su_path){0};
	su_learn_window(path, prm, ev, proof);
	/* Adaptive 3: windows are pooled by "a low pass filter", and "we do not weight the previous
	 * history very heavily"; of srtt "we use only the value obtained from the most recent
	 * connection". */
	ending_mpkts = su_min_u32(su_ending_window(prm, ev, proof), prm->max_window_pkts);
	ending_mpkts *= SU_MPKTS_PER_PKT;
	if (path->ending_mpkts)
		ending_mpkts = su_fold(path->ending_mpkts, ending_mpkts, 100u - prm->history_pct);
	path->ending_mpkts = ending_mpkts;
	path->srtt_us = ev->srtt_us;
	path->rttvar_us = ev->rttvar_us;
	path->min_rtt_us = ev->min_rtt_us;
	su_fold_spread(&path->min_rtt_mean_us, &path->min_rtt_dev_us, ev->min_rtt_us,
		       prm->spread_gain_pct);
	path->lost_pkts = ev->lost_pkts;
	path->ended = su_ended_of(ev);
	path->samples++;
	return SU_LEARNT_SOMETHING;
}

static inline int su_disagrees(uint32_t mean, uint32_t deviation, uint32_t max_spread_pct)
{
	return (uint64_t)deviation * 100 > (uint64_t)mean * max_spread_pct;
}

/* DECISION: a round trip far outside of what the path had, from its minimum to its smoothed mean,
 * is that of another path, or of this one in another state. Unknown round trips contradict nothing.
 */
static inline int su_contradicts(const struct su_path *path, const struct su_memory_params *prm,
				 uint32_t srtt_us)
{
	uint64_t most_us = su_max_u32(path->srtt_us, path->min_rtt_us);
	uint64_t most_slack_us = most_us * prm->rtt_tolerance_pct / 100;
	uint64_t least_us = path->min_rtt_us;
	uint64_t least_slack_us = least_us * prm->rtt_tolerance_pct / 100;

	if (!srtt_us || !most_us)
		return 0;
	if (most_slack_us < prm->rtt_slack_us)
		most_slack_us = prm->rtt_slack_us;
	if (least_slack_us < prm->rtt_slack_us)
		least_slack_us = prm->rtt_slack_us;
	return srtt_us > most_us + most_slack_us || srtt_us + least_slack_us < least_us;
}

/* Whether what is remembered may be used for the connection as it now stands. What comes back is
 * what the start-up is told: @path, capped; or nothing but the reason in `refused`. */
static inline enum su_why su_path_recall(struct su_path *path, const struct su_memory_params *prm,
					 const struct su_event *ev)
{
	enum su_why why = SU_WHY_PATH_KNOWN;

	if (!path->cwnd_pkts)
		why = SU_WHY_PATH_UNKNOWN;
	else if (su_is_stale(path, prm))
		why = SU_WHY_PATH_STALE;
	else if (path->samples >= prm->min_samples &&
		 (su_disagrees(path->window_mean_mpkts, path->window_dev_mpkts,
			       prm->max_spread_pct) ||
		  (path->min_rtt_dev_us > prm->rtt_slack_us &&
		   su_disagrees(path->min_rtt_mean_us, path->min_rtt_dev_us, prm->max_spread_pct))))
		why = SU_WHY_PATH_SPREAD;
	else if (su_contradicts(path, prm, ev->srtt_us))
		why = SU_WHY_PATH_CONTRADICTED;
	if (why != SU_WHY_PATH_KNOWN) {
		*path = (struct su_path){.refused = (uint8_t)why};
		return why;
	}
	path->cwnd_pkts = su_min_u32(path->cwnd_pkts, prm->max_window_pkts);
	path->ending_mpkts =
		su_min_u32(path->ending_mpkts, prm->max_window_pkts * SU_MPKTS_PER_PKT);
	return why;
}

/* Why a start-up cannot start from @path; SU_WHY_NONE: it can. */
static inline uint8_t su_path_refusal(const struct su_path *path)
{
	if (path && path->refused)
		return path->refused;
	return path && path->cwnd_pkts ? SU_WHY_NONE : SU_WHY_PATH_UNKNOWN;
}

#endif
