/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The native build of core/: one entry point, and the tables which Rust shows to users.
 */
#include <stddef.h>

#include "registry.h"

struct su_native_param {
	const char *name;
	const char *unit;
	const char *help;
	uint32_t value;
	uint32_t min;
	uint32_t max;
	uint32_t reserved;
};

struct su_native_startup {
	const char *name;
	const char *source;
	const struct su_native_param *params;
	size_t param_count;
	uint32_t alg;
	uint32_t uses;
};

struct su_native_why {
	const char *text;
	const char *help;
	uint32_t number;
	uint32_t reserved;
};

#define PARAM_ROW(name, value, min, max, unit, help) {#name, unit, help, value, min, max, 0},
#define PARAM_TABLE(name, NAME, number, source)                                                    \
	static const struct su_native_param name##_params[] = {SU_##NAME##_PARAMS(PARAM_ROW)};
SU_STARTUPS(PARAM_TABLE)

#define STARTUP_ROW(name, NAME, number, source)                                                    \
	{"su_" #name, source, name##_params, sizeof(name##_params) / sizeof(name##_params[0]),     \
	 number,      SU_##NAME##_USES},
const struct su_native_startup su_native_startups[] = {SU_STARTUPS(STARTUP_ROW)};
const size_t su_native_startup_count = sizeof(su_native_startups) / sizeof(su_native_startups[0]);

const struct su_native_param su_native_memory_params[] = {SU_MEMORY_PARAMS(PARAM_ROW)};
const size_t su_native_memory_param_count =
	sizeof(su_native_memory_params) / sizeof(su_native_memory_params[0]);

#define WHY_ROW(name, number, text, help) {text, help, number, 0},
const struct su_native_why su_native_whys[] = {SU_WHYS(WHY_ROW)};
const size_t su_native_why_count = sizeof(su_native_whys) / sizeof(su_native_whys[0]);

void su_native_step(uint32_t alg, union su_state *st, const union su_params *prm,
		    const struct su_path *path, const struct su_event *ev, struct su_verdict *v)
{
	su_step((enum su_alg)alg, st, prm, path, ev, v);
}

struct su_proof su_native_proof(uint32_t alg, const union su_state *st, const struct su_event *ev)
{
	return su_proof((enum su_alg)alg, st, ev);
}

uint32_t su_native_pacing_is_over(const struct su_event *ev, const struct su_verdict *v)
{
	return su_pacing_is_over(ev, v) != 0;
}

uint32_t su_native_path_learn(struct su_path *path, const struct su_memory_params *prm,
			      const struct su_event *ev, struct su_proof proof)
{
	return su_path_learn(path, prm, ev, proof);
}

uint32_t su_native_path_recall(struct su_path *path, const struct su_memory_params *prm,
			       const struct su_event *ev)
{
	return su_path_recall(path, prm, ev);
}
