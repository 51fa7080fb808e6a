"""What an experiment is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from headstart.reproduce.claims import Claim, Data, Ground

if TYPE_CHECKING:
    from headstart.reproduce.context import Context

__all__ = ["Data", "Experiment", "Paper"]


@dataclass(frozen=True)
class Paper:
    """A publication.

    Attributes:
        key: Its folder under `experiments/`.
        title: As printed.
        authors: As printed, shortened.
        where: Where it appeared.
    """

    key: str
    title: str
    authors: str
    where: str


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper. A module under `experiments/PAPER/` has one as `EXPERIMENT`.

    Attributes:
        name: Short and unique, such as "ad5": letters of the paper and a number.
        paper: The publication.
        section: Where in it.
        title: What is looked at.
        did: What the paper did.
        assumptions: What the paper leaves open, and what is assumed here; also what is not as in
            it.
        run: Simulates or measures. Its frames are written to the `data/` folder.
        figure: Draws into an empty figure, in the paper's form.
        claims: What the paper says of it.
        grounds: Where it can run.
        on_kernel: What is not the same on the live kernel, and what it cannot be.
        size_in: Width and height of the figure, in inches.
    """

    name: str
    paper: Paper
    section: str
    title: str
    did: str
    assumptions: tuple[str, ...]
    run: "Callable[[Context], Data]"
    figure: Callable[[Data, Figure], None]
    claims: tuple[Claim, ...]
    grounds: tuple[Ground, ...] = ("sim",)
    on_kernel: tuple[str, ...] = ()
    size_in: tuple[float, float] = (9.0, 3.6)
