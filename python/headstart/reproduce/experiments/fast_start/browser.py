"""The access networks of section 5: BSD/OS and a browser of 1998."""

import polars as pl

from headstart.reproduce import Context, Measured, of
from headstart.reproduce.experiments.fast_start.t1 import LETTER
from headstart.scenario_file import ScenarioFile, TrafficTable, TransportTable

BSD: TransportTable = {
    "model": "newreno",
    "recovery": "newreno-steady",
    "mss_bytes": 1460,
    "initial_window_pkts": 1,
    "handshake": "three-way",
    "request_bytes": 300,
    "limited_transmit": False,
    "min_rto": "1s",
    "clock_tick": "500ms",
    "idle": "restart",
    "receive_window": "64KiB",
}
"""BSD/OS 3.0, as far as it is known: the timers of BSD, NewReno, no SACK; an ACK for each packet."""

ASSUMED = (
    "BSD/OS 3.0: an initial window of 1, timers of 500 ms ticks and at least 1 s, NewReno, no SACK; segments of 1460 "
    "bytes; requests of 300 bytes. The receiver acknowledges each packet, and offers 64 KB.",
    "The router drops no packet of low priority first: the paper's routers here were not its own.",
)

ON_KERNEL = (
    "The kernel's own TCP with Reno, made as old as routes, sysctls and socket options can: the initial window and the receiver's of the "
    "assumptions, no SACK, no timestamps, an ACK for each packet, a timer of at least 1 s without ticks.",
)

IMAGES = 8
"""Section 5.3: "a 175 KB Web page download (each with 8 inline images)"."""

PAGE_BYTES = 175 * 1024

STARTUPS = {"newreno": "reno", "fs": "su_fast_start"}
"""By the paper's names."""

PAGE_ASSUMED = (
    "How the browser loads the page is not said: the page first, then its 8 images over up to 4 connections at once, "
    "each object over a connection of its own (HTTP/1.0, as Netscape did); all nine objects are of one size. A new "
    "connection of BSD begins with 2 segments, because its window counts the handshake's ACK. Fast start knows the path "
    "from the connections before.",
)


def page(*, persistent: bool) -> TrafficTable:
    """Two loads of the page, 15 s apart (the median think time of section 1)."""
    return {
        "name": "web",
        "kind": "users",
        "pages": 2,
        "objects": str(1 + IMAGES),
        "index_first": True,
        "bytes": f"{PAGE_BYTES // (1 + IMAGES)}B",
        "parallel": 4,
        "persistent": persistent,
        "start": "uniform:1s,2s",
        "think": "15s",
        "transport": {"initial_window_pkts": 1 if persistent else 2},
    }


def access(startup: str, preset: str, traffic: list[TrafficTable], until_s: int) -> ScenarioFile:
    """A preset's path."""
    scenario: ScenarioFile = {
        "name": f"{preset}-{startup}",
        "path": {"preset": preset},
        "compare": {"startups": [startup], "repeat": 1},
        "simulation": {"until": f"{until_s}s", "sample_every": "1s"},
        "transport": BSD,
        "traffic": traffic,
    }
    if startup == "su_fast_start":
        scenario["startup"] = {startup: LETTER | {"drop_priority": 0}}
    return scenario


def second_pages(context: Context, scenarios: dict[str, ScenarioFile], repeat: int) -> pl.DataFrame:
    """How long the second load of each run took: `name`, `repeat`, `load_s`, drops."""
    result = context.measure(list(scenarios.values()), repeat=repeat)
    names = pl.DataFrame(
        [
            pl.Series("variant", range(len(scenarios)), dtype=pl.UInt32),
            pl.Series("name", list(scenarios)),
        ]
    )
    web = result.transfers.filter(group="web").sort("variant", "repeat", "start_ms")
    end_ms = pl.col("start_ms") + pl.col("fct_ms")
    run = ["variant", "repeat"]
    # The pause is between the loads: the second begins after the largest gap.
    web = web.with_columns(end_ms=end_ms, done_ms=end_ms.cum_max().shift(1).over(run))
    web = web.with_columns(
        second=(pl.col("start_ms") - pl.col("done_ms") > 10_000).fill_null(value=False)
    )
    web = web.with_columns(second=pl.col("second").cum_sum().over(run) > 0).filter("second")
    loads = web.group_by(run).agg(
        load_s=(pl.col("end_ms").max() - pl.col("start_ms").min()) / 1000,
        objects=pl.len(),
        finished=pl.col("finished").all(),
        dropped_pkts=pl.col("dropped_pkts").sum(),
    )
    runs = result.transfers.select(run).unique()
    if not loads["finished"].all() or len(loads) != len(runs):
        raise RuntimeError("a page was not over when its run ended; give the run more time")
    return loads.join(names, on="variant").drop("variant").sort("name", "repeat")


def load(loads: pl.DataFrame, name: str) -> Measured:
    """The mean of the runs."""
    own = loads.filter(name=name)["load_s"]
    if own.is_empty():
        raise ValueError(
            f"all runs of it ({name}) are left out: the machine was too busy, see the note"
        )
    return of(own, "s")
