"""sw2: the same for swift start (Table 2)."""

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, number
from headstart.reproduce.experiments.swift_start import sw1
from headstart.reproduce.experiments.swift_start.model import (
    RATES_BIT_PER_S,
    swift_start,
)
from headstart.reproduce.papers import SWIFT_START
from headstart.reproduce.style import line

PRINTED = {
    2: {
        "1.5Mb/s": (4, 47_232, 945e3, 1e3),
        "45Mb/s": (4, 1_337_256, 27e6, 1e6),
        "155Mb/s": (4, 4_603_152, 92e6, 1e6),
        "1Gb/s": (4, 29_690_232, 594e6, 1e6),
        "10Gb/s": (4, 296_877_720, 5_938e6, 1e6),
    },
    8: {
        "1.5Mb/s": (5, 53_136, 850e3, 10e3),
        "45Mb/s": (7, 1_469_112, 17e6, 1e6),
        "155Mb/s": (7, 5_040_048, 58e6, 1e6),
        "1Gb/s": (7, 32_467_080, 371e6, 1e6),
        "10Gb/s": (7, 324_722_952, 3_711e6, 1e6),
    },
}
"""Table 2 by gamma: round trips, bytes, data rate in bit/s, and the unit of its last digit."""


def run(context: Context) -> Data:
    """Computes the table for both values of gamma, and Table 1 beside it."""
    frames = {"slow": sw1.run(context)["table"]}
    for gamma in PRINTED:
        starts = {rate: swift_start(bits, gamma) for rate, bits in RATES_BIT_PER_S.items()}
        frames[f"gamma{gamma}"] = sw1.table(starts)
    return frames


def figure(data: Data, figure: Figure) -> None:
    """Both tables as curves."""
    left, right = figure.subplots(1, 2)
    names = {"slow": "slow start", "gamma2": "swift start, γ = 2", "gamma8": "swift start, γ = 8"}
    for index, (name, label) in enumerate(names.items()):
        own = data[name]
        line(left, index, own["rate_bit_per_s"], own["round_trips"], label)
        share = 100 * own["data_rate_bit_per_s"] / own["rate_bit_per_s"]
        line(right, index, own["rate_bit_per_s"], share, label)
    left.set(xscale="log", xlabel="link (bit/s)", ylabel="round trips", ylim=(0, None))
    right.set(xscale="log", xlabel="link (bit/s)", ylabel="mean rate, of the link's (%)")
    left.legend()


def of_gamma(claim: Claim, gamma: int) -> Claim:
    """The claim of Table 1's form, on this half of Table 2."""
    return Claim(
        f"γ = {gamma}, {claim.text}",
        claim.paper,
        lambda data: claim.measure({"table": data[f"gamma{gamma}"]}),
        claim.rule,
    )


def of_slow_start(data: Data) -> Measured:
    """The bytes that swift start sends, of those of slow start."""
    parts = []
    for gamma in PRINTED:
        both = data[f"gamma{gamma}"].join(data["slow"], on="rate", suffix="_slow")
        both = both.filter(pl.col("rate") != "1.5Mb/s")
        parts += (100 * both["sent_bytes"] / both["sent_bytes_slow"]).to_list()
    mean = sum(parts) / len(parts)
    note = f"both γ, 45 Mb/s to 10 Gb/s: {min(parts):.0f} to {max(parts):.0f} %"
    return Measured(mean, mean, mean, "%", note)


EXPERIMENT = Experiment(
    name="sw2",
    paper=SWIFT_START,
    section="section 3.3, Table 2",
    title="swift start's round trips and bytes",
    did="As Table 1 for swift start with γ = 2 and γ = 8, given that packet pair gives the right estimate.",
    assumptions=(
        *sw1.EXPERIMENT.assumptions,
        "The estimate over γ is rounded down, and does not lower slow start's window (1.5 Mb/s, γ = 8: 6 and not 2).",
        "Footnote 6: with γ = 8 slow start ends a few packets into the eighth round trip; the seventh is counted.",
    ),
    run=run,
    figure=figure,
    claims=(
        *(
            of_gamma(claim, gamma)
            for gamma, printed in PRINTED.items()
            for claim in sw1.claims_of(printed, "Table 2")
        ),
        Claim(
            "Swift start sends typically about 60 % of slow start's bytes before it is at full rate",
            "typically about 60 % (section 3.3)",
            of_slow_start,
            number(60),
        ),
    ),
)
