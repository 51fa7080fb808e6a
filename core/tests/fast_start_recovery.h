/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Rows of fast_start_table.c: quick recovery from a failed fast start (3.3.4). A start that failed
 * makes what the connection then proves exact, so that the memory of the path goes down with it.
 */
/* clang-format off */
#define IN_FAST_RECOVERY .recovery = SU_RECOVERY_FAST
#define AFTER_A_TIMEOUT	 .recovery = SU_RECOVERY_TIMEOUT
/* What the start was made from is forgotten. */
#define FORGETS		 .want.forget_path = 1

/* "If the fine-grained reset timer expires and the earliest unacknowledged packet is a fast start
 * packet other than the first one ... the TCP sender cuts down cwnd to 1 and initiates slow start.
 * However, it does not cut down ssthresh". */
static const struct row reset_timer[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	THE_FIRST_ACK,
	{"the timer expires with the second packet unacknowledged", A_LOSS(TIMEOUT, 850, 35, 1, 0),
	 RECOVERING(START_TIMEOUT, 1, 64, 0), PROVES(EXACT), FORGETS},
	{"slow start goes on by the stack's own window", AN_ACK(1250, 35, 2, 0), AFTER_A_TIMEOUT,
	 RECOVERING(NONE, 0, 0, 0), PROVES(EXACT)},
	{"a second timeout is as the first", A_LOSS(TIMEOUT, 2000, 35, 2, 0), AFTER_A_TIMEOUT,
	 RECOVERING(START_TIMEOUT, 1, 64, 0), PROVES(EXACT)},
	{"all is repaired: the window is the stack's, the threshold the cached one",
	 AN_ACK(3000, 35, 35, 0), RECOVERED(0, 64), PROVES(EXACT)},
	{"what comes later is the stack's own", A_LOSS(TIMEOUT, 9000, 50, 40, 0),
	 NATIVE(ORDINARY_LOSS), PROVES(EXACT)},
};

/* DECISION in fast_start.h: slow start begins with 10 today, and so it does after the timer. */
static const struct row reset_timer_today[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	THE_FIRST_ACK,
	{"the timer expires: the first hole is repaired, and 10 when that comes through",
	 A_LOSS(TIMEOUT, 850, 35, 1, 0), RECOVERING(START_TIMEOUT, 1, 64, 10), PROVES(EXACT),
	 FORGETS},
	{"it has: 10 + 1", AN_ACK(1250, 35, 2, 0), AFTER_A_TIMEOUT, RECOVERING(NONE, 0, 0, 11),
	 PROVES(EXACT)},
	{"5 more: 10 + 6", AN_ACK(1260, 35, 2, 5), AFTER_A_TIMEOUT, RECOVERING(NONE, 0, 0, 16),
	 PROVES(EXACT)},
	{"30 and more, but no more than the start had", AN_ACK(1650, 35, 31, 0), AFTER_A_TIMEOUT,
	 RECOVERING(NONE, 0, 0, 35), PROVES(EXACT)},
	{"a second timeout is congestion: the stack's own slow start",
	 A_LOSS(TIMEOUT, 2000, 35, 31, 0), AFTER_A_TIMEOUT, RECOVERING(START_TIMEOUT, 1, 64, 0),
	 PROVES(EXACT)},
	{"also when ACKs come", AN_ACK(2400, 35, 32, 0), AFTER_A_TIMEOUT, RECOVERING(NONE, 0, 0, 0),
	 PROVES(EXACT)},
};

/* DECISION in fast_start.h: the repair proceeds with the 10 packets that standard TCP would have
 * begun with, and one more for each that is delivered since the loss was found. */
