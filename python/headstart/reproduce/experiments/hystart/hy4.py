"""hy4: HyStart under three ACK schemes, with background traffic (Figure 10)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, share
from headstart.reproduce.experiments.hystart import testbed
from headstart.reproduce.papers import HYSTART
from headstart.reproduce.style import COLOURS

RATE_MBIT = 400
RTT_MS = 160
"""5.3: 400 Mbit/s, 80 ms one way."""

BDP_PKTS = RATE_MBIT * RTT_MS * 1000 / 8 / 1500
BACKGROUND_MBIT = 50

SCHEMES = {
    "quick ACK": "every-packet",
    "quick, then delayed": "linux",
    "delayed ACK": "delayed",
}


def run(context: Context) -> Data:
    """Both flows begin within the first ten seconds."""
    scenarios = [
        testbed.scenario(
            "hy4",
            {"rate": f"{RATE_MBIT}mbit", "rtt": f"{RTT_MS}ms", "queue": "drop-tail:1bdp"},
            [
                testbed.flow("flow 1", testbed.FIRST_S),
                testbed.flow("flow 2", testbed.FIRST_S + 5.0),
                *testbed.background(BACKGROUND_MBIT),
            ],
            testbed.FIRST_S + context.pick(20.0, 10.0),
            startups=("su_hystart",),
            transport={"acks": acks},
            sample_every="20ms",
        )
        for acks in SCHEMES.values()
    ]
    drawn = context.sweep(scenarios, repeat=1, flows=True)
    result = context.sweep(scenarios, repeat=context.pick(10, 5))
    names = pl.DataFrame({"acks": list(SCHEMES)}).with_columns(
        variant=pl.int_range(len(SCHEMES), dtype=pl.UInt32)
    )
    flows = drawn.flows.filter(testbed.is_flow())
    transfers = result.transfers.filter(testbed.is_flow())
    return {
        "flows": flows.join(names, on="variant"),
        "transfers": transfers.join(names, on="variant"),
    }


def leaves(acks: str | None, low: float, high: float) -> testbed.Measure:
    """The share of the runs whose first flow leaves between these parts of the product."""

    def measure(data: Data) -> Measured:
        rows = data["transfers"].filter(pl.col("group") == "flow 1")
        if acks is not None:
            rows = rows.filter(pl.col("acks") == acks)
        parts = (rows["slow_start_end_cwnd_pkts"] / BDP_PKTS).to_list()
        counted = testbed.cases([low <= part <= high for part in parts])
        words = f"{min(parts):.2f} to {max(parts):.2f} products"
        return Measured(counted.value, counted.low, counted.high, "", f"{counted.note}; {words}")

    return measure


def figure(data: Data, figure: Figure) -> None:
    """Figure 10: cwnd above, round-trip time below, a column a scheme."""
    panels = figure.subplots(2, 3, sharex=True, sharey="row")
    for column, acks in enumerate(SCHEMES):
        for number_ in (1, 2):
            rows = data["flows"].filter(
                (pl.col("acks") == acks) & (pl.col("group") == f"flow {number_}")
            )
            for axes, value in zip(panels[:, column], ("cwnd_pkts", "srtt_ms"), strict=True):
                axes.plot(
                    rows["t_ms"] / 1000,
                    rows[value],
                    color=COLOURS[number_ - 1],
                    label=f"flow {number_}",
                )
        panels[0, column].axhline(BDP_PKTS, color="#5d6670", linewidth=0.6)
        panels[0, column].set_title(acks)
        panels[1, column].set_xlabel("time (s)")
    panels[0, 0].set_ylabel("cwnd (packets)")
    panels[1, 0].set_ylabel("smoothed round trip (ms)")
    panels[0, 0].legend()


_PARTED = {
    Verdict.NOT: "It leaves at one and a half products, within the safe bounds, by the delay. The receiver's timer parts the flight: the odd packet of an early "
    "round is acknowledged 40 ms late, and from then on there are two trains, neither half of a round trip long before the queue tells. In a trial with a "
    "timer of 1 ms it left at 0.92 products, by the train, and with an initial window of 4 at 0.75. The paper prints neither"
}

EXPERIMENT = Experiment(
    name="hy4",
    paper=HYSTART,
    section="5.3, Figure 10",
    title="ACK schemes",
    did="Two HyStart flows, 400 Mbit/s, 80 ms one way, a buffer of one product, 50 Mbit/s of background each way; receivers that "
    "acknowledge each packet, the first 16 and then every second one, and every second one.",
    assumptions=(
        *testbed.COMMON,
        testbed.BACKGROUND,
        "The flows start 5 s apart; the paper says within the first 10 s. The delayed-ACK timer is 40 ms.",
        "The round in which the window passes the product: it leaves between a half and two products, as a round doubles. One round "
        "before: between a quarter and one.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "With an ACK a packet it leaves in the round in which the window passes the product",
            "the round in which cwnd crosses over the product (5.3)",
            leaves("quick ACK", 0.5, 2.0),
            share("it leaves in that round"),
        ),
        Claim(
            "With Linux' ACKs it leaves one round before the window reaches the product",
            "only one round before (5.3)",
            leaves("quick, then delayed", 0.25, 1.0),
            share("it leaves in that round"),
        ),
        Claim(
            "With delayed ACKs it leaves one round before the window reaches the product",
            "only one round before (5.3)",
            leaves("delayed ACK", 0.25, 1.0),
            share("it leaves in that round"),
            _PARTED,
        ),
        Claim(
            "Under all schemes it leaves within the safe bounds",
            "between half of the product and product and buffer (4.1)",
            leaves(None, 0.5, 2.0),
            share("it leaves within the bounds"),
        ),
    ),
    size_in=(10.0, 5.0),
)
