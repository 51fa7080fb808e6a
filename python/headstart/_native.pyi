"""The Rust crates, as far as Python needs them."""

import os
from collections.abc import Callable, Sequence
from typing import Literal, TypedDict

from headstart.scenario import Scenario
from headstart.startups import Startup

class ScenarioError(ValueError):
    """A scenario file that is refused: ``FILE:LINE: object, cause; next step``."""

class Table:
    """A table behind the Arrow PyCapsule interface: give it to ``polars.DataFrame``."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

class Variant(TypedDict):
    """One scenario to simulate; ``None``: as the scenario says."""

    file: str
    text: str
    startups: list[str] | None
    repeat: int | None
    seed: int | None
    settings: list[str]

TableName = Literal[
    "transfers",
    "links",
    "flows",
    "queues",
    "packets",
    "cases",
    "case_packets",
    "case_windows",
]

def check_scenario(file: str, text: str) -> None:
    """Checks the scenario ``text``; errors call it ``file``.

    Raises:
        ScenarioError: It is not in order; says file, line and next step.
    """

def load_scenario(path: str | os.PathLike[str]) -> Scenario:
    """Reads and checks the scenario file at ``path``.

    Raises:
        ScenarioError: The file is not there or not in order; says file, line and next step.
    """

def simulate(
    variants: Sequence[Variant],
    *,
    threads: int = 0,
    flows: bool = False,
    queues: bool = False,
    packets: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[dict[TableName, Table], list[str]]:
    """Simulates ``variants`` on ``threads`` threads (0: all cores), the GIL released meanwhile.

    Returns:
        The tables by name, and warnings.

    Raises:
        ScenarioError: A scenario is not in order.
        ValueError: A start-up that is not there, or a simulation that cannot be.
    """

def startups() -> list[Startup]:
    """All start-ups, in the order of their numbers."""
