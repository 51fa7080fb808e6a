"""The native module: scenario files as dicts, errors as the Rust parser words them."""

from pathlib import Path

import pytest

import headstart
from headstart import ScenarioError, load_scenario

SATELLITE = Path(__file__).parents[2] / "scenarios" / "satellite.toml"


def test_the_satellite_scenario_becomes_a_dict_with_units_in_its_keys() -> None:
    scenario = load_scenario(SATELLITE)
    assert scenario["name"] == "satellite"
    assert scenario["path"] == {
        "rate_bits_per_s": 12_000_000,
        "reverse_rate_bits_per_s": 1_000_000,
        "delay_ms": 200.0,
        "reverse_delay_ms": 200.0,
        "queue": "drop-tail:400",
        "reverse_queue": "drop-tail:400",
    }
    assert scenario["transfer"] == {"server": "nginx", "client": "curl"}
    assert scenario["compare"]["startups"] == ["cubic", "bbr", "su_standard", "su_fast_start"]
    assert scenario["compare"]["repeat"] == 10
    assert scenario["cases"] == [
        {"kind": "new-cold", "bytes": 51_200, "warm_bytes": None, "idle_ms": None},
        {"kind": "resume-warm", "bytes": 51_200, "warm_bytes": 2_000_000, "idle_ms": 10_000.0},
        {"kind": "new-warm", "bytes": 51_200, "warm_bytes": 2_000_000, "idle_ms": None},
    ]
    assert scenario["parameters"] == {}


def test_parameters_are_by_startup_and_name(sample: Path) -> None:
    scenario = load_scenario(str(sample / "scenario.toml"))
    assert scenario["parameters"] == {"su_fast_start": {"maxburst": 4}}


def test_a_misspelt_key_is_an_error_with_file_line_and_nearest_key(tmp_path: Path) -> None:
    path = tmp_path / "t1.toml"
    path.write_text('name = "t1"\n[path]\nreverse_rat = "1mbit"\n')
    with pytest.raises(ScenarioError) as raised:
        load_scenario(path)
    assert str(raised.value) == (
        f'{path}:3: unknown key "reverse_rat" in [path]; did you mean "reverse_rate"?'
    )


def test_a_scenario_error_is_a_value_error_with_a_public_name() -> None:
    assert issubclass(ScenarioError, ValueError)
    assert headstart.ScenarioError is ScenarioError


def test_start_ups_are_listed_with_their_parameters_units_and_ranges() -> None:
    by_name = {startup["name"]: startup for startup in headstart.startups()}
    assert {"su_standard", "su_fast_start"} <= set(by_name)
    for startup in by_name.values():
        assert startup["source"]
        for parameter in startup["parameters"]:
            assert parameter["min"] <= parameter["default"] <= parameter["max"]
            assert parameter["unit"]
