"""sw1: how long slow start takes, and what it sends (Table 1)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, exact
from headstart.reproduce.experiments.swift_start.model import RATES_BIT_PER_S, slow_start
from headstart.reproduce.papers import SWIFT_START
from headstart.reproduce.style import line

PRINTED = {
    "1.5Mb/s": (5, 53_136, 850e3, 10e3),
    "45Mb/s": (14, 2_414_736, 14e6, 1e6),
    "155Mb/s": (17, 8_179_008, 38e6, 1e6),
    "1Gb/s": (21, 41_465_760, 158e6, 1e6),
    "10Gb/s": (27, 472_490_232, 1_400e6, 100e6),
}
"""Table 1: round trips, bytes, data rate in bit/s, and the unit of its last digit."""


def table(starts: dict[str, object]) -> pl.DataFrame:
    """A row a rate."""
    rows = [
        {
            "rate": rate,
            "rate_bit_per_s": RATES_BIT_PER_S[rate],
            "round_trips": start.round_trips,
            "sent_bytes": start.sent_bytes,
            "data_rate_bit_per_s": start.rate_bit_per_s,
        }
        for rate, start in starts.items()
    ]
    return pl.DataFrame(rows)


def run(context: Context) -> Data:
    """Computes the table."""
    return {"table": table({rate: slow_start(bits) for rate, bits in RATES_BIT_PER_S.items()})}


def figure(data: Data, figure: Figure) -> None:
    """The table as two curves."""
    computed = data["table"]
    left, right = figure.subplots(1, 2)
    line(left, 0, computed["rate_bit_per_s"], computed["round_trips"], "slow start")
    left.set(xscale="log", xlabel="link (bit/s)", ylabel="round trips", ylim=(0, None))
    share = 100 * computed["data_rate_bit_per_s"] / computed["rate_bit_per_s"]
    line(right, 0, computed["rate_bit_per_s"], share, "slow start")
    right.set(xscale="log", xlabel="link (bit/s)", ylabel="mean rate, of the link's (%)")


def cell(rate: str, column: str, unit: str) -> object:
    """Reads one cell."""

    def measure(data: Data) -> Measured:
        value = float(data["table"].row(by_predicate=pl.col("rate") == rate, named=True)[column])
        return Measured(value, value, value, unit, digits=3)

    return measure


def claims_of(printed: dict[str, tuple[int, int, float, float]], where: str) -> tuple[Claim, ...]:
    """Three claims a rate."""
    claims = []
    for rate, (round_trips, sent, data_rate, unit) in printed.items():
        claims += [
            Claim(
                f"{rate}: round trips",
                f"{round_trips} ({where})",
                cell(rate, "round_trips", "round trips"),
                exact(round_trips, 0),
            ),
            Claim(
                f"{rate}: bytes sent",
                f"{sent:,} bytes ({where})",
                cell(rate, "sent_bytes", "bytes"),
                exact(sent, 0),
            ),
            Claim(
                f"{rate}: data rate",
                f"{data_rate / 1e6:g} Mb/s ({where})",
                cell(rate, "data_rate_bit_per_s", "bit/s"),
                exact(data_rate, unit / 2),
            ),
        ]
    return tuple(claims)


EXPERIMENT = Experiment(
    name="sw1",
    paper=SWIFT_START,
    section="section 1, Table 1",
    title="slow start's round trips and bytes",
    did="Computed round trips, bytes and data rate until slow start's window is the path's capacity, for 100 ms and "
    "1.5 Mb/s to 10 Gb/s (footnote 1).",
    assumptions=(
        "Windows are whole segments, halves rounded up; the capacity is counted in payload (984 bytes). The report "
        "states neither: with them its bytes come out to the byte.",
        "The data rates are printed with two to four digits; the unit of the last one that is not a trailing zero is the tolerance.",
    ),
    run=run,
    figure=figure,
    claims=claims_of(PRINTED, "Table 1"),
)
