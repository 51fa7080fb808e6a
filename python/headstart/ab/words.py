"""Numbers as a reader sees them, on the terminal and on the page."""

import math
from datetime import UTC, datetime

from headstart.ab.resample import Comparison
from headstart.ab.tables import Line, Table

NOTHING = "–"


def value(number: float) -> str:
    """`1213.4` is `1,213`; of smaller ones three digits are kept."""
    if not math.isfinite(number):
        return NOTHING
    size = abs(number)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2  # noqa: PLR2004 (three digits)
    return f"{number:,.{digits}f}".replace("-", "−")


def probability(p: float) -> str:
    """`0.00012` is `0.0001`; below that `<0.0001`."""
    if not math.isfinite(p):
        return NOTHING
    return "<0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"  # noqa: PLR2004


def interval(low: float, high: float) -> str:
    """`2.1 to 9.9`."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return NOTHING
    return f"{value(low)} to {value(high)}"


def cells(line: Line) -> list[str]:
    """Other, base, difference, percent, interval of the percent, corrected probability."""
    found: Comparison | None = line.comparison
    if found is None:
        return ["too few", "", "", "", "", ""]
    return [
        value(found.other),
        value(found.base),
        value(found.diff),
        value(found.diff_pct),
        interval(found.low_pct, found.high_pct),
        probability(line.p_holm),
    ]


HEADS = ("diff", "%", "95 % interval, %", "p, corrected")


def moment(us: int) -> str:
    """`2026-11-21 10:50 UTC`."""
    return datetime.fromtimestamp(us / 1e6, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")


def heading(table: Table) -> str:
    """`Latency (Table 3), ms`."""
    return f"{table.title} ({table.paper}), {table.unit}"
