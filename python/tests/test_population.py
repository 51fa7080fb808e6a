"""The clients of the IW10 paper, as they are built anew: they have what the paper prints."""

import polars as pl
import pytest

from headstart.reproduce import Context
from headstart.reproduce.experiments.initial_window import population

MANY = 20_000


def test_half_of_the_clients_of_avgdc_have_1200_kbits_and_a_third_more_than_2000() -> None:
    people = population.clients(population.AVG, MANY, 1)
    bandwidth = people["bandwidth_bits_per_s"]
    assert bandwidth.median() == pytest.approx(1.2e6, rel=0.05)
    assert (bandwidth > 2e6).mean() == pytest.approx(1 / 3, abs=0.02)
    assert people["rtt_ms"].median() == pytest.approx(70, rel=0.05)


def test_the_clients_of_slowdc_go_through_the_printed_points() -> None:
    people = population.clients(population.SLOW, MANY, 1)
    bandwidth = people["bandwidth_bits_per_s"]
    assert (bandwidth < 56e3).mean() == pytest.approx(0.04, abs=0.01)
    assert (bandwidth < 256e3).mean() == pytest.approx(0.21, abs=0.02)
    assert bandwidth.median() == pytest.approx(500e3, rel=0.05)
    narrow = people.filter(pl.col("bandwidth_bits_per_s") <= 56e3)
    assert narrow["rtt_ms"].mean() == pytest.approx(343, rel=0.1)


def test_clients_draw_sizes_of_their_own_and_both_arms_the_same_ones() -> None:
    people = population.clients(population.AVG, 20, 1)
    files = [
        population.scenario(population.AVG, client, population.SEARCH, 50, 1)
        for client in people.iter_rows(named=True)
    ]
    window = {"transport.initial_window_pkts": [3]}
    base = Context().sweep(files, window, seed=None).transfers
    window = {"transport.initial_window_pkts": [10]}
    exp = Context().sweep(files, window, seed=None).transfers
    assert base["bytes"].n_unique() > 0.9 * base.height
    assert base["bytes"].mean() == pytest.approx(population.SEARCH_BYTES, rel=0.05)
    by_transfer = ["variant", "start_ms"]
    sizes = [
        frame.sort(by_transfer).group_by("variant", maintain_order=True).agg("bytes")
        for frame in (base, exp)
    ]
    assert sizes[0].equals(sizes[1])
