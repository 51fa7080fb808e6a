/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * TCP Fast Start: send the first round trip from what the path carried last time, paced and with
 * low drop priority, and fall back to slow start without penalty when that was too much. Source:
 * Padmanabhan and Katz, "TCP Fast Start: A Technique For Speeding Up Web Transfers", 1998; sections
 * are quoted as "3.3.1". Departures are named "DEVIATES:", choices where it is silent "DECISION:";
 * docs/fast_start.md collects them with those of the kernel's side.
 */
#ifndef SU_FAST_START_H
#define SU_FAST_START_H

#include "base.h"
#include "path_memory.h"

#define SU_FAST_START_PARAMS(P)                                                                    \
	SU_COMMON_PARAMS(P)                                                                        \
	P(maxburst_pkts, 4, 1, 64, "pkts", "largest burst of the paced window (3.3.3)")            \
	P(drop_priority, 1, 0, 1, "switch", "send the window with low drop priority (3.2)")        \
	P(quick_recovery, 1, 0, 1, "switch",                                                       \
	  "recover from a failed start without penalty (3.3.4)")                                   \
	P(pacing, 1, 0, 1, "switch", "spread the window over one RTT (3.3.3)")                     \
	P(max_window_pkts, 2000, 2, 65535, "pkts", "never start with a larger window")             \
	P(max_age_s, 1800, 1, 86400, "s", "do not use a path's memory older than this")            \
	P(reset_floor_us, 50000, 1000, 200000, "us",                                               \
	  "least 4 rttvar of the reset timer srtt + 4 rttvar (3.3.4)")                             \
	P(require_sack, 1, 0, 1, "switch", "start only if the peer sends selective ACKs")          \
	P(timeout_window_pkts, SU_LINUX_IW_PKTS, 1, 100, "pkts",                                   \
	  "window after the reset timer; 1 is the letter of 3.3.4")                                \
	P(mark_last, 0, 0, 1, "switch",                                                            \
	  "low drop priority also for the last packet written; 1 is the letter of 3.3.1")

#define SU_FAST_START_USES (SU_USES_PATH | SU_USES_SHAPE | SU_USES_MARKS)

struct su_fast_start_params {
	SU_FAST_START_PARAMS(SU_PARAM_FIELD)
};

struct su_fast_start_state {
	struct su_rounds rounds;
	uint64_t begin_bytes; /* where the window began */
	uint64_t end_bytes;   /* where ACK clocking set in; SU_OPEN_END until then */
	uint64_t rate_bytes_per_s;
	uint32_t window_pkts;	/* the cached window; 0: none */
	uint32_t ssthresh_pkts; /* cached beside it */
	uint32_t srtt_us;	/* the round trip in which that window was carried */
	uint32_t begin_delivered_pkts;
	uint32_t begin_lost_pkts;
	uint32_t loss_delivered_pkts; /* delivered when the start failed */
	uint32_t initial_pkts; /* the window with which the stack itself would have started */
	uint8_t phase;	       /* enum su_phase */
	uint8_t after_idle; /* armed by a pause, so that the stack's own restart window competes */
	uint8_t timed_out;  /* the recovery is slow start, not fast recovery; 2: by the letter */
	uint8_t failed;	    /* a start has failed since the window was last learnt */
};

_Static_assert(sizeof(struct su_fast_start_state) == 80, "kept for each socket");

