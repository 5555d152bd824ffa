"""Steps are found where they were planted, and not in noise, of those that the verdicts about neighbouring runs allow."""

import math

import numpy as np
import pytest

from warpladder.dashboard.core.steps import Level, find_levels
from warpladder.data.arrays import Floats

SIGMA = 0.0054
#: 95 % of the differences of two runs are less: 1.96 and the square root of 2 standard deviations of a run, 1.5 %.
NOISE = 1.96 * math.sqrt(2) * SIGMA


def noise(seed: int, runs: int) -> Floats:
    return np.random.default_rng(seed).normal(math.log(1e4), SIGMA, runs)


def levels_of(logs: Floats, certain: tuple[int, ...] = (), possible: range | None = None) -> tuple[Level, ...]:
    """The levels of a series.

    Args:
        certain: the runs with a step in any case.
        possible: those that may have one; all where it is None.
    """
    every = range(len(logs))
    allowed = every if possible is None else possible
    return find_levels(logs, np.full(len(logs), SIGMA), [run in certain for run in every], [run in allowed for run in every])


def firsts(logs: Floats, certain: tuple[int, ...] = (), possible: range | None = None) -> list[int]:
    """The places of the steps."""
    return [level.first for level in levels_of(logs, certain, possible)[1:]]


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 2, 3, 8, 30, 80])
def test_noise_alone_has_no_step(runs: int) -> None:
    assert sum(bool(firsts(noise(seed, runs))) for seed in range(200)) <= 2


@pytest.mark.sampled(3)
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
    levels = levels_of(logs)
    assert [(level.first, level.end) for level in levels] == [(0, 10), (10, 25), (25, 40)]
    assert [level.log - math.log(1e4) for level in levels] == pytest.approx([0.0, 0.05, -0.03], abs=3 * SIGMA / math.sqrt(10))
    assert [level.error for level in levels] == pytest.approx([SIGMA / math.sqrt(n) for n in (10, 15, 15)])


def test_a_lone_outlier_is_no_step_and_does_not_move_its_level_but_the_newest_run_may_be_one() -> None:
    logs = noise(2, 30)
    logs[12] += 0.3
    (level,) = levels_of(logs)
    assert level.log == pytest.approx(math.log(1e4), abs=3 * SIGMA / math.sqrt(29))
    logs = noise(2, 30)
    logs[29] += 0.3
    assert firsts(logs) == [29]


def test_a_certain_step_is_one_though_noise_alone_would_hide_it() -> None:
    logs = noise(3, 30)
    logs[12] += 3 * NOISE
    assert firsts(logs) == []
    assert firsts(logs, certain=(12, 13)) == [12, 13]


def test_a_step_that_no_verdict_allows_is_none() -> None:
    logs = noise(1, 40)
    logs[10:] += 0.05
    logs[25:] -= 0.08
    assert firsts(logs, possible=range(20, 30)) == [25]
    assert firsts(logs, possible=range(0)) == []


def test_a_drift_is_told_in_steps_that_go_its_way_only_once_it_exceeds_the_noise() -> None:
    told = 0
    for seed in range(20):
        slight = levels_of(noise(seed, 40) + np.linspace(0, SIGMA, 40))
        strong = levels_of(noise(seed, 40) + np.linspace(0, 8 * NOISE, 40))
        told += len(slight) > 1
        assert len(strong) >= 4 and (np.diff([level.log for level in strong]) > 0).all()
    assert told <= 2
