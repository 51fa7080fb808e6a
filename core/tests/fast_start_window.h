/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only
 *
 * Rows of fast_start_table.c: which window is used, and how it leaves (3.3.1 to 3.3.3).
 */
/* clang-format off */
static const struct row validated[] = {
	/* 3.3.2: cwnd, ssthresh as they last were; both at once. */
	{"the path is known", NEW_CONNECTION, ARMS(PATH_KNOWN, 35, 64)},
	/* 3.3.3: (35 - 10) * 1000 / 0.4 = 62500, bursts of maxburst = 4. */
	{"the window begins to leave, marked from the second packet on", SEND, .srtt_ms = 380,
	 .cwnd_pkts = 35, .ssthresh_pkts = 64, .unpaced_pkts = 10, STARTS(0, 64, 62500, 1)},
	{"an ACK that acknowledges nothing new does not clock", AN_ACK(399, 35, 0, 1),
	 OPEN_LOOP(62500, 1)},
	/* 3.3.1: "those sent after ack clocking sets in ... are not marked". */
	{"the first ACK ends pacing and marking", AN_ACK(400, 35, 1, 0), CLOCKED(ACK_CLOCK)},
	{"34 of 35 delivered: not yet whole", AN_ACK(780, 68, 34, 0), CLOCKED(NONE)},
	{"35 of 35: the stack goes on alone; 35 < 64 is slow start", AN_ACK(800, 70, 35, 0),
	 NATIVE(VALIDATED), PROVES(AT_LEAST)},
	{"nothing more to say", AN_ACK(810, 72, 36, 0), NATIVE(NONE), PROVES(AT_LEAST)},
	{"nor when more data leaves", SEND, .time_ms = 1300, .srtt_ms = 400, .sent_pkts = 72,
	 .acked_pkts = 72, .cwnd_pkts = 70, .ssthresh_pkts = 64, NATIVE(NONE), PROVES(EXACT)},
	{"the first connection's start is forgotten by the next", NEW_CONNECTION,
	 ARMS(PATH_KNOWN, 35, 64)},
	THE_WINDOW_LEAVES,
	{"an ACK of the whole window is clock and proof in one", AN_ACK(800, 35, 35, 0),
	 NATIVE(VALIDATED), PROVES(AT_LEAST)},
};

/* 3.3.1: "all packets sent in the initial window after the connection resumes, except for the first
 * one (which would have been sent in any case by standard slow start)". */
static const struct row first_unmarked[] = {
	{"the path is known: the first packet is to leave alone", NEW_CONNECTION,
	 ARMS(PATH_KNOWN, 35, 64)},
	{"the window begins at byte 5000: packets that begin at 5001 or later are marked", SEND,
	 .srtt_ms = 380, .sent_pkts = 5, .acked_pkts = 5, .cwnd_pkts = 35, .ssthresh_pkts = 64,
	 .unpaced_pkts = 5, STARTS(0, 64, 75000 /* (35 - 5) * 1000 / 0.4 */, 5001)},
	{"asked again before anything has left", SEND, .srtt_ms = 380, .sent_pkts = 5,
	 .acked_pkts = 5, .cwnd_pkts = 35, .ssthresh_pkts = 64, OPEN_LOOP(75000, 5001)},
	{"an ACK for what was before the window does not clock", AN_ACK(100, 40, 5, 0),
	 OPEN_LOOP(75000, 5001)},
	{"the first packet is acknowledged: no marks from here on", AN_ACK(400, 40, 6, 0),
	 CLOCKED(ACK_CLOCK)},
	{"new data that is sent by the ACK clock is not marked", AN_ACK(410, 42, 7, 0),
	 CLOCKED(NONE)},
};

