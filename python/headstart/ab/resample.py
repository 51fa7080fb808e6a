"""The bootstrap: whole prefixes are drawn again, as transfers of one prefix are not independent.

Prefixes are gathered into lots, by chance, at most `MOST_LOTS`; what is drawn are lots. Each
statistic is a function of sums over lots, so a thousand draws are one product of matrices, and
10 million transfers cost no more than the sums.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

MOST_LOTS = 1000
"""More lots make no interval better: with 1000, its width is known to 2 %."""

BINS = 1024
"""Of a histogram, equal in the logarithm. Between 1 ms and 100 s a bin is 1.1 % wide; quantiles are
interpolated within it, and the draws are centred on the transfers' own."""

COARSE = 4
"""So many bins are one where two distributions are held against each other."""

LEVEL = 0.95
"""Of the intervals."""


@dataclass(frozen=True)
class Comparison:
    """A statistic of two arms. `diff` = base - other, as the paper has it: above 0 is a gain.

    Attributes:
        base: Of the arm that is compared with.
        other: Of the other arm.
        low: Lower end of the interval of `diff`; not finite where too few prefixes are there.
        high: Its upper end.
        low_pct: The same in percent of `base`.
        high_pct: The same in percent of `base`.
        p: Probability of a difference this far from 0, where there is none.
    """

    base: float
    other: float
    low: float
    high: float
    low_pct: float
    high_pct: float
    p: float

    @property
    def diff(self) -> float:
        """What is gained."""
        return self.base - self.other

    @property
    def diff_pct(self) -> float:
        """What is gained, in percent of the base."""
        return 100 * self.diff / self.base if self.base else float("nan")


@dataclass(frozen=True)
class Bins:
    """Edges of a histogram that are equally far apart in the logarithm."""

    edges: Floats

    @classmethod
    def over(cls, values: NDArray) -> "Bins":
        """Bins for `values`, which are at least 0; what is below 1 counts as 1."""
        low, high = (float(values.min()), float(values.max())) if values.size else (1.0, 1.0)
        low = max(low, 1.0)
        return cls(np.geomspace(low, max(high, low) * 1.0001, BINS + 1))

    def of(self, values: NDArray) -> NDArray[np.int32]:
        """The bin of each value."""
        low, high = np.log(self.edges[0]), np.log(self.edges[-1])
        place = np.log(np.maximum(values, self.edges[0]).astype(np.float64))
        place -= low
        place *= BINS / (high - low)
        return np.minimum(place, BINS - 1).astype(np.int32)


