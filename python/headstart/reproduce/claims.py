"""Claims as code: what the paper says, what was measured, and rules that turn both into a verdict.

The rules are few and the same for all claims of all papers; their limits are the constants below. A
claim chooses the rule that fits the form of the paper's sentence (a number, a range, "always", a
bound) and gives nothing but the paper's own numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import numpy as np
import polars as pl

Data = Mapping[str, pl.DataFrame]
"""What an experiment measured: frames by name."""

Ground = Literal["sim", "kernel"]
"""Where it was measured: in the simulator, or on this machine's kernel over emulated paths."""

GROUNDS: tuple[Ground, ...] = ("sim", "kernel")
"""In the order of the report."""

NUMBER_REPRODUCED = 0.15
"""`number`: as far from the paper's number, relative to it, is reproduced."""

NUMBER_PARTLY = 0.50
"""`number`: as far is partly reproduced: the same sign and size."""

SPAN_REPRODUCED = 0.5
"""`span`: so much of the two ranges' union is common to both."""

SHARE_REPRODUCED = 0.95
"""`share`: it holds in so many of the cases: what is said of all of them."""

SHARE_PARTLY = 0.60
"""`share`: it holds in most of them."""

BOUND_PARTLY = 0.50
"""`at_least`, `at_most`: the bound is missed by no more, relative to it."""


