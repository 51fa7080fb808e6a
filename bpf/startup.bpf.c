// SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
/*
 * The glue between the kernel and core/: one TCP congestion control for each start-up of the
 * registry.
 *
 * Kernel callback -> event -> the start-up's verdict -> socket fields. Nothing is decided here.
 * Congestion avoidance and loss recovery are the kernel's own (native.h).
 *
 * The order in which the kernel calls (Linux 6.1 to 6.18):
 *
 * - new connection: init, min_tso_segs, TX_START, first packet;
 *
 * - after a pause: CWND_RESTART (old window visible), the kernel cuts cwnd, min_tso_segs, TX_START,
 * first packet;
 *
 * - ACK: pkts_acked, then ssthresh (a loss begins) or cong_avoid;
 *
 * - ACK in recovery: pkts_acked, PRR sets cwnd, min_tso_segs, retransmissions.
 *
 * Where the kernel cannot do what a start-up's paper says, the nearest is done and named
 * "DEVIATES:".
 */
#include "maps.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>
#include "emit.h"
#include "events.h"
#include "native.h"
#include "paths.h"
#include "records.h"
#include "verdicts.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* The rule's own parameters, where the connection came by one that has some: @set is not 0. */
static __always_inline const union su_params *params_of(__u32 set, enum su_alg alg)
{
	const struct hs_config *config;
	const union su_params *own;

	if (set) {
		own = bpf_map_lookup_elem(&hs_param_sets, &set);
		if (own)
			return own;
	}
	config = hs_config();
	if (!config)
		return 0;
	/* Or clang computes the address first and asks afterwards, which the verifier does not
	 * take.
	 */
	barrier_var(config);
	return &config->params[alg];
}

/* At LOSS the caller sets the windows: the kernel wants ssthresh returned and sets cwnd itself. */
static __always_inline void step(struct sock *sk, enum su_alg alg, struct hs_conn *conn,
				 const struct su_path *path, const struct su_event *ev)
{
	struct su_verdict *v = &conn->verdict;
	const union su_params *params = params_of(conn->param_set, alg);
	__u8 old_phase = v->phase;

	if (!params)
		return;
	su_step(alg, &conn->state, params, path, ev, v);
	record(sk, conn, ev, path, old_phase);
	if (ev->kind != SU_EVENT_LOSS) {
		if (v->cwnd_pkts)
			tcp(sk)->snd_cwnd = v->cwnd_pkts;
		if (v->ssthresh_pkts)
			tcp(sk)->snd_ssthresh = v->ssthresh_pkts;
	}
	if (v->forget_path)
		teach(sk, conn, ev, 0);
	if (v->why != SU_WHY_NONE) {
		conn->why = v->why;
		conn->why_at_us = ev->now_us;
		conn->why_cwnd_pkts = tcp(sk)->snd_cwnd;
	}
	apply_marks(sk, conn, ev);
	apply_pacing(sk, conn, ev);
	apply_rto_min(sk, conn);
}

/* The records of a rule say of every start-up whether its path was known, so that those of two arms
 * can be compared. Otherwise only who starts from it asks. */
static __always_inline int recall_for(struct sock *sk, enum su_alg alg, struct hs_conn *conn,
				      const struct su_event *ev)
{
	return su_uses(alg) & SU_USES_PATH || conn->ruled ? recall(sk, conn, ev) : 0;
}

/* Whether all that the core would say of the connection is that it is near, and nobody would hear
 * it: then nothing is kept of it, and every callback is the stack's own at its first line. To make
 * and to free what is kept for a socket costs more than all the rest of a short transfer's
 * callbacks. */
static __always_inline int is_left_alone(struct sock *sk, enum su_alg alg,
					 const union su_params *params, const struct hs_flow *flow)
{
	const struct hs_config *config = hs_config();

	if (!params || flow || !config || config->record_level != HS_RECORD_NOTHING)
		return 0;
	/* Which of the two it is would have to be kept. */
	if (params->common.reno)
		return 0;
	return su_is_near(alg, params, tcp(sk)->srtt_us >> 3, initial_window(sk)) && !find(sk);
}

