/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * The interface between a start-up and whatever carries it: the live kernel (bpf/startup.bpf.c),
 * the native build (crates/headstart-core). A start-up sees no socket: it gets numbers and answers
 * with a verdict.
 *
 * Everything here is freestanding: no libc, no floats, no clock, no I/O. Compiling for BPF is the
 * lint. Structures have fixed sizes and no implicit padding: they are compared byte for byte
 * between the two builds.
 */
#ifndef SU_BASE_H
#define SU_BASE_H

#include <stdint.h> /* the compiler's own, freestanding */

/* Windows are counted in packets of one MSS, as Linux counts them; positions in the stream in bytes
 * since the connection opened, so that nothing here wraps. */
#define SU_INFINITE_SSTHRESH                                                                       \
	0x7fffffffu		 /* pkts; TCP_INFINITE_SSTHRESH, Linux include/net/tcp.h           \
				  */
#define SU_LINUX_IW_PKTS 10u	 /* pkts; TCP_INIT_CWND, Linux include/net/tcp.h; RFC 6928 */
#define SU_OPEN_END	 (~0ull) /* byte; a range whose end is not known yet */
#define SU_BUT_LAST                                                                                \
	(~0ull - 1) /* byte; the same, without a packet that ends what has been written when it    \
		       leaves */
#define SU_US_PER_S 1000000ull

/* What happened. One structure carries every kind: the snapshot of the connection is the same for
 * all, and a recorded connection is then simply an array of events. */
enum su_event_kind {
	SU_EVENT_OPEN = 0, /* the connection is established; nothing has been sent yet */
	SU_EVENT_IDLE =
		1, /* a pause longer than the RTO ends: the stack is about to restart its window */
	SU_EVENT_SEND = 2, /* nothing is in flight, and data is about to leave */
	SU_EVENT_ACK = 3,  /* an ACK advanced the connection */
	SU_EVENT_LOSS = 4, /* the stack has found a loss and asks what the penalty is */
};

enum su_loss_kind {
	SU_LOSS_NONE = 0,
	SU_LOSS_FAST = 1,	 /* fast retransmit: duplicate ACKs, SACK or RACK */
	SU_LOSS_TIMEOUT = 2,	 /* the retransmission timer */
	SU_LOSS_PARTIAL_ACK = 3, /* NewReno: a partial new ACK during fast recovery */
	SU_LOSS_ECN = 4,	 /* no loss: the network marked a packet */
};

/* Where the stack's own loss recovery stands (Linux: icsk_ca_state). */
enum su_recovery {
	SU_RECOVERY_OPEN = 0,	 /* none, or only reordering suspected */
	SU_RECOVERY_FAST = 1,	 /* fast recovery, or a window reduction after ECN */
	SU_RECOVERY_TIMEOUT = 2, /* slow start after a timeout */
};

