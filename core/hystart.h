/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * HyStart: slow start that looks for a safe exit, by the length of trains of ACKs and by the growth
 * of the first round-trip times of a round. Source: Ha and Rhee, "Taming the elephants: New TCP
 * slow start", 2011; Algorithm 1, sections are quoted as "4.2.1". Departures are named "DEVIATES:",
 * choices where it is silent "DECISION:"; docs/hystart.md collects them.
 */
#ifndef SU_HYSTART_H
#define SU_HYSTART_H

#include "base.h"
#include "growth.h"

#define SU_HYSTART_PARAMS(P)                                                                       \
	SU_COMMON_PARAMS(P)                                                                        \
	P(ack_train, 1, 0, 1, "switch", "leave by the length of a train of ACKs (4.2.1)")          \
	P(delay_increase, 1, 0, 1, "switch", "leave by the growth of the delay (4.2.2)")           \
	P(low_ssthresh_pkts, 16, 2, 65535, "pkts", "never leave below this window")                \
	P(ack_spacing_us, 2000, 100, 100000, "us",                                                 \
	  "largest gap between two ACKs of a train, each of stretch_pkts at the most")             \
	P(samples, 8, 1, 64, "samples", "round-trip times at the beginning of a round")            \
	P(eta_min_us, 2000, 100, 1000000, "us", "least growth of the delay")                       \
	P(eta_max_us, 8000, 100, 1000000, "us", "largest growth of the delay that is asked for")   \
	P(eta_divisor, 16, 1, 256, "1", "asked for in between: this part of the last delay")       \
	P(stretch_pkts, 2, 0, 64, "pkts",                                                          \
	  "an ACK of more packets counts as several; 0: as one, to the letter")                    \
	SU_GROWTH_PARAMS(P)

#define SU_HYSTART_USES 0

struct su_hystart_params {
	SU_HYSTART_PARAMS(SU_PARAM_FIELD)
};

#define SU_HYSTART_NO_RTT 0xffffffffu /* us; the algorithm's infinity */

struct su_hystart_state {
	struct su_growth growth;
	uint64_t round_end_bytes; /* an ACK beyond it begins the next round */
	uint64_t round_start_us;
	uint64_t train_us;    /* when the train's latest ACK came: lastJiffies */
	uint32_t min_rtt_us;  /* dMin */
	uint32_t last_rtt_us; /* lastRTT: least of the samples of the last round */
	uint32_t curr_rtt_us; /* curRTT: of this round */
	uint32_t samples;     /* cnt */
	uint8_t found;	      /* enum su_why of the exit; 0: none yet */
	uint8_t reserved[7];
};

_Static_assert(sizeof(struct su_hystart_state) == 80, "kept for each socket");

/* "Timeout: Reset the variables on timeouts: dMin <- infinity, found <- 0". */
static inline void su_hystart_reset(struct su_hystart_state *st)
{
	st->min_rtt_us = SU_HYSTART_NO_RTT;
	st->last_rtt_us = SU_HYSTART_NO_RTT;
	st->curr_rtt_us = SU_HYSTART_NO_RTT;
	st->samples = 0;
	st->found = SU_WHY_NONE;
}

static inline void su_hystart_init(struct su_hystart_state *st, const struct su_hystart_params *prm,
				   const struct su_path *path, const struct su_event *ev,
				   struct su_verdict *v)
{
	(void)prm;
	(void)path;
	*st = (struct su_hystart_state){0};
	su_hystart_reset(st);
	st->round_end_bytes = ev->sent_bytes;
	su_growth_open(&st->growth, ev, v);
}

/* DECISION: slow start after a pause looks anew. The delays of the last round are forgotten: they
 * are not of the round before. dMin stays, it is the path's. */
static inline void su_hystart_on_idle(struct su_hystart_state *st,
				      const struct su_hystart_params *prm,
				      const struct su_path *path, const struct su_event *ev,
				      struct su_verdict *v)
{
	uint32_t min_rtt_us = st->min_rtt_us;

	(void)prm;
	(void)path;
	su_hystart_reset(st);
	st->min_rtt_us = min_rtt_us;
	su_growth_on_idle(&st->growth, ev, v);
}

/* What leaves an empty pipe begins a round with its first ACK. */
static inline void su_hystart_on_send(struct su_hystart_state *st,
				      const struct su_hystart_params *prm,
				      const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	st->round_end_bytes = ev->sent_bytes;
	su_growth_on_send(&st->growth, ev, v);
}

/* "At the start of each RTT round". DECISION: which is the first ACK for what was sent in answer to
 * the last round: 4.2.1 measures "the time period between the receptions of the first and last ACKs
 * in an ACK train". */
