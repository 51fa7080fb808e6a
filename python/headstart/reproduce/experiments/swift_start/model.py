"""The arithmetic behind the report's two tables (footnotes 1 and 6)."""

from dataclasses import dataclass

PAYLOAD_BYTES = 984
"""Footnote 1: "984 byte effective payload after TCP/IP headers"."""

PATH_S = 0.1
"""Section 1: "100 ms of delay (about the round-trip time across North America)"."""

BURST_PKTS = 4
"""Footnote 1: "starts with a four segment congestion window"."""

LATEST_PART = 0.9
"""Footnote 6: where slow start ends "a few packets into" a round trip, the one before is counted. Few: the
window of the one before was nine tenths of the capacity or more. The tables are the same with any value
between 0.76 and 0.94."""

RATES_BIT_PER_S = {"1.5Mb/s": 1.5e6, "45Mb/s": 45e6, "155Mb/s": 155e6, "1Gb/s": 1e9, "10Gb/s": 10e9}
"""The tables' columns."""


@dataclass(frozen=True)
class Startup:
    """A start, until the window is the path's capacity."""

    round_trips: int
    sent_bytes: int

    @property
    def rate_bit_per_s(self) -> float:
        """Over these round trips."""
        return self.sent_bytes * 8 / (self.round_trips * PATH_S)


def capacity_pkts(rate_bit_per_s: float) -> float:
    """What the path carries in a round trip, in segments by their payload."""
    return rate_bit_per_s * PATH_S / 8 / PAYLOAD_BYTES


def grown(window_pkts: int) -> int:
    """Footnote 1: by a factor of 1.5 each round trip; halves are rounded up."""
    return (3 * window_pkts + 1) // 2


def slow_start(rate_bit_per_s: float) -> Startup:
    """Table 1."""
    return _from([BURST_PKTS], rate_bit_per_s)


def swift_start(rate_bit_per_s: float, gamma: int) -> Startup:
    """Table 2: four segments, then the estimate over gamma, or slow start's window if that is larger."""
    capacity = capacity_pkts(rate_bit_per_s)
    estimate = max(int(capacity / gamma), grown(BURST_PKTS))
    whole = _from([BURST_PKTS, estimate], rate_bit_per_s)
    last = _windows([BURST_PKTS, estimate], capacity)
    if last[-2] < LATEST_PART * capacity:
        return whole
    return Startup(whole.round_trips - 1, whole.sent_bytes - last[-1] * PAYLOAD_BYTES)


def _windows(first: list[int], capacity: float) -> list[int]:
    windows = list(first)
    while windows[-1] < capacity:
        windows.append(grown(windows[-1]))
    return windows


def _from(first: list[int], rate_bit_per_s: float) -> Startup:
    windows = _windows(first, capacity_pkts(rate_bit_per_s))
    return Startup(len(windows), sum(windows) * PAYLOAD_BYTES)
