"""The command `headstart-lab`: thin; parse, call, say where the result is."""

import difflib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from headstart.report import write_page, write_report
from headstart.results import ResultsError, load_results

FAILED = 1
"""Exit code: the work itself failed."""

WRONG_INPUT = 2
"""Exit code: wrong usage or input."""

app = typer.Typer(
    help="Reports and analysis of what `headstart` measured.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command()
def report(
    results_dir: Annotated[
        Path, typer.Argument(help="The folder that `headstart compare --out` wrote.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(help="Where to write the page.", show_default="RESULTS_DIR/report.html"),
    ] = None,
) -> None:
    """Writes one self-contained HTML page about a results folder."""
    try:
        results = load_results(results_dir)
    except ResultsError as error:
        _fail(str(error), WRONG_INPUT)
    page = output or results_dir / "report.html"
    try:
        write_report(results, page)
    except OSError as error:
        _fail(
            f"{page}: cannot be written: {error.strerror or error}; choose another --output", FAILED
        )
    typer.echo(page)


class Ground(StrEnum):
    """Where experiments run."""

    SIM = "sim"
    KERNEL = "kernel"


@app.command()
def reproduce(  # noqa: PLR0917 -- typer reads the options from the parameters
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments, such as ad5 iw1, or papers: adaptive.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All experiments.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer repeats: all experiments in minutes.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="The folder for report, claims, figures and data.")
    ] = Path("results/reproduce"),
    on: Annotated[Ground, typer.Option(help="The simulator or the live kernel.")] = Ground.SIM,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the first repeat.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="All cores unless given.")] = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Report also what --out has of other experiments and grounds."),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Judge and draw again what --out has, without a run.")
    ] = False,
    write_docs: Annotated[
        Path | None, typer.Option(help="Also write the table of claims to this Markdown file.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments and end.")] = False,
) -> None:
    """Runs the papers' experiments, checks each claim, and writes one self-contained report."""
    # Only here: matplotlib takes a second to load.
    from headstart.reproduce import runner  # noqa: PLC0415
    from headstart.reproduce.context import Context  # noqa: PLC0415
    from headstart.reproduce.page import render_page, render_table  # noqa: PLC0415

    known = runner.all_experiments()
    if listed:
        for experiment in known:
            grounds = ", ".join(experiment.grounds)
            typer.echo(
                f"{experiment.name:6} {experiment.paper.key:12} {experiment.title} ({grounds})"
            )
        return
    chosen = known if everything else _chosen(names or [], known)
    if not again:
        for experiment in chosen:
            if on not in experiment.grounds:
                typer.echo(
                    f"headstart-lab: {experiment.name} does not run on {on}: left out", err=True
                )
        chosen = [experiment for experiment in chosen if on in experiment.grounds]
        if not chosen:
            _fail("no experiment is left; see headstart-lab reproduce --list", WRONG_INPUT)
    context = Context(quick=quick, seed=seed, on=on.value, threads=threads)
    try:
        if not again:
            outcomes = runner.run_all(chosen, context, out, _say)
        if again or keep:
            outcomes = runner.judge_again(known if keep else chosen, out)
        if not outcomes:
            _fail(f"{out} has no data of these experiments; run them first", FAILED)
        write_page(render_page(outcomes), out / "report.html")
        if write_docs is not None:
            write_docs.write_text(render_table(outcomes), encoding="utf-8")
        runner.write_claims(outcomes, out)
    except OSError as error:
        place = error.filename or out
        _fail(f"{place}: {error.strerror or error}; choose another --out", FAILED)
    typer.echo(out / "report.html")
    if any(outcome.error for outcome in outcomes):
        _fail("an experiment failed: the report has its error", FAILED)


def _say(words: str) -> None:
    typer.echo(words, err=True)


def _chosen(names: list[str], known: list) -> list:
    if not names:
        _fail("name experiments or papers, or give --all; --list shows them", WRONG_INPUT)
    chosen = []
    for name in names:
        found = [one for one in known if name in (one.name, one.paper.key)]
        if not found:
            words = [one.name for one in known] + [one.paper.key for one in known]
            near = difflib.get_close_matches(name, words, n=1)
            hint = f'did you mean "{near[0]}"?' if near else "--list shows them"
            _fail(f'there is no experiment "{name}"; {hint}', WRONG_INPUT)
        chosen += [one for one in found if one not in chosen]
    return chosen


def _fail(text: str, code: int) -> NoReturn:
    typer.echo(f"headstart-lab: {text}", err=True)
    raise typer.Exit(code)


def main() -> None:
    """Runs the command."""
    app()
