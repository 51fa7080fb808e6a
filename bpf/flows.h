/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * What is kept for each connection that a rule matched, and how a transfer of it is recorded.
 * Shared by startup.bpf.c (the parameters of the rule) and policy.bpf.c; the loader makes the
 * maps one.
 */
#ifndef HS_FLOWS_H
#define HS_FLOWS_H

#include "maps.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include "transfers.h"

/* Where the transfer of a connection stands. ACTIVE becomes ENDED in the path of arriving packets,
 * which does not hold the socket's lock; whoever records takes ENDED to RECORDING and then to IDLE.
 */
enum hs_flow_phase {
	HS_FLOW_IDLE = 0,
	HS_FLOW_ACTIVE = 1,
	HS_FLOW_ENDED = 2,
	HS_FLOW_RECORDING = 3,
};

struct hs_flow {
	__u64 start_ns;
	__u64 end_ns;
	__u64 bytes;
	__u64 last_end_ns;	   /* of the transfer before */
	__u64 begin_acked_bytes;   /* of the connection, when the transfer began */
	__u64 begin_retrans_bytes; /* those at the end of the transfer before */
	__u64 retrans_bytes;
	__u32 phase; /* enum hs_flow_phase */
	__u32 begin_seq;
	__u32 end_seq;
	__u32 begin_retrans_pkts;
	__u32 begin_lost_pkts;
	__u32 retrans_pkts;
	__u32 lost_pkts;
	__u32 rto_count; /* of the connection */
	__u32 begin_rto_count;
	__u32 transfers;
	__u32 min_rtt_us;
	__u32 start_rtt_us;
	__u32 initial_cwnd_pkts;
	__u32 exit_cwnd_pkts;
	__u32 end_cwnd_pkts;
	__u32 peer_initial_window_bytes;
	__u32 drained_seq; /* meaningful where drained */
	__u32 rule_id;
	__u16 param_set;
	__u8 arm;
	__u8 passive;
	__u8 records;
	__u8 chosen;  /* under a congestion control that a rule gave it */
	__u8 drained; /* the application had nothing left to send once */
	__u8 in_slow_start;
	__u8 app_limited;
	__u8 peer_limited;
	__u8 reserved[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hs_flow);
} hs_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HS_PARAM_SETS);
	__type(key, __u32);
	__type(value, union su_params);
} hs_param_sets SEC(".maps");

#endif
