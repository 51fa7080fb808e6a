"""The report: complete, self-contained, and honest about what is missing."""

import json
import re
from pathlib import Path

import plotly.graph_objects as go
import polars as pl
import pytest

from headstart import load_results
from headstart.report import render_report, write_report
from headstart.report.series import cases_of, series_of, typical_repeat
from headstart.report.table import glance_of, rows_of
from headstart.results import Results


@pytest.fixture
def results(sample: Path) -> Results:
    """The made-up run, read."""
    return load_results(sample)


def without_scripts(page: str) -> str:
    """The page as a reader without JavaScript gets it."""
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def figures_in(page: str) -> dict[str, dict]:
    """All figures of a page by the name of their place."""
    pattern = r'<script type="application/json" data-for="([^"]+)">(.*?)</script>'
    return {name: json.loads(text) for name, text in re.findall(pattern, page, re.DOTALL)}


def test_the_page_names_scenario_path_machine_and_date(results: Results) -> None:
    page = without_scripts(render_report(results))
    for text in (
        "<title>Headstart: satellite</title>",
        "12 Mbit/s from server to client, 1 Mbit/s back, 400 ms round trip",
        "nginx serves, curl asks.",
        "Linux 6.18.44, 2 CPUs",
        "2 January 2026, 03:04 UTC",
        "1 transfer was left out: the router was late",
        "A kept-alive connection that has carried 2 MB and then rested for 10 s",
    ):
        assert text in page


def test_the_page_refers_to_nothing_outside_of_itself(results: Results) -> None:
    page = without_scripts(render_report(results))
    references = re.findall(r'(?:src|href|action)="([^"]*)"|url\(([^)]*)\)', page)
    outside = [a or b for a, b in references if not (a or b).startswith(("#", "data:"))]
    assert outside == []
    assert "@import" not in page
    assert "<script src" not in render_report(results)


def test_text_of_the_scenario_cannot_become_markup(results: Results) -> None:
    page = without_scripts(render_report(results))
    assert "a made-up run &lt;for tests&gt;" in page
    assert "<for tests>" not in page


def test_each_case_has_its_figures_and_plotly_accepts_them(results: Results) -> None:
    figures = figures_in(render_report(results))
    cases = [f"{kind}-51200" for kind in ("new-cold", "resume-warm", "new-warm")]
    panels = [f"sequence-{number}" for number in range(1, 5)]
    expected = [f"{case}-{which}" for case in cases for which in ("times", *panels, "window")]
    assert list(figures) == expected
    for figure in figures.values():
        go.Figure(figure)  # raises on what Plotly does not know


def test_axes_have_units_and_panels_of_a_case_have_the_same_axes(results: Results) -> None:
    figures = figures_in(render_report(results))
    for name, figure in figures.items():
        assert figure["layout"]["xaxis"]["title"]["text"].endswith("(ms)"), name
    ranges = [
        (figures[name]["layout"]["xaxis"]["range"], figures[name]["layout"]["yaxis"]["range"])
        for name in figures
        if name.startswith("resume-warm-51200-sequence")
    ]
    assert len(ranges) == 4
    assert all(one == ranges[0] for one in ranges)


def test_low_priority_repeated_and_dropped_packets_have_marks_of_their_own(
    results: Results,
) -> None:
    # Let an even repeat, in which the toy router drops, be the typical one.
    even = results.transfers.filter(pl.col("repeat") == 0)
    shown = Results(**{**vars(results), "transfers": even})
    figure = figures_in(render_report(shown))["resume-warm-51200-sequence-4"]
    points = {
        trace["marker"]["symbol"]: len(trace["x"])
        for trace in figure["data"]
        if trace["mode"] == "markers"
    }
    assert points == {"circle": 1, "diamond-open": 35, "triangle-up": 1, "x-thin-open": 1}


def test_a_long_transfer_is_drawn_as_a_line_with_only_its_unusual_packets_marked(
    results: Results,
) -> None:
    many = pl.concat([results.packets] * 80)
    shown = Results(**{**vars(results), "packets": many})
    figure = figures_in(render_report(shown))["resume-warm-51200-sequence-1"]
    assert [trace["mode"] for trace in figure["data"]] == ["lines", "lines"]