static const struct row small_response[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	{"all 3 packets of a small response come through", AN_ACK(400, 3, 3, 0),
	 ARMED(APP_LIMITED)},
	{"an ACK while the window waits", AN_ACK(410, 3, 3, 0), ARMED(NONE)},
	/* (35 - 7) * 1000 / 0.4 = 70000; the window begins at byte 3000. */
	{"the next data starts the window again", SEND, .time_ms = 500, .srtt_ms = 400,
	 .sent_pkts = 3, .acked_pkts = 3, .cwnd_pkts = 35, .ssthresh_pkts = 64, .unpaced_pkts = 7,
	 STARTS(0, 64, 70000, 3001)},
	{"the first ACK of it", AN_ACK(900, 38, 4, 0), CLOCKED(ACK_CLOCK)},
	{"34 of its 35: what came before does not count", AN_ACK(1200, 60, 37, 0), CLOCKED(NONE)},
	{"35 of its 35", AN_ACK(1200, 60, 38, 0), NATIVE(VALIDATED), PROVES(AT_LEAST)},
};

/* Slow start doubles while more than half of the window is in use (Linux, tcp_is_cwnd_limited). So
 * a response of 30 packets ends with cwnd 65, and was not the whole window of 35. */
static const struct row never_lowers[] = {
	ARMED_BY_THE_PATH,
	THE_WINDOW_LEAVES,
	{"a response of 30: all came through, the window grew by 30", ACK, .time_ms = 800,
	 .srtt_ms = 400, .sent_pkts = 30, .acked_pkts = 30, .cwnd_pkts = 65, .ssthresh_pkts = 64,
	 ARMED(APP_LIMITED)},
	/* There was no pause: 65 is what the stack may send, and 35 would be a penalty without a
	 * loss. The rate is that of the window known, 35 * 1000 / 0.4. */
	{"the next response, no pause between: the stack's 65 are more than 35", SEND,
	 .time_ms = 801, .srtt_ms = 400, .sent_pkts = 30, .acked_pkts = 30, .cwnd_pkts = 65,
	 .ssthresh_pkts = 64, STARTS(0, 64, 87500, 30001)},
};

static const struct row unpaced[] = {
	ARMED_BY_THE_PATH,
	/* 35 - 35: nothing is left to pace. */
	{"a stack that sends all 35 unpaced", SEND, .cwnd_pkts = 35, .ssthresh_pkts = 64,
	 .unpaced_pkts = 35, STARTS(0, 64, 0, 1)},
	{"again", NEW_CONNECTION, ARMS(PATH_KNOWN, 35, 64)},
	/* (35 - 34) * 1000 / 0.4 = 2500. */
	{"a stack that paces the last packet only", SEND, .cwnd_pkts = 35, .ssthresh_pkts = 64,
	 .unpaced_pkts = 34, STARTS(0, 64, 2500, 1)},
	{"and again", NEW_CONNECTION, ARMS(PATH_KNOWN, 35, 64)},
	/* 35 * 1000 / 0.4 = 87500: the paper's own cwnd / srtt. */
	{"a stack that paces them all", SEND, .cwnd_pkts = 35, .ssthresh_pkts = 64,
	 STARTS(0, 64, 87500, 1)},
};

static const struct row larger_rtt[] = {
	{"the handshake took 500 ms, the memory says 400", OPEN, .srtt_ms = 500, .cwnd_pkts = 10,
	 .ssthresh_pkts = INF, ARMS(PATH_KNOWN, 35, 64)},
	/* (35 - 10) * 1000 / 0.5. */
	{"the window takes 500 ms", SEND, .srtt_ms = 500, .cwnd_pkts = 35, .ssthresh_pkts = 64,
	 .unpaced_pkts = 10, STARTS(0, 64, 50000, 1)},
};

static const struct row slow_path[] = {
	{"a round trip of 4000 s", NEW_CONNECTION, ARMS(PATH_KNOWN, 11, 64)},
	/* (11 - 10) * 1000 / 4000 = 0.25. */
	{"a quarter of a byte each second is rounded up to 1", SEND, .cwnd_pkts = 11,
	 .ssthresh_pkts = 64, .unpaced_pkts = 10, STARTS(0, 64, 1, 1)},
};

