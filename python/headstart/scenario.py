"""What a scenario looks like in Python: plain dicts, with the units in the keys."""

from typing import Literal, TypedDict

CaseKind = Literal["new-cold", "resume-warm", "new-warm"]


class Path(TypedDict):
    """The path between server and client. `reverse_` is from client to server."""

    rate_bits_per_s: int
    reverse_rate_bits_per_s: int
    delay_ms: float
    reverse_delay_ms: float
    queue: str
    reverse_queue: str


class Transfer(TypedDict):
    """Who talks to whom."""

    server: str
    client: str


class Compare(TypedDict):
    """What is compared."""

    startups: list[str]
    repeat: int


class Case(TypedDict):
    """What is asked of a connection; `warm_bytes`, `idle_ms` are None where the kind has none."""

    kind: CaseKind
    bytes: int
    warm_bytes: int | None
    idle_ms: float | None


class OnPath(TypedDict):
    """A path of the file, and what is asked over it.

    `name` is None where the file gives none. What the path takes longer for than `limit_s` of
    `[compare]` is not among the `cases`.
    """

    name: str | None
    path: Path
    cases: list[Case]


class Scenario(TypedDict):
    """A scenario file that has been read and checked.

    `path` and `cases` are of the first of `paths`. `parameters` is by start-up and name.
    """

    name: str
    description: str
    seed: int
    path: Path
    paths: list[OnPath]
    transfer: Transfer
    compare: Compare
    cases: list[Case]
    parameters: dict[str, dict[str, int]]
