"""Steps are found where they were planted, and not in noise; the noise between runs is the quantile that it says."""

import math

import numpy as np
import pytest

from warpladder.dashboard.core.between_runs import FEWEST_FOR_NOISE, noise_of_pairs
from warpladder.dashboard.core.steps import Floats, find_levels

SIGMA = 0.0054
#: 95 % of the differences of two runs are less: 1.96 and the square root of 2 standard deviations of a run, 1.5 %.
NOISE = 1.96 * math.sqrt(2) * SIGMA
SMALLEST = math.log(1.01)


def noise(seed: int, runs: int) -> Floats:
    return np.random.default_rng(seed).normal(math.log(1e4), SIGMA, runs)


def firsts(logs: Floats, changed: tuple[int, ...] = (), smallest: float = SMALLEST) -> list[int]:
    """The places of the steps.

    Args:
        changed: the runs whose source is new.
    """
    expected = [run in changed for run in range(len(logs))]
    return [level.first for level in find_levels(logs, np.full(len(logs), SIGMA), expected, smallest)[1:]]


@pytest.mark.parametrize("runs", [1, 2, 3, 8, 30, 80])
def test_noise_alone_has_no_step(runs: int) -> None:
    assert sum(bool(firsts(noise(seed, runs))) for seed in range(200)) <= 2


def test_noise_alone_has_few_steps_though_every_source_is_new() -> None:
    assert sum(bool(firsts(noise(seed, 30), tuple(range(30)))) for seed in range(200)) <= 6


@pytest.mark.parametrize("place", [1, 7, 15, 28, 29])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_step_of_three_times_the_noise_is_found_at_its_place(place: int, sign: int) -> None:
    found = []
    for seed in range(50):
        logs = noise(seed, 30)
        logs[place:] += sign * 3 * NOISE
        found.append(firsts(logs))
    assert found.count([place]) >= 49


def test_several_steps_are_found_with_their_levels() -> None:
    logs = noise(1, 40)
    logs[10:] += 0.05
    logs[25:] -= 0.08
    levels = find_levels(logs, np.full(40, SIGMA), [False] * 40, SMALLEST)
    assert [(level.first, level.end) for level in levels] == [(0, 10), (10, 25), (25, 40)]
    assert [level.log - math.log(1e4) for level in levels] == pytest.approx([0.0, 0.05, -0.03], abs=3 * SIGMA / math.sqrt(10))
    assert [level.error for level in levels] == pytest.approx([SIGMA / math.sqrt(n) for n in (10, 15, 15)])


def test_a_lone_outlier_is_no_step_and_does_not_move_its_level_but_the_newest_run_may_be_one() -> None:
    logs = noise(2, 30)
    logs[12] += 0.3
    (level,) = find_levels(logs, np.full(30, SIGMA), [False] * 30, SMALLEST)
    assert level.log == pytest.approx(math.log(1e4), abs=3 * SIGMA / math.sqrt(29))
    logs = noise(2, 30)
    logs[29] += 0.3
    assert firsts(logs) == [29]


def test_a_run_with_a_source_of_its_own_is_a_level_of_its_own() -> None:
    logs = noise(3, 30)
    logs[12] += 3 * NOISE
    assert firsts(logs) == []
    assert firsts(logs, changed=(12, 13)) == [12, 13]


def test_a_new_source_needs_a_smaller_change() -> None:
    """1.3 times the noise by the newest run: three of four standard deviations that chance gives at one of 30 places."""
    hits = dict.fromkeys(((), (29,)), 0)
    for seed in range(50):
        logs = noise(seed, 30)
        logs[29] += 1.3 * NOISE
        for changed in hits:
            hits[changed] += firsts(logs, changed) == [29]
    assert hits[29,] >= 35 and hits[()] <= hits[29,] - 10


def test_a_step_below_the_smallest_effect_is_none() -> None:
    logs = np.where(np.arange(60) < 30, 0.0, 0.008) + noise(4, 60)
    assert firsts(logs, smallest=0.0) and not firsts(logs)


def test_a_drift_is_told_in_steps_that_go_its_way_only_once_it_exceeds_the_noise() -> None:
    for seed in range(20):
        slight = find_levels(noise(seed, 40) + np.linspace(0, SIGMA, 40), np.full(40, SIGMA), [False] * 40, SMALLEST)
        strong = find_levels(noise(seed, 40) + np.linspace(0, 8 * NOISE, 40), np.full(40, SIGMA), [False] * 40, SMALLEST)
        assert len(slight) == 1
        assert len(strong) >= 4 and (np.diff([level.log for level in strong]) > 0).all()


def test_the_noise_between_runs_is_the_95_percent_quantile_of_like_cells() -> None:
    random = np.random.default_rng(5)
    apart, times = np.abs(random.normal(0, 0.01, (40, 3))), np.repeat([1e4, 1e6], 20)
    apart[:20, 1] = np.nan  # of the second pair, only cells unlike the judged one are known
    apart[1:, 2] = np.nan
    assert FEWEST_FOR_NOISE > 1
    found = np.log(noise_of_pairs(apart, times, 2e4))
    assert found[:2] == pytest.approx([np.quantile(apart[:20, 0], 0.95), np.quantile(apart[20:, 1], 0.95)])
    assert np.isnan(found[2])
