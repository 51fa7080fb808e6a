"""The notebook of the docs: its cells run from the first to the last."""

import json
from pathlib import Path

import matplotlib as mpl
import polars as pl
import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "simulation.ipynb"


def test_the_cells_of_the_notebook_run_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    mpl.use("Agg")
    monkeypatch.chdir(NOTEBOOK.parent)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    ran = 0
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "commit the notebook without outputs"
            exec(compile("".join(cell["source"]), f"{NOTEBOOK.name}:{cell['id']}", "exec"), names)
            ran += 1
    assert ran == 5
    means = names["means"]
    assert isinstance(means, pl.DataFrame)
    assert means.height == 2 * 3 * 3
    mpl.pyplot.close("all")
