"""The figures: Plotly's own JSON, without colours of the page, which the browser adds by its theme.

Every figure is a dict with `data` (traces) and `layout`. Times are in ms, amounts in kB (1000
bytes), windows in packets.
"""

from dataclasses import dataclass
from typing import Any

import polars as pl

from headstart.report import words
from headstart.report.series import NATIVE, CaseKey, Series, typical_repeat
from headstart.results import Results

Figure = dict[str, Any]
Trace = dict[str, Any]

MOST_MARKED_PACKETS = 2000
"""A transfer of more packets is drawn as a line; only its unusual packets get marks."""

WIDEST_PX = 12.0
"""Lines that may lie on each other get narrower from first to last, so that all are seen."""

_HOVER_PACKET = "%{fullData.name}<br>%{x:.1f} ms, byte %{customdata:,}<extra></extra>"


@dataclass(frozen=True)
class Panel:
    """One of several figures with the same axes: the transfer of one start-up."""

    label: str
    colour: str
    words: str
    figure: Figure


def transfer_times(results: Results, case: CaseKey, series: list[Series]) -> Figure:
    """Each transfer of a case as a point: time across, one row a start-up."""
    rows = [(one, one.rows(case.rows(results.transfers))) for one in series]
    rows = [(one, table) for one, table in rows if not table.is_empty()]
    data: list[Trace] = []
    for row, (one, table) in enumerate(rows):
        for valid in (True, False):
            points = table.filter(pl.col("valid") == valid)
            if not points.is_empty():
                data.append(_strip(one, points, row, valid=valid))
        median = table.filter(pl.col("valid"))["fct_ms"].median()
        if median is not None:
            data.append(_median_mark(one, row, float(median)))
    limit = case.rows(results.transfers)["limit_ms"].median()
    layout = {
        "height": 90 + 44 * len(rows),
        "showlegend": False,
        "xaxis": {"title": {"text": "transfer time (ms)"}, "rangemode": "tozero"},
        "yaxis": {
            "tickvals": list(range(len(rows))),
            "ticktext": [one.label for one, _ in rows],
            "range": [len(rows) - 0.5, -0.5],
            "zeroline": False,
            "fixedrange": True,
        },
    }
    if limit is not None:
        layout |= _limit_line(float(limit))
    return {"data": data, "layout": layout}


def time_sequences(results: Results, case: CaseKey, series: list[Series]) -> list[Panel]:
    """Bytes sent and acknowledged over time: a panel a start-up, of one typical transfer each.

    All panels of a case have the same axes, and native cubic's bytes sent in the background.
    """
    chosen: list[tuple[Series, dict[str, Any], pl.DataFrame]] = []
    for one in series:
        transfers = one.rows(case.rows(results.transfers))
        packets = one.rows(case.rows(results.packets))
        repeat = typical_repeat(transfers, packets)
        if repeat is not None:
            transfer = transfers.row(by_predicate=pl.col("repeat") == repeat, named=True)
            rows = packets.filter(pl.col("repeat") == repeat).sort("t_ms", maintain_order=True)
            chosen.append((one, transfer, rows))
    if not chosen:
        return []
    latest_ms = max(float(rows["t_ms"].max() or 0) for _, _, rows in chosen)
    axes = {
        "xaxis": _time_axis(latest_ms),
        "yaxis": {
            "title": {"text": "offset in the transfer (kB)"},
            "range": [0, 1.06 * case.bytes / 1000],
        },
    }
    background = [_band(one, rows) for one, _, rows in chosen if one.startup == NATIVE]
    return [
        Panel(
            label=one.label,
            colour=one.colour,
            words=f"{words.milliseconds(transfer['fct_ms'])} ms, repeat {transfer['repeat']}",
            figure={
                "data": ([] if one.startup == NATIVE else background)
                + _sent(one, rows.filter(pl.col("direction") == "data"))
                + _acknowledged(one, rows.filter(pl.col("direction") == "ack")),
                "layout": {"height": 300, "showlegend": False, **axes},
            },
        )
        for one, transfer, rows in chosen
    ]


def window_over_time(results: Results, case: CaseKey, series: list[Series]) -> Figure | None:
    """The congestion window over time, of one typical transfer of each start-up.

    It is the transfer that `time_sequences` shows, where its windows were recorded.
    """
    data: list[Trace] = []
    latest_ms = 0.0
    for one in series:
        windows = one.rows(case.rows(results.windows))
        packets = one.rows(case.rows(results.packets))
        both = windows.join(packets.select("repeat").unique(), on="repeat", how="semi")
        recorded = windows if both.is_empty() else both
        repeat = typical_repeat(one.rows(case.rows(results.transfers)), recorded)
        if repeat is None:
            continue
        rows = windows.filter(pl.col("repeat") == repeat).sort("t_ms", maintain_order=True)
        seen_ms = packets.filter(pl.col("repeat") == repeat)["t_ms"].max()
        until_ms = max(float(rows["t_ms"][-1]), float(seen_ms or 0))
        data.append(_window(one, rows, until_ms))
        latest_ms = max(latest_ms, until_ms)
    if not data:
        return None
    for place, trace in enumerate(data):
        trace["line"]["width"] = max(1.5, WIDEST_PX * (1 - place / len(data)))
    layout = {
        "height": 340,
        "xaxis": _time_axis(latest_ms),
        "yaxis": {"title": {"text": "congestion window (packets)"}, "rangemode": "tozero"},
    }
    return {"data": data, "layout": layout}


def _time_axis(latest_ms: float) -> dict[str, Any]:
    """From the request until a little after the last event of a case."""
    return {
        "title": {"text": "time since the SYN or, resumed, the request (ms)"},
        "range": [0, 1.03 * max(latest_ms, 1)],
    }


