"""Headstart: makes the first round trips of TCP fast, and proves it.

`startups` lists the start-ups, `load_scenario` reads a scenario file, `simulate` and `sweep`
simulate one or many, `load_results` reads what a verb of `headstart` wrote with `--out`,
`headstart.report` makes a page of it, `headstart.reproduce` holds the papers' experiments, and
`headstart.ab` compares the arms of an experiment by the daemon's records.
"""

from headstart._native import ScenarioError, load_scenario, startups
from headstart.results import Results, ResultsError, load_results
from headstart.scenario_file import (
    ScenarioFile,
    changed,
    read_scenario,
    scenario_toml,
    write_scenario,
)
from headstart.simulation import SimResult, simulate, sweep

__all__ = [
    "Results",
    "ResultsError",
    "ScenarioError",
    "ScenarioFile",
    "SimResult",
    "changed",
    "load_results",
    "load_scenario",
    "read_scenario",
    "scenario_toml",
    "simulate",
    "startups",
    "sweep",
    "write_scenario",
]
