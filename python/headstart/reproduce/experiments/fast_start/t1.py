"""The simulations of section 4: a T1 line, bulk transfers, and a connection that sends two bursts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from headstart.reproduce import Context, Ground, Measured
from headstart.reproduce.style import line
from headstart.scenario_file import ScenarioFile, TrafficTable, TransportTable


@dataclass(frozen=True)
class Variant:
    """One of the four protocol combinations of section 4.

    Attributes:
        startup: Its name here.
        priority: Whether the router drops packets of low priority first.
        params: Beyond `LETTER`.
    """

    startup: str
    priority: bool
    params: Mapping[str, int] = field(default_factory=dict)


VARIANTS = {
    "newreno": Variant("reno", False),
    "fs": Variant("su_fast_start", False, {"drop_priority": 0}),
    "fs-pdrop": Variant("su_fast_start", True),
    "fs-pdrop-noflr": Variant("su_fast_start", True, {"quick_recovery": 0}),
}
"""By the paper's names."""

LETTER = {
    "reno": 1,
    "require_sack": 0,
    "timeout_window_pkts": 1,
    "mark_last": 1,
    "reset_floor_us": 1000,
}
"""The parameters that make su_fast_start the paper's: no SACK, slow start from 1, no floor (1 ms) under
the reset timer."""

NS: TransportTable = {
    "model": "newreno",
    "recovery": "newreno-steady",
    "mss_bytes": 1024,
    "header_bytes": 0,
    "limited_transmit": False,
    "min_rto": "200ms",
    "clock_tick": "100ms",
}
"""The TCP of ns in 1998 (its ns-default.tcl and tcp.cc)."""

ASSUMED = (
    "ns of 1998 by its defaults: a timer of 100 ms ticks and at least 2 of them, one packet timed a round trip, "
    "an initial window of 1, an ACK for each packet, sizes without headers, ssthresh at first the maximum window, "
    "each partial ACK restarts NewReno's timer.",
    "1 KB is 1024 bytes. The time is that until the last byte has come to the receiver.",
    "Figure 1's other links are not in the text: each source's adds 0 to 10 ms to the round trip, by lot, so that "
    "no flow keeps step with another. The bulk transfers begin by lot within 5 s.",
    "The first burst leaves after 10 to 11 s, the second 20 s later (the paper: a long pause).",
    "Which packet of low priority a router drops is open in the paper: here the newest.",
)
"""What the paper leaves open, for all experiments of section 4."""

FIRST_S = 10
PAUSE_S = 20
CHANGE_S = 20
"""When the cross-traffic begins where the load changes: within the pause."""

KERNEL_FIRST_S, KERNEL_PAUSE_S, KERNEL_CHANGE_S = 4, 12, 8
"""The same on the live kernel, where a second is a second."""

ON_KERNEL = (
    "The kernel's own TCP with Reno, made as old as routes, sysctls of the namespaces and socket options can: an initial window of 1, "
    "no SACK and so neither RACK nor tail loss probes, no timestamps, an ACK for each packet, the paper's windows, segments of 1024 bytes "
    "(40 more with headers). Its slow start has no threshold at first, its timer no ticks and at least 200 ms.",
    "The waits are shorter: the first burst leaves after 4 to 5 s, the second 12 s later; a load that changes does so at 8 s.",
)

LINK_BITS_PER_S = 1_500_000
LOW = (0, 1)
"""Low load: numbers of bulk transfers that take less than half of the link (one takes 40 %, section 4)."""

WHY_HALF = (
    "Slow start ends the first burst with a window of 31; half of it is cached (3.3.2), so 15 of the 30 segments leave in the first "
    "round trip and the rest in the second: half of the time is saved. At 50 ms no start could save more than 63 %, because "
    "30 KB take 0.16 s on the line"
)
"""Why no more is saved at low load: written after the run; changes no verdict."""


def web(start: str, pause: str = f"{PAUSE_S}s", users: int = 1, **more: Any) -> TrafficTable:
    """Connections that send 30 KB, rest, and send 30 KB again."""
    return {
        "name": "web",
        "kind": "bursts",
        "users": users,
        "start": start,
        "pages": 2,
        "bytes": "30KiB",
        "think": pause,
        "extra_rtt": "uniform:0ms,10ms",
        "transport": {"idle": "restart", "receive_window": "32KiB", "initial_ssthresh_pkts": 32},
        **more,
    }


def bulk(flows: int, start_s: int, window_kib: int) -> list[TrafficTable]:
    """Bulk transfers without end, if there are any."""
    if flows == 0:
        return []
    return [
        {
            "name": "bulk",
            "kind": "bulk",
            "startup": "reno",
            "users": flows,
            "start": f"uniform:{start_s}s,{start_s + 5}s",
            "extra_rtt": "uniform:0ms,10ms",
            "transport": {
                "receive_window": f"{window_kib}KiB",
                "initial_ssthresh_pkts": window_kib,
            },
        }
    ]


