"""Simulations from Python: frames, sweeps, errors."""

import os
import subprocess
import tomllib
from pathlib import Path

import polars as pl
import pytest

import headstart as hs
from headstart import ScenarioError, ScenarioFile

SCENARIOS = Path(__file__).parents[2] / "scenarios"
BUILT = Path(__file__).parents[2] / "target" / "release" / "headstart"
PROGRAM = Path(os.environ.get("HEADSTART", BUILT))

SMALL: ScenarioFile = {
    "name": "small",
    "path": {"rate": "10mbit", "rtt": "40ms", "queue": "drop-tail:50"},
    "compare": {"startups": ["cubic", "reno"], "repeat": 2},
    "traffic": [{"name": "web", "kind": "users", "users": 2, "pages": 3, "bytes": "20kB"}],
}


def test_a_simulation_gives_a_row_for_each_transfer() -> None:
    result = hs.simulate(SMALL)
    assert result.transfers.height == 2 * 2 * 2 * 3
    assert result.transfers["startup"].unique().sort().to_list() == ["cubic", "reno"]
    assert result.transfers["finished"].all()
    assert result.transfers["fct_ms"].min() > 80
    assert result.flows.is_empty()
    assert result.links["link"].unique().sort().to_list() == ["forward", "reverse"]


def test_the_same_seed_gives_the_same_frames_with_any_number_of_threads() -> None:
    one = hs.simulate(SMALL, seed=7, threads=1)
    two = hs.simulate(SMALL, seed=7, threads=2)
    assert one.transfers.equals(two.transfers)
    assert one.links.equals(two.links)


def test_details_are_kept_where_they_are_asked_for() -> None:
    result = hs.simulate(SMALL, startups=["cubic"], repeat=1, flows=True, queues=True, packets=True)
    assert result.flows["cwnd_pkts"].max() >= 10
    assert result.queues["link"].n_unique() == 2
    data = result.packets.filter(kind="data", fate="came", retransmission=False)
    assert data["payload_bytes"].sum() == result.transfers["delivered_bytes"].sum()


def test_a_sweep_varies_every_combination_and_names_it_in_its_frames() -> None:
    vary = {"path.rtt": ["20ms", "200ms"], "traffic.web.users": [1, 3]}
    result = hs.sweep(SMALL, vary, startups=["cubic"], repeat=1)
    assert result.variants.rows() == [
        (0, "20ms", 1),
        (1, "20ms", 3),
        (2, "200ms", 1),
        (3, "200ms", 3),
    ]
    counts = result.transfers.group_by("variant", maintain_order=True).len()["len"].to_list()
    assert counts == [3, 9, 3, 9]
    means = result.transfers.group_by("path.rtt").agg(pl.col("fct_ms").mean())
    by_rtt = dict(means.rows())
    assert by_rtt["200ms"] > 2 * by_rtt["20ms"]


def test_several_scenarios_go_side_by_side() -> None:
    other = hs.changed(SMALL, {"path.rate": "1mbit"})
    result = hs.sweep([SMALL, other], startups=["cubic"], repeat=1)
    means = result.transfers.group_by("variant").agg(pl.col("fct_ms").mean()).sort("variant")
    assert means["fct_ms"][1] > means["fct_ms"][0]


def test_the_cases_of_a_scenario_are_simulated_too() -> None:
    result = hs.simulate(
        SCENARIOS / "satellite.toml", startups=["cubic", "su_fast_start"], repeat=1
    )
    assert result.cases.height == 6
    assert result.cases["valid"].all()


def test_frames_become_pandas_frames() -> None:
    frames = hs.simulate(SMALL, startups=["cubic"], repeat=1).to_pandas()
    assert len(frames["transfers"]) == 6
    assert frames["transfers"]["fct_ms"].dtype == "float64"


def test_an_error_in_a_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t1.toml"
    path.write_text('name = "t1"\n[path]\nreverse_rat = "1mbit"\n')
    with pytest.raises(ScenarioError) as raised:
        hs.simulate(path)
    assert str(raised.value).startswith(f'{path}:3: unknown key "reverse_rat" in [path]')


def test_an_error_in_a_dict_shows_the_line_that_it_became() -> None:
    wrong = hs.changed(SMALL, {"traffic.web.userz": 3})
    with pytest.raises(ScenarioError) as raised:
        hs.simulate(wrong)
    assert 'did you mean "users"?' in str(raised.value)
    assert '(line 3: { name = "web"' in str(raised.value)


def test_an_unknown_start_up_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match='did you mean "cubic"'):
        hs.simulate(SMALL, startups=["cubik"])


def test_a_change_of_what_is_not_there_says_what_is() -> None:
    with pytest.raises(KeyError, match='there is no "wep"; there are: web'):
        hs.changed(SMALL, {"traffic.wep.users": 3})


def test_a_scenario_is_written_and_read_again_as_it_was(tmp_path: Path) -> None:
    hs.write_scenario(SMALL, tmp_path / "small.toml")
    assert hs.read_scenario(tmp_path / "small.toml") == SMALL
    assert tomllib.loads(hs.scenario_toml(SMALL)) == SMALL


def test_progress_is_told_and_what_it_raises_ends_the_simulation() -> None:
    def stop(_done: int, _total: int) -> None:
        raise InterruptedError("enough")

    long = hs.changed(SMALL, {"traffic.web.pages": 100_000, "traffic.web.users": 50})
    with pytest.raises(InterruptedError, match="enough"):
        hs.simulate(long, progress=stop)


@pytest.mark.skipif(
    not PROGRAM.is_file(), reason="the program is not built (scripts/build.sh program)"
)
def test_the_frames_are_those_that_the_program_writes(tmp_path: Path) -> None:
    scenario = SCENARIOS / "peer-b.toml"
    command = [PROGRAM, "sim", scenario, "--out", tmp_path / "out"]
    subprocess.run(command, check=True, capture_output=True)
    written = pl.read_parquet(tmp_path / "out" / "sim_transfers.parquet")
    ours = hs.simulate(scenario).transfers.drop("variant")
    assert ours.equals(written)
