"""The report of a reproduction: one HTML page that opens offline, figures and all."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from importlib.resources import files

import jinja2

from headstart.reproduce.claims import GROUNDS, Verdict
from headstart.reproduce.experiment import Paper
from headstart.reproduce.runner import Outcome, Ran, summary


@dataclass(frozen=True)
class Section:
    """The experiments of one paper."""

    paper: Paper
    outcomes: list[Outcome]


def render_page(outcomes: list[Outcome]) -> str:
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
        experiments=len({outcome.experiment.name for outcome in outcomes}),
        summary=summary,
        run=run_of(outcomes),
        grounds=GROUND_WORDS,
        version=metadata.version("headstart"),
        css=files("headstart.report").joinpath("page.css").read_text(encoding="utf-8"),
        own_css=here.joinpath("page.css").read_text(encoding="utf-8"),
        js=here.joinpath("page.js").read_text(encoding="utf-8"),
    )


GROUND_WORDS = {"sim": "the simulator", "kernel": "the live kernel"}
"""The grounds as they are printed."""


@dataclass(frozen=True)
class Run:
    """What is common to all outcomes of a report, in words.

    Attributes:
        extent: Full or quick, by ground.
        seed: Of the first repeats.
        began: From the first to the last.
        wall_s: Of all together.
        machine: On what.
        load: From the least to the most that was seen.
    """

    extent: str
    seed: str
    began: str
    wall_s: float
    machine: str
    load: str


def run_of(outcomes: list[Outcome]) -> Run:
    """Sums up how the outcomes came about."""
    rans = [outcome.ran for outcome in outcomes]

    def words(of: Callable[[Ran], str]) -> str:
        return ", ".join(dict.fromkeys(of(ran) for ran in rans))

    loads = [load for ran in rans for load in ran.load]
    times = sorted(ran.began for ran in rans)
    return Run(
        extent=words(lambda ran: f"{'quick' if ran.quick else 'full'} on {GROUND_WORDS[ran.on]}"),
        seed=words(lambda ran: str(ran.seed)),
        began=times[0] if times[0] == times[-1] else f"{times[0]} to {times[-1]}",
        wall_s=sum(ran.wall_s for ran in rans),
        machine=words(lambda ran: ran.machine),
        load=f"{min(loads):.1f} to {max(loads):.1f}",
    )


def _sections(outcomes: list[Outcome]) -> list[Section]:
    papers = dict.fromkeys(outcome.experiment.paper for outcome in outcomes)
    return [
        Section(paper, [one for one in outcomes if one.experiment.paper == paper])
        for paper in papers
    ]


def render_table(outcomes: list[Outcome]) -> str:
    """docs/reproduction.md: claim against measured, in one table."""
    verdicts = [judged.verdict for outcome in outcomes for _, judged in outcome.judged]
    run = run_of(outcomes)
    lines = [
        "# The papers' claims against what is measured here",
        "",
        "Written by `headstart-lab reproduce ... --write-docs FILE`, not by hand.",
        f"Extent: {run.extent}. Seed {run.seed}. {run.machine}. Begun {run.began};",
        f"{run.wall_s / 60:.0f} min in all, at a load (processes that want a CPU) of {run.load}.",
        f"{len(verdicts)} claims: {_counted(verdicts)}.",
        "[papers.md](papers.md) says what the verdicts mean; the report of the command has the",
        "figures, the assumptions and the rules. *kernel*: on the live kernel; else simulated.",
        "",
        "| paper | on | claims | " + " | ".join(_SHOWN) + " |",
        "|---|---|---|" + "---|" * len(_SHOWN),
    ]
    for section in _sections(outcomes):
        for ground in GROUNDS:
            own = [outcome for outcome in section.outcomes if outcome.ran.on == ground]
            found = [judged.verdict for outcome in own for _, judged in outcome.judged]
            if found:
                counts = [str(len(found)), *(str(found.count(verdict)) for verdict in _SHOWN)]
                lines.append(f"| {section.paper.title} | {ground} | " + " | ".join(counts) + " |")
    lines.append("")
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
                    outcome.experiment.name + (" *kernel*" if outcome.ran.on == "kernel" else ""),
                    claim.text,
                    claim.paper,
                    judged.measured,
                    f"**{judged.verdict}**",
                    judged.reason,
                )
                lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
        lines.append("")
        lines += [
            f"{outcome.name}: {note}\n"
            for outcome in section.outcomes
            for note in outcome.ran.notes
        ]
    return "\n".join(lines)


_SHOWN = tuple(Verdict)


def _counted(verdicts: list[Verdict]) -> str:
    return ", ".join(
        f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict if verdict in verdicts
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
