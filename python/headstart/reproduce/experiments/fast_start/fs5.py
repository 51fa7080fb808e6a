"""fs5: what ten fast starts do to a bulk transfer (section 4.2, Figure 5)."""

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
    of,
    share,
)
from headstart.reproduce.experiments.fast_start.t1 import (
    ASSUMED,
    FIRST_S,
    KERNEL_FIRST_S,
    ON_KERNEL,
    bulk,
    share_of,
    t1,
    web,
)
from headstart.reproduce.papers import FAST_START
from headstart.reproduce.style import COLOURS

BURSTY = 10
"""Section 4.2: "a fast start attempt by 10 bursty connections"."""

BULK = 5
"""The last load that fills no buffer by itself (section 4.2)."""

APART_S = 2
BEGIN_S = FIRST_S + APART_S * BURSTY + 20
"""When the second bursts leave."""

KERNEL_APART_S = 1
KERNEL_BEGIN_S = KERNEL_FIRST_S + KERNEL_APART_S * BURSTY + 8
"""The same on the live kernel."""

AFTER_S = 15
"""As long as is looked at."""

VARIANTS = ("fs", "fs-pdrop")


def run(context: Context) -> Data:
    """Ten bursts one after the other over the empty line, then bulk transfers, then ten at once."""
    first_s, apart_s, begin_s = FIRST_S, APART_S, BEGIN_S
    bulk_s, repeat = BEGIN_S - 15, context.pick(20, 5)
    if context.on == "kernel":
        first_s, apart_s, begin_s = KERNEL_FIRST_S, KERNEL_APART_S, KERNEL_BEGIN_S
        bulk_s, repeat = KERNEL_BEGIN_S - 7, context.pick(3, 1)
    bursts = [
        web(
            f"{first_s + apart_s * number}s",
            f"{begin_s - first_s - apart_s * number}s",
            name=f"web{number}",
        )
        for number in range(BURSTY)
    ]
    traffic = [*bursts, *bulk(BULK, bulk_s, 8)]
    scenarios = [t1(variant, traffic, until_s=begin_s + AFTER_S) for variant in VARIANTS]
    result = context.measure(scenarios, repeat=repeat, packets=True, whole=True)
    packets = result.packets.filter(
        pl.col("group") == "bulk", pl.col("t_ms") >= (begin_s - 2) * 1000
    ).with_columns(
        variant_name=pl.col("variant").replace_strict(dict(enumerate(VARIANTS))),
        t_s=pl.col("t_ms") / 1000 - begin_s,
    )
    return {
        "trace": packets.filter(kind="data", fate="sent").select(
            "variant_name", "repeat", "conn", "t_s", "seq", "retransmission"
        ),
        "drops": packets.filter(kind="data", fate="dropped").select(
            "variant_name", "repeat", "conn", "t_s", "seq"
        ),
        "acks": packets.filter(kind="ack", fate="came").select(
            "variant_name", "repeat", "conn", "t_s", "seq"
        ),
    }


def stalls(data: Data) -> pl.DataFrame:
    """The longest time in which nothing new was acknowledged, of each bulk transfer of each run."""
    flow = ["variant_name", "repeat", "conn"]
    news = (
        data["acks"].sort("t_s").filter(pl.col("seq") > pl.col("seq").cum_max().shift(1).over(flow))
    )
    last = data["acks"].group_by(flow).agg(pl.lit(float(AFTER_S)).alias("t_s"))
    steps = pl.concat([news.select(*flow, "t_s"), last.select(*flow, "t_s")]).sort("t_s")
    steps = steps.with_columns(
        stall_s=pl.col("t_s").diff().over(flow), begin_s=pl.col("t_s").shift(1).over(flow)
    )
    return steps.filter(pl.col("t_s") > 0).group_by(flow).agg(pl.col("stall_s").max()).sort(flow)


def worst(data: Data, variant: str) -> pl.DataFrame:
    """The longest stall of each run, and whose it is."""
    own = stalls(data).filter(variant_name=variant).sort("stall_s", descending=True)
    return own.group_by("repeat", maintain_order=True).first().sort("repeat")


def figure(data: Data, figure: Figure) -> None:
    """Figure 5: the bulk transfer of the first run that fs hurts most, under both."""
    one = worst(data, "fs").row(0, named=True)
    for axes, variant in zip(figure.subplots(1, 2, sharey=True), VARIANTS, strict=True):
        own = (
            data["trace"]
            .filter(variant_name=variant, repeat=one["repeat"], conn=one["conn"])
            .sort("t_s")
        )
        first = own["seq"].min()
        axes.plot(own["t_s"], (own["seq"] - first) / 1024, ".", color=COLOURS[0], markersize=2.5)
        axes.axvline(0, color=COLOURS[4], linewidth=0.8, linestyle="--")
        axes.set(xlabel="time since the ten fast starts (s)", title=f"Figure 5: {variant}")
    figure.axes[0].set(ylabel="sequence number of a bulk transfer (KB)")