/* What holds in the present phase, whatever the event was. */
static inline void su_fast_start_hold(const struct su_fast_start_state *st,
				      const struct su_fast_start_params *prm, uint8_t why,
				      struct su_verdict *v)
{
	v->phase = st->phase;
	v->why = why;
	if (st->phase == SU_PHASE_ARMED) {
		v->burst_pkts = 1; /* the first packet leaves alone: it alone is unmarked */
		v->rto_min_us = prm->quick_recovery ? prm->reset_floor_us : 0;
	} else if (st->phase == SU_PHASE_OPEN_LOOP) {
		if (prm->pacing) {
			v->pacing_bytes_per_s = st->rate_bytes_per_s;
			v->burst_pkts = prm->maxburst_pkts;
		}
		/* 3.3.1: "all packets sent in the initial window after the connection resumes,
		 * except for the first one". DECISION: the last that the application has written is
		 * none of them either. Where all others are dropped its SACK says so, a round trip
		 * after it; without it nothing but a timer can. */
		if (prm->drop_priority) {
			v->mark_from_byte = st->begin_bytes + 1;
			v->mark_to_byte = prm->mark_last ? SU_OPEN_END : SU_BUT_LAST;
		}
	}
	if (st->phase == SU_PHASE_OPEN_LOOP || st->phase == SU_PHASE_CLOCKED)
		v->rto_min_us = prm->quick_recovery ? prm->reset_floor_us : 0;
}

static inline void su_fast_start_end(struct su_fast_start_state *st, uint8_t why,
				     struct su_verdict *v)
{
	st->phase = SU_PHASE_NATIVE;
	v->phase = SU_PHASE_NATIVE;
	v->why = why;
}

/* Takes a window of @window_pkts into use for the next data, or says why not. */
static inline void su_fast_start_arm(struct su_fast_start_state *st,
				     const struct su_fast_start_params *prm, uint32_t window_pkts,
				     uint8_t why, const struct su_event *ev, struct su_verdict *v)
{
	/* Without SACK, 3.3.4 cuts cwnd to 1 on a partial ACK. DEVIATES: Linux lets no congestion
	 * control do that in fast recovery, so by default such a peer is not started fast. */
	if (prm->require_sack && !ev->sack_ok) {
		su_fast_start_end(st, SU_WHY_NO_SACK, v);
		return;
	}
	st->window_pkts = su_min_u32(window_pkts, prm->max_window_pkts);
	if (st->window_pkts <= st->initial_pkts || !st->srtt_us) {
		su_fast_start_end(st, SU_WHY_PATH_SMALL, v);
		return;
	}
	st->phase = SU_PHASE_ARMED;
	su_fast_start_hold(st, prm, why, v);
}

/* A new connection to a path that may be known. */
static inline void su_fast_start_init(struct su_fast_start_state *st,
				      const struct su_fast_start_params *prm,
				      const struct su_path *path, const struct su_event *ev,
				      struct su_verdict *v)
{
	*st = (struct su_fast_start_state){.initial_pkts = SU_LINUX_IW_PKTS};
	if (ev->handshake_lost) {
		v->why = SU_WHY_HANDSHAKE_LOSS;
		return;
	}
	/* Unless it is the middle of a connection; a SYN counts as one byte on some stacks. */
	if (ev->sent_bytes <= 1)
		st->initial_pkts = ev->cwnd_pkts;
	v->why = su_path_refusal(path);
	if (v->why != SU_WHY_NONE)
		return;
	/* 3.3.1: conditions "remain stable for periods ranging from a few minutes to tens of
	 * minutes"; an upper bound on the age is deferred to future research. DECISION: max_age_s.
	 */
	if (path->age_us > (uint64_t)prm->max_age_s * SU_US_PER_S) {
		v->why = SU_WHY_PATH_STALE;
		return;
	}
	/* 3.3.2: cwnd, ssthresh, srtt take their most recent values.
	 * DEVIATES: srtt and rttvar cannot be written into the Linux socket, so the retransmission
	 * timer uses those of the handshake; the cached srtt is used to pace. DECISION: if the
	 * handshake took longer than the cached srtt, the larger of the two. */
	st->ssthresh_pkts = path->ssthresh_pkts;
	st->srtt_us = su_max_u32(path->srtt_us, ev->srtt_us);
	su_fast_start_arm(st, prm, path->cwnd_pkts, SU_WHY_PATH_KNOWN, ev, v);
	if (st->phase != SU_PHASE_ARMED)
		return;
	/* Set at once and not only when data leaves: Linux sizes the send buffer by it. */
	v->cwnd_pkts = st->window_pkts;
	v->ssthresh_pkts = st->ssthresh_pkts;
}

