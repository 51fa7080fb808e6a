"""iw6: responses by size (Figure 7)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import (
    Claim,
    Context,
    Data,
    Experiment,
    Measured,
    Verdict,
    above,
    at_most,
    share,
)
from headstart.reproduce.experiments.initial_window import population
from headstart.reproduce.papers import IW10

ENDS_PKTS = [3, 4, 7, 10, 15, 20, 30, 50, 1000]
ANY_SIZE = population.Service("all sizes", 14_000, sigma=1.0)
"""Responses of all sizes of the figure's buckets. What is compared is within a bucket: how many
responses each has does not matter."""


def run(context: Context) -> Data:
    """Both arms, by the number of segments."""
    table = population.both_arms(context, population.AVG, ANY_SIZE).with_columns(
        end=pl.col("sent_pkts").cut(
            [float(end) for end in ENDS_PKTS[:-1]], labels=[str(end) for end in ENDS_PKTS]
        )
    )
    per_client = table.group_by("end", "client", "arm").agg(pl.col("latency_ms").mean(), n=pl.len())
    pairs = per_client.pivot(on="arm", index=["end", "client"], values=["latency_ms", "n"])
    saved = pl.col("latency_ms_base") - pl.col("latency_ms_exp")
    # Means over responses: a client counts by how many it had.
    weight = pl.col("n_base")
    means = (
        pairs.drop_nulls()
        .group_by("end")
        .agg(
            base=(pl.col("latency_ms_base") * weight).sum() / weight.sum(),
            exp=(pl.col("latency_ms_exp") * weight).sum() / weight.sum(),
            err_ms=saved.std() / pl.len().sqrt(),
            responses=weight.sum(),
        )
    )
    return {
        "sizes": population.with_difference(
            means.with_columns(pl.col("end").cast(pl.String).cast(pl.Int32))
        ).sort("end")
    }


def figure(data: Data, figure: Figure) -> None:
    """Figure 7: gains in ms and in % by segments."""
    rows = data["sizes"]
    labels = [f">{ENDS_PKTS[-2]}" if end == ENDS_PKTS[-1] else str(end) for end in rows["end"]]
    for axes, key, words in zip(
        figure.subplots(1, 2), ("diff", "diff_pct"), ("gain (ms)", "gain (%)"), strict=True
    ):
        axes.bar(labels, rows[key], color="#16679c")
        axes.set(xlabel="segments, up to", ylabel=words, title="Web search's clients, AvgDC")


def small(data: Data) -> Measured:
    """The gain of responses of at most three segments, in ms."""
    row = data["sizes"].filter(end=3).row(0, named=True)
    half = 1.96 * row["err_ms"]
    return Measured(row["diff"], row["diff"] - half, row["diff"] + half, "ms")


def large_over_small(data: Data) -> Measured:
    """The mean gain of the larger buckets, less that of at most three segments, in ms."""
    rows = data["sizes"]
    more = float(rows.filter(pl.col("end") > 3)["diff"].mean() - rows.filter(end=3)["diff"][0])
    return Measured(more, more, more, "ms")


def grows(data: Data) -> Measured:
    """In how many steps the gain in ms grows with the size, up to 50 segments."""
    steps = data["sizes"].filter(pl.col("end") <= 50)["diff"].diff().drop_nulls() > 0
    value = float(steps.cast(pl.Float64).mean())
    return Measured(value, value, value, "", f"{steps.sum()} of {steps.len()} steps")


def percent_flattens(data: Data) -> Measured:
    """The growth of the gain in ms from 10 to 50 segments over its growth in %."""
    rows = data["sizes"]
    at = {row["end"]: row for row in rows.iter_rows(named=True)}
    in_ms = at[50]["diff"] / at[10]["diff"]
    in_pct = at[50]["diff_pct"] / at[10]["diff_pct"]
    return Measured(
        in_ms / in_pct,
        in_ms / in_pct,
        in_ms / in_pct,
        "",
        f"{in_ms:.2f} times in ms, {in_pct:.2f} times in %",
    )


EXPERIMENT = Experiment(
    name="iw6",
    paper=IW10,
    section="section 4.1, Figure 7",
    title="responses by size",
    did="The gain of Web search's responses by their number of segments.",
    assumptions=(
        *population.ASSUMPTIONS,
        "Sizes are spread over all buckets here (lognormal, mean 14 KB, sigma 1): the comparison is within a bucket.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim("Up to 3 segments: a small gain", "less than 10 ms (4.1)", small, at_most(10)),
        Claim(
            "Larger responses gain more ms than those of up to 3 segments",
            "naturally larger improvements (4.1)",
            large_over_small,
            above(0),
        ),
        Claim(
            "The gain in ms grows with the size, up to a limit",
            "grows (up to a limit) (4.1)",
            grows,
            share("the gain grows"),
            {
                Verdict.PARTLY: "The rounds that are saved are a step function of the size: they grow up to the window of 10, and "
                "stay or fall from there on"
            },
        ),
        Claim(
            "The gain in % does not grow by the same factor",
            "not by the same factor (4.1)",
            percent_flattens,
            above(1),
        ),
    ),
)