struct su_event {
	uint64_t now_us;      /* monotonic */
	uint64_t sent_bytes;  /* how far the stream has been sent; retransmissions do not move it */
	uint64_t acked_bytes; /* how far it has been acknowledged, cumulatively */
	uint64_t idle_us;     /* IDLE: time since the last data left */
	uint64_t unsent_bytes;	 /* written by the application and not yet sent: the least that the
				    transfer still has */
	uint64_t hint_bytes;	 /* the transfer's size, as the application says; 0: it does not */
	uint32_t delivered_pkts; /* cumulative: acknowledged or selectively acknowledged */
	uint32_t lost_pkts;	 /* cumulative: thought lost by the stack */
	uint32_t inflight_pkts;
	uint32_t cwnd_pkts; /* the stack's own at this moment; at OPEN its initial window, at IDLE
			       the old one */
	uint32_t ssthresh_pkts;
	uint32_t rtt_us; /* this ACK's sample; 0: none */
	uint32_t srtt_us;
	uint32_t rttvar_us; /* mean deviation (RFC 6298), unscaled */
	uint32_t min_rtt_us;
	uint32_t rto_us;
	uint32_t mss_bytes;
	uint32_t unpaced_pkts; /* SEND: packets which the stack will send back to back whatever the
				  rate */
	uint32_t peer_window_bytes;  /* what the receiver offers beyond acked_bytes */
	uint32_t retransmitted_pkts; /* cumulative */
	uint8_t kind;		     /* enum su_event_kind */
	uint8_t loss;		     /* enum su_loss_kind */
	uint8_t recovery;	     /* enum su_recovery */
	uint8_t sack_ok;	     /* the peer sends selective ACKs */
	uint8_t cwnd_limited;	/* ACK: cwnd, not application or receiver, is what limits sending
				 * (RFC 7661; Linux: tcp_is_cwnd_limited) */
	uint8_t iw_pkts;	/* OPEN, IDLE: the initial window configured for this destination or
				 * listener; 0: none */
	uint8_t handshake_lost; /* OPEN: the stack begins with 1, because the SYN or SYN-ACK was
				   lost; a route may say 1, too */
	uint8_t window_full;	/* cwnd itself is what stopped the last window's sending, with all
				   of it in flight (Linux: tcp_sock.is_cwnd_limited) */
};

/* What is remembered of a path (TCP Fast Start 3.3.2: cwnd, ssthresh, srtt, rttvar, as they last
 * were; Network Adaptive TCP Slow Start 3: the ending window, low-pass filtered). A mean and a mean
 * deviation are beside the window and beside min_rtt, because behind one prefix may be many paths.
 * "mpkts" are thousandths of a packet. Folded and judged by path_memory.h. */
enum su_ended {
	SU_ENDED_UNKNOWN = 0,
	SU_ENDED_SLOW_START = 1,
	SU_ENDED_AVOIDANCE = 2,
	SU_ENDED_RECOVERY = 3,
};

struct su_path {
	uint64_t age_us;	   /* since a window was last learnt */
	uint64_t rate_bytes_per_s; /* delivered in the best round trip of the last connection */
	uint32_t cwnd_pkts; /* the last window that got through without loss; 0: nothing known */
	uint32_t ssthresh_pkts;
	uint32_t srtt_us;
	uint32_t rttvar_us;
	uint32_t min_rtt_us;
	uint32_t ending_mpkts;	    /* ending windows, filtered; 0: none */
	uint32_t window_mean_mpkts; /* of the windows that were found exactly; 0: none was */
	uint32_t window_dev_mpkts;
	uint32_t min_rtt_mean_us;
	uint32_t min_rtt_dev_us;
	uint32_t lost_pkts; /* by the last connection that taught something */
	uint32_t samples;   /* how often it was learnt */
	uint8_t ended;	    /* enum su_ended: how the last connection stood */
	uint8_t refused; /* enum su_why: why nothing is told of a path that is known; 0: it is told
			  */
	uint8_t reserved[6];
};

/* Where a start-up stands. */
enum su_phase {
	SU_PHASE_NATIVE = 0,	/* the stack's own congestion control is in charge */
	SU_PHASE_ARMED = 1,	/* a window is chosen and waits for data */
	SU_PHASE_OPEN_LOOP = 2, /* the window is leaving; no ACK of it has come yet */
	SU_PHASE_CLOCKED = 3,	/* ACKs clock the sending; the window is not yet all acknowledged */
	SU_PHASE_RECOVERING = 4, /* packets of the window were lost; no penalty is taken */
	SU_PHASE_SLOW_START = 5, /* the start-up itself grows the window */
};

/* Why a verdict is as it is: the one vocabulary of logs, reports and tests. X(name, number, name in
 * JSON, explanation). Numbers are never used again for something else. */