def stalled(data: Data) -> Measured:
    """The longest stall under fs, of the five bulk transfers of each run."""
    runs = worst(data, "fs")["stall_s"]
    all_s = stalls(data).filter(variant_name="fs")["stall_s"]
    note = f"the worst of {BULK} in each of {len(runs)} runs; median of all {all_s.median():.2f} s"
    return of(runs, "s", note)


def dropped(data: Data) -> pl.DataFrame:
    """Packets of bulk transfers that were dropped in the 2 s after, by run: `fs`, `fs-pdrop`."""
    soon = data["drops"].filter(pl.col("t_s").is_between(0, 2))
    counts = soon.group_by("variant_name", "repeat").agg(pkts=pl.len())
    runs = stalls(data).select("variant_name", "repeat").unique()
    runs = runs.join(counts, on=["variant_name", "repeat"], how="left").fill_null(0)
    return runs.pivot(on="variant_name", index="repeat", values="pkts").sort("repeat")


def smaller(data: Data) -> Measured:
    """In how many runs fs-pdrop costs the bulk transfers fewer packets than fs."""
    drops = dropped(data)
    note = f"runs; packets lost, mean: fs {drops['fs'].mean():.1f}, fs-pdrop {drops['fs-pdrop'].mean():.1f}"
    return share_of(drops["fs-pdrop"] < drops["fs"], note)


def only_queued(data: Data) -> Measured:
    """In how many runs fs-pdrop drops no packet of a bulk transfer."""
    longest_s = worst(data, "fs-pdrop")["stall_s"].max()
    note = f"runs without a drop in the 2 s after; longest stall {longest_s:.2f} s"
    return share_of(dropped(data)["fs-pdrop"] == 0, note)


EXPERIMENT = Experiment(
    name="fs5",
    paper=FAST_START,
    section="section 4.2, Figure 5",
    title="a bulk transfer after ten fast starts",
    did="The sequence numbers of an ongoing bulk transfer in the immediate aftermath of a fast start attempt by 10 bursty "
    "connections, with and without drop priority (50 ms, 50 packets).",
    assumptions=(
        *ASSUMED,
        "Five bulk transfers: the paper does not say how many beside the one it shows; five is its last load that "
        "fills no buffer by itself. The ten connections learn their windows one after the other, 2 s apart, on the "
        "empty line, and begin again at once.",
        "Shown is the bulk transfer with the longest stall of the first run; the paper does not say how it chose.",
    ),
    grounds=("sim", "kernel"),
    on_kernel=(
        *ON_KERNEL,
        "The ten connections learn 1 s apart; the bulk transfers begin 7 to 2 s before the ten bursts. Each burst is asked for by its client, "
        "so the ten leave within a round trip's jitter of each other. Three runs, one in a quick run.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "Without drop priority a bulk transfer stalls for seconds",
            "stalls for several seconds: 2 s or more (section 4.2, Figure 5)",
            stalled,
            at_least(2),
            dict.fromkeys(
                (Verdict.PARTLY, Verdict.NOT),
                "The bulk transfers stall for one expiry of a timer of 0.4 to 0.7 s, or two, and are slow for about four "
                "seconds (figure). To stand still for seconds a retransmission has to be lost more than once: with up to 8 bulk "
                "transfers the worst stalls have a mean of 1.2 s. The paper says neither how many there are nor which one it shows",
            ),
            {
                Verdict.NOT: "As in the simulator: the longest stall is one expiry of a timer, and the transfers are slow for some seconds after it"
            },
        ),
        Claim(
            "With drop priority the impact is much smaller",
            "a much smaller impact (section 4.2)",
            smaller,
            share("fewer packets of the bulk transfers are dropped"),
        ),
        Claim(
            "With drop priority the impact is queueing delay, not loss",
            "primarily in the form of increased queuing delay (section 4.2)",
            only_queued,
            share("no packet of a bulk transfer is dropped"),
            {
                Verdict.NOT: "The marked packets go first, as they should; but the ten connections' next packets, sent by the ACK "
                "clock a round trip later, are not marked (3.3.1), and in slow start they are two for each ACK: these drop what "
                "bulk packets are lost"
            },
            {
                Verdict.NOT: "As in the simulator: half as many are lost as without drop priority; what drops them are the ten connections' unmarked packets of the "
                "next round trip"
            },
        ),
    ),
)
