"""The buckets of the paper's figures, named by their upper ends."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Buckets:
    """A quantity, cut into buckets.

    Attributes:
        key: Its name in files.
        title: Its name for readers, with the unit.
        ends: Upper ends, which belong to the bucket; above the last one is one bucket more.
    """

    key: str
    title: str
    ends: tuple[float, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """By the upper end, as in the figures."""
        return (*(f"{end:g}" for end in self.ends), f">{self.ends[-1]:g}")

    def of(self, values: NDArray) -> NDArray[np.int64]:
        """The bucket of each value; -1 where it is not known (NaN)."""
        return np.where(np.isnan(values), -1, np.searchsorted(self.ends, values, side="left"))


RTT = Buckets("rtt_ms", "RTT (ms)", (20, 50, 100, 200, 500))
BANDWIDTH = Buckets(
    "bandwidth_kbit_per_s", "bandwidth (kbit/s)", (56, 256, 512, 1000, 2000, 3000, 5000)
)
BDP = Buckets("bdp_bytes", "BDP (bytes)", (1000, 5000, 10_000, 50_000, 100_000, 200_000))
"""Figures 5 and 6. The text names 56 and 256 kbit/s and 2 Mbit/s; the other ends are as the
reproduction of the paper has them."""

SEGMENTS = Buckets("segments", "response size (segments)", (3, 4, 7, 10, 15, 20, 30, 50))
"""Figure 7."""

SHORT_SEGMENTS = 3
"""A short transfer, for the fairness check (section 4.1, Table 7)."""
