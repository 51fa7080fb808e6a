"""What the simulations of section 5 have in common."""

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from headstart.reproduce import Context, Measured
from headstart.scenario_file import ScenarioFile, TrafficTable

NEWRENO, ADAPTIVE = "reno", "su_adaptive"
"""The two contenders, by the names of their congestion controls."""

LABELS = {NEWRENO: "TCP/NewReno", ADAPTIVE: "adaptive"}

LINKS = {1: ("1.6mbit", "50ms"), 2: ("1.6mbit", "200ms"), 3: ("45mbit", "200ms")}
"""Table 1: bandwidth and link delay of the scenarios."""

PACKET_BYTES = 1000
"""Section 5: "set to 1 KB"."""

BUFFER_PKTS = 20
"""Section 5: 20 KB."""

FILES = 10
"""Section 5: each flow sends ten."""

LONGEST = "3000s"
"""When a run ends that is not over: far beyond any."""

ASSUMPTIONS = (
    "Table 1's link delay is one way: the round trip is twice of it. Table 3's 3.10 s for NewReno fits that alone: "
    "seven round trips of slow start for 40 packets are 2.8 s.",
    "1 KB is 1000 bytes of data, and 40 of headers; the buffer of 20 KB holds 20 packets.",
    "The jitter of the start is not given: the first files start at random within 10 s, and the pause between "
    "files is 10 to 11 s at random.",
    "NewReno is that of ns: one packet at first, one more for each ACK, an ACK for each packet, no handshake, and "
    "one packet again after the pause (RFC 2581, 4.1). The clock has 10 ms (section 6); the least "
    "retransmission timer is two ticks of it. No receiver's window limits a flow.",
    "The adaptive sender is su_adaptive with least_window_pkts = 1 (the letter of section 3) over Reno. All its "
    "flows share one memory. Its filter's weight, which the paper leaves open, is the memory's default; the "
    "departures of docs/adaptive.md hold, but for W, which is cwnd as ns has it (ending_is_cwnd = 1): a start that failed is forgotten. And a "
    "window of one packet at the opening is taken for a lost handshake: a flow's "
    "first file is sent as by NewReno, even where other flows have taught the memory before.",
    "A transfer ends when its sender has the last ACK, as in section 4, whose t2(x) = (P/B) x + R has the whole round trip: "
    "the link delay of the way back is added to the simulator's times, which end at the receiver.",
    "A mean is over all ten files of a flow, the first, of which nothing is known yet, too.",
)


def scenario(link: int, traffic: Sequence[TrafficTable], until: str = LONGEST) -> ScenarioFile:
    """Table 1's scenario `link` with this traffic, NewReno against adaptive."""
    rate, delay = LINKS[link]
    return {
        "name": f"adaptive-{link}",
        "path": {
            "rate": rate,
            "delay": delay,
            "reverse_delay": delay,
            "queue": f"drop-tail:{BUFFER_PKTS}",
            "reverse_queue": "drop-tail:1000",
        },
        "compare": {"startups": [NEWRENO, ADAPTIVE], "repeat": 1},
        "simulation": {"until": until, "memory_params": ["ending_is_cwnd=1"]},
        "transport": {
            "model": "newreno",
            "mss_bytes": PACKET_BYTES,
            "idle": "restart",
            "min_rto": "20ms",
            "clock_tick": "10ms",
        },
        "traffic": list(traffic),
        "startup": {ADAPTIVE: {"least_window_pkts": 1, "reno": 1}},
    }


def files(name: str, users: int, packets: int, **more: Any) -> TrafficTable:
    """`users` flows that send ten files of `packets` packets each."""
    table: TrafficTable = {
        "name": name,
        "kind": "users",
        "users": users,
        "start": "uniform:0s,10s",
        "pages": FILES,
        "bytes": f"{packets * PACKET_BYTES}B",
        "persistent": True,
        "think": "uniform:10s,11s",
        "hints": True,
    }
    return table | more


def ftp(flows: int) -> TrafficTable:
    """Long-lasting NewReno flows that are there from the start (section 6.3)."""
    return {
        "name": "ftp",
        "kind": "bulk",
        "users": flows,
        "start": "uniform:0s,1s",
        "startup": NEWRENO,
    }


def measure(
    context: Context,
    scenarios: Iterable[tuple[dict[str, int], ScenarioFile]],
    groups: Sequence[str],
) -> pl.DataFrame:
    """The mean transfer time of each run, in s, by start-up and the labels of each scenario."""
    labels, files_of = zip(*scenarios, strict=True)
    repeat = context.pick(20, 4) if context.on == "sim" else 1
    result = context.measure(list(files_of), repeat=repeat)
    transfers = result.transfers.filter(pl.col("group").is_in(list(groups)))
    if not transfers["finished"].all():
        raise RuntimeError(f"transfers were not over after {LONGEST}")
    means = transfers.group_by("variant", "startup", "group", "repeat").agg(
        mean_s=pl.col("fct_ms").mean() / 1000
    )
    named = pl.DataFrame(list(labels)).with_row_index("variant")
    back_s = {link: float(delay.removesuffix("ms")) / 1000 for link, (_, delay) in LINKS.items()}
    return (
        means.join(named, on="variant")
        .with_columns(mean_s=pl.col("mean_s") + pl.col("scenario").replace_strict(back_s))
        .sort("variant", "startup", "group", "repeat")
    )


def gains(times: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The gain of adaptive over NewReno in % of NewReno's mean time, and its standard error."""
    per_run = times.pivot(on="startup", index=[*by, "repeat"], values="mean_s")
    return (
        per_run.group_by(by)
        .agg(
            newreno_s=pl.col(NEWRENO).mean(),
            newreno_err_s=pl.col(NEWRENO).std() / pl.len().sqrt(),
            adaptive_s=pl.col(ADAPTIVE).mean(),
            adaptive_err_s=pl.col(ADAPTIVE).std() / pl.len().sqrt(),
            # The runs of a pair have a seed in common: the error is that of their difference.
            err_s=(pl.col(NEWRENO) - pl.col(ADAPTIVE)).std() / pl.len().sqrt(),
        )
        # One run has no spread.
        .with_columns(pl.col("newreno_err_s", "adaptive_err_s", "err_s").fill_null(0.0))
        .with_columns(
            gain_pct=100 * (1 - pl.col("adaptive_s") / pl.col("newreno_s")),
            err_pct=100 * pl.col("err_s") / pl.col("newreno_s"),
        )
        .sort(by)
    )


def range_of(gain: pl.DataFrame, at: str) -> Measured:
    """The gains over all cases as a range, and where its ends are."""
    low = gain.row(int(gain["gain_pct"].arg_min()), named=True)
    high = gain.row(int(gain["gain_pct"].arg_max()), named=True)
    mean = float(gain["gain_pct"].mean())
    note = f"mean and range over {gain.height} cases; least at {low[at]}, most at {high[at]}"
    return Measured(mean, low["gain_pct"], high["gain_pct"], "%", note)


def one(gain: pl.DataFrame, **at: int) -> Measured:
    """The gain of one case with its 95 % interval."""
    row = gain.filter(**at).row(0, named=True)
    half = 1.96 * row["err_pct"]
    return Measured(row["gain_pct"], row["gain_pct"] - half, row["gain_pct"] + half, "%")


def share_of(cases: pl.Series, note: str = "") -> Measured:
    """The share of cases that are true."""
    value = float(cases.cast(pl.Float64).mean())
    return Measured(value, value, value, "", note or f"{cases.sum()} of {cases.len()} cases")
