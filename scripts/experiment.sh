#!/usr/bin/env bash
# An experiment on this machine, as root: nginx under the daemon, emulated paths, clients, records, the answer.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

usage() {
	cat <<'TEXT'
usage: scripts/experiment.sh ab|aa|harm|all [--seconds S] [--paths N] [--clients N] [--seed N] [--out DIR]

  ab      an initial window of 3 against one of 10
  aa      the same for both arms: no difference may be found
  harm    an initial window of 100, until the guard turns it off
  all     these three, one after another (the default; about eight minutes)

Beside --out DIR (results/experiment/KIND): records/, report.html, ab.json, ab.txt, figures/, run.json.
TEXT
}

kinds=(ab aa harm)
case ${1:-all} in
ab | aa | harm) kinds=("$1") && shift ;;
all) shift $(($# > 0 ? 1 : 0)) ;;
-h | --help) usage && exit 0 ;;
-*) ;;
*)
	usage >&2
	die "unknown experiment \"$1\"" "choose one of ab, aa, harm, all"
	;;
esac
[ "$(id -u)" = 0 ] || die "an experiment needs root: it makes network namespaces and loads eBPF" "run it as root"
[ -x "$VENV/bin/python" ] || die "the Python package is not built" "run make build"

# The paths are real time: whatever else this machine does has to wait. Their threads ask for more by themselves.
renice -n -10 -p $$ >/dev/null || true
for kind in "${kinds[@]}"; do
	heading "Experiment: $kind"
	"$VENV/bin/python" scripts/experiment_run.py "$kind" "$@"
done