/* The same connection resumes after a pause. */
static inline void su_fast_start_on_idle(struct su_fast_start_state *st,
					 const struct su_fast_start_params *prm,
					 const struct su_path *path, const struct su_event *ev,
					 struct su_verdict *v)
{
	uint32_t window_pkts = st->window_pkts;

	/* 3.3.2: the window is that of the connection just before the pause; the memory of the path
	 * is for new connections. A window that was armed but not used whole stands as it is:
	 * nothing has been learnt about it since. */
	(void)path;
	if (!window_pkts || st->phase == SU_PHASE_NATIVE || st->phase == SU_PHASE_RECOVERING) {
		window_pkts = su_loss_free_window(ev, &st->rounds);
		st->ssthresh_pkts = ev->ssthresh_pkts;
	}
	st->srtt_us = ev->srtt_us;
	st->failed = 0;
	/* DECISION: what is too old for the memory of a path is too old for the connection's own.
	 */
	if (ev->idle_us > (uint64_t)prm->max_age_s * SU_US_PER_S) {
		st->window_pkts = 0;
		su_fast_start_end(st, SU_WHY_PATH_STALE, v);
		return;
	}
	st->after_idle = 1;
	su_fast_start_arm(st, prm, window_pkts, SU_WHY_RESUMED, ev, v);
}

static inline void su_fast_start_on_send(struct su_fast_start_state *st,
					 const struct su_fast_start_params *prm,
					 const struct su_event *ev, struct su_verdict *v)
{
	su_rounds_on_send(&st->rounds, ev);
	if (st->phase != SU_PHASE_ARMED) {
		su_fast_start_hold(st, prm, SU_WHY_NONE, v);
		return;
	}
	/* After a short pause the stack's own restart window may be the larger one. */
	if (st->after_idle && ev->cwnd_pkts >= st->window_pkts) {
		su_fast_start_end(st, SU_WHY_PATH_SMALL, v);
		return;
	}
	st->after_idle = 0;
	st->timed_out = 0;
	st->begin_bytes = ev->sent_bytes;
	st->end_bytes = SU_OPEN_END;
	st->begin_delivered_pkts = ev->delivered_pkts;
	st->begin_lost_pkts = ev->lost_pkts;
	/* 3.3.3: bursts of maxburst, spaced maxburst * srtt / cwnd, are a rate of cwnd / srtt.
	 * DEVIATES: Linux paces none of a connection's first 10 packets; the rest takes one srtt.
	 */
	st->rate_bytes_per_s = 0;
	if (st->window_pkts > ev->unpaced_pkts)
		st->rate_bytes_per_s = su_rate_bytes_per_s(st->window_pkts - ev->unpaced_pkts,
							   ev->mss_bytes, st->srtt_us);
	st->phase = SU_PHASE_OPEN_LOOP;
	su_fast_start_hold(st, prm, SU_WHY_STARTED, v);
	if (ev->cwnd_pkts < st->window_pkts)
		v->cwnd_pkts = st->window_pkts;
	v->ssthresh_pkts = st->ssthresh_pkts;
}

/* 3.3.4: "make the behavior as close as possible to the case where the connection just did standard
 * slow start". DECISION: the paper does not say with which window SACK recovery proceeds. Where it
 * begins, what was sent is counted as lost or delivered, and so it is slow start that repairs: from
 * the initial window which standard TCP would have had, one packet more for each that is delivered.
 */
static inline uint32_t su_fast_start_fallback_window(const struct su_fast_start_state *st,
						     const struct su_event *ev)
{
	uint32_t window_pkts = st->initial_pkts + (ev->delivered_pkts - st->loss_delivered_pkts);

	return su_min_u32(window_pkts, st->window_pkts);
}