static inline void su_hystart_round(struct su_hystart_state *st, const struct su_event *ev)
{
	st->round_end_bytes = ev->sent_bytes;
	st->round_start_us = ev->now_us;
	st->train_us = ev->now_us;
	st->last_rtt_us = st->curr_rtt_us;
	st->curr_rtt_us = SU_HYSTART_NO_RTT;
	st->samples = 0;
}

/* DEVIATES: Algorithm 1 counts ACKs, and its receiver sends one for each two packets at the least.
 * A modern one merges packets before TCP sees them (GRO) and acknowledges dozens at once: eight
 * ACKs may not come in a round, and the gap before one is that of all its packets. So it counts as
 * the ACKs that it stands for. */
static inline uint32_t su_hystart_acks(const struct su_hystart_params *prm, uint32_t newly_pkts)
{
	if (!prm->stretch_pkts || newly_pkts <= prm->stretch_pkts)
		return 1;
	return newly_pkts / prm->stretch_pkts + (newly_pkts % prm->stretch_pkts != 0);
}

/* 4.2.1: "filters out any significantly delayed ACK packets in a train" (5.3): an ACK that is not
 * closely spaced is not of the train, nor is what comes behind it in this round. */
static inline int su_hystart_train(struct su_hystart_state *st, const struct su_hystart_params *prm,
				   const struct su_event *ev, uint32_t acks)
{
	if (ev->now_us - st->train_us > (uint64_t)prm->ack_spacing_us * acks)
		return 0;
	st->train_us = ev->now_us;
	/* The forward one-way delay is not known: half of the round trip is taken for it. */
	return st->min_rtt_us != SU_HYSTART_NO_RTT &&
	       ev->now_us - st->round_start_us >= st->min_rtt_us / 2;
}

/* eta = min(8 ms, max(2 ms, lastRTT / 16)), rounded up. */
static inline uint32_t su_hystart_eta_us(const struct su_hystart_state *st,
					 const struct su_hystart_params *prm)
{
	uint32_t divisor = su_max_u32(prm->eta_divisor, 1);
	uint32_t part_us = st->last_rtt_us / divisor + (st->last_rtt_us % divisor != 0);

	return su_min_u32(prm->eta_max_us, su_max_u32(prm->eta_min_us, part_us));
}

static inline int su_hystart_delay(struct su_hystart_state *st, const struct su_hystart_params *prm,
				   const struct su_event *ev, uint32_t acks)
{
	if (ev->rtt_us && st->samples < prm->samples) {
		st->curr_rtt_us = su_min_u32(st->curr_rtt_us, ev->rtt_us);
		st->samples += su_min_u32(acks, prm->samples);
	}
	if (st->samples < prm->samples || st->last_rtt_us == SU_HYSTART_NO_RTT)
		return 0;
	return st->curr_rtt_us >= (uint64_t)st->last_rtt_us + su_hystart_eta_us(st, prm);
}

static inline void su_hystart_on_ack(struct su_hystart_state *st,
				     const struct su_hystart_params *prm, const struct su_event *ev,
				     struct su_verdict *v)
{
	uint32_t newly_pkts = su_growth_on_ack(&st->growth, ev, v);
	uint32_t acks = su_hystart_acks(prm, newly_pkts);

	if (ev->rtt_us)
		st->min_rtt_us = su_min_u32(st->min_rtt_us, ev->rtt_us);
	if (st->growth.phase != SU_PHASE_SLOW_START)
		return;
	if (ev->acked_bytes > st->round_end_bytes)
		su_hystart_round(st, ev);
	if (su_hystart_train(st, prm, ev, acks) && prm->ack_train && !st->found)
		st->found = SU_WHY_ACK_TRAIN;
	if (su_hystart_delay(st, prm, ev, acks) && prm->delay_increase && !st->found)
		st->found = SU_WHY_DELAY_INCREASE;
	/* DECISION: what is found below low_ssthresh holds: slow start ends as soon as the window
	 * is there. Read otherwise, Algorithm 1 would not look again, and never leave. */
	if (st->found && ev->cwnd_pkts >= prm->low_ssthresh_pkts)
		su_growth_leave(&st->growth, ev, st->found, v);
	else
		su_growth_by(&st->growth, ev, newly_pkts, prm->max_window_pkts, v);
}

static inline void su_hystart_on_loss(struct su_hystart_state *st,
				      const struct su_hystart_params *prm,
				      const struct su_event *ev, struct su_verdict *v)
{
	(void)prm;
	if (ev->loss == SU_LOSS_TIMEOUT) {
		su_hystart_reset(st);
		st->round_end_bytes = ev->sent_bytes;
	}
	su_growth_on_loss(&st->growth, ev, v);
}

static inline struct su_proof su_hystart_proof(const struct su_hystart_state *st,
					       const struct su_event *ev)
{
	return su_growth_proof(&st->growth, ev);
}

#endif
