"""The command `headstart-lab`: thin; parse, call, say where the result is."""

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from headstart.report import write_report
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


@app.callback()
def _lab() -> None:
    """Keeps the verbs verbs, as long as there is only one of them."""


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


def _fail(text: str, code: int) -> NoReturn:
    typer.echo(f"headstart-lab: {text}", err=True)
    raise typer.Exit(code)


def main() -> None:
    """Runs the command."""
    app()
