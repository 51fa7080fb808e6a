"""The clients of the two data centres, built anew from what the paper prints, and their transfers.

The paper measured; its clients are not published. What is printed of them is a few numbers, and these
are what the distributions here are made of. What is not printed is an assumption, named in
`ASSUMPTIONS`. The baseline's retransmissions (Table 8) are taken as a property of the clients' paths;
nothing is taken from the results of the experiment's arm.
"""

import itertools
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from headstart.reproduce import Context
from headstart.scenario_file import ScenarioFile

BASE_PKTS, EXP_PKTS = 3, 10
"""The initial windows of the baseline and of the experiment (section 2)."""

SEEDS_APART = 1_000_003
"""Between the seeds of two runs: more than there are clients."""

MSS_BYTES = 1430
"""Footnote 1."""

HEADER_BYTES = 40
"""TCP and IP without options."""

INITIAL_RTO = "3s"
"""Section 4.1 has "the longer initial retransmission timeout": RFC 2988, 2.1, and `TCP_TIMEOUT_INIT` of Linux 2.6."""

SEARCH_BYTES = 10_500
"""Section 4.1: the mean response of Web search."""

RTT_MEDIAN_MS = 70.0
"""Section 2: "approximately 70ms in both"."""

RTT_SIGMA = 0.6
"""Of the logarithm of RTT, within a class of bandwidth. Not printed."""

NARROW_RTT_MEAN_MS = ((56e3, 343.0), (256e3, 250.0))
"""Section 4.1: the mean of the minimum RTTs of subnets up to 56 and 256 kbit/s."""

HEAD_PKTS = (3, 4)
"""Section 4.1: of a Web search "an initial burst of three to four packets consisting of the response headers"."""

BACK_END_MEAN_MS = 200
"""Section 4.1: "back-end latency (≈ 200 ms)" between that burst and the rest of the response."""

BUFFER_BYTES = (64 << 10, 256 << 10)
"""The buffer of a client's access link, between these, the logarithm uniform. Not printed; the sizes that
Kreibich et al., "Netalyzr: Illuminating the Edge Network", IMC 2010, found in access links of the time."""

SERVICE_SIGMA = 1.0
"""Of the logarithm of the size of a service's responses, where the paper prints the mean alone."""

PARALLEL_MAPS = 12
"""Section 4.1: Maps makes "up to twelve active concurrent connections": 1 to 12 tiles at once here."""


@dataclass(frozen=True)
class Centre:
    """A data centre.

    Attributes:
        name: As in the paper.
        bandwidth: Points of the distribution of bandwidth: bits/s, share of clients below.
        upper_sigma: Of the logarithm, above the last of these points and between two of them.
        loss: The retransmission rate of Web search in the baseline (Table 8).
    """

    name: str
    bandwidth: tuple[tuple[float, float], ...]
    upper_sigma: float
    loss: float


_AVG_SIGMA = float(np.log(2.0 / 1.2) / NormalDist().inv_cdf(2 / 3))
"""Median 1.2 Mbit/s, one third above 2 Mbit/s: a lognormal distribution of this sigma."""

AVG = Centre("AvgDC", ((1.2e6, 0.5),), _AVG_SIGMA, 0.0155)
SLOW = Centre("SlowDC", ((56e3, 0.04), (256e3, 0.21), (500e3, 0.5)), _AVG_SIGMA, 0.0298)
"""Section 2: median 500 kbit/s; section 4.1: 4 % and 17 % of Web search in 0-56 and 56-256 kbit/s."""

CENTRES = {centre.name: centre for centre in (AVG, SLOW)}


@dataclass(frozen=True)
class Service:
    """An application.

    Attributes:
        name: As in the paper.
        mean_bytes: The mean size of its responses.
        sigma: Of the logarithm.
        parallel: Connections at once of a client: a page has 1 to so many objects.
        users: Of a client's link, who ask independently of each other.
        back_end: The headers leave at once, the rest when the back end has made it.
    """

    name: str
    mean_bytes: float
    sigma: float = SERVICE_SIGMA
    parallel: int = 1
    users: int = 1
    back_end: bool = False

    @property
    def bytes(self) -> str:
        """The distribution of sizes, as a scenario has it."""
        return f"lognormal:{self.mean_bytes / np.exp(self.sigma**2 / 2):.0f}B,{self.sigma:.3f}"