/* 3.3.4, of the reset timer: "cuts down cwnd to 1 and initiates slow start". That is what the
 * standard began with; today it begins with more. DECISION: so does the slow start after the timer,
 * unless timeout_window_pkts is 1; and unless the timer has expired again, which is a sign of
 * congestion. 0: the stack's own. */
static inline uint32_t su_fast_start_timeout_window(const struct su_fast_start_state *st,
						    const struct su_fast_start_params *prm,
						    const struct su_event *ev)
{
	uint32_t begin_pkts = su_min_u32(prm->timeout_window_pkts, st->initial_pkts);

	if (begin_pkts <= 1 || st->timed_out > 1)
		return 0;
	begin_pkts += ev->delivered_pkts - st->loss_delivered_pkts;
	return su_min_u32(begin_pkts, st->window_pkts);
}

/* Whether the repair itself has lost packets: more have been counted as lost than had been sent and
 * not delivered when the start failed. A loss of fewer of them again cannot be told from the first.
 */
static inline int su_fast_start_lost_again(const struct su_fast_start_state *st,
					   const struct su_event *ev)
{
	uint64_t sent_bytes = ev->sent_bytes - st->begin_bytes;
	uint32_t delivered_pkts = st->loss_delivered_pkts - st->begin_delivered_pkts;
	uint32_t lost_pkts = ev->lost_pkts - st->begin_lost_pkts;

	return ev->mss_bytes && (uint64_t)(delivered_pkts + lost_pkts) * ev->mss_bytes >=
					sent_bytes + 2ull * ev->mss_bytes;
}

/* 3.3.4: "If the network is truly congested, the connection will discover it during the subsequent
 * slow start." It has: half of its window is what slow start makes of a loss (RFC 5681, 3.1). */
static inline void su_fast_start_congested(struct su_fast_start_state *st,
					   const struct su_event *ev, struct su_verdict *v)
{
	uint32_t window_pkts = su_fast_start_fallback_window(st, ev);

	su_fast_start_end(st, SU_WHY_ORDINARY_LOSS, v);
	v->ssthresh_pkts = su_max_u32(window_pkts / 2, 2);
}

/* Losses are repaired; ssthresh is as cached (3.3.4: "it does not cut down ssthresh"). After a
 * timeout the stack's slow start has brought cwnd where it is. */
static inline void su_fast_start_recovered(struct su_fast_start_state *st,
					   const struct su_event *ev, struct su_verdict *v)
{
	su_fast_start_end(st, SU_WHY_RECOVERED, v);
	v->ssthresh_pkts = st->ssthresh_pkts;
	if (!st->timed_out)
		v->cwnd_pkts = su_fast_start_fallback_window(st, ev);
}

static inline void su_fast_start_on_ack(struct su_fast_start_state *st,
					const struct su_fast_start_params *prm,
					const struct su_event *ev, struct su_verdict *v)
{
	uint8_t why = SU_WHY_NONE;

	su_rounds_on_ack(&st->rounds, ev);
	if (st->phase == SU_PHASE_RECOVERING && ev->recovery == SU_RECOVERY_OPEN) {
		su_fast_start_recovered(st, ev, v);
		return;
	}
	if (st->phase == SU_PHASE_RECOVERING && !st->timed_out &&
	    su_fast_start_lost_again(st, ev)) {
		su_fast_start_congested(st, ev, v);
		return;
	}
	if (st->phase == SU_PHASE_RECOVERING)
		v->recovery_cwnd_pkts = st->timed_out ? su_fast_start_timeout_window(st, prm, ev)
						      : su_fast_start_fallback_window(st, ev);
	/* 3.3.1: "Packets beyond the initial window, i.e., those sent after ack clocking sets in,
	 * do not belong to the fast start phase and hence are not marked." */
	if (st->phase == SU_PHASE_OPEN_LOOP && ev->acked_bytes > st->begin_bytes) {
		st->end_bytes = ev->sent_bytes;
		st->phase = SU_PHASE_CLOCKED;
		why = SU_WHY_ACK_CLOCK;
	}
	if (st->phase == SU_PHASE_CLOCKED && ev->recovery == SU_RECOVERY_OPEN) {
		if (ev->delivered_pkts - st->begin_delivered_pkts >= st->window_pkts) {
			su_fast_start_end(st, SU_WHY_VALIDATED, v);
			return;
		}
		/* DECISION: a handshake of the application (TLS) or a small response does not spend
		 * the window; the next data that leaves an empty pipe starts it again. */
		if (ev->acked_bytes >= ev->sent_bytes) {
			st->phase = SU_PHASE_ARMED;
			why = SU_WHY_APP_LIMITED;
		}
	}
	su_fast_start_hold(st, prm, why, v);
}

