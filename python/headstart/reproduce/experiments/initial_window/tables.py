"""Claims and figures of the paper's tables of quantiles, which several experiments share."""

from functools import partial

import polars as pl
from matplotlib.axes import Axes

from headstart.reproduce import Claim, Data, Measured, Verdict, number
from headstart.reproduce.style import line

BODY = (
    "The paper's latencies have about 200 ms of back-end time in them, behind which rounds of slow start are hidden, too; here "
    "there is none, so the same rounds are a larger part of a shorter latency"
)
TAIL = (
    "The tail is made by losses, queues and timeouts: the paper prints their rates alone, and here they are independent, "
    "one client a link"
)
UPPER = 0.95
"""From this quantile on it is the tail."""


def gain_at(data: Data, frame: str, share: float, **at: str) -> Measured:
    """The gain at a quantile in % of the baseline, with its 95 % interval and the numbers behind it."""
    row = data[frame].filter((pl.col("share") - share).abs() < 1e-9, **at).row(0, named=True)
    note = f"{row['base']:,.0f} to {row['exp']:,.0f} ms"
    return Measured(row["diff_pct"], row["low_pct"], row["high_pct"], "%", note)


def quantile_claims(
    frame: str, printed: dict[float, float], table: str, words: str, **at: str
) -> tuple[Claim, ...]:
    """A claim for each quantile of a printed table: gains in % by share."""
    return tuple(
        Claim(
            f"{words}: gain at the {100 * share:g} % quantile",
            f"{paper:g} % ({table})",
            partial(gain_at, frame=frame, share=share, **at),
            number(paper),
            _why(TAIL if share >= UPPER else BODY),
        )
        for share, paper in printed.items()
    )


def _why(words: str) -> dict[Verdict, str]:
    return {Verdict.PARTLY: words, Verdict.NOT: words}


def draw_gains(axes: Axes, index: int, rows: pl.DataFrame, label: str) -> None:
    """The gain in % by quantile, with its interval."""
    positions = list(range(rows.height))
    error = (rows["diff_pct"] - rows["low_pct"]).to_numpy()
    line(axes, index, positions, rows["diff_pct"], label, error=error)
    axes.set_xticks(positions, [f"{100 * share:g}" for share in rows["share"]])
    axes.axhline(0, color="#5d6670", linewidth=0.8)
    axes.set(xlabel="quantile (%)", ylabel="gain (% of the baseline)")
