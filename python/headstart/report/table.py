"""The table of the page: one row a cell of the results document, its numbers in words."""

from dataclasses import dataclass
from typing import Any

from headstart.report import words
from headstart.report.series import NATIVE, CaseKey, Series
from headstart.results import Results


@dataclass(frozen=True)
class Row:
    """One start-up in one case. All texts are ready to be shown."""

    label: str
    colour: str
    native: bool
    median_ms: str
    spread_ms: str
    ratio_to_native: str
    ratio_to_limit: str
    retransmitted: str
    dropped: str
    n: str
    exit: str
    note: str


@dataclass(frozen=True)
class Glance:
    """A case in a few words: the start-up that is clearly faster than native, or that none is."""

    label: str
    colour: str
    median_ms: str
    verdict: str
    against: str


def rows_of(results: Results, case: CaseKey, series: list[Series]) -> list[Row]:
    """The rows of one case, in the order of `series`."""
    cells = _cells(results, case)
    return [_row(one, cells[one.startup, one.on]) for one in series if _key(one) in cells]


def glance_of(results: Results, case: CaseKey, series: list[Series]) -> Glance | None:
    """The start-up with the least median time; native cubic where none is clearly faster.

    Clearly faster: nine of ten of its transfers took less time than nine of ten of native cubic's.
    None where no transfer is valid.
    """
    cells = _cells(results, case)
    measured = [one for one in series if cells.get(_key(one), {}).get("fct_ms")]
    if not measured:
        return None
    best = min(measured, key=lambda one: cells[_key(one)]["fct_ms"]["median"])
    verdict = "is fastest"
    native = next((one for one in measured if one.startup == NATIVE and one.on == best.on), None)
    if native is not None:
        clear = cells[_key(best)]["fct_ms"]["p90"] < cells[_key(native)]["fct_ms"]["p10"]
        if not clear:
            best, verdict = native, "– none is clearly faster"
    cell = cells[_key(best)]
    against = [f"{words.ratio(cell.get('ratio_to_limit'))} × the path’s limit"]
    if native not in (None, best):
        against.insert(0, f"{words.ratio(cell.get('ratio_to_native'))} × native cubic")
    return Glance(
        label=best.label,
        colour=best.colour,
        median_ms=words.milliseconds(cell["fct_ms"]["median"]),
        verdict=verdict,
        against=", ".join(against),
    )


def _key(one: Series) -> tuple[str, str]:
    return one.startup, one.on


def _cells(results: Results, case: CaseKey) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (cell["startup"], cell["on"]): cell
        for cell in results.document["cells"]
        if CaseKey.of(cell) == case
    }


def _row(one: Series, cell: dict[str, Any]) -> Row:
    fct = cell.get("fct_ms") or {}
    spread = words.NOTHING
    if fct:
        spread = f"{words.milliseconds(fct['p10'])} – {words.milliseconds(fct['p90'])}"
    return Row(
        label=one.label,
        colour=one.colour,
        native=one.startup == NATIVE,
        median_ms=words.milliseconds(fct.get("median")),
        spread_ms=spread,
        ratio_to_native=words.ratio(cell.get("ratio_to_native")),
        ratio_to_limit=words.ratio(cell.get("ratio_to_limit")),
        retransmitted=_extremes(cell.get("retransmitted_pkts")),
        dropped=_extremes(cell.get("router_drops")),
        n=str(cell["n"]),
        exit=_exit(cell.get("exit")),
        note=_note(cell),
    )


def _extremes(extremes: dict[str, Any] | None) -> str:
    """`0` where all are 0, else `0, at most 3`."""
    if extremes is None:
        return words.NOTHING
    median, most = words.count(extremes["median"]), words.count(extremes["max"])
    return median if median == most else f"{median}, at most {most}"


def _exit(ended: dict[str, Any] | None) -> str:
    if ended is None:
        return words.NOTHING
    window = ended.get("cwnd_pkts")
    return ended["why"] if window is None else f"{ended['why']}, window {words.count(window)}"


def _note(cell: dict[str, Any]) -> str:
    if cell["n"] == 0:
        return "no valid transfer"
    if cell["invalid"]:
        return f"{cell['invalid']} left out as invalid"
    return "" if cell["valid"] else "not valid"