def _sigma_of(mean: float, bound: float, below: float) -> float:
    """The smaller sigma of a lognormal distribution with this mean and this share below a bound."""
    z = NormalDist().inv_cdf(below)
    return float(z - np.sqrt(z * z - 2 * np.log(bound / mean)))


SEARCH = Service("Web search", SEARCH_BYTES, _sigma_of(SEARCH_BYTES, 15_000, 0.9), back_end=True)
"""Section 4.1: 10.5 KB on average; section 1: about 90 % fit in 15 KB."""
MAPS = Service("Maps", 6_400, parallel=PARALLEL_MAPS)
IGOOGLE = Service("iGoogle", 28_000)
NEWS = Service("News", 28_000)
IMAGES = Service("Image Search", 17_000)
PHOTOS = Service("Photos", 28_000, parallel=4)
"""Its mean is not printed ("relatively large"): that of iGoogle; its connections: a browser's four."""

ASSUMPTIONS = (
    "The population is our reconstruction. Bandwidth: lognormal through the printed points (AvgDC: median 1.2 Mbit/s, a third "
    "above 2 Mbit/s; SlowDC: 4 % up to 56 kbit/s, 21 % up to 256 kbit/s, median 500 kbit/s, above it AvgDC's sigma). "
    "Section 2's 20 % below 100 kbit/s contradicts section 4.1's 21 % below 256 kbit/s: the latter is of Web search.",
    "RTT: median 70 ms over all; mean 343 and 250 ms up to 56 and 256 kbit/s; lognormal with sigma 0.6 (not printed).",
    "Losses: independent, at the retransmission rate of the baseline's Web search (Table 8: 1.55 % and 2.98 %). More responses "
    "than the printed 5.8 % and 10.2 % have retransmissions then: real losses come in clusters, of which nothing is printed.",
    "A client's access link is the bottleneck and its own; its buffer has 64 to 256 KiB (not printed; "
    "the sizes that Netalyzr found in 2010).",
    "Sizes: Web search has a mean of 10.5 KB and 90 % up to 15 KB; the other services have the printed means and a lognormal "
    "distribution of sigma 1 (not printed). A client asks for one response at a time; of Maps for 1 to 12, of Photos for 1 to 4.",
    "Web search sends three to four packets at once (each number of bytes between is as likely), and the rest when the back "
    "end has made it: 200 ms later on average, as printed. How the time varies is not: exponential, which assumes least where "
    "the mean alone is known (fixed it cannot be: a tenth of the paper's responses take 174 ms and less in all). Of the other services "
    "no back-end time is printed; theirs are there at once.",
    "Each response is the first of its connection: how many a connection carried is not printed.",
    "Linux of 2010: CUBIC with HyStart, SACK recovery (RFC 6675), F-RTO (RFC 5682), no RACK, no tail loss probe. The clients are "
    "mostly Windows, which uses no timestamps; of the handshake such a server took no round-trip time (tcp_rcv_state_process "
    'of Linux 2.6: "fix it at least with timestamps"), so that the timer is 3 s until the first answer. Receivers acknowledge every second '
    "packet or after 200 ms. Latency runs from the first byte sent to the last byte's acknowledgement: "
    "the transfer's time less the handshake's.",
)


def clients(centre: Centre, count: int, seed: int) -> pl.DataFrame:
    """`count` clients: `client`, `bandwidth_bits_per_s`, `rtt_ms`, `buffer_pkts`."""
    draws = np.random.default_rng([seed, *centre.name.encode()])
    shares = draws.random(count)
    bandwidth = np.array([_bandwidth(centre, share) for share in shares])
    normal = draws.standard_normal(count)
    rtt_ms = _rtt_median_ms(centre, bandwidth) * np.exp(RTT_SIGMA * normal)
    low, high = np.log(BUFFER_BYTES)
    buffer = (
        (np.exp(draws.uniform(low, high, count)) / (MSS_BYTES + HEADER_BYTES)).round().astype(int)
    )
    return pl.DataFrame(
        {
            "client": np.arange(count, dtype=np.uint32),
            "bandwidth_bits_per_s": bandwidth,
            "rtt_ms": rtt_ms,
            "buffer_pkts": buffer,
        }
    )


