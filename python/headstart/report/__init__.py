"""The report: one HTML page about a results folder that opens anywhere, with no network."""

import os
import tempfile
from pathlib import Path

from headstart.report.page import render_report
from headstart.results import Results

__all__ = ["render_report", "write_page", "write_report"]


def write_report(results: Results, path: Path) -> None:
    """Writes the page about `results` to `path`, whole or not at all.

    Raises:
        OSError: The file cannot be written.
    """
    write_page(render_report(results), path)


def write_page(html: str, path: Path) -> None:
    """Writes the page `html` to `path`, whole or not at all.

    Raises:
        OSError: The file cannot be written.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(html)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