class Verdict(StrEnum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    PARTLY = "partly"
    NOT = "not-reproduced"
    ERROR = "error"


@dataclass(frozen=True)
class Measured:
    """A number with its spread.

    Attributes:
        value: The number that the rule looks at.
        low: The lower end of its spread; equal to `value` where there is none.
        high: The upper end.
        unit: Its unit, as it is printed.
        note: How the spread is meant, or what else a reader should see.
        digits: Significant digits that are printed.
    """

    value: float
    low: float
    high: float
    unit: str = ""
    note: str = ""
    digits: int = 3

    def __str__(self) -> str:
        """As it is printed: the number, its spread, its unit, the note."""
        text = self._number(self.value)
        if self.low != self.value or self.high != self.value:
            text += f" ({self._number(self.low)} to {self._number(self.high)})"
        text += f" {self.unit}" if self.unit else ""
        return f"{text}; {self.note}" if self.note else text

    def as_share(self) -> str:
        """As it is printed where the number is a share of cases."""
        text = f"{100 * self.value:.0f} %"
        text += f" {self.unit}" if self.unit else ""
        return f"{text}; {self.note}" if self.note else text

    def _number(self, value: float) -> str:
        if not np.isfinite(value):
            return str(value)
        whole = abs(value) >= 10**self.digits
        return f"{value:,.0f}" if whole else f"{value:.{self.digits}g}"


def of(
    values: Sequence[float] | pl.Series, unit: str = "", note: str = "", digits: int = 3
) -> Measured:
    """The mean of independent repeats and its 95 % interval (normal approximation)."""
    sample = np.asarray(values, dtype=float)
    if sample.size == 0:
        raise ValueError("nothing was measured")
    mean = float(sample.mean())
    half = 1.96 * float(sample.std(ddof=1)) / sample.size**0.5 if sample.size > 1 else 0.0
    counted = f"mean of {sample.size} runs, 95 % interval" if sample.size > 1 else "one run"
    return Measured(mean, mean - half, mean + half, unit, note or counted, digits)


@dataclass(frozen=True)
class Rule:
    """From a measurement to a verdict and its reason.

    Attributes:
        text: The rule in words, for the report.
        decide: The verdict and why.
        show: The measurement as it is printed.
    """

    text: str
    decide: Callable[[Measured], tuple[Verdict, str]]
    show: Callable[[Measured], str] = str


def number(paper: float) -> Rule:
    """The paper states a number, without its spread.

    A spread of ours that has the paper's number in it reproduces it only if it says something: if
    half of it is no wider than what counts as partly.
    """

    def decide(measured: Measured) -> tuple[Verdict, str]:
        distance = abs(measured.value - paper) / abs(paper)
        inside = measured.low <= paper <= measured.high
        telling = (measured.high - measured.low) / 2 <= NUMBER_PARTLY * abs(paper)
        words = f"{distance:.0%} from the paper's {paper:g}"
        if inside:
            words += ", which lies within the spread" if telling else "; the spread is too wide"
        reproduced = distance <= NUMBER_REPRODUCED or (inside and telling)
        return _by(reproduced, distance <= NUMBER_PARTLY or inside), words

    return Rule(
        f"{paper:g}: within {NUMBER_REPRODUCED:.0%} or within our spread reproduced, "
        f"within {NUMBER_PARTLY:.0%} partly",
        decide,
    )


def exact(paper: float, tolerance: float) -> Rule:
    """The paper prints what can be computed; `tolerance` is half a unit of its last digit."""

    def decide(measured: Measured) -> tuple[Verdict, str]:
        distance = abs(measured.value - paper)
        close = distance <= NUMBER_REPRODUCED * abs(paper)
        # The printed number is a decimal: its last place is not exact in binary.
        as_printed = distance <= tolerance * (1 + 1e-9)
        return _by(as_printed, close), (
            "the number that the paper prints"
            if as_printed
            else f"{distance:g} from the number that the paper prints"
        )

    return Rule(
        f"{paper:g} to its last digit (± {tolerance:g}); within {NUMBER_REPRODUCED:.0%} partly",
        decide,
    )


def span(low: float, high: float) -> Rule:
    """The paper gives the range over its cases; ours is that over the same cases."""

    def decide(measured: Measured) -> tuple[Verdict, str]:
        common = min(high, measured.high) - max(low, measured.low)
        union = max(high, measured.high) - min(low, measured.low)
        overlap = max(common, 0.0) / union if union > 0 else 1.0
        return _by(overlap >= SPAN_REPRODUCED, overlap > 0), (
            f"the ranges have {overlap:.0%} of their union in common"
        )

    return Rule(
        f"{low:g} to {high:g}: {SPAN_REPRODUCED:.0%} of the union in common reproduced, "
        "any overlap partly",
        decide,
    )


def share(what: str) -> Rule:
    """The paper says that something holds; measured is the share of cases in which it does."""

    def decide(measured: Measured) -> tuple[Verdict, str]:
        holds = measured.value
        return _by(
            holds >= SHARE_REPRODUCED, holds >= SHARE_PARTLY
        ), f"{what} in {holds:.0%} of the cases"

    return Rule(
        f"{what}: in {SHARE_REPRODUCED:.0%} of the cases reproduced, in {SHARE_PARTLY:.0%} partly",
        decide,
        Measured.as_share,
    )


def at_least(bound: float) -> Rule:
    """The paper gives a lower bound ("over 25 %", "more than")."""

    def decide(measured: Measured) -> tuple[Verdict, str]:
        return _bound(measured, bound, bound - measured.value, bound - measured.high, "below")

    return Rule(
        f"at least {bound:g}, within our spread; missed by {BOUND_PARTLY:.0%} partly", decide
    )


def at_most(bound: float) -> Rule:
    """The paper gives an upper bound ("no more than", "negligible" with the number it calls so)."""

    def decide(measured: Measured) -> tuple[Verdict, str]:
        return _bound(measured, bound, measured.value - bound, measured.low - bound, "above")

    return Rule(
        f"at most {bound:g}, within our spread; missed by {BOUND_PARTLY:.0%} partly", decide
    )


def above(bound: float) -> Rule:
    """The paper says that something is more, better, worse: a number that must be above a bound."""

    def decide(measured: Measured) -> tuple[Verdict, str]:
        clear, likely = measured.low > bound, measured.value > bound
        if clear:
            words = f"above {bound:g}"
        elif likely:
            words = f"above {bound:g}, but not by more than the spread"
        else:
            words = f"not above {bound:g}"
        return _by(clear, likely), words

    return Rule(f"above {bound:g}; where the spread has {bound:g} in it, partly", decide)


def _bound(
    measured: Measured, bound: float, missed: float, surely: float, side: str
) -> tuple[Verdict, str]:
    """`missed` by the number, and by the end of its spread that is nearest to the bound.

    As with `number`, a spread that has the bound in it says something only if it is not too wide.
    """
    if missed <= 0:
        return Verdict.REPRODUCED, "the bound is kept"
    if surely <= 0:
        telling = (measured.high - measured.low) / 2 <= BOUND_PARTLY * abs(bound)
        words = "within the spread" if telling else "only because the spread is too wide"
        return _by(telling, True), f"the bound is kept {words}"
    part = surely / abs(bound) if bound else float("inf")
    return _by(False, part <= BOUND_PARTLY), f"{surely:.3g} {side} the bound of {bound:g}"


def _by(reproduced: bool, partly: bool) -> Verdict:
    if reproduced:
        return Verdict.REPRODUCED
    return Verdict.PARTLY if partly else Verdict.NOT


@dataclass(frozen=True)
class Judged:
    """A claim and what became of it."""

    measured: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Claim:
    """One sentence or number of a paper.

    Attributes:
        text: What is claimed, in our words.
        paper: What the paper says, its number with its unit, and where.
        measure: From the experiment's data to the number and its spread.
        rule: Fixed beforehand; see the functions above.
        why: Beside the rule's own words, what explains an outcome of the simulator: by verdict.
        why_kernel: The same of the live kernel.
        grounds: Where the sentence can be judged, of the grounds of its experiment.
    """

    text: str
    paper: str
    measure: Callable[[Data], Measured]
    rule: Rule
    why: Mapping[Verdict, str] = field(default_factory=dict)
    why_kernel: Mapping[Verdict, str] = field(default_factory=dict)
    grounds: tuple[Ground, ...] = GROUNDS

    def judge(self, data: Data, on: Ground = "sim") -> Judged:
        """Measures and decides. A measurement that fails is an error, in words."""
        try:
            measured = self.measure(data)
            verdict, reason = self.rule.decide(measured)
        except Exception as error:
            return Judged("", Verdict.ERROR, f"{type(error).__name__}: {error}")
        if not np.isfinite(measured.value):
            return Judged(
                self.rule.show(measured), Verdict.ERROR, "the measurement is not a number"
            )
        words = (self.why if on == "sim" else self.why_kernel).get(verdict)
        return Judged(self.rule.show(measured), verdict, f"{reason}. {words}" if words else reason)
