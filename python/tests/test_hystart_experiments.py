"""The HyStart paper: its scenarios are in order, and its measures see what they should."""

import polars as pl
import pytest

import headstart as hs
from headstart.reproduce import runner
from headstart.reproduce.experiments.hystart import hy1, hy3, hy12, testbed
from headstart.reproduce.papers import HYSTART


def test_all_fifteen_are_there() -> None:
    names = [each.name for each in runner.all_experiments() if each.paper == HYSTART]
    assert names == [f"hy{number}" for number in range(1, 16)]


@pytest.mark.parametrize("startup", testbed.SIX)
def test_each_of_the_six_leaves_slow_start_on_the_paths_of_the_testbed(startup: str) -> None:
    scenario = testbed.two_flows("short", hy3.PATH, until_s=8.0, startups=(startup,))
    result = hs.simulate(scenario, flows=True)
    first = result.transfers.filter(pl.col("group") == "flow 1")
    assert first["slow_start_end_ms"].is_not_null().all()
    assert result.flows["ssthresh_pkts"].is_not_null().any()


def test_background_is_as_much_as_was_asked_for_in_each_direction() -> None:
    path = {"rate": "400mbit", "rtt": "100ms", "queue": "drop-tail:1bdp"}
    scenario = testbed.scenario(
        "background", path, testbed.background(20.0), 60.0, startups=("reno",)
    )
    done = hs.simulate(scenario).transfers.group_by("group").agg(pl.col("delivered_bytes").sum())
    assert done.height == 2
    for delivered_bytes in done["delivered_bytes"]:
        assert delivered_bytes * 8 / 60.0 == pytest.approx(20e6, rel=0.1)


def test_utilisation_counts_the_flows_and_not_the_background() -> None:
    transfers = pl.DataFrame(
        {
            "variant": [0, 0, 0],
            "startup": ["reno"] * 3,
            "repeat": [0, 0, 0],
            "group": ["flow 1", "flow 2", "background forward"],
            "delivered_bytes": [1_000_000, 250_000, 9_000_000],
            "dropped_pkts": [1, 2, 4],
            "sack_walk_pkts": [10, 20, 40],
            "timeouts": [0, 1, 2],
        }
    )
    runs = testbed.utilisation(transfers, pl.lit(10.0), 2.0)
    assert runs["utilisation"].to_list() == [0.5]
    assert runs["timeouts"].to_list() == [1]


def test_the_order_of_the_walks_is_the_slope_in_logarithms() -> None:
    products = [path[2] for path in hy1.PATHS]
    runs = pl.DataFrame(
        {
            "repeat": [0] * len(products),
            "buffer_pkts": products,
            "sack_walk_pkts": [7 * product**2 for product in products],
        }
    )
    assert hy1.walk_order({"runs": runs}).value == pytest.approx(2.0)


def test_a_scheme_that_falls_far_behind_is_counted_so() -> None:
    rows = [
        ("rtt", at, startup, 0.5 if (at, startup) == (2.0, "su_hystart") else 0.9, 1.0)
        for at in (1.0, 2.0)
        for startup in testbed.SIX
    ]
    schema = ["of", "at", "startup", "utilisation", "buffer_bdp"]
    data = {"runs": pl.DataFrame(rows, schema=schema, orient="row")}
    assert hy12.near_the_best(data).value == 0.5


def windows_after_a_second(growth: str) -> dict[str, int]:
    """The window of each start-up, where every second packet is acknowledged."""
    scenario = testbed.scenario(
        "growth",
        {"rate": "100mbit", "rtt": "100ms", "queue": "drop-tail:1bdp"},
        [testbed.flow("flow 1", 0.0)],
        1.0,
        startups=("reno", "su_standard", "su_hystart", "su_westwood"),
        transport={"growth": growth, "acks": "delayed"},
    )
    last = hs.simulate(scenario, flows=True).flows.group_by("startup", maintain_order=True).last()
    return dict(last.select("startup", "cwnd_pkts").iter_rows())


def test_start_ups_grow_by_the_ack_where_the_stack_does() -> None:
    by_the_ack = windows_after_a_second("per-ack")
    by_the_packet = windows_after_a_second("per-packet")
    for windows in (by_the_ack, by_the_packet):
        assert len(set(windows.values())) == 1, windows
    # 1.5 against 2 times a round trip.
    assert by_the_packet["reno"] / by_the_ack["reno"] > 1.3
