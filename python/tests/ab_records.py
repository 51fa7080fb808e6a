"""Records as `headstart run` writes them, made up, with a known truth."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

MSS_BYTES = 1448
BEGAN_US = 1_700_000_000_000_000


@dataclass(frozen=True)
class Traffic:
    """What is made up.

    Attributes:
        gain: The second arm's latency over the first one's.
        by_prefix: Each prefix has one arm; else each transfer draws its own.
        slice_s: Each slice of time has one arm, and its own level of load; nothing else counts.
        share: Of the second arm.
        rtt_shift: The second arm's RTT over the first one's: no fair comparison.
        spread: Of the logarithm of latency, from prefix to prefix.
        harm: A transfer of the first arm that begins beside one of the second takes so many times
            as long.
        again: Share of the second arm's transfers that send a packet again; the first's is 0.05.
    """

    transfers: int = 6000
    prefixes: int = 400
    gain: float = 1.0
    by_prefix: bool = True
    slice_s: int | None = None
    share: float = 0.5
    rtt_shift: float = 1.0
    spread: float = 0.5
    harm: float = 1.0
    again: float = 0.05
    arms: tuple[str, str] = ("iw3", "iw10")
    seed: int = 1


def table(traffic: Traffic) -> pl.DataFrame:
    """The rows."""
    chance = np.random.default_rng(traffic.seed)
    n, prefixes = traffic.transfers, traffic.prefixes
    prefix_rtt_ms = chance.lognormal(np.log(70), traffic.spread, prefixes)
    rate_bits_per_s = chance.lognormal(np.log(1.2e6), 1.0, prefixes)
    prefix_arm = chance.random(prefixes) < traffic.share
    prefix = chance.integers(0, prefixes, n)
    arm = prefix_arm[prefix] if traffic.by_prefix else chance.random(n) < traffic.share
    span_us = 600_000_000 if traffic.slice_s is None else 200_000_000 * traffic.slice_s
    start_us = BEGAN_US + np.sort(chance.integers(0, span_us, n))
    slices = start_us // (1_000_000 * (traffic.slice_s or 1_000_000))
    slices -= slices.min()
    if traffic.slice_s is not None:
        arm = (chance.random(slices.max() + 1) < traffic.share)[slices]
    size = chance.lognormal(np.log(6000), 1.0, n).astype(np.int64) + 300
    segments = -(-size // MSS_BYTES)
    rtt_ms = prefix_rtt_ms[prefix] * (1 + 0.05 * chance.random(n))
    rtt_ms = np.where(arm, rtt_ms * traffic.rtt_shift, rtt_ms)
    latency_ms = rtt_ms * (1 + np.log2(segments + 1) / 2) + size * 8000 / rate_bits_per_s[prefix]
    latency_ms *= chance.lognormal(0, 0.3, n)
    if traffic.slice_s is not None:
        latency_ms *= chance.lognormal(0, 0.4, slices.max() + 1)[slices]
    latency_ms = np.where(arm, latency_ms * traffic.gain, latency_ms)
    order = np.lexsort((start_us, prefix))
    before, after = order[:-1], order[1:]
    beside = (prefix[before] == prefix[after]) & (
        start_us[before] + 1000 * latency_ms[before] > start_us[after]
    )
    harmed = after[beside & arm[before] & ~arm[after]]
    latency_ms[harmed] *= traffic.harm
    again = chance.random(n) < np.where(arm, traffic.again, 0.05)
    names = np.array(traffic.arms)

    def whole(values: np.ndarray, dtype: type[pl.DataType]) -> pl.Series:
        return pl.Series(values.astype(np.int64)).cast(dtype)

    return pl.DataFrame(
        {
            "start": pl.Series(start_us).cast(pl.Datetime("us", "UTC")),
            "latency_us": whole(1000 * latency_ms, pl.UInt64),
            "bytes": whole(size, pl.UInt64),
            "complete": chance.random(n) < 0.999,
            "retransmitted_bytes": whole(MSS_BYTES * again, pl.UInt64),
            "rto_count": whole(chance.random(n) < 0.01, pl.UInt32),
            "rtt_min_us": whole(1000 * rtt_ms, pl.UInt32),
            "rtt_start_us": pl.Series(np.where(chance.random(n) < 0.9, 1010 * rtt_ms, np.nan))
            .fill_nan(None)
            .cast(pl.UInt32),
            "initial_cwnd_pkts": whole(np.where(arm, 10, 3), pl.UInt32),
            "delivery_rate_bytes_per_s": whole(
                rate_bits_per_s[prefix] / 8 * chance.uniform(0.5, 1, n), pl.UInt64
            ),
            "receiver_initial_window_bytes": whole(np.full(n, 65_535), pl.UInt32),
            "mss_bytes": whole(np.full(n, MSS_BYTES), pl.UInt32),
            "prefix": [f"10.{at >> 8}.{at & 255}.0/24" for at in prefix],
            "local_port": whole(np.where(chance.random(n) < 0.7, 443, 80), pl.UInt16),
            "transfer_index": whole(np.zeros(n), pl.UInt32),
            "rule": "web",
            "arm": names[arm.astype(int)],
            "control": "su_standard",
        }
    )


def write(path: Path, traffic: Traffic | None = None, **changes: object) -> Path:
    """Writes a file of records."""
    table(replace(traffic or Traffic(), **changes)).write_parquet(path)
    return path
