"""iw3: the quantiles of Web search (Table 3)."""

from functools import partial

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, number, share
from headstart.reproduce.experiments.initial_window import population, tables
from headstart.reproduce.papers import IW10

SHARES = (0.1, 0.5, 0.9, 0.95, 0.99, 0.999)
PRINTED = {
    "AvgDC": {0.1: 9.84, 0.5: 6.44, 0.9: 9.52, 0.95: 17.07, 0.99: 20.54, 0.999: 22.24},
    "SlowDC": {0.1: 3.32, 0.5: 3.38, 0.9: 10.64, 0.95: 13.56, 0.99: 15.20, 0.999: 13.77},
}
"""Table 3: the gain in % by quantile."""

AVERAGES = {"AvgDC": (68.0, 11.7), "SlowDC": (72.0, 8.7)}
"""The same: the gain of the average, in ms and in %."""


def run(context: Context) -> Data:
    """Both centres, both arms."""
    quantiles, averages = [], []
    for name, centre in population.CENTRES.items():
        table = population.both_arms(context, centre, population.SEARCH)
        rows = population.intervals(table, SHARES)
        quantiles.append(rows.with_columns(centre=pl.lit(name)))
        averages.append(mean_gain(table).with_columns(centre=pl.lit(name), n=table.height // 2))
    return {"quantiles": pl.concat(quantiles), "averages": pl.concat(averages)}


def mean_gain(table: pl.DataFrame) -> pl.DataFrame:
    """The means of both arms, and the standard error of their difference over clients."""
    per_client = table.group_by("client", "arm").agg(pl.col("latency_ms").mean())
    pairs = per_client.pivot(on="arm", index="client", values="latency_ms")
    saved = pairs["base"] - pairs["exp"]
    return pl.DataFrame(
        {
            "base": [table.filter(arm="base")["latency_ms"].mean()],
            "exp": [table.filter(arm="exp")["latency_ms"].mean()],
            "err_ms": [saved.std() / saved.len() ** 0.5],
        }
    )


def figure(data: Data, figure: Figure) -> None:
    """The gain by quantile, ours and the printed one."""
    for axes, (name, printed) in zip(figure.subplots(1, 2), PRINTED.items(), strict=True):
        tables.draw_gains(axes, 0, data["quantiles"].filter(centre=name), "here")
        axes.plot(
            range(len(printed)), list(printed.values()), "s--", color="#c2571a", label="paper"
        )
        axes.set_title(f"Web search, {name}")
        axes.legend()


def average(data: Data, centre: str, *, relative: bool) -> Measured:
    """The gain of the average latency, in ms or in %."""
    row = data["averages"].filter(centre=centre).row(0, named=True)
    saved, half = row["base"] - row["exp"], 1.96 * row["err_ms"]
    scale = 100 / row["base"] if relative else 1.0
    note = f"{row['base']:.0f} to {row['exp']:.0f} ms, {row['n']:,} responses an arm"
    low, high = (saved - half) * scale, (saved + half) * scale
    return Measured(saved * scale, low, high, "%" if relative else "ms", note)


def grows(data: Data) -> Measured:
    """In how many steps from one quantile to the next the gain in ms grows."""
    rows = data["quantiles"].sort("centre", "share")
    more = rows.select(pl.col("diff").diff().over("centre")).to_series().drop_nulls() > 0
    value = float(more.cast(pl.Float64).mean())
    return Measured(value, value, value, "", f"{more.sum()} of {more.len()} steps")


EXPERIMENT = Experiment(
    name="iw3",
    paper=IW10,
    section="section 4.1, Table 3",
    title="quantiles of Web search",
    did="The latency of Web search's responses in two data centres, a week with an initial window of 10 and a week with 3; "
    "billions of responses.",
    assumptions=population.ASSUMPTIONS,
    run=run,
    figure=figure,
    claims=(
        *(
            Claim(
                f"{centre}: gain of the average, in {unit}",
                f"{paper:g} {unit} (Table 3)",
                partial(average, centre=centre, relative=unit == "%"),
                number(paper),
                {Verdict.PARTLY: tables.BODY, Verdict.NOT: tables.BODY},
            )
            for centre, papers in AVERAGES.items()
            for unit, paper in zip(("ms", "%"), papers, strict=True)
        ),
        *(
            claim
            for centre, printed in PRINTED.items()
            for claim in tables.quantile_claims(
                "quantiles", printed, "Table 3", centre, centre=centre
            )
        ),
        Claim(
            "The higher the quantile, the more ms are gained",
            "higher quantiles show relatively larger improvements (4.1)",
            grows,
            share("the gain in ms grows"),
            {
                Verdict.PARTLY: "Where it falls is the tail, from the 95 % quantile on: there timeouts decide, which here meet both windows alike"
            },
        ),
    ),
)
