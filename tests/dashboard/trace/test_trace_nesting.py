"""What surrounds what, and sums of overlapping windows: against a plain loop on random ranges."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limits import cpu_seconds
from warpladder.dashboard.trace import ranges as trace_nesting
from warpladder.dashboard.trace.lanes import layers
from warpladder.dashboard.trace.ranges import ThreadSpans, nearest
from warpladder.data.arrays import NONE

INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)), max_size=40)
Trees = st.integers(1, 40).flatmap(lambda size: st.tuples(*(st.integers(-1, place - 1) for place in range(size))))


def places(rows: list[tuple[int, int, int]]) -> ThreadSpans:
    thread, start, length = (np.array(column, dtype=np.int64) for column in (zip(*rows, strict=True) if rows else ([], [], [])))
    return ThreadSpans(thread, start, start + length)


@pytest.mark.slow
@given(INTERVALS)
def test_the_shortest_range_around_each_is_that_of_a_plain_loop(rows: list[tuple[int, int, int]]) -> None:
    ranges = places(rows)
    found = trace_nesting.shortest_around(ranges)
    # By start, the longer first: those that come first may be around those that come later.
    order = sorted(range(len(rows)), key=lambda row: (rows[row][0], rows[row][1], -rows[row][2], row))
    for number, row in enumerate(order):
        thread, start, length = rows[row]
        around = [
            (rows[other][2], rows[other][1] + rows[other][2], other)
            for other in order[:number]
            if rows[other][0] == thread and rows[other][1] + rows[other][2] >= start + length
        ]
        assert found[row] == min(around, default=(0, 0, NONE))[2]


@pytest.mark.slow
@given(Trees, st.randoms(use_true_random=False))
def test_the_nearest_chosen_range_is_that_of_a_plain_climb(tree: tuple[int, ...], random: Any) -> None:
    chosen = np.array([random.random() < 0.3 for _ in tree])
    found = nearest(np.array(tree), chosen)
    depth = trace_nesting.depths(np.array(tree))
    for place in range(len(tree)):
        at, levels, above = place, 0, tree[place]
        while at >= 0 and not chosen[at]:
            at = tree[at]
        while above >= 0:
            levels, above = levels + 1, tree[above]
        assert (found[place], depth[place]) == (at, levels)


def test_a_circle_among_ranges_ends() -> None:
    circle = np.array([1, 2, 0, 3, 2, NONE])
    with cpu_seconds(1):
        assert nearest(circle, np.zeros(6, dtype=bool)).tolist() == [NONE] * 6
        assert nearest(circle, np.array([True, *[False] * 5])).tolist() == [0, 0, 0, NONE, 0, NONE]
        trace_nesting.depths(circle)


def test_many_ranges_that_overlap_in_turn_take_no_time() -> None:
    count = 100_000
    start = np.arange(count)
    ranges = ThreadSpans(np.zeros(count, dtype=np.int64), start, start + count)
    with cpu_seconds(1):
        assert (trace_nesting.shortest_around(ranges) == NONE).all()
    with cpu_seconds(1):
        assert layers(start, start + count).tolist() == list(range(count))