static __always_inline void on_init(struct sock *sk, enum su_alg alg)
{
	struct hs_flow *flow = bpf_sk_storage_get(&hs_flows, tcp(sk), 0, 0);
	const union su_params *params = params_of(flow ? flow->param_set : 0, alg);
	struct hs_conn *conn;
	struct su_event ev;
	int known = 0;

	if (is_left_alone(sk, alg, params, flow)) {
		native_init(sk, 0);
		return;
	}
	conn = bpf_sk_storage_get(&hs_conns, tcp(sk), 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!conn) {
		native_init(sk, 0);
		return;
	}
	__builtin_memset(conn, 0, sizeof(*conn));
	conn->alg = (__u8)alg;
	if (flow) {
		conn->ruled = 1;
		conn->param_set = flow->param_set;
	}
	conn->reno = params && params->common.reno;
	native_init(sk, conn);
	/* Chosen by setsockopt in the middle of a connection: the start is over, memory is of no
	 * use. */
	snapshot(sk, conn, SU_EVENT_OPEN, &ev);
	conn->learnt_bytes = ev.acked_bytes;
	if (!tcp(sk)->data_segs_out) {
		known = recall_for(sk, alg, conn, &ev);
		ev.iw_pkts = initial_window(sk);
		/* As tcp_init_transfer has decided (net/ipv4/tcp_input.c); all that has been sent
		 * again by now is of the handshake. */
		ev.handshake_lost = tcp(sk)->snd_cwnd <= 1 && tcp(sk)->total_retrans;
	}
	conn->path_hit = (__u8)known;
	step(sk, alg, conn, known ? &conn->path : 0, &ev);
}

/* lsndtime and icsk_rto are in jiffies, whose length a program does not know. The start-up wants
 * the pause as a multiple of the RTO: that is kept exactly. */
static __always_inline __u64 idle_us(struct sock *sk, __u32 rto_us)
{
	__u32 idle_jiffies = (__u32)bpf_jiffies64() - tcp(sk)->lsndtime;
	__u32 rto_jiffies = icsk(sk)->icsk_rto;

	return rto_jiffies ? (__u64)idle_jiffies * rto_us / rto_jiffies : 0;
}

/* What the application said of its next transfer holds for one. */
static __always_inline __u64 take_hint(struct sock *sk)
{
	__u64 *hint = bpf_sk_storage_get(&hs_hints, tcp(sk), 0, 0);
	__u64 bytes;

	if (!hint)
		return 0;
	bytes = *hint;
	*hint = 0;
	return bytes;
}

static __always_inline void on_tx_start(struct sock *sk, enum su_alg alg)
{
	struct hs_conn *conn = find(sk);
	struct su_event ev;

	/* Also fires where a retransmission starts an empty pipe, hence the state. */
	if (!conn || icsk(sk)->icsk_ca_state != TCP_CA_Open)
		return;
	snapshot(sk, conn, SU_EVENT_SEND, &ev);
	if (tcp(sk)->data_segs_out < LINUX_UNPACED_PKTS)
		ev.unpaced_pkts = LINUX_UNPACED_PKTS - tcp(sk)->data_segs_out;
	ev.hint_bytes = take_hint(sk);
	step(sk, alg, conn, 0, &ev);
}

static __always_inline void on_cwnd_restart(struct sock *sk, enum su_alg alg)
{
	struct hs_conn *conn = find(sk);
	struct su_event ev;
	int known;

	if (!conn)
		return;
	snapshot(sk, conn, SU_EVENT_IDLE, &ev);
	ev.idle_us = idle_us(sk, ev.rto_us);
	ev.iw_pkts = initial_window(sk);
	learn(sk, alg, conn, &ev);
	known = recall_for(sk, alg, conn, &ev);
	conn->path_hit = (__u8)known;
	step(sk, alg, conn, known ? &conn->path : 0, &ev);
}

static __always_inline void on_cwnd_event(struct sock *sk, enum su_alg alg, enum tcp_ca_event event)
{
	if (event == CA_EVENT_CWND_RESTART)
		on_cwnd_restart(sk, alg);
	else if (event == CA_EVENT_TX_START)
		on_tx_start(sk, alg);
	native_cwnd_event(sk, event);
}

/* Called before each round of sending, also before TX_START has decided the rate. While a window
 * waits for its first packet a rate of 1 byte/s makes TSO autosizing build that packet of one
 * segment. */
