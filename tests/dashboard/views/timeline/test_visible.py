"""What ran in a span: against counting by nanosecond, and on traces whose figures are counted by hand."""

from pathlib import Path

import numpy as np
import pytest

from tests.dashboard.views.timeline.test_timeline import lanes_of, write_trace
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.views.timeline.visible import VisibleWork, answer, kernel_table, visible


def gpus(seen: VisibleWork) -> list[tuple[str, int, int, int]]:
    """Name, busy time, time of kernels and time of copies of each GPU."""
    return list(seen.gpus.drop(columns="alive").itertuples(index=False, name=None))


def kernels_of(seen: VisibleWork) -> list[tuple[str, int, int]]:
    """Name, count and total of each kernel."""
    return list(seen.kernels.itertuples(index=False, name=None))


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    """Kernels on two streams of GPU 0 that overlap, a copy beside one and after it, and a kernel of GPU 1.

    From 0 to 100:      a a a a a a . . . . (stream 1, 0 to 60)
                        . . . b b b b . . . (stream 2, 30 to 70)
                        . . . . . . c c c . (copy on stream 3, 60 to 90), and GPU 1: a from 80 to 100.
    """
    kernels = [
        {"start_ns": 0, "end_ns": 60, "stream": 1, "full_name": "void a<1>(int)"},
        {"start_ns": 30, "end_ns": 70, "stream": 2, "full_name": "b"},
        {"start_ns": 80, "end_ns": 100, "stream": 1, "device": 1, "full_name": "void a<1>(int)"},
        {"start_ns": 95, "end_ns": 95, "stream": 2, "full_name": "none"},
    ]
    copies = [{"start_ns": 60, "end_ns": 90, "stream": 3, "kind": "h2d"}]
    return write_trace(tmp_path_factory.mktemp("runs"), kernels=kernels, memory_ops=copies)


def test_work_that_overlaps_keeps_a_gpu_busy_once_and_counts_for_each_kernel(traces: Traces) -> None:
    found = visible(traces, lanes_of(traces), 0, 100)
    assert gpus(found) == [("GPU 0", 90, 70, 30), ("GPU 1", 20, 20, 0)]
    assert kernels_of(found) == [("void a<1>(int)", 2, 80), ("b", 1, 40), ("none", 1, 0)]
    assert kernel_table(found, {"b": "short"})["mean_ns"].tolist() == [40, 40, 0]


def test_what_crosses_the_edges_is_cut_to_the_span(traces: Traces) -> None:
    found = visible(traces, lanes_of(traces), 50, 85)
    # a from 50 to 60 and from 80 to 85, b from 50 to 70, the copy from 60 to 85.
    assert gpus(found) == [("GPU 0", 35, 20, 25), ("GPU 1", 5, 5, 0)]
    assert kernels_of(found) == [("b", 1, 20), ("void a<1>(int)", 2, 15)]


def test_a_span_in_which_nothing_ran_has_idle_gpus_and_no_kernel(traces: Traces) -> None:
    found = visible(traces, lanes_of(traces), 91, 94)
    assert gpus(found) == [("GPU 0", 0, 0, 0), ("GPU 1", 3, 3, 0)]
    assert kernels_of(found) == [("void a<1>(int)", 1, 3)]
    assert visible(traces, lanes_of(traces), 91, 94).span_ns == 3


def test_an_end_that_touches_the_span_is_outside_of_it(traces: Traces) -> None:
    assert kernels_of(visible(traces, lanes_of(traces), 70, 80)) == []


@pytest.mark.parametrize("seed", range(4))
def test_busy_times_are_those_counted_by_nanosecond(tmp_path: Path, seed: int) -> None:
    generator = np.random.default_rng(seed)
    rows = [
        {"start_ns": int(start), "end_ns": int(start + lasts), "stream": int(stream), "full_name": f"k{name}"}
        for start, lasts, stream, name in zip(
            generator.integers(0, 900, 60), generator.integers(1, 80, 60), generator.integers(0, 4, 60),
            generator.integers(0, 5, 60), strict=True,
        )
    ]  # fmt: skip
    kernels, copies = rows[:45], [{key: row[key] for key in ("start_ns", "end_ns", "stream")} for row in rows[45:]]
    traces = write_trace(tmp_path, kernels=kernels, memory_ops=copies)
    begin, end = sorted(generator.choice(np.arange(0, 1_000), 2, replace=False).tolist())
    found = visible(traces, lanes_of(traces), begin, end)
    ran = [
        {at for row in part for at in range(max(row["start_ns"], begin), min(row["end_ns"], end))} for part in (kernels, copies)
    ]
    assert gpus(found) == [("GPU 0", len(ran[0] | ran[1]), len(ran[0]), len(ran[1]))]
    for name, count, total in kernels_of(found):
        times = [min(row["end_ns"], end) - max(row["start_ns"], begin) for row in kernels if row["full_name"] == name]
        inside = [each for each in times if each > 0]
        assert (count, total) == (len(inside), sum(inside))


def test_a_gpu_of_several_processes_is_one_and_a_process_that_has_ended_is_no_idle_gpu(tmp_path: Path) -> None:
    """Process 1 from 0 to 50, process 2 from 40 to 100; each is busy for 10."""
    kernels = [
        {"start_ns": 10, "end_ns": 20, "process": 1, "stream": 1, "full_name": "a"},
        {"start_ns": 90, "end_ns": 100, "process": 2, "stream": 1, "full_name": "a"},
    ]
    ranges = [
        {"start_ns": 0, "end_ns": 50, "process": 1, "text": "x"},
        {"range_id": 1, "start_ns": 40, "end_ns": 100, "process": 2, "text": "x"},
    ]
    traces = write_trace(tmp_path, kernels=kernels, ranges=ranges)
    seen = visible(traces, lanes_of(traces), 0, 100, devices=1)
    assert gpus(seen) == [("GPU 0", 20, 20, 0)]
    # Home counts from the first kernel to the last, from 10 to 100.
    of_work = ", 77.8 % of the 90.0 ns from first to last device work"
    assert answer(seen, measured=False) == f"GPU 0 is idle 80.0 % of this window of 100 ns{of_work}"

    # Two GPUs, each of which its process calls 0.
    apart = visible(traces, lanes_of(traces), 0, 100, devices=2)
    assert apart.gpus["gpu"].tolist() == ["process 1 · GPU 0", "process 2 · GPU 0"]
    assert answer(apart, measured=False).endswith(
        ", 88.9 % of the 90.0 ns from first to last device work, the most of all GPUs"
    )
    later = visible(traces, lanes_of(traces), 80, 100, devices=2)
    assert later.gpus["alive"].tolist() == [False, True]
    assert answer(later, measured=True) == (
        "process 2 · GPU 0 is idle 50.0 % of the measured 20.0 ns, 0 % of the 10.0 ns from first to last device work"
    )
    after = visible(traces, lanes_of(traces), 100, 120, devices=2)
    assert answer(after, measured=True) == "No process that uses a GPU is alive in the measured 20.0 ns"


def test_a_trace_without_kernels_or_without_device_work_has_figures(tmp_path: Path) -> None:
    copies = write_trace(tmp_path / "copies", memory_ops=[{"start_ns": 0, "end_ns": 5, "stream": 1, "kind": "h2d"}])
    assert gpus(visible(copies, lanes_of(copies), 0, 10)) == [("GPU 0", 5, 0, 5)]
    calls = write_trace(tmp_path / "calls", api_calls=[{"start_ns": 0, "end_ns": 5, "name": "cudaFree"}])
    assert gpus(visible(calls, lanes_of(calls), 0, 10)) == []
