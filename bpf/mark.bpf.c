// SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
/*
 * Low drop priority: in tc egress, rewrites the DSCP of exactly the packets that a verdict names.
 * Source: TCP Fast Start, 3.2 and 3.3.1. The priority bit is a DSCP value of the configuration.
 * A packet is one that carries data for the first time and whose first byte lies in the range.
 */
#include "maps.h"
#include <bpf/bpf_endian.h>

char _license[] SEC("license") = "Dual MIT/GPL";

#define ETH_HLEN      14
#define IPPROTO_TCP   6
#define IPV6_HLEN     40
#define ECN_MASK      3
#define TC_ACT_UNSPEC (-1) /* TCX_NEXT too: whatever else is attached goes on */

struct network_header {
	__u32 at;  /* offset of the network header in the packet */
	__u32 tcp; /* offset of the TCP header */
	__u32 end; /* offset behind the last byte */
	__u8 version;
};

/* @at: where the network header is, which depends on the device alone. */
static __always_inline int find_headers(struct __sk_buff *skb, __u32 at,
					struct network_header *header)
{
	__u8 first, next;

	header->at = at;
	if (bpf_skb_load_bytes(skb, at, &first, 1))
		return -1;
	header->version = first >> 4;
	if (header->version == 4) {
		if (bpf_skb_load_bytes(skb, at + 9, &next, 1))
			return -1;
		header->tcp = at + (first & 15) * 4;
	} else if (header->version == 6) {
		if (bpf_skb_load_bytes(skb, at + 6, &next, 1))
			return -1;
		header->tcp = at + IPV6_HLEN;
	} else {
		return -1;
	}
	header->end = skb->len;
	return next == IPPROTO_TCP ? 0 : -1;
}

static __always_inline void set_dscp(struct __sk_buff *skb, const struct network_header *header,
				     __u8 dscp)
{
	if (header->version == 4) {
		__u8 tos[2]; /* version and header length, TOS */
		__be16 before, after;

		if (bpf_skb_load_bytes(skb, header->at, tos, sizeof(tos)))
			return;
		before = bpf_htons((__u16)(tos[0] << 8 | tos[1]));
		tos[1] = (__u8)(dscp << 2 | (tos[1] & ECN_MASK));
		after = bpf_htons((__u16)(tos[0] << 8 | tos[1]));
		if (bpf_l3_csum_replace(skb, header->at + 10, before, after, 2))
			return;
		bpf_skb_store_bytes(skb, header->at + 1, &tos[1], 1, 0);
	} else {
		__be16 word; /* version, traffic class, first bits of the flow label */

		if (bpf_skb_load_bytes(skb, header->at, &word, sizeof(word)))
			return;
		word = bpf_htons((__u16)((bpf_ntohs(word) & 0xf03f) | dscp << 6));
		bpf_skb_store_bytes(skb, header->at, &word, sizeof(word), 0);
	}
}

/* Whether nothing has been written behind @end_seq. A FIN counts as one byte. */
static __always_inline int is_last(struct bpf_sock *sk, __u32 end_seq)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	return tp && (__s32)(tp->write_seq - end_seq) <= 1;
}

static __always_inline int mark(struct __sk_buff *skb, __u32 network_at)
{
	const struct hs_config *config;
	struct bpf_sock *sk = skb->sk;
	struct network_header header;
	struct hs_conn *conn;
	__u32 seq, payload;
	__be32 seq_be;
	__u8 offset;

	/* Every packet of the device comes this way: those of others must be cheap. A socket that
	 * is none yet (a SYN's) or no more has no storage. */
	if (!sk)
		return TC_ACT_UNSPEC;
	conn = bpf_sk_storage_get(&hs_conns, sk, 0, 0);
	if (!conn || !conn->marking)
		return TC_ACT_UNSPEC;
	config = hs_config();
	if (!config || find_headers(skb, network_at, &header) ||
	    bpf_skb_load_bytes(skb, header.tcp + 4, &seq_be, 4) ||
	    bpf_skb_load_bytes(skb, header.tcp + 12, &offset, 1))
		return TC_ACT_UNSPEC;
	payload = header.end - header.tcp - (offset >> 4) * 4;
	if ((__s32)payload <= 0)
		return TC_ACT_UNSPEC;
	seq = bpf_ntohl(seq_be);
	if ((__s32)(seq - conn->mark_next_seq) < 0)
		return TC_ACT_UNSPEC;
	conn->mark_next_seq = seq + payload;
	if ((__s32)(seq - conn->mark_from_seq) < 0)
		return TC_ACT_UNSPEC;
	if (conn->mark_bounded && (__s32)(seq - conn->mark_to_seq) >= 0)
		return TC_ACT_UNSPEC;
	if (conn->mark_but_last && is_last(sk, seq + payload))
		return TC_ACT_UNSPEC;
	set_dscp(skb, &header, config->dscp);
	hs_count(HS_COUNTER_MARKED_PKTS);
	return TC_ACT_UNSPEC;
}

/* Ethernet-like devices: veth, loopback, network cards. */
SEC("tc/egress")
int hs_mark_ether(struct __sk_buff *skb)
{
	return mark(skb, ETH_HLEN);
}

/* Devices without a link header: TUN, most tunnels. */
SEC("tc/egress")
int hs_mark_raw(struct __sk_buff *skb)
{
	return mark(skb, 0);
}
