"""The experiment on one's own traffic: records in, the tables of the IW10 paper out.

`analyse` does all of it; `headstart.ab.folder` puts the answer into a folder. docs/experiment.md is
the operator's page.
"""

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from headstart.ab import checks, verdict
from headstart.ab.records import RecordsError, Source, Transfers, find, load
from headstart.ab.resample import Floats, Lots, holm
from headstart.ab.tables import Table, Tables

__all__ = [
    "Analysis",
    "Contrast",
    "Options",
    "Plan",
    "RecordsError",
    "analyse",
    "read_lost",
    "read_plan",
    "read_span",
]

DRAWS = 2000
"""Of the bootstrap: the ends of a 95 % interval are then known to a tenth of its width."""

_PLAIN_NAMES = ("base", "baseline", "control", "holdout", "native", "leave-alone")
"""Arms that others are held against, where nobody says which."""


@dataclass(frozen=True)
class Options:
    """How to analyse.

    Attributes:
        base: The arm that the others are held against.
        rule: Of this rule alone.
        shares_pct: Of the arms; None: as many for each.
        bandwidth: A file of the prefixes' bandwidths, measured at another time.
        lost: Records that the daemon lost, and that it made.
        slice_us: What was assigned are slices of the wall clock, of this length.
        alike: The arms have the same (A/A). Where there is one arm, prefixes are split by chance.
        seed: Of the bootstrap and of that split.
        draws: Of the bootstrap.
    """

    base: str | None = None
    rule: str | None = None
    shares_pct: dict[str, float] | None = None
    bandwidth: Path | None = None
    lost: tuple[int, int] | None = None
    alike: bool = False
    slice_us: int | None = None
    seed: int = 1
    draws: int = DRAWS


@dataclass(frozen=True)
class Contrast:
    """One arm against the base."""

    other: str
    tables: list[Table]
    verdict: verdict.Verdict

    def table(self, key: str) -> Table | None:
        """A table by its key."""
        return next((table for table in self.tables if table.key == key), None)


@dataclass(frozen=True)
class Analysis:
    """The answer.

    Attributes:
        began_us: Start of the first transfer, since 1970.
        ended_us: Start of the last one.
        shares_known: The shares were given; else as many for each arm were assumed.
        bandwidth_known: The bandwidths were given; else they are of these transfers.
        comparisons: How many the correction is for.
        activity: Transfers by arm in equal parts of the time, for Figure 8.
    """

    options: Options
    source: Source
    arms: tuple[str, ...]
    rules: tuple[str, ...]
    transfers: int
    others: int
    burn_in: int
    prefixes: int
    began_us: int
    ended_us: int
    shares_known: bool
    bandwidth_known: bool
    notes: tuple[str, ...]
    checked: checks.Checked
    contrasts: list[Contrast]
    comparisons: int
    activity: Floats
    latencies: tuple[Floats, list[Floats]]

    @property
    def base(self) -> str:
        """The arm that the others are held against."""
        return self.arms[0]


def analyse(names: list[str], options: Options) -> Analysis:
    """Reads the records and compares the arms.

    Raises:
        RecordsError: The records cannot be read or compared.
    """
    source = find(names)
    rows = load(
        source,
        options.rule,
        split_seed=options.seed if options.alike else None,
        slice_us=options.slice_us,
    )
    rows = rows.with_base(options.base or _base(rows, options.shares_pct))
    shares_pct = _shares(rows.arms, options.shares_pct)
    lots = Lots(rows.clusters, options.seed, options.draws)
    given = options.bandwidth is not None
    bandwidth = _given_bandwidth(options.bandwidth, rows) if given else _seen_bandwidth(rows)
    checked = checks.check(
        rows, source, lots, shares_pct, (bandwidth, given), options.lost, alike=options.alike
    )
    made = Tables(rows, lots, bandwidth)
    tables = [made.all(other) for other in range(1, len(rows.arms))]
    lines = [
        line
        for of_arm in tables
        for table in of_arm
        for line in table.lines
        if line.comparison is not None
    ]
    # The same numbers may stand in two tables; they are one comparison.
    distinct = list(dict.fromkeys(line.comparison for line in lines))
    corrected = dict(zip(distinct, holm([one.p for one in distinct]), strict=True))
    for line in lines:
        line.p_holm = corrected[line.comparison]
    contrasts = [
        Contrast(
            other, of_arm, verdict.judge(rows.arms[0], other, of_arm, checked, alike=options.alike)
        )
        for other, of_arm in zip(rows.arms[1:], tables, strict=True)
    ]
    return Analysis(
        options=options,
        source=source,
        arms=rows.arms,
        rules=rows.rules,
        transfers=rows.count,
        others=rows.others,
        burn_in=rows.burn_in,
        prefixes=len(rows.prefixes),
        began_us=int(rows.start_us.min()),
        ended_us=int(rows.start_us.max()),
        shares_known=options.shares_pct is not None,
        bandwidth_known=given,
        notes=rows.notes,
        checked=checked,
        contrasts=contrasts,
        comparisons=len(distinct),
        activity=_activity(rows),
        latencies=(
            made.bins.edges / 1000,
            [np.bincount(side.bin, minlength=made.bins.edges.size - 1) for side in made.sides],
        ),
    )