static __always_inline __u32 on_min_tso_segs(struct sock *sk)
{
	__u32 native = sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_min_tso_segs;
	struct hs_conn *conn = find(sk);
	struct su_verdict *v;

	if (!conn)
		return native;
	v = &conn->verdict;
	/* Recovery: PRR has just set cwnd for this ACK, and what is retransmitted now goes by it.
	 * After a timeout it is the kernel's slow start that has. */
	if (v->recovery_cwnd_pkts > tcp(sk)->snd_cwnd && icsk(sk)->icsk_ca_state >= TCP_CA_Recovery)
		tcp(sk)->snd_cwnd = v->recovery_cwnd_pkts;
	if (v->phase == SU_PHASE_ARMED && v->burst_pkts && !tcp(sk)->packets_out &&
	    icsk(sk)->icsk_ca_state == TCP_CA_Open) {
		if (!conn->rate_saved) {
			conn->stack_rate = sk->sk_pacing_rate;
			conn->rate_saved = 1;
		}
		sk->sk_pacing_rate = 1;
	} else if (v->pacing_bytes_per_s) {
		/* The stack writes its own rate after each ACK. */
		set_pacing_rate(sk, v->pacing_bytes_per_s);
	}
	return v->burst_pkts ? v->burst_pkts : native;
}

/* As tcp_tso_autosize (net/ipv4/tcp_output.c), which the kernel calls with min_tso_segs: where it
 * asks for the number itself, nobody else does. */
static __always_inline __u32 tso_autosize(struct sock *sk, __u32 mss_bytes, __u32 least)
{
	const struct netns_ipv4 *sysctl = &sk->__sk_common.skc_net.net->ipv4;
	__u64 bytes = sk->sk_pacing_rate >> (sk->sk_pacing_shift & 63);
	__u32 most = sk->sk_gso_max_size;
	__u32 shift = tcp(sk)->rtt_min.s[0].v >> (sysctl->sysctl_tcp_tso_rtt_log & 31);
	__u32 segs;

	if (shift < 32)
		bytes += most >> shift;
	if (bytes > most)
		bytes = most;
	segs = mss_bytes ? (__u32)bytes / mss_bytes : 0;
	return segs > least ? segs : least;
}

/* A rule gave the connection to the start-up: where this ACK ended a transfer, all has been said.
 */
static __always_inline void record_transfer(struct sock *sk, const struct hs_conn *conn)
{
	struct hs_flow *flow = bpf_sk_storage_get(&hs_flows, tcp(sk), 0, 0);

	if (flow)
		emit_ended(flow, tcp(sk), conn);
}

static __always_inline void on_cong_avoid(struct sock *sk, enum su_alg alg, __u32 ack, __u32 acked)
{
	struct hs_conn *conn = find(sk);
	struct su_event ev;

	if (conn) {
		snapshot(sk, conn, SU_EVENT_ACK, &ev);
		step(sk, alg, conn, 0, &ev);
		/* The pipe is empty: a transfer may have ended, and the next connection wants to
		 * know, by the windows as they now are. */
		if (ev.acked_bytes >= ev.sent_bytes) {
			ev.cwnd_pkts = tcp(sk)->snd_cwnd;
			ev.ssthresh_pkts = tcp(sk)->snd_ssthresh;
			learn(sk, alg, conn, &ev);
		}
	}
	native_cong_avoid(sk, conn, ack, acked);
	if (conn && conn->ruled)
		record_transfer(sk, conn);
}

static __always_inline __u32 on_ssthresh(struct sock *sk, enum su_alg alg)
{
	struct hs_conn *conn = find(sk);
	struct su_event ev;
	__u32 ssthresh;

	if (!conn)
		return native_ssthresh(sk, conn);
	snapshot(sk, conn, SU_EVENT_LOSS, &ev);
	ev.loss = loss_kind(sk);
	step(sk, alg, conn, 0, &ev);
	ssthresh = conn->verdict.ssthresh_pkts;
	if (!ssthresh)
		return native_ssthresh(sk, conn);
	/* At the end of fast recovery the kernel sets cwnd to what is returned here, unless it is
	 * infinite: more than cwnd would make the window jump up. The start-up restores its own
	 * afterwards. */
	if (ev.loss == SU_LOSS_TIMEOUT || ssthresh >= SU_INFINITE_SSTHRESH)
		return ssthresh;
	return su_max_u32(su_min_u32(ssthresh, tcp(sk)->snd_cwnd), 2);
}

/* In recovery the kernel does not call cong_avoid, so the ACK is reported from here. */
static __always_inline void on_acked(struct sock *sk, enum su_alg alg,
				     const struct ack_sample *sample)
{
	struct hs_conn *conn = find(sk);
	struct su_event ev;

	if (conn) {
		conn->rtt_us = sample->rtt_us > 0 ? (__u32)sample->rtt_us : 0;
		if (conn->verdict.phase == SU_PHASE_RECOVERING &&
		    icsk(sk)->icsk_ca_state == TCP_CA_Recovery) {
			snapshot(sk, conn, SU_EVENT_ACK, &ev);
			step(sk, alg, conn, 0, &ev);
		}
	}
	native_acked(sk, conn, sample);
}