static const struct row smaller_bursts[] = {
	{"the first packet still leaves alone", NEW_CONNECTION, ARMS(PATH_KNOWN, 35, 64)},
	{"then bursts of 2", SEND, .cwnd_pkts = 35, .ssthresh_pkts = 64, .unpaced_pkts = 10,
	 STARTS_UNLIKE(STARTED, 0, 64, 62500, 2, 50000, 1, SU_BUT_LAST)},
};

static const struct row without_pacing[] = {
	ARMED_BY_THE_PATH,
	{"no rate and no bursts, marks as ever", SEND, .cwnd_pkts = 35, .ssthresh_pkts = 64,
	 .unpaced_pkts = 10, STARTS_UNLIKE(STARTED, 0, 64, 0, 0, 50000, 1, SU_BUT_LAST)},
};

/* 3.3.1: "all packets sent in the initial window ... except for the first one". */
static const struct row by_the_letter[] = {
	ARMED_BY_THE_PATH,
	{"the last packet written is marked, too", SEND, .cwnd_pkts = 35, .ssthresh_pkts = 64,
	 .unpaced_pkts = 10, STARTS_UNLIKE(STARTED, 0, 64, 62500, 4, 50000, 1, SU_OPEN_END)},
};

static const struct row without_priority[] = {
	ARMED_BY_THE_PATH,
	{"paced as ever, no marks", SEND, .cwnd_pkts = 35, .ssthresh_pkts = 64, .unpaced_pkts = 10,
	 STARTS_UNLIKE(STARTED, 0, 64, 62500, 4, 50000, 0, 0)},
};

/* 3.3.1: stable "for periods ranging from a few minutes to tens of minutes". DECISION: 30. */
static const struct row stale[] = {
	{"too old", NEW_CONNECTION, NATIVE(PATH_STALE), PROVES(AT_LEAST)},
	{"data leaves as usual", SEND, .cwnd_pkts = 10, .ssthresh_pkts = INF, NATIVE(NONE),
	 PROVES(AT_LEAST)},
};

static const struct row not_stale[] = {
	{"30 minutes exactly", NEW_CONNECTION, ARMS(PATH_KNOWN, 35, 64)},
};

static const struct row unknown[] = {
	{"nothing is known", NEW_CONNECTION, NATIVE(PATH_UNKNOWN), PROVES(AT_LEAST)},
	{"data leaves as usual", SEND, .cwnd_pkts = 10, .ssthresh_pkts = INF, NATIVE(NONE),
	 PROVES(AT_LEAST)},
};

static const struct row window_of_1[] = {
	{"the stack begins with 1, and nothing was lost", OPEN, .srtt_ms = 380, .cwnd_pkts = 1,
	 .ssthresh_pkts = INF, ARMS(PATH_KNOWN, 35, 64)},
};

static const struct row lost_handshake[] = {
	{"the stack starts at 1, and so do we", OPEN, .srtt_ms = 380, .cwnd_pkts = 1,
	 .ssthresh_pkts = INF, .handshake_lost = 1, NATIVE(HANDSHAKE_LOSS), PROVES(AT_LEAST)},
	{"data leaves as usual", SEND, .cwnd_pkts = 1, .ssthresh_pkts = INF, NATIVE(NONE),
	 PROVES(AT_LEAST)},
	A_ROUND_TRIP_OF_40,
	/* After a pause the stack restarts with its usual 10, and not with that 1. */
	{"a pause: 20 / 2 = 10 is what the stack restarts with", IDLE, .time_ms = 9000,
	 .srtt_ms = 400, .sent_pkts = 60, .acked_pkts = 60, .cwnd_pkts = 20, .ssthresh_pkts = INF,
	 .idle_ms = 8000, NATIVE(PATH_SMALL), PROVES(AT_LEAST)},
	{"a pause: 22 / 2 = 11 is more", IDLE, .time_ms = 9000, .srtt_ms = 400, .sent_pkts = 60,
	 .acked_pkts = 60, .cwnd_pkts = 22, .ssthresh_pkts = INF, .idle_ms = 8000, ARMED(RESUMED)},
};

