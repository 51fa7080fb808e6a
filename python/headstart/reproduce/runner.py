"""Runs experiments, one after the other, and writes what came of them."""

import importlib
import json
import os
import pkgutil
import platform
import re
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from headstart.reproduce import experiments
from headstart.reproduce.claims import GROUNDS, Claim, Data, Ground, Judged, Verdict
from headstart.reproduce.context import Context, GroundError
from headstart.reproduce.experiment import Experiment
from headstart.reproduce.papers import PAPERS
from headstart.reproduce.style import drawn

Say = Callable[[str], None]


@dataclass(frozen=True)
class Ran:
    """What a run of an experiment was: kept beside its data.

    Attributes:
        on: Where it ran.
        quick: Whether it was a quick one.
        seed: Of its first repeat.
        began: When, in UTC: "2026-01-31T12:00:00Z".
        wall_s: How long it took, with its figure.
        machine: On what.
        load: Processes that wanted a CPU, in the minute before it began and in its last one.
        notes: What a reader has to know of this run.
        failure: Why it failed as a whole, in words.
    """

    on: Ground
    quick: bool
    seed: int
    began: str = ""
    wall_s: float = 0.0
    machine: str = ""
    load: tuple[float, float] = (0.0, 0.0)
    notes: tuple[str, ...] = ()
    failure: str = ""


@dataclass(frozen=True)
class Outcome:
    """An experiment that has been run on one ground.

    Attributes:
        experiment: Which.
        ran: How, when and where.
        judged: Its claims in their order, each with what became of it.
        error: The traceback, where it failed as a whole or its figure did.
        png: The figure; None where there is none.
    """

    experiment: Experiment
    ran: Ran
    judged: list[tuple[Claim, Judged]]
    error: str | None
    png: bytes | None

    @property
    def name(self) -> str:
        """Unique in a report: "fs1", "fs1-kernel"."""
        return _named(self.experiment, self.ran.on)


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
    """Runs `chosen` and writes figures and data into the folder `out`.

    An earlier `claims.json` goes first; `write_claims` writes it last: a folder that has it is
    whole.

    Raises:
        OSError: Something cannot be written.
    """
    make_folders(out)
    outcomes = []
    for number, experiment in enumerate(chosen, 1):
        say(f"[{number}/{len(chosen)}] {experiment.name}: {experiment.title}")
        outcome = run_one(experiment, context, out)
        outcomes.append(outcome)
        say(f"      {summary(outcome)}, {outcome.ran.wall_s:.1f} s")
    return outcomes


def make_folders(out: Path) -> None:
    """Makes what `out` has, and takes away what says that it is whole.

    Raises:
        OSError: It cannot be written.
    """
    for folder in (out / "figures", out / "data" / "kernel"):
        folder.mkdir(parents=True, exist_ok=True)
    (out / "claims.json").unlink(missing_ok=True)


def run_one(experiment: Experiment, context: Context, out: Path) -> Outcome:
    """Runs one experiment. An exception of its own becomes the verdict of its claims."""
    began, load = time.monotonic(), os.getloadavg()[0]
    ran = Ran(
        on=context.on,
        quick=context.quick,
        seed=context.seed,
        began=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        machine=f"{platform.system()} {platform.release()}, {os.cpu_count()} CPUs",
    )
    try:
        data = experiment.run(context)
    except Exception as error:
        ran = replace(ran, failure=f"{type(error).__name__}: {error}")
        # What the machine or the user can mend is said in a sentence; the rest is a fault of ours.
        trace = "" if isinstance(error, GroundError) else traceback.format_exc()
        outcome = _failed(experiment, ran, trace)
    else:
        write_data(experiment, ran.on, data, out)
        outcome = judge(experiment, ran, data, out)
    ran = replace(
        ran,
        wall_s=time.monotonic() - began,
        load=(load, os.getloadavg()[0]),
        notes=tuple(context.notes),
    )
    context.notes.clear()
    _ran_file(experiment, ran.on, out).write_text(json.dumps(asdict(ran)) + "\n", encoding="utf-8")
    return replace(outcome, ran=ran)


def judge(experiment: Experiment, ran: Ran, data: Data, out: Path) -> Outcome:
    """Judges the claims and draws the figure. What fails there is said in the outcome."""
    judged = [
        (claim, claim.judge(data, ran.on)) for claim in experiment.claims if ran.on in claim.grounds
    ]
    outcome = Outcome(experiment, ran, judged, None, None)
    try:
        return replace(outcome, png=draw(outcome, data, out))
    except Exception:
        return replace(outcome, error=traceback.format_exc())


def _failed(experiment: Experiment, ran: Ran, trace: str = "") -> Outcome:
    claims = [claim for claim in experiment.claims if ran.on in claim.grounds]
    judged = [(claim, Judged("", Verdict.ERROR, ran.failure)) for claim in claims]
    return Outcome(experiment, ran, judged, trace or ran.failure, None)


def judge_again(known: list[Experiment], out: Path) -> list[Outcome]:
    """Judges and draws what `out` has of `known`, on every ground, without a run.

    Raises:
        OSError: Something of it cannot be read or written.
    """
    make_folders(out)
    outcomes = []
    for experiment in known:
        for ground in GROUNDS:
            if _ran_file(experiment, ground, out).exists():
                outcomes.append(_again(experiment, ground, out))
    return outcomes


def _again(experiment: Experiment, ground: Ground, out: Path) -> Outcome:
    kept = json.loads(_ran_file(experiment, ground, out).read_text(encoding="utf-8"))
    ran = Ran(**kept | {"load": tuple(kept["load"]), "notes": tuple(kept["notes"])})
    if ran.failure:
        return _failed(experiment, ran)
    try:
        data = read_data(experiment, ground, out)
    except FileNotFoundError as error:
        return _failed(experiment, replace(ran, failure=f"FileNotFoundError: {error}"))
    return judge(experiment, ran, data, out)


def _named(experiment: Experiment, on: Ground) -> str:
    return experiment.name if on == "sim" else f"{experiment.name}-{on}"


def _data_folder(on: Ground, out: Path) -> Path:
    return out / "data" if on == "sim" else out / "data" / on


def _ran_file(experiment: Experiment, on: Ground, out: Path) -> Path:
    return _data_folder(on, out) / f"{experiment.name}.json"


def write_data(experiment: Experiment, on: Ground, data: Data, out: Path) -> None:
    """Writes the frames as `data/EXPERIMENT-FRAME.parquet`, the kernel's in `data/kernel/`."""
    folder = _data_folder(on, out)
    for earlier in folder.glob(f"{experiment.name}-*.parquet"):
        earlier.unlink()
    for name, frame in data.items():
        frame.write_parquet(folder / f"{experiment.name}-{name}.parquet")


def read_data(experiment: Experiment, on: Ground, out: Path) -> Data:
    """Reads what `write_data` wrote.

    Raises:
        FileNotFoundError: There is none.
    """
    folder = _data_folder(on, out)
    paths = sorted(folder.glob(f"{experiment.name}-*.parquet"))
    if not paths:
        raise FileNotFoundError(f"{folder} has nothing of {experiment.name}; run it first")
    return {path.stem.removeprefix(f"{experiment.name}-"): pl.read_parquet(path) for path in paths}


def draw(outcome: Outcome, data: Data, out: Path) -> bytes:
    """Draws the figure as PNG and PDF; answers the PNG."""
    with drawn(outcome.experiment.size_in) as figure:
        assert isinstance(figure, Figure)
        outcome.experiment.figure(data, figure)
        path = out / "figures" / f"{outcome.name}.png"
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
            "on": outcome.ran.on,
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
