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


@app.command()
def ab(  # noqa: PLR0917 -- typer reads the options from the parameters
    records: Annotated[
        list[str],
        typer.Argument(
            help="Parquet files of records, folders, patterns, or URLs (s3://, gs://, az://)."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The folder for report.html, ab.json and figures.")
    ] = None,
    base: Annotated[
        str | None, typer.Option(help="The arm that the others are held against.")
    ] = None,
    rule: Annotated[str | None, typer.Option(help="Of this rule alone.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="The daemon's configuration: arms and their shares.")
    ] = None,
    shares: Annotated[
        str | None, typer.Option(help="The same by hand, in percent: iw3=50,iw10=50.")
    ] = None,
    aa: Annotated[
        bool,
        typer.Option(
            "--aa", help="The arms have the same; of one arm, prefixes are split by chance."
        ),
    ] = False,
    bandwidth: Annotated[
        Path | None,
        typer.Option(help="CSV or Parquet of prefix and bits_per_s, measured at another time."),
    ] = None,
    status: Annotated[
        Path | None,
        typer.Option(help="What `headstart status --json` said: how many records were lost."),
    ] = None,
    slice_: Annotated[
        str | None,
        typer.Option("--slice", help="Slices of time were assigned, of this length, such as 600s."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 1,
) -> None:
    """Checks an experiment and compares its arms: the IW10 paper's tables for one's own traffic."""
    # Only here: matplotlib and scipy take a second to load.
    from headstart.ab import (  # noqa: PLC0415
        Options,
        Plan,
        RecordsError,
        analyse,
        read_lost,
        read_plan,
        read_span,
    )
    from headstart.ab.folder import write_folder  # noqa: PLC0415
    from headstart.ab.terminal import render_text  # noqa: PLC0415

    if config is not None and shares is not None:
        _fail("give --config or --shares, not both", WRONG_INPUT)
    try:
        plan = read_plan(config) if config else Plan(_shares(shares), None, None)
        options = Options(
            base=base or plan.base,
            rule=rule,
            shares_pct=plan.shares_pct,
            bandwidth=bandwidth,
            lost=read_lost(status) if status else None,
            alike=aa,
            slice_us=read_span(slice_) if slice_ else plan.slice_us,
            seed=seed,
        )
        analysis = analyse(records, options)
    except RecordsError as error:
        _fail(str(error), WRONG_INPUT)
    typer.echo(render_text(analysis), nl=False)
    if out is None:
        return
    try:
        page = write_folder(analysis, out)
    except OSError as error:
        _fail(f"{error.filename or out}: {error.strerror or error}; choose another --out", FAILED)
    typer.echo(f"\n{page}")


def _shares(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {name.strip(): float(share) for name, share in pairs}
    except ValueError:
        _fail(f'--shares "{text}": write arms and percents, such as iw3=50,iw10=50', WRONG_INPUT)


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
