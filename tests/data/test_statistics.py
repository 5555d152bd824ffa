"""The median's interval, by the table of binomial ranks that textbooks print."""

import numpy as np
import pytest

from warpladder.data.statistics import median_interval, median_ranks


@pytest.mark.parametrize(
    ("n", "low", "high"),
    # Ranks from 0. From 9 on these are the textbook's 2nd and 8th, 2nd and 9th, 6th and 15th, 40th and 61st of n.
    [(1, 0, 0), (5, 0, 4), (6, 0, 5), (8, 0, 7), (9, 1, 7), (10, 1, 8), (20, 5, 14), (100, 39, 60)],
)
def test_the_ranks_are_those_of_the_textbook(n: int, low: int, high: int) -> None:
    assert median_ranks(n) == (low, high)


def test_the_interval_holds_the_true_median_in_95_percent_of_experiments() -> None:
    samples = np.random.default_rng(7).exponential(size=(4000, 25))
    held = 0
    for row in samples:
        _, low, high = median_interval(row)
        held += low <= np.log(2) <= high
    assert 0.94 <= held / len(samples) <= 0.975


def test_the_interval_is_made_of_samples_around_the_median() -> None:
    assert median_interval([5, 1, 4, 2, 3, 9, 8, 7, 6]) == (5, 2, 8)


def test_thousands_of_samples_do_not_overflow() -> None:
    low, high = median_ranks(50_000)
    assert low == pytest.approx(25_000 - 1.96 * 0.5 * 50_000**0.5, abs=2)
    assert low + high == 49_999
