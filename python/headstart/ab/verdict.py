"""One sentence that a person can act on, and what it does not say."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from headstart.ab.checks import Checked, State
from headstart.ab.tables import Line, Table

LEVEL = 0.05
"""Below it a difference counts: of the mean latency as it is, of all else after Holm's correction."""

RETRANSMISSION_POINTS = 1.0
TIMEOUT_POINTS = 1.0
"""So many more of 100 are harm. The paper calls 0.67 points more of bytes sent again modest (SlowDC,
Table 8)."""

ALWAYS_UNSAID = (
    "What users felt: latency is measured at the server, from the first byte sent to the last byte's "
    "acknowledgement; connection set-up, the server's own time and the page's rendering are not in it.",
    "Other destinations, other hours, other loads than those of these records.",
    "What other traffic at the same bottlenecks lost: only connections that were recorded are seen.",
)
BY_PREFIX_UNSAID = (
    "What all would see if all had the arm: the arms may share links behind the prefixes, and what one of them "
    "adds of load is felt by both."
)


class Advice(StrEnum):
    """What to do with the arm."""

    TAKE = "take"
    KEEP = "keep"
    UNDECIDED = "undecided"
    WEIGH = "weigh"
    INVALID = "invalid"
    SOUND = "sound"
    UNSOUND = "unsound"


@dataclass(frozen=True)
class Verdict:
    """Of one arm against the base."""

    advice: Advice
    sentence: str
    unsaid: tuple[str, ...]


def judge(base: str, other: str, tables: list[Table], checked: Checked, *, alike: bool) -> Verdict:
    """The verdict on `other`. The tables' corrected probabilities are there already."""
    by_key = {table.key: table for table in tables}
    mean = by_key["latency"].line("mean")
    unsaid = (*ALWAYS_UNSAID, *((BY_PREFIX_UNSAID,) if checked.unit == "prefix" else ()))
    if alike:
        return _aa(tables, checked, unsaid)
    if checked.bad:
        why = "; ".join(
            f"{check.title[0].lower()}{check.title[1:]}: {check.words}" for check in checked.bad
        )
        sentence = f"Do not act on this comparison of {other} with {base}: the experiment is not sound ({why})."
        return Verdict(Advice.INVALID, sentence, unsaid)
    if mean is None or mean.comparison is None or not np.isfinite(mean.comparison.p):
        sentence = f"Nothing can be said of {other} against {base}: there are too few transfers."
        return Verdict(Advice.UNDECIDED, sentence, unsaid)
    unknown = [check.title for check in checked.checks if check.state is State.WARNING]
    if unknown:
        unsaid = (*unsaid, "What the warnings above are about: " + "; ".join(unknown).lower() + ".")
    return _decide(base, other, mean, by_key, unsaid, checked.samples)


def _decide(  # noqa: PLR0917 -- what the sentence is made of
    base: str,
    other: str,
    mean: Line,
    tables: dict[str, Table],
    unsaid: tuple[str, ...],
    samples: str,
) -> Verdict:
    found = mean.comparison
    harms = [words for words in map(_harm, _guards(tables)) if words]
    interval = f"{found.low_pct:.1f} to {found.high_pct:.1f} %"
    clear = found.p < LEVEL
    if clear and found.diff > 0:
        gain = f"mean latency falls by {found.diff:,.1f} ms ({found.diff_pct:.1f} %, 95 % interval {interval})"
        if not harms:
            again = _sent_again(tables)
            sentence = (
                f"Take {other} instead of {base}: {gain}, and no harm can be told in the tail or in short "
                f"transfers{again}."
            )
            return Verdict(Advice.TAKE, sentence, unsaid)
        sentence = f"Weigh {other} against {base}: {gain}, but {'; '.join(harms)}."
        return Verdict(Advice.WEIGH, sentence, unsaid)
    if clear:
        sentence = (
            f"Keep {base}: under {other} mean latency rises by {-found.diff:,.1f} ms "
            f"({-found.diff_pct:.1f} %, 95 % interval {-found.high_pct:.1f} to {-found.low_pct:.1f} %)"
            + (f", and {'; '.join(harms)}" if harms else "")
            + "."
        )
        return Verdict(Advice.KEEP, sentence, unsaid)
    if harms:
        sentence = (
            f"Keep {base}: {other} gains nothing that can be told from chance in mean latency ({interval}), and "
            f"{'; '.join(harms)}."
        )
        return Verdict(Advice.KEEP, sentence, unsaid)
    sentence = (
        f"Undecided: {other} takes {found.diff_pct:.1f} % off the mean latency of {base}, but anything from "
        f"{interval} would fit these records; {_more(found.low_pct, found.high_pct, found.diff_pct, samples)}."
    )
    return Verdict(Advice.UNDECIDED, sentence, unsaid)