def test_a_startup_has_one_colour_in_all_figures_and_in_the_table(results: Results) -> None:
    page = render_report(results)
    colours: dict[str, set[str]] = {}
    for figure in figures_in(page).values():
        for trace in figure["data"]:
            style = trace.get("line") or trace["marker"]
            colours.setdefault(trace["name"], set()).add(style["color"])
    for one in series_of(results):
        assert colours[one.label] == {one.colour}
        assert f"--series: {one.colour}" in page
    assert len({one.colour for one in series_of(results)}) == 4


def test_the_table_says_what_the_document_says(results: Results) -> None:
    series, cases = series_of(results), cases_of(results)
    assert [case.kind for case in cases] == ["new-cold", "resume-warm", "new-warm"]
    fast = rows_of(results, cases[1], series)[3]
    cell = next(
        cell
        for cell in results.document["cells"]
        if (cell["startup"], cell["case"]) == ("su_fast_start", "resume-warm")
    )
    assert fast.label == "su_fast_start"
    assert fast.median_ms == f"{cell['fct_ms']['median']:,.0f}"
    assert fast.ratio_to_native == f"{cell['ratio_to_native']:.2f}"
    assert fast.exit == "validated, window 120"
    assert fast.retransmitted == "0.5, at most 1"
    bbr = rows_of(results, cases[2], series)[1]
    assert (bbr.n, bbr.note) == ("9", "1 left out as invalid")


def test_only_a_clearly_faster_startup_is_called_fastest(results: Results) -> None:
    series = series_of(results)
    cold, resumed, _ = (glance_of(results, case, series) for case in cases_of(results))
    assert cold is not None
    assert (cold.label, cold.verdict) == ("cubic", "– none is clearly faster")
    assert resumed is not None
    assert (resumed.label, resumed.verdict) == ("su_fast_start", "is fastest")


def test_a_cell_without_valid_transfers_is_shown_as_such(results: Results) -> None:
    gone = {"fct_ms", "limit_ms", "ratio_to_native", "ratio_to_limit", "router_drops", "exit"}
    for cell in results.document["cells"]:
        if cell["startup"] == "bbr":
            for key in gone | {"retransmitted_pkts"}:
                cell.pop(key, None)
            cell |= {"n": 0, "invalid": 10, "valid": False}
    spoilt = results.transfers.with_columns(
        valid=pl.col("startup") != "bbr", invalid_reason=pl.lit("the router was late")
    )
    page = render_report(Results(**{**vars(results), "transfers": spoilt}))
    assert "no valid transfer" in page
    assert "No packets were recorded of" not in page
    assert "bbr" not in {
        trace["name"] for trace in figures_in(page)["new-cold-51200-window"]["data"]
    }


def test_a_run_without_packets_and_windows_still_has_table_and_times(results: Results) -> None:
    bare = Results(
        **{**vars(results), "packets": results.packets.clear(), "windows": results.windows.clear()}
    )
    page = render_report(bare)
    assert "No packets were recorded in this case." in page
    assert "No windows were recorded in this case." in page
    assert all(name.endswith("-times") for name in figures_in(page))


def test_a_startup_without_packets_is_named(results: Results) -> None:
    packets = results.packets.filter(pl.col("startup") != "bbr")
    page = render_report(Results(**{**vars(results), "packets": packets}))
    assert "No packets were recorded of bbr." in page


def test_the_typical_transfer_is_valid_and_recorded_and_nearest_to_the_median() -> None:
    transfers = pl.DataFrame(
        {
            "repeat": [0, 1, 2, 3, 4],
            "fct_ms": [100.0, 110.0, 120.0, 130.0, 120.0],
            "valid": [True, True, True, True, False],
        }
    )
    everything = pl.DataFrame({"repeat": [0, 1, 2, 3, 4]})
    assert typical_repeat(transfers, everything) == 1, "of two as near, the first"
    assert typical_repeat(transfers, pl.DataFrame({"repeat": [3, 4]})) == 3
    assert typical_repeat(transfers, pl.DataFrame({"repeat": [4]})) is None
    assert typical_repeat(transfers, pl.DataFrame({"repeat": [9]})) is None


def test_the_page_is_written_whole_and_nothing_else_is_left(
    results: Results, tmp_path: Path
) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    write_report(results, folder / "page.html")
    write_report(results, folder / "page.html")
    assert [path.name for path in folder.iterdir()] == ["page.html"]
    assert (folder / "page.html").read_text(encoding="utf-8").endswith("</html>")
    with pytest.raises(OSError, match="No such file"):
        write_report(results, tmp_path / "none" / "page.html")
