"""iw7: averages of subnets (Table 5)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, share
from headstart.reproduce.experiments.initial_window import population, tables
from headstart.reproduce.papers import IW10

BASE_MS = {
    "AvgDC": {0.1: 317, 0.5: 450, 0.9: 1060, 0.95: 1616, 0.99: 4402, 0.999: 11581},
    "SlowDC": {0.1: 302, 0.5: 517, 0.9: 1161, 0.95: 1627, 0.99: 3979, 0.999: 10775},
}
SAVED_MS = {
    "AvgDC": {0.1: 16, 0.5: 29, 0.9: 117, 0.95: 183, 0.99: 419, 0.999: 1678},
    "SlowDC": {0.1: 3, 0.5: 14, 0.9: 124, 0.95: 176, 0.99: 444, 0.999: 304},
}
"""Table 5."""
PRINTED = {
    centre: {at: round(100 * SAVED_MS[centre][at] / base, 2) for at, base in rows.items()}
    for centre, rows in BASE_MS.items()
}


def run(context: Context) -> Data:
    """A client here is a subnet: its mean latency in each arm, and their quantiles."""
    frames = []
    for name, centre in population.CENTRES.items():
        table = population.both_arms(context, centre, population.SEARCH)
        means = table.group_by("client", "arm").agg(pl.col("latency_ms").mean()).sort("client")
        rows = population.intervals(means, tuple(PRINTED[name]))
        frames.append(rows.with_columns(centre=pl.lit(name)))
    return {"quantiles": pl.concat(frames)}


def figure(data: Data, figure: Figure) -> None:
    """The gain by quantile of subnets, ours and the printed one."""
    for axes, (name, printed) in zip(figure.subplots(1, 2), PRINTED.items(), strict=True):
        tables.draw_gains(axes, 0, data["quantiles"].filter(centre=name), "here")
        axes.plot(
            range(len(printed)), list(printed.values()), "s--", color="#c2571a", label="paper"
        )
        axes.set_title(f"Averages of subnets, {name}")
        axes.legend()


def improves(data: Data) -> Measured:
    """At how many quantiles the average latency of subnets is less."""
    better = data["quantiles"]["diff"] > 0
    value = float(better.cast(pl.Float64).mean())
    return Measured(value, value, value, "", f"{better.sum()} of {better.len()} quantiles")


EXPERIMENT = Experiment(
    name="iw7",
    paper=IW10,
    section="section 4.1, Table 5",
    title="averages of subnets",
    did="The latency of Web search averaged by /24 subnet; quantiles of these averages.",
    assumptions=(
        *population.ASSUMPTIONS,
        "Each client stands for a subnet: all of a subnet's clients have one path here, and all subnets the same traffic.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "The average latency of subnets improves at all quantiles",
            "across the different quantiles (4.1)",
            improves,
            share("the average is less"),
            {
                Verdict.PARTLY: "Not at SlowDC's 99.9 % quantile, which is of the narrowest lines. "
                + tables.NARROW,
            },
        ),
        *(
            claim
            for centre, printed in PRINTED.items()
            for claim in tables.quantile_claims(
                "quantiles", printed, "Table 5", centre, centre=centre
            )
        ),
    ),
)
