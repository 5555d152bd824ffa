"""Judges two versions of a variant that one run measured in the same rounds, as `record --against` and `--watch` do.

What a machine does to a round cancels in the ratio of the round, and the ratio of a cell is the median of these. So its noise is in its own
rounds. Cells of equal code show what the rounds do not: how far two copies of the same function differ in all of them, as where their
buffers lie at other addresses.
"""

import math
from collections.abc import Iterable
from typing import Final

import numpy as np

from warpladder.dashboard.compare import between_runs
from warpladder.dashboard.compare.between_runs import FEWEST, Judgement, tails_of
from warpladder.dashboard.compare.levels import Reading, TimedCell, timing_group
from warpladder.dashboard.core.cell import Cell, Estimate
from warpladder.dashboard.core.intervals import MIN_SAMPLES, MOST_LOG
from warpladder.data.arrays import Floats
from warpladder.data.statistics import median_interval

#: Half of a 95 % interval over the standard deviation of a normal distribution.
_HALF: Final = 1.96


class InRounds:
    """Two versions in one run.

    Args:
        a, b: the versions, with equal names of cells.
        equal: the cells of equal code in both.
    """

    def __init__(self, a: Reading, b: Reading, equal: Iterable[Cell]) -> None:
        self._a, self._b = a, b
        self._excess: dict[object, dict[tuple[str, TimedCell], float]] = {}
        for cell in equal:
            logs = self._logs(cell, cell)
            if len(logs) >= MIN_SAMPLES:
                middle, low, high = median_interval(logs)
                excess = (middle / between_runs.MOST_OVER_DEVIATION) ** 2 - ((high - low) / 2 / _HALF) ** 2
                timed = TimedCell.of(cell)
                self._excess.setdefault(timing_group(timed), {})[cell.workload, timed] = excess

    def _logs(self, of_a: Cell, of_b: Cell) -> Floats:
        """The logarithm of the ratio in each round that both cells have."""
        ratios = self._b.durations(of_b) / self._a.durations(of_a)
        return np.log(ratios.dropna().to_numpy())

    def judge(self, of_a: Cell, of_b: Cell, smallest: float, *, equal: bool, clock: float = 1.0) -> tuple[Judgement, int]:
        """The verdict about a cell, and its rounds.

        Args:
            smallest, equal: see `between_runs.judge`.
            clock: the ratio up to which the clock cannot tell the two times: a share of the noise.
        """
        logs = self._logs(of_a, of_b)
        if len(logs) < MIN_SAMPLES:
            return Judgement(Estimate.unknown(), math.nan, "unknown"), len(logs)
        middle, low, high = median_interval(logs)
        between = self._between_copies(of_b)
        below, above = (min(math.hypot(each, _HALF * between), MOST_LOG) for each in (middle - low, high - middle))
        ratio = Estimate(middle, middle - below, middle + above).map(math.exp)
        noise = max(math.exp(min(tails_of(of_b.scope) * (below if middle > 0 else above), MOST_LOG)), clock)
        return Judgement(ratio, noise, between_runs.judge(ratio, noise, smallest, n=len(logs), equal=equal)), len(logs)

    def _between_copies(self, cell: Cell) -> float:
        """The standard deviation between copies of the same code, beyond the errors of their own rounds, of logarithms. With it, three
        quarters of the other cells of equal code lie where those of a normal distribution do; 0 where fewer than three tell it."""
        timed = TimedCell.of(cell)
        others = [each for key, each in self._excess.get(timing_group(timed), {}).items() if key != (cell.workload, timed)]
        return math.sqrt(max(float(np.quantile(others, between_runs.MOST)), 0.0)) if len(others) >= FEWEST else 0.0
