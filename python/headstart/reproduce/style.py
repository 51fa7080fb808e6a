"""How the figures look: on white, each series with a mark of its own."""

from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#16679c", "#c2571a", "#2e7d4f", "#8e44ad", "#5d6670", "#b03060")
"""By series, told apart in print and with colour-blind eyes by the marks, too."""

MARKS = ("o", "s", "^", "D", "v", "x")

_STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.prop_cycle": mpl.cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "grid.color": "#e9ecef",
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}


@contextmanager
def drawn(size_in: tuple[float, float]) -> Iterator[Figure]:
    """An empty figure in this style."""
    with mpl.rc_context(_STYLE):
        yield Figure(figsize=size_in)


def line(
    axes: Axes, number: int, x: object, y: object, label: str, *, error: object = None
) -> None:
    """Series `number` as line and marks, with error bars where `error` is given."""
    axes.errorbar(
        x,
        y,
        yerr=error,
        marker=MARKS[number % len(MARKS)],
        color=COLOURS[number % len(COLOURS)],
        capsize=2,
        label=label,
    )


def no_data(axes: Axes, words: str = "nothing was measured") -> None:
    """Says so, in the place of a plot."""
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes)
