/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * What the BPF programs and crates/headstart-kernel share: the layout of maps and records. The Rust
 * side mirrors it in src/contract.rs and asserts the same sizes.
 */
#ifndef HS_CONTRACT_H
#define HS_CONTRACT_H

#include "registry.h"

#define HS_MAX_ALGS 16

/* The socket option of hint.bpf.c: "HS", beyond all options that the kernel has. */
#define HS_HINT_OPTION 0x4853

/* How much of what happens is written to the ring buffer. */
enum hs_record_level {
	HS_RECORD_NOTHING = 0,
	HS_RECORD_DECISIONS = 1, /* verdicts that say something (why, or a change of phase) */
	HS_RECORD_EVENTS = 2,	 /* every event with its verdict: can be replayed */
};

/* A destination's prefix; the bits behind it are zero. An IPv4 address stands in the first four
 * bytes. */
struct hs_prefix {
	uint8_t family; /* 4 or 6 */
	uint8_t bits;
	uint8_t reserved[2];
	uint8_t addr[16];
};

/* The path memory's key: a prefix; or, with family HS_GROUP and the rest 0, the local network as
 * one group. */
#define HS_GROUP	      1
#define HS_MAX_PREFIX_LENGTHS 4
#define HS_MAX_GROUP_PREFIXES 8
#define HS_NO_LENGTH	      255

struct hs_config {
	union su_params params[HS_MAX_ALGS]; /* by enum su_alg */
	struct su_memory_params memory;
	uint32_t record_level;	 /* enum hs_record_level */
	uint32_t group_prefixes; /* how many of group[] are in use */
	uint8_t dscp;		 /* of packets with low drop priority, 0 to 63 */
	uint8_t windows;	 /* there are initial windows of destinations or listeners */
	uint8_t reserved[6];
	/* The prefix lengths under which a path is remembered, longest first; HS_NO_LENGTH: no more
	 */
	uint8_t prefix_bits_v4[HS_MAX_PREFIX_LENGTHS];
	uint8_t prefix_bits_v6[HS_MAX_PREFIX_LENGTHS];
	struct hs_prefix group[HS_MAX_GROUP_PREFIXES]; /* what the local network is */
};

struct hs_path_entry {
	struct su_path
		path; /* age_us is what it was at learnt_ns: 0, unless learnt before the boot */
	uint64_t learnt_ns; /* CLOCK_BOOTTIME: a suspended machine ages too */
};

/* The key of an initial window, for a longest-prefix match. */
struct hs_window_key {
	uint32_t match_bits; /* of what follows: 32, and those of the prefix */
	uint8_t family;	     /* 4 or 6 */
	uint8_t reserved;
	uint16_t local_port; /* 0: any; asked for second */
	uint8_t addr[16];
};

/* One event of one connection. */
struct hs_record {
	uint64_t at_ns;	 /* CLOCK_MONOTONIC */
	uint64_t socket; /* distinguishes connections while they live */
	uint32_t alg;	 /* enum su_alg */
	uint16_t local_port;
	uint16_t remote_port;
	uint8_t family; /* 4 or 6 */
	uint8_t path_known;
	uint8_t reserved[6];
	uint8_t remote_addr[16];
	struct su_path path; /* what was known of the path: OPEN and IDLE */
	struct su_event event;
	struct su_verdict verdict;
};

/* A look at a connection under any congestion control, at each of its RTT samples (watch.bpf.c). */
struct hs_sample {
	uint64_t at_ns;
	uint64_t acked_bytes;
	uint32_t cwnd_pkts;
	uint32_t ssthresh_pkts;
	uint32_t srtt_us;
	uint32_t inflight_pkts;
	uint32_t total_retrans_pkts;
	uint16_t local_port;
	uint16_t remote_port;
	uint8_t family; /* 4 or 6 */
	uint8_t reserved[7];
	uint8_t remote_addr[16];
};

/* One step of a replay, the context of replay.bpf.c. */
struct hs_replay {
	union su_params params;
	union su_state state;
	struct su_path path;
	struct su_event event;
	struct su_verdict verdict;
	uint32_t alg;
	uint32_t path_known;
};

/* Counters, the keys of the counters map. */
enum hs_counter {
	HS_COUNTER_RECORDS_LOST = 0, /* the ring buffer was full */
	HS_COUNTER_MARKED_PKTS = 1,  /* skbs that left with low drop priority */
	HS_COUNTERS = 2,
};

/* Counters of watch.bpf.c. */
enum hs_watch_counter {
	HS_WATCH_SAMPLES_LOST = 0, /* the ring buffer was full */
	HS_WATCH_CHOSEN = 1,	   /* connections that got the configured congestion control */
	HS_WATCH_REFUSED = 2,	   /* connections for which the kernel refused it */
	HS_WATCH_COUNTERS = 3,
};

_Static_assert(sizeof(struct hs_config) == 1244, "mirrored in contract.rs");
_Static_assert(sizeof(struct hs_prefix) == 20, "mirrored in contract.rs");
_Static_assert(sizeof(struct hs_path_entry) == 80, "mirrored in contract.rs");
_Static_assert(sizeof(struct hs_window_key) == 24, "mirrored in contract.rs");
_Static_assert(sizeof(struct hs_record) == 280, "mirrored in contract.rs");
_Static_assert(sizeof(struct hs_sample) == 64, "mirrored in contract.rs");
_Static_assert(sizeof(struct hs_replay) == 432, "mirrored in contract.rs");

#endif
