"""Ratios of two runs: resamples of processes and of rounds, against all resamples counted one by one."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from warpladder.dashboard.core.intervals import RESAMPLES, _drawn_middles, _pooled_middles, independent_ratio

Distribution = dict[tuple[int, int], Fraction]


def every_resample(processes: Sequence[Sequence[int]]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Every resample of processes, one fewer than there are, then of the values of each, with its probability."""
    count = max(len(processes) - 1, 1)
    for drawn in product(processes, repeat=count):
        for values in product(*(product(process, repeat=len(process)) for process in drawn)):
            together = tuple(value for process in values for value in process)
            chance = Fraction(1, len(processes) ** count)
            for process in drawn:
                chance /= len(process) ** len(process)
            yield together, chance


def middles(processes: Sequence[Sequence[int]]) -> Distribution:
    """The probability of each pair of middle values over all resamples."""
    found: Distribution = defaultdict(Fraction)
    for values, chance in every_resample(processes):
        ordered = sorted(values)
        found[ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]] += chance
    return found


def assert_drawn_as_often(drawn: Sequence["np.ndarray[tuple[int, int], np.dtype[np.int64]]"], expected: Distribution) -> None:
    pairs = Counter(zip(*np.concatenate(drawn, axis=1).tolist(), strict=True))
    n = sum(pairs.values())
    assert pairs.keys() <= expected.keys() and n == RESAMPLES * len(drawn)
    for pair, chance in expected.items():
        # Five standard deviations of a frequency.
        assert pairs[pair] / n == pytest.approx(float(chance), abs=5 * float(chance * (1 - chance) / n) ** 0.5), pair


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_middle_ranks_are_drawn_as_often_as_resampling_every_value_gives_them(n: int) -> None:
    assert_drawn_as_often([_drawn_middles(n, seed) for seed in range(50)], middles([range(n)]))


@pytest.mark.parametrize("processes", [[(0, 3), (1, 2, 4)], [(0, 1, 2), (3, 4, 5)], [(2,), (0, 3), (1,)]])
def test_ranks_of_several_processes_are_drawn_as_often_as_resampling_processes_then_rounds(
    processes: list[tuple[int, ...]],
) -> None:
    arrays = [np.array(process, dtype=float) for process in processes]
    assert_drawn_as_often([_pooled_middles(arrays, seed) for seed in range(50)], middles(processes))


def test_the_ratio_is_that_of_the_medians_of_all_rounds() -> None:
    ratio = independent_ratio([[1.0, 2.0], [3.0]], [[6.0, 6.0, 9.0, 4.0, 6.0]])
    assert (ratio.ratio, ratio.n, ratio.paired) == (3, 3, False)
    assert ratio.low <= 3 <= ratio.high
    assert ratio == independent_ratio([[1.0, 2.0], [3.0], []], [[6.0, 6.0, 9.0, 4.0, 6.0]])


def test_a_ratio_of_runs_without_samples_on_one_side_is_not_a_number() -> None:
    for ratio in (independent_ratio([], [[1.0]]), independent_ratio([[1.0]], [[]])):
        assert np.isnan(ratio.ratio) and ratio.n == 0


def held(processes: int, between: float, resample: bool) -> int:
    """How many of 200 intervals hold a ratio of 1 of runs whose processes differ by a standard deviation of `between`."""
    random = np.random.default_rng(5)

    def side() -> list["np.ndarray[tuple[int], np.dtype[np.float64]]"]:
        shifts = random.normal(0, between, processes)
        made = [100 * np.exp(shift + random.normal(0, 0.01, 20)) for shift in shifts]
        return made if resample else [np.concatenate(made)]

    ratios = [independent_ratio(side(), side()) for _ in range(200)]
    return sum(ratio.low <= 1 <= ratio.high for ratio in ratios)


def test_the_interval_holds_the_difference_from_one_process_to_the_next() -> None:
    # 95 % of 200 is 190; its standard deviation is 3.
    assert 181 <= held(1, 0.0, resample=True) <= 200
    assert 181 <= held(5, 0.01, resample=True) <= 200
    assert 181 <= held(3, 0.01, resample=True) <= 200
    assert held(5, 0.01, resample=False) < 120