static inline void su_fast_start_on_loss(struct su_fast_start_state *st,
					 const struct su_fast_start_params *prm,
					 const struct su_event *ev, struct su_verdict *v)
{
	int started = st->phase == SU_PHASE_OPEN_LOOP || st->phase == SU_PHASE_CLOCKED ||
		      st->phase == SU_PHASE_RECOVERING;
	/* 3.3.4: "the earliest unacknowledged packet is a fast start packet other than the first
	 * one". */
	int in_window = ev->acked_bytes > st->begin_bytes && ev->acked_bytes < st->end_bytes;

	su_rounds_on_loss(&st->rounds, ev);
	/* DECISION: what a failed start was made from is forgotten at once, and what the connection
	 * teaches after that is of the round trips after that. */
	if (started && !st->failed) {
		v->forget_path = 1;
		st->rounds.most_pkts = 0;
		st->failed = 1;
	}
	if (!started || !in_window || !prm->quick_recovery || ev->loss == SU_LOSS_ECN) {
		su_fast_start_end(st, SU_WHY_ORDINARY_LOSS, v);
		return;
	}
	if (st->end_bytes == SU_OPEN_END)
		st->end_bytes = ev->sent_bytes;
	if (st->phase != SU_PHASE_RECOVERING)
		st->loss_delivered_pkts = ev->delivered_pkts;
	st->phase = SU_PHASE_RECOVERING;
	su_fast_start_hold(st, prm, SU_WHY_START_LOSS, v);
	v->recovery_cwnd_pkts = su_fast_start_fallback_window(st, ev);
	/* 3.3.4: without penalty: ssthresh and SACK information are kept. */
	v->ssthresh_pkts = st->ssthresh_pkts;
	if (ev->loss == SU_LOSS_TIMEOUT || (ev->loss == SU_LOSS_PARTIAL_ACK && !ev->sack_ok)) {
		/* After a partial ACK what is in flight may still come: by the letter. */
		st->timed_out = (uint8_t)(st->timed_out || ev->loss == SU_LOSS_PARTIAL_ACK ? 2 : 1);
		/* What the first retransmission delivers counts from here. */
		st->loss_delivered_pkts = ev->delivered_pkts;
		v->cwnd_pkts = 1;
		v->recovery_cwnd_pkts = su_fast_start_timeout_window(st, prm, ev);
		v->why = ev->loss == SU_LOSS_TIMEOUT ? SU_WHY_START_TIMEOUT : SU_WHY_PARTIAL_ACK;
	}
}

/* What the connection's window proves of its path, for the path memory. */
static inline struct su_proof su_fast_start_proof(const struct su_fast_start_state *st,
						  const struct su_event *ev)
{
	struct su_proof proof = su_proof_of(ev, &st->rounds);

	if (st->failed)
		proof.evidence = SU_EVIDENCE_EXACT;
	else if (st->phase != SU_PHASE_NATIVE)
		proof.evidence = SU_EVIDENCE_NONE;
	return proof;
}

#endif
