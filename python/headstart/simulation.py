"""Simulations: scenarios in, Polars frames out, on all cores.

Example::

    import headstart as hs
    import polars as pl

    result = hs.simulate("scenarios/peer-b.toml", startups=["cubic", "reno"], repeat=10)
    result.transfers.group_by("startup").agg(pl.col("fct_ms").mean())

    vary = {"path.rtt": ["50ms", "200ms"], "traffic.users.users": [1, 10]}
    result = hs.sweep("scenarios/peer-b.toml", vary)
    result.transfers.group_by(*vary).agg(pl.col("fct_ms").mean())
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from headstart import _native
from headstart._native import ScenarioError
from headstart.scenario_file import ScenarioFile, changed, read_scenario, scenario_toml

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int], None]
"""Is told how many runs are done, and of how many."""


@dataclass(frozen=True)
class SimResult:
    """What was simulated. Times are in ms of simulated time since the run began.

    In all frames `variant` (UInt32) is the position of the scenario in a sweep (0 for a single
    one), `startup` the start-up that was compared, `repeat` the repeat; the columns of what a sweep
    varies are in all of them, too.

    Attributes:
        variants: One row a scenario: `variant`, and what was varied.
        transfers: One row a transfer of the traffic: `group`, `user`, `conn`, `turn`, `start_ms`,
            `connect_ms`, `fct_ms` (transfer time), `bytes`, `delivered_bytes`, `finished`,
            `round_trips` (of the least that its sender saw), `retransmitted_pkts`, `dropped_pkts`,
            of its connection so far `timeouts` and `sack_walk_pkts` (how far a linked list of what
            is out would have been walked for its SACK blocks),
            `exit_why`, `exit_cwnd_pkts`, `slow_start_end_ms`, `slow_start_end_cwnd_pkts`.
        links: One row a link of a run: packets in, out and dropped, `out_bytes`,
            `longest_queue_pkts`, `busy_ms` out of `run_ms`.
        flows: One row a sample of a sender, if asked for: `group`, `conn`, `t_ms`, `cwnd_pkts`,
            `ssthresh_pkts` (null: unlimited), `srtt_ms`, `inflight_pkts`. At most one each
            `sample_every`.
        queues: One row a sample of a link's queue, if asked for: `link`, `t_ms`, `len_pkts`, and
            since the run began `dropped_pkts`, `out_pkts`, `busy_ms`.
        packets: One row a packet that left (`fate` "sent"), arrived ("came") or was dropped
            ("dropped"), if asked for: `group`, `conn`, `life` of the slot `conn`, `t_ms`, `kind`,
            `seq` (of data the first byte, of an ACK the next one expected), `payload_bytes`,
            `low_priority`, `retransmission`.
        cases: One row a transfer of the scenario's `[[case]]`s, as `transfers` of a results folder.
        case_packets: Their packets, if packets or flows were asked for.
        case_windows: Their senders' states, if packets or flows were asked for.
        warnings: What a reader has to know.
    """

    variants: pl.DataFrame
    transfers: pl.DataFrame
    links: pl.DataFrame
    flows: pl.DataFrame
    queues: pl.DataFrame
    packets: pl.DataFrame
    cases: pl.DataFrame
    case_packets: pl.DataFrame
    case_windows: pl.DataFrame
    warnings: list[str]

    def to_pandas(self) -> "dict[str, pd.DataFrame]":
        """All frames as pandas frames, by name. Needs the extra `headstart[pandas]`."""
        frames = {name: getattr(self, name) for name in ("variants", *_TABLES)}
        return {name: frame.to_pandas() for name, frame in frames.items()}


_TABLES = (
    "transfers",
    "links",
    "flows",
    "queues",
    "packets",
    "cases",
    "case_packets",
    "case_windows",
)


def simulate(
    scenario: ScenarioFile | str | Path,
    *,
    startups: Sequence[str] | None = None,
    repeat: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    flows: bool = False,
    queues: bool = False,
    packets: bool = False,
    progress: Progress | None = None,
) -> SimResult:
    """Simulates a scenario: its traffic and its cases, under each start-up, `repeat` times.

    The same scenario and seed give the same result, with any number of threads.

    Args:
        scenario: A dict of the file's tables, or the path of a TOML file.
        startups: In place of the scenario's.
        repeat: How often each, in place of the scenario's. The seed of repeat r is seed + r.
        seed: In place of the scenario's.
        threads: All cores unless given.
        flows: Keep samples of senders.
        queues: Keep samples of queues.
        packets: Keep every packet. A million packets take about 100 MB.
        progress: Called with (runs done, runs in all) now and then.

    Raises:
        ScenarioError: The scenario is not in order: FILE:LINE, cause, next step.
        ValueError: A start-up or a parameter that is not there, or a simulation that cannot be.
    """
    return sweep(
        [scenario],
        startups=startups,
        repeat=repeat,
        seed=seed,
        threads=threads,
        flows=flows,
        queues=queues,
        packets=packets,
        progress=progress,
    )


def sweep(
    scenario: ScenarioFile | str | Path | Sequence[ScenarioFile | str | Path],
    vary: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]] | None = None,
    *,
    startups: Sequence[str] | None = None,
    repeat: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    flows: bool = False,
    queues: bool = False,
    packets: bool = False,
    progress: Progress | None = None,
) -> SimResult:
    """Simulates many variants of a scenario, or many scenarios, all runs side by side on all cores.

    Args:
        scenario: A dict of the file's tables, the path of a TOML file, or a list of these.
        vary: What differs. A dict from the dotted place of a key (see `headstart.changed`) to its
            values: every combination is simulated, the last key fastest. Or a list of dicts, each
            with the changes of one variant. With several scenarios, each is varied.
        startups: As in `simulate`; so are `repeat`, `seed`, `threads` and the rest.
        repeat: See `simulate`.
        seed: See `simulate`.
        threads: See `simulate`.
        flows: See `simulate`.
        queues: See `simulate`.
        packets: See `simulate`.
        progress: See `simulate`.

    Returns:
        The frames of all variants together. What was varied is in columns named by its place.

    Raises:
        ScenarioError: As in `simulate`.
        ValueError: As in `simulate`.
        KeyError: A place in `vary` that is not there.
    """
    several = isinstance(scenario, Sequence) and not isinstance(scenario, str)
    scenarios = list(scenario) if several else [scenario]
    changes = _changes(vary)
    # A file that is not varied is given to the native reader as it is: its errors name its own
    # lines.
    variants = [_variant(one, change) for one in scenarios for change in changes]
    for variant in variants:
        variant |= {
            "startups": None if startups is None else list(startups),
            "repeat": repeat,
            "seed": seed,
            "settings": [],
        }
    tables, warnings = _native.simulate(
        variants,
        threads=threads or 0,
        flows=flows,
        queues=queues,
        packets=packets,
        progress=progress,
    )
    varied = _varied(scenarios, changes)
    frames = {name: _frame(tables[name], varied) for name in _TABLES}
    return SimResult(variants=varied, warnings=list(dict.fromkeys(warnings)), **frames)


def _changes(
    vary: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]] | None,
) -> list[Mapping[str, Any]]:
    if vary is None:
        return [{}]
    if isinstance(vary, Mapping):
        return [
            dict(zip(vary, values, strict=True)) for values in itertools.product(*vary.values())
        ]
    return list(vary)


def _variant(scenario: ScenarioFile | str | Path, change: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(scenario, (str, Path)):
        if not change:
            return {"file": str(scenario), "text": _text(Path(scenario))}
        scenario = read_scenario(scenario)
    scenario = changed(scenario, change) if change else scenario
    return {"file": f"scenario {scenario.get('name', '')}", "text": scenario_toml(scenario)}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror or error}") from None


def _varied(scenarios: Sequence[Any], changes: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    rows = [dict(change) for _ in scenarios for change in changes]
    keys = dict.fromkeys(key for row in rows for key in row)
    columns = {key: [_plain(row.get(key)) for row in rows] for key in keys}
    numbers = pl.Series("variant", range(len(rows)), dtype=pl.UInt32)
    return pl.DataFrame([numbers, *(pl.Series(key, values) for key, values in columns.items())])


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _frame(table: "_native.Table", varied: pl.DataFrame) -> pl.DataFrame:
    frame = pl.DataFrame(table)
    return frame.join(varied, on="variant", how="left") if varied.width > 1 else frame