static const struct row small_path[] = {
	{"10 are not more than 10", NEW_CONNECTION, NATIVE(PATH_SMALL), PROVES(AT_LEAST)},
};

static const struct row least_path[] = {
	{"11 are", NEW_CONNECTION, ARMS(PATH_KNOWN, 11, 64)},
};

/* "the window known is no larger than the stack's own": the event carries the stack's own. */
static const struct row larger_initial_window[] = {
	{"ip route ... initcwnd 30, and 20 known", OPEN, .srtt_ms = 380, .cwnd_pkts = 30,
	 .ssthresh_pkts = INF, NATIVE(PATH_SMALL), PROVES(AT_LEAST)},
	A_ROUND_TRIP_OF_40,
	{"a pause: 60 / 2 = 30 is what the stack restarts with anyway", IDLE, .time_ms = 9000,
	 .srtt_ms = 400, .sent_pkts = 60, .acked_pkts = 60, .cwnd_pkts = 60, .ssthresh_pkts = INF,
	 .idle_ms = 8000, NATIVE(PATH_SMALL), PROVES(AT_LEAST)},
	{"a pause: 62 / 2 = 31 is more", IDLE, .time_ms = 9000, .srtt_ms = 400, .sent_pkts = 60,
	 .acked_pkts = 60, .cwnd_pkts = 62, .ssthresh_pkts = INF, .idle_ms = 8000, ARMED(RESUMED)},
};

static const struct row middle[] = {
	{"chosen when 20 packets are through and cwnd is 57", OPEN, .srtt_ms = 380,
	 .sent_pkts = 20, .acked_pkts = 20, .cwnd_pkts = 57, .ssthresh_pkts = INF,
	 NATIVE(PATH_UNKNOWN), PROVES(AT_LEAST)},
	A_ROUND_TRIP_OF_40,
	{"a pause: 70 / 2 = 35 is more than 10; 57 was never an initial window", IDLE,
	 .time_ms = 9000, .srtt_ms = 400, .sent_pkts = 60, .acked_pkts = 60, .cwnd_pkts = 70,
	 .ssthresh_pkts = INF, .idle_ms = 8000, ARMED(RESUMED)},
};

static const struct row without_a_round_trip[] = {
	{"neither the path nor the handshake has one", OPEN, .cwnd_pkts = 10, .ssthresh_pkts = INF,
	 NATIVE(PATH_SMALL), PROVES(AT_LEAST)},
	{"the handshake has one", NEW_CONNECTION, ARMS(PATH_KNOWN, 35, 64)},
	{"after a pause only the connection's own counts", IDLE, .time_ms = 9000, .sent_pkts = 60,
	 .acked_pkts = 60, .cwnd_pkts = 70, .ssthresh_pkts = INF, .idle_ms = 8000,
	 NATIVE(PATH_SMALL), PROVES(AT_LEAST)},
};

static const struct row capped[] = {
	{"20 of the 35 known", NEW_CONNECTION, ARMS(PATH_KNOWN, 20, 64)},
	/* (20 - 10) * 1000 / 0.4. */
	{"20 leave", SEND, .cwnd_pkts = 20, .ssthresh_pkts = 64, .unpaced_pkts = 10,
	 STARTS(0, 64, 25000, 1)},
	{"19 of 20", AN_ACK(700, 30, 19, 0), CLOCKED(ACK_CLOCK)},
	{"20 of 20 are a whole window", AN_ACK(800, 35, 20, 0), NATIVE(VALIDATED),
	 PROVES(AT_LEAST)},
	{"the rest comes through, 60 - 19 since the last round trip", AN_ACK(1200, 60, 60, 0),
	 NATIVE(NONE), PROVES_PKTS(AT_LEAST, 17 /* 35 / 2 */)},
	{"a pause in slow start with 70: 20, not 35", IDLE, .time_ms = 9000, .srtt_ms = 400,
	 .sent_pkts = 60, .acked_pkts = 60, .cwnd_pkts = 70, .ssthresh_pkts = INF, .idle_ms = 8000,
	 ARMED(RESUMED)},
	/* 20 * 1000 / 0.4. */
	{"20 leave again", SEND, .time_ms = 9000, .srtt_ms = 400, .sent_pkts = 60,
	 .acked_pkts = 60, .cwnd_pkts = 10, .ssthresh_pkts = INF, STARTS(20, INF, 50000, 60001)},
};

