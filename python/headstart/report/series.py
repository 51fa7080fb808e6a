"""Which transfers belong together, in which order they are shown, and in which colour."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle
from typing import Any, TypeVar

import polars as pl

from headstart.results import Results

T = TypeVar("T")

NATIVE = "cubic"
"""The start-up that all others are held against."""

# Okabe and Ito's palette for all kinds of colour vision, a little lighter or darker where that is
# needed to read it on white and on black. The common start-ups are the same in every report.
_KNOWN_COLOURS = {
    "cubic": "#7d838c",
    "bbr": "#009e73",
    "su_standard": "#d55e00",
    "su_fast_start": "#1f85c7",
}
_OTHER_COLOURS = ("#c7669a", "#d39200", "#56b4e9", "#8f6fd1", "#a6761d", "#4c9a2a")


@dataclass(frozen=True)
class Series:
    """The transfers of one start-up on one ground: one line in every figure."""

    startup: str
    on: str
    label: str
    colour: str

    def rows(self, table: pl.DataFrame) -> pl.DataFrame:
        """The rows of `table` that belong to it."""
        return table.filter((pl.col("startup") == self.startup) & (pl.col("on") == self.on))


@dataclass(frozen=True)
class CaseKey:
    """One case of the run: what was asked, the size of the transfer, and the path's name if any."""

    kind: str
    bytes: int
    path: str | None = None

    @classmethod
    def of(cls, cell: dict[str, Any]) -> "CaseKey":
        """The case of a cell of the document."""
        return cls(cell["case"], cell["bytes"], cell.get("path"))

    @property
    def anchor(self) -> str:
        """Its name within the page."""
        name = f"{self.kind}-{self.bytes}"
        return name if self.path is None else f"{self.path}-{name}"

    def rows(self, table: pl.DataFrame) -> pl.DataFrame:
        """The rows of `table` that belong to it."""
        return table.filter(
            (pl.col("case") == self.kind)
            & (pl.col("bytes") == self.bytes)
            & pl.col("path").eq_missing(pl.lit(self.path, dtype=pl.String))
        )


def series_of(results: Results) -> list[Series]:
    """All series of a run, in the order of the scenario."""
    pairs = _distinct((cell["startup"], cell["on"]) for cell in results.document["cells"])
    listed = results.scenario["compare"]["startups"]
    pairs.sort(key=lambda pair: listed.index(pair[0]) if pair[0] in listed else len(listed))
    colours = _colours(_distinct(startup for startup, _ in pairs))
    grounds = {on for _, on in pairs}
    return [
        Series(
            startup=startup,
            on=on,
            label=startup if len(grounds) == 1 else f"{startup} on {on}",
            colour=colours[startup],
        )
        for startup, on in pairs
    ]


def cases_of(results: Results) -> list[CaseKey]:
    """All cases of a run, in the order of the scenario."""
    measured = _distinct(CaseKey.of(cell) for cell in results.document["cells"])
    listed = [
        CaseKey(case["kind"], case["bytes"], on["name"])
        for on in results.scenario["paths"]
        for case in on["cases"]
    ]
    return sorted(measured, key=lambda key: listed.index(key) if key in listed else len(listed))


def typical_repeat(transfers: pl.DataFrame, recorded: pl.DataFrame) -> int | None:
    """The repeat whose time is nearest to the median, of the valid ones that were recorded.

    Both tables hold the rows of one series in one case. None if there is no such transfer.
    """
    valid = transfers.filter(pl.col("valid"))
    candidates = valid.filter(pl.col("repeat").is_in(recorded["repeat"].unique().to_list()))
    if candidates.is_empty():
        return None
    distance = (pl.col("fct_ms") - valid["fct_ms"].median()).abs()
    return candidates.sort(distance, "repeat")["repeat"][0]


def _colours(startups: list[str]) -> dict[str, str]:
    others = cycle(_OTHER_COLOURS)
    return {name: _KNOWN_COLOURS.get(name) or next(others) for name in startups}


def _distinct(items: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(items))
