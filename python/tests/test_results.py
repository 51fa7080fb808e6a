"""Reading a results folder, whole and damaged."""

import json
from pathlib import Path

import polars as pl
import pytest

from headstart import ResultsError, load_results
from headstart.results import COLUMNS

SCHEMA_PAGE = Path(__file__).parents[2] / "docs" / "results-schema.md"


def refusal(directory: Path) -> str:
    """The text with which `directory` is refused."""
    with pytest.raises(ResultsError) as raised:
        load_results(directory)
    return str(raised.value)


def test_a_whole_folder_is_read(sample: Path) -> None:
    results = load_results(sample)
    assert results.scenario["name"] == "satellite"
    assert results.document["seed"] == 7
    assert results.transfers.height == 120
    assert set(results.packets["direction"].unique()) == {"data", "ack"}


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    assert refusal(missing).startswith(f"{missing}: no such folder; give the folder that")
    file = tmp_path / "file"
    file.touch()
    assert refusal(file).startswith(f"{file}: is not a folder;")


def test_an_unfinished_run_is_told_from_a_damaged_one(sample: Path) -> None:
    document = sample / "results.json"
    document.write_text(document.read_text()[:100])
    assert refusal(sample).startswith(f"{document}: cannot be read: ")
    document.write_text("[]")
    assert refusal(sample).startswith(f"{document}: is not a results document;")
    document.unlink()
    assert refusal(sample).startswith(f"{document}: no such file, so this is no finished run;")


def test_a_document_of_another_schema_is_refused(sample: Path) -> None:
    document = sample / "results.json"
    document.write_text(json.dumps(json.loads(document.read_text()) | {"schema": 2}))
    assert "has schema 2, but this package reads schema 1;" in refusal(sample)


@pytest.mark.parametrize("key", ["machine", "cells", "warnings"])
def test_a_document_without_a_key_is_refused(sample: Path, key: str) -> None:
    document = sample / "results.json"
    content = json.loads(document.read_text())
    del content[key]
    document.write_text(json.dumps(content))
    assert f'results.json: lacks "{key}";' in refusal(sample)


def test_cells_that_are_no_cells_are_refused(sample: Path) -> None:
    document = sample / "results.json"
    content = json.loads(document.read_text())
    document.write_text(json.dumps(content | {"cells": [3]}))
    assert '"cells" is not a list of objects' in refusal(sample)
    del content["cells"][0]["startup"]
    document.write_text(json.dumps(content))
    assert 'lacks "startup"' in refusal(sample)


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_a_table_that_is_missing_or_damaged_is_named(sample: Path, name: str) -> None:
    path = sample / f"{name}.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert refusal(sample).startswith(f"{path}: is no Parquet file: ")
    path.unlink()
    assert refusal(sample).startswith(f"{path}: no such file;")


def test_a_table_without_a_column_or_of_another_type_is_named(sample: Path) -> None:
    path = sample / "packets.parquet"
    table = pl.read_parquet(path)
    table.drop("low_priority").write_parquet(path)
    assert refusal(sample) == f'{path}: lacks the column "low_priority"; repeat the run'
    table.with_columns(pl.col("t_ms").cast(pl.String)).write_parquet(path)
    assert refusal(sample) == f'{path}: column "t_ms" is String, not Float64; repeat the run'


def test_a_scenario_that_is_damaged_is_named_with_its_line(sample: Path) -> None:
    path = sample / "scenario.toml"
    path.write_text('name = "x"\nsed = 3\n')
    assert refusal(sample).startswith(f'{path}:2: unknown key "sed"')


def test_every_column_is_documented_with_its_type() -> None:
    page = SCHEMA_PAGE.read_text()
    for name, columns in COLUMNS.items():
        section = page.split(f"### {name}.parquet")[1].split("\n#")[0]
        rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
        documented = {column.strip(" `"): dtype.strip().rstrip("?") for column, dtype in rows}
        assert documented == {column: dtype.__name__ for column, dtype in columns.items()}
