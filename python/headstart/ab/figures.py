"""The paper's figures for one's own traffic, and the tables of quantiles drawn."""

import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from headstart.ab import Analysis, Contrast
from headstart.ab.tables import Line, Table
from headstart.reproduce.style import COLOURS, MARKS, drawn, no_data

PNG_DPI = 160


@dataclass(frozen=True)
class Drawn:
    """A figure as files hold it."""

    name: str
    title: str
    caption: str
    png: bytes
    pdf: bytes


def draw_all(analysis: Analysis) -> list[Drawn]:
    """Every figure, in the paper's order."""
    figures = [
        _drawn(
            "latency",
            "Latency of all transfers",
            "Look for a line that lies to the left of another: that arm is faster at that quantile.",
            (9.0, 3.4),
            lambda figure: _latencies(figure, analysis),
        )
    ]
    for contrast in analysis.contrasts:
        suffix = f"-{_safe(contrast.other)}" if len(analysis.contrasts) > 1 else ""
        against = f"{contrast.other} against {analysis.base}"
        figures += [
            _drawn(
                f"table3{suffix}",
                f"Gain by quantile, {against} (Tables 3, 4, 5 and 9)",
                "Above the line the arm is faster. Bars are 95 % intervals: one that crosses the line tells nothing.",
                (11.0, 3.2),
                lambda figure, contrast=contrast: _quantiles(figure, contrast),
            ),
            _drawn(
                f"figure5{suffix}",
                f"Gain by RTT, bandwidth and BDP, {against} (Figure 5)",
                "Above: ms gained, and the bucket's share of the transfers. Below: the same in percent, with 95 % "
                "intervals. Buckets are named by their upper ends.",
                (12.0, 5.0),
                lambda figure, contrast=contrast: _buckets(
                    figure, contrast, ["rtt", "bandwidth", "bdp"]
                ),
            ),
            _drawn(
                f"figure6{suffix}",
                f"Gain by bandwidth, the slower half of the prefixes, {against} (Figure 6)",
                "Does a slow path pay for it? The paper looked at a data centre of slow clients; these are yours.",
                (6.0, 4.6),
                lambda figure, contrast=contrast: _buckets(figure, contrast, ["slow_bandwidth"]),
            ),
            _drawn(
                f"figure7{suffix}",
                f"Gain by response size, {against} (Figure 7)",
                "A larger first window gains nothing below the smaller one, most where it saves rounds.",
                (6.5, 4.6),
                lambda figure, contrast=contrast: _buckets(figure, contrast, ["size"]),
            ),
        ]
    figures.append(
        _drawn(
            "figure8",
            "The arms' inputs (Figure 8)",
            "Lines that do not lie on each other: the arms had other clients or other transfers, and the "
            "comparison is not of the arms alone.",
            (12.0, 6.0),
            lambda figure: _inputs(figure, analysis),
        )
    )
    return figures


def _drawn(
    name: str,
    title: str,
    caption: str,
    size_in: tuple[float, float],
    draw: Callable[[Figure], None],
) -> Drawn:
    with drawn(size_in) as figure:
        draw(figure)
        files = []
        for kind in ("png", "pdf"):
            held = io.BytesIO()
            # Without the date the same records make the same bytes.
            extra = {"CreationDate": None} if kind == "pdf" else {}
            figure.savefig(held, format=kind, dpi=PNG_DPI, metadata=extra)
            files.append(held.getvalue())
    return Drawn(name, title, caption, files[0], files[1])


def _safe(name: str) -> str:
    return "".join(sign if sign.isalnum() else "_" for sign in name)


def _cdf(axes: Axes, number: int, edges: np.ndarray, counts: np.ndarray, label: str) -> None:
    total = counts.sum()
    if total:
        share = np.concatenate([[0, 0], counts.cumsum() / total, [1]])
        axes.plot(
            np.concatenate([[edges[0] / 2], edges, [2 * edges[-1]]]),
            share,
            color=COLOURS[number % len(COLOURS)],
            linestyle=("-", "--", "-.", ":")[number % 4],
            label=label,
        )


def _logarithmic(axes: Axes, low: float, high: float) -> None:
    """A logarithmic axis with numbers that a reader can read, however narrow it is."""
    low, high = (low / 2, high * 2) if high < 2 * low else (low, high)
    few = np.log10(high / low) < 2.5  # noqa: PLR2004 (decades that leave room for 2 and 5)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(f"{value:g}")))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _latencies(figure: Figure, analysis: Analysis) -> None:
    body, tail = figure.subplots(1, 2)
    edges, arms = analysis.latencies
    for number, (arm, counts) in enumerate(zip(analysis.arms, arms, strict=True)):
        _cdf(body, number, edges, counts, arm)
        beyond = 1 - counts.cumsum() / max(counts.sum(), 1)
        shown = beyond > 0
        tail.plot(
            edges[1:][shown],
            beyond[shown],
            color=COLOURS[number % len(COLOURS)],
            linestyle=("-", "--", "-.", ":")[number % 4],
            label=arm,
        )
    body.set(xlabel="latency (ms)", ylabel="share of the transfers")
    tail.set(yscale="log", xlabel="latency (ms)", ylabel="share that took longer")
    for axes in (body, tail):
        _logarithmic(axes, edges[0], edges[-1])
    body.legend()


