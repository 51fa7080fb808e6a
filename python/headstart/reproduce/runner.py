"""Runs experiments, one after the other, and writes what came of them."""

import importlib
import json
import pkgutil
import re
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import experiments
from headstart.reproduce.claims import Claim, Data, Judged, Verdict
from headstart.reproduce.context import Context
from headstart.reproduce.experiment import Experiment
from headstart.reproduce.papers import PAPERS
from headstart.reproduce.style import drawn

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """An experiment that has been run.

    Attributes:
        experiment: Which.
        judged: Its claims in their order, each with what became of it.
        error: The traceback, where it failed as a whole or its figure did.
        png: The figure; None where there is none.
        wall_s: How long it took.
    """

    experiment: Experiment
    judged: list[tuple[Claim, Judged]]
    error: str | None
    png: bytes | None
    wall_s: float


def all_experiments() -> list[Experiment]:
    """Every experiment, paper by paper, in the order of their numbers."""
    return sorted(_found(), key=_order)


def _found() -> Iterator[Experiment]:
    for module in pkgutil.walk_packages(experiments.__path__, f"{experiments.__name__}."):
        experiment = getattr(importlib.import_module(module.name), "EXPERIMENT", None)
        if experiment is not None:
            yield experiment


def _order(experiment: Experiment) -> tuple[int, str, int]:
    found = re.fullmatch(r"([a-z]+)(\d+)", experiment.name)
    letters, digits = (found[1], found[2]) if found else (experiment.name, "0")
    return PAPERS.index(experiment.paper), letters, int(digits)


def run_all(chosen: list[Experiment], context: Context, out: Path, say: Say) -> list[Outcome]:
    """Runs `chosen` and writes figures, data and `claims.json` into the folder `out`.

    `claims.json` comes last: a folder that has it is whole.

    Raises:
        OSError: Something cannot be written.
    """
    for folder in (out / "figures", out / "data"):
        folder.mkdir(parents=True, exist_ok=True)
    (out / "claims.json").unlink(missing_ok=True)
    outcomes = []
    for number, experiment in enumerate(chosen, 1):
        say(f"[{number}/{len(chosen)}] {experiment.name}: {experiment.title}")
        outcome = run_one(experiment, context, out)
        outcomes.append(outcome)
        say(f"      {summary(outcome)}, {outcome.wall_s:.1f} s")
    return outcomes


def run_one(experiment: Experiment, context: Context, out: Path) -> Outcome:
    """Runs one experiment. An exception of its own becomes the verdict of its claims."""
    began = time.monotonic()
    outcome = Outcome(experiment, [], None, None, 0.0)
    try:
        data = experiment.run(context)
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        judged = [(claim, Judged("", Verdict.ERROR, words)) for claim in experiment.claims]
        outcome = replace(outcome, judged=judged, error=traceback.format_exc())
    else:
        write_data(experiment, data, out)
        outcome = replace(
            outcome, judged=[(claim, claim.judge(data)) for claim in experiment.claims]
        )
        try:
            outcome = replace(outcome, png=draw(experiment, data, out))
        except Exception:
            outcome = replace(outcome, error=traceback.format_exc())
    return replace(outcome, wall_s=time.monotonic() - began)


def write_data(experiment: Experiment, data: Data, out: Path) -> None:
    """Writes the frames as `data/EXPERIMENT-FRAME.parquet`."""
    for name, frame in data.items():
        frame.write_parquet(out / "data" / f"{experiment.name}-{name}.parquet")


def read_data(experiment: Experiment, out: Path) -> Data:
    """Reads what `write_data` wrote: to draw or judge again without running."""
    paths = sorted((out / "data").glob(f"{experiment.name}-*.parquet"))
    return {path.stem.removeprefix(f"{experiment.name}-"): pl.read_parquet(path) for path in paths}


def draw(experiment: Experiment, data: Data, out: Path) -> bytes:
    """Draws the figure as PNG and PDF; answers the PNG."""
    with drawn(experiment.size_in) as figure:
        assert isinstance(figure, Figure)
        experiment.figure(data, figure)
        path = out / "figures" / f"{experiment.name}.png"
        figure.savefig(path, dpi=144)
        figure.savefig(path.with_suffix(".pdf"), metadata={"CreationDate": None})
    return path.read_bytes()


def summary(outcome: Outcome) -> str:
    """How many claims came to which verdict."""
    verdicts = [judged.verdict for _, judged in outcome.judged]
    counts = [(verdict, verdicts.count(verdict)) for verdict in Verdict]
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts if count)
    return words or "no claims"


def claims_of(outcomes: list[Outcome]) -> list[dict[str, str]]:
    """What `claims.json` holds."""
    return [
        {
            "experiment": outcome.experiment.name,
            "claim": claim.text,
            "paper": claim.paper,
            "measured": judged.measured,
            "verdict": str(judged.verdict),
            "reason": judged.reason,
        }
        for outcome in outcomes
        for claim, judged in outcome.judged
    ]


def write_claims(outcomes: list[Outcome], out: Path) -> None:
    """Writes `claims.json`, whole or not at all."""
    text = json.dumps(claims_of(outcomes), indent=1, ensure_ascii=False)
    partial = out / ".claims.json.partial"
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(out / "claims.json")