def _bandwidth(centre: Centre, share: float) -> float:
    """The bandwidth below which `share` of the clients are."""
    unit = NormalDist()
    points = [(np.log(value), unit.inv_cdf(below)) for value, below in centre.bandwidth]
    z = unit.inv_cdf(min(max(share, 1e-6), 1 - 1e-6))
    slope = centre.upper_sigma
    first, last = points[0], points[-1]
    if z >= last[1]:
        return float(np.exp(last[0] + slope * (z - last[1])))
    for (low, z_low), (high, z_high) in itertools.pairwise(points):
        if z_low <= z < z_high:
            return float(np.exp(low + (high - low) * (z - z_low) / (z_high - z_low)))
    return float(np.exp(first[0] + slope * (z - first[1])))


def _rtt_median_ms(centre: Centre, bandwidth: np.ndarray) -> np.ndarray:
    """The median by class of bandwidth; that of the wide class makes the median over all 70 ms."""
    unit = NormalDist()
    narrow_share = float(np.mean([_bandwidth(centre, share) < 256e3 for share in _GRID]))
    wide = RTT_MEDIAN_MS / np.exp(RTT_SIGMA * unit.inv_cdf(0.5 / (1 - narrow_share)))
    medians = np.full(bandwidth.shape, wide)
    for bound, mean in reversed(NARROW_RTT_MEAN_MS):
        medians[bandwidth <= bound] = mean / np.exp(RTT_SIGMA**2 / 2)
    return medians


_GRID = np.linspace(0.0005, 0.9995, 1000)


def scenario(
    centre: Centre, client: dict[str, float], service: Service, pages: int, seed: int
) -> ScenarioFile:
    """One client who asks `pages` times for a page: one response a connection.

    Sizes, pauses and losses are the client's own, drawn from the run's seed and its number.
    """
    delay_us = round(client["rtt_ms"] * 500)
    late_body: dict[str, Any] = {}
    if service.back_end:
        low, high = (pkts * MSS_BYTES for pkts in HEAD_PKTS)
        late_body = {
            "head": f"uniform:{low}B,{high}B",
            "body_after": f"exp:{BACK_END_MEAN_MS}ms",
        }
    return {
        "name": f"client-{client['client']}",
        "seed": seed * SEEDS_APART + int(client["client"]),
        "path": {
            "rate": f"{round(client['bandwidth_bits_per_s'])}bit",
            "delay": f"{delay_us}us",
            "reverse_delay": f"{delay_us}us",
            "reverse_rate": "100mbit",
            "queue": f"drop-tail:{int(client['buffer_pkts'])}",
            "reverse_queue": "drop-tail:1000",
            "loss": f"{100 * centre.loss:.4f}%",
        },
        "compare": {"startups": ["cubic"], "repeat": 1},
        "simulation": {"until": "10000000s"},
        "transport": {
            "model": "linux",
            "mss_bytes": MSS_BYTES,
            "recovery": "sack",
            "frto": True,
            "timestamps": False,
            "handshake_rtt": False,
            "initial_rto": INITIAL_RTO,
            "header_bytes": HEADER_BYTES,
            "ack_bytes": HEADER_BYTES,
            "acks": "delayed",
            "ack_delay": "200ms",
        },
        "traffic": [
            {
                "name": "responses",
                "kind": "users",
                "users": service.users,
                "pages": pages,
                "objects": f"uniform:1,{service.parallel}",
                "parallel": service.parallel,
                "bytes": service.bytes,
                "persistent": False,
                "think": "exp:1s",
                **late_body,
            }
        ],
    }


