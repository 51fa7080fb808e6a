"""The HyStart paper's testbed (5.1) as scenarios, and what its experiments have in common.

A dumbbell with one bottleneck each way. Linux 2.6.23 is the sender. What of it matters here and differs
from today's Linux is in `TRANSPORT`; what the paper leaves open is in `COMMON`, for the reports.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from headstart.reproduce import Data, Measured
from headstart.reproduce.style import COLOURS, line
from headstart.scenario_file import ScenarioFile

NAMES = {
    "su_standard": "SS",
    "su_limited": "LSS",
    "su_hystart": "HyStart",
    "su_westwood": "AStart",
    "su_packet_pair": "PSS",
    "su_vegas": "VStart",
    "reno": "SS",
    "cubic": "CUBIC",
}
"""As the paper calls them (5.2)."""

SIX = ("su_standard", "su_limited", "su_hystart", "su_westwood", "su_packet_pair", "su_vegas")
"""The six of figures 9, 17, 18, 19 and 21."""

_SETTINGS: dict[str, dict[str, int]] = {
    # Not the stack's own HyStart.
    "su_standard": {"hystart": 0},
    # 3.4: "max_ssthresh is set to 100", the default.
    "su_limited": {},
    # Algorithm 1 to the letter: an ACK is an ACK, whatever it acknowledges.
    "su_hystart": {"stretch_pkts": 0},
    # 5.2: ERE from the first ACK on, and no threshold before it.
    "su_westwood": {"first_ssthresh_pkts": 0},
    # Hoe's three ACKs, whatever they acknowledge.
    "su_packet_pair": {"span_pkts": 0},
    "su_vegas": {},
}

TRANSPORT = {
    "initial_window_pkts": 3,  # RFC 3390, Linux 2.6.23 for segments of 1448 bytes
    "recovery": "sack",
    "receive_window": "1GB",  # 5.1: "a very large buffer"
    "hystart": False,  # CUBIC of 2.6.23 has none
    "growth": "per-ack",  # tcp_abc = 0
}

RECEIVERS = {
    "Linux": {"acks": "linux", "ack_delay": "40ms"},
    "Windows XP": {"acks": "delayed", "ack_delay": "200ms", "sack": "up-to:100"},
    "FreeBSD": {
        "acks": "delayed",
        "ack_delay": "100ms",
        "sack": "off",
        "recovery": "newreno-steady",
    },
}
"""2.2, 3.3, 5.3 and 5.5. The number of runs past which XP suppresses SACK is ours, see hy2."""

COMMON = (
    "The sender is Linux 2.6.23's as far as it matters: initial window 3, SACK recovery by RFC 6675 (Linux had FACK and "
    "rate halving), Reno or CUBIC after slow start. Segments of 1448 bytes in packets of 1500.",
    "Hosts are infinitely fast: nothing that the paper explains by a CPU at 100 % can happen in the simulator.",
    "The window grows by one packet an ACK, as Linux 2.6.23 did (tcp_abc = 0), whatever the ACK acknowledges: in slow start by 1.5 times "
    "a round trip where every second packet is acknowledged. Today's Linux counts packets.",
)

SIZED = "Receive windows are without bound; the paper had them tuned up to twice the bandwidth-delay product."

FIRST_S = 1.0
"""When the first flow starts: the paper's 10th second, of which nine are empty. All times are 9 s earlier."""

LATER_S = 30.0
"""The second flow starts so much later: at the 40th second (5.8, 5.10, 5.11)."""

SPREAD_MS = 200
"""Each flow starts anywhere within so much: repeats differ by this, and by the background."""


def startup_tables(names: Iterable[str], *, reno: bool) -> dict[str, dict[str, int]]:
    """`[startup.NAME]` of those that are of `core/`, with Reno or CUBIC after slow start."""
    own = [name for name in names if name in _SETTINGS]
    return {name: {"reno": int(reno)} | _SETTINGS[name] for name in own}


def flow(name: str, start_s: float, **more: Any) -> dict[str, Any]:
    """A bulk flow that starts within `SPREAD_MS` after `start_s`."""
    begin_ms = round(start_s * 1000)
    return {
        "name": name,
        "kind": "bulk",
        "start": f"uniform:{begin_ms}ms,{begin_ms + SPREAD_MS}ms",
    } | more


def background(mbit_per_s: float) -> list[dict[str, Any]]:
    """Medium-sized flows in both directions, each `mbit_per_s` on average (5.3), over 64 KB sockets (5.1).

    Sizes, arrivals and round trips are ours: exponential, a Poisson process, exponential.
    """
    mean_bytes = 100_000
    gap_us = round(mean_bytes * 8 / mbit_per_s)
    return [
        {
            "name": f"background {direction}",
            "kind": "arrivals",
            "startup": "reno",
            "direction": direction,
            "bytes": "exp:100kB",
            "gap": f"exp:{gap_us}us",
            "extra_rtt": "exp:50ms",
            "transport": {"receive_window": "64KiB", "recovery": "sack"},
        }
        for direction in ("forward", "reverse")
    ]


BACKGROUND = (
    "Background traffic: transfers of 100 KB on average (exponential), a Poisson process in each direction, 64 KB windows, "
    "round trips longer by an exponential 50 ms; the paper's were web traffic by Surge over measured round trips."
)


