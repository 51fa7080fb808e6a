"""The report of a reproduction in a real browser: Debian's chromium, by Playwright.

Skipped, and said so, where chromium or Playwright is not there (apt-get install chromium).
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure

from headstart.reproduce import Claim, Context, Data, Experiment, Measured, number
from headstart.reproduce import runner as running
from headstart.reproduce.page import render_page
from headstart.reproduce.papers import ADAPTIVE

playwright = pytest.importorskip(
    "playwright.sync_api", reason="Playwright is not in this environment (scripts/setup.sh test)"
)

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not there (Debian: apt-get install chromium)"
)

LONG = "a claim in a sentence that is long enough to be broken over several lines on a telephone"


def figure(data: Data, figure: Figure) -> None:
    figure.subplots().plot(data["points"]["x"], data["points"]["y"])


def experiment(name: str, value: float) -> Experiment:
    """An experiment whose claims sort differently by name and by number."""
    claims = tuple(
        Claim(f"{LONG} {index}", "3 s", lambda _data, v=v: Measured(v, v, v, "s"), number(3))
        for index, v in enumerate((10 * value, value, 2 * value))
    )
    return Experiment(
        name=name,
        paper=ADAPTIVE,
        section="section 9",
        title="a line",
        did="Drew a line. " * 20,
        assumptions=("It is straight.",),
        run=lambda _context: {"points": pl.DataFrame({"x": [0, 1], "y": [3.0, 4.0]})},
        figure=figure,
        claims=claims,
    )


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two experiments, on disk."""
    out = tmp_path_factory.mktemp("reproduction")
    chosen = [experiment("ad98", 3.0), experiment("ad99", 1.0)]
    outcomes = running.run_all(chosen, Context(), out, lambda _: None)
    path = out / "report.html"
    path.write_text(render_page(outcomes), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator["playwright.Browser"]:
    """Chromium without a window."""
    with playwright.sync_playwright() as driver:
        # As root there is no sandbox to be had; what is shown is our own file.
        running_browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield running_browser
        running_browser.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_the_report_shows_all_figures_at_this_width_without_network(
    browser: "playwright.Browser", page_file: Path, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    wrong: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file.as_uri())
    shown = page.eval_on_selector_all(
        "article img",
        "all => all.map(one => one.complete && one.naturalWidth > 0 && one.clientWidth > 200)",
    )
    assert shown == [True, True]
    assert wrong == []
    others = [url for url in asked if url != page_file.as_uri() and not url.startswith("data:")]
    assert others == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    smallest_px = page.evaluate(
        "Math.min(...[...document.querySelectorAll('td, p, th, li')].map("
        "one => parseFloat(getComputedStyle(one).fontSize)))"
    )
    assert smallest_px >= 11
    page.close()


def test_a_table_is_sorted_by_number_and_back(
    browser: "playwright.Browser", page_file: Path
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(page_file.as_uri())
    table = page.locator("table.claims").first
    button = table.get_by_role("button", name="Measured")

    def measured() -> list[str]:
        return table.locator("td[data-label=Measured]").all_inner_texts()

    assert measured() == ["30 s", "3 s", "6 s", "10 s", "1 s", "2 s"]
    button.click()
    assert measured() == ["1 s", "2 s", "3 s", "6 s", "10 s", "30 s"]
    button.click()
    assert measured() == ["30 s", "10 s", "6 s", "3 s", "2 s", "1 s"]
    page.close()
