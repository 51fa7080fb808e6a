"""iw5: subnets up to 56 kbit/s in SlowDC (Table 4)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Context, Data, Experiment
from headstart.reproduce.experiments.initial_window import population, tables
from headstart.reproduce.papers import IW10

NARROW_BITS_PER_S = 56e3
BASE_MS = {0.1: 261, 0.5: 774, 0.9: 3997, 0.95: 6724, 0.99: 14374}
SAVED_MS = {0.1: 43, 0.5: 114, 0.9: 974, 0.95: 1483, 0.99: 2046}
"""Table 4."""
PRINTED = {share: round(100 * SAVED_MS[share] / BASE_MS[share], 2) for share in BASE_MS}


def run(context: Context) -> Data:
    """SlowDC's narrow clients."""
    table = population.both_arms(context, population.SLOW, population.SEARCH)
    narrow = table.filter(pl.col("bandwidth_bits_per_s") <= NARROW_BITS_PER_S)
    return {"quantiles": population.intervals(narrow, tuple(PRINTED))}


def figure(data: Data, figure: Figure) -> None:
    """The gain by quantile, and the quantiles themselves."""
    left, right = figure.subplots(1, 2)
    rows = data["quantiles"]
    tables.draw_gains(left, 0, rows, "here")
    left.plot(range(len(PRINTED)), list(PRINTED.values()), "s--", color="#c2571a", label="paper")
    left.legend()
    left.set_title("SlowDC, up to 56 kbit/s")
    positions = range(rows.height)
    right.plot(positions, rows["base"], "o-", label="window 3, here")
    right.plot(positions, rows["exp"], "s-", label="window 10, here")
    right.plot(positions, list(BASE_MS.values()), "o--", color="#5d6670", label="window 3, paper")
    right.set_xticks(list(positions), [f"{100 * share:g}" for share in PRINTED])
    right.set(xlabel="quantile (%)", ylabel="latency (ms)", yscale="log")
    right.legend()


EXPERIMENT = Experiment(
    name="iw5",
    paper=IW10,
    section="section 4.1, Table 4",
    title="clients up to 56 kbit/s",
    did="The latency of Web search's responses to subnets of at most 56 kbit/s in SlowDC.",
    assumptions=(
        *population.ASSUMPTIONS,
        "The paper's median of 774 ms is less than 10.5 KB take at 56 kbit/s (1.5 s): its responses there must be smaller or "
        "its bandwidths, which are running averages of throughput, too low. Neither is printed; nothing is adjusted.",
    ),
    run=run,
    figure=figure,
    claims=tables.quantile_claims(
        "quantiles", PRINTED, "Table 4", "Up to 56 kbit/s", body=tables.NARROW, tail=tables.NARROW
    ),
)
