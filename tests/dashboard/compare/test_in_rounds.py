"""Two versions of one run: the ratio of each round counts, and copies of equal code tell what the rounds do not."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from warpladder.dashboard.compare.in_rounds import InRounds
from warpladder.dashboard.compare.levels import TimedCell
from warpladder.dashboard.core.cell import Cell

MINE = TimedCell("n=1", "operation", "hot", "mine", "", 0)
#: Cells of equal code.
COPIES = tuple(MINE._replace(variant=f"copy{number}") for number in range(4))
ROUNDS = 30
#: What the machine does to each round: it takes up to ten times as long.
LOAD = np.random.default_rng(1).uniform(1, 10, ROUNDS)


class Durations:
    """The times of cells in nanoseconds by round, as a `Reading` gives them."""

    def __init__(self, cells: Mapping[TimedCell, float], seed: int, rounds: int = ROUNDS) -> None:
        scatter = np.random.default_rng(seed).normal(1, 0.01, (len(cells), rounds))
        self._times = {
            cell: pd.Series(1e6 * ns * LOAD[:rounds] * row) for (cell, ns), row in zip(cells.items(), scatter, strict=True)
        }

    def durations(self, cell: Cell) -> "pd.Series[float]":
        return self._times[TimedCell.of(cell)]


def judge(mine: float, copies: float = 1.0, *, equal: bool = False, rounds: int = ROUNDS, smallest: float = 0.01) -> Any:
    """The judgement about `mine`, which takes so many times as long in B, beside copies that do as many times."""
    of_a = Durations(dict.fromkeys((MINE, *COPIES), 1.0), 2, rounds)
    of_b = Durations({MINE: mine, **dict.fromkeys(COPIES, copies)}, 3, rounds)
    versions: Any = (of_a, of_b)
    own, *others = (Cell(workload="w", **cell._asdict()) for cell in (MINE, *COPIES))
    return InRounds(*versions, others).judge(own, own, smallest, equal=equal)[0]


@pytest.mark.parametrize(("mine", "verdict"), [(1.0, "tied"), (1.05, "slower"), (0.95, "faster"), (1.004, "tied")])
def test_five_percent_is_seen_where_rounds_differ_by_ten_times(mine: float, verdict: str) -> None:
    judged = judge(mine)
    assert judged.verdict == verdict
    assert judged.ratio.low < mine * 1.005 and judged.ratio.high > mine * 0.995


def test_a_difference_that_copies_of_equal_code_have_too_is_tied() -> None:
    assert judge(1.05, copies=1.05).verdict == "tied"
    assert judge(1.5, copies=1.05).verdict == "slower"


def test_equal_code_that_differs_has_drifted() -> None:
    assert judge(1.05, equal=True).verdict == "drifted"


def test_five_rounds_tell_nothing() -> None:
    judged = judge(2.0, rounds=5)
    assert judged.verdict == "unknown" and math.isnan(judged.ratio.value)


def test_the_smallest_effect_is_tied() -> None:
    assert judge(1.05, smallest=0.1).verdict == "tied"