static const struct row no_sack[] = {
	{"the path is known, the peer sends no SACK", NEW_CONNECTION, NATIVE(NO_SACK),
	 PROVES(AT_LEAST)},
	{"nor is it started after a pause", IDLE, .time_ms = 9000, .srtt_ms = 400, .sent_pkts = 60,
	 .acked_pkts = 60, .cwnd_pkts = 70, .ssthresh_pkts = INF, .idle_ms = 8000, NATIVE(NO_SACK),
	 PROVES(AT_LEAST)},
	{"data leaves as usual", SEND, .time_ms = 9000, .srtt_ms = 400, .sent_pkts = 60,
	 .acked_pkts = 60, .cwnd_pkts = 10, .ssthresh_pkts = INF, NATIVE(NONE), PROVES(AT_LEAST)},
};

#define A_PAUSE_WITH(cwnd, ssthresh, srtt)                                                         \
	IDLE, .time_ms = 9000, .srtt_ms = srtt, .sent_pkts = 60, .acked_pkts = 60,                 \
	.cwnd_pkts = cwnd, .ssthresh_pkts = ssthresh, .idle_ms = 8000, .rto_ms = 600
#define DATA_AFTER_IT(cwnd, ssthresh, srtt)                                                        \
	SEND, .time_ms = 9000, .srtt_ms = srtt, .sent_pkts = 60, .acked_pkts = 60,                 \
	.cwnd_pkts = cwnd, .ssthresh_pkts = ssthresh

static const struct row resumed_slow_start[] = {
	{"a new connection to an unknown path", NEW_CONNECTION, NATIVE(PATH_UNKNOWN),
	 PROVES(AT_LEAST)},
	A_ROUND_TRIP_OF_40,
	{"a pause: 70 / 2 = 35, set when data leaves", A_PAUSE_WITH(70, INF, 400), ARMED(RESUMED)},
	/* 35 * 1000 / 0.4: the connection's first 10 packets are long gone, all is paced. */
	{"the stack restarts with 10, fast start with 35; ssthresh as it was",
	 DATA_AFTER_IT(10, INF, 400), STARTS(35, INF, 87500, 60001)},
	{"the first ACK", AN_ACK(9400, 95, 61, 0), CLOCKED(ACK_CLOCK)},
	{"the last of the 35", AN_ACK(9800, 130, 95, 0), NATIVE(VALIDATED), PROVES(AT_LEAST)},
	/* 71 / 2 = 35; half the round trip, twice the rate: 35 * 1000 / 0.2. */
	{"a second pause, 71 / 2 = 35, the round trip has become 200 ms",
	 A_PAUSE_WITH(71, INF, 200), ARMED(RESUMED)},
	{"the rate goes by the connection's own round trip", DATA_AFTER_IT(10, INF, 200),
	 STARTS(35, INF, 175000, 60001)},
};

static const struct row resumed_avoidance[] = {
	{"a new connection to an unknown path", NEW_CONNECTION, NATIVE(PATH_UNKNOWN),
	 PROVES(AT_LEAST)},
	A_ROUND_TRIP_OF_40,
	{"a pause: 41 - 1 = 40", A_PAUSE_WITH(41, 30, 400), ARMED(RESUMED)},
	/* 40 * 1000 / 0.4. */
	{"40 leave, with the threshold as it was", DATA_AFTER_IT(10, 30, 400),
	 STARTS(40, 30, 100000, 60001)},
};

