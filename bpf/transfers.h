/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * The policy, and the record of a transfer: what policy.bpf.c and crates/headstart-kernel share.
 * The Rust side mirrors it in src/policy_layout.rs and asserts the same sizes.
 */
#ifndef HS_TRANSFERS_H
#define HS_TRANSFERS_H

#include "contract.h"

#define HS_MAX_RULES	  32
#define HS_MAX_ARMS	  4
#define HS_SHARE_ONE	  65536u /* the whole, in shares of an arm and in the sampling */
#define HS_CGROUP_LEVELS  16	 /* deeper cgroups match by their ancestors up to here */
#define HS_PARAM_SETS	  1024	 /* 0: the parameters of hs_config */
#define HS_NO_RULE	  0u
#define HS_RULE_STATS	  1024 /* rules that are counted for at the same time */
#define HS_CONTROL_LENGTH 16   /* TCP_CA_NAME_MAX, include/net/tcp.h */

/* What a rule, or one arm of an experiment, does with a connection. */
struct hs_arm {
	uint32_t upto;	   /* the arm has the hashes below this, and not below the arm before */
	uint32_t cap_pkts; /* no window above it; 0: none */
	uint16_t param_set;
	uint8_t changes_control; /* 0: the connection keeps what it has */
	uint8_t reserved[5];
	char control[HS_CONTROL_LENGTH];
};

/* The first rule that matches decides. */
struct hs_rule {
	uint64_t cgroup_id; /* 0: any */
	uint32_t cgroup_level;
	uint32_t ifindex; /* 0: any */
	uint32_t rule_id; /* never used again while the programs live; not HS_NO_RULE */
	uint16_t port_from, port_to;
	uint8_t family; /* 4 or 6; 0: any */
	uint8_t bits;	/* of addr */
	uint8_t arms;
	uint8_t records;
	uint8_t by_connection; /* each connection has a place of its own; else its peer's prefix has
				*/
	uint8_t reserved;
	uint16_t stats_place; /* of its struct hs_rule_stats; another rule's once it is gone */
	uint8_t addr[16];     /* what is behind its bits does not count */
	struct hs_arm arm[HS_MAX_ARMS];
};

struct hs_policy {
	uint64_t salt;	     /* of the assignment to arms */
	uint32_t rules;	     /* how many of rule[] there are */
	uint32_t sample;     /* share of the connections whose transfers are recorded */
	uint8_t arm_bits_v4; /* the prefix that is assigned as a whole */
	uint8_t arm_bits_v6;
	uint8_t names_cgroups; /* some rule has a cgroup_id */
	uint8_t names_devices; /* some rule has an ifindex */
	uint8_t reserved[4];
	struct hs_rule rule[HS_MAX_RULES];
};

/* What a rule sees of a connection. */
struct hs_flow_key {
	uint64_t cgroup_ids[HS_CGROUP_LEVELS]; /* by level, 0 is the root */
	uint32_t ifindex;
	uint16_t local_port;
	uint8_t family; /* 4 or 6 */
	uint8_t reserved;
	uint8_t addr[16]; /* of the peer */
	uint16_t remote_port;
	uint8_t reserved_too[6];
};

/* The policy's answer; also what explain asks for. */
struct hs_choice {
	uint32_t rule; /* place in rule[]; HS_MAX_RULES: none */
	uint32_t arm;
};

/* Which connections hs_move_back moves, and to what. */
struct hs_move {
	char control[HS_CONTROL_LENGTH];
	uint32_t rule_id; /* HS_NO_RULE: of all rules */
};

struct hs_explain {
	struct hs_flow_key key;
	struct hs_choice choice;
};

/* What a rule has done since it was made. */
struct hs_rule_stats {
	uint64_t matched;   /* connections */
	uint64_t chosen;    /* of them, given the rule's congestion control */
	uint64_t app_chose; /* of them, left alone: the application had chosen by itself */
	uint64_t refused;   /* of them, the kernel would not: a route's lock */
};

enum hs_transfer_flag {
	HS_TRANSFER_COMPLETE = 1 << 0, /* 0: the connection ended before all was acknowledged */
	HS_TRANSFER_APP_LIMITED = 1 << 1,
	HS_TRANSFER_PEER_LIMITED = 1 << 2,
	HS_TRANSFER_PATH_HIT = 1 << 3,
	HS_TRANSFER_RATE_APP_LIMITED = 1 << 4, /* the delivery rate is a lower bound */
	HS_TRANSFER_PASSIVE = 1 << 5,	       /* the peer opened the connection */
	HS_TRANSFER_WHY = 1 << 6,	       /* why and why_cwnd_pkts mean something */
};

struct hs_transfer {
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t end_ns;
	uint64_t bytes;
	uint64_t retrans_bytes;
	uint64_t rate_bytes_per_s; /* the best delivery rate sample; 0: none */
	uint64_t idle_ns;	   /* since the end of the transfer before; 0: the first */
	uint32_t retrans_pkts;
	uint32_t lost_pkts;
	uint32_t rto_count;
	uint32_t min_rtt_us;   /* of this transfer's samples; 0: none */
	uint32_t start_rtt_us; /* smoothed; 0: not measured yet */
	uint32_t end_rtt_us;   /* smoothed */
	uint32_t initial_cwnd_pkts;
	uint32_t end_cwnd_pkts;
	uint32_t exit_cwnd_pkts; /* when slow start was left; 0: it was not, or was over before */
	uint32_t why_cwnd_pkts;	 /* when the start-up gave its last reason */
	uint32_t peer_initial_window_bytes;
	uint32_t mss_bytes;
	uint32_t index; /* 0: the first of its connection */
	uint32_t rule_id;
	uint16_t local_port;
	uint16_t remote_port;
	uint8_t family; /* 4 or 6 */
	uint8_t arm;
	uint8_t flags; /* enum hs_transfer_flag */
	uint8_t why;   /* enum su_why */
	char control[HS_CONTROL_LENGTH];
	uint8_t remote_addr[16];
};

enum hs_flow_counter {
	HS_FLOW_RECORDED = 0,
	HS_FLOW_RECORDS_LOST = 1, /* the ring buffer was full */
	HS_FLOW_OPENED = 2,	  /* connections that a rule gave a congestion control */
	HS_FLOW_CLOSED = 3,	  /* of them, closed again */
	HS_FLOW_MOVED = 4,	  /* of them, moved back to a native control */
	HS_FLOW_STAYED = 5,	  /* of them, not movable */
	HS_FLOW_PENDING = 6,	  /* transfers that have ended and are not recorded yet */
	HS_FLOW_COUNTERS = 7,
};

_Static_assert(sizeof(struct hs_arm) == 32, "mirrored in policy_layout.rs");
_Static_assert(sizeof(struct hs_rule) == 176, "mirrored in policy_layout.rs");
_Static_assert(sizeof(struct hs_policy) == 24 + 32 * 176, "mirrored in policy_layout.rs");
_Static_assert(sizeof(struct hs_flow_key) == 160, "mirrored in policy_layout.rs");
_Static_assert(sizeof(struct hs_move) == 20, "mirrored in policy_layout.rs");
_Static_assert(sizeof(struct hs_explain) == 168, "mirrored in policy_layout.rs");
_Static_assert(sizeof(struct hs_rule_stats) == 32, "mirrored in policy_layout.rs");
_Static_assert(sizeof(struct hs_transfer) == 144, "mirrored in policy_layout.rs");

#endif
