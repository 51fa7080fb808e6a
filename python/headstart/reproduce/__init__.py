"""The papers' experiments: small modules that `headstart-lab reproduce` runs.

docs/papers.md says how to add one.
"""

from headstart.reproduce.claims import (
    Claim,
    Ground,
    Measured,
    Verdict,
    above,
    at_least,
    at_most,
    exact,
    number,
    of,
    share,
    span,
)
from headstart.reproduce.context import Context
from headstart.reproduce.experiment import Data, Experiment, Paper
from headstart.reproduce.papers import PAPERS

__all__ = [
    "PAPERS",
    "Claim",
    "Context",
    "Data",
    "Experiment",
    "Ground",
    "Measured",
    "Paper",
    "Verdict",
    "above",
    "at_least",
    "at_most",
    "exact",
    "number",
    "of",
    "share",
    "span",
]
