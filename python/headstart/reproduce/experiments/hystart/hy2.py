"""hy2: recovery from a slow start's overshoot, by recovery and receiver (Figures 4 and 5)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, number, share
from headstart.reproduce.experiments.hystart import testbed
from headstart.reproduce.papers import HYSTART
from headstart.reproduce.style import COLOURS

RATE_MBIT = 100
RTT_MS = 240
BUFFER_PKTS = 2050
"""2.2: 100 Mbit/s, 120 ms one way, 100 % of the product."""

UNTIL_S = 60.0
AFTER_S = 30.0
"""Recovery is looked at for so long after the first loss."""

POOR = 0.5
"""A stack does poorly that delivers less than half of what the link carries in that time."""

_STACKS = {
    "NewReno, Linux": {"recovery": "newreno-steady", "acks": "linux"},
    "NewReno, FreeBSD": {"recovery": "newreno-steady", "acks": "delayed", "ack_delay": "100ms"},
    "NewReno, Windows XP": {"recovery": "newreno-steady", "acks": "delayed", "ack_delay": "200ms"},
    "SACK, Linux": {"acks": "linux"},
    "SACK, FreeBSD": {"acks": "delayed", "ack_delay": "100ms"},
    "SACK, Windows XP": testbed.RECEIVERS["Windows XP"],
    "SACK, Windows XP, 10 runs": testbed.RECEIVERS["Windows XP"] | {"sack": "up-to:10"},
    "SACK, Windows XP, 1000 runs": testbed.RECEIVERS["Windows XP"] | {"sack": "up-to:1000"},
}
PAPERS = tuple(_STACKS)[:6]
"""Without those that show what XP's limit, which the paper does not print, does."""


def run(context: Context) -> Data:
    """One flow a stack."""
    window_bytes = 3 * BUFFER_PKTS * 1448
    scenarios = [
        testbed.scenario(
            "hy2",
            {"rate": f"{RATE_MBIT}mbit", "rtt": f"{RTT_MS}ms", "queue": f"drop-tail:{BUFFER_PKTS}"},
            [testbed.flow("flow 1", 0.0)],
            UNTIL_S,
            startups=("reno",),
            transport={"receive_window": f"{window_bytes}"} | stack,
        )
        for stack in _STACKS.values()
    ]
    # The acknowledgements say how far the receiver is.
    short = [one | {"simulation": {"until": f"{UNTIL_S}s"}} for one in scenarios]
    result = context.sweep(short, repeat=1, queues=True, packets=True)
    names = pl.DataFrame({"stack": list(_STACKS)}).with_columns(
        variant=pl.int_range(len(_STACKS), dtype=pl.UInt32)
    )
    acks = (
        result.packets.filter((pl.col("kind") == "ack") & (pl.col("fate") == "came"))
        .with_columns(t_s=(pl.col("t_ms") / 250).ceil() / 4)
        .group_by("variant", "t_s")
        .agg(delivered_bytes=pl.col("seq").max())
        .sort("variant", "t_s")
    )
    first_loss = (
        result.packets.filter(pl.col("fate") == "dropped")
        .group_by("variant")
        .agg(first_loss_s=pl.col("t_ms").min() / 1000)
    )
    progress = acks.join(first_loss, on="variant").join(names, on="variant")
    after = progress.filter(
        pl.col("t_s").is_between(pl.col("first_loss_s"), pl.col("first_loss_s") + AFTER_S)
    )
    spans = after.group_by("stack", maintain_order=True).agg(
        recovery_bytes=pl.col("delivered_bytes").max() - pl.col("delivered_bytes").min()
    )
    transfers = result.transfers.join(names, on="variant").join(first_loss, on="variant")
    return {"progress": progress, "stacks": transfers.join(spans, on="stack").sort("variant")}


def _share_of_link() -> pl.Expr:
    return pl.col("recovery_bytes") * 8 / (RATE_MBIT * 1e6 * AFTER_S)


def repairs_a_round_trip(data: Data) -> Measured:
    """Retransmissions of the NewReno senders in each of the path's round trips after the loss."""
    rows = data["stacks"].filter(pl.col("stack").str.starts_with("NewReno"))
    rounds = (UNTIL_S - rows["first_loss_s"]) * 1000 / RTT_MS
    rates = (rows["retransmitted_pkts"] / rounds).to_list()
    return Measured(
        sum(rates) / len(rates),
        min(rates),
        max(rates),
        "packets",
        "the least and the most of the three",
    )


