"""hy1: what an overshoot costs (Tables 1 and 2): losses, the walk of the sender's list, zero throughput."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, number, of
from headstart.reproduce.experiments.hystart import testbed
from headstart.reproduce.live import LiveResult
from headstart.reproduce.papers import HYSTART
from headstart.reproduce.style import line

PATHS = (
    (100, 60, 1048),
    (100, 120, 2096),
    (200, 60, 2096),
    (200, 120, 4194),
    (400, 60, 4194),
    (400, 120, 8388),
)
"""Table 1: Mbit/s, one-way delay in ms, buffer in packets (100 % of the bandwidth-delay product)."""

MEASURED_S = 40.0
"""Tables 1 and 2: "measured 40 s after slow start"."""

KERNEL_PATHS = PATHS[:3]
"""Those that a path in real time carries beside other work."""

KERNEL_S = 45.0
"""How long a run is there: the second flow joins after 30 s."""

BUSY_MS = 1000
"""The CPU load is that of the busiest second."""

SAMPLE_MS = 50
QUIET = 0.01
"""Zero throughput: less than this share of the link's rate in a sample."""


def run(context: Context) -> Data:
    """Standard slow start as Linux 2.6.23 had it, over the six paths; on the kernel its own."""
    on_kernel = context.on == "kernel"
    ran = KERNEL_PATHS if on_kernel else PATHS
    until_s = KERNEL_S if on_kernel else testbed.FIRST_S + 50.0
    repeat = context.pick(2, 1) if on_kernel else context.pick(10, 2)
    scenarios = [
        testbed.two_flows(
            "hy1",
            {"rate": f"{rate}mbit", "rtt": f"{2 * delay}ms", "queue": f"drop-tail:{buffer}"},
            until_s=until_s,
            startups=("reno",),
            sample_every=f"{SAMPLE_MS}ms",
        )
        for rate, delay, buffer in ran
    ]
    result = context.measure(scenarios, repeat=repeat, queues=True, whole=True)
    paths = pl.DataFrame(ran, schema=["rate_mbit", "delay_ms", "buffer_pkts"], orient="row")
    paths = paths.with_columns(variant=pl.int_range(len(ran), dtype=pl.UInt32))
    runs = _runs(result.transfers, result.queues).join(paths, on="variant")
    if isinstance(result, LiveResult):
        busiest = busiest_second(result.cpu)
        return {"runs": runs.join(busiest, on=["variant", "repeat"])}
    return {"runs": runs}


def busiest_second(cpu: pl.DataFrame) -> pl.DataFrame:
    """The most CPU that a run took in a second, in percent of one: `ends_percent`, `router_percent`.

    The ends are the processes that send and receive; the router's threads carry the emulation and
    the kernel's work on what arrives, which cannot be told apart.
    """
    keys = ["variant", "repeat"]
    second = pl.col("t_ms") // BUSY_MS
    ends = pl.max_horizontal("sender_s", "receiver_s")
    steps = cpu.sort(*keys, "t_ms").group_by(*keys, second.alias("second"), maintain_order=True)
    return (
        steps.agg(ends_s=ends.last(), router_s=pl.col("router_s").last())
        .with_columns(
            ends_percent=100 * pl.col("ends_s").diff().over(keys),
            router_percent=100 * pl.col("router_s").diff().over(keys),
        )
        .group_by(keys)
        .agg(pl.col("ends_percent", "router_percent").max())
    )


