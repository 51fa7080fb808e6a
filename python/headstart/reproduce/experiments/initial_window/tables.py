"""Claims and figures of the paper's tables of quantiles, which several experiments share."""

from functools import partial

import polars as pl
from matplotlib.axes import Axes

from headstart.reproduce import Claim, Data, Measured, Verdict, number
from headstart.reproduce.style import line

BODY = (
    "Here each response is the first of its connection. A later one, of which the paper's traffic has some (how many it does "
    "not say), begins with a window that has grown, and gains nothing: the gains at the lower and middle quantiles are the "
    "smaller for it"
)
SERVICE = (
    "As for Web search, each response is the first of its connection here, where the larger window gains most; and these "
    "services' back ends take no time here, for of them none is printed"
)
NARROW = (
    "Here a subnet's bandwidth is its line's rate. The paper's is the throughput that was achieved, averaged over a month "
    "(footnote 3): short transfers do not fill a line, so its lines are faster. Its median of 774 ms up to 56 kbit/s, where "
    "10.5 KB alone take 1.5 s, says so. On ours the bits' own time counts, and ten packets wait for each other about as "
    "long as the first timer of 3 s lasts"
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
    frame: str,
    printed: dict[float, float],
    table: str,
    words: str,
    *,
    body: str = BODY,
    tail: str = TAIL,
    **at: str,
) -> tuple[Claim, ...]:
    """A claim for each quantile of a printed table: gains in % by share.

    `body` and `tail` explain what does not come out, below `UPPER` and from it on.
    """
    return tuple(
        Claim(
            f"{words}: gain at the {100 * share:g} % quantile",
            f"{paper:g} % ({table})",
            partial(gain_at, frame=frame, share=share, **at),
            number(paper),
            _why(tail if share >= UPPER else body),
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
