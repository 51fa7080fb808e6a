"""hy6: three slow starts against the receivers of three systems (Figure 13)."""

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
    number,
    of,
)
from headstart.reproduce.experiments.hystart import testbed
from headstart.reproduce.papers import HYSTART

RATE_MBIT = 400
SECONDS = 60.0
STARTUPS = ("su_hystart", "su_standard", "su_limited")


def run(context: Context) -> Data:
    """Two CUBIC flows, a receiver after the other."""
    scenarios = [
        testbed.two_flows(
            "hy6",
            {"rate": f"{RATE_MBIT}mbit", "rtt": "100ms", "queue": "drop-tail:1bdp"},
            more=testbed.background(50),
            startups=STARTUPS,
            reno=False,
            transport=receiver,
        )
        for receiver in testbed.RECEIVERS.values()
    ]
    result = context.sweep(scenarios, repeat=context.pick(5, 1))
    names = pl.DataFrame({"receiver": list(testbed.RECEIVERS)}).with_columns(
        variant=pl.int_range(len(testbed.RECEIVERS), dtype=pl.UInt32)
    )
    runs = testbed.utilisation(result.transfers, pl.lit(float(RATE_MBIT)), SECONDS)
    return {"runs": runs.join(names, on="variant")}


def ratio(receiver: str, over: str, under: str = "su_standard") -> testbed.Measure:
    """Utilisation with one slow start relative to another's."""

    def measure(data: Data) -> Measured:
        rows = data["runs"].filter(pl.col("receiver") == receiver)
        shares = dict(rows.group_by("startup").agg(pl.col("utilisation").mean()).iter_rows())
        words = f"{shares[over]:.0%} against {shares[under]:.0%} of the link"
        return of(testbed.ratio_of_runs(rows, "utilisation", over, under), "times", words)

    return measure


def more(receiver: str) -> testbed.Measure:
    """How many times as much again HyStart carries as standard slow start: none where they are equal."""
    times = ratio(receiver, "su_hystart")

    def measure(data: Data) -> Measured:
        found = times(data)
        return Measured(found.value - 1, found.low - 1, found.high - 1, "times more", found.note)

    return measure


def limited_to_hystart(data: Data) -> Measured:
    """Over all receivers."""
    return of(
        testbed.ratio_of_runs(data["runs"], "utilisation", "su_limited", "su_hystart"), "times"
    )


def figure(data: Data, figure: Figure) -> None:
    """Figure 13: bars, a group a receiver."""
    axes = figure.subplots()
    testbed.bars(axes, data["runs"], "receiver", list(testbed.RECEIVERS), STARTUPS)
    axes.set(ylabel="utilisation (%)")


EXPERIMENT = Experiment(
    name="hy6",
    paper=HYSTART,
    section="5.5, Figure 13",
    title="receivers of other systems",
    did="Two CUBIC flows, 400 Mbit/s, 100 ms, 50 Mbit/s of background; HyStart, standard and limited slow start; Linux, Windows XP and "
    "FreeBSD receivers.",
    assumptions=(
        *testbed.COMMON,
        testbed.BACKGROUND,
        "Windows XP suppresses SACK past 100 runs of out-of-order data and discards what comes then (3.3); its limit is not printed. "
        "FreeBSD has SACK off, and the sender is NewReno, slow but steady (2.2).",
        "A buffer of one product; flows 30 s apart; goodput of both in 60 s over the link's rate (5.11).",
        testbed.SIZED,
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "With a FreeBSD receiver HyStart beats standard slow start by more than 2 to 3 times",
            "more than 2 to 3 times, so at least one time more (abstract, Figure 13)",
            more("FreeBSD"),
            at_least(1.0),
        ),
        Claim(
            "With a Windows XP receiver HyStart beats standard slow start by more than 2 to 3 times",
            "more than 2 to 3 times, so at least one time more (abstract, Figure 13)",
            more("Windows XP"),
            at_least(1.0),
            {
                Verdict.NOT: "One timeout ends what XP's silence begins, and slow start repairs the rest; the paper's sender crept on as NewReno "
                "does, which is the case of FreeBSD here",
            },
        ),
        Claim(
            "With a Linux receiver HyStart is no worse than standard slow start",
            "works much better than SS, regardless of the receivers (5.5)",
            ratio("Linux", "su_hystart"),
            at_least(1.0),
        ),
        Claim(
            "Limited slow start works as well as HyStart here",
            "relatively as well as HyStart in this setup (5.5)",
            limited_to_hystart,
            number(1.0),
        ),
    ),
)
