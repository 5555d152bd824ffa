"""Attribution: by hand on small trees, and against a plain loop on random ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limits import cpu_seconds
from warpladder.collectors.trace import attribution
from warpladder.collectors.trace.attribution import SEVERAL, ByTime, LaunchedWork, device_time
from warpladder.data.arrays import NONE
from warpladder.data.nesting import Innermost

pytestmark = pytest.mark.slow


def columns(*rows: tuple[int, ...]) -> list[np.ndarray]:
    return [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]


def test_busy_time_counts_overlapping_work_once_and_gaps_not_at_all() -> None:
    # Launched at 5, 6 and 50: on the device [10, 30), [20, 40) and [70, 75). Range 0 holds all three, range 1 the first two.
    launches = LaunchedWork(*columns((1, 5, 10, 30), (1, 6, 20, 40), (1, 50, 70, 75)))
    found = device_time(*columns((1, 0, 100), (1, 5, 7), (1, 8, 9), (2, 0, 100)), launches)
    assert found.items.tolist() == [3, 2, 0, 0]
    assert found.start[:2].tolist() == [10, 10]
    assert found.end[:2].tolist() == [75, 40]
    assert found.busy[:2].tolist() == [35, 30]


def test_without_ranges_or_launches_nothing_is_attributed() -> None:
    nothing = np.empty(0, np.int64)
    one = np.array([1])
    assert device_time(one, one, one + 5, LaunchedWork(nothing, nothing, nothing, nothing)).items.tolist() == [0]


def by_time(*rows: tuple[int, ...], steps: tuple[int, ...] = ()) -> ByTime:
    ranges = columns(*rows)
    return ByTime(*ranges, Innermost(*ranges), np.array(steps, np.int64))


def without_own(found: ByTime, process: np.ndarray, time: np.ndarray) -> list[int]:
    """What is found for launches by a thread without ranges."""
    ranges: list[int] = found.at(process << 24 | 99, time, np.zeros(len(time), bool)).tolist()
    return ranges


PROCESS = 5 << 24


def test_a_launch_without_a_range_belongs_by_time_to_the_innermost_range_of_the_one_other_thread_that_has_one() -> None:
    found = by_time((PROCESS | 1, 0, 100), (PROCESS | 1, 20, 30), (PROCESS | 2, 50, 60), (PROCESS | 2, 55, 90))
    times = np.array([-1, 0, 19, 20, 30, 49, 50, 59, 89, 90, 99, 100])
    assert without_own(found, np.full(12, 5), times) == [NONE, 0, 0, 1, 0, 0, SEVERAL, SEVERAL, SEVERAL, 0, 0, NONE]
    assert without_own(found, np.array([4, 6]), np.array([25, 25])) == [NONE, NONE], (
        "ranges of other processes are none of theirs"
    )


def test_what_any_thread_launches_within_a_step_belongs_to_the_innermost_range_of_the_thread_of_the_step() -> None:
    main, hooks, loader, other = (PROCESS | thread for thread in (1, 2, 3, 4))
    step, backward = 0, 1
    found = by_time(
        (main, 10, 100), (main, 40, 80), (hooks, 50, 60), (loader, 0, 200), (PROCESS + (1 << 24) | 1, 0, 200), steps=(step,)
    )
    for thread, time, has_own, expected in (
        (hooks, 55, True, backward),
        (hooks, 70, False, backward),
        (other, 55, False, backward),
        (loader, 20, True, step),
        (loader, 100, True, NONE),
        (other, 5, False, 3),
        (main, 50, True, NONE),
        (PROCESS + (1 << 24) | 2, 50, False, 4),
    ):
        assert found.at(np.array([thread]), np.array([time]), np.array([has_own])).tolist() == [expected], (thread, time)


def test_where_two_threads_have_steps_a_launch_inside_a_range_stays_in_it_and_one_outside_is_unclear() -> None:
    found = by_time((PROCESS | 1, 0, 100), (PROCESS | 2, 0, 100), (PROCESS | 3, 0, 100), steps=(0, 1))
    launched = np.full(2, PROCESS | 3), np.full(2, 50), np.array([True, False])
    assert found.at(*launched).tolist() == [NONE, SEVERAL]


def test_by_time_nothing_belongs_to_nothing() -> None:
    nothing = np.empty(0, np.int64)
    found = ByTime(nothing, nothing, nothing, Innermost(nothing, nothing, nothing), nothing)
    assert without_own(found, np.array([1]), np.array([1])) == [NONE]


INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)), max_size=25)


@given(
    INTERVALS, st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 45), st.integers(0, 60), st.integers(0, 9)), max_size=20)
)
def test_arrays_agree_with_a_plain_loop_on_any_overlaps(rows: list[tuple[int, int, int]], work: list[tuple[int, ...]]) -> None:
    ranges = sorted(((t, s, s + length) for t, s, length in rows), key=lambda r: (r[0], r[1], -r[2]))
    thread, start, end = columns(*ranges) if ranges else [np.empty(0, np.int64)] * 3
    launches = sorted((t, at, s, s + length) for t, at, s, length in work)
    launched = LaunchedWork(*columns(*launches)) if launches else LaunchedWork(*[np.empty(0, np.int64)] * 4)

    found = device_time(thread, start, end, launched)
    for index, (t, s, e) in enumerate(ranges):
        inside = [(begin, stop) for u, at, begin, stop in launches if u == t and s <= at < e]
        assert found.items[index] == len(inside)
        if inside:
            union = {tick for begin, stop in inside for tick in range(begin, stop)}
            assert found.busy[index] == len(union)
            assert (found.start[index], found.end[index]) == (min(b for b, _ in inside), max(e for _, e in inside))


Spans = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)), max_size=12)


@given(Spans, st.sets(st.integers(0, 11)))
def test_attribution_by_time_agrees_with_a_plain_loop_on_any_overlaps(
    rows: list[tuple[int, int, int, int]], steps: set[int]
) -> None:
    ranges = sorted(((p << 24 | t, s, s + length) for p, t, s, length in rows), key=lambda r: (r[0], r[1], -r[2]))
    of = columns(*ranges) if ranges else [np.empty(0, np.int64)] * 3
    steps = {each for each in steps if each < len(ranges)}
    found = ByTime(*of, Innermost(*of), np.array(sorted(steps), np.int64))
    times = np.arange(-1, 45)
    for thread in (each << 24 | number for each in (0, 1) for number in (0, 1, 2, 7)):
        expected, has_own = [], []
        for time in times.tolist():
            opened = {i: t for i, (t, s, e) in enumerate(ranges) if t >> 24 == thread >> 24 and s <= time < e}
            in_steps = {t for i, t in opened.items() if i in steps}
            has_own.append(thread in opened.values())
            candidates = in_steps if len(in_steps) == 1 else set() if has_own[-1] else set(opened.values())
            if candidates == {thread}:
                candidates = set()
            inner = max((i for i, t in opened.items() if t in candidates), default=NONE)
            expected.append(SEVERAL if len(candidates) > 1 else inner)
        assert found.at(np.full(len(times), thread), times, np.array(has_own)).tolist() == expected


Work = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), min_size=1, max_size=25)


@given(Work, st.lists(st.tuples(st.integers(0, 24), st.integers(1, 25)), min_size=1, max_size=12))
def test_a_sweep_over_all_work_gives_the_times_of_each_window_laid_out(
    work: list[tuple[int, int]], windows: list[tuple[int, int]]
) -> None:
    start, end = columns(*((begin, begin + length) for begin, length in work))
    first, last = columns(*((min(a, b - 1, len(work) - 1), min(max(a + 1, b), len(work))) for a, b in windows))
    expected = [
        len({tick for place in range(a, b) for tick in range(start[place], end[place])})
        for a, b in zip(first, last, strict=True)
    ]
    assert attribution._by_sweep(start, end, first, last).tolist() == expected
    assert attribution._beside_one_another(start, end, first, last - first).tolist() == expected
    earliest, latest, busy = attribution.of_windows(start, end, first, last)
    assert busy.tolist() == expected
    assert earliest.tolist() == [min(start[a:b]) for a, b in zip(first, last, strict=True)]
    assert latest.tolist() == [max(end[a:b]) for a, b in zip(first, last, strict=True)]


def test_work_of_absurd_length_is_swept_too() -> None:
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    start, end, first, last = (np.array(each, dtype=np.int64) for each in ([least, 0], [most, 5], [0, 1], [2, 2]))
    assert attribution._by_sweep(start, end, first, last)[1] == 5


def test_windows_over_all_the_work_take_no_longer_than_the_work() -> None:
    # Of two streams: the work is not in the order of its launches.
    count = 50_000
    place = np.arange(count)
    start = 10 * place + 5_000 * (place % 2)
    first, last = place // 2, count - place // 4
    with cpu_seconds(3):
        _, _, busy = attribution.of_windows(start, start + 8, first, last)
    chosen = [0, 1, 777, count - 1]
    assert (
        busy[chosen].tolist()
        == attribution._beside_one_another(start, start + 8, first[chosen], (last - first)[chosen]).tolist()
    )
