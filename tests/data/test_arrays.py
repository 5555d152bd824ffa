"""The toolbox of arrays, against plain loops on random columns."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limits import cpu_seconds
from warpladder.data.arrays import (
    NONE,
    Intervals,
    Launches,
    coded,
    heads,
    integers,
    least_of_groups,
    lookup,
    most_of_groups,
    numbered,
    occurrence,
    ordered,
    union_lengths,
)

SMALL = st.integers(-3, 3)
ROWS = st.lists(st.tuples(SMALL, SMALL), max_size=30)
SCALE = 1 << 56


def columns(rows: list[tuple[int, ...]], width: int) -> list[np.ndarray]:
    return [np.array([row[place] for row in rows], np.int64) for place in range(width)]


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_column_with_nulls_becomes_integers(pieces: int) -> None:
    column = pa.chunked_array([pa.array([1, None, 3], pa.int32())] * pieces)
    assert integers(column, -7).tolist() == [1, -7, 3] * pieces
    assert integers(pa.array([1 << 62, None])).tolist() == [1 << 62, 0]


@given(ROWS)
def test_a_row_that_differs_from_the_one_before_it_is_a_head(rows: list[tuple[int, int]]) -> None:
    expected = [place for place, row in enumerate(rows) if not place or row != rows[place - 1]]
    assert heads(*columns(rows, 2)).tolist() == expected


@given(ROWS)
def test_the_least_and_the_largest_of_groups_are_those_of_plain_loops(rows: list[tuple[int, int]]) -> None:
    group, values = columns([(number + 3, value) for number, value in rows], 2)
    for of_groups, best, nothing in ((least_of_groups, min, (1 << 63) - 1), (most_of_groups, max, -1 << 63)):
        found = [best([value for number, value in rows if number + 3 == each], default=nothing) for each in range(7)]
        assert of_groups(group, values, 7).tolist() == found


def test_texts_become_codes_whether_they_are_a_dictionary_or_not() -> None:
    texts = ["b", "a", None, "b"]
    for column in (pa.array(texts), pa.array(texts).dictionary_encode(), pa.chunked_array([["b", "a"], [None, "b"]])):
        code, words = coded(column)
        assert [words[each] for each in code.tolist()] == ["b", "a", "", "b"]
    assert coded(pa.chunked_array([], pa.string())) == (pytest.approx([]), [])


@pytest.mark.slow
@given(ROWS)
def test_equal_rows_have_one_number(rows: list[tuple[int, int]]) -> None:
    number, first = numbered(*columns(rows, 2))
    once = list(dict.fromkeys(rows))
    assert number.tolist() == [once.index(row) for row in rows]
    assert first.tolist() == [rows.index(row) for row in once]
    assert ordered(*columns(rows, 2)).tolist() == [sorted(once).index(row) for row in rows]
    assert occurrence(*columns(rows, 2)).tolist() == [rows[:place].count(row) for place, row in enumerate(rows)]


@given(st.lists(st.one_of(SMALL, st.integers(-(1 << 63), (1 << 63) - 1)), max_size=20), st.lists(SMALL, max_size=10))
def test_numbers_are_found_at_their_first_place(ids: list[int], wanted: list[int]) -> None:
    wanted = [*wanted, *ids[:3], (1 << 63) - 1, -(1 << 63)]
    found = lookup(np.array(ids, np.int64), np.array(wanted, np.int64))
    assert found.tolist() == [ids.index(each) if each in ids else NONE for each in wanted]


def test_consecutive_dense_and_far_ids_are_found() -> None:
    for ids in ([5, 6, 7], [7, 5, 9, 7], [10**15, 5, -(10**15)]):
        found = lookup(np.array(ids), np.array([*ids, 4, 8]))
        assert found.tolist() == [*map(ids.index, ids), NONE, NONE]


@given(ROWS, ROWS)
def test_work_is_launched_by_the_first_call_of_its_process_with_its_correlation(
    calls: list[tuple[int, int]], work: list[tuple[int, int]]
) -> None:
    found = Launches(*columns(calls, 2)).of(*columns(work, 2))
    assert found.tolist() == [calls.index(each) if each in calls and each[1] > 0 else NONE for each in work]


def moments(spans: list[tuple[int, int]]) -> set[int]:
    return {moment for start, length in spans for moment in range(start, start + length)}


SPANS = st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 8)), max_size=12)


@pytest.mark.slow
@given(SPANS, SPANS)
def test_intervals_that_overlap_count_once(spans: list[tuple[int, int]], windows: list[tuple[int, int]]) -> None:
    start, length = columns(spans, 2)
    found, (begin, width) = Intervals(start, start + length), columns(windows, 2)
    assert found.length == len(moments(spans))
    assert found.within(begin, begin + width).tolist() == [len(moments(spans) & moments([window])) for window in windows]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-20, 20), st.integers(0, 8)), max_size=20))
def test_intervals_count_once_in_each_group(rows: list[tuple[int, int, int]]) -> None:
    group, start, length = columns(rows, 3)
    expected = [len(moments([row[1:] for row in rows if row[0] == each])) for each in range(4)]
    assert union_lengths(group, start, start + length, 4).tolist() == expected
    times = (
        start * SCALE,
        (start + length) * SCALE,
    )  # of far times too, whose differences between groups have no room in 64 bits
    assert union_lengths(group, *times, 4).tolist() == [each * SCALE for each in expected]


@pytest.mark.slow
def test_a_hundred_thousand_rows_take_a_fraction_of_a_second() -> None:
    rng = np.random.default_rng(3)
    first, second, start = (rng.integers(0, most, 100_000) for most in (1 << 40, 1000, 1 << 40))
    with cpu_seconds(1):
        ordered(first, second)
        Launches(second, first).of(second, first)
        union_lengths(second, start, start + first, 1000)
