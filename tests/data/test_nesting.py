"""Nested intervals: by hand on small trees, and against a plain loop on random ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limits import cpu_seconds
from warpladder.data.arrays import NONE, Int64s
from warpladder.data.nesting import Innermost, depths, nearest, order, parents


def columns(*rows: tuple[int, ...]) -> list[Int64s]:
    return [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]


def test_a_launch_belongs_to_the_range_opened_last_on_its_own_thread() -> None:
    thread, start, end = columns((1, 0, 100), (1, 10, 40), (1, 20, 30), (2, 0, 100))
    innermost = Innermost(thread, start, end)
    times = np.array([0, 15, 20, 29, 30, 40, 99, 100, -5])
    assert innermost.at(np.full(9, 1), times).tolist() == [0, 1, 2, 2, 1, 0, 0, NONE, NONE]
    assert innermost.at(np.array([2, 3, 0]), np.array([25, 25, 25])).tolist() == [3, NONE, NONE]


def test_ranges_that_overlap_without_nesting_are_siblings_and_the_later_one_is_innermost() -> None:
    thread, start, end = columns((1, 0, 20), (1, 10, 30), (1, 12, 18))
    assert parents(thread, end).tolist() == [NONE, NONE, 1]
    assert Innermost(thread, start, end).at(np.full(4, 1), np.array([5, 11, 19, 25])).tolist() == [0, 1, 1, 1]


def test_depth_counts_the_ranges_above() -> None:
    thread, _, end = columns((1, 0, 100), (1, 1, 90), (1, 2, 50), (1, 60, 80), (2, 0, 10))
    parent = parents(thread, end)
    assert parent.tolist() == [NONE, 0, 1, 1, NONE]
    assert depths(parent).tolist() == [0, 1, 2, 2, 0]


def test_the_nearest_chosen_interval_may_be_the_one_itself() -> None:
    parent = np.array([NONE, 0, 1, 2, NONE])
    assert nearest(parent, np.array([False, True, False, True, False])).tolist() == [NONE, 1, 1, 3, NONE]


def test_without_intervals_none_is_found() -> None:
    nothing = np.empty(0, np.int64)
    assert Innermost(nothing, nothing, nothing).at(np.array([1]), np.array([1])).tolist() == [NONE]
    assert parents(nothing, nothing).size == depths(nothing).size == 0


INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)), max_size=25)


@pytest.mark.slow
@given(INTERVALS, st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 45)), max_size=20))
def test_arrays_agree_with_a_plain_loop_on_any_overlaps(rows: list[tuple[int, int, int]], times: list[tuple[int, int]]) -> None:
    ranges = sorted(((t, s, s + length) for t, s, length in rows), key=lambda r: (r[0], r[1], -r[2]))
    thread, start, end = columns(*ranges) if ranges else [np.empty(0, np.int64)] * 3
    assert order(thread, start, end).tolist() == list(range(len(ranges)))
    expected = [max((i for i, (u, s, e) in enumerate(ranges) if u == t and s <= at < e), default=NONE) for t, at in times]
    asked = columns(*times) if times else [np.empty(0, np.int64)] * 2
    assert Innermost(thread, start, end).at(*asked).tolist() == expected

    above = [
        max((j for j in range(i) if ranges[j][0] == t and ranges[j][2] >= e), default=NONE)
        for i, (t, _, e) in enumerate(ranges)
    ]
    assert parents(thread, end).tolist() == above
    lines = [0] * len(ranges)
    for index, parent in enumerate(above):
        lines[index] = lines[parent] + 1 if parent >= 0 else 0
    assert depths(np.array(above, np.int64)).tolist() == lines


def test_the_innermost_of_many_siblings_takes_no_search_through_them() -> None:
    count = 200_000
    start = np.append(0, 10 * np.arange(count) + 1)
    end = np.append(10 * count + 1, start[1:] + 5)
    with cpu_seconds(3):
        found = Innermost(np.zeros(count + 1, np.int64), start, end).at(np.zeros(count, np.int64), start[1:] + 7)
    assert not found.any()