static __always_inline void on_release(struct sock *sk, enum su_alg alg)
{
	struct hs_conn *conn = find(sk);
	struct su_event ev;

	if (!conn)
		return;
	snapshot(sk, conn, SU_EVENT_ACK, &ev);
	learn(sk, alg, conn, &ev);
}

#define CONGESTION_CONTROL(alg, NAME, number, source)                                              \
	SEC("struct_ops") void BPF_PROG(alg##_init, struct sock *sk)                               \
	{                                                                                          \
		on_init(sk, SU_ALG_##NAME);                                                        \
	}                                                                                          \
	SEC("struct_ops")                                                                          \
	void BPF_PROG(alg##_cwnd_event, struct sock *sk, enum tcp_ca_event event)                  \
	{                                                                                          \
		on_cwnd_event(sk, SU_ALG_##NAME, event);                                           \
	}                                                                                          \
	SEC("struct_ops") __u32 BPF_PROG(alg##_min_tso_segs, struct sock *sk)                      \
	{                                                                                          \
		return on_min_tso_segs(sk);                                                        \
	}                                                                                          \
	SEC("struct_ops") void BPF_PROG(alg##_tx_start, struct sock *sk)                           \
	{                                                                                          \
		on_tx_start(sk, SU_ALG_##NAME);                                                    \
		native_tx_start(sk);                                                               \
	}                                                                                          \
	SEC("struct_ops") __u32 BPF_PROG(alg##_tso_segs, struct sock *sk, unsigned int mss_now)    \
	{                                                                                          \
		return tso_autosize(sk, mss_now, on_min_tso_segs(sk));                             \
	}                                                                                          \
	SEC("struct_ops") void BPF_PROG(alg##_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) \
	{                                                                                          \
		on_cong_avoid(sk, SU_ALG_##NAME, ack, acked);                                      \
	}                                                                                          \
	SEC("struct_ops") __u32 BPF_PROG(alg##_ssthresh, struct sock *sk)                          \
	{                                                                                          \
		return on_ssthresh(sk, SU_ALG_##NAME);                                             \
	}                                                                                          \
	SEC("struct_ops") void BPF_PROG(alg##_set_state, struct sock *sk, __u8 state)              \
	{                                                                                          \
		native_state(sk, state);                                                           \
	}                                                                                          \
	SEC("struct_ops")                                                                          \
	void BPF_PROG(alg##_pkts_acked, struct sock *sk, const struct ack_sample *sample)          \
	{                                                                                          \
		on_acked(sk, SU_ALG_##NAME, sample);                                               \
	}                                                                                          \
	SEC("struct_ops") __u32 BPF_PROG(alg##_undo_cwnd, struct sock *sk)                         \
	{                                                                                          \
		return tcp_reno_undo_cwnd(sk);                                                     \
	}                                                                                          \
	SEC("struct_ops") void BPF_PROG(alg##_release, struct sock *sk)                            \
	{                                                                                          \
		on_release(sk, SU_ALG_##NAME);                                                     \
	}                                                                                          \
	SEC(".struct_ops.link")                                                                    \
	struct tcp_congestion_ops su_##alg = {                                                     \
		.init = (void *)alg##_init,                                                        \
		.cwnd_event = (void *)alg##_cwnd_event,                                            \
		.min_tso_segs = (void *)alg##_min_tso_segs,                                        \
		.cwnd_event_tx_start = (void *)alg##_tx_start,                                     \
		.tso_segs = (void *)alg##_tso_segs,                                                \
		.cong_avoid = (void *)alg##_cong_avoid,                                            \
		.ssthresh = (void *)alg##_ssthresh,                                                \
		.set_state = (void *)alg##_set_state,                                              \
		.pkts_acked = (void *)alg##_pkts_acked,                                            \
		.undo_cwnd = (void *)alg##_undo_cwnd,                                              \
		.release = (void *)alg##_release,                                                  \
		.flags = TCP_CONG_NON_RESTRICTED,                                                  \
		.name = "su_" #alg,                                                                \
	};

SU_STARTUPS(CONGESTION_CONTROL)
