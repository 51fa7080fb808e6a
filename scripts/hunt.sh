#!/usr/bin/env bash
# Draws thousands of new random cases for the property tests that need no kernel. CASES and SEED are taken from the
# environment; what fails is written into a proptest-regressions file, which belongs into the commit that mends it.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

cases=${CASES:-5000}
seed=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
crates=(headstart-core headstart-daemon headstart-link headstart-memory headstart-sim)
for number in "$cases" "$seed"; do
	[[ $number =~ ^[0-9]+$ ]] || die "\"$number\" is not a number" "CASES=5000 SEED=1 make hunt"
done

say "repeat it: CASES=$cases SEED=$seed make hunt"
# Only the test files that draw cases; what lies in a folder below tests/ is a part of them.
mapfile -t sources < <(grep -rl '^use proptest' "${crates[@]/#/crates/}" --include='*.rs' | grep -E '^crates/[^/]+/tests/[^/]+$' | sort)
packages=("${crates[@]/#/--package=}")
targets=(--lib)
for source in "${sources[@]}"; do
	targets+=(--test "$(basename "$source" .rs)")
done
export PROPTEST_CASES=$cases PROPTEST_RNG_SEED=$seed
log=$BUILD/logs/hunt.log
mkdir -p "$BUILD/logs"
code=0
cargo test "${LOCKED[@]}" "${packages[@]}" "${targets[@]}" --no-fail-fast 2>&1 | tee "$log" |
	{ grep -E '^ +Running|FAILED$|^test result:|^minimal failing input' || true; } || code=$?
if [ "$code" -ne 0 ]; then
	die "a case fails: see $log" "CASES=$cases SEED=$seed make hunt draws it again; git status shows where it was kept"
fi
say "$cases cases a property, and all hold"
