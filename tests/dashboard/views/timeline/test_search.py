"""Search in a trace, steps through its hits, and the windows that show them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.dashboard.views.timeline.test_timeline import lanes_of, write_trace
from tests.limits import cpu_seconds
from tests.synthetic import made_traces
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.lanes import Kind, Lane, Lanes
from warpladder.dashboard.views.timeline import selection
from warpladder.dashboard.views.timeline.selection import ChosenEvent, Search
from warpladder.data import store

ALL: tuple[Kind, ...] = ("device", "ranges", "calls")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    return Traces(store.open_run(made_traces.write(tmp_path_factory.mktemp("runs"))))


def starts(traces: Traces, text: str, kinds: tuple[Kind, ...] = ALL) -> list[int]:
    return list(map(int, selection.hits(traces, lanes_of(traces), Search(text, kinds)).start))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gemm", [1_000, 3_000, 5_000]),
        ("GEMM<Float>", [1_000, 3_000, 5_000]),
        ("relu", [2_000, 2_200, 11_000]),
        ("d2h", [3_200]),
        ("copy host", [1_200, 3_800]),
        ("idle", [2_000]),
        ("synchronize", [5_000]),
        ("cudaMemcpy", [1_100, 2_400, 3_600]),
        ("<img", [12_000]),
        (".*", []),
        ("no such", []),
        ("", []),
    ],
)
def test_kernels_copies_ranges_and_calls_are_found_by_their_start(traces: Traces, text: str, found: list[int]) -> None:
    assert starts(traces, text) == found


def test_only_the_kinds_of_lanes_that_are_shown_are_searched(traces: Traces) -> None:
    assert starts(traces, "mem", kinds=("calls",)) == [1_100, 2_400, 3_600, 9_500]
    assert starts(traces, "mem", kinds=("device",)) == [9_700]


def test_steps_go_round_and_begin_at_the_chosen_event_or_at_the_window(traces: Traces) -> None:
    lanes = lanes_of(traces)
    hits = selection.hits(traces, lanes, Search("gemm", ALL))
    rows = {1_000: 0, 3_000: 4, 5_000: 2}

    def stepped(chosen: ChosenEvent | None, window: tuple[int, int], steps: int) -> ChosenEvent | None:
        return selection.step(traces, lanes, hits, chosen, window, steps)

    whole = (0, 12_300)
    first, second, third = (ChosenEvent("kernels", rows[start]) for start in (1_000, 3_000, 5_000))
    assert [selection.place_of(traces, lanes, hits, each) for each in (first, second, third)] == [0, 1, 2]
    assert [stepped(each, whole, 1) for each in (None, first, second, third)] == [first, second, third, first]
    assert [stepped(each, whole, -1) for each in (None, first, second, third)] == [third, third, first, second]
    assert stepped(None, (2_000, 4_000), 1) == second
    assert stepped(None, (2_000, 4_000), -1) == second
    assert stepped(None, (6_000, 7_000), 1) == first, "after the last comes the first"
    # `step` of thread 102 starts at 1000, and is no hit; a chosen event outside of the window counts no more.
    assert stepped(ChosenEvent("ranges", 4), whole, 2) == second
    assert stepped(ChosenEvent("ranges", 4), (4_000, 9_000), 1) == third
    assert stepped(first, whole, 4) == second
    assert selection.step(traces, lanes, selection.hits(traces, lanes, Search("none", ALL)), None, whole, 1) is None


def test_events_that_start_together_are_hits_one_after_the_other(tmp_path: Path) -> None:
    rows = [{"start_ns": 10, "end_ns": 20, "stream": stream, "full_name": "same"} for stream in (1, 2, 3)]
    traces = write_trace(tmp_path, kernels=rows)
    lanes = lanes_of(traces)
    hits = selection.hits(traces, lanes, Search("same", ALL))
    assert [selection.place_of(traces, lanes, hits, ChosenEvent("kernels", row)) for row in range(3)] == [0, 1, 2]
    assert selection.step(traces, lanes, hits, ChosenEvent("kernels", 1), (0, 30), 1) == ChosenEvent("kernels", 2)


@pytest.mark.parametrize(
    ("window", "event", "shown"),
    [
        ((0, 10_000), (2_000, 3_000), (0, 10_000)),  # it is seen: nothing moves
        ((0, 10_000), (50_000, 51_000), (45_500, 55_500)),  # elsewhere: the same length around it
        ((0, 10_000), (9_500, 10_500), (5_000, 15_000)),  # in part
        ((0, 1_000_000), (500_000, 500_100), (495_050, 505_050)),  # too narrow to be seen: 100 times its length
        ((400, 600), (1_000, 2_000), (875, 2_125)),  # longer than the window: a quarter more than it
        ((0, 1_000), (999_900, 1_000_000), (999_000, 1_000_000)),  # not beyond the trace
        ((0, 1_000_000), (5_000, 5_000), (4_500, 5_500)),  # no duration
    ],
)
def test_the_window_moves_to_an_event_as_little_as_shows_it(
    window: tuple[int, int], event: tuple[int, int], shown: tuple[int, int]
) -> None:
    assert selection.window_on(Lanes((), 0, 1_000_000, 0), window, *event) == shown


def test_the_bins_of_hits_are_those_in_which_they_start(traces: Traces) -> None:
    hits = selection.hits(traces, lanes_of(traces), Search("gemm", ALL))
    assert hits.bins(np.array([0, 1_000, 2_000, 3_001, 5_000])).tolist() == [1, 2]


@pytest.mark.thorough
def test_a_million_events_of_two_hundred_thousand_names_are_searched_in_a_second() -> None:
    number, names = 1_000_000, 200_000
    start = np.arange(number, dtype=np.int64) * 10
    lane = Lane("ranges", (1, 1), "thread 1", "NVTX", start, start // 2, np.arange(number, dtype=np.int32), 0)
    traces = Repeated([f"iteration {each} of the loop over tiles" for each in range(names)], number // names)
    with cpu_seconds(1):
        found = selection.hits(traces, Lanes((lane,), 0, 10 * number, 0), Search("ITERATION 777", ALL))
    assert len(found) == 5 * 111


class Repeated(Traces):
    """A trace of ranges whose texts are these, one after the other, several times."""

    def __init__(self, texts: list[str], times: int) -> None:
        super().__init__(None)
        self.tables = ("ranges",)
        codes = np.tile(np.arange(len(texts), dtype=np.int32), times)
        self._columns["ranges", "text"] = pd.Categorical.from_codes(codes, categories=pd.Index(texts, dtype="str"))
