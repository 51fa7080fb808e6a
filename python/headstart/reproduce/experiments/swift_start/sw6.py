"""sw6: what the report could not test: long fast paths with little buffer (sections 5 and 6)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, Verdict, share
from headstart.reproduce.experiments.swift_start.path import FREEBSD, scenario, startups
from headstart.reproduce.papers import SWIFT_START
from headstart.reproduce.style import line

RATES = {"10mbit": 10e6, "45mbit": 45e6, "155mbit": 155e6}
RTTS_MS = (100, 500)
BUFFERS = ("0.05bdp", "0.1bdp", "0.25bdp", "1bdp")
GAMMAS = (2, 4, 8)

LITTLE = BUFFERS[:3]
"""Little buffering: less than the product of delay and bandwidth."""

SIZE_PRODUCTS = 10
"""A transfer of ten delay-bandwidth products: the start is a good part of it."""


def run(context: Context) -> Data:
    """Each way of starting over each path."""
    chosen = {
        name: {**params, "max_window_pkts": 1_000_000}
        | ({"max_estimate_pkts": 1_000_000} if "gamma" in params else {})
        if params
        else params
        for name, params in startups(GAMMAS, clock_us=0).items()
    }
    points = [
        (name, rate, rtt_ms, buffer)
        for rate in RATES
        for rtt_ms in RTTS_MS
        for buffer in BUFFERS
        for name in chosen
    ]
    scenarios = []
    for name, rate, rtt_ms, buffer in points:
        size_bytes = int(RATES[rate] * rtt_ms / 8e3 * SIZE_PRODUCTS)
        path = {"rate": rate, "rtt": f"{rtt_ms}ms", "queue": f"drop-tail:{buffer}"}
        transport = FREEBSD | {"receive_window": "64MiB", "recovery": "sack"}
        scenarios.append(
            scenario(
                name, chosen[name], path, size_bytes=size_bytes, transport=transport, until_s=3000
            )
        )
    result = context.sweep(scenarios, repeat=1)
    columns = ("name", "rate", "rtt_ms", "buffer")
    names = pl.DataFrame(points, schema=columns, orient="row").with_row_index("variant")
    times = result.transfers.filter("finished").join(names, on="variant")
    if len(times) != len(points):
        raise RuntimeError("a transfer was not over when its run ended; give the run more time")
    kept = times.select(*columns, "fct_ms", "dropped_pkts", "bytes", "exit_why")
    base = kept.filter(name="slow start").select(*columns[1:], slow_ms="fct_ms")
    return {
        "times": kept.join(base, on=columns[1:]).with_columns(
            ratio=pl.col("fct_ms") / pl.col("slow_ms")
        )
    }


def figure(data: Data, figure: Figure) -> None:
    """Time against slow start's over the buffer, for the three rates at 500 ms."""
    times = data["times"].filter(rtt_ms=RTTS_MS[-1])
    for axes, rate in zip(figure.subplots(1, len(RATES), sharey=True), RATES, strict=True):
        for number_, name in enumerate(startups(GAMMAS)):
            own = times.filter(name=name, rate=rate)
            line(axes, number_, own["buffer"], own["ratio"], name)
        axes.set(xlabel="buffer", title=f"{rate}, {RTTS_MS[-1]} ms")
    figure.axes[0].set(ylabel="time, of slow start's", ylim=(0, None))
    figure.axes[0].legend()


def faster(data: Data) -> Measured:
    """On how many paths with little buffer swift start takes less time."""
    own = data["times"].filter(
        pl.col("name").str.starts_with("swift"), pl.col("buffer").is_in(LITTLE)
    )
    part = float((own["ratio"] < 1).cast(pl.Float64).mean())
    note = (
        f"paths and values of γ; time of slow start's: median {own['ratio'].median():.2f}, "
        f"{own['ratio'].min():.2f} to {own['ratio'].max():.2f}"
    )
    return Measured(part, part, part, "of the cases", note)


def fewer_drops(data: Data) -> Measured:
    """On how many of them it loses fewer packets."""
    slow = (
        data["times"]
        .filter(name="slow start")
        .select("rate", "rtt_ms", "buffer", slow="dropped_pkts")
    )
    own = (
        data["times"]
        .filter(pl.col("name").str.starts_with("swift"), pl.col("buffer").is_in(LITTLE))
        .join(slow, on=["rate", "rtt_ms", "buffer"])
    )
    part = float((own["dropped_pkts"] <= own["slow"]).cast(pl.Float64).mean())
    note = f"packets lost, mean: slow start {own['slow'].mean():.0f}, swift start {own['dropped_pkts'].mean():.0f}"
    return Measured(part, part, part, "of the cases", note)


EXPERIMENT = Experiment(
    name="sw6",
    paper=SWIFT_START,
    section="sections 2.1, 5 and 6",
    title="long fast paths with little buffer",
    did='Not tested by the report: "it would be valuable to test swift start over the long delay-bandwidth paths for which it '
    'was designed. Does it achieve the higher transfer rates that simulation predicts?"',
    assumptions=(
        "10, 45 and 155 Mbit/s; 100 and 500 ms; buffers of 5, 10, 25 and 100 % of the delay-bandwidth product; transfers of ten "
        "such products; a receiver's window without bound, and SACK, so that repair does not hide the start.",
        "Pacing by an exact clock: with that of section 5, two segments a millisecond, no path would see more than 24 Mbit/s.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "Swift start achieves higher transfer rates on the paths for which it was designed",
            "asked, not tested (section 6)",
            faster,
            share("swift start is faster than slow start"),
            {
                Verdict.PARTLY: "It is slower, by 2 to 26 %, with γ of 2 and more on the shortest paths (100 ms, 10 and 45 Mbit/s), mostly with a buffer of a "
                "quarter of the product: there slow start's loss comes near the capacity, and swift start loses more and stays longer in repair"
            },
        ),
        Claim(
            "Router queues are not overloaded: it loses no more packets",
            "router queues are not overloaded during the initial phase (section 5)",
            fewer_drops,
            share("no more packets are lost"),
            {
                Verdict.NOT: "Slow start is ended by a loss, here as there. By its bursts it overflows a short buffer at a small window, and "
                "loses few packets; swift start's window is much larger by then, and so is the loss. The transfer is shorter "
                "all the same on most paths: its window is nearer to the capacity afterwards"
            },
        ),
    ),
)