def _quantiles(figure: Figure, contrast: Contrast) -> None:
    keys = ("latency", "slowest", "per_prefix", "tail")
    for axes, key in zip(figure.subplots(1, len(keys)), keys, strict=True):
        table = contrast.table(key)
        lines = _known(table)
        axes.set_title(
            "no table" if table is None else f"{table.title} ({table.paper})", fontsize=8
        )
        if not lines:
            no_data(axes, "too few transfers")
            continue
        _gains(axes, lines)
        axes.set_xticks(
            range(len(lines)), [line.label.removesuffix(" %") for line in lines], rotation=45
        )
        axes.set(xlabel="quantile (%)", ylabel="gain (% of the base)")


def _known(table: Table | None) -> list[Line]:
    return [line for line in table.lines if line.comparison is not None] if table else []


def _gains(axes: Axes, lines: list[Line], colour: str = COLOURS[1]) -> None:
    """Gains in percent, with intervals."""
    gains = np.array([line.comparison.diff_pct for line in lines])
    low = np.array([line.comparison.low_pct for line in lines])
    high = np.array([line.comparison.high_pct for line in lines])
    axes.errorbar(
        range(len(lines)),
        gains,
        yerr=np.nan_to_num(np.maximum([gains - low, high - gains], 0)),
        fmt=MARKS[0],
        color=colour,
        capsize=2,
    )
    axes.axhline(0, color="#5d6670", linewidth=0.8)


def _buckets(figure: Figure, contrast: Contrast, keys: list[str]) -> None:
    """A column for each table: above the gain in ms, below in percent with its interval."""
    places = np.atleast_2d(figure.subplots(2, len(keys), sharex="col", squeeze=False))
    for (above, below), key in zip(places.T, keys, strict=True):
        table = contrast.table(key)
        lines = _known(table)
        if not lines:
            no_data(above, "not known, or too few transfers")
            below.set_axis_off()
            continue
        gains = [line.comparison.diff for line in lines]
        bars = above.bar(range(len(lines)), gains, color=COLOURS[0], alpha=0.7)
        above.bar_label(bars, [f"{line.share_pct:.1f}%" for line in lines], fontsize=6, padding=2)
        above.axhline(0, color="#5d6670", linewidth=0.8)
        above.set(ylabel="gain (ms)")
        above.margins(y=0.15)
        _gains(below, lines)
        below.set_xticks(
            range(len(lines)), [_short(line.label) for line in lines], rotation=45, fontsize=7
        )
        below.set(xlabel=table.first.removeprefix("up to, "), ylabel="gain (% of the base)")


def _short(label: str) -> str:
    sign, number = (label[0], label[1:]) if label.startswith(">") else ("", label)
    value = float(number)
    return f"{sign}{value / 1000:g}k" if value >= 10_000 else f"{sign}{value:.4g}"  # noqa: PLR2004 (five digits)


def _inputs(figure: Figure, analysis: Analysis) -> None:
    places = figure.subplots(2, 4).ravel()
    for axes, one in zip(places, analysis.checked.inputs, strict=False):
        if not one.histograms:
            no_data(axes, f"{one.title}: not known")
            continue
        for number, (arm, counts) in enumerate(zip(analysis.arms, one.histograms, strict=True)):
            _cdf(axes, number, one.edges, counts, arm)
        axes.set(xlabel=one.title, ylabel="share")
        axes.set_ylim(-0.03, 1.03)
        _logarithmic(axes, one.edges[0], one.edges[-1])
    time = places[len(analysis.checked.inputs)]
    parts = analysis.activity.shape[1]
    minutes = (analysis.ended_us - analysis.began_us) / 60e6
    for number, (arm, counts) in enumerate(zip(analysis.arms, analysis.activity, strict=True)):
        time.plot(
            np.arange(parts) * minutes / parts,
            counts,
            drawstyle="steps-post",
            color=COLOURS[number % len(COLOURS)],
            label=arm,
        )
    time.set(xlabel="minutes since the first", ylabel="transfers", ylim=(0, None))
    for axes in places[len(analysis.checked.inputs) + 1 :]:
        axes.set_axis_off()
    places[0].legend()