@dataclass(frozen=True)
class Plan:
    """What the daemon's configuration says of the experiment.

    Attributes:
        shares_pct: Of the arms, in their order; None: as many for each.
        base: The arm that the others are compared with; None: the first.
        slice_us: Where slices of time are assigned: their length.
    """

    shares_pct: dict[str, float] | None
    base: str | None
    slice_us: int | None


def read_plan(config: Path) -> Plan:
    """The experiment of the daemon's configuration.

    Raises:
        RecordsError: The file cannot be read or has no experiment.
    """
    try:
        told = tomllib.loads(config.read_text(encoding="utf-8"))["experiment"]
        slice_us = read_span(told["slice"]) if told.get("unit") == "time" else None
        shares_pct = {str(arm["name"]): float(arm["share_percent"]) for arm in told["arm"]}
        return Plan(shares_pct, told.get("baseline"), slice_us)
    except OSError as error:
        raise RecordsError(
            f"{config}: cannot be read: {error.strerror or error}; give the daemon's configuration"
        ) from error
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise RecordsError(
            f"{config}: has no [experiment] with arms and shares ({error}); "
            "`headstart run --check` says what is wrong, or give --shares"
        ) from error


def read_span(text: str) -> int:
    """`600s` in us, as the configuration has it.

    Raises:
        RecordsError: It is no span above 0.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s)", str(text))
    span_us = round(float(match[1]) * {"us": 1, "ms": 1000, "s": 10**6}[match[2]]) if match else 0
    if not span_us:
        raise RecordsError(f'a slice of "{text}" is no span of time; write such as 600s')
    return span_us


def read_lost(status: Path) -> tuple[int, int]:
    """Records that were lost, and that were made, of `headstart status --json`.

    Raises:
        RecordsError: The file cannot be read or is something else.
    """
    try:
        counts = json.loads(status.read_text(encoding="utf-8"))["records"]
        return int(counts["lost"]) + int(counts["dropped"]), int(counts["recorded"])
    except OSError as error:
        raise RecordsError(
            f"{status}: cannot be read: {error.strerror or error}; "
            "write it with `headstart status --json`"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise RecordsError(
            f"{status}: is not what `headstart status --json` says ({error}); write it anew"
        ) from error


def _base(rows: Transfers, shares_pct: dict[str, float] | None) -> str:
    """The first of the configuration, a plain name, one without start-up, the least window."""
    for name in (*(shares_pct or ()), *_PLAIN_NAMES):
        if name in rows.arms:
            return name
    for arm in rows.arms:
        controls = rows.controls.filter(arm=arm)["control"]
        if not controls[0].startswith("su_"):
            return arm
    windows = {arm: rows.controls.filter(arm=arm)["initial_cwnd_pkts"][0] or 0 for arm in rows.arms}
    return min(rows.arms, key=lambda arm: windows[arm])


def _shares(arms: tuple[str, ...], given: dict[str, float] | None) -> dict[str, float]:
    if given is None:
        return dict.fromkeys(arms, 100 / len(arms))
    if missing := [arm for arm in arms if arm not in given]:
        raise RecordsError(
            f"no share is given for the arm {missing[0]}; recorded are: {', '.join(arms)}"
        )
    total = sum(given[arm] for arm in arms)
    if not all(given[arm] > 0 for arm in arms):
        raise RecordsError("a share of 0 percent was recorded; was the configuration another one?")
    return {arm: 100 * given[arm] / total for arm in arms}


def _seen_bandwidth(rows: Transfers) -> Floats:
    """By prefix in kbit/s: the highest delivery rate of its transfers, as BBR estimates it."""
    best = np.zeros(len(rows.prefixes), dtype=np.int64)
    np.maximum.at(best, rows.prefix, rows.rate_bytes_per_s)
    return np.where(best > 0, best * 8 / 1000, np.nan)


def _given_bandwidth(file: Path, rows: Transfers) -> Floats:
    """The same from a table with the columns `prefix` and `bits_per_s`."""
    try:
        read = pl.read_parquet if file.suffix == ".parquet" else pl.read_csv
        table = read(file).select(
            pl.col("prefix").cast(pl.String), pl.col("bits_per_s").cast(pl.Float64)
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RecordsError(
            f"{file}: no table of bandwidths: {str(error).splitlines()[0]}; give a CSV or Parquet "
            "file with the columns prefix and bits_per_s"
        ) from error
    wanted = pl.DataFrame({"prefix": rows.prefixes})
    found = wanted.join(
        table.unique("prefix", keep="first"), on="prefix", how="left", maintain_order="left"
    )
    values = found["bits_per_s"].fill_null(float("nan")).to_numpy() / 1000
    if not np.isfinite(values).any():
        raise RecordsError(
            f"{file}: has none of the recorded prefixes, such as {rows.prefixes[0]}; "
            "prefixes are written as in the records"
        )
    return values


def _activity(rows: Transfers, parts: int = 48) -> Floats:
    """Transfers by arm (a row each) in equal parts of the time."""
    begins, ends = int(rows.start_us.min()), int(rows.start_us.max())
    place = (rows.start_us - begins) * parts // max(ends - begins + 1, 1)
    flat = np.bincount(rows.arm.astype(np.int64) * parts + place, minlength=len(rows.arms) * parts)
    return flat.reshape(len(rows.arms), parts).astype(np.float64)