/* path_memory.h, DECISION: cwnd alone does not say what got through. */
static const struct row resumed_delivered[] = {
	{"a new connection to an unknown path", NEW_CONNECTION, NATIVE(PATH_UNKNOWN),
	 PROVES(AT_LEAST)},
	A_ROUND_TRIP_OF_40,
	{"a pause: min(120 / 2, 40) = 40", A_PAUSE_WITH(120, INF, 400), ARMED(RESUMED)},
	/* 40 * 1000 / 0.4. */
	{"40 leave", DATA_AFTER_IT(10, INF, 400), STARTS(40, INF, 100000, 60001)},
};

/* The stack halves once for each RTO (RFC 2861), fast start once at all: after one RTO both have
 * the same. */
static const struct row short_pause[] = {
	{"a new connection to an unknown path", NEW_CONNECTION, NATIVE(PATH_UNKNOWN),
	 PROVES(AT_LEAST)},
	A_ROUND_TRIP_OF_40,
	{"a pause: 70 / 2 = 35", A_PAUSE_WITH(70, INF, 400), ARMED(RESUMED)},
	{"the stack restarts with 35 too: it does so alone", DATA_AFTER_IT(35, INF, 400),
	 NATIVE(PATH_SMALL), PROVES(AT_LEAST)},
	{"a pause: 70 / 2 = 35, once more", A_PAUSE_WITH(70, INF, 400), ARMED(RESUMED)},
	{"the stack restarts with 34: less than 35", DATA_AFTER_IT(34, INF, 400),
	 STARTS(35, INF, 87500, 60001)},
};

/* DECISION: max_age_s for the memory of a path, and for the connection's own. */
static const struct row long_pause[] = {
	{"a new connection to an unknown path", NEW_CONNECTION, NATIVE(PATH_UNKNOWN),
	 PROVES(AT_LEAST)},
	A_ROUND_TRIP_OF_40,
	{"a pause of 30 minutes exactly", IDLE, .time_ms = 1800800, .srtt_ms = 400,
	 .sent_pkts = 60, .acked_pkts = 60, .cwnd_pkts = 70, .ssthresh_pkts = INF,
	 .idle_ms = 1800000, ARMED(RESUMED)},
	{"1 ms more", IDLE, .time_ms = 1800801, .srtt_ms = 400, .sent_pkts = 60, .acked_pkts = 60,
	 .cwnd_pkts = 70, .ssthresh_pkts = INF, .idle_ms = 1800001, NATIVE(PATH_STALE),
	 PROVES(AT_LEAST)},
	{"data leaves as usual", DATA_AFTER_IT(10, INF, 400), NATIVE(NONE), PROVES(AT_LEAST)},
};

static const struct row small_pause[] = {
	{"a new connection to an unknown path", NEW_CONNECTION, NATIVE(PATH_UNKNOWN),
	 PROVES(AT_LEAST)},
	A_ROUND_TRIP_OF_40,
	{"a pause: 21 / 2 = 10 is what the stack restarts with anyway", A_PAUSE_WITH(21, INF, 400),
	 NATIVE(PATH_SMALL), PROVES(AT_LEAST)},
	{"a pause: 22 / 2 = 11 is more", A_PAUSE_WITH(22, INF, 400), ARMED(RESUMED)},
};

static const struct row stands[] = {
	ARMED_BY_THE_PATH,
	{"a pause before the first data: nothing was learnt, 35 stands", A_PAUSE_WITH(10, INF, 400),
	 ARMED(RESUMED)},
	{"with the threshold known beside it", DATA_AFTER_IT(10, INF, 400),
	 STARTS(35, 64, 87500, 60001)},
	{"a pause before that left", A_PAUSE_WITH(35, 64, 400), ARMED(RESUMED)},
	{"35 stands", DATA_AFTER_IT(17, 64, 400), STARTS(35, 64, 87500, 60001)},
	{"5 packets of 35 come through", AN_ACK(9400, 65, 65, 0), ARMED(APP_LIMITED)},
	{"a pause after them", A_PAUSE_WITH(35, 64, 400), ARMED(RESUMED)},
	{"35 stands still", DATA_AFTER_IT(10, 64, 400), STARTS(35, 64, 87500, 60001)},
};
/* clang-format on */