def _runs(transfers: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """One row a run: losses of the first overshoot, the walks, the time without throughput."""
    keys = ["variant", "repeat"]
    until_ms = (testbed.FIRST_S + testbed.LATER_S) * 1000
    forward = queues.filter(pl.col("link") == "forward").sort(*keys, "t_ms")
    lost = (
        forward.filter(pl.col("t_ms") < until_ms)
        .group_by(keys)
        .agg(lost_pkts=pl.col("dropped_pkts").max())
    )
    ended = transfers.filter(pl.col("group") == "flow 1").select(*keys, "slow_start_end_ms")
    steps = forward.join(ended, on=keys).with_columns(
        length_ms=pl.col("t_ms").diff().over(keys), sent_ms=pl.col("busy_ms").diff().over(keys)
    )
    since_ms = pl.col("t_ms") - pl.col("slow_start_end_ms")
    quiet = (
        steps.filter((since_ms > 0) & (since_ms <= MEASURED_S * 1000))
        .filter(pl.col("sent_ms") < QUIET * pl.col("length_ms"))
        .group_by(keys)
        .agg(quiet_s=pl.col("length_ms").sum() / 1000)
    )
    walks = transfers.select(*keys).unique()
    if "sack_walk_pkts" in transfers.columns:
        walks = transfers.group_by(keys).agg(
            sack_walk_pkts=pl.col("sack_walk_pkts").sum(), timeouts=pl.col("timeouts").sum()
        )
    return (
        walks.join(lost, on=keys)
        .join(quiet, on=keys, how="left")
        .with_columns(pl.col("quiet_s").fill_null(0.0))
        .sort(keys)
    )


def lost_share(data: Data) -> Measured:
    """Losses of the overshoot over the path's product, which the buffer's size is."""
    runs = data["runs"]
    return of((runs["lost_pkts"] / runs["buffer_pkts"]).to_list(), "bandwidth-delay products")


def walk_order(data: Data) -> Measured:
    """The power of the bandwidth-delay product with which the walks grow."""
    runs = data["runs"]
    by_repeat = runs.partition_by("repeat")
    slopes = [
        np.polyfit(np.log(part["buffer_pkts"]), np.log(part["sack_walk_pkts"]), 1)[0]
        for part in by_repeat
    ]
    return of(slopes, note=f"least-squares slope in logarithms, mean of {len(slopes)} repeats")


def quiet(data: Data) -> Measured:
    """On the largest path, within 40 s after slow start."""
    return of(data["runs"].filter(pl.col("buffer_pkts") == PATHS[-1][2])["quiet_s"], "s")


def load(data: Data) -> Measured:
    """On the path that Table 1 begins with."""
    runs = data["runs"].filter(rate_mbit=PATHS[0][0], delay_ms=PATHS[0][1])
    router = runs["router_percent"].max()
    note = (
        f"the end that is busier, in its busiest second; the router's threads up to {router:.0f} %"
    )
    return of(runs["ends_percent"], "% of a CPU", note)


def figure(data: Data, figure: Figure) -> None:
    """Losses by the size of the path, and the walks; on the kernel the CPU."""
    left, right = figure.subplots(1, 2)
    runs = data["runs"]
    work = ("sack_walk_pkts", "packets walked for SACK blocks")
    if "ends_percent" in runs.columns:
        work = ("ends_percent", "CPU of the busier end in its busiest second (%)")
    for axes, value, label in (
        (left, "lost_pkts", "packets lost by the first overshoot"),
        (right, *work),
    ):
        points = testbed.means(runs, ["rate_mbit", "delay_ms", "buffer_pkts"], value)
        axes.set(ylabel=label)
        if value == "ends_percent":
            paths = zip(points["rate_mbit"], points["delay_ms"], strict=True)
            names = [f"{rate} Mbit/s,\n{delay} ms" for rate, delay in paths]
            axes.bar(names, points["mean"], 0.5, yerr=points["half"], capsize=2)
            continue
        line(axes, 0, points["buffer_pkts"], points["mean"], "SS", error=points["half"])
        axes.set(xlabel="bandwidth-delay product (packets)", xscale="log", yscale="log")
    products = np.array([path[2] for path in PATHS if path[2] in runs["buffer_pkts"]])
    left.plot(products, products, "--", color="#5d6670", linewidth=0.8, label="one product")
    left.legend()


EXPERIMENT = Experiment(
    name="hy1",
    paper=HYSTART,
    section="2.1, Tables 1 and 2, Figure 3",
    title="the cost of an overshoot",
    did="Two TCP-SACK flows with standard slow start over six paths of 100 to 400 Mbit/s and 60 or 120 ms one way; the "
    "CPU load of sender and receiver, and the time without throughput in the 40 s after slow start.",
    assumptions=(
        testbed.COMMON[0],
        testbed.COMMON[1],
        testbed.COMMON[2],
        "In place of CPU time the work is counted that the paper names as its cause: how many packets a linked list of what is out "
        "is walked over for the SACK blocks that arrive (2.1.1).",
        "The second flow starts 30 s after the first; the paper says at different times.",
        testbed.SIZED,
    ),
    grounds=("sim", "kernel"),
    on_kernel=(
        "Today's kernel as it is, with Reno: it grows by the packet, begins with 10 segments, has RACK, PRR, a tree in the list's place, and windows "
        "up to 64 MB. Two runs, of 45 s.",
        "The first three paths: both hosts and the router share one machine with other work, and 400 Mbit/s are not carried then.",
        "CPU of the processes at both ends; the kernel's work on arriving packets happens in the router's threads, beside the emulation's own.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "The overshoot loses half of twice the bandwidth-delay product",
            "half of two products: 1 product (Table 1, caption)",
            lost_share,
            number(1.0),
            why_kernel={
                Verdict.NOT: "Two products: today's Linux grows by the packet, so that the window doubles in the round trip in which the buffer overflows, "
                "from two products to four. By the ACK, as in 2007, it came to three"
            },
        ),
        Claim(
            "The walks for SACK blocks grow with the square of the window",
            "O(W^2) in one round trip (2.1.1)",
            walk_order,
            number(2.0),
            grounds=("sim",),
        ),
        Claim(
            "After slow start at 400 Mbit/s and 120 ms there is no throughput for long",
            "14.82 s of 40 s, deviation 13.02 s (Table 2)",
            quiet,
            number(14.82),
            {
                Verdict.NOT: "The paper's own explanation is a CPU at 100 % for 1.64 s, and timeouts that follow from it; hosts of the "
                "simulator are infinitely fast, and what is left is the protocol's share"
            },
            grounds=("sim",),
        ),
        Claim(
            "At 100 Mbit/s and 60 ms an end host's CPU is up to a third in use",
            "36 % (Table 1, first row)",
            load,
            number(36),
            why_kernel={
                Verdict.NOT: "Another processor, and another kernel: what is out is kept in a tree, so that a SACK block is found without a walk. No run "
                "has a second without throughput",
                Verdict.PARTLY: "Another processor, and another kernel: what is out is kept in a tree, so that a SACK block is found without a walk",
            },
            grounds=("kernel",),
        ),
    ),
)
