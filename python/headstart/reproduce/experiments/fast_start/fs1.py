"""fs1: constant load, 50 ms (section 4.1, Figure 2)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, share, span
from headstart.reproduce.experiments.fast_start.t1 import (
    ASSUMED,
    LOW,
    ON_KERNEL,
    WHY_HALF,
    Setting,
    against_newreno,
    plot,
    range_of,
    second_bursts,
    share_of,
)
from headstart.reproduce.papers import FAST_START

FLOWS = tuple(range(11))
KERNEL_FLOWS = (0, 1, 3, 5, 8, 10)
DELAYS_MS = (50, 200)
"""Both figures: the paper's 50-65 % is of both."""

VARIANTS = ("newreno", "fs-pdrop")


def run(context: Context) -> Data:
    """Runs newreno and fs-pdrop, 0 to 10 bulk transfers, and at 200 ms those of low load."""
    numbers = FLOWS if context.on == "sim" else KERNEL_FLOWS
    settings = [
        Setting(variant, flows, delay_ms)
        for variant in VARIANTS
        for delay_ms in DELAYS_MS
        for flows in (numbers if delay_ms == 50 else LOW)
    ]
    scenarios = [setting.scenario(changed=False, on=context.on) for setting in settings]
    repeat = context.pick(50, 20) if context.on == "sim" else context.pick(2, 1)
    return {"bursts": second_bursts(context, settings, scenarios, repeat)}


def figure(data: Data, figure: Figure) -> None:
    """Figure 2, and the saving."""
    left, right = figure.subplots(1, 2)
    plot(left, data["bursts"].filter(delay_ms=50), VARIANTS)
    left.set(title="Figure 2: constant load, 50 ms, 50 packets")
    saved = against_newreno(data["bursts"].filter(delay_ms=50)).sort("flows")
    right.bar(saved["flows"], saved["saved_percent"], color="#16679c")
    right.axhspan(50, 65, color="#e9ecef", zorder=0)
    right.set(
        xlabel="number of bulk transfers",
        ylabel="saved by fs-pdrop (%)",
        title="grey: the paper's 50-65 % at low load",
    )


def low_load(data: Data) -> Measured:
    """What is saved at low load, over both delays."""
    low = against_newreno(data["bursts"]).filter(pl.col("flows").is_in(LOW))
    at_50 = low.filter(delay_ms=50)["saved_percent"]
    return range_of(
        low["saved_percent"],
        "%",
        f"least and most at 0 and 1 bulk transfers, both delays; at 50 ms {at_50.min():.0f} to {at_50.max():.0f} %",
    )


def largest_when_low(data: Data) -> Measured:
    """At how many higher loads less is saved, in percent, than at the low loads' mean."""
    saved = against_newreno(data["bursts"]).filter(delay_ms=50)
    low = saved.filter(pl.col("flows").is_in(LOW))["saved_percent"].mean()
    higher = saved.filter(~pl.col("flows").is_in(LOW))
    return share_of(higher["saved_percent"] < low, "higher loads")


EXPERIMENT = Experiment(
    name="fs1",
    paper=FAST_START,
    section="section 4.1, Figure 2",
    title="constant load, 50 ms",
    did="Over a T1 line of 50 ms, a connection sends 30 KB, rests, and sends 30 KB again; meanwhile bulk transfers with "
    "windows of 8 KB run throughout. Time of the second burst over the number of bulk transfers, mean of 10 runs.",
    assumptions=ASSUMED,
    grounds=("sim", "kernel"),
    on_kernel=(
        *ON_KERNEL,
        "0, 1, 3, 5, 8 and 10 bulk transfers, two runs each, one in a quick run.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "Fast start shortens the second burst at low load",
            "50-65 % when the cross-traffic load is low (section 4.1, Figures 2 and 3)",
            low_load,
            span(50, 65),
            {Verdict.PARTLY: WHY_HALF},
        ),
        Claim(
            "In percent, the improvement is largest at low load",
            "largest when the cross-traffic load is low (section 4.1)",
            largest_when_low,
            share("less is saved at the higher load"),
            why_kernel={
                Verdict.PARTLY: "At 8 bulk transfers half is saved, too: eight windows of 8 packets fit into line and buffer, so that nothing is lost, and the queue makes "
                "each round trip that is saved longer. At 10 nothing is left of it"
            },
        ),
    ),
)