static const struct row repaired[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	THE_FIRST_ACK,
	{"a loss shows when 5 + 15 are delivered: 10 + 0", A_LOSS(FAST, 600, 35, 5, 15),
	 RECOVERING(START_LOSS, 0, 64, 10), PROVES(EXACT), FORGETS},
	{"3 more are delivered: 10 + 3", AN_ACK(610, 35, 5, 18), IN_FAST_RECOVERY,
	 RECOVERING(NONE, 0, 0, 13), PROVES(EXACT)},
	{"another loss in the same recovery: the count goes on, 10 + 4",
	 A_LOSS(FAST, 620, 35, 5, 19), IN_FAST_RECOVERY, RECOVERING(START_LOSS, 0, 64, 14),
	 PROVES(EXACT)},
	{"all 35 are delivered: 10 + 15, and the cached threshold", AN_ACK(1100, 35, 35, 0),
	 RECOVERED(25, 64), PROVES(EXACT)},
	{"the stack goes on alone", AN_ACK(1500, 60, 36, 0), NATIVE(NONE), PROVES(EXACT)},
	{"also with the next data: no fast start without a pause", SEND, .time_ms = 2000,
	 .srtt_ms = 400, .sent_pkts = 60, .acked_pkts = 60, .cwnd_pkts = 40, .ssthresh_pkts = 64,
	 NATIVE(NONE), PROVES(EXACT)},
};

static const struct row repaired_from_30[] = {
	{"ip route ... initcwnd 30, and 35 known", OPEN, .srtt_ms = 380, .cwnd_pkts = 30,
	 .ssthresh_pkts = INF, ARMS(PATH_KNOWN, 35, 64)},
	THE_WINDOW_LEAVES,
	THE_FIRST_ACK,
	{"a loss shows: 30 + 0 is what the stack would have begun with",
	 A_LOSS(FAST, 600, 35, 5, 15), RECOVERING(START_LOSS, 0, 64, 30), PROVES(EXACT), FORGETS},
	{"3 more are delivered: 30 + 3", AN_ACK(610, 35, 5, 18), IN_FAST_RECOVERY,
	 RECOVERING(NONE, 0, 0, 33), PROVES(EXACT)},
};

static const struct row capped_repair[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	THE_FIRST_ACK,
	{"a loss shows when 2 + 3 are delivered", A_LOSS(FAST, 420, 36, 2, 3),
	 RECOVERING(START_LOSS, 0, 64, 10), PROVES(EXACT), FORGETS},
	{"24 more: 10 + 24 = 34", AN_ACK(900, 50, 2, 27), IN_FAST_RECOVERY,
	 RECOVERING(NONE, 0, 0, 34), PROVES(EXACT)},
	{"35 more: 10 + 35, and not more than 35", AN_ACK(950, 60, 2, 38), IN_FAST_RECOVERY,
	 RECOVERING(NONE, 0, 0, 35), PROVES(EXACT)},
	{"repaired with 35", AN_ACK(1300, 60, 60, 0), RECOVERED(35, 64), PROVES(EXACT)},
};

/* Linux asks for the penalty before it reports the ACK that showed the loss. */
/* 3.3.4: "If the network is truly congested, the connection will discover it during the subsequent slow
 * start." 20 of the 35 had come through when the start failed, so 15 can have been lost at first. */
static const struct row lost_again[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	THE_FIRST_ACK,
	{"the start fails", A_LOSS(FAST, 600, 35, 5, 15), .lost_pkts = 3,
	 RECOVERING(START_LOSS, 0, 64, 10), PROVES(EXACT), FORGETS},
	{"16 lost may be the last packet, which is smaller: 10 + 8", AN_ACK(1000, 35, 5, 23),
	 .lost_pkts = 16, IN_FAST_RECOVERY, RECOVERING(NONE, 0, 0, 18), PROVES(EXACT)},
	/* (10 + 10) / 2, RFC 5681 3.1. */
	{"17 are not: half of 10 + 10", AN_ACK(1010, 35, 5, 25), .lost_pkts = 17, IN_FAST_RECOVERY,
	 .want = {.why = SU_WHY_ORDINARY_LOSS, .ssthresh_pkts = 10}, PROVES(EXACT)},
	{"the stack goes on by itself", AN_ACK(1400, 35, 35, 0), .lost_pkts = 17, NATIVE(NONE),
	 PROVES(EXACT)},
};

