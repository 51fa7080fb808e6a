"""iw1: equations (1) and (2) against simulated transfers without losses."""

import math

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
    exact,
    number,
    share,
)
from headstart.reproduce.experiments.initial_window import population
from headstart.reproduce.papers import IW10
from headstart.reproduce.style import line
from headstart.scenario_file import ScenarioFile

GAMMA = {"delayed": 1.5, "every-packet": 2.0}
"""Equation (1): "1.5 or 2 depending on whether acknowledgments are delayed or not"."""

WINDOWS = (3, 10)
RTT_MS = 100
RATE_BITS_PER_S = 100e6
SIZES_PKTS = [4, 6, 8, 11, 15, 20, 30, 40, 60, 80, 100, 150, 200]


def equation_rounds(size_pkts: float, window_pkts: float, gamma: float) -> int:
    """The rounds of equation (1)."""
    return math.ceil(math.log(size_pkts * (gamma - 1) / window_pkts + 1, gamma))


def single(size_bytes: int, rate: str, rtt_ms: float, acks: str) -> ScenarioFile:
    """One transfer over an idle path without losses."""
    return {
        "name": "equation",
        "path": {"rate": rate, "rtt": f"{rtt_ms:g}ms", "queue": "drop-tail:1000"},
        "compare": {"startups": ["cubic"], "repeat": 1},
        "transport": {
            "model": "linux",
            "mss_bytes": population.MSS_BYTES,
            "acks": acks,
            "ack_delay": "200ms",
            "hystart": False,
        },
        "traffic": [{"name": "one", "kind": "users", "pages": 1, "bytes": f"{size_bytes}B"}],
    }


def run(context: Context) -> Data:
    """Sizes, windows and both kinds of receivers; quick and full are the same."""
    points = [(size, window, acks) for size in SIZES_PKTS for window in WINDOWS for acks in GAMMA]
    files = [
        single(size * population.MSS_BYTES, "100mbit", RTT_MS, acks)
        | {
            "transport": single(0, "100mbit", RTT_MS, acks)["transport"]
            | {"initial_window_pkts": window}
        }
        for size, window, acks in points
    ]
    result = context.sweep(files).transfers.sort("variant")
    latency_ms = result["fct_ms"] - result["connect_ms"]
    rows = []
    for (size, window, acks), measured_ms in zip(points, latency_ms, strict=True):
        rounds = equation_rounds(size, window, GAMMA[acks])
        send_ms = size * population.MSS_BYTES * 8 / RATE_BITS_PER_S * 1e3
        rows.append(
            {
                "size_pkts": size,
                "window_pkts": window,
                "acks": acks,
                "equation_ms": rounds * RTT_MS + send_ms,
                "measured_ms": measured_ms,
                "measured_rounds": math.ceil((measured_ms - send_ms) / RTT_MS - 0.05),
            }
        )
    slow = [
        single(8000, "128kbit", 500, "delayed")
        | {
            "transport": single(8000, "128kbit", 500, "delayed")["transport"]
            | {"initial_window_pkts": w}
        }
        for w in WINDOWS
    ]
    example = context.sweep(slow).transfers.sort("variant")
    example_ms = example["fct_ms"] - example["connect_ms"]
    return {
        "latency": pl.DataFrame(rows),
        "example": pl.DataFrame({"window_pkts": WINDOWS, "latency_ms": example_ms}),
    }


def figure(data: Data, figure: Figure) -> None:
    """Equation (1) and the simulator, by size."""
    for axes, acks in zip(figure.subplots(1, 2), GAMMA, strict=True):
        for index, window in enumerate(WINDOWS):
            rows = data["latency"].filter(window_pkts=window, acks=acks)
            line(axes, index, rows["size_pkts"], rows["measured_ms"], f"simulated, window {window}")
            axes.plot(
                rows["size_pkts"],
                rows["equation_ms"],
                "--",
                color="#5d6670",
                linewidth=1,
                label=f"equation (1), window {window}",
            )
        title = f"ACKs {acks}, γ = {GAMMA[acks]:g}"
        axes.set(xlabel="size (packets)", ylabel="latency (ms)", title=title, xscale="log", ylim=0)
        axes.legend()