def scenario(
    name: str,
    path: dict[str, Any],
    flows: Sequence[dict[str, Any]],
    until_s: float,
    *,
    startups: Sequence[str] = SIX,
    reno: bool = True,
    transport: dict[str, Any] | None = None,
    sample_every: str = "50ms",
) -> ScenarioFile:
    """Flows over a path, under each of `startups`."""
    return {
        "name": name,
        "path": path,
        "compare": {"startups": list(startups), "repeat": 1},
        "simulation": {"until": f"{round(until_s * 1000)}ms", "sample_every": sample_every},
        "transport": TRANSPORT | (transport or {}),
        "traffic": list(flows),
        "startup": startup_tables(startups, reno=reno),
    }


def two_flows(
    name: str,
    path: dict[str, Any],
    *,
    more: Sequence[dict[str, Any]] = (),
    later_s: float = LATER_S,
    until_s: float = FIRST_S + 60.0,
    **rest: Any,
) -> ScenarioFile:
    """Two bulk flows, the second later: what most of section 5 runs. `until_s` is the 70th second (5.11)."""
    flows = [flow("flow 1", FIRST_S), flow("flow 2", FIRST_S + later_s), *more]
    return scenario(name, path, flows, until_s, **rest)


def is_flow() -> pl.Expr:
    """Of the flows under test, not of the background."""
    return pl.col("group").str.starts_with("flow")


def utilisation(transfers: pl.DataFrame, rate_mbit_per_s: pl.Expr, seconds: float) -> pl.DataFrame:
    """Goodput of the flows under test in `seconds`, as a share of the bottleneck's rate: one row a run."""
    keys = [key for key in transfers.columns if key in RUN_KEYS or "." in key]
    delivered_bits = pl.col("delivered_bytes").sum() * 8
    runs = transfers.filter(is_flow()).group_by(keys, maintain_order=True)
    return runs.agg(
        utilisation=delivered_bits / (rate_mbit_per_s.first() * 1e6 * seconds),
        dropped_pkts=pl.col("dropped_pkts").sum(),
        sack_walk_pkts=pl.col("sack_walk_pkts").sum(),
        timeouts=pl.col("timeouts").sum(),
    )


Measure = Callable[[Data], Measured]
"""What a claim measures by."""

RUN_KEYS = ("variant", "startup", "repeat", "case")
"""What names a run, beside what is varied."""


def named(frame: pl.DataFrame) -> pl.DataFrame:
    """With the paper's names in `scheme`."""
    return frame.with_columns(scheme=pl.col("startup").replace(NAMES))


def means(frame: pl.DataFrame, by: Sequence[str], value: str) -> pl.DataFrame:
    """Mean and half of its 95 % interval over the repeats: columns `mean`, `half`."""
    count = pl.len().cast(pl.Float64)
    spread = (pl.col(value).std() * 1.96 / count.sqrt()).fill_null(0.0)
    return (
        frame.group_by(by, maintain_order=True)
        .agg(mean=pl.col(value).mean(), half=spread)
        .sort(by, maintain_order=True)
    )


def ratio_of_runs(frame: pl.DataFrame, value: str, over: str, under: str) -> list[float]:
    """`value` under the start-up `over` relative to `under`, run by run: the same seed, the same path."""
    keys = [key for key in frame.columns if key in ("variant", "repeat")]
    mine = frame.filter(pl.col("startup") == over).select(*keys, pl.col(value).alias("mine"))
    other = frame.filter(pl.col("startup") == under).select(*keys, pl.col(value).alias("other"))
    both = mine.join(other, on=keys)
    return (both["mine"] / both["other"]).to_list()


def cases(holds: Sequence[bool], unit: str = "") -> Measured:
    """The share of the cases in which something holds."""
    share = sum(holds) / len(holds)
    return Measured(share, share, share, unit, f"{sum(holds)} of {len(holds)} cases")


def one(value: float, unit: str = "", note: str = "") -> Measured:
    """A number without a spread."""
    return Measured(value, value, value, unit, note)


def frames(**named_frames: pl.DataFrame) -> Data:
    """The frames of an experiment by name."""
    return named_frames


def bars(
    axes: Axes, runs: pl.DataFrame, by: str, groups: Sequence[str], startups: Sequence[str]
) -> None:
    """Mean utilisation with its 95 % interval: a group of bars for each of `groups`, a bar a start-up."""
    points = means(runs, [by, "startup"], "utilisation")
    width = 0.8 / len(startups)
    for number, startup in enumerate(startups):
        rows = points.filter(pl.col("startup") == startup)
        found = {row[by]: row for row in rows.iter_rows(named=True)}
        axes.bar(
            [place + (number - (len(startups) - 1) / 2) * width for place in range(len(groups))],
            [found[group]["mean"] * 100 for group in groups],
            width,
            yerr=[found[group]["half"] * 100 for group in groups],
            capsize=2,
            color=COLOURS[number % len(COLOURS)],
            label=NAMES[startup],
        )
    axes.set_xticks(range(len(groups)), groups)
    axes.set_axisbelow(True)
    axes.legend(ncols=6, loc="lower left", bbox_to_anchor=(0, 1))


def lines(axes: Axes, points: pl.DataFrame, by: str) -> None:
    """Mean utilisation in percent with its 95 % interval over `by`, a line for each of the six."""
    for number, startup in enumerate(SIX):
        rows = points.filter(pl.col("startup") == startup).sort(by)
        line(axes, number, rows[by], rows["mean"] * 100, NAMES[startup], error=rows["half"] * 100)
