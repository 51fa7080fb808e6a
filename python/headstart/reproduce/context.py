"""What an experiment is given: how much to do, from which seed, and the means."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from headstart.reproduce.claims import Ground
from headstart.reproduce.live import LiveError, LiveResult, live_sweep
from headstart.results import Results, load_results
from headstart.scenario_file import ScenarioFile, write_scenario
from headstart.simulation import Progress, SimResult, simulate, sweep

T = TypeVar("T")


class GroundError(Exception):
    """A ground on which this machine cannot run. The text says why and what to do."""


@dataclass(frozen=True)
class Context:
    """What an experiment runs with.

    Attributes:
        quick: Fewer repeats and coarser sweeps: all experiments in minutes.
        seed: Of the first repeat.
        on: Where it runs.
        threads: All cores where it is None.
        progress: Is told of the runs of a simulation.
        notes: What the report has to say of this run; an experiment adds to it.
    """

    quick: bool = False
    seed: int = 1
    on: Ground = "sim"
    threads: int | None = None
    progress: Progress | None = field(default=None, compare=False)
    notes: list[str] = field(default_factory=list, compare=False)

    def pick(self, full: T, quick: T) -> T:
        """`full` in a full run, `quick` in a quick one."""
        return quick if self.quick else full

    def simulate(self, scenario: ScenarioFile | str | Path, **options: Any) -> SimResult:
        """As `headstart.simulate`, with this run's seed, threads and progress."""
        return simulate(scenario, **(self._options() | options))

    def sweep(
        self,
        scenario: ScenarioFile | str | Path | Sequence[ScenarioFile | str | Path],
        vary: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> SimResult:
        """As `headstart.sweep`, with this run's seed, threads and progress."""
        return sweep(scenario, vary, **(self._options() | options))

    def measure(
        self,
        scenarios: Sequence[ScenarioFile],
        *,
        repeat: int,
        whole: bool = False,
        **options: Any,
    ) -> SimResult | LiveResult:
        """The traffic of `scenarios`, where this run is: simulated, or on the live kernel.

        `options` are `packets` and `queues`, as in `sweep`. The kernel's answer has the same
        frames, as far as the wire tells what is in them: see `LiveResult`. There a run is over with
        its last transfer that has an end, unless it is to go on for the `whole` of its scenario.

        Raises:
            GroundError: The kernel or this machine cannot do it.
        """
        if self.on == "sim":
            return self.sweep(list(scenarios), repeat=repeat, **options)
        try:
            result = live_sweep(
                _program(), scenarios, repeat=repeat, seed=self.seed, whole=whole, **options
            )
        except LiveError as error:
            raise GroundError(str(error)) from error
        self.notes.extend(result.warnings)
        return result

    def compare(self, scenario: ScenarioFile, *options: str) -> Results:
        """Measures the cases of `scenario` on the live kernel, by the program `headstart compare`.

        Raises:
            GroundError: The program is not there, or it failed; its own words are in the text.
        """
        program = _program()
        with tempfile.TemporaryDirectory(prefix="headstart-reproduce-") as folder:
            file = Path(folder) / f"{scenario['name']}.toml"
            write_scenario(scenario, file)
            out = Path(folder) / "results"
            command = [program, "compare", "--on", "kernel", str(file), "--out", str(out), *options]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                words = done.stderr.strip().splitlines()
                raise GroundError(words[-1] if words else f"{program} failed")
            return load_results(out)

    def _options(self) -> dict[str, Any]:
        return {"seed": self.seed, "threads": self.threads, "progress": self.progress}


def _program() -> str:
    """The program: `$HEADSTART`, the one on the path, or the one that was built here."""
    built = Path(__file__).parents[3] / "target" / "release" / "headstart"
    for candidate in (os.environ.get("HEADSTART"), shutil.which("headstart"), str(built)):
        if candidate and Path(candidate).is_file():
            return candidate
    raise GroundError("the program headstart is not there; build it with scripts/build.sh program")
