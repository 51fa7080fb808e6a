"""fs6: changed load with RED (section 5.1)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, share, span
from headstart.reproduce.experiments.fast_start.fs4 import FLOWS, HIGH
from headstart.reproduce.experiments.fast_start.t1 import (
    ASSUMED,
    Setting,
    against_newreno,
    plot,
    range_of,
    second_bursts,
    share_of,
)
from headstart.reproduce.papers import FAST_START
from headstart.reproduce.style import line

VARIANTS = ("newreno", "fs-pdrop")


def run(context: Context) -> Data:
    """Runs newreno and fs-pdrop, 0 to 10 bulk transfers that begin between the bursts, both queues."""
    settings = [Setting(variant, flows) for variant in VARIANTS for flows in FLOWS]
    frames = {}
    for name, red in (("red", True), ("tail", False)):
        scenarios = [setting.scenario(changed=True, red=red) for setting in settings]
        frames[name] = second_bursts(context, settings, scenarios, context.pick(50, 20))
    return frames


def figure(data: Data, figure: Figure) -> None:
    """Both, with RED; and what is saved with either queue."""
    left, right = figure.subplots(1, 2)
    plot(left, data["red"], VARIANTS)
    left.set(title="changed load with RED, 50 ms, 50 packets")
    for number, (name, label) in enumerate((("red", "RED"), ("tail", "drop-tail"))):
        saved = against_newreno(data[name]).sort("flows")
        line(right, number, saved["flows"], saved["saved_percent"], label)
    right.axhspan(25, 50, color="#e9ecef", zorder=0)
    right.set(
        xlabel="number of bulk transfers",
        ylabel="saved by fs-pdrop (%)",
        title="grey: the paper's 25-50 % with RED at high load",
    )
    right.legend()


def saved(data: Data) -> Measured:
    """What fs-pdrop saves at high load with RED."""
    high = against_newreno(data["red"]).filter(pl.col("flows").is_in(HIGH))
    return range_of(
        high["saved_percent"], "%", f"mean, least and most, {HIGH[0]} to {HIGH[-1]} bulk transfers"
    )


def helps(data: Data) -> Measured:
    """At how many high loads fs-pdrop takes less time with RED than with drop-tail."""
    red, tail = (against_newreno(data[name]) for name in ("red", "tail"))
    both = red.join(tail, on="flows", suffix="_tail").filter(pl.col("flows").is_in(HIGH))
    return share_of(both["mean_s"] < both["mean_s_tail"], "high loads")


EXPERIMENT = Experiment(
    name="fs6",
    paper=FAST_START,
    section="section 5.1",
    title="changed load with RED",
    did="The changed-load experiment with a RED bottleneck: fs-pdrop against newreno.",
    assumptions=(
        *ASSUMED,
        "RED with the parameters of the paper's reference (Floyd and Jacobson 1993): thresholds of 5 and 15 packets, "
        "max_p 1/50, w_q 0.002. A packet of low priority goes first where RED drops.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "With RED, fs-pdrop is better than newreno even at high load",
            "25-50 % better, even at high load (section 5.1)",
            saved,
            span(25, 50),
            {
                Verdict.PARTLY: "The times of single runs vary by half of their mean, because a timeout is that long: the ends of the "
                "range are of the loads where more of them fell upon one side"
            },
        ),
        Claim(
            "RED improves fast start at high load",
            "a significant improvement in performance (section 5.1)",
            helps,
            share("fs-pdrop is faster with RED than with drop-tail"),
            {
                Verdict.PARTLY: "At 6 bulk transfers the drop-tail buffer is not yet full: RED's early drops cost more than they help. From 7 "
                "on fs-pdrop takes three quarters to one quarter of the time with RED"
            },
        ),
    ),
)
