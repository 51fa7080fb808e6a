"""Headstart: makes the first round trips of TCP fast, and proves it.

`startups` lists the start-ups, `load_scenario` reads a scenario file, `load_results` what a verb of
`headstart` wrote with `--out`, and `headstart.report` makes a page of it.
"""

from headstart._native import ScenarioError, load_scenario, startups
from headstart.results import Results, ResultsError, load_results

__all__ = ["Results", "ResultsError", "ScenarioError", "load_results", "load_scenario", "startups"]
