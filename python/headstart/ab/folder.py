"""The folder of an answer: report.html, ab.json, figures/."""

import json
from pathlib import Path

from headstart.ab import Analysis
from headstart.ab.document import document
from headstart.ab.figures import draw_all
from headstart.ab.page import render_page
from headstart.report import write_page


def write_folder(analysis: Analysis, out: Path) -> Path:
    """Writes everything into `out`; the page last. Returns the page's path.

    Raises:
        OSError: Something cannot be written.
    """
    drawings = out / "figures"
    drawings.mkdir(parents=True, exist_ok=True)
    figures = draw_all(analysis)
    for figure in figures:
        (drawings / f"{figure.name}.png").write_bytes(figure.png)
        (drawings / f"{figure.name}.pdf").write_bytes(figure.pdf)
    text = json.dumps(document(analysis), indent=1, allow_nan=False)
    (out / "ab.json").write_text(text + "\n", encoding="utf-8")
    page = out / "report.html"
    write_page(render_page(analysis, figures), page)
    return page
