"""The Rust crates, as far as Python needs them."""

import os

from headstart.scenario import Scenario
from headstart.startups import Startup

class ScenarioError(ValueError):
    """A scenario file that is refused: ``FILE:LINE: object, cause; next step``."""

def load_scenario(path: str | os.PathLike[str]) -> Scenario:
    """Reads and checks the scenario file at ``path``.

    Raises:
        ScenarioError: The file is not there or not in order; says file, line and next step.
    """

def startups() -> list[Startup]:
    """All start-ups, in the order of their numbers."""
