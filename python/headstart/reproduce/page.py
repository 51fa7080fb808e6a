"""The report of a reproduction: one HTML page that opens offline, figures and all."""

import base64
from dataclasses import dataclass
from importlib import metadata
from importlib.resources import files

import jinja2

from headstart.reproduce.claims import Verdict
from headstart.reproduce.context import Context
from headstart.reproduce.experiment import Paper
from headstart.reproduce.runner import Outcome, summary


@dataclass(frozen=True)
class Section:
    """The experiments of one paper."""

    paper: Paper
    outcomes: list[Outcome]


def render_page(outcomes: list[Outcome], context: Context, machine: str) -> str:
    """The whole page as HTML. It refers to nothing outside of itself."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["base64"] = lambda content: base64.b64encode(content).decode("ascii")
    here = files("headstart.reproduce")
    template = environment.from_string(here.joinpath("page.html.j2").read_text(encoding="utf-8"))
    verdicts = [judged.verdict for outcome in outcomes for _, judged in outcome.judged]
    return template.render(
        sections=_sections(outcomes),
        counts=[(verdict, verdicts.count(verdict)) for verdict in Verdict],
        claims=len(verdicts),
        experiments=len(outcomes),
        summary=summary,
        quick=context.quick,
        seed=context.seed,
        on=context.on,
        machine=machine,
        wall_s=sum(outcome.wall_s for outcome in outcomes),
        version=metadata.version("headstart"),
        css=files("headstart.report").joinpath("page.css").read_text(encoding="utf-8"),
        own_css=here.joinpath("page.css").read_text(encoding="utf-8"),
        js=here.joinpath("page.js").read_text(encoding="utf-8"),
    )


def _sections(outcomes: list[Outcome]) -> list[Section]:
    papers = dict.fromkeys(outcome.experiment.paper for outcome in outcomes)
    return [
        Section(paper, [one for one in outcomes if one.experiment.paper == paper])
        for paper in papers
    ]


def render_table(outcomes: list[Outcome], context: Context) -> str:
    """docs/reproduction.md: claim against measured, in one table."""
    verdicts = [judged.verdict for outcome in outcomes for _, judged in outcome.judged]
    counted = ", ".join(
        f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict if verdict in verdicts
    )
    extent = "quick" if context.quick else "full"
    options = " --quick" if context.quick else ""
    lines = [
        "# The papers' claims against what is measured here",
        "",
        f"Written by `headstart-lab reproduce --all{options} --write-docs FILE`, not by hand:",
        f"a {extent} run, seed {context.seed}, on {context.on}. {len(verdicts)} claims: {counted}.",
        "[papers.md](papers.md) says what the verdicts mean; the report of the command has the",
        "figures, the assumptions and the rules.",
        "",
    ]
    for section in _sections(outcomes):
        lines += [
            f"## {section.paper.title}",
            "",
            f"{section.paper.authors}; {section.paper.where}.",
            "",
            "| | claim | paper | measured | verdict | reason |",
            "|---|---|---|---|---|---|",
        ]
        for outcome in section.outcomes:
            for claim, judged in outcome.judged:
                cells = (
                    outcome.experiment.name,
                    claim.text,
                    claim.paper,
                    judged.measured,
                    f"**{judged.verdict}**",
                    judged.reason,
                )
                lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
