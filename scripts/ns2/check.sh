#!/bin/sh
# Holds the simulator against ns-2 (Debian package ns2; optional, nothing else needs it): mean times of Poisson
# transfers, NewReno and SACK. Each line should agree to 5 %. Takes some minutes: ns-2 is slow with many agents.
# usage: scripts/ns2/check.sh [HEADSTART]
set -eu
headstart=${1:-target/release/headstart}
here=$(dirname "$0")
command -v ns >/dev/null || { echo "ns-2 is not here: apt-get install ns2" >&2; exit 3; }
scenario=$(mktemp --suffix=.toml)
trap 'rm -f "$scenario"' EXIT
for agent in Newreno Sack1; do
	case $agent in Newreno) model=newreno ;; *) model=sack ;; esac
	for rtt in 50 200; do
		cat >"$scenario" <<-END
			name = "ns2-check"
			[path]
			rate = "1.6mbit"
			rtt = "${rtt}ms"
			queue = "drop-tail:20"
			reverse_queue = "drop-tail:1000"
			[compare]
			startups = ["reno"]
			repeat = 5
			[simulation]
			until = "4000s"
			[transport]
			model = "$model"
			initial_window_pkts = 2
			min_rto = "200ms"
			clock_tick = "10ms"
			[[traffic]]
			name = "transfers"
			kind = "arrivals"
			transfers = 3000
			gap = "exp:400ms"
			bytes = "40kB"
		END
		for stream in 1 2 3 4 5; do
			ns "$here/transfers.tcl" $agent $rtt 400 $stream
		done | awk -v what="$agent, $rtt ms" -v half=$((rtt / 2)) \
			'{ sum += $1; n++ } END { printf "%s: ns-2 %.1f ms", what, sum / n - half }'
		"$headstart" sim "$scenario" --json |
			awk '/"mean"/ { gsub(/[",]/, ""); printf ", headstart %.1f ms\n", $2; exit }'
	done
done
