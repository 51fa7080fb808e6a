#!/usr/bin/env bash
# How fast and how true the path emulator is on this machine. Prints the report and keeps it, with all figures as
# JSON, in results/bench/. Takes five minutes; wants root, and a machine that does nothing else.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

case ${1:-} in
-h | --help)
	cat <<'TEXT'
usage: scripts/bench.sh [--only PART[,PART...]]

  setup   how long a path takes to come and to go
  rtt     by how much a round trip is longer than configured
  rates   goodput, lateness and the router's CPU from 1.5 Mbit/s to 1 Gbit/s
  beside  one, two and four paths of 10 Mbit/s at once
  most    the most that one router thread carries
  repeat  ten fresh transfers of 100 KB and of 1 MB by native cubic
  cost    what each start-up costs, over native cubic: 20 KB transfers over loopback and veth
  load    what the daemon costs a server, with and without records: nginx, 20 KB transfers over loopback and veth
          (six minutes, and only by its name; wants Debian's nginx; on a machine that is not idle, "chrt -f 10" before it keeps
          others off the CPUs)
TEXT
	exit 0
	;;
esac

[ "$(id -u)" = 0 ] || die "the benchmark makes network namespaces: it needs root" "sudo make bench"
have cargo || die "cargo is not there" "scripts/setup.sh bench installs Rust"

out=$ROOT/results/bench
mkdir -p "$out"
name=path-$(date -u +%Y%m%dT%H%M%SZ)

# The last parts are programs of their own.
parts=${2:-}
cost() {
	heading "Measuring what a start-up costs"
	cargo bench --quiet "${LOCKED[@]}" -p headstart-kernel --bench cost | tee "$out/${name/path/cost}.txt"
}
load() {
	heading "Measuring what the daemon costs a server"
	have nginx || die "nginx is not there" "apt-get install nginx-light"
	cargo bench --quiet "${LOCKED[@]}" -p headstart-daemon --bench load | tee "$out/${name/path/load}.txt"
}
case $parts in
cost | load)
	"$parts"
	exit
	;;
esac

heading "Building"
cargo bench "${LOCKED[@]}" -p headstart-path --bench path --no-run

heading "Measuring"
cargo bench --quiet "${LOCKED[@]}" -p headstart-path --bench path -- --json "$out/$name.json" "$@" | tee "$out/$name.txt"
[ -n "$parts" ] || cost
say "the report: $out/$name.txt and $name.json"
