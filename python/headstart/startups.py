"""What a start-up looks like in Python: plain dicts."""

from typing import TypedDict


class Parameter(TypedDict):
    """A parameter, in whole numbers of its unit, from `min` to `max`."""

    name: str
    unit: str
    default: int
    min: int
    max: int
    help: str


class Startup(TypedDict):
    """A start-up: its name as a congestion control, where it is published, its parameters."""

    name: str
    source: str
    parameters: list[Parameter]
