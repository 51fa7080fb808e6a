"""The paper's tables and the buckets of its figures, of one arm against the base."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headstart.ab import buckets
from headstart.ab.buckets import Buckets
from headstart.ab.records import Transfers
from headstart.ab.resample import Bins, Comparison, Floats, Lots

SHARES = (0.1, 0.5, 0.9, 0.95, 0.99, 0.999)
"""Of Tables 3, 5 and 6."""

SLOW_SHARES = (0.1, 0.5, 0.9, 0.95, 0.99)
"""Of Table 4."""

TAIL_SHARES = (0.1, 0.5, 0.9, 0.95, 0.96, 0.97, 0.99, 0.999)
"""Of Table 9."""

BEYOND = 10
"""A quantile is told where so many transfers of each arm lie beyond it."""

LEAST_TRANSFERS = 50
"""A bucket is compared where it has so many transfers of each arm."""

MOST_PORTS = 8
"""Services that are told apart: the busiest."""

LEAST_PORT_SHARE = 0.01
"""Of all transfers, for a service to be told apart."""

SLOW_PARTS = 4
"""Of Figure 6: as many prefixes in each."""


@dataclass
class Line:
    """One comparison of a table.

    Attributes:
        label: What is compared.
        comparison: None where there are too few transfers.
        transfers: Of the base and of the other arm.
        share_pct: Of all transfers, where the line is a bucket.
        p_holm: `p` corrected for all comparisons of the report.
    """

    label: str
    comparison: Comparison | None
    transfers: tuple[int, int]
    share_pct: float | None = None
    p_holm: float = field(default=float("nan"))


@dataclass
class Table:
    """Some comparisons of the same kind.

    Attributes:
        key: Its name in files.
        title: Its name for readers.
        paper: Which of the paper's tables and figures it is.
        first: What the labels are.
        unit: Of the values.
        note: What a reader has to know.
    """

    key: str
    title: str
    paper: str
    first: str
    unit: str
    lines: list[Line]
    note: str = ""

    def line(self, label: str) -> Line | None:
        """The line of this label."""
        return next((line for line in self.lines if line.label == label), None)


@dataclass(frozen=True)
class Side:
    """What the tables need of one arm's transfers, all in the same order."""

    lot: NDArray
    prefix: NDArray
    latency_ms: Floats
    bin: NDArray
    transfers: Transfers
    index: NDArray

    def of(self, values: NDArray) -> NDArray:
        """The arm's part of a column of all transfers."""
        return values[self.index]

    def only(self, which: NDArray) -> "Side":
        """Some of the transfers."""
        return Side(
            self.lot[which],
            self.prefix[which],
            self.latency_ms[which],
            self.bin[which],
            self.transfers,
            self.index[which],
        )


