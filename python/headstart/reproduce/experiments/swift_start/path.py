"""The path of section 4: Boston to Cleveland, FreeBSD to NetBSD."""

from collections.abc import Mapping

from headstart.scenario_file import ScenarioFile, TrafficTable, TransportTable

RTT_MS = 32
"""Section 4.1: "a minimum round-trip of just under 32 ms"."""

RATE_BIT_PER_S = 3_500_000
"""Section 4.1: "a bottleneck bandwidth of 3.5 Mbps"."""

SEGMENT_BYTES = 1472
"""Section 4.1, without headers; 1512 with them."""

WINDOW_BYTES = 32 * 1024
"""Section 4.1: "The receiver offered a window size of 32KB"."""

TRANSFER_BYTES = 10_000_000
"""Section 4.1: "a long TCP data transfer (10 MB)"."""

GAMMAS = (1, 2, 4, 8)
"""Section 3.1: "a configurable value between 1 and 1/8th"."""

FREEBSD: TransportTable = {
    "model": "newreno",
    "mss_bytes": SEGMENT_BYTES,
    "header_bytes": 40,
    "initial_window_pkts": 4,
    "limited_transmit": False,
    "min_rto": "1s",
    "clock_tick": "10ms",
    "receive_window": "32KiB",
}
"""FreeBSD 4.1: NewReno, no SACK, a clock of 10 ms, a timer of at least 1 s. "The receiver acknowledges each
segment as received" (4.2)."""

CLOCK_US = 1000
"""Section 5: "the one ms granularity of the clock it uses to schedule paced bursts"."""

ASSUMED = (
    "FreeBSD 4.1 and NetBSD 1.3.3: NewReno without SACK, a clock of 10 ms and a timer of at least 1 s, an ACK for each "
    "segment, an initial window of 4, and growth by one segment an ACK.",
    "One bottleneck of 3.5 Mbit/s and 32 ms in place of the 19 hops. Pacing by a clock of 1 ms, two segments at a time.",
)


def startups(
    gammas: tuple[int, ...] = GAMMAS, clock_us: int = CLOCK_US
) -> dict[str, Mapping[str, int]]:
    """Parameters by the report's names: slow start, paced slow start, swift start by gamma."""
    paced = {"reno": 1, "iw_pkts": 4, "growth_percent": 200, "burst_pkts": 2, "clock_us": clock_us}
    swift = paced | {"slope_acks": 0}
    return {
        "slow start": {},
        "paced": paced,
        **{f"swift start, γ = {gamma}": swift | {"gamma": gamma} for gamma in gammas},
    }


def scenario(
    name: str,
    params: Mapping[str, int],
    path: Mapping[str, str],
    *,
    size_bytes: int = TRANSFER_BYTES,
    transport: TransportTable = FREEBSD,
    more: tuple[TrafficTable, ...] = (),
    until_s: int = 300,
) -> ScenarioFile:
    """A transfer under the start-up `name`, with what else is on the path."""
    startup = {"slow start": "reno", "paced": "su_paced"}.get(name, "su_swift_start")
    built: ScenarioFile = {
        "name": name.replace(" ", "-"),
        "path": {"rate": "3.5mbit", "rtt": f"{RTT_MS}ms", "queue": "drop-tail:64", **path},
        "compare": {"startups": [startup], "repeat": 1},
        "simulation": {"until": f"{until_s}s", "sample_every": "1s"},
        "transport": transport,
        "traffic": [
            {"name": "transfer", "kind": "bulk", "bytes": f"{size_bytes}B", "start": "1s"},
            *more,
        ],
    }
    if params:
        built["startup"] = {startup: dict(params)}
    return built
