#!/usr/bin/env bash
# The demonstration: a real server and a real client over an emulated satellite path, compared, drawn and explained.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

scenario=${1:-scenarios/satellite.toml}
name=$(basename "$scenario" .toml)
out=results/$name
started=$SECONDS

[ -e "$scenario" ] || die "the scenario $scenario is not there" "choose one of: $(echo scenarios/*.toml)"
[ -x "$HEADSTART" ] || die "$HEADSTART is not built" "make build"

heading "Comparing the start-ups in $scenario"
code=0
"$HEADSTART" compare "$scenario" --out "$out" || code=$?
if [ "$code" -ne 0 ]; then
	printf '%serror: the comparison ended with exit code %s%s\n' "$RED" "$code" "$PLAIN" >&2
	if [ "$code" -eq 3 ]; then
		printf '  next: "make doctor" says what this machine lacks and how to get it\n' >&2
	fi
	exit "$code"
fi
compared=$((SECONDS - started))

heading "Drawing the report"
[ -x "$VENV/bin/headstart-lab" ] || die "$VENV/bin/headstart-lab is not there" "make build"
"$VENV/bin/headstart-lab" report "$out"

heading "Done"
say "compared in $(duration $compared), drawn in $(duration $((SECONDS - started - compared)))"
found=
for page in "$out"/*.html; do
	[ -e "$page" ] || continue
	found=yes
	say "the page: ${BOLD}file://$ROOT/$page$PLAIN"
done
[ -n "$found" ] || die "no page in $out" "$VENV/bin/headstart-lab report $out shows why"
say "the data: $out/"