def _strip(one: Series, points: pl.DataFrame, row: int, *, valid: bool) -> Trace:
    # Points of one row stand a little apart, by their repeat, so that equal times are all seen.
    last = max(int(points["repeat"].max() or 0), 1)
    offsets = [0.22 * (2 * repeat / last - 1) for repeat in points["repeat"].to_list()]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": one.label,
        "x": points["fct_ms"].to_list(),
        "y": [row + offset for offset in offsets],
        "marker": {
            "color": one.colour,
            "size": 8,
            "opacity": 0.75 if valid else 0.9,
            "symbol": "circle" if valid else "x-thin-open",
            "line": {"width": 0 if valid else 2},
        },
        "customdata": points.select(
            "repeat",
            "order",
            "lane",
            "retransmitted_pkts",
            "router_drops",
            pl.col("invalid_reason").fill_null("" if valid else "not valid"),
        ).rows(),
        "hovertemplate": (
            "%{fullData.name}: %{x:,.1f} ms<br>repeat %{customdata[0]}, position %{customdata[1]},"
            " lane %{customdata[2]}<br>%{customdata[3]} sent again, %{customdata[4]} dropped"
            + ("" if valid else "<br>left out: %{customdata[5]}")
            + "<extra></extra>"
        ),
    }


def _median_mark(one: Series, row: int, median_ms: float) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": one.label,
        "x": [median_ms],
        "y": [row],
        "marker": {
            "color": one.colour,
            "size": 26,
            "symbol": "line-ns-open",
            "line": {"width": 2.5, "color": one.colour},
        },
        "hovertemplate": "%{fullData.name}: median %{x:,.1f} ms<extra></extra>",
    }


def _limit_line(limit_ms: float) -> dict[str, Any]:
    return {
        "shapes": [
            {
                "type": "line",
                "x0": limit_ms,
                "x1": limit_ms,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"dash": "dot", "width": 1.5},
            }
        ],
        "annotations": [
            {
                "x": limit_ms,
                "yref": "paper",
                "y": 1,
                "yanchor": "bottom",
                "xanchor": "left",
                "xshift": -4,
                "showarrow": False,
                "text": f"physical limit {words.milliseconds(limit_ms)} ms",
            }
        ],
    }


def _band(one: Series, packets: pl.DataFrame) -> Trace:
    """What `one` sent, as a broad band to lie behind others."""
    new = packets.filter((pl.col("direction") == "data") & ~pl.col("retransmission"))
    line = {"color": one.colour, "shape": "hv", "width": 7}
    return _trace(one, new, "lines") | {"line": line, "opacity": 0.3, "hoverinfo": "skip"}


def _sent(one: Series, packets: pl.DataFrame) -> list[Trace]:
    line = {"color": one.colour, "shape": "hv", "width": 1.8}
    new = packets.filter(~pl.col("retransmission"))
    traces: list[Trace] = [_trace(one, new, "lines") | {"line": line}]
    unusual = pl.col("retransmission") | pl.col("low_priority")
    if packets.height <= MOST_MARKED_PACKETS:
        traces.append(_marks(one, packets.filter(~unusual), "circle", 5, 0))
    kinds = [
        (pl.col("low_priority") & ~pl.col("retransmission"), "diamond-open", 8, 1.5),
        (pl.col("retransmission"), "triangle-up", 11, 0),
        (pl.col("dropped"), "x-thin-open", 12, 2.5),
    ]
    for which, symbol, size, width in kinds:
        traces.append(_marks(one, packets.filter(which), symbol, size, width))
    return [trace for trace in traces if trace["x"]]


def _acknowledged(one: Series, packets: pl.DataFrame) -> list[Trace]:
    if packets.is_empty():
        return []
    line = {"color": one.colour, "shape": "hv", "width": 1.5, "dash": "dot"}
    return [_trace(one, packets, "lines") | {"line": line}]


def _marks(one: Series, packets: pl.DataFrame, symbol: str, size: int, width: float) -> Trace:
    outline = {"width": width, "color": one.colour}
    marker = {"color": one.colour, "symbol": symbol, "size": size, "line": outline}
    return _trace(one, packets, "markers") | {"marker": marker}


def _trace(one: Series, packets: pl.DataFrame, mode: str) -> Trace:
    return {
        "type": "scatter",
        "mode": mode,
        "name": one.label,
        "x": packets["t_ms"].to_list(),
        "y": (packets["to_byte"] / 1000).to_list(),
        "customdata": packets["to_byte"].to_list(),
        "hovertemplate": _HOVER_PACKET,
    }


def _window(one: Series, windows: pl.DataFrame, until_ms: float) -> Trace:
    """The window as steps; the last state that was recorded holds until `until_ms`."""
    details = windows.select(
        pl.col("ssthresh_pkts").cast(pl.String).fill_null("unlimited"),
        "inflight_pkts",
        pl.col("srtt_ms").round(1),
    ).rows()
    cwnd_pkts = windows["cwnd_pkts"].to_list()
    return {
        "type": "scatter",
        "mode": "lines",
        "name": one.label,
        "x": [*windows["t_ms"].to_list(), until_ms],
        "y": [*cwnd_pkts, cwnd_pkts[-1]],
        "line": {"color": one.colour, "shape": "hv"},
        "customdata": [*details, details[-1]],
        "hovertemplate": (
            "%{fullData.name}: %{y} packets at %{x:.1f} ms<br>ssthresh %{customdata[0]}, in flight"
            " %{customdata[1]}, smoothed RTT %{customdata[2]} ms<extra></extra>"
        ),
    }
