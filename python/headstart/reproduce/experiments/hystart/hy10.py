"""hy10: what a HyStart flow takes from a standard one (Figure 16)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, share
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
        share=pl.col("delivered_bytes") / pl.col("delivered_bytes").sum().over("variant", "startup", "repeat"),
    )
    return {"flows": transfers.join(rtts, on="variant")}


def _of(data: Data, rtt_ms: int, group: str, startup: str) -> float:
    rows = data["flows"].filter(
        (pl.col("rtt_ms") == rtt_ms) & (pl.col("group") == group) & (pl.col("startup") == startup)
    )
    return float(rows["share" if group == "flow 2" else "delivered_bytes"].mean())


def takes_less(data: Data) -> Measured:
    """The second flow's share of what both deliver."""
    holds, words = [], []
    for rtt_ms in RTTS_MS:
        standard, hystart = (_of(data, rtt_ms, "flow 2", startup) for startup in STARTUPS)
        holds.append(hystart < standard)
        words.append(f"{rtt_ms} ms: {hystart:.0%} against {standard:.0%}")
    counted = testbed.cases(holds)
    return Measured(counted.value, counted.low, counted.high, "", f"{counted.note}; {', '.join(words)}")


def not_degraded(data: Data) -> Measured:
    """What the first flow delivers beside HyStart, against beside standard slow start."""
    holds, words = [], []
    for rtt_ms in RTTS_MS:
        standard, hystart = (_of(data, rtt_ms, "flow 1", startup) for startup in STARTUPS)
        holds.append(hystart >= standard)
        words.append(f"{rtt_ms} ms: {hystart / standard - 1:+.1%}")
    counted = testbed.cases(holds)
    return Measured(counted.value, counted.low, counted.high, "", f"{counted.note}; {', '.join(words)}")


def figure(data: Data, figure: Figure) -> None:
    """Figure 16: the second flow's share, by its start."""
    axes = figure.subplots()
    rows = data["flows"].filter(pl.col("group") == "flow 2").with_columns(
        rtt=pl.format("{} ms", "rtt_ms"), utilisation=pl.col("share")
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
