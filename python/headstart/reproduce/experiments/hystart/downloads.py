"""Downloads of one file after the other over a path: what hy7, hy8 and hy15 have in common."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from headstart.reproduce import Context, Data, Measured, of
from headstart.reproduce.experiments.hystart import testbed

BYTES = {"10 KB": 10_000, "100 KB": 100_000, "1 MB": 1_000_000, "10 MB": 10_000_000}
"""The files of 5.6 and 5.7."""

KEYS = ("path", "bytes", "startup", "repeat")


def downloads(
    context: Context,
    name: str,
    *,
    paths: dict[str, dict[str, Any]],
    sizes: Sequence[int],
    startups: Sequence[str],
    repeat: int,
    transport: dict[str, Any] | None = None,
) -> pl.DataFrame:
    """One flow a file, alone on its path: `path`, `bytes`, `startup`, `repeat`, `fct_s`, `dropped_pkts`."""
    places = [(path, size) for path in paths for size in sizes]
    scenarios = [
        testbed.scenario(
            name,
            paths[path],
            [testbed.flow("flow 1", 0.0, bytes=f"{size}")],
            600.0,
            startups=startups,
            transport=transport,
        )
        for path, size in places
    ]
    result = context.sweep(scenarios, repeat=repeat)
    labels = pl.DataFrame(places, schema=["path", "size"], orient="row").with_columns(
        variant=pl.int_range(len(places), dtype=pl.UInt32)
    )
    rows = result.transfers.filter(pl.col("finished")).join(labels, on="variant")
    return rows.select(
        "path",
        pl.col("size").alias("bytes"),
        "startup",
        "repeat",
        "dropped_pkts",
        "timeouts",
        "exit_why",
        fct_s=pl.col("fct_ms") / 1000,
    )


def live_downloads(
    context: Context,
    name: str,
    *,
    paths: dict[str, dict[str, Any]],
    sizes: Sequence[int],
    startups: Sequence[str],
    repeat: int,
) -> pl.DataFrame:
    """The same on the live kernel, by `headstart compare`: fresh connections over a path unknown."""
    frames = []
    for path, table in paths.items():
        scenario = {
            "name": f"{name}-{path.split()[0]}",
            "seed": context.seed,
            "path": table,
            "compare": {"startups": list(startups), "repeat": repeat},
            "case": [{"kind": "new-cold", "bytes": f"{size}"} for size in sizes],
            "startup": testbed.startup_tables(startups, reno=True),
        }
        results = context.compare(scenario)
        valid = results.transfers.filter("valid")
        frames.append(
            valid.select(
                pl.lit(path).alias("path"),
                pl.col("bytes").cast(pl.Int64),
                "startup",
                "repeat",
                pl.col("router_drops").alias("dropped_pkts"),
                "exit_why",
                fct_s=pl.col("fct_ms") / 1000,
            )
        )
        context.notes.extend(results.document["warnings"])
    return pl.concat(frames)


def seconds(data: Data, path: str, size: int, startup: str) -> list[float]:
    """The times of one place, repeat by repeat."""
    rows = data["downloads"].filter(
        (pl.col("path") == path) & (pl.col("bytes") == size) & (pl.col("startup") == startup)
    )
    return rows.sort("repeat")["fct_s"].to_list()


def mean_s(data: Data, path: str, size: int, startup: str) -> float:
    """The mean of `seconds`."""
    times = seconds(data, path, size, startup)
    return sum(times) / len(times)


def ratio(data: Data, path: str, size: int) -> Measured:
    """Times under HyStart over those under standard slow start, repeat by repeat."""
    hystart = seconds(data, path, size, "su_hystart")
    standard = seconds(data, path, size, "su_standard")
    words = f"{mean_s(data, path, size, 'su_hystart'):.2f} s against {mean_s(data, path, size, 'su_standard'):.2f} s"
    return of([mine / other for mine, other in zip(hystart, standard, strict=True)], "", words)


def saved_s(data: Data, path: str, size: int) -> Measured:
    """What HyStart saves of standard slow start's time."""
    hystart = seconds(data, path, size, "su_hystart")
    standard = seconds(data, path, size, "su_standard")
    words = f"{mean_s(data, path, size, 'su_hystart'):.2f} s against {mean_s(data, path, size, 'su_standard'):.2f} s"
    return of([other - mine for mine, other in zip(hystart, standard, strict=True)], "s", words)
