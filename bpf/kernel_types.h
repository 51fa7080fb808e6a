/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * The kernel types that Headstart touches, trimmed by hand: only the fields in use. CO-RE finds
 * them by name in the running kernel's BTF, whatever their offsets there.
 */
#ifndef HS_KERNEL_TYPES_H
#define HS_KERNEL_TYPES_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef _Bool bool;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u16 __sum16;
typedef __u32 __wsum;

/* UAPI: fixed values, include/uapi/linux/bpf.h and others. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_CLONE = 1 << 9 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1 };
#define AF_INET		      2
#define AF_INET6	      10
#define SOL_TCP		      6
#define TCP_CONGESTION	      13
#define TCP_BPF_SNDCWND_CLAMP 1002
#define TCP_BPF_RTO_MIN	      1004
#define SK_PACING_NONE	      0
#define SK_PACING_NEEDED      1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct netns_ipv4 {
	__u8 sysctl_tcp_min_tso_segs;
	__u8 sysctl_tcp_tso_rtt_log;
};

struct net {
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__u8 u6_addr8[16];
		__be32 u6_addr32[4];
	} in6_u;
};

typedef struct {
	__s64 counter;
} atomic64_t;

struct sock_common {
	__be32 skc_daddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	atomic64_t skc_cookie;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[];
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct net_device {
	int ifindex;
};

struct dst_entry {
	struct net_device *dev;
};

/* A socket's congestion control by its name; the structure that programs fill is below. */
struct tcp_congestion_ops___named {
	char name[16];
};

struct sock {
	struct sock_common __sk_common;
	struct dst_entry *sk_dst_cache;
	struct sock_cgroup_data sk_cgrp_data;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
	__u8 sk_pacing_shift;
	__u32 sk_gso_max_size;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u32 icsk_rto;
	const struct tcp_congestion_ops___named *icsk_ca_ops;
	__u8 icsk_ca_state : 5;
	__u8 icsk_ca_setsockopt : 1;
	__u8 icsk_pending;
};

struct tcp_rack {
	__u32 rtt_us;
};

struct tcp_options_received {
	__u16 sack_ok : 3;
};

struct minmax_sample {
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 lsndtime;
	__u32 srtt_us;
	__u32 rttvar_us;
	__u32 mss_cache;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 lost;
	__u32 delivered;
	__u32 data_segs_out;
	__u32 write_seq;
	__u32 snd_wnd;
	__u32 total_retrans;
	__u32 max_packets_out;
	__u8 is_cwnd_limited : 1;
	__u8 chrono_type : 2;
	__u8 rate_app_limited : 1;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	struct tcp_rack rack;
	__u64 bytes_acked;
	__u64 bytes_retrans;
	__u64 tcp_mstamp;
	__u64 first_tx_mstamp;
	struct minmax rtt_min;
	struct tcp_options_received rx_opt;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
	__u32 in_flight;
};

struct rate_sample;

struct bpf_iter_meta;

struct bpf_map;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

#pragma clang attribute pop

/* include/net/inet_connection_sock.h, include/net/tcp.h, include/uapi/linux/tcp.h */
enum tcp_ca_event {
	CA_EVENT_TX_START = 0,
	CA_EVENT_CWND_RESTART = 1,
	CA_EVENT_COMPLETE_CWR = 2,
	CA_EVENT_LOSS = 3,
	CA_EVENT_ECN_NO_CE = 4,
	CA_EVENT_ECN_IS_CE = 5,
};

enum tcp_ca_state {
	TCP_CA_Open = 0,
	TCP_CA_Disorder = 1,
	TCP_CA_CWR = 2,
	TCP_CA_Recovery = 3,
	TCP_CA_Loss = 4,
};

/* include/net/tcp_states.h, include/linux/tcp.h */
enum {
	TCP_FIN_WAIT1 = 4,
	TCP_CLOSE = 7,
	TCP_LAST_ACK = 9,
	TCP_CLOSING = 11,
};
enum { TCP_CHRONO_RWND_LIMITED = 2 };

#define TCP_CONG_NON_RESTRICTED 1u

/* libbpf matches these by name with the kernel's own structure. A member that the kernel does not
 * have is emptied before the load (headstart-kernel, callbacks.rs), and the program that stood in
 * it is not loaded: so each kernel gets the callbacks of its own interface. */
struct tcp_congestion_ops {
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*min_tso_segs)(struct sock *sk);
	/* From Linux 7.1, which does not call cwnd_event with CA_EVENT_TX_START any more. */
	void (*cwnd_event_tx_start)(struct sock *sk);
	/* In the place of min_tso_segs where the kernel is patched with BBRv3. */
	__u32 (*tso_segs)(struct sock *sk, unsigned int mss_now);
	char name[16];
};

/* UAPI contexts, include/uapi/linux/bpf.h: the verifier rewrites the accesses, so these are laid
 * out in full up to the last field in use, and are not relocated. */
struct bpf_sock {
	__u32 bound_dev_if;
	__u32 family;
};

struct bpf_sockopt {
	union {
		struct bpf_sock *sk;
		__u64 : 64;
	} __attribute__((aligned(8)));
	union {
		void *optval;
		__u64 : 64;
	} __attribute__((aligned(8)));
	union {
		void *optval_end;
		__u64 : 64;
	} __attribute__((aligned(8)));
	__s32 level;
	__s32 optname;
	__s32 optlen;
	__s32 retval;
};

struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 ingress_ifindex;
	__u32 ifindex;
	__u32 tc_index;
	__u32 cb[5];
	__u32 hash;
	__u32 tc_classid;
	__u32 data;
	__u32 data_end;
	__u32 napi_id;
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 data_meta;
	union {
		void *flow_keys;
		__u64 : 64;
	} __attribute__((aligned(8)));
	__u64 tstamp;
	__u32 wire_len;
	__u32 gso_segs;
	union {
		struct bpf_sock *sk;
		__u64 : 64;
	} __attribute__((aligned(8)));
	__u32 gso_size;
};

struct bpf_sock_ops {
	__u32 op;
	union {
		__u32 args[4];
		__u32 reply;
		__u32 replylong[4];
	};
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 is_fullsock;
	__u32 snd_cwnd;
	__u32 srtt_us;
	__u32 bpf_sock_ops_cb_flags;
	__u32 state;
	__u32 rtt_min;
	__u32 snd_ssthresh;
	__u32 rcv_nxt;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 mss_cache;
	__u32 ecn_flags;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 total_retrans;
	__u32 segs_in;
	__u32 data_segs_in;
	__u32 segs_out;
	__u32 data_segs_out;
	__u32 lost_out;
	__u32 sacked_out;
	__u32 sk_txhash;
	__u64 bytes_received;
	__u64 bytes_acked;
	union {
		struct bpf_sock *sk;
		__u64 : 64;
	} __attribute__((aligned(8)));
};

enum {
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_RTO_CB = 8,
	BPF_SOCK_OPS_STATE_CB = 10,
	BPF_SOCK_OPS_RTT_CB = 12,
};
enum {
	BPF_SOCK_OPS_RTO_CB_FLAG = 1 << 0,
	BPF_SOCK_OPS_STATE_CB_FLAG = 1 << 2,
	BPF_SOCK_OPS_RTT_CB_FLAG = 1 << 3,
};

#endif
