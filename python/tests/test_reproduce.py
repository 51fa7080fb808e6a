"""Reproductions: claims and their rules, the runner, the report."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from headstart.lab import app
from headstart.reproduce import (
    Claim,
    Context,
    Data,
    Experiment,
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
from headstart.reproduce import runner as running
from headstart.reproduce.claims import Rule
from headstart.reproduce.context import GroundError
from headstart.reproduce.page import render_page, render_table
from headstart.reproduce.papers import ADAPTIVE

KEYS = {"experiment", "on", "claim", "paper", "measured", "verdict", "reason"}


def measured(value: float, low: float | None = None, high: float | None = None) -> Measured:
    """A measurement with or without a spread."""
    return Measured(value, value if low is None else low, value if high is None else high)


@pytest.mark.parametrize(
    ("rule", "what", "verdict"),
    [
        (number(100), measured(100), Verdict.REPRODUCED),
        (number(100), measured(116), Verdict.PARTLY),
        (number(100), measured(116, 110, 122), Verdict.PARTLY),
        (number(100), measured(120, 95, 145), Verdict.REPRODUCED),
        (number(100), measured(40, -80, 160), Verdict.PARTLY),
        (number(100), measured(151), Verdict.NOT),
        (number(-10), measured(-11), Verdict.REPRODUCED),
        (number(-10), measured(11), Verdict.NOT),
        (exact(2.53, 0.005), measured(2.534), Verdict.REPRODUCED),
        (exact(2.53, 0.005), measured(2.536), Verdict.PARTLY),
        (exact(2.53, 0.005), measured(3.3), Verdict.NOT),
        (span(4, 50), measured(20, 10, 45), Verdict.REPRODUCED),
        (span(4, 50), measured(20, 40, 90), Verdict.PARTLY),
        (span(4, 50), measured(-5, -8, -1), Verdict.NOT),
        (share("it holds"), measured(1.0), Verdict.REPRODUCED),
        (share("it holds"), measured(0.7), Verdict.PARTLY),
        (share("it holds"), measured(0.5), Verdict.NOT),
        (at_least(25), measured(26), Verdict.REPRODUCED),
        (at_least(25), measured(13), Verdict.PARTLY),
        (at_least(25), measured(12), Verdict.NOT),
        (at_least(25), measured(24, 20, 28), Verdict.REPRODUCED),
        (at_least(25), measured(15, -12, 43), Verdict.PARTLY),
        (at_least(0), measured(-1, -3, 1), Verdict.PARTLY),
        (at_most(2), measured(1.9), Verdict.REPRODUCED),
        (at_most(2), measured(2.5), Verdict.PARTLY),
        (at_most(2), measured(3.5), Verdict.NOT),
        (above(0), measured(1.0, 0.5, 1.5), Verdict.REPRODUCED),
        (above(0), measured(1.0, -0.5, 2.5), Verdict.PARTLY),
        (above(0), measured(0.0), Verdict.NOT),
    ],
)
def test_a_rule_decides_by_its_limits(rule: Rule, what: Measured, verdict: Verdict) -> None:
    decided, reason = rule.decide(what)
    assert decided == verdict
    assert reason


def test_repeats_are_summed_up_as_mean_and_interval() -> None:
    summed = of([1.0, 2.0, 3.0, 4.0], "s")
    assert summed.value == 2.5
    assert summed.high - 2.5 == pytest.approx(1.96 * 1.2909944 / 2)
    assert str(summed).startswith("2.5 (1.23 to 3.77) s; mean of 4 runs")


def experiment(
    run: Callable[[Context], Data], measure: Callable[[Data], Measured] | None = None
) -> Experiment:
    """An experiment with one claim."""

    def first(data: Data) -> Measured:
        value = float(data["points"]["y"][0])
        return measured(value)

    def figure(data: Data, figure: Figure) -> None:
        figure.subplots().plot(data["points"]["x"], data["points"]["y"])

    claim = Claim(
        "y is 3 | at <x> = 0", "3 s", measure or first, number(3), {Verdict.NOT: "No idea"}
    )
    return Experiment(
        name="ad99",
        paper=ADAPTIVE,
        section="section 9",
        title="a line",
        did="Drew a line.",
        assumptions=("It is straight.",),
        run=run,
        figure=figure,
        claims=(claim,),
    )


def points(_context: Context) -> Data:
    """Two points."""
    return {"points": pl.DataFrame({"x": [0, 1], "y": [3.0, 4.0]})}


def test_an_experiment_leaves_data_figure_and_claims(tmp_path: Path) -> None:
    outcomes = running.run_all([experiment(points)], Context(quick=True), tmp_path, lambda _: None)
    running.write_claims(outcomes, tmp_path)
    assert pl.read_parquet(tmp_path / "data" / "ad99-points.parquet").height == 2
    assert (tmp_path / "figures" / "ad99.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figures" / "ad99.pdf").read_bytes().startswith(b"%PDF")
    claims = json.loads((tmp_path / "claims.json").read_text())
    assert [set(claim) for claim in claims] == [KEYS]
    assert claims[0]["verdict"] == "reproduced"
    assert claims[0]["measured"] == "3"


def test_an_experiment_that_fails_is_an_error_and_the_others_go_on(tmp_path: Path) -> None:
    def fails(_context: Context) -> Data:
        raise RuntimeError("the path is gone")

    outcomes = running.run_all(
        [experiment(fails), experiment(points)], Context(), tmp_path, lambda _: None
    )
    first, second = running.claims_of(outcomes)
    assert (first["verdict"], first["reason"]) == ("error", "RuntimeError: the path is gone")
    assert second["verdict"] == "reproduced"
    assert "the path is gone" in render_page(outcomes)


def test_what_was_measured_is_judged_again_without_a_run(tmp_path: Path) -> None:
    def never(_context: Context) -> Data:
        raise AssertionError("it ran")

    out = make(tmp_path)
    first = running.run_one(experiment(points), Context(quick=True, seed=7), out)
    second = running.judge_again([experiment(never)], out)
    assert running.claims_of(second) == running.claims_of([first])
    assert second[0].ran == first.ran
    (out / "data" / "ad99-points.parquet").unlink()
    third = running.judge_again([experiment(points)], out)
    assert third[0].judged[0][1].verdict == Verdict.ERROR


def test_both_grounds_are_kept_apart_and_judged_apart(tmp_path: Path) -> None:
    def run(context: Context) -> Data:
        context.notes.append(f"a note of {context.on}")
        return {"points": pl.DataFrame({"x": [0], "y": [3.0 if context.on == "sim" else 9.0]})}

    both = replace(experiment(run), grounds=("sim", "kernel"))
    sim_alone = replace(both.claims[0], text="of the simulator", grounds=("sim",))
    both = replace(both, claims=(*both.claims, sim_alone))
    out = make(tmp_path)
    for on in ("sim", "kernel"):
        running.run_one(both, Context(on=on), out)
    outcomes = running.judge_again([both], out)
    assert [(one.ran.on, one.ran.notes) for one in outcomes] == [
        ("sim", ("a note of sim",)),
        ("kernel", ("a note of kernel",)),
    ]
    claims = running.claims_of(outcomes)
    assert [(claim["on"], claim["verdict"]) for claim in claims] == [
        ("sim", "reproduced"),
        ("sim", "reproduced"),
        ("kernel", "not-reproduced"),
    ]
    assert (out / "figures" / "ad99-kernel.png").exists()
    page = render_page(outcomes)
    assert 'id="ad99-kernel"' in page
    assert "a note of kernel" in page
    assert "| ad99 *kernel* |" in render_table(outcomes)


def test_a_ground_that_is_not_to_be_had_is_said_without_a_traceback(tmp_path: Path) -> None:
    def run(_context: Context) -> Data:
        raise GroundError("the live kernel is measured by root only")

    out = make(tmp_path)
    outcome = running.run_one(experiment(run), Context(on="kernel"), out)
    assert outcome.error == "GroundError: the live kernel is measured by root only"
    again = running.judge_again([experiment(run)], out)
    assert again[0].judged[0][1].reason == outcome.error


def test_a_measure_that_fails_is_an_error_of_its_claim_alone(tmp_path: Path) -> None:
    def nothing(data: Data) -> Measured:
        return of(data["nothing"]["y"])

    outcome = running.run_one(experiment(points, nothing), Context(), make(tmp_path))
    assert outcome.judged[0][1].verdict == Verdict.ERROR
    assert outcome.png is not None


def make(out: Path) -> Path:
    """The folders that a run has."""
    running.make_folders(out)
    return out


def test_the_page_refers_to_nothing_outside_of_itself(tmp_path: Path) -> None:
    outcome = running.run_one(experiment(points), Context(), make(tmp_path))
    page = render_page([outcome])
    for reference in re.findall(r"""(?:src|href)=["']([^"']*)["']|url\(([^)]*)\)""", page):
        assert "".join(reference).startswith(("#", "data:")), reference
    assert "http://" not in page
    assert "https://" not in page
    assert "data:image/png;base64," in page
    assert "&lt;x&gt;" in page


def test_the_table_for_the_docs_escapes_what_would_end_a_cell(tmp_path: Path) -> None:
    outcome = running.run_one(experiment(points), Context(), make(tmp_path))
    table = render_table([outcome])
    assert r"y is 3 \| at <x> = 0" in table
    assert "**reproduced**" in table


def test_every_experiment_has_a_name_of_its_own_and_claims() -> None:
    known = running.all_experiments()
    names = [one.name for one in known]
    assert "ad5" in names
    assert len(names) == len(set(names))
    for one in known:
        assert one.claims, one.name
        texts = [claim.text for claim in one.claims]
        assert len(texts) == len(set(texts)), one.name
        assert set(one.grounds) <= {"sim", "kernel"}, one.name


def lab(*arguments: str | Path) -> "object":
    """Runs `headstart-lab` with `arguments`."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_reproduces_the_analysis(tmp_path: Path) -> None:
    docs = tmp_path / "reproduction.md"
    result = lab("reproduce", "ad5", "--out", tmp_path / "out", "--write-docs", docs)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{tmp_path}/out/report.html\n"
    claims = json.loads((tmp_path / "out" / "claims.json").read_text())
    assert {claim["experiment"] for claim in claims} == {"ad5"}
    assert "| ad5 |" in docs.read_text()
    again = lab("reproduce", "iw1", "--quick", "--keep", "--out", tmp_path / "out")
    assert again.exit_code == 0, again.output
    claims = json.loads((tmp_path / "out" / "claims.json").read_text())
    assert {claim["experiment"] for claim in claims} == {"ad5", "iw1"}


def test_the_list_names_every_experiment() -> None:
    result = lab("reproduce", "--list")
    assert result.exit_code == 0
    assert "ad5 " in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ad55"], 'there is no experiment "ad55"; did you mean "ad5"?'),
        ([], "name experiments or papers, or give --all"),
        (["ad5", "--on", "kernel"], "no experiment is left"),
    ],
)
def test_a_wrong_choice_ends_with_code_2(arguments: list[str], words: str, tmp_path: Path) -> None:
    result = lab("reproduce", *arguments, "--out", tmp_path)
    assert result.exit_code == 2
    assert words in result.stderr
