"""Medians, ratios and their intervals, with ranks counted by hand."""

import numpy as np
import pandas as pd
import pytest

from warpladder.dashboard.compare.within_run import verdict
from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.intervals import grouped_median_intervals, interval_kind, paired_ratio
from warpladder.data.statistics import median_interval


def test_the_interval_of_ten_samples_runs_from_the_second_to_the_ninth() -> None:
    # P(Binomial(10, 1/2) < 2) = 11/1024, twice that is 2.1 %; with 3 it would be 56/1024, 10.9 %.
    assert median_interval([10, 1, 9, 2, 8, 3, 7, 4, 6, 5]) == (5.5, 2, 9)


def test_the_interval_of_six_samples_is_from_least_to_greatest_and_still_95_percent() -> None:
    # 1 - 2/2^6 = 96.9 %.
    assert median_interval([1, 2, 3, 4, 5, 60]) == (3.5, 1, 60)
    assert interval_kind(6) == "95 % interval"


def test_fewer_than_six_samples_say_that_their_interval_is_only_their_range() -> None:
    assert median_interval([7, 5, 6]) == (6, 5, 7)
    assert interval_kind(5) == "least to greatest"


def test_grouped_intervals_are_those_of_each_group_alone() -> None:
    groups = ([3.0, 1.0, 2.0], list(np.arange(20.0, 0.0, -1.0)), [4.0])

    found = grouped_median_intervals(np.concatenate(groups), np.array([3, 20, 1]))

    # Twenty: P(Binomial(20, 1/2) < 6) = 2.07 %, and < 7 is 5.8 %, so the 6th and the 15th.
    assert found["median"].tolist() == [2, 10.5, 4]
    assert found["low"].tolist() == [1, 6, 4]
    assert found["high"].tolist() == [3, 15, 4]


def test_no_samples_make_no_groups() -> None:
    found = grouped_median_intervals(np.empty(0), np.empty(0, dtype=int))
    assert [len(figures) for figures in found.values()] == [0, 0, 0]


def test_drift_common_to_both_sides_cancels_in_a_paired_ratio() -> None:
    drift = pd.Series(np.linspace(1.0, 1.5, 40))

    paired = paired_ratio(200 * drift, 100 * drift)
    apart = paired_ratio(200 * drift, 100 * drift, independent=True)

    assert paired.paired and paired.n == 40
    assert paired[:3] == pytest.approx((2, 2, 2))
    assert not apart.paired
    assert apart.high - apart.low > 0.1


def test_pairing_goes_by_the_number_of_the_round_and_not_by_the_place_in_the_table() -> None:
    top = pd.Series([30.0, 10.0, 20.0, 40.0, 60.0, 50.0], index=[2, 0, 1, 3, 5, 4])
    bottom = pd.Series([5.0, 10.0, 15.0, 20.0, 25.0, 30.0])
    assert paired_ratio(top, bottom)[:3] == pytest.approx((2, 2, 2))


def test_sides_with_few_common_rounds_are_resampled_apart_and_say_so() -> None:
    top = pd.Series(np.full(40, 8.0), index=range(40))
    bottom = pd.Series(np.full(40, 2.0), index=range(30, 70))
    ratio = paired_ratio(top, bottom)
    assert (ratio.ratio, ratio.n, ratio.paired) == (4, 40, False)


def test_a_ratio_without_samples_on_one_side_is_not_a_number() -> None:
    ratio = paired_ratio(pd.Series([1.0, 2.0]), pd.Series(dtype=float))
    assert np.isnan(ratio.ratio) and ratio.n == 0


@pytest.mark.slow
def test_the_interval_of_a_ratio_holds_the_true_ratio_about_as_often_as_it_claims() -> None:
    random = np.random.default_rng(3)
    held = 0
    for _ in range(200):
        common = np.exp(random.normal(0, 0.05, 30))
        top, bottom = (pd.Series(ns * common * np.exp(random.normal(0, 0.01, 30))) for ns in (300.0, 200.0))
        ratio = paired_ratio(top, bottom)
        held += ratio.low <= 1.5 <= ratio.high
    # 95 % of 200 is 190, with a standard deviation of 3; percentile intervals are a little wide for medians.
    assert 181 <= held <= 200


def test_the_same_samples_give_the_same_interval_again() -> None:
    random = np.random.default_rng(4)
    top, bottom = pd.Series(random.normal(100, 5, 31)), pd.Series(random.normal(90, 5, 31))
    assert paired_ratio(top, bottom) == paired_ratio(top, bottom)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "n", "noise", "expected"),
    [
        (1.03, 1.02, 1.04, 6, 1.0, "faster"),
        (0.92, 0.90, 0.95, 6, 1.0, "slower"),
        (1.00, 0.99, 1.01, 6, 1.0, "tied"),
        (1.002, 1.001, 1.004, 6, 1.005, "tied"),
        (1.004, 1.001, 1.009, 6, 1.005, "tied"),  # a wide interval shows no more than a narrow one
        (0.382, 0.150, 0.852, 6, 6.2, "tied"),
        (1.0051, 1.001, 1.006, 6, 1.005, "faster"),
        (0.997, 0.996, 0.999, 6, 1.005, "tied"),
        (0.994, 0.991, 0.996, 6, 1.005, "slower"),
        (1.03, 1.02, 1.04, 5, 1.0, "unknown"),
        (1.00, 0.99, 1.01, 1, 1.0, "unknown"),
        (float("nan"), float("nan"), float("nan"), 0, 1.0, ""),
    ],
)
def test_a_ratio_is_tied_when_its_interval_holds_one_or_it_is_within_the_noise_and_unknown_below_six_samples(
    ratio: float, low: float, high: float, n: int, noise: float, expected: str
) -> None:
    assert verdict(Estimate(ratio, low, high), n, noise) == expected
