"""iw4: buckets of RTT, bandwidth and bandwidth-delay product (Figures 5 and 6)."""

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
    at_least,
    share,
)
from headstart.reproduce.experiments.initial_window import population, tables
from headstart.reproduce.papers import IW10

BUCKETS = {
    "RTT (ms)": [20, 50, 100, 200, 500, 1e9],
    "bandwidth (kbit/s)": [56, 256, 512, 1000, 2000, 3000, 5000, 1e9],
    "BDP (bytes)": [1000, 5000, 10_000, 50_000, 100_000, 200_000, 1e12],
}
"""Upper ends. Of the figure's, the text names 56, 256 kbit/s and 2 Mbit/s."""


def run(context: Context) -> Data:
    """The mean latency of both arms in each bucket."""
    frames = []
    for name, centre in population.CENTRES.items():
        table = population.both_arms(context, centre, population.SEARCH).with_columns(
            (pl.col("rtt_ms")).alias("RTT (ms)"),
            (pl.col("bandwidth_bits_per_s") / 1e3).alias("bandwidth (kbit/s)"),
            (pl.col("bandwidth_bits_per_s") * pl.col("rtt_ms") / 8e3).alias("BDP (bytes)"),
        )
        for what, ends in BUCKETS.items():
            end = pl.lit(None, dtype=pl.Float64)
            for bound in reversed(ends):
                end = pl.when(pl.col(what) <= bound).then(float(bound)).otherwise(end)
            means = (
                table.with_columns(end=end)
                .group_by("end", "arm")
                .agg(pl.col("latency_ms").mean(), n=pl.len())
                .pivot(on="arm", index="end", values=["latency_ms", "n"])
                .select(
                    "end",
                    base="latency_ms_base",
                    exp="latency_ms_exp",
                    responses_pct=100 * pl.col("n_base") / pl.col("n_base").sum(),
                )
            )
            named = population.with_difference(means).with_columns(
                centre=pl.lit(name), what=pl.lit(what)
            )
            frames.append(named.sort("end"))
    return {"buckets": pl.concat(frames)}


def label(end: float, ends: list[float]) -> str:
    """A bucket by its upper end, as in the figures."""
    return f">{ends[-2]:g}" if end == ends[-1] else f"{end:g}"


def figure(data: Data, figure: Figure) -> None:
    """Bars of the gain in ms, the gain in % above them: AvgDC by all three, SlowDC by bandwidth."""
    panels = [("AvgDC", what) for what in BUCKETS] + [("SlowDC", "bandwidth (kbit/s)")]
    for axes, (centre, what) in zip(figure.subplots(1, 4), panels, strict=True):
        rows = data["buckets"].filter(centre=centre, what=what)
        labels = [label(end, BUCKETS[what]) for end in rows["end"]]
        bars = axes.bar(range(rows.height), rows["diff"], color="#16679c")
        axes.bar_label(bars, [f"{gain:.0f}%" for gain in rows["diff_pct"]], fontsize=6)
        axes.set_xticks(range(rows.height), labels, rotation=60, fontsize=7)
        axes.set(xlabel=what, ylabel="gain (ms)", title=centre)


def buckets(data: Data, centre: str, what: str) -> pl.DataFrame:
    """A panel, but for buckets of less than a thousandth of the responses."""
    rows = data["buckets"].filter(pl.col("responses_pct") >= 0.1, centre=centre, what=what)
    return rows.sort("end")


def all_gain(data: Data) -> Measured:
    """In how many buckets of all panels the mean latency is less."""
    rows = data["buckets"].filter(pl.col("responses_pct") >= 0.1)
    better = rows["diff"] > 0
    value = float(better.cast(pl.Float64).mean())
    return Measured(value, value, value, "", f"{better.sum()} of {better.len()} buckets")


def top_over_bottom(data: Data, what: str) -> Measured:
    """The gain in ms in the highest bucket over that in the lowest."""
    rows = buckets(data, "AvgDC", what)
    ratio = rows["diff"][-1] / rows["diff"][0]
    note = f"{rows['diff'][0]:.0f} ms in the lowest, {rows['diff'][-1]:.0f} ms in the highest"
    return Measured(ratio, ratio, ratio, "times", note)


def lowest_rtt_percent(data: Data) -> Measured:
    """How far the gain in % of the lowest bucket of RTT is below the mean of the others."""
    gains = buckets(data, "AvgDC", "RTT (ms)")["diff_pct"]
    below = float(gains[1:].mean() - gains[0])
    return Measured(below, below, below, "percentage points", f"{gains[0]:.1f} % in the lowest")


def wide_alike(data: Data) -> Measured:
    """The least gain in ms over the greatest, in the buckets above 2 Mbit/s."""
    rows = buckets(data, "AvgDC", "bandwidth (kbit/s)").filter(pl.col("end") > 2000)
    ratio = float(rows["diff"].min() / rows["diff"].max())
    return Measured(ratio, ratio, ratio, "", "the least over the greatest")


def narrow_gain(data: Data) -> Measured:
    """The least gain in % in the two narrow buckets of SlowDC."""
    rows = buckets(data, "SlowDC", "bandwidth (kbit/s)").filter(pl.col("end") <= 256)
    low, high = float(rows["diff_pct"].min()), float(rows["diff_pct"].max())
    return Measured(low, low, low, "%", f"the lesser of the two buckets; the other: {high:.3g} %")


EXPERIMENT = Experiment(
    name="iw4",
    paper=IW10,
    section="section 4.1, Figures 5 and 6",
    title="buckets of RTT, bandwidth and BDP",
    did="The mean latency of Web search's responses by the client's RTT, bandwidth and their product.",
    assumptions=(
        *population.ASSUMPTIONS,
        "Buckets with less than 0.1 % of the responses are in no claim.",
    ),
    run=run,
    figure=figure,
    size_in=(12.0, 3.4),
    claims=(
        Claim(
            "The mean latency improves in all buckets",
            "across all buckets (4.1)",
            all_gain,
            share("the mean latency is less"),
            {
                Verdict.PARTLY: "Not in those of the narrowest lines. " + tables.NARROW,
            },
        ),
        Claim(
            "High RTT gains more ms than low RTT",
            "the largest benefits are for high RTT (4.1)",
            lambda data: top_over_bottom(data, "RTT (ms)"),
            above(1),
        ),
        Claim(
            "High BDP gains more ms than low BDP",
            "the largest benefits are for high BDP (4.1)",
            lambda data: top_over_bottom(data, "BDP (bytes)"),
            above(1),
            {
                Verdict.NOT: "The lowest bucket of BDP is of the narrowest lines, whose gain or loss in ms is large because their latencies are. "
                + tables.NARROW
            },
        ),
        Claim(
            "Low RTT gains the least in %, too",
            "the smallest also in percentage (4.1)",
            lowest_rtt_percent,
            above(0),
        ),
        Claim(
            "Above 2 Mbit/s the gains in ms are about the same",
            "about the same (4.1); the least at least half of the greatest is taken for that",
            wide_alike,
            at_least(0.5),
        ),
        Claim(
            "SlowDC: clients up to 256 kbit/s gain significantly",
            "significant latency improvements; the average over all is 8.7 % (4.1, Table 3)",
            narrow_gain,
            at_least(8.7),
            dict.fromkeys(
                (Verdict.PARTLY, Verdict.NOT),
                "It is the bucket of up to 56 kbit/s; the other is above the average. "
                + tables.NARROW,
            ),
        ),
    ),
)