static const struct row loss_by_first_ack[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	{"the first ACK brings 2 and SACKs of 6 beyond a hole: paced 20 of 35 are out",
	 A_LOSS(FAST, 400, 20, 2, 6), RECOVERING(START_LOSS, 0, 64, 10), PROVES(EXACT), FORGETS},
	{"the window ends at packet 20: a loss at 20 is not of it", A_LOSS(FAST, 500, 30, 20, 0),
	 IN_FAST_RECOVERY, NATIVE(ORDINARY_LOSS), PROVES(EXACT)},
};

static const struct row timeout_in_recovery[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	THE_FIRST_ACK,
	{"a loss shows when 5 + 15 are delivered", A_LOSS(FAST, 600, 35, 5, 15),
	 RECOVERING(START_LOSS, 0, 64, 10), PROVES(EXACT), FORGETS},
	{"its retransmission is lost as well", A_LOSS(TIMEOUT, 1300, 35, 5, 18), IN_FAST_RECOVERY,
	 RECOVERING(START_TIMEOUT, 1, 64, 0), PROVES(EXACT)},
	{"slow start by the stack's own window", AN_ACK(1700, 35, 6, 18), AFTER_A_TIMEOUT,
	 RECOVERING(NONE, 0, 0, 0), PROVES(EXACT)},
	{"repaired; the window is where slow start has brought it", AN_ACK(2100, 35, 35, 0),
	 RECOVERED(0, 64), PROVES(EXACT)},
};

/* "If not [SACK] and if the sender receives a partial new ack ... during fast recovery, it cuts
 * cwnd down to 1 segment and initiates slow start right away, without waiting for a timeout (and
 * without imposing any other penalty ...)". */
static const struct row partial_ack[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	THE_FIRST_ACK,
	{"three duplicate ACKs: fast recovery", A_LOSS(FAST, 600, 35, 5, 0),
	 RECOVERING(START_LOSS, 0, 64, 10), PROVES(EXACT), FORGETS},
	{"a partial ACK: more than one packet is lost",
	 A_LOSS(SU_LOSS_PARTIAL_ACK, 1000, 35, 9, 0), IN_FAST_RECOVERY,
	 RECOVERING(PARTIAL_ACK, 1, 64, 0), PROVES(EXACT)},
	{"slow start by the stack's own window", AN_ACK(1400, 35, 11, 0), AFTER_A_TIMEOUT,
	 RECOVERING(NONE, 0, 0, 0), PROVES(EXACT)},
	{"repaired", AN_ACK(2600, 35, 35, 0), RECOVERED(0, 64), PROVES(EXACT)},
};

/* "a fast start packet other than the first one": the first is not marked, and its loss means what
 * a loss always means. */
static const struct row first_lost[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	{"the timer expires and nothing is acknowledged", A_LOSS(TIMEOUT, 900, 35, 0, 0),
	 NATIVE(ORDINARY_LOSS), PROVES(EXACT), FORGETS},
	{"the start is over", AN_ACK(1300, 35, 1, 0), AFTER_A_TIMEOUT, NATIVE(NONE),
	 PROVES(EXACT)},
	{"another connection", NEW_CONNECTION, ARMS(PATH_KNOWN, 35, 64)},
	THE_WINDOW_LEAVES,
	{"SACKs of 6 and not of the first", A_LOSS(FAST, 420, 35, 0, 6), NATIVE(ORDINARY_LOSS),
	 PROVES(EXACT), FORGETS},
};