def does(poor: dict[str, bool]) -> testbed.Measure:
    """The share of the stacks of which it is true whether they do poorly."""

    def measure(data: Data) -> Measured:
        rows = (
            data["stacks"]
            .with_columns(share=_share_of_link())
            .filter(pl.col("stack").is_in(list(poor)))
        )
        shares = dict(zip(rows["stack"], rows["share"], strict=True))
        counted = testbed.cases(
            [(shares[name] < POOR) == is_poor for name, is_poor in poor.items()]
        )
        words = ", ".join(f"{name} {shares[name]:.0%}" for name in poor)
        return Measured(counted.value, counted.value, counted.value, "", f"{counted.note}; {words}")

    return measure


def with_a_timeout(data: Data) -> Measured:
    """Of the three stacks with SACK."""
    rows = data["stacks"].filter(pl.col("stack").is_in(PAPERS[3:]))
    return testbed.cases([timeouts > 0 for timeouts in rows["timeouts"]])


def figure(data: Data, figure: Figure) -> None:
    """What has been delivered, over time: NewReno left, SACK right."""
    left, right = figure.subplots(1, 2, sharey=True)
    for number_, name in enumerate(_STACKS):
        rows = data["progress"].filter(pl.col("stack") == name)
        axes = left if name.startswith("NewReno") else right
        style = "-" if name in PAPERS else ":"
        axes.plot(
            rows["t_s"],
            rows["delivered_bytes"] / 1e6,
            style,
            color=COLOURS[number_ % 3 if name in PAPERS else 4],
            label=name.split(", ", 1)[1],
        )
    left.set(xlabel="time (s)", ylabel="delivered in order (MB)", title="TCP-NewReno (Figure 4)")
    right.set(xlabel="time (s)", title="TCP-SACK (Figure 5)")
    left.legend()
    right.legend()


EXPERIMENT = Experiment(
    name="hy2",
    paper=HYSTART,
    section="2.2, Figures 4 and 5",
    title="recovery by receiver",
    did="100 Mbit/s, 120 ms one way, a buffer of 100 % of the product: NewReno and SACK on Linux, FreeBSD and Windows XP, "
    "after the overshoot of standard slow start.",
    assumptions=(
        testbed.COMMON[0],
        testbed.COMMON[1],
        testbed.COMMON[2],
        "One flow. NewReno is slow but steady on all three (2.2).",
        "Windows XP suppresses SACK past 100 runs of out-of-order data and discards what comes then (3.3); the paper does not "
        "print its limit. 10 and 1000 are drawn beside it.",
        "The three senders of a kind are one sender; the stacks differ by their receivers alone, as with a Linux sender (2.2).",
        "The receive window is three products: as far as slow start goes on this path without a limit. With the two of 5.1 nothing "
        "would be lost: path and buffer hold as much.",
        "Poor is less than half of the link's rate, delivered in order, in the 30 s after the first loss.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "NewReno repairs one packet a round trip",
            "each retransmission recovers only the left edge: 1 (2.2)",
            repairs_a_round_trip,
            number(1.0),
        ),
        Claim(
            "All NewReno stacks do poorly",
            "all stacks show very poor performance (2.2, Figure 4)",
            does(dict.fromkeys(PAPERS[:3], True)),
            share("it is as the paper says"),
        ),
        Claim(
            "With SACK Linux and FreeBSD recover soon, Windows XP does not",
            "FreeBSD and Linux relatively quickly, Windows XP very slowly (2.2, Figure 5)",
            does({"SACK, Linux": False, "SACK, FreeBSD": False, "SACK, Windows XP": True}),
            share("it is as the paper says"),
            {
                Verdict.PARTLY: "Windows XP stands still for seconds, until a timeout; from then on slow start repairs what is missing and the flow goes on "
                "at most of the rate. The paper's sender had no such timeout and crept on as NewReno does"
            },
        ),
        Claim(
            "All SACK stacks enter a timeout",
            "all stacks now enter a timeout quickly (2.2)",
            with_a_timeout,
            share("there is a timeout"),
            {
                Verdict.NOT: "An RFC 6675 sender with three SACK blocks in each ACK knows all its losses and needs no timer; the "
                "timeouts of 2007's stacks came from lost retransmissions and from their processing"
            },
        ),
    ),
    size_in=(9.0, 4.0),
)
