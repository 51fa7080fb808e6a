"""iw2: initial windows from 3 to 42 packets (Figure 2)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, above
from headstart.reproduce.experiments.initial_window import population
from headstart.reproduce.papers import IW10
from headstart.reproduce.style import line

WINDOWS = (3, 6, 10, 16, 26, 42)
TRANSFERS = 500_000


def run(context: Context) -> Data:
    """The mean and its standard error over clients, for each window."""
    rows, per_client = [], []
    for window in WINDOWS:
        table = population.responses(context, population.AVG, population.SEARCH, window, TRANSFERS)
        means = table.group_by("client").agg(pl.col("latency_ms").mean())
        per_client.append(means.with_columns(window_pkts=pl.lit(window)))
        rate = table["retransmitted_pkts"].sum() / table["sent_pkts"].sum()
        rows.append(
            {
                "window_pkts": window,
                "mean_ms": table["latency_ms"].mean(),
                "err_ms": means["latency_ms"].std() / means.height**0.5,
                "retransmitted": rate,
                "responses": table.height,
            }
        )
    return {"windows": pl.DataFrame(rows), "clients": pl.concat(per_client)}


def figure(data: Data, figure: Figure) -> None:
    """Figure 2, and the retransmissions beside it."""
    left, right = figure.subplots(1, 2)
    rows = data["windows"]
    line(left, 0, rows["window_pkts"], rows["mean_ms"], "mean", error=rows["err_ms"])
    left.set(xlabel="initial window (packets)", ylabel="latency (ms)", title="Web search, AvgDC")
    line(right, 1, rows["window_pkts"], rows["retransmitted"] * 100, "retransmitted")
    right.set(xlabel="initial window (packets)", ylabel="packets retransmitted (%)", ylim=0)


def gain(data: Data, low: int, high: int) -> Measured:
    """By how much window `high` is better than `low`, in % of the latter's latency.

    The interval is that of the difference over clients: both windows have the same ones.
    """
    by_window = dict(data["windows"].select("window_pkts", "mean_ms").rows())
    pairs = data["clients"].pivot(on="window_pkts", index="client", values="latency_ms")
    saved = pairs[str(low)] - pairs[str(high)]
    scale = 100 / by_window[low]
    value = (by_window[low] - by_window[high]) * scale
    half = 1.96 * saved.std() / saved.len() ** 0.5 * scale
    note = f"{by_window[low]:.1f} to {by_window[high]:.1f} ms"
    return Measured(value, value - half, value + half, "%", note)


ONE_FLIGHT = (
    "Nine of ten responses have no more than eleven packets, and the largest some thirty: windows beyond that are not filled, "
    "and what is sent at once is the response. Two windows that hold it are the same"
)

EXPERIMENT = Experiment(
    name="iw2",
    paper=IW10,
    section="section 1, Figure 2",
    title="initial windows from 3 to 42",
    did="The mean latency of Web search with initial windows from 3 to 42 packets, on six servers of one data centre.",
    assumptions=(
        *population.ASSUMPTIONS,
        "The windows are those of the figure's axis as far as the text names them (3, 10, 16, 42), and two between.",
        f"{TRANSFERS:,} responses a window in the full run; the same clients, sizes and seeds for each.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "10 packets are better than 3",
            "improves the average latency (section 1)",
            lambda data: gain(data, 3, 10),
            above(0),
        ),
        Claim(
            "16 packets are better than 10",
            "improves latency further (section 1)",
            lambda data: gain(data, 10, 16),
            above(0),
        ),
        Claim(
            "42 packets are worse than 16",
            "a degradation, likely by losses (section 1)",
            lambda data: gain(data, 42, 16),
            above(0),
            dict.fromkeys((Verdict.PARTLY, Verdict.NOT), ONE_FLIGHT),
        ),
    ),
)