/* clang-format off */
#define SU_WHYS(X)                                                                                             \
	X(NONE, 0, "none", "nothing to say: the stack goes on")                                                \
	X(INITIAL_WINDOW, 1, "initial-window", "the configured initial window")                                \
	X(PATH_UNKNOWN, 2, "path-unknown", "no memory of the path")                                            \
	X(PATH_STALE, 3, "path-stale", "the memory of the path is too old")                                    \
	X(PATH_SMALL, 4, "path-small", "the window known is no larger than the stack's own")                   \
	X(HANDSHAKE_LOSS, 5, "handshake-loss", "the SYN or SYN-ACK was lost: start at 1 (RFC 5681)")           \
	X(NO_SACK, 6, "no-sack", "the peer sends no SACK: a failed start could not be repaired fast")          \
	X(PATH_KNOWN, 7, "path-known", "armed from the path memory")                                           \
	X(RESUMED, 8, "resumed", "armed from the connection's own past")                                       \
	X(STARTED, 9, "started", "the window begins to leave")                                                 \
	X(ACK_CLOCK, 10, "ack-clock", "the first ACK of the window: the open loop is over")                    \
	X(APP_LIMITED, 11, "app-limited", "all that was sent is acknowledged, the window was not used whole")  \
	X(VALIDATED, 12, "validated", "a whole window got through")                                            \
	X(START_LOSS, 13, "start-loss", "packets of the window were lost: repaired without penalty")           \
	X(START_TIMEOUT, 14, "start-timeout", "the reset timer hit the window: slow start without penalty")    \
	X(PARTIAL_ACK, 15, "partial-ack", "several losses and no SACK: slow start without penalty")            \
	X(RECOVERED, 16, "recovered", "the losses of the window are repaired")                                 \
	X(ORDINARY_LOSS, 17, "ordinary-loss", "not a loss of the window: the usual penalty")                   \
	X(RESTART_WINDOW, 18, "restart-window", "after idle, by RFC 5681 4.1 and the configured initial window") \
	X(ESTIMATED, 20, "estimated", "the window is the configured part of the capacity measured")            \
	X(ESTIMATE_SMALL, 21, "estimate-small", "slow start has the larger window already: it goes on, paced") \
	X(BURST_SHORT, 22, "burst-short", "too few segments left at first: nothing to measure")                \
	X(NO_GAP, 23, "no-gap", "the ACKs of the burst came as one, or at once: nothing to measure")           \
	X(FIRST_ROUND, 24, "first-round", "paced for the first round trip, as configured")                     \
	X(SSTHRESH, 25, "ssthresh", "the window has reached ssthresh")                           \
	X(MAX_WINDOW, 26, "max-window", "the window has reached the start-up's bound: the stack goes on")      \
	X(PAUSED, 27, "paused", "a pause ended the first slow start: the stack goes on")                       \
	X(MID_CONNECTION, 28, "mid-connection", "chosen in the middle of a connection: its start is over") \
	X(NEAR_PATH, 29, "near-path", "the round trip is below least_rtt_us: native from the first packet on") \
	X(SLOW_START, 30, "slow-start", "the start-up itself grows the window")                                \
	X(ACK_TRAIN, 33, "ack-train", "a train of ACKs as long as the path's one-way delay")                   \
	X(DELAY_INCREASE, 34, "delay-increase", "the first round-trip times of a round have grown")            \
	X(LIMITED, 35, "limited", "above max_ssthresh_pkts: the window grows more slowly from here on")        \
	X(RATE_ESTIMATE, 36, "rate-estimate", "ssthresh by the eligible rate estimate")                        \
	X(PACKET_PAIR, 37, "packet-pair", "ssthresh by the spacing of the first ACKs")                         \
	X(RATE_BELOW_EXPECTED, 38, "rate-below-expected", "the rate is below the expected one by gamma_pkts") \
	X(PATH_SPREAD, 50, "path-spread", "the connections behind the prefix disagree: the memory abstains")   \
	X(PATH_CONTRADICTED, 51, "path-contradicted", "the round trip is not that of the path remembered")     \
	X(CONSTANT_RATE, 52, "constant-rate", "a short transfer, the last one ended in congestion avoidance: W each round trip") \
	X(HALF_WINDOW, 53, "half-window", "a short transfer, the last one ended in slow start: begin with W/2") \
	X(TRANSFER_LARGE, 54, "transfer-large", "no less than slow start would carry: as usual")               \
	X(TRANSFER_GREW, 55, "transfer-grew", "it is larger than it looked at first: as usual from here on")
