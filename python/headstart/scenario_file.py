"""Scenario files as dicts: the keys of the TOML, its words as values (`"1.6mbit"`, `"50ms"`).

The one reader of scenarios is the native one. A dict becomes TOML text and is read by it, so that a
scenario means the same here, on the command line and in the emulator.
"""

import copy
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

import tomli_w

from headstart._native import ScenarioError, check_scenario


class CompareTable(TypedDict):
    """`[compare]`."""

    startups: list[str]
    repeat: int


class PathTable(TypedDict, total=False):
    """`[path]`: the bottleneck each way. `reverse_` stands before the keys of client to server."""

    preset: str
    rate: str
    reverse_rate: str
    rtt: str
    delay: str
    reverse_delay: str
    queue: str
    reverse_queue: str
    loss: str
    reverse_loss: str
    jitter: str
    reverse_jitter: str
    flow_delay: str
    priority_dscp: int


class TransportTable(TypedDict, total=False):
    """`[transport]`: both ends of a simulated connection."""

    model: str
    mss_bytes: int
    header_bytes: int
    ack_bytes: int
    request_bytes: int
    handshake: str
    initial_window_pkts: int
    initial_ssthresh_pkts: int
    send_buffer: str
    recovery: str
    dupthresh: int
    limited_transmit: bool
    hystart: bool
    growth: str
    min_rto: str
    initial_rto: str
    handshake_rtt: bool
    frto: bool
    clock_tick: str
    idle: str
    pacing: str
    timestamps: bool
    ecn: bool
    acks: str
    ack_delay: str
    sack: str
    receive_window: str


class LinkTable(TypedDict, total=False):
    """One `[[link]]` of a simulation, beside the two of `[path]`."""

    name: str
    rate: str
    delay: str
    queue: str
    loss: str
    jitter: str
    flow_delay: str


class TrafficTable(TypedDict, total=False):
    """One `[[traffic]]`: senders and receivers of one kind."""

    name: str
    kind: str
    startup: str
    route: list[str]
    reverse_route: list[str]
    direction: str
    extra_rtt: str
    destination: int
    hints: bool
    head: str
    body_after: str
    transport: TransportTable
    users: int
    start: str
    stagger: str
    pages: int
    objects: str
    index_first: bool
    bytes: str
    parallel: int
    persistent: bool
    think: str
    transfers: int
    gap: str
    connections: int


class CaseTable(TypedDict, total=False):
    """One `[[case]]`."""

    kind: str
    bytes: str
    warm_bytes: str
    idle: str


class SimulationTable(TypedDict, total=False):
    """`[simulation]`."""

    until: str
    sample_every: str
    ends_with: list[str]
    host_jitter: str
    memory_params: list[str]


class _Needed(TypedDict):
    name: str
    path: PathTable
    compare: CompareTable


class ScenarioFile(_Needed, total=False):
    """A scenario file, table by table. `headstart._native` says what may stand where."""

    description: str
    seed: int
    simulation: SimulationTable
    transport: TransportTable
    link: list[LinkTable]
    traffic: list[TrafficTable]
    case: list[CaseTable]
    startup: dict[str, dict[str, int]]


def read_scenario(path: str | Path) -> ScenarioFile:
    """Reads and checks the scenario file at `path`, as a dict of its tables.

    Raises:
        ScenarioError: It is not in order; says file, line and next step.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror or error}") from None
    check_scenario(str(path), text)
    return tomllib.loads(text)


def scenario_toml(scenario: ScenarioFile) -> str:
    """The TOML text of `scenario`, checked.

    Raises:
        ScenarioError: It is not in order. The line is that of the TOML text.
    """
    text = tomli_w.dumps(scenario)
    name = f"scenario {scenario.get('name', 'without a name')}"
    try:
        check_scenario(name, text)
    except ScenarioError as error:
        raise _with_line(error, text) from None
    return text


def write_scenario(scenario: ScenarioFile, path: str | Path) -> None:
    """Writes `scenario` as a TOML file, after checking it.

    Raises:
        ScenarioError: It is not in order.
        OSError: The file cannot be written.
    """
    Path(path).write_text(scenario_toml(scenario), encoding="utf-8")


def changed(scenario: ScenarioFile, changes: Mapping[str, Any]) -> ScenarioFile:
    """A copy of `scenario` with `changes`: from the dotted place of a key to its value.

    An item of a list of tables is named by its `name` or its position: `"path.rtt"`,
    `"traffic.web.users"`, `"case.0.bytes"`, `"startup.su_adaptive.pacing"`.

    Raises:
        KeyError: A place names an item that is not there.
    """
    copied = copy.deepcopy(scenario)
    for place, value in changes.items():
        *steps, key = place.split(".")
        table: Any = copied
        for step in steps:
            table = _into(table, step, place)
        table[key] = value
    return copied


def _into(table: Any, step: str, place: str) -> Any:
    if isinstance(table, dict):
        return table.setdefault(step, {})
    for position, item in enumerate(table):
        if step in (item.get("name"), str(position)):
            return item
    known = ", ".join(str(item.get("name", position)) for position, item in enumerate(table))
    raise KeyError(f'{place}: there is no "{step}"; there are: {known}')


def _with_line(error: ScenarioError, text: str) -> ScenarioError:
    """The same error, and what stands in that line: a dict has none that a reader could look at."""
    found = re.match(r".*?:(\d+): ", str(error))
    for line in _line(text, int(found[1]) if found else 0):
        return ScenarioError(f"{error} (line {found[1] if found else ''}: {line})")
    return error


def _line(text: str, number: int) -> Iterator[str]:
    lines = text.splitlines()
    if 0 < number <= len(lines):
        yield lines[number - 1].strip()
