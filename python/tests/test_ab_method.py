"""The statistics of the experiment, against a known truth."""

from collections.abc import Iterator

import numpy as np
import pytest

from headstart.ab.resample import BINS, Bins, Comparison, Lots, compare, holm


def clusters(chance: np.random.Generator, count: int, gain: float) -> tuple:
    """Prefixes that differ much, of 1 to 40 transfers; the second half has another arm."""
    many = chance.integers(1, 40, count)
    prefix = np.repeat(np.arange(count), many)
    level = chance.lognormal(0, 0.6, count)
    arm = (chance.random(count) < 0.5)[prefix]
    value = 100 * level[prefix] * chance.lognormal(0, 0.3, prefix.size)
    return prefix, arm, np.where(arm, value * gain, value)


def mean_of(seed: int, count: int, gain: float) -> tuple[Comparison, float]:
    """The comparison of the means, and what it is without regard for prefixes: its z."""
    prefix, arm, value = clusters(np.random.default_rng(seed), count, gain)
    lots = Lots(count, seed, 600)
    lot = lots.of_cluster[prefix]
    sums = [(lots.sums(lot[own], value[own]), lots.sums(lot[own])) for own in (~arm, arm)]
    base, other = value[~arm], value[arm]
    error = np.hypot(base.std() / base.size**0.5, other.std() / other.size**0.5)
    return lots.ratio(*sums)[0], (base.mean() - other.mean()) / error


def quantiles_of(seed: int, count: int) -> list[Comparison]:
    """Alike arms, the 50 % and 95 % quantiles."""
    prefix, arm, value = clusters(np.random.default_rng(seed), count, 1.0)
    lots = Lots(count, seed, 400)
    lot, bins = lots.of_cluster[prefix], Bins.over(1000 * value)
    place, shares = bins.of(1000 * value), (0.5, 0.95)
    histograms = [lots.sums(lot[own], None, place[own], BINS) for own in (~arm, arm)]
    exact = [1000 * np.quantile(value[own], shares) for own in (~arm, arm)]
    return lots.quantiles(shares, bins, tuple(histograms), tuple(exact))


@pytest.fixture(scope="module")
def alike() -> list[tuple[Comparison, float]]:
    """The means of alike arms, of many seeds."""
    return [mean_of(seed, 150, 1.0) for seed in range(400)]


def test_alike_arms_are_told_apart_about_as_often_as_the_level_says(
    alike: list[tuple[Comparison, float]],
) -> None:
    # Of 400 at 5 %: 20, and beyond 8 to 35 once in a thousand.
    assert 8 <= sum(found.p < 0.05 for found, _ in alike) <= 35


def test_without_regard_for_prefixes_alike_arms_would_be_told_apart_far_too_often(
    alike: list[tuple[Comparison, float]],
) -> None:
    assert sum(abs(z) > 1.96 for _, z in alike) > 120


def test_the_interval_of_alike_arms_has_nothing_in_it_as_often_as_the_probability_says(
    alike: list[tuple[Comparison, float]],
) -> None:
    apart = sum((found.p < 0.05) != (found.low > 0 or found.high < 0) for found, _ in alike)
    assert apart <= 4, "both come from the same draws"


def test_alike_arms_have_alike_quantiles_as_often_as_the_level_says() -> None:
    found = [one for seed in range(150) for one in quantiles_of(seed, 150)]
    assert sum(one.p < 0.05 for one in found) <= 32  # 15 of 300 are expected


def test_the_interval_covers_a_true_gain_about_as_often_as_it_says() -> None:
    # The truth of a ratio of means with this gain: 20 % of the base.
    found = [mean_of(1000 + seed, 150, 0.8)[0] for seed in range(300)]
    covered = sum(one.low_pct <= 20 <= one.high_pct for one in found)
    assert 0.91 * 300 <= covered <= 0.985 * 300


def test_the_interval_of_few_prefixes_is_wider_and_covers_as_well() -> None:
    found = [mean_of(2000 + seed, 24, 1.0)[0] for seed in range(400)]
    covered = sum(one.low <= 0 <= one.high for one in found if np.isfinite(one.low))
    assert covered >= 0.91 * sum(bool(np.isfinite(one.low)) for one in found)


def test_an_interval_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    assert mean_of(7, 100, 0.9)[0] == mean_of(7, 100, 0.9)[0]
    assert mean_of(7, 100, 0.9)[0] != mean_of(8, 100, 0.9)[0]


def test_more_prefixes_than_lots_give_the_interval_that_they_would_have_by_themselves() -> None:
    chance = np.random.default_rng(3)
    count = 20_000
    level = chance.lognormal(0, 0.6, count)
    arm = chance.random(count) < 0.5
    lots = Lots(count, 1, 4000)
    sums = [
        (lots.sums(lots.of_cluster[own], level[own]), lots.sums(lots.of_cluster[own]))
        for own in (~arm, arm)
    ]
    found = lots.ratio(*sums)[0]
    error = np.hypot(*(level[own].std() / own.sum() ** 0.5 for own in (~arm, arm)))
    assert (found.high - found.low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.1)


def test_distributions_that_are_alike_are_not_told_apart_and_others_are() -> None:
    def apart(shift: float) -> Iterator[float]:
        for seed in range(100):
            prefix, arm, value = clusters(np.random.default_rng(seed), 120, shift)
            lots = Lots(120, seed, 300)
            bins = Bins.over(1000 * value)
            lot, place = lots.of_cluster[prefix], bins.of(1000 * value)
            yield lots.furthest(
                tuple(lots.sums(lot[own], None, place[own], BINS) for own in (~arm, arm))
            )[1]

    assert sum(p < 0.05 for p in apart(1.0)) <= 14
    assert sum(p < 0.05 for p in apart(2.0)) >= 95


def test_holm_multiplies_the_least_by_all_and_never_lowers_the_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, float("nan"), 0.001])[2] == pytest.approx(0.002)
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_too_few_prefixes_have_no_interval() -> None:
    drawn = np.ones(100)
    assert np.isnan(compare(1.0, 1.0, drawn, drawn, 2).p)


def test_what_never_differs_has_a_probability_of_one() -> None:
    drawn = np.ones(100)
    found = compare(1.0, 1.0, drawn, drawn, 50)
    assert (found.p, found.low, found.high) == (1.0, 0.0, 0.0)
