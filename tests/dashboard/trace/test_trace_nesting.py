"""What surrounds what, and sums of overlapping windows: against a plain loop on random ranges."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limits import cpu_seconds
from warpladder.dashboard.trace.lanes import layers
from warpladder.dashboard.trace.ranges import ThreadSpans
from warpladder.data.arrays import NONE
from warpladder.data.nesting import nearest

INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)), max_size=40)
Trees = st.integers(1, 40).flatmap(lambda size: st.tuples(*(st.integers(-1, place - 1) for place in range(size))))


def places(rows: list[tuple[int, int, int]]) -> ThreadSpans:
    thread, start, length = (np.array(column, dtype=np.int64) for column in (zip(*rows, strict=True) if rows else ([], [], [])))
    return ThreadSpans(thread, start, start + length)


@pytest.mark.slow
@given(Trees, st.randoms(use_true_random=False))
def test_the_nearest_chosen_range_is_that_of_a_plain_climb(tree: tuple[int, ...], random: Any) -> None:
    chosen = np.array([random.random() < 0.3 for _ in tree])
    found = nearest(np.array(tree), chosen)
    for place in range(len(tree)):
        at = place
        while at >= 0 and not chosen[at]:
            at = tree[at]
        assert found[place] == at


def test_a_circle_among_ranges_ends() -> None:
    circle = np.array([1, 2, 0, 3, 2, NONE])
    with cpu_seconds(1):
        assert nearest(circle, np.zeros(6, dtype=bool)).tolist() == [NONE] * 6
        assert nearest(circle, np.array([True, *[False] * 5])).tolist() == [0, 0, 0, NONE, 0, NONE]


def test_many_ranges_that_overlap_in_turn_take_no_time() -> None:
    count = 100_000
    start = np.arange(count)
    with cpu_seconds(1):
        assert layers(start, start + count).tolist() == list(range(count))
