"""The report: one HTML page that opens offline, figures and all."""

import base64
from importlib import metadata
from importlib.resources import files

import jinja2

from headstart.ab import Analysis, words
from headstart.ab.figures import Drawn


def render_page(analysis: Analysis, figures: list[Drawn]) -> str:
    """The whole page as HTML. It refers to nothing outside of itself."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["base64"] = lambda content: base64.b64encode(content).decode("ascii")
    template = environment.from_string(_text("ab", "page.html.j2"))
    return template.render(
        analysis=analysis,
        figures=figures,
        words=words,
        minutes=(analysis.ended_us - analysis.began_us) / 60e6,
        version=metadata.version("headstart"),
        css=_text("report", "page.css"),
        own_css=_text("reproduce", "page.css") + _text("ab", "page.css"),
        js=_text("reproduce", "page.js"),
    )


def _text(package: str, name: str) -> str:
    return files(f"headstart.{package}").joinpath(name).read_text(encoding="utf-8")
