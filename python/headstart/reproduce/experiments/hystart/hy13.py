"""hy13: what slow starts cost the sender (Figure 19), as the work that the paper names."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import (
    Claim,
    Context,
    Data,
    Experiment,
    Measured,
    Verdict,
    at_least,
    at_most,
    number,
    of,
)
from headstart.reproduce.experiments.hystart import testbed
from headstart.reproduce.live import LiveResult
from headstart.reproduce.papers import HYSTART
from headstart.reproduce.style import line

RTTS_MS = (10, 20, 40, 80, 120, 160)
LARGE_MS = 80
"""Medium and high bandwidth-delay products: from here on."""

SECONDS = 60.0

KERNEL_RTTS_MS = (80, 160)
KERNEL_LATER_S, KERNEL_SECONDS = 8.0, 20.0
"""On the live kernel: when the second flow joins, and how long a run is."""


def run(context: Context) -> Data:
    """The runs of Figure 18 (a)."""
    if context.on == "kernel":
        return {"runs": _live(context)}
    rate_mbit = context.pick(400, 100)
    scenarios = [
        testbed.two_flows(
            "hy13", {"rate": f"{rate_mbit}mbit", "rtt": f"{rtt_ms}ms", "queue": "drop-tail:1bdp"}
        )
        for rtt_ms in RTTS_MS
    ]
    result = context.sweep(scenarios, repeat=context.pick(2, 1))
    rtts = pl.DataFrame({"rtt_ms": RTTS_MS}).with_columns(
        variant=pl.int_range(len(RTTS_MS), dtype=pl.UInt32)
    )
    runs = testbed.utilisation(result.transfers, pl.lit(float(rate_mbit)), SECONDS)
    return {"runs": runs.join(rtts, on="variant")}


def _live(context: Context) -> pl.DataFrame:
    """The CPU of sending on the live kernel, in a run as a whole."""
    scenarios = [
        testbed.two_flows(
            "hy13",
            {"rate": "100mbit", "rtt": f"{rtt_ms}ms", "queue": "drop-tail:1bdp"},
            later_s=KERNEL_LATER_S,
            until_s=KERNEL_SECONDS,
        )
        for rtt_ms in KERNEL_RTTS_MS
    ]
    result = context.measure(scenarios, repeat=1, whole=True)
    assert isinstance(result, LiveResult)
    rtts = pl.DataFrame({"rtt_ms": KERNEL_RTTS_MS}).with_columns(
        variant=pl.int_range(len(KERNEL_RTTS_MS), dtype=pl.UInt32)
    )
    used_s = pl.col("sender_s").max() + pl.col("router_s").max()
    runs = result.cpu.group_by("variant", "startup", "repeat").agg(cpu_s=used_s)
    delivered = result.transfers.group_by("variant", "startup", "repeat").agg(
        delivered_bytes=pl.col("delivered_bytes").sum()
    )
    runs = runs.join(delivered, on=["variant", "startup", "repeat"])
    return runs.join(rtts, on="variant").sort("variant", "startup", "repeat")


def work(runs: pl.DataFrame) -> str:
    """The column of what a run cost: CPU where it was measured, else packets walked."""
    return "cpu_s" if "cpu_s" in runs.columns else "sack_walk_pkts"


def cost_to_standard(startup: str) -> testbed.Measure:
    """The cost relative to standard slow start's, on medium and large products."""

    def measure(data: Data) -> Measured:
        rows = data["runs"].filter(pl.col("rtt_ms") >= LARGE_MS)
        return of(testbed.ratio_of_runs(rows, work(rows), startup, "su_standard"))

    return measure


def figure(data: Data, figure: Figure) -> None:
    """Figure 19; in the simulator with packets walked in place of CPU time."""
    axes = figure.subplots()
    column = work(data["runs"])
    points = testbed.means(data["runs"], ["rtt_ms", "startup"], column)
    for number_, startup in enumerate(testbed.SIX):
        rows = points.filter(pl.col("startup") == startup)
        line(
            axes, number_, rows["rtt_ms"], rows["mean"], testbed.NAMES[startup], error=rows["half"]
        )
    if column == "cpu_s":
        axes.set(xlabel="round trip (ms)", ylabel="CPU of sender and router (s)", ylim=(0, None))
    else:
        axes.set(xlabel="round trip (ms)", ylabel="packets walked for SACK blocks", yscale="symlog")
    axes.legend(ncols=2)


ON_KERNEL = dict.fromkeys(
    (Verdict.PARTLY, Verdict.NOT),
    "Today's Linux keeps what is out in a tree and finds a SACK block without a walk: all starts cost the sender about the same "
    "CPU, which is that of sending",
)

EXPERIMENT = Experiment(
    name="hy13",
    paper=HYSTART,
    section="5.11, Figure 19",
    title="what slow starts cost the sender",
    did="CPU utilisation of the Linux sender in the runs of Figure 18 (a), under six slow starts.",
    assumptions=(
        *testbed.COMMON,
        "Not CPU time, but the work that the paper blames for it (2.1.1): packets over which a linked list of what is out is walked for the SACK "
        "blocks that arrive, in 60 s.",
        "High is half of standard slow start's or more, low a tenth or less: the paper has no numbers. Medium and large products are those of "
        "80 ms and more.",
        "The quick run is at 100 Mbit/s, one repeat.",
    ),
    grounds=("sim", "kernel"),
    on_kernel=(
        "CPU time of the sending process and of the router's threads, in which the kernel handles the ACKs, beside the emulation itself; 100 Mbit/s, "
        "runs of 20 s, the second flow after 8 s, one each. Today's kernel has a tree in the list's place.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "Adaptive start costs as much as standard slow start",
            "extremely high under SS and AStart (5.11)",
            cost_to_standard("su_westwood"),
            number(1.0),
        ),
        Claim(
            "Limited slow start costs relatively much",
            "relatively high CPU utilization (5.11)",
            cost_to_standard("su_limited"),
            at_least(0.5),
            dict.fromkeys(
                (Verdict.PARTLY, Verdict.NOT),
                "What is counted is how much of the scoreboard SACK blocks make the sender walk. Limited slow start overshoots by 50 packets a round trip, so "
                "that less is missing",
            ),
        ),
        Claim(
            "HyStart costs very little",
            "very low CPU utilization (5.11)",
            cost_to_standard("su_hystart"),
            at_most(0.1),
            {
                Verdict.NOT: "Its start loses nothing; what it costs is the losses of congestion avoidance later in the 60 s, which the others have, too"
            },
            ON_KERNEL,
        ),
        Claim(
            "The packet pair costs very little",
            "very low CPU utilization (5.11)",
            cost_to_standard("su_packet_pair"),
            at_most(0.1),
            {
                Verdict.NOT: "The first flow's threshold is exact and loses nothing; the second flow's is that of an empty path, and overshoots. In the paper "
                "it left early"
            },
            ON_KERNEL,
        ),
        Claim(
            "Slow start of Vegas costs very little",
            "very low CPU utilization (5.11)",
            cost_to_standard("su_vegas"),
            at_most(0.1),
            why_kernel=ON_KERNEL,
        ),
    ),
)
