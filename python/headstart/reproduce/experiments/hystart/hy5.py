"""hy5: CUBIC with standard slow start and with HyStart (Figures 11 and 12)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import (
    Claim,
    Context,
    Data,
    Experiment,
    Measured,
    Verdict,
    number,
    of,
    share,
)
from headstart.reproduce.experiments.hystart import testbed
from headstart.reproduce.papers import HYSTART
from headstart.reproduce.style import COLOURS
from headstart.scenario_file import ScenarioFile

RATE_MBIT = 400
BDP_PKTS = 8388
"""400 Mbit/s, 120 ms one way; Table 1's buffer of 100 %."""

SAMPLE_MS = 50
START_S = 6.0
"""A slow start is over so long after its flow began, on this path."""

QUIET = 0.05
"""No throughput: the link sends less than this share of the time, with the background on it."""

_ARMS = {
    "per-ack": ("cubic", {"growth": "per-ack"}),
    "per-packet": ("su_standard", {"growth": "per-packet"}),
    "hystart": ("su_hystart", {}),
}


def run(context: Context) -> Data:
    """Two CUBIC flows in the background of Figure 1; and the starts alone, for what ended them."""
    later_s = context.pick(120.0, 25.0)
    until_s = context.pick(200.0, 36.0)
    path = {"rate": f"{RATE_MBIT}mbit", "rtt": "240ms", "queue": f"drop-tail:{BDP_PKTS}"}

    def arm(name: str, end_s: float) -> ScenarioFile:
        startup, transport = _ARMS[name]
        return testbed.two_flows(
            "hy5",
            path,
            more=testbed.background(50),
            later_s=later_s,
            until_s=end_s,
            startups=(startup,),
            reno=False,
            transport=transport,
            sample_every=f"{SAMPLE_MS}ms",
        )

    scenarios = [arm(name, until_s) for name in _ARMS]
    scenarios.append(arm("hystart", testbed.FIRST_S + START_S))
    scenarios.append(arm("hystart", testbed.FIRST_S + later_s + START_S))
    drawn = context.sweep(scenarios[: len(_ARMS)], repeat=1, flows=True)
    result = context.sweep(scenarios, repeat=context.pick(3, 1), queues=True)
    names = [*_ARMS, "start 1", "start 2"]
    labels = pl.DataFrame({"arm": names}).with_columns(
        variant=pl.int_range(len(names), dtype=pl.UInt32)
    )

    def labelled(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.join(labels, on="variant")

    queues = labelled(result.queues.filter(pl.col("link") == "forward"))
    return {
        "transfers": labelled(result.transfers.filter(testbed.is_flow())),
        "flows": labelled(drawn.flows.filter(testbed.is_flow())),
        "queues": queues,
    }


def _of(data: Data, arm: str, flow: int) -> pl.DataFrame:
    rows = data["transfers"].filter(pl.col("arm") == arm)
    return rows.filter(pl.col("group") == f"flow {flow}").sort("repeat")


def top_pkts(data: Data) -> Measured:
    """The window at which the overshoot of the first flow ends."""
    measured = of(
        _of(data, "per-ack", 1)["slow_start_end_cwnd_pkts"].to_list(), "packets", digits=4
    )
    other = _of(data, "per-packet", 1)["slow_start_end_cwnd_pkts"].mean()
    note = f"{measured.note}; growing by the packet {other:,.0f}"
    return Measured(measured.value, measured.low, measured.high, "packets", note, 4)


def quiet_s(data: Data) -> Measured:
    """How long the link stands still after the first overshoot, until the second flow starts."""
    keys = ["repeat"]
    rows = data["queues"].filter(pl.col("arm") == "per-ack").sort("repeat", "t_ms")
    ended = _of(data, "per-ack", 1).select("repeat", "slow_start_end_ms")
    second_ms = _of(data, "per-ack", 2)["start_ms"].min()
    steps = rows.join(ended, on="repeat").with_columns(
        length_ms=pl.col("t_ms").diff().over(keys), sent_ms=pl.col("busy_ms").diff().over(keys)
    )
    steps = steps.filter(
        (pl.col("t_ms") > pl.col("slow_start_end_ms")) & (pl.col("t_ms") < second_ms)
    )
    quiet = steps.group_by("repeat").agg(
        s=pl.col("length_ms").filter(pl.col("sent_ms") < QUIET * pl.col("length_ms")).sum() / 1000
    )
    timeouts = _of(data, "per-ack", 1)["timeouts"].to_list()
    return of(quiet["s"].to_list(), "s", f"timeouts of the flow in all: {timeouts}")


def lossless(data: Data) -> Measured:
    """Neither flow's start loses a packet."""
    starts = pl.concat([_of(data, "start 1", 1), _of(data, "start 2", 2)])
    lost = starts["dropped_pkts"].to_list()
    counted = testbed.cases([each == 0 for each in lost])
    return Measured(counted.value, counted.low, counted.high, "", f"{counted.note}; lost {lost}")


def first_exit(data: Data) -> Measured:
    """The window with which the first flow leaves, in products."""
    return of((_of(data, "start 1", 1)["exit_cwnd_pkts"] / BDP_PKTS).to_list(), "products")


def second_reason(data: Data) -> Measured:
    """What ends the second flow's start."""
    why = _of(data, "start 2", 2)["exit_why"].to_list()
    counted = testbed.cases([each == "delay-increase" for each in why])
    return Measured(
        counted.value, counted.low, counted.high, "", f"{counted.note}; {', '.join(map(str, why))}"
    )


def figure(data: Data, figure: Figure) -> None:
    """Figures 11 and 12: cwnd and ssthresh above, throughput below."""
    panels = figure.subplots(2, 3, sharex=True, sharey="row")
    titles = ("CUBIC with SS", "CUBIC with SS, by the packet", "CUBIC with HyStart")
    for column, (arm, title) in enumerate(zip(_ARMS, titles, strict=True)):
        top, bottom = panels[:, column]
        for number_ in (1, 2):
            rows = data["flows"].filter(
                (pl.col("arm") == arm) & (pl.col("group") == f"flow {number_}")
            )
            t_s = rows["t_ms"] / 1000
            top.plot(
                t_s, rows["cwnd_pkts"], color=COLOURS[number_ - 1], label=f"cwnd, flow {number_}"
            )
            top.plot(t_s, rows["ssthresh_pkts"], ":", color=COLOURS[number_ - 1])
        queue = data["queues"].filter((pl.col("arm") == arm) & (pl.col("repeat") == 0)).sort("t_ms")
        each_s = (
            queue.with_columns(t_s=(pl.col("t_ms") / 1000).ceil())
            .group_by("t_s", maintain_order=True)
            .agg(pl.col("busy_ms").max())
            .with_columns(mbit=pl.col("busy_ms").diff() / 1000 * RATE_MBIT)
        )
        bottom.plot(each_s["t_s"], each_s["mbit"], color=COLOURS[2])
        top.set_title(title)
        bottom.set_xlabel("time (s)")
    panels[0, 0].set_ylabel("packets (dotted: ssthresh)")
    panels[1, 0].set_ylabel("throughput of the link (Mbit/s)")
    panels[0, 0].legend()


EXPERIMENT = Experiment(
    name="hy5",
    paper=HYSTART,
    section="5.4, Figures 11 and 12",
    title="CUBIC with standard slow start and with HyStart",
    did="Two CUBIC flows, 400 Mbit/s, 120 ms one way, a buffer of one product, background traffic; the second joins at the 130th "
    "second. cwnd, ssthresh and the throughput of the link.",
    assumptions=(
        *testbed.COMMON,
        testbed.BACKGROUND,
        "50 Mbit/s of background; the paper says the same set-up as in Figure 1. The flows are 120 s apart, in the quick run 25 s.",
        "Standard slow start is shown growing by the packet, too, as in today's Linux; no claim goes by it.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "With standard slow start the first flow overshoots to twice the product and more",
            "up to 20,000 packets (5.4)",
            top_pkts,
            number(20_000),
        ),
        Claim(
            "The first flow stands still after its overshoot",
            "initial timeout of 20 s (5.4, Figure 11)",
            quiet_s,
            number(20),
            {
                Verdict.NOT: "As in hy1: the paper explains it by overloaded CPUs, and hosts of the simulator have no such limit"
            },
        ),
        Claim(
            "With HyStart neither flow loses packets in its start",
            "two CUBIC flows do not incur packet losses (5.4, Figure 12)",
            lossless,
            share("no loss"),
        ),
        Claim(
            "With HyStart the first flow leaves slightly before the link is full",
            "slightly before full link utilization: one product (5.4)",
            first_exit,
            number(1.0),
            {
                Verdict.PARTLY: "The train is half of a round trip long from half a product on: in which round that is, and how far the window has grown in it by "
                "then, hangs on where the growth began. Between a half and one product is what 4.1 asks for"
            },
        ),
        Claim(
            "With HyStart the second flow leaves by the delay",
            "detects the congestion of the path using the delay increase (5.4)",
            second_reason,
            share("it is the delay"),
        ),
    ),
    size_in=(11.0, 5.0),
)