def t1(
    variant: str,
    traffic: Sequence[TrafficTable],
    delay_ms: int = 50,
    *,
    red: bool = False,
    until_s: int = 160,
) -> ScenarioFile:
    """The network of Figure 1 under `variant`, the bottleneck drop-tail or RED."""
    chosen = VARIANTS[variant]
    kinds = ("red", "priority-red") if red else ("drop-tail", "priority")
    scenario: ScenarioFile = {
        "name": variant,
        "path": {
            "rate": "1.5mbit",
            "rtt": f"{2 * delay_ms}ms",
            "queue": f"{kinds[chosen.priority]}:50",
            "reverse_queue": "drop-tail:1000",
        },
        "compare": {"startups": [chosen.startup], "repeat": 1},
        "simulation": {"until": f"{until_s}s", "sample_every": "1s"},
        "transport": NS,
        "traffic": list(traffic),
    }
    if chosen.startup == "su_fast_start":
        scenario["startup"] = {"su_fast_start": LETTER | dict(chosen.params)}
    return scenario


@dataclass(frozen=True)
class Setting:
    """One point of a figure."""

    variant: str
    flows: int
    delay_ms: int = 50

    def scenario(self, *, changed: bool, red: bool = False, on: Ground = "sim") -> ScenarioFile:
        """With constant load, or with load that comes between the two bursts."""
        first_s, pause_s, change_s = FIRST_S, PAUSE_S, CHANGE_S
        if on == "kernel":
            first_s, pause_s, change_s = KERNEL_FIRST_S, KERNEL_PAUSE_S, KERNEL_CHANGE_S
        start_s = change_s if changed else 0
        window_kib = 8 if self.delay_ms == 50 else 32
        traffic = [web(f"uniform:{first_s}s,{first_s + 1}s", f"{pause_s}s")]
        return t1(
            self.variant,
            [*traffic, *bulk(self.flows, start_s, window_kib)],
            self.delay_ms,
            red=red,
        )


def second_bursts(
    context: Context, settings: Sequence[Setting], scenarios: Sequence[ScenarioFile], repeat: int
) -> pl.DataFrame:
    """The second burst of each run: `variant`, `flows`, `delay_ms`, `repeat`, `fct_ms`, drops, exit."""
    result = context.measure(scenarios, repeat=repeat)
    names = pl.DataFrame(
        [
            pl.Series("number", range(len(settings)), dtype=pl.UInt32),
            pl.Series("variant", [one.variant for one in settings]),
            pl.Series("flows", [one.flows for one in settings]),
            pl.Series("delay_ms", [one.delay_ms for one in settings]),
        ]
    )
    bursts = result.transfers.filter(group="web", turn=1).rename({"variant": "number"})
    kept = ("repeat", "fct_ms", "finished", "retransmitted_pkts", "dropped_pkts", "exit_why")
    frame = bursts.join(names, on="number").select(
        "variant", "flows", "delay_ms", *kept, "exit_cwnd_pkts"
    )
    if not frame["finished"].all():
        raise RuntimeError("a burst was not over when its run ended; give the run more time")
    return frame


def means(bursts: pl.DataFrame) -> pl.DataFrame:
    """Mean and standard error in s by variant, flows and delay, as in the paper's figures."""
    seconds = pl.col("fct_ms") / 1000
    return (
        bursts.group_by("variant", "flows", "delay_ms")
        .agg(
            mean_s=seconds.mean(),
            error_s=seconds.std().fill_null(0.0) / pl.len().sqrt(),
        )
        .sort("variant", "delay_ms", "flows")
    )


def against_newreno(bursts: pl.DataFrame) -> pl.DataFrame:
    """`means` of the other variants beside newreno's: `saved_s`, `saved_percent`, `errors_s` of both."""
    table = means(bursts)
    base = table.filter(variant="newreno").drop("variant")
    others = table.filter(pl.col("variant") != "newreno")
    return others.join(base, on=["flows", "delay_ms"], suffix="_newreno").with_columns(
        saved_s=pl.col("mean_s_newreno") - pl.col("mean_s"),
        saved_percent=100 * (1 - pl.col("mean_s") / pl.col("mean_s_newreno")),
        errors_s=(pl.col("error_s") ** 2 + pl.col("error_s_newreno") ** 2).sqrt(),
    )


def range_of(values: Iterable[float], unit: str, note: str) -> Measured:
    """The range over cases."""
    all_values = np.asarray(list(values), dtype=float)
    return Measured(
        float(all_values.mean()), float(all_values.min()), float(all_values.max()), unit, note
    )


def share_of(holds: pl.Series, note: str) -> Measured:
    """In how large a share of cases something holds."""
    if len(holds) == 0:
        raise ValueError("no cases")
    part = float(holds.cast(pl.Float64).mean())
    return Measured(part, part, part, "of the cases", f"{int(holds.sum())} of {len(holds)}; {note}")


def plot(axes: Axes, bursts: pl.DataFrame, names: Sequence[str]) -> None:
    """Completion time over the number of bulk transfers, with the standard error."""
    table = means(bursts)
    for number, name in enumerate(VARIANTS):
        if name in names:
            own = table.filter(variant=name).sort("flows")
            line(axes, number, own["flows"], own["mean_s"], name, error=own["error_s"])
    axes.set(
        xlabel="number of bulk transfers",
        ylabel="completion time of the second burst (s)",
        ylim=(0, None),
    )
    axes.legend()