class Tables:
    """Makes the tables of all arms from the same draws."""

    def __init__(self, transfers: Transfers, lots: Lots, bandwidth_kbit_per_s: Floats) -> None:
        """`bandwidth_kbit_per_s` is by prefix, NaN where it is not known."""
        self.transfers = transfers
        self.lots = lots
        self.bandwidth = bandwidth_kbit_per_s
        latency_ms = transfers.latency_us / 1000
        # A thousandth of a ms: the histogram begins at 1.
        self.bins = Bins.over(transfers.latency_us)
        bins = self.bins.of(transfers.latency_us)
        lot = lots.of_cluster[transfers.cluster]
        self.sides = []
        for arm in range(len(transfers.arms)):
            index = np.flatnonzero(transfers.arm == arm).astype(np.int32)
            self.sides.append(
                Side(
                    lot[index],
                    transfers.prefix[index],
                    latency_ms[index],
                    bins[index],
                    transfers,
                    index,
                )
            )
        ports, counts = np.unique(transfers.port, return_counts=True)
        busiest = np.argsort(counts, kind="stable")[::-1][:MOST_PORTS]
        self.ports = [
            int(ports[at]) for at in busiest if counts[at] >= LEAST_PORT_SHARE * transfers.count
        ]

    def all(self, other: int) -> list[Table]:
        """All tables of arm `other` against the base, which is arm 0."""
        base, exp = self.sides[0], self.sides[other]
        return [
            self._latency(base, exp),
            self._slow(base, exp),
            self._per_prefix(base, exp),
            *self._per_port(base, exp),
            self._short(base, exp),
            self._sent_again(base, exp),
            self._tail(base, exp),
            *self._buckets(base, exp),
            self._neighbours(other),
        ]

    def _mean(self, base: Side, exp: Side) -> Comparison | None:
        if min(base.lot.size, exp.lot.size) < LEAST_TRANSFERS:
            return None
        sums = [
            (self.lots.sums(side.lot, side.latency_ms), self.lots.sums(side.lot))
            for side in (base, exp)
        ]
        return self.lots.ratio(sums[0], sums[1])[0]

    def _quantiles(self, base: Side, exp: Side, shares: tuple[float, ...]) -> list[Line]:
        sizes = (base.lot.size, exp.lot.size)
        kept = tuple(share for share in shares if min(sizes) * (1 - share) >= BEYOND)
        found = []
        if kept:
            histograms = [
                self.lots.sums(side.lot, None, side.bin, self.bins.edges.size - 1)
                for side in (base, exp)
            ]
            exact = [np.quantile(side.latency_ms, kept) for side in (base, exp)]
            found = self.lots.quantiles(
                kept, self.bins, (histograms[0], histograms[1]), (exact[0], exact[1])
            )
        by_share = dict(zip(kept, found, strict=True))
        return [Line(percent(share), by_share.get(share), sizes) for share in shares]

    def _latency(self, base: Side, exp: Side) -> Table:
        sizes = (base.lot.size, exp.lot.size)
        return Table(
            "latency",
            "Latency",
            "Table 3",
            "quantile",
            "ms",
            [Line("mean", self._mean(base, exp), sizes), *self._quantiles(base, exp, SHARES)],
        )

    def _slow(self, base: Side, exp: Side) -> Table:
        """The lowest bucket of bandwidth that has enough transfers for its 90 % quantile."""
        needed = round(BEYOND / (1 - 0.9))
        places = [buckets.BANDWIDTH.of(self.bandwidth)[side.prefix] for side in (base, exp)]
        for place, label in enumerate(buckets.BANDWIDTH.labels):
            some = [
                side.only(np.flatnonzero(of == place))
                for side, of in zip((base, exp), places, strict=True)
            ]
            if min(side.lot.size for side in some) >= needed:
                lines = self._quantiles(some[0], some[1], SLOW_SHARES)
                where = f"Prefixes in the bucket {label} kbit/s, the lowest with enough transfers."
                return Table(
                    "slowest", "Latency on slow paths", "Table 4", "quantile", "ms", lines, where
                )
        note = "The bandwidth of the prefixes is not known."
        return Table("slowest", "Latency on slow paths", "Table 4", "quantile", "ms", [], note)

    def _per_prefix(self, base: Side, exp: Side) -> Table:
        """Of the prefixes' mean latencies. A prefix that has both arms counts in both."""
        count = len(self.transfers.prefixes)
        seen, means = [], []
        for side in (base, exp):
            many = np.bincount(side.prefix, minlength=count)
            total = np.bincount(side.prefix, weights=side.latency_ms, minlength=count)
            seen.append(many > 0)
            means.append(total / np.maximum(many, 1))
        both = seen[0] & seen[1]
        crossed = both.sum() > 0.5 * (seen[0] | seen[1]).sum()
        which = [both, both] if crossed else seen
        # Slices of time go across the prefixes: then these are drawn here for themselves.
        sliced = self.transfers.slice_us is not None
        lots = np.arange(count) % self.lots.count if sliced else self.lots.of_cluster
        made = []
        for chosen, mean in zip(which, means, strict=True):
            index = np.flatnonzero(chosen)
            values = mean[index]
            bins = self.bins.of(values * 1000)
            made.append(Side(lots[index], index, values, bins, self.transfers, index))
        note = (
            "Prefixes that had both arms."
            if crossed
            else "Each prefix had one arm: those of one against those of the other."
        )
        if sliced:
            note += " The intervals do not know of the slices, and are too narrow."
        lines = self._quantiles(made[0], made[1], SHARES)
        return Table(
            "per_prefix", "Mean latency of a prefix", "Table 5", "quantile", "ms", lines, note
        )

    def _per_port(self, base: Side, exp: Side) -> list[Table]:
        if len(self.ports) < 2:  # noqa: PLR2004 (one is Table 3)
            return []
        lines = []
        for port in self.ports:
            some = [
                side.only(np.flatnonzero(side.of(self.transfers.port) == port))
                for side in (base, exp)
            ]
            for line in self._quantiles(some[0], some[1], SHARES):
                line.label = f"port {port}, {line.label}"
                lines.append(line)
        return [Table("per_port", "Latency by service", "Table 6", "service", "ms", lines)]

    def _short(self, base: Side, exp: Side) -> Table:
        some = [
            side.only(np.flatnonzero(side.of(self.transfers.segments) <= buckets.SHORT_SEGMENTS))
            for side in (base, exp)
        ]
        lines = [Line("mean", self._mean(some[0], some[1]), (some[0].lot.size, some[1].lot.size))]
        for port in self.ports if len(self.ports) > 1 else []:
            own = [side.only(np.flatnonzero(side.of(self.transfers.port) == port)) for side in some]
            sizes = (own[0].lot.size, own[1].lot.size)
            lines.append(Line(f"mean, port {port}", self._mean(own[0], own[1]), sizes))
        note = (
            "Too short to profit from a larger window, but on the same paths as those that do: "
            "slower here means that the arm harms its own neighbours."
        )
        title = f"Transfers of at most {buckets.SHORT_SEGMENTS} segments"
        return Table("short", title, "Table 7", "", "ms", lines, note)

    def _sent_again(self, base: Side, exp: Side) -> Table:
        lines = []
        ports = [None, *(self.ports if len(self.ports) > 1 else [])]
        for port in ports:
            some = (base, exp)
            if port is not None:
                some = tuple(
                    side.only(np.flatnonzero(side.of(self.transfers.port) == port)) for side in some
                )
            sizes = (some[0].lot.size, some[1].lot.size)
            ending = "" if port is None else f", port {port}"
            for label, found in zip(
                ("bytes sent again", "transfers that sent again", "timeouts in 100 transfers"),
                self._rates(some[0], some[1]),
                strict=True,
            ):
                lines.append(Line(label + ending, found, sizes))
        note = "In percent: of unique bytes, of transfers. Below 0 the arm sends more again."
        return Table("sent_again", "Retransmissions", "Table 8", "", "%", lines, note)

    def _rates(self, base: Side, exp: Side) -> list[Comparison | None]:
        if min(base.lot.size, exp.lot.size) < LEAST_TRANSFERS:
            return [None] * 3
        parts = []
        for side in (base, exp):
            again = side.of(self.transfers.retransmitted_bytes)
            count = self.lots.sums(side.lot)
            above = [
                self.lots.sums(side.lot, 100 * again),
                self.lots.sums(side.lot, 100.0 * (again > 0)),
                self.lots.sums(side.lot, 100 * side.of(self.transfers.rto_count)),
            ]
            below = [self.lots.sums(side.lot, side.of(self.transfers.bytes)), count, count]
            parts.append((np.hstack(above), np.hstack(below)))
        return list(self.lots.ratio(parts[0], parts[1]))

    def _tail(self, base: Side, exp: Side) -> Table:
        """Of the service whose upper quantiles lose most."""
        worst, port = None, self.ports[0] if self.ports else None
        for one in self.ports if len(self.ports) > 1 else []:
            some = [
                side.only(np.flatnonzero(side.of(self.transfers.port) == one))
                for side in (base, exp)
            ]
            if min(side.lot.size for side in some) * 0.01 < BEYOND:
                continue
            ends = [np.quantile(side.latency_ms, 0.99) for side in some]
            gain = (ends[0] - ends[1]) / ends[0]
            if worst is None or gain < worst:
                worst, port = gain, one
        some = [
            side.only(np.flatnonzero(side.of(self.transfers.port) == port)) for side in (base, exp)
        ]
        lines = self._quantiles(some[0], some[1], TAIL_SHARES)
        note = f"Port {port}" + (
            ", whose 99 % quantile gains least." if worst is not None else ", the only service."
        )
        return Table("tail", "The tail", "Table 9", "quantile", "ms", lines, note)

    def _buckets(self, base: Side, exp: Side) -> list[Table]:
        rtt_ms = self.transfers.rtt_us / 1000
        wide = self.bandwidth[self.transfers.prefix]
        made = [
            self._bucketed("rtt", "Figure 5", buckets.RTT, rtt_ms, base, exp),
            self._bucketed("bandwidth", "Figure 5", buckets.BANDWIDTH, wide, base, exp),
            # kbit/s times ms are bits; eight are a byte.
            self._bucketed("bdp", "Figure 5", buckets.BDP, wide * rtt_ms / 8, base, exp),
        ]
        slow = self._slow_ends()
        if slow is not None:
            table = self._bucketed("slow_bandwidth", "Figure 6", slow, wide, base, exp)
            table.lines = table.lines[:-1]  # above the median
            table.note = "The slower half of the prefixes, in four parts of as many prefixes each."
            made.append(table)
        segments = self.transfers.segments.astype(np.float64)
        made.append(self._bucketed("size", "Figure 7", buckets.SEGMENTS, segments, base, exp))
        return made

    def _slow_ends(self) -> Buckets | None:
        known = self.bandwidth[np.isfinite(self.bandwidth)]
        if not known.size:
            return None
        parts = [part / (2 * SLOW_PARTS) for part in range(1, SLOW_PARTS + 1)]
        ends = np.unique(np.quantile(known, parts))
        title = buckets.BANDWIDTH.title + ", the slower half"
        return Buckets("slow_bandwidth_kbit_per_s", title, tuple(float(end) for end in ends))

    def _bucketed(  # noqa: PLR0917 -- a name, a cut, two sides
        self, key: str, paper: str, cut: Buckets, values: Floats, base: Side, exp: Side
    ) -> Table:
        """The mean in each bucket; empty buckets at the ends are left out."""
        place = cut.of(values)
        of = len(cut.labels)
        counts, found = [], []
        for side in (base, exp):
            own = side.of(place)
            known = np.flatnonzero(own >= 0)
            lot, column = side.lot[known], own[known]
            below = self.lots.sums(lot, None, column, of)
            above = self.lots.sums(lot, side.latency_ms[known], column, of)
            counts.append(below.sum(axis=0).astype(int))
            found.append((above, below))
        compared = self.lots.ratio(found[0], found[1])
        total = max(int(sum(count.sum() for count in counts)), 1)
        lines = []
        for at, label in enumerate(cut.labels):
            sizes = (int(counts[0][at]), int(counts[1][at]))
            enough = min(sizes) >= LEAST_TRANSFERS
            share_pct = 100 * sum(sizes) / total
            lines.append(Line(label, compared[at] if enough else None, sizes, share_pct))
        unknown = int(np.count_nonzero(place < 0))
        note = f"Of {unknown:,} transfers it is not known." if unknown else ""
        title = f"Mean latency by {cut.title}"
        return Table(key, title, paper, f"up to, {cut.title}", "ms", lines, note)

    def _neighbours(self, other: int) -> Table:
        """The base's transfers that began beside one of the other arm, against beside its own."""
        rows = self.transfers
        order = np.lexsort((rows.start_us, rows.prefix))
        before, after = order[:-1], order[1:]
        ends_us = rows.start_us[before] + rows.latency_us[before]
        beside = (rows.prefix[before] == rows.prefix[after]) & (ends_us > rows.start_us[after])
        of_base = beside & (rows.arm[after] == 0)
        near = [after[of_base & (rows.arm[before] == arm)] for arm in (0, other)]
        place = np.empty(rows.count, dtype=np.int64)
        place[self.sides[0].index] = np.arange(self.sides[0].index.size)
        sides = [self.sides[0].only(place[which]) for which in near]
        lines = []
        short = [
            side.only(np.flatnonzero(side.of(rows.segments) <= buckets.SHORT_SEGMENTS))
            for side in sides
        ]
        for label, some in (
            ("mean", sides),
            (f"mean, at most {buckets.SHORT_SEGMENTS} segments", short),
        ):
            sizes = (some[0].lot.size, some[1].lot.size)
            lines.append(Line(label, self._mean(some[0], some[1]), sizes))
        base, exp = rows.arms[0], rows.arms[other]
        note = (
            f"Transfers of {base} that began while another of the same prefix was under way: of "
            f"{base} (left) or of {exp} (right). Below 0: {exp} slows {base} down."
        )
        if not near[1].size:
            note = (
                f"No transfer of {base} ran beside one of {exp} of the same prefix: each prefix "
                "had one arm at a time, so that these records do not tell what one arm does to "
                "the other on a shared path."
            )
            lines = []
        return Table("neighbours", f"What {exp} does to {base}", "fairness", "", "ms", lines, note)


def percent(share: float) -> str:
    """`0.999` is `99.9 %`."""
    return f"{100 * share:g} %"