def agreement(data: Data) -> Measured:
    """In how many cases simulator and equation (1) are within half a round trip."""
    distance = (data["latency"]["measured_ms"] - data["latency"]["equation_ms"]) / RTT_MS
    near = distance.abs() <= 0.5
    value = float(near.cast(pl.Float64).mean())
    note = f"{near.sum()} of {near.len()} cases; from {distance.min():+.1f} to {distance.max():+.1f} rounds"
    return Measured(value, value, value, "", note)


def never_more(data: Data) -> Measured:
    """In how many cases the simulator needs no more than equation (1), half a round for rounding."""
    distance = (data["latency"]["measured_ms"] - data["latency"]["equation_ms"]) / RTT_MS
    fine = distance <= 0.5
    value = float(fine.cast(pl.Float64).mean())
    return Measured(value, value, value, "", f"{fine.sum()} of {fine.len()} cases")


def rounds_saved_by_equation(_data: Data) -> Measured:
    """The saving of the larger window by the paper's formula."""
    rounds = float(math.ceil(math.log(WINDOWS[1] / WINDOWS[0], GAMMA["delayed"])))
    return Measured(rounds, rounds, rounds, "rounds")


def rounds_saved(data: Data) -> Measured:
    """The most rounds saved among all sizes, with delayed ACKs."""
    rounds = (
        data["latency"]
        .filter(acks="delayed")
        .pivot(on="window_pkts", index="size_pkts", values="measured_rounds")
    )
    saved = float((rounds["3"] - rounds["10"]).max())
    return Measured(saved, saved, saved, "rounds")


def example_saved(data: Data) -> Measured:
    """The round trips of 500 ms that the example of section 4.1 saves."""
    base, exp = data["example"].sort("window_pkts")["latency_ms"].to_list()
    saved = (base - exp) / 500
    return Measured(saved, saved, saved, "round trips", f"{base:.0f} to {exp:.0f} ms")


EXPERIMENT = Experiment(
    name="iw1",
    paper=IW10,
    section="sections 1 and 4.1",
    title="equations (1) and (2)",
    did="The latency of a transfer that completes in slow start without losses: rounds of slow start times RTT, plus size over "
    "rate.",
    assumptions=(
        "An idle path of 100 Mbit/s and 100 ms, no losses; HyStart off; receivers that acknowledge each packet (γ = 2) or every "
        "second one or after 200 ms (γ = 1.5).",
        "Latency runs from the first byte sent to the last byte's acknowledgement.",
    ),
    run=run,
    figure=figure,
    claims=(
        Claim(
            "Equation (1) gives the latency, to half a round trip",
            "equation (1)",
            agreement,
            share("the simulator agrees"),
            {
                Verdict.PARTLY: "Where they differ the simulator is faster, by up to two rounds: the equation rounds each fraction of "
                "a round up, and takes γ = 1.5 for delayed ACKs, where Linux counts the packets that an ACK acknowledges (γ = 2)"
            },
        ),
        Claim(
            "No transfer takes more rounds than equation (1) says",
            "it rounds up a fraction a round, which does not occur in practice (4.1)",
            never_more,
            share("no more rounds than by the equation"),
        ),
        Claim(
            "By the equation a window of 10 in place of 3 saves three rounds with delayed ACKs",
            "up to 3 rounds (4.1)",
            rounds_saved_by_equation,
            exact(3, 0),
        ),
        Claim(
            "In practice up to four rounds are saved",
            "up to 4 RTTs (4.1)",
            rounds_saved,
            number(4),
            {
                Verdict.PARTLY: "Linux grows by the packets that are acknowledged (RFC 3465), so that slow start doubles and the larger "
                "window saves fewer rounds than with growth by ACKs"
            },
        ),
        Claim(
            "8 KB over 128 kbit/s and 500 ms: a window of 10 saves at least a round trip",
            "one round in place of at least two (4.1)",
            example_saved,
            at_least(1),
            {
                Verdict.PARTLY: "The 8 KB take 0.5 s at 128 kbit/s in either case, and with a window of 3 the second flight is already "
                "under way while the first is still being acknowledged"
            },
        ),
    ),
)