/* The round trip has become shorter: at the first ACK 20 of the 35 are out. */
static const struct row beyond[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	{"the first ACK: the marked packets end with packet 19", AN_ACK(200, 20, 1, 0),
	 CLOCKED(ACK_CLOCK)},
	{"all marked packets are acknowledged, packet 20 is lost", A_LOSS(FAST, 500, 40, 20, 5),
	 NATIVE(ORDINARY_LOSS), PROVES(EXACT), FORGETS},
	{"another connection", NEW_CONNECTION, ARMS(PATH_KNOWN, 35, 64)},
	THE_WINDOW_LEAVES,
	{"the first ACK as before", AN_ACK(200, 20, 1, 0), CLOCKED(ACK_CLOCK)},
	{"packet 19 is the last of the window", A_LOSS(FAST, 500, 40, 19, 5),
	 RECOVERING(START_LOSS, 0, 64, 10), PROVES(EXACT), FORGETS},
};

static const struct row beyond_in_repair[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	THE_FIRST_ACK,
	{"a loss of the window", A_LOSS(FAST, 600, 35, 5, 15), RECOVERING(START_LOSS, 0, 64, 10),
	 PROVES(EXACT), FORGETS},
	{"the timer expires for packet 35, which was sent by the ACK clock",
	 A_LOSS(TIMEOUT, 1500, 45, 35, 0), IN_FAST_RECOVERY, NATIVE(ORDINARY_LOSS), PROVES(EXACT)},
	{"the usual penalty stays", AN_ACK(1900, 45, 45, 0), NATIVE(NONE), PROVES(EXACT)},
};

static const struct row ecn[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	THE_FIRST_ACK,
	{"a packet of the window came through marked: a sign of congestion, not of a drop",
	 A_LOSS(SU_LOSS_ECN, 500, 35, 5, 0), NATIVE(ORDINARY_LOSS), PROVES(EXACT), FORGETS},
};

static const struct row no_quick_recovery[] = {
	/* The stack's own timer: no floor is set. */
	{"the path is known", NEW_CONNECTION,
	 .want = {.phase = SU_PHASE_ARMED, .why = SU_WHY_PATH_KNOWN, .burst_pkts = 1,
		  .cwnd_pkts = 35, .ssthresh_pkts = 64}},
	{"the window begins to leave", SEND, .cwnd_pkts = 35, .ssthresh_pkts = 64,
	 .unpaced_pkts = 10, STARTS_UNLIKE(STARTED, 0, 64, 62500, 4, 0, 1, SU_BUT_LAST)},
	{"the first ACK", AN_ACK(400, 35, 1, 0),
	 .want = {.phase = SU_PHASE_CLOCKED, .why = SU_WHY_ACK_CLOCK}},
	{"the usual penalty for a marked packet", A_LOSS(FAST, 600, 35, 5, 15),
	 NATIVE(ORDINARY_LOSS), PROVES(EXACT), FORGETS},
};

static const struct row before[] = {
	{"a loss while the window waits: nothing of it was sent", NEW_CONNECTION,
	 ARMS(PATH_KNOWN, 35, 64)},
	{"the usual penalty; the start did not fail, it was never tried",
	 A_LOSS(TIMEOUT, 900, 3, 2, 0), NATIVE(ORDINARY_LOSS), PROVES(AT_LEAST)},
	{"the start is given up", SEND, .time_ms = 1000, .srtt_ms = 400, .sent_pkts = 3,
	 .acked_pkts = 3, .cwnd_pkts = 2, .ssthresh_pkts = 64, NATIVE(NONE), PROVES(AT_LEAST)},
};

static const struct row not_while_repairing[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	{"the first ACK, while the stack repairs an earlier loss", AN_ACK(400, 35, 1, 0),
	 IN_FAST_RECOVERY, CLOCKED(ACK_CLOCK)},
	{"35 are delivered, the repair goes on", AN_ACK(800, 40, 20, 15), IN_FAST_RECOVERY,
	 CLOCKED(NONE)},
	{"it is over: the window got through", AN_ACK(900, 40, 36, 0), NATIVE(VALIDATED),
	 PROVES(AT_LEAST)},
};

