"""iw11: parallel connections on slow paths: Maps in SlowDC (Table 9)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, share
from headstart.reproduce.experiments.initial_window import population, tables
from headstart.reproduce.papers import IW10

PRINTED = {
    0.1: 29.6,
    0.5: 3.4,
    0.9: 1.8,
    0.95: 0.3,
    0.96: -0.4,
    0.97: -1.3,
    0.99: -2.3,
    0.999: -4.0,
}
"""Table 9: the gain in %."""
DEGRADED_FROM = 0.96
TRANSFERS = 500_000


def run(context: Context) -> Data:
    """Maps in SlowDC."""
    table = population.both_arms(context, population.SLOW, population.MAPS, TRANSFERS)
    return {"quantiles": population.intervals(table, tuple(PRINTED))}


def figure(data: Data, figure: Figure) -> None:
    """The gain by quantile, ours and the printed one."""
    axes = figure.subplots()
    tables.draw_gains(axes, 0, data["quantiles"], "here")
    axes.plot(range(len(PRINTED)), list(PRINTED.values()), "s--", color="#c2571a", label="paper")
    axes.set_title("Maps, SlowDC")
    axes.legend()


def degraded(data: Data) -> Measured:
    """At how many of the upper quantiles the larger window is slower."""
    upper = data["quantiles"].filter(pl.col("share") >= DEGRADED_FROM - 1e-9)
    worse = upper["diff"] < 0
    value = float(worse.cast(pl.Float64).mean())
    return Measured(value, value, value, "", f"{worse.sum()} of {worse.len()} quantiles")


FINDING = (
    "Here the degradation begins sooner and is larger: up to twelve responses meet on one narrow line, and with a window of 10 "
    "nearly all of their packets wait in its queue. How many connections a page really had, and how wide these lines are (the "
    "paper's bandwidth is the throughput of short transfers, footnote 3), is not printed; nor is the buffering, which the "
    "paper itself names among what decides (4.2)"
)

EXPERIMENT = Experiment(
    name="iw11",
    paper=IW10,
    section="section 4.2, Table 9",
    title="parallel connections on slow paths",
    did="The latency of Maps, up to twelve connections at once, in SlowDC.",
    assumptions=(*population.ASSUMPTIONS, f"{TRANSFERS:,} responses an arm in the full run."),
    run=run,
    figure=figure,
    size_in=(7.0, 3.4),
    claims=(
        *tables.quantile_claims(
            "quantiles", PRINTED, "Table 9", "Maps, SlowDC", body=FINDING, tail=FINDING
        ),
        Claim(
            "The quantiles from 96 % on are worse with the larger window",
            "a degradation at the 96th and above (4.2)",
            degraded,
            share("the larger window is slower"),
            dict.fromkeys((Verdict.PARTLY, Verdict.NOT), FINDING),
        ),
    ),
)
