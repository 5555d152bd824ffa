"""How much earlier a step ends if some of its device work takes less time, counted by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from warpladder.dashboard.core.operations.program import DeviceTimeline


def timeline(work: Sequence[Sequence[int]], waits: Sequence[Sequence[int]] = ()) -> DeviceTimeline:
    """Rows of start, end, stream and launch in us; starts and ends of calls that wait."""
    rows = np.array(work, np.int64)
    start, end, stream, launched = (1000 * rows[:, 0], 1000 * rows[:, 1], rows[:, 2], 1000 * rows[:, 3])
    begin, finish = 1000 * np.array(waits, np.int64).reshape(-1, 2).T
    return DeviceTimeline(start, end, stream, launched, launched >= 0, (begin, finish))


#: The first kernel of 100 us takes half.
HALF = 50_000.0


@pytest.mark.parametrize(
    ("work", "waits", "gain_us"),
    [
        # Queued behind it on its stream.
        ([(10, 110, 7, 5), (111, 211, 7, 6), (212, 312, 7, 8)], (), 50),
        # The third is launched late: the host is what it waits for.
        ([(10, 110, 7, 5), (111, 211, 7, 6), (400, 500, 7, 395)], (), 0),
        # The second was launched 30 us before it started, and work starts 5 us after its launch at least.
        ([(10, 110, 7, 5), (111, 211, 7, 81)], (), 25),
        # The second waits for another stream.
        ([(10, 110, 7, 5), (10, 150, 8, 5), (152, 252, 7, 6)], (), 0),
        # It waits for this stream, and 32 us earlier for the work before it on its own.
        ([(10, 110, 7, 5), (10, 80, 8, 5), (112, 212, 8, 6)], (), 32),
        # The host waits for the first, and then launches the second.
        ([(10, 110, 7, 5), (130, 230, 7, 125)], [(20, 120)], 50),
        # The host waited for nothing.
        ([(10, 110, 7, 5), (130, 230, 7, 125)], [(115, 120)], 0),
        # A graph launches both: the second waits for the first, and starts 4 us after the launch at least, as the first does.
        ([(10, 12, 7, 6), (20, 120, 7, 6)], (), 10),
        # Two launches at that distance: the second kernel was released by its own.
        ([(10, 12, 7, 6), (20, 120, 7, 7)], (), 0),
        # Its launch is not in the trace.
        ([(10, 110, 7, 5), (111, 211, 7, -1)], (), 50),
    ],
)
def test_gain_is_what_the_last_work_ends_earlier(
    work: Sequence[Sequence[int]], waits: Sequence[Sequence[int]], gain_us: int
) -> None:
    saved = np.zeros((len(work), 1))
    saved[0] = HALF
    assert timeline(work, waits).gains_ns(saved).tolist() == [1000 * gain_us]


def test_a_long_queue_is_solved_at_once() -> None:
    start = 1000 * np.arange(100_000)
    many = DeviceTimeline(
        start,
        start + 1000,
        np.zeros(100_000, np.int64),
        np.zeros(100_000, np.int64),
        np.ones(100_000, bool),
        (start[:0], start[:0]),
    )
    assert many.gains_ns(np.full((100_000, 1), 100.0))[0] == pytest.approx(100.0 * 100_000)


def test_what_is_saved_before_each_of_many_waits_of_the_host_adds_up() -> None:
    # The host waits for each kernel of 100 us, and then launches the next one.
    work = [(200 * each + 10, 200 * each + 110, 7, 200 * each + 5) for each in range(300)]
    waits = [(200 * each + 20, 200 * each + 120) for each in range(300)]
    assert timeline(work, waits).gains_ns(np.full((300, 1), HALF)).tolist() == [300 * HALF]


def test_overlapping_work_of_a_stream_stays_where_nothing_is_saved() -> None:
    assert timeline([(10, 110, 7, 5), (100, 211, 7, 6), (211, 300, 7, 8)]).gains_ns(np.zeros((3, 1))) == 0


def test_a_slower_kernel_delays_what_follows() -> None:
    assert timeline([(10, 110, 7, 5), (111, 211, 7, 6)]).gains_ns(np.array([[-20_000.0], [0.0]])) == -20_000


def test_nothing_is_gained_from_nothing() -> None:
    empty = np.empty(0, np.int64)
    assert DeviceTimeline(empty, empty, empty, empty, empty.astype(bool), (empty, empty)).gains_ns(np.empty((0, 1))) == 0