static const struct row forgets[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	THE_FIRST_ACK,
	{"the start fails", A_LOSS(FAST, 600, 35, 5, 15), RECOVERING(START_LOSS, 0, 64, 10),
	 PROVES(EXACT), FORGETS},
	{"repaired: 10 + 15", AN_ACK(1100, 35, 35, 0), RECOVERED(25, 64), PROVES(EXACT)},
	{"a round trip of 25 without loss", AN_ACK(1500, 60, 60, 0), NATIVE(NONE), PROVES(EXACT)},
	/* 3.3.2: 50 / 2 = 25 is what got through, not the 35 of old. */
	{"a pause in slow start with 50", IDLE, .time_ms = 9000, .srtt_ms = 400, .sent_pkts = 60,
	 .acked_pkts = 60, .cwnd_pkts = 50, .ssthresh_pkts = 64, .idle_ms = 8000, ARMED(RESUMED)},
	/* 25 * 1000 / 0.4. */
	{"25 leave", SEND, .time_ms = 9000, .srtt_ms = 400, .sent_pkts = 60, .acked_pkts = 60,
	 .cwnd_pkts = 10, .ssthresh_pkts = 64, STARTS(25, 64, 62500, 60001)},
	{"all of it comes through: slow start at 35 of 64 proves at least so much",
	 AN_ACK(9800, 85, 85, 0), NATIVE(VALIDATED), PROVES(AT_LEAST)},
};

static const struct row second_start[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	THE_FIRST_ACK,
	{"the timer expires", A_LOSS(TIMEOUT, 850, 35, 1, 0), RECOVERING(START_TIMEOUT, 1, 64, 10),
	 PROVES(EXACT), FORGETS},
	{"repaired", AN_ACK(1900, 35, 35, 0), RECOVERED(0, 64), PROVES(EXACT)},
	{"a round trip of 25 without loss", AN_ACK(2300, 60, 60, 0), NATIVE(NONE), PROVES(EXACT)},
	/* 50 / 2 = 25. */
	{"a pause in slow start with 50", IDLE, .time_ms = 9000, .srtt_ms = 400, .sent_pkts = 60,
	 .acked_pkts = 60, .cwnd_pkts = 50, .ssthresh_pkts = 64, .idle_ms = 6000, ARMED(RESUMED)},
	{"25 leave", SEND, .time_ms = 9000, .srtt_ms = 400, .sent_pkts = 60, .acked_pkts = 60,
	 .cwnd_pkts = 10, .ssthresh_pkts = 64, STARTS(25, 64, 62500, 60001)},
	{"a loss shows when 5 + 10 of them are delivered", A_LOSS(FAST, 9400, 85, 65, 10),
	 RECOVERING(START_LOSS, 0, 64, 10), PROVES(EXACT), FORGETS},
	{"2 more: 10 + 2", AN_ACK(9410, 85, 65, 12), IN_FAST_RECOVERY, RECOVERING(NONE, 0, 0, 12),
	 PROVES(EXACT)},
	{"repaired by fast recovery this time: 10 + 10", AN_ACK(9900, 85, 85, 0),
	 RECOVERED(20, 64), PROVES(EXACT)},
};

static const struct row pause_in_repair[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	THE_FIRST_ACK,
	{"the start fails", A_LOSS(FAST, 600, 35, 5, 15), RECOVERING(START_LOSS, 0, 64, 10),
	 PROVES(EXACT), FORGETS},
	{"all 35 are delivered, 34 in this round trip: 10 + 15", AN_ACK(1100, 35, 35, 0),
	 IN_FAST_RECOVERY, RECOVERING(NONE, 0, 0, 25), PROVES(EXACT)},
	/* path_memory.h, DECISION: the only round trip had losses, so there is no window to go by. */
	{"a pause before the stack calls it repaired", IDLE, .time_ms = 9000, .srtt_ms = 400,
	 .sent_pkts = 35, .acked_pkts = 35, .cwnd_pkts = 30, .ssthresh_pkts = 20, .idle_ms = 8000,
	 IN_FAST_RECOVERY, NATIVE(PATH_SMALL), PROVES(EXACT)},
};
/* clang-format on */
