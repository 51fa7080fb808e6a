"""The command `headstart-lab`."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from headstart.lab import app


def lab(*arguments: str | Path) -> Result:
    """Runs `headstart-lab` with `arguments`."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_report_writes_a_page_beside_the_results_and_says_where(sample: Path) -> None:
    result = lab("report", sample)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{sample}/report.html\n"
    assert (sample / "report.html").stat().st_size > 1_000_000


def test_report_writes_to_the_place_that_is_given(sample: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert lab("report", sample, "--output", page).exit_code == 0
    assert page.is_file()


def test_a_folder_without_results_ends_with_code_2_and_no_traceback(tmp_path: Path) -> None:
    result = lab("report", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"headstart-lab: {tmp_path}/results.json: no such file")
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize("arguments", [[], ["report"], ["raport"], ["report", "a", "--colour"]])
def test_wrong_usage_ends_with_code_2(arguments: list[str]) -> None:
    assert lab(*arguments).exit_code == 2


def test_a_page_that_cannot_be_written_ends_with_code_1(sample: Path, tmp_path: Path) -> None:
    result = lab("report", sample, "--output", tmp_path / "none" / "page.html")
    assert result.exit_code == 1
    assert "cannot be written: No such file or directory; choose another" in result.stderr