/* clang-format on */

enum su_why {
#define SU_WHY_ENUM(name, number, text, help) SU_WHY_##name = number,
	SU_WHYS(SU_WHY_ENUM)
#undef SU_WHY_ENUM
};

/* The answer. cwnd_pkts and ssthresh_pkts are set once, when the verdict is given; the rest holds
 * until the next verdict. All zero means: the stack does as it would without us. */
struct su_verdict {
	uint64_t pacing_bytes_per_s; /* 0: not paced by us */
	uint64_t mark_from_byte; /* new data whose first byte is in [from, to) leaves with low */
	uint64_t mark_to_byte;	 /* drop priority; equal: none */
	uint32_t cwnd_pkts;	 /* 0: as it is */
	uint32_t ssthresh_pkts;	 /* 0: as it is; at LOSS: as the stack's control says */
	uint32_t burst_pkts;	 /* the largest burst while paced; 0: as the stack does */
	uint32_t rto_min_us;	 /* the floor under 4 rttvar in the RTO; 0: the stack's */
	uint32_t recovery_cwnd_pkts; /* least cwnd while the stack repairs losses; 0: the stack's */
	uint8_t phase;		     /* enum su_phase */
	uint8_t why;		     /* enum su_why */
	uint8_t owns_slow_start; /* below ssthresh cwnd moves by verdicts alone: neither the stack's
				    growth nor its own exit from slow start (CUBIC's HyStart)
				    applies */
	uint8_t forget_path;	 /* a start from what is remembered of the path failed: forget it */
};

_Static_assert(sizeof(struct su_event) == 112, "recorded and replayed: change the version with it");
_Static_assert(sizeof(struct su_path) == 72, "stored in the kernel's map");
_Static_assert(sizeof(struct su_verdict) == 48, "recorded and replayed");

/* A start-up's parameters are declared once, as a list P(name, default, min, max, unit, help): the
 * structure for the algorithm and the table for users come from the same lines. All are unsigned
 * 32-bit numbers. */
#define SU_PARAM_FIELD(name, value, min, max, unit, help) uint32_t name;
#define SU_MAX_PARAMS					  16

/* Every start-up's list begins with these, so that the carrier finds them without knowing the
 * start-up. */
#define SU_COMMON_PARAMS(P)                                                                        \
	P(reno, 0, 0, 1, "switch", "congestion avoidance after the start: Reno in place of CUBIC") \
	P(least_rtt_us, 1000, 0, 10000000, "us",                                                   \
	  "do not start where the round trip is shorter: the stack's own control; 0: always")

struct su_common_params {
	SU_COMMON_PARAMS(SU_PARAM_FIELD)
};

/* What a start-up makes use of, SU_<NAME>_USES: the carrier leaves out what it does not. */
enum su_uses {
	SU_USES_PATH =
		1, /* starts from what is remembered of the path; the others only add to it */
	SU_USES_SHAPE = 2, /* its verdicts pace, ask for bursts, or hold a window in recovery */
	SU_USES_MARKS = 4, /* its verdicts mark packets with low drop priority */
};

static inline uint32_t su_min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t su_max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* The rate at which @pkts packets take @over_us; at least 1 byte/s. */
static inline uint64_t su_rate_bytes_per_s(uint32_t pkts, uint32_t mss_bytes, uint32_t over_us)
{
	uint64_t rate = over_us ? (uint64_t)pkts * mss_bytes * SU_US_PER_S / over_us : 0;

	return rate ? rate : 1;
}

#endif
