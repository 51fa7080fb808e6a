"""hy14: three long paths, SACK and NewReno (Figures 21 and 22)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, share
from headstart.reproduce.claims import NUMBER_PARTLY, NUMBER_REPRODUCED
from headstart.reproduce.experiments.hystart import testbed
from headstart.reproduce.papers import HYSTART

PATHS = {"Chicago": (1000, 25), "Germany": (100, 107), "Japan": (1000, 225)}
"""Mbit/s and round trip in ms (6.1), from North Carolina."""

NEWRENO = "Germany, NewReno"
PLACES = (*PATHS, NEWRENO)
LATER_S = 20.0
SECONDS = 40.0
"""6.1: the 10th, the 30th and the 50th second."""


def run(context: Context) -> Data:
    """Three paths with SACK, and Germany with NewReno."""
    scale = context.pick(1.0, 0.25)
    scenarios, rates = [], []
    for place in PLACES:
        rate, rtt_ms = PATHS[place.split(",")[0]]
        rates.append(rate * (scale if rate > 100 else 1.0))
        scenarios.append(
            testbed.two_flows(
                "hy14",
                {"rate": f"{rates[-1]:g}mbit", "rtt": f"{rtt_ms}ms", "queue": "drop-tail:1bdp"},
                later_s=LATER_S,
                until_s=testbed.FIRST_S + SECONDS,
                transport={"recovery": "newreno-steady"} if place == NEWRENO else None,
            )
        )
    result = context.sweep(scenarios, repeat=context.pick(3, 1))
    labels = pl.DataFrame({"place": PLACES, "rate_mbit": rates}).with_columns(
        variant=pl.int_range(len(PLACES), dtype=pl.UInt32)
    )
    transfers = result.transfers.join(labels, on="variant")
    runs = testbed.utilisation(transfers, pl.col("rate_mbit"), SECONDS)
    return {"runs": runs.join(labels, on="variant")}


def _means(data: Data, place: str) -> dict[str, float]:
    rows = data["runs"].filter(pl.col("place") == place)
    return dict(rows.group_by("startup").agg(pl.col("utilisation").mean()).iter_rows())


def near_the_best(places: tuple[str, ...], startups: tuple[str, ...]) -> testbed.Measure:
    """No further below the best of the six than `number` allows."""

    def measure(data: Data) -> Measured:
        holds, words = [], []
        for place in places:
            means = _means(data, place)
            best = max(means.values())
            holds += [means[startup] >= (1 - NUMBER_REPRODUCED) * best for startup in startups]
            each = ", ".join(
                f"{testbed.NAMES[startup]} {means[startup]:.0%}" for startup in startups
            )
            words.append(f"{place}: {each}, the best {best:.0%}")
        counted = testbed.cases(holds)
        return Measured(
            counted.value, counted.low, counted.high, "", f"{counted.note}; {'; '.join(words)}"
        )

    return measure


def worst(place: str, startup: str) -> testbed.Measure:
    """The lowest utilisation of the six."""

    def measure(data: Data) -> Measured:
        means = _means(data, place)
        lowest = min(means.values())
        words = ", ".join(f"{testbed.NAMES[each]} {means[each]:.0%}" for each in testbed.SIX)
        holds = 1.0 if means[startup] == lowest else 0.0
        return Measured(holds, holds, holds, "", words)

    return measure


def vegas_is_low(data: Data) -> Measured:
    """Below the best by more than `number` calls partly, on all paths."""
    holds, words = [], []
    for place in PATHS:
        means = _means(data, place)
        holds.append(means["su_vegas"] < NUMBER_PARTLY * max(means.values()))
        words.append(f"{place} {means['su_vegas']:.0%}")
    counted = testbed.cases(holds)
    return Measured(
        counted.value, counted.low, counted.high, "", f"{counted.note}; {', '.join(words)}"
    )


def newreno_collapses(data: Data) -> Measured:
    """NewReno with standard slow start, below half of HyStart."""
    means = _means(data, NEWRENO)
    holds = 1.0 if means["su_standard"] < NUMBER_PARTLY * means["su_hystart"] else 0.0
    words = f"SS {means['su_standard']:.1%} of the link, HyStart {means['su_hystart']:.0%}"
    return Measured(holds, holds, holds, "", words)


def figure(data: Data, figure: Figure) -> None:
    """Figures 21 and 22: bars by path."""
    axes = figure.subplots()
    testbed.bars(axes, data["runs"], "place", list(PLACES), testbed.SIX)
    axes.set(ylabel="utilisation (%)")


EXPERIMENT = Experiment(
    name="hy14",
    paper=HYSTART,
    section="6.1 and 6.2, Figures 21 and 22",
    title="three long paths",
    did="Two flows over Internet2, NLR and GEANT, 20 s apart, utilisation in 40 s, six slow starts with SACK; and over the path to Germany with NewReno.",
    assumptions=(
        *testbed.COMMON,
        "The paths are rate and round trip alone: 1 Gbit/s and 25 ms, 100 Mbit/s and 107 ms, 1 Gbit/s and 225 ms (the results' text says 250 ms). "
        "Their routers' buffers and their traffic are not known: a buffer of one product, no background, where the paper's varied by the "
        "time of the day.",
        "The quick run has a quarter of the gigabit, and one repeat.",
        f"Good is no further than {NUMBER_REPRODUCED:.0%} below the best of the six; low is less than half of it.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "To Chicago and Germany standard, limited and HyStart's slow start use the path well",
            "good network utilization (6.2, Figure 21)",
            near_the_best(("Chicago", "Germany"), ("su_standard", "su_limited", "su_hystart")),
            share("it is near the best"),
        ),
        Claim(
            "To Japan HyStart uses the path exceptionally well",
            "exceptionally good throughput (6.2, Figure 21)",
            near_the_best(("Japan",), ("su_hystart",)),
            share("it is near the best"),
        ),
        Claim(
            "To Japan limited slow start is the worst",
            "the worst performance, by its sluggish increase (6.2)",
            worst("Japan", "su_limited"),
            share("it is the worst of the six"),
            {
                Verdict.NOT: "Vegas, which leaves early and doubles every other round trip, is below it here"
            },
        ),
        Claim(
            "Slow start of Vegas uses all paths badly",
            "low utilization even in small BDP networks (6.2)",
            vegas_is_low,
            share("it is low"),
            {
                Verdict.PARTLY: "Alone on its path the delay is exact here, and the first flow leaves near the product",
                Verdict.NOT: "Alone on its path the delay is exact here, and the first flow leaves near the product; real paths have jitter",
            },
        ),
        Claim(
            "With NewReno standard slow start collapses",
            "extremely low utilization (6.2, Figure 22)",
            newreno_collapses,
            share("it has less than half of HyStart's"),
        ),
        Claim(
            "With NewReno limited and HyStart's slow start use the path very well",
            "outstanding utilization (6.2, Figure 22)",
            near_the_best((NEWRENO,), ("su_limited", "su_hystart")),
            share("it is near the best"),
        ),
    ),
)
