"""Numbers and scenarios in words."""

from pathlib import Path

import pytest

from headstart import load_scenario
from headstart.report import words


@pytest.mark.parametrize(
    ("value", "text"),
    [(1213.4, "1,213"), (447.1, "447"), (99.96, "100.0"), (12.345, "12.3"), (None, "–")],
)
def test_milliseconds_have_three_digits_or_more(value: float | None, text: str) -> None:
    assert words.milliseconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(51_200, "50 KiB"), (2_000_000, "2 MB"), (1448, "1,448 bytes"), (3000, "3 kB")],
)
def test_a_size_is_in_the_largest_unit_that_is_exact(value: int, text: str) -> None:
    assert words.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(12_000_000, "12 Mbit/s"), (1_500_000, "1.5 Mbit/s"), (56_000, "56 kbit/s"), (9, "9 bit/s")],
)
def test_a_rate_keeps_all_its_digits(value: int, text: str) -> None:
    assert words.rate(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.5, "0.5"), (1848.0, "1,848"), (None, "–")]
)
def test_a_count_shows_a_half_only_where_there_is_one(value: float | None, text: str) -> None:
    assert words.count(value) == text


def test_the_path_is_one_sentence(sample: Path) -> None:
    scenario = load_scenario(sample / "scenario.toml")
    assert words.path(scenario["path"]) == (
        "12 Mbit/s from server to client, 1 Mbit/s back, 400 ms round trip, "
        "a 400-packet drop-tail queue each way."
    )
    scenario["path"] |= {
        "reverse_rate_bits_per_s": 12_000_000,
        "reverse_delay_ms": 50.0,
        "reverse_queue": "drop-tail:9",
    }
    assert words.path(scenario["path"]) == (
        "12 Mbit/s each way, 250 ms round trip (200 ms there, 50 ms back), "
        "a 400-packet drop-tail queue, a 9-packet drop-tail queue on the way back."
    )


def test_a_moment_keeps_its_zone_and_a_strange_one_stays_as_it_is() -> None:
    assert words.moment("2026-11-21T04:12:45Z") == "21 November 2026, 04:12 UTC"
    assert words.moment("2026-11-21T04:12:45+02:00") == "21 November 2026, 04:12 UTC+0200"
    assert words.moment("yesterday") == "yesterday"
    assert words.moment(None) == "at an unknown time"