def extent(context: Context, transfers: int) -> tuple[int, int]:
    """How many clients, and how many responses each, for `transfers` in a full run."""
    total = context.pick(transfers, max(transfers // 25, 20_000))
    count = context.pick(2000, 500)
    return count, max(total // count, 1)


@lru_cache(maxsize=16)
def responses(
    context: Context, centre: Centre, service: Service, window_pkts: int, transfers: int = 1_000_000
) -> pl.DataFrame:
    """The responses of one arm, a row each, with the client's `rtt_ms` and `bandwidth_bits_per_s`.

    `latency_ms`, `bytes`, `sent_pkts` (without retransmissions) and `retransmitted_pkts`. Both arms
    have the same clients, sizes and seeds. What several experiments ask for is simulated once.
    """
    count, each = extent(context, transfers)
    people = clients(centre, count, context.seed)
    pages = max(2 * each // ((1 + service.parallel) * service.users), 1)
    files = [
        scenario(centre, client, service, pages, context.seed)
        for client in people.iter_rows(named=True)
    ]
    rows = []
    # In parts: the rows of a part are narrowed before the next one comes.
    part = 250
    for start in range(0, count, part):
        changes = [{"transport.initial_window_pkts": window_pkts}]
        result = context.sweep(files[start : start + part], changes, seed=None)
        rows.append(
            result.transfers.select(
                client=pl.col("variant") + start,
                bytes=pl.col("bytes").cast(pl.UInt32),
                latency_ms=pl.col("fct_ms") - pl.col("connect_ms").fill_null(0.0),
                sent_pkts=(pl.col("bytes") / MSS_BYTES).ceil().cast(pl.UInt32),
                retransmitted_pkts=pl.col("retransmitted_pkts").cast(pl.UInt32),
                finished=pl.col("finished"),
            )
        )
    table = pl.concat(rows)
    if not table["finished"].all():
        raise RuntimeError("responses were not over when the simulation ended")
    return table.drop("finished").join(people, on="client", how="left")


def both_arms(
    context: Context, centre: Centre, service: Service, transfers: int = 1_000_000
) -> pl.DataFrame:
    """Baseline and experiment below each other, told apart by `arm`."""
    arms = (("base", BASE_PKTS), ("exp", EXP_PKTS))
    return pl.concat(
        responses(context, centre, service, window, transfers).with_columns(arm=pl.lit(name))
        for name, window in arms
    )


def quantiles(
    table: pl.DataFrame, shares: tuple[float, ...], column: str = "latency_ms"
) -> pl.DataFrame:
    """The quantiles of both arms and their difference: `share`, `base`, `exp`, `diff`, `diff_pct`."""
    base = table.filter(arm="base")[column]
    exp = table.filter(arm="exp")[column]
    rows = [
        {
            "share": share,
            "base": base.quantile(share, "linear"),
            "exp": exp.quantile(share, "linear"),
        }
        for share in shares
    ]
    return with_difference(pl.DataFrame(rows))


def with_difference(table: pl.DataFrame) -> pl.DataFrame:
    """Adds `diff` = base - exp, and it in % of base: what is gained."""
    return table.with_columns(diff=pl.col("base") - pl.col("exp")).with_columns(
        diff_pct=100 * pl.col("diff") / pl.col("base")
    )


def intervals(
    table: pl.DataFrame, shares: tuple[float, ...], column: str = "latency_ms"
) -> pl.DataFrame:
    """`quantiles` with the 95 % interval of `diff_pct`, leaving out a lot of clients at a time."""
    whole = quantiles(table, shares, column)
    lots = 20  # a jackknife over clients: 20 passes, where a bootstrap takes hundreds
    estimates = [
        quantiles(table.filter(pl.col("client") % lots != lot), shares, column)[
            "diff_pct"
        ].to_numpy()
        for lot in range(lots)
    ]
    spread = np.std(np.array(estimates), axis=0) * np.sqrt(lots - 1)
    half = pl.Series(1.96 * spread)
    return whole.with_columns(low_pct=pl.col("diff_pct") - half, high_pct=pl.col("diff_pct") + half)