class Lots:
    """The draws, the same for all statistics: what is compared is compared under the same draws."""

    def __init__(self, clusters: int, seed: int, draws: int) -> None:
        """Puts so many prefixes, or slices of time, into lots, and draws lots so many times."""
        chance = np.random.default_rng(seed)
        self.count = max(min(clusters, MOST_LOTS), 1)
        self.of_cluster = (chance.permutation(clusters) % self.count).astype(np.int32)
        self.weights = chance.multinomial(
            self.count, np.full(self.count, 1 / self.count), size=draws
        ).astype(np.float32)

    def sums(
        self,
        lot: NDArray,
        values: NDArray | None = None,
        column: NDArray | None = None,
        of: int = 1,
    ) -> Floats:
        """Sums over lots, a column for each of `of`: of `values`, or, without them, how many."""
        place = lot.astype(np.int64) * of
        if column is not None:
            place += column
        flat = np.bincount(place, weights=values, minlength=self.count * of)
        return flat.reshape(self.count, of).astype(np.float64)

    def ratio(self, base: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> list[Comparison]:
        """Compares two ratios of sums, such as a mean: numerators and denominators over lots."""
        drawn, exact = [], []
        weights = self.weights.astype(np.float64)
        for above, below in (base, other):
            with np.errstate(invalid="ignore", divide="ignore"):
                drawn.append((weights @ above) / (weights @ below))
                exact.append(above.sum(axis=0) / below.sum(axis=0))
        lots = [np.count_nonzero(below, axis=0) for _, below in (base, other)]
        return [
            compare(
                exact[0][at],
                exact[1][at],
                drawn[0][:, at],
                drawn[1][:, at],
                int(min(lots[0][at], lots[1][at])),
            )
            for at in range(exact[0].size)
        ]

    def quantiles(
        self,
        shares: tuple[float, ...],
        bins: Bins,
        histograms: tuple[Floats, Floats],
        exact: tuple[Floats, Floats],
    ) -> list[Comparison]:
        """Compares quantiles. The draws come from histograms, the values from the transfers."""
        lots = min(int(np.count_nonzero(one.sum(axis=1))) for one in histograms)
        drawn = [
            _quantiles_of(self._drawn(one), shares, bins) * _centre(one, shares, bins, value)
            for one, value in zip(histograms, exact, strict=True)
        ]
        return [
            compare(exact[0][at], exact[1][at], drawn[0][:, at], drawn[1][:, at], lots)
            for at in range(len(shares))
        ]

    def _drawn(self, histogram: Floats) -> Floats:
        """A histogram for each draw. Single precision: counts of 10 million are exact in it."""
        return (self.weights @ histogram.astype(np.float32)).astype(np.float64)

    def furthest(self, histograms: tuple[Floats, Floats]) -> tuple[float, float]:
        """How far two distributions are apart (Kolmogorov and Smirnov), and how probable that is.

        The null distribution is of the draws, each held against what was seen.
        """
        base, other = (one.reshape(self.count, -1, COARSE).sum(axis=2) for one in histograms)
        seen = _cdf(other.sum(axis=0)) - _cdf(base.sum(axis=0))
        apart = float(np.abs(seen).max())
        drawn = _cdf(self._drawn(other)) - _cdf(self._drawn(base))
        by_chance = np.abs(drawn - seen).max(axis=1)
        by_chance = by_chance[np.isfinite(by_chance)]
        p = (1 + int(np.count_nonzero(by_chance >= apart))) / (1 + by_chance.size)
        return apart, p


def compare(
    base: float, other: float, base_drawn: Floats, other_drawn: Floats, lots: int
) -> Comparison:
    """The interval and the probability, of what was drawn of both arms."""
    base, other = float(base), float(other)
    whole = np.isfinite(base_drawn) & np.isfinite(other_drawn)
    gains = base_drawn[whole] - other_drawn[whole]
    if lots < 3 or gains.size < base_drawn.size / 2:  # noqa: PLR2004 (a spread needs three)
        nothing = float("nan")
        return Comparison(base, other, nothing, nothing, nothing, nothing, nothing)
    low, high = np.quantile(gains, _ends(lots))
    with np.errstate(invalid="ignore", divide="ignore"):
        percents = 100 * gains / base_drawn[whole]
    percents = percents[np.isfinite(percents)]
    low_pct, high_pct = (
        np.quantile(percents, _ends(lots)) if percents.size else (float("nan"), float("nan"))
    )
    p = _probability(gains, base - other, lots)
    return Comparison(base, other, float(low), float(high), float(low_pct), float(high_pct), p)


def _ends(lots: int) -> tuple[float, float]:
    """The shares of the draws that are cut off: wider than 2.5 % and 97.5 % would make it.

    Percentile intervals of few clusters are too narrow, by the factor sqrt((n - 1) / n) and for
    lack of Student's t (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015).
    """
    t = stats.t.ppf((1 + LEVEL) / 2, lots - 1) * np.sqrt(lots / (lots - 1))
    share = float(stats.norm.cdf(-t))
    return share, 1 - share


def _probability(gains: Floats, seen: float, lots: int) -> float:
    """The level at which the interval would just touch 0: what `_ends` does, the other way round.

    Beyond the last draw the tail is taken as normal.
    """
    spread = float(gains.std())
    if spread == 0:
        return 1.0 if seen == 0 else 0.0
    below = (np.count_nonzero(gains < 0) + np.count_nonzero(gains == 0) / 2) / gains.size
    edge = 1 / gains.size
    z = float(stats.norm.ppf(np.clip(below, edge, 1 - edge)))
    if below < edge or below > 1 - edge:
        z = float(np.sign(z)) * max(abs(z), abs(seen) / spread)
    t = abs(z) * np.sqrt((lots - 1) / lots)
    return min(1.0, 2 * float(stats.t.sf(t, lots - 1)))


def _cdf(histogram: Floats) -> Floats:
    cumulative = histogram.cumsum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return cumulative / cumulative[..., -1:]


def _quantiles_of(histograms: Floats, shares: tuple[float, ...], bins: Bins) -> Floats:
    """The quantiles of each row, linear within a bin."""
    cumulative = histograms.cumsum(axis=1)
    rows = np.arange(cumulative.shape[0])
    found = np.empty((cumulative.shape[0], len(shares)))
    for at, share in enumerate(shares):
        wanted = share * cumulative[:, -1]
        place = np.minimum((cumulative < wanted[:, None]).sum(axis=1), BINS - 1)
        within = histograms[rows, place]
        before = cumulative[rows, place] - within
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.where(within > 0, (wanted - before) / within, np.nan)
        found[:, at] = bins.edges[place] + part * (bins.edges[place + 1] - bins.edges[place])
    return found


def _centre(histogram: Floats, shares: tuple[float, ...], bins: Bins, exact: Floats) -> Floats:
    """What takes the histogram's quantiles to the transfers' own."""
    coarse = _quantiles_of(histogram.sum(axis=0)[None, :], shares, bins)[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(coarse > 0, exact / coarse, 1.0)


def holm(probabilities: list[float]) -> list[float]:
    """Holm's correction: the probability that any of them is a false alarm stays below the level.

    It holds however the comparisons depend on each other; quantiles of the same transfers do.
    """
    known = [(p, at) for at, p in enumerate(probabilities) if np.isfinite(p)]
    corrected = [float("nan")] * len(probabilities)
    most = 0.0
    for rank, (p, at) in enumerate(sorted(known)):
        most = max(most, min(1.0, p * (len(known) - rank)))
        corrected[at] = most
    return corrected
