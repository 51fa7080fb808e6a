"""The experiment itself, before its result: were the arms made as they should, and alike?"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from headstart.ab.records import Source, Transfers
from headstart.ab.resample import Bins, Comparison, Floats, Lots, holm

RATIO_LEVEL = 0.001
"""Below it the sample ratio is wrong. As Kohavi, Tang and Xu have it ("Trustworthy Online Controlled
Experiments", 2020, chapter 21): an alarm here throws the whole result away."""

INPUTS_LEVEL = 0.01
"""Below it, corrected for the number of inputs, the arms' inputs differ."""

MIXED_SHARE = 0.01
"""Of prefixes with several arms; with fewer, the assignment was by prefix."""

FEW_PREFIXES = 20
"""With fewer in an arm the intervals are not to be relied on."""

UNFINISHED_POINTS = 0.5
"""Of 100 transfers. So many more were cut off in an arm: its slowest may be missing."""

LOST_SHARE = 0.01
"""Of the records. With more of them lost the rest is a selection."""

INPUT_SHARES = (0.1, 0.5, 0.9, 0.99)


_NAMES = {"prefix": "prefixes", "slice": "slices of time"}


class State(StrEnum):
    """How a check came out."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    UNKNOWN = "not known"


@dataclass(frozen=True)
class Check:
    """One check, in words."""

    key: str
    title: str
    state: State
    words: str
    p: float | None = None


@dataclass(frozen=True)
class Input:
    """One quantity that no arm may move: its quantiles by arm.

    Attributes:
        title: With the unit.
        quantiles: A row for each arm.
        apart: The greatest distance between the distributions, of all arms to the base.
        p: Of that by chance.
        is_input: False: an arm may move it, so it is shown and not tested.
        histograms: By arm, for the figure.
        edges: Of the histograms.
    """

    key: str
    title: str
    quantiles: list[list[float]]
    apart: float
    p: float
    is_input: bool
    histograms: list[Floats] = field(repr=False)
    edges: Floats = field(repr=False)


@dataclass(frozen=True)
class Checked:
    """All that was checked.

    Attributes:
        unit: What was assigned: "prefix", "connection" or "slice" of time.
        by_arm: Transfers, connections, prefixes and bytes of each arm.
    """

    unit: str
    by_arm: list[dict[str, int | float | str]]
    checks: list[Check]
    inputs: list[Input]

    @property
    def samples(self) -> str:
        """What is drawn again as a whole."""
        return _NAMES["slice" if self.unit == "slice" else "prefix"]

    @property
    def bad(self) -> list[Check]:
        """Those that forbid to act on the result."""
        return [check for check in self.checks if check.state is State.BAD]


def check(  # noqa: PLR0917 -- what is checked, and what it is held against
    transfers: Transfers,
    source: Source,
    lots: Lots,
    shares_pct: dict[str, float],
    bandwidth: tuple[Floats, bool],
    lost: tuple[int, int] | None,
    *,
    alike: bool,
) -> Checked:
    """Checks all.

    Args:
        transfers: The records.
        source: Their files.
        lots: The draws.
        shares_pct: Of the arms, as configured.
        bandwidth: By prefix in kbit/s, and whether it was measured without these transfers.
        lost: Records that the daemon says it lost, and how many it made.
        alike: The arms have the same (A/A).
    """
    members = _members(transfers, transfers.cluster, transfers.clusters)
    mixed = float(np.mean(members.sum(axis=0) > 1))
    unit = "prefix" if mixed < MIXED_SHARE else "connection"
    if transfers.slice_us is not None:
        unit = "slice"
    inputs = _inputs(transfers, lots, *bandwidth, by_prefix=unit == "prefix")
    checks = [
        *_ratios(transfers, members, shares_pct, unit),
        _alike_inputs(inputs),
        *_few(transfers, members, _NAMES["slice" if unit == "slice" else "prefix"]),
        _unfinished(transfers, lots),
        _lost(source, lost),
        _treatment(transfers, alike=alike),
    ]
    return Checked(unit, _by_arm(transfers), checks, inputs)


def _members(transfers: Transfers, cluster: NDArray, count: int) -> NDArray[np.bool_]:
    """Which arm had a transfer of which prefix, or in which slice."""
    return np.array(
        [
            np.bincount(cluster[transfers.arm == arm], minlength=count) > 0
            for arm in range(len(transfers.arms))
        ]
    )


def _by_arm(transfers: Transfers) -> list[dict[str, int | float | str]]:
    members = _members(transfers, transfers.prefix, len(transfers.prefixes))
    rows = []
    for arm, name in enumerate(transfers.arms):
        own = transfers.arm == arm
        rows.append(
            {
                "arm": name,
                "prefixes": int(members[arm].sum()),
                "connections": int(np.count_nonzero(own & transfers.first)),
                "transfers": int(np.count_nonzero(own)),
                "unfinished": int(np.count_nonzero(transfers.cut_arm == arm)),
                "bytes": int(transfers.bytes[own].sum()),
            }
        )
    return rows


def _ratios(
    transfers: Transfers, members: NDArray, shares_pct: dict[str, float], unit: str
) -> list[Check]:
    """The arms' shares: of what was assigned, and of the transfers."""
    wanted = np.array([shares_pct[arm] for arm in transfers.arms]) / 100
    checks = []
    if unit in _NAMES:
        seen = members.sum(axis=1)
        p = float(stats.chisquare(seen, wanted * seen.sum()).pvalue)
        checks.append(_ratio(_NAMES[unit], seen, wanted, p, transfers.arms, bad=State.BAD))
        several = int(np.count_nonzero(members.sum(axis=0) > 1))
        if several:
            words = f"{several:,} {_NAMES[unit]} have more than one arm: was the salt or a share changed?"
            checks.append(Check("mixed", f"One arm a {unit}", State.WARNING, words))
    first = transfers.first
    title, chosen = ("connections", first) if first.any() else ("transfers", np.ones_like(first))
    arm, cluster = transfers.arm[chosen], transfers.cluster[chosen]
    seen = np.bincount(arm, minlength=len(transfers.arms))
    p = _clustered(arm, cluster, wanted, transfers.clusters)
    # How often the clients of a prefix come is not assigned: an arm may bring them back.
    bad = State.WARNING if unit in _NAMES else State.BAD
    checks.append(_ratio(title, seen, wanted, p, transfers.arms, bad=bad))
    return checks


def _ratio(
    what: str, seen: NDArray, wanted: Floats, p: float, arms: tuple[str, ...], *, bad: State
) -> Check:
    state = State.UNKNOWN if not np.isfinite(p) else bad if p < RATIO_LEVEL else State.GOOD
    parts = ", ".join(
        f"{arm} {count:,} ({100 * count / max(seen.sum(), 1):.2f} % of {100 * share:g} %)"
        for arm, count, share in zip(arms, seen, wanted, strict=True)
    )
    return Check(
        f"ratio_{what.split(maxsplit=1)[0]}",
        f"Sample ratio of {what}",
        state,
        f"{parts}; p = {p:.3g}",
        p,
    )


def _clustered(arm: NDArray, cluster: NDArray, wanted: Floats, clusters: int) -> float:
    """Chi-square of the arms' counts, with the variance from prefix to prefix.

    A prefix has as many connections as it has, all of one arm or not: what scatters is the prefix's
    excess over its share.
    """
    arms = wanted.size
    flat = np.bincount(cluster.astype(np.int64) * arms + arm, minlength=clusters * arms)
    counts = flat.reshape(clusters, arms).astype(np.float64)
    excess = (counts - counts.sum(axis=1, keepdims=True) * wanted)[:, :-1]
    total, scatter = excess.sum(axis=0), excess.T @ excess
    if np.linalg.matrix_rank(scatter) < arms - 1:
        return float("nan")
    statistic = float(total @ np.linalg.solve(scatter, total))
    return float(stats.chi2.sf(statistic, arms - 1))


@dataclass(frozen=True)
class _Sample:
    """Values by arm, NaN where they are not known, and the lots of their prefixes."""

    key: str
    title: str
    values: list[NDArray]
    lot: list[NDArray]
    scale: float = 1.0
    is_input: bool = True


def _inputs(
    transfers: Transfers, lots: Lots, bandwidth: Floats, independent: bool, *, by_prefix: bool
) -> list[Input]:
    """Of the arms that share prefixes, each has its share of a prefix's transfers: no input."""
    count = len(transfers.prefixes)
    arms = range(len(transfers.arms))
    own = [np.flatnonzero(transfers.arm == arm) for arm in arms]
    prefix = [transfers.prefix[index] for index in own]
    lot = [lots.of_cluster[transfers.cluster[index]] for index in own]
    visits = [np.bincount(one, minlength=count) for one in prefix]
    seen = [np.flatnonzero(one) for one in visits]
    own_bandwidth = [bandwidth[one] for one in prefix]
    rtt_us = [transfers.rtt_us[index] for index in own]
    bdp = [wide * rtt / 8000 for wide, rtt in zip(own_bandwidth, rtt_us, strict=True)]
    samples = (
        _Sample("rtt_ms", "RTT (ms)", rtt_us, lot, scale=1000.0),
        _Sample("bytes", "response size (bytes)", [transfers.bytes[index] for index in own], lot),
        _Sample(
            "transfers_per_prefix",
            "transfers of a prefix",
            [many[which] for many, which in zip(visits, seen, strict=True)],
            # Not tested where they are no clusters: then any lot will do.
            [which % lots.count if not by_prefix else lots.of_cluster[which] for which in seen],
            is_input=by_prefix,
        ),
        _Sample(
            "receiver_window_bytes",
            "receiver's initial window (bytes)",
            [transfers.receiver_window_bytes[index] for index in own],
            lot,
        ),
        _Sample(
            "bandwidth_kbit_per_s",
            "bandwidth of the prefix (kbit/s)",
            own_bandwidth,
            lot,
            is_input=independent,
        ),
        _Sample("bdp_bytes", "bandwidth-delay product (bytes)", bdp, lot, is_input=independent),
    )
    return [_input(lots, sample) for sample in samples]


def _input(lots: Lots, sample: _Sample) -> Input:
    known = [np.isfinite(one) for one in sample.values]
    values = [one[which] for one, which in zip(sample.values, known, strict=True)]
    lot = [one[which] for one, which in zip(sample.lot, known, strict=True)]
    key, title, is_input = sample.key, sample.title, sample.is_input
    if min(one.size for one in values) == 0:
        nothing = [[float("nan")] * len(INPUT_SHARES) for _ in values]
        return Input(key, title, nothing, float("nan"), float("nan"), is_input, [], np.empty(0))
    bins = Bins.over(np.array([end(one) for one in values for end in (np.min, np.max)]))
    histograms = [
        lots.sums(where, None, bins.of(one), bins.edges.size - 1)
        for one, where in zip(values, lot, strict=True)
    ]
    found = [lots.furthest((histograms[0], other)) for other in histograms[1:]]
    apart, p = min(found, key=lambda one: one[1])
    return Input(
        key,
        title,
        [[float(q) / sample.scale for q in np.quantile(one, INPUT_SHARES)] for one in values],
        apart,
        min(1.0, p * len(found)),  # Bonferroni over the arms
        is_input,
        [one.sum(axis=0) for one in histograms],
        bins.edges / sample.scale,
    )


def _alike_inputs(inputs: list[Input]) -> Check:
    tested = [one for one in inputs if one.is_input and np.isfinite(one.p)]
    corrected = dict(zip([one.key for one in tested], holm([one.p for one in tested]), strict=True))
    differ = [one for one in tested if corrected[one.key] < INPUTS_LEVEL]
    title = "The arms' inputs are alike"
    if not tested:
        return Check("inputs", title, State.UNKNOWN, "nothing to compare")
    least = min(corrected.values())
    if not differ:
        names = ", ".join(one.title for one in tested)
        return Check("inputs", title, State.GOOD, f"{names}; least p = {least:.3g}", least)
    words = "; ".join(
        f"{one.title}: {100 * one.apart:.1f} % of one arm lie elsewhere (p = {corrected[one.key]:.3g})"
        for one in differ
    )
    return Check("inputs", title, State.BAD, words, least)


def _few(transfers: Transfers, members: NDArray, samples: str) -> list[Check]:
    title = f"Enough {samples}"
    seen = members.sum(axis=1)
    least = int(seen.min())
    words = f"{least:,} in the arm {transfers.arms[int(seen.argmin())]}"
    if least >= FEW_PREFIXES:
        return [Check("samples", title, State.GOOD, words)]
    words += f": with fewer than {FEW_PREFIXES} the intervals are not to be relied on"
    return [Check("samples", title, State.BAD, words)]


def _unfinished(transfers: Transfers, lots: Lots) -> Check:
    title = "Transfers that were cut off"
    shares, worst = [], None
    cut_lot, lot = lots.of_cluster[transfers.cut_cluster], lots.of_cluster[transfers.cluster]
    sums = []
    for arm in range(len(transfers.arms)):
        cut = lots.sums(cut_lot[transfers.cut_arm == arm])
        whole = lots.sums(lot[transfers.arm == arm])
        sums.append((cut, cut + whole))
        shares.append(100 * float(cut.sum() / (cut + whole).sum()))
    for other in sums[1:]:
        found = lots.ratio(sums[0], other)[0]
        if worst is None or abs(found.diff) > abs(worst.diff):
            worst = found
    words = ", ".join(
        f"{arm} {share:.2f} %" for arm, share in zip(transfers.arms, shares, strict=True)
    )
    return Check("unfinished", title, _unfinished_state(worst), words, worst.p if worst else None)


def _unfinished_state(worst: Comparison | None) -> State:
    if worst is None or 100 * abs(worst.diff) <= UNFINISHED_POINTS:
        return State.GOOD
    return State.WARNING if not worst.p < RATIO_LEVEL else State.BAD


def _lost(source: Source, lost: tuple[int, int] | None) -> Check:
    title = "Records that were lost"
    if source.missing:
        listed = ", ".join(source.missing[:3]) + (", ..." if len(source.missing) > 3 else "")  # noqa: PLR2004 (as many as are listed)
        words = f"{len(source.missing)} files are missing between those that are there: {listed}"
        return Check("lost", title, State.WARNING, words)
    lost = lost or source.lost
    if lost is None:
        words = "no file is missing; what the kernel or a full disk lost, some file does not say, but `headstart status --json`: give it with --status"
        return Check("lost", title, State.UNKNOWN, words)
    gone, made = lost
    share = gone / max(gone + made, 1)
    state = State.GOOD if not gone else State.BAD if share > LOST_SHARE else State.WARNING
    return Check("lost", title, state, f"{gone:,} of {gone + made:,} ({100 * share:.3g} %)")


def _treatment(transfers: Transfers, *, alike: bool) -> Check:
    """What the arms had: one congestion control each, and not all the same."""
    title = "What the arms had"
    parts, main, unclean = [], {}, []
    for arm in transfers.arms:
        rows = transfers.controls.filter(arm=arm)
        total = rows["transfers"].sum()
        top = rows.row(0, named=True)
        main[arm] = (top["control"], top["initial_cwnd_pkts"])
        window = (
            ""
            if top["initial_cwnd_pkts"] is None
            else f", initial window {top['initial_cwnd_pkts']:g}"
        )
        parts.append(f"{arm}: {top['control']}{window}")
        if top["transfers"] < 0.99 * total:
            unclean.append(f"{arm}: {100 * (1 - top['transfers'] / total):.1f} % had another one")
    words = "; ".join(parts)
    if unclean:
        words += (
            f". {'; '.join(unclean)}: the application's choice, a refusal, or a rule turned off?"
        )
        return Check("treatment", title, State.WARNING, words)
    if not alike and len(set(main.values())) == 1:
        words += (
            ". All had the same congestion control and initial window: is this an A/A run (--aa)?"
        )
        return Check("treatment", title, State.WARNING, words)
    return Check("treatment", title, State.GOOD, words)
