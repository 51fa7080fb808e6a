"""hy11: six slow starts over asymmetric delays and rates (Figure 17)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, share
from headstart.reproduce.claims import NUMBER_REPRODUCED
from headstart.reproduce.experiments.hystart import testbed
from headstart.reproduce.papers import HYSTART
from headstart.scenario_file import ScenarioFile

RTT_MS = 120
DELAY_RATIOS = (1 / 3, 1 / 2, 1.0, 2.0, 3.0)
RATES = ((100, 400), (200, 400), (400, 400), (400, 200), (400, 100))
"""Mbit/s, forward and reverse: ratios of 1/4 to 4."""

SECONDS = 60.0
BACKGROUND_MBIT = 50
BACKGROUND_SHARE = 0.15
"""Of the smaller rate, where the rates differ."""


def run(context: Context) -> Data:
    """Delays, then rates."""
    scale = context.pick(1.0, 0.25)
    ends = context.pick(slice(None), slice(None, None, 2))
    places, scenarios = [], []
    for ratio in DELAY_RATIOS[ends]:
        forward_us = round(RTT_MS * 1000 * ratio / (1 + ratio))
        path = {
            "rate": f"{400 * scale:g}mbit",
            "delay": f"{forward_us}us",
            "reverse_delay": f"{RTT_MS * 1000 - forward_us}us",
            "queue": "drop-tail:1bdp",
        }
        places.append(("delay", ratio, 400 * scale))
        scenarios.append(_scenario(path, BACKGROUND_MBIT * scale))
    for forward, reverse in RATES[ends]:
        path = {
            "rate": f"{forward * scale:g}mbit",
            "reverse_rate": f"{reverse * scale:g}mbit",
            "rtt": f"{RTT_MS}ms",
            "queue": "drop-tail:1bdp",
        }
        places.append(("rate", forward / reverse, forward * scale))
        scenarios.append(_scenario(path, BACKGROUND_SHARE * min(forward, reverse) * scale))
    result = context.sweep(scenarios, repeat=context.pick(2, 1))
    labels = pl.DataFrame(places, schema=["of", "ratio", "rate_mbit"], orient="row").with_columns(
        variant=pl.int_range(len(places), dtype=pl.UInt32)
    )
    transfers = result.transfers.join(labels, on="variant")
    runs = testbed.utilisation(transfers, pl.col("rate_mbit"), SECONDS)
    return {"runs": runs.join(labels, on="variant")}


def _scenario(path: dict[str, str], background_mbit: float) -> ScenarioFile:
    more = testbed.background(background_mbit)
    return testbed.two_flows("hy11", path, more=more)


def holds(of: str) -> testbed.Measure:
    """HyStart's utilisation is no further below the best of the six than `number` allows."""

    def measure(data: Data) -> Measured:
        points = testbed.means(
            data["runs"].filter(pl.col("of") == of), ["ratio", "startup"], "utilisation"
        )
        best = points.group_by("ratio").agg(best=pl.col("mean").max())
        mine = points.filter(pl.col("startup") == "su_hystart").join(best, on="ratio").sort("ratio")
        parts = (mine["mean"] / mine["best"]).to_list()
        counted = testbed.cases([part >= 1 - NUMBER_REPRODUCED for part in parts])
        words = ", ".join(
            f"{ratio:.2g}: {mean:.0%} of the link, the best {top:.0%}"
            for ratio, mean, top in mine.select("ratio", "mean", "best").iter_rows()
        )
        return Measured(counted.value, counted.low, counted.high, "", f"{counted.note}; {words}")

    return measure


def figure(data: Data, figure: Figure) -> None:
    """Figure 17: utilisation by ratio, delays left and rates right."""
    panels = figure.subplots(1, 2, sharey=True)
    titles = ("(a) forward delay / reverse delay", "(b) forward rate / reverse rate")
    for axes, of, title in zip(panels, ("delay", "rate"), titles, strict=True):
        rows = data["runs"].filter(pl.col("of") == of)
        points = testbed.means(rows, ["ratio", "startup"], "utilisation")
        testbed.lines(axes, points, "ratio")
        axes.set(xlabel=title, xscale="log")
        ratios = sorted(set(points["ratio"]))
        axes.set_xticks(ratios, [f"{ratio:.2g}" for ratio in ratios])
        axes.minorticks_off()
    panels[0].set_ylabel("utilisation (%)")
    panels[0].legend(ncols=2)


_NOT = (
    "Standard slow start does better here than in the paper: its recovery costs no more than the protocol does. HyStart's first flow leaves at "
    "the product and grows by Reno from there"
)

EXPERIMENT = Experiment(
    name="hy11",
    paper=HYSTART,
    section="5.10, Figure 17",
    title="asymmetric links",
    did="Two TCP-SACK flows 30 s apart, utilisation in 60 s, six slow starts: forward to reverse delay from 1/3 to 3 at 400 Mbit/s with 50 Mbit/s "
    "of background; forward to reverse rate from 1/4 to 4 (100 to 400 Mbit/s, 120 ms) with 15 % of background.",
    assumptions=(
        *testbed.COMMON,
        testbed.BACKGROUND,
        "A buffer of one product each way. Goodput of both flows, without the background's, over the forward rate.",
        "The quick run has a quarter of all rates, three ratios in place of five, and one repeat.",
        f"Good is no further than {NUMBER_REPRODUCED:.0%} below the best of the six.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "Over asymmetric delays HyStart achieves a good start-up throughput",
            "even with high asymmetry in delay (5.10, Figure 17a)",
            holds("delay"),
            share("it is near the best"),
            {Verdict.PARTLY: _NOT, Verdict.NOT: _NOT},
        ),
        Claim(
            "Over asymmetric rates HyStart achieves a good start-up throughput",
            "even with high asymmetry in bandwidth (5.10, Figure 17b)",
            holds("rate"),
            share("it is near the best"),
            {Verdict.PARTLY: _NOT, Verdict.NOT: _NOT},
        ),
    ),
    size_in=(10.0, 3.8),
)
