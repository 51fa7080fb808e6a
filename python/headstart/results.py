"""A results folder as `headstart compare --out DIR` writes it: one document and three tables.

`docs/results-schema.md` describes the document and the columns.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from headstart._native import ScenarioError, load_scenario
from headstart.scenario import Scenario

SCHEMA = 1
"""The version of the results document that this package reads."""

_NAME_OF_TRANSFER = {
    "startup": pl.String,
    "on": pl.String,
    "path": pl.String,
    "case": pl.String,
    "bytes": pl.UInt64,
    "repeat": pl.UInt32,
}

COLUMNS: dict[str, dict[str, type[pl.DataType]]] = {
    "transfers": _NAME_OF_TRANSFER
    | {
        "order": pl.UInt32,
        "lane": pl.UInt32,
        "fct_ms": pl.Float64,
        "connect_ms": pl.Float64,
        "limit_ms": pl.Float64,
        "retransmitted_pkts": pl.UInt64,
        "router_drops": pl.UInt64,
        "exit_why": pl.String,
        "exit_cwnd_pkts": pl.UInt32,
        "valid": pl.Boolean,
        "invalid_reason": pl.String,
    },
    "packets": _NAME_OF_TRANSFER
    | {
        "t_ms": pl.Float64,
        "direction": pl.String,
        "from_byte": pl.UInt64,
        "to_byte": pl.UInt64,
        "low_priority": pl.Boolean,
        "retransmission": pl.Boolean,
        "dropped": pl.Boolean,
    },
    "windows": _NAME_OF_TRANSFER
    | {
        "t_ms": pl.Float64,
        "cwnd_pkts": pl.UInt32,
        "ssthresh_pkts": pl.UInt32,
        "srtt_ms": pl.Float64,
        "inflight_pkts": pl.UInt32,
    },
}
"""The columns of the Parquet files, by the file's name without its ending."""

_DOCUMENT_KEYS = ("schema", "verb", "scenario", "seed", "machine", "cells", "run", "warnings")
_CELL_KEYS = ("startup", "on", "case", "bytes", "n", "invalid", "valid")


class ResultsError(Exception):
    """A results folder that is missing or damaged. The text says what, where and what to do."""


@dataclass(frozen=True)
class Results:
    """One run: what it measured, and what it was asked to measure.

    Attributes:
        directory: The folder it was read from.
        document: The content of `results.json`.
        scenario: The content of `scenario.toml`.
        transfers: One row a transfer.
        packets: One row a packet of a measured transfer.
        windows: One row for each state of the sender that was recorded.
    """

    directory: Path
    document: dict[str, Any]
    scenario: Scenario
    transfers: pl.DataFrame
    packets: pl.DataFrame
    windows: pl.DataFrame


def load_results(directory: str | Path) -> Results:
    """Reads and checks the results folder `directory`.

    Raises:
        ResultsError: A file is missing, damaged or of another schema.
    """
    directory = Path(directory)
    if not directory.is_dir():
        cause = "is not a folder" if directory.exists() else "no such folder"
        raise ResultsError(
            f"{directory}: {cause}; give the folder that `headstart compare --out` wrote"
        )
    document = _document(directory / "results.json")
    try:
        scenario = load_scenario(directory / "scenario.toml")
    except ScenarioError as error:
        raise ResultsError(str(error)) from error
    tables = {name: _table(directory / f"{name}.parquet", COLUMNS[name]) for name in COLUMNS}
    return Results(directory, document, scenario, **tables)


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultsError(
            f"{path}: no such file, so this is no finished run; "
            "run `headstart compare SCENARIO --out DIR` to the end"
        ) from None
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: cannot be read: {error}; repeat the run") from error
    if not isinstance(document, dict):
        raise ResultsError(f"{path}: is not a results document; repeat the run")
    schema = document.get("schema")
    if schema != SCHEMA:
        raise ResultsError(
            f"{path}: has schema {schema!r}, but this package reads schema {SCHEMA}; "
            "use the headstart-lab that was built with the headstart that measured"
        )
    missing = [key for key in _DOCUMENT_KEYS if key not in document]
    if not missing:
        cells = document["cells"]
        whole = isinstance(cells, list) and all(isinstance(cell, dict) for cell in cells)
        if not whole:
            raise ResultsError(f'{path}: "cells" is not a list of objects; repeat the run')
        missing = [key for key in _CELL_KEYS if any(key not in cell for cell in cells)]
    if missing:
        raise ResultsError(f'{path}: lacks "{missing[0]}"; repeat the run')
    return document


def _table(path: Path, columns: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    if not path.is_file():
        raise ResultsError(f"{path}: no such file; repeat the run")
    try:
        table = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ResultsError(f"{path}: is no Parquet file: {reason}; repeat the run") from error
    for name, dtype in columns.items():
        if name not in table.columns:
            raise ResultsError(f'{path}: lacks the column "{name}"; repeat the run')
        if table.schema[name] != dtype:
            raise ResultsError(
                f'{path}: column "{name}" is {table.schema[name]}, not {dtype.__name__}; '
                "repeat the run"
            )
    return table