def _more(low_pct: float, high_pct: float, diff_pct: float, samples: str) -> str:
    """How many more samples would tell a difference like this one."""
    half = (high_pct - low_pct) / 2
    if abs(diff_pct) * 20 < half:
        return f"a difference of less than {half:.1f} % would not have been seen"
    times = (half / abs(diff_pct)) ** 2
    return f"about {times:.1f} times as many {samples} would tell a difference of that size"


def _guards(tables: dict[str, Table]) -> list[tuple[str, str, float, Line | None]]:
    """What may not get worse."""
    latency, again = tables["latency"], tables["sent_again"]
    return [
        ("the 99 % quantile of latency", "ms", 0.0, latency.line("99 %")),
        ("the 99.9 % quantile of latency", "ms", 0.0, latency.line("99.9 %")),
        ("the mean of transfers of at most 3 segments", "ms", 0.0, tables["short"].line("mean")),
        ("the bytes sent again", "%", RETRANSMISSION_POINTS, again.line("bytes sent again")),
        (
            "the timeouts in 100 transfers",
            "",
            TIMEOUT_POINTS,
            again.line("timeouts in 100 transfers"),
        ),
        (
            "the base's transfers beside one of this arm",
            "ms",
            0.0,
            tables["neighbours"].line("mean") if tables["neighbours"].lines else None,
        ),
    ]


def _harm(guard: tuple[str, str, float, Line | None]) -> str:
    what, unit, margin, line = guard
    if line is None or line.comparison is None:
        return ""
    found = line.comparison
    if not (line.p_holm < LEVEL and -found.diff > margin):
        return ""
    if unit == "ms":
        return f"{what} rises by {-found.diff:,.1f} ms ({-found.diff_pct:.1f} %)"
    unit = f" {unit}" if unit else ""
    return f"{what} rise from {found.base:.2f} to {found.other:.2f}{unit}"


def _sent_again(tables: dict[str, Table]) -> str:
    line = tables["sent_again"].line("bytes sent again")
    if line is None or line.comparison is None:
        return ""
    found = line.comparison
    return f"; {found.other:.2f} % of the bytes are sent again instead of {found.base:.2f} %"


def _aa(tables: list[Table], checked: Checked, unsaid: tuple[str, ...]) -> Verdict:
    """Arms that are alike have to look alike."""
    lines = [line for table in tables for line in table.lines if line.comparison is not None]
    known = [line for line in lines if np.isfinite(line.comparison.p)]
    raw = sum(line.comparison.p < LEVEL for line in known)
    left = [line for line in known if line.p_holm < LEVEL]
    counted = f"{raw} of {len(known)} comparisons below p = {LEVEL:g}, about {LEVEL * len(known):.1f} are expected"
    if checked.bad or left:
        why = [check.title for check in checked.bad] + [line.label for line in left]
        sentence = f"Do not trust an experiment on this traffic yet: arms that are alike differ ({'; '.join(why)}; {counted})."
        return Verdict(Advice.UNSOUND, sentence, unsaid)
    widest = next(
        (
            (line.comparison.high_pct - line.comparison.low_pct) / 2
            for table in tables
            if table.key == "latency"
            for line in table.lines
            if line.label == "mean" and line.comparison is not None
        ),
        float("nan"),
    )
    sentence = (
        f"Alike arms look alike: no difference is left after correction ({counted}). An experiment of this size "
        f"tells differences of the mean latency above {widest:.1f} %."
    )
    return Verdict(Advice.SOUND, sentence, unsaid)
