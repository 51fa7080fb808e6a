"""hy10: what a HyStart flow takes from a standard one (Figure 16)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, of, share
from headstart.reproduce.experiments.hystart import testbed
from headstart.reproduce.papers import HYSTART

RTTS_MS = (60, 120)
STARTUPS = ("su_standard", "su_hystart")
RATE_MBIT = 100
SECONDS = 60.0


def run(context: Context) -> Data:
    """The first flow has standard slow start always; the second is compared."""
    scenarios = []
    for rtt_ms in RTTS_MS:
        one = testbed.two_flows(
            "hy10",
            {"rate": f"{RATE_MBIT}mbit", "rtt": f"{rtt_ms}ms", "queue": "drop-tail:1bdp"},
            startups=STARTUPS,
        )
        # Native Reno's own start is the standard one.
        one["traffic"][0]["startup"] = "reno"
        scenarios.append(one)
    result = context.sweep(scenarios, repeat=context.pick(25, 4))
    rtts = pl.DataFrame({"rtt_ms": RTTS_MS}).with_columns(
        variant=pl.int_range(len(RTTS_MS), dtype=pl.UInt32)
    )
    joint_s = SECONDS - testbed.LATER_S
    transfers = result.transfers.with_columns(
        mbit_per_s=pl.col("delivered_bytes") * 8e-6 / joint_s,
        share=pl.col("delivered_bytes")
        / pl.col("delivered_bytes").sum().over("variant", "startup", "repeat"),
    )
    return {"flows": transfers.join(rtts, on="variant")}


def _ratios(data: Data, rtt_ms: int, group: str) -> Measured:
    """What `group` delivers where the second flow starts with HyStart, over where it does not, run by run."""
    rows = data["flows"].filter((pl.col("rtt_ms") == rtt_ms) & (pl.col("group") == group))
    return of(testbed.ratio_of_runs(rows, "delivered_bytes", "su_hystart", "su_standard"))


def _share(data: Data, rtt_ms: int, startup: str) -> float:
    rows = data["flows"].filter(
        (pl.col("rtt_ms") == rtt_ms)
        & (pl.col("group") == "flow 2")
        & (pl.col("startup") == startup)
    )
    return float(rows["share"].mean())


def takes_less(data: Data) -> Measured:
    """The second flow delivers less, and the interval says so."""
    words = ", ".join(
        f"{rtt_ms} ms: {_share(data, rtt_ms, 'su_hystart'):.0%} against {_share(data, rtt_ms, 'su_standard'):.0%}"
        for rtt_ms in RTTS_MS
    )
    counted = testbed.cases([_ratios(data, rtt_ms, "flow 2").high < 1 for rtt_ms in RTTS_MS])
    return Measured(counted.value, counted.low, counted.high, "", f"{counted.note}; share {words}")


def not_degraded(data: Data) -> Measured:
    """The first flow delivers no less, as far as the interval tells."""
    ratios = [_ratios(data, rtt_ms, "flow 1") for rtt_ms in RTTS_MS]
    words = ", ".join(
        f"{rtt_ms} ms: {ratio.value - 1:+.1%}"
        for rtt_ms, ratio in zip(RTTS_MS, ratios, strict=True)
    )
    counted = testbed.cases([ratio.high >= 1 for ratio in ratios])
    return Measured(counted.value, counted.low, counted.high, "", f"{counted.note}; {words}")


def figure(data: Data, figure: Figure) -> None:
    """Figure 16: the second flow's share, by its start."""
    axes = figure.subplots()
    rows = (
        data["flows"]
        .filter(pl.col("group") == "flow 2")
        .with_columns(rtt=pl.format("{} ms", "rtt_ms"), utilisation=pl.col("share"))
    )
    testbed.bars(axes, rows, "rtt", [f"{rtt_ms} ms" for rtt_ms in RTTS_MS], STARTUPS)
    axes.set(ylabel="share of the second flow (%)", xlabel="round trip", ylim=(0, 60))


EXPERIMENT = Experiment(
    name="hy10",
    paper=HYSTART,
    section="5.9, Figure 16",
    title="fairness to standard flows",
    did="A flow with standard slow start and, later, one with either; 100 Mbit/s, 60 and 120 ms, 25 runs; the share of each.",
    assumptions=(
        *testbed.COMMON,
        "The second flow starts 30 s after the first, and both are counted up to the 60th second, as in 5.11: the paper does not say. "
        "The share is of all that both deliver in this time. A buffer of one product, no background.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "A flow that starts with HyStart takes less than one with standard slow start",
            "grabs less bandwidth (5.9, Figure 16)",
            takes_less,
            share("its share is smaller"),
            {
                Verdict.NOT: "At 120 ms it is so. At 60 ms the second flow finds the queue almost full, and both starts end at the same loss before "
                "HyStart has two rounds to compare"
            },
        ),
        Claim(
            "The standard flow does not suffer from it",
            "do not suffer throughput degradation (5.9)",
            not_degraded,
            share("the first flow delivers as much"),
        ),
    ),
)
