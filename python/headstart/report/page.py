"""From results to the page: gathers words, table and figures and fills the template."""

import json
from dataclasses import dataclass
from importlib import metadata
from importlib.resources import files

import jinja2
import polars as pl
from plotly.offline import get_plotlyjs

from headstart.report import figures, words
from headstart.report.series import CaseKey, Series, cases_of, series_of
from headstart.report.table import Glance, Row, glance_of, rows_of
from headstart.results import Results


@dataclass(frozen=True)
class PanelSection:
    """One of several figures that belong together. `figure` is JSON."""

    label: str
    colour: str
    words: str
    figure: str


@dataclass(frozen=True)
class CaseSection:
    """All that the page shows of one case. A figure is JSON, or None where nothing was recorded."""

    anchor: str
    title: str
    sentence: str
    glance: Glance | None
    rows: list[Row]
    times: str
    sequences: list[PanelSection]
    window: str | None
    unrecorded: list[str]


def render_report(results: Results) -> str:
    """The whole page as HTML. It refers to nothing outside of itself."""
    series = series_of(results)
    sections = [_section(results, case, series) for case in cases_of(results)]
    here = files("headstart.report")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.from_string(here.joinpath("page.html.j2").read_text(encoding="utf-8"))
    document = results.document
    return template.render(
        scenario=results.scenario,
        path=words.paths(results.scenario),
        ends=words.ends(results.scenario),
        verb=document["verb"],
        started=words.moment(document.get("started")),
        machine=document["machine"],
        seed=document["seed"],
        run=document["run"],
        wall=words.span(round(document["run"]["wall_s"]) * 1000),
        warnings=document["warnings"],
        transfers=results.transfers.height,
        invalid=results.transfers.filter(~pl.col("valid")).height,
        sections=sections,
        version=metadata.version("headstart"),
        css=here.joinpath("page.css").read_text(encoding="utf-8"),
        js=here.joinpath("page.js").read_text(encoding="utf-8"),
        plotly=get_plotlyjs(),
    )


def _section(results: Results, case: CaseKey, series: list[Series]) -> CaseSection:
    described = [
        (words.path(on["path"]) + " " if on["name"] else "") + words.case(listed)
        for on in results.scenario["paths"]
        for listed in on["cases"]
        if CaseKey(listed["kind"], listed["bytes"], on["name"]) == case
    ]
    panels = figures.time_sequences(results, case, series)
    sequences = [
        PanelSection(panel.label, panel.colour, panel.words, _json(panel.figure))
        for panel in panels
    ]
    window = figures.window_over_time(results, case, series)
    packets = case.rows(results.packets)
    return CaseSection(
        anchor=case.anchor,
        title=", ".join([*([case.path] if case.path else []), case.kind, words.size(case.bytes)]),
        sentence=described[0] if described else "",
        glance=glance_of(results, case, series),
        rows=rows_of(results, case, series),
        times=_json(figures.transfer_times(results, case, series)),
        sequences=sequences,
        window=None if window is None else _json(window),
        unrecorded=[one.label for one in series if one.rows(packets).is_empty()],
    )


def _json(figure: figures.Figure) -> str:
    """JSON that can stand in a script element: no `<` can end it."""
    return json.dumps(figure, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
