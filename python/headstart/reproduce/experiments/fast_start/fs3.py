"""fs3: with and without drop priority at constant load (section 4.1)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, share
from headstart.reproduce.experiments.fast_start.t1 import (
    ASSUMED,
    Setting,
    means,
    plot,
    second_bursts,
    share_of,
)
from headstart.reproduce.papers import FAST_START

FLOWS = tuple(range(11))
DELAYS_MS = (50, 200)
VARIANTS = ("fs", "fs-pdrop")


def run(context: Context) -> Data:
    """Runs fs and fs-pdrop, 0 to 10 bulk transfers, both delays."""
    settings = [
        Setting(variant, flows, delay_ms)
        for variant in VARIANTS
        for delay_ms in DELAYS_MS
        for flows in FLOWS
    ]
    scenarios = [setting.scenario(changed=False) for setting in settings]
    return {"bursts": second_bursts(context, settings, scenarios, context.pick(50, 20))}


def figure(data: Data, figure: Figure) -> None:
    """Both, at both delays."""
    for axes, delay_ms in zip(figure.subplots(1, 2), DELAYS_MS, strict=True):
        plot(axes, data["bursts"].filter(delay_ms=delay_ms), VARIANTS)
        axes.set(title=f"constant load, {delay_ms} ms")


def insignificant(data: Data) -> Measured:
    """At how many loads the two differ by no more than twice the standard error of the difference."""
    table = means(data["bursts"])
    fs, pdrop = (table.filter(variant=variant) for variant in VARIANTS)
    both = fs.join(pdrop, on=["flows", "delay_ms"], suffix="_pdrop")
    error_s = (pl.col("error_s") ** 2 + pl.col("error_s_pdrop") ** 2).sqrt()
    both = both.with_columns(
        off_s=(pl.col("mean_s") - pl.col("mean_s_pdrop")).abs(), errors_s=error_s
    )
    worst = (both["off_s"] / both["mean_s"]).max()
    # Runs of both with the same seed may be the same to the nanosecond: then there is no spread.
    return share_of(
        both["off_s"] <= 2 * both["errors_s"] + 1e-6,
        f"loads, both delays; the means differ by {worst:.0%} at most",
    )


EXPERIMENT = Experiment(
    name="fs3",
    paper=FAST_START,
    section="section 4.1",
    title="drop priority at constant load",
    did="fs and fs-pdrop as in fs1 and fs2. The paper shows fs-pdrop alone, because the difference is insignificant.",
    assumptions=(
        *ASSUMED,
        "Insignificant: no more than twice the standard error of the difference.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "fs and fs-pdrop do not differ",
            "the difference is insignificant (section 4.1)",
            insignificant,
            share("the difference is within twice its standard error"),
        ),
    ),
)
