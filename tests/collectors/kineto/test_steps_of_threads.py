"""What a step launched is counted for the step, whichever thread of the process launched it, and whatever ranges that thread has."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from warpladder.collectors.kineto.parse import import_report
from warpladder.dashboard.core import run_data
from warpladder.dashboard.ui.template import Look
from warpladder.dashboard.views.time.calls import query as calls
from warpladder.dashboard.views.time.operators import query as operators
from warpladder.dashboard.views.time.transfers import chart, query
from warpladder.dashboard.views.timeline import selection
from warpladder.data import store

MAIN, HOOKS, BARE, LOADER = 100, 200, 300, 400
STEP_US = 1000
STEPS = range(1, 4)
#: Of each step: thread, time of the launch since the start of the step, and time on the device, in us. One launch is a graph of three kernels.
KERNELS = [
    (MAIN, 60, [100]),
    (HOOKS, 200, [200]),
    (HOOKS, 260, [50]),
    (BARE, 300, [30]),
    (BARE, 230, [20]),
    (MAIN, 700, [7, 8, 9]),
]
COPIES = [(MAIN, 5, 30), (LOADER, 500, 11)]


def _range(name: str, thread: int, start: int, lasts: int) -> dict[str, Any]:
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 100, "tid": thread, "ts": start, "dur": lasts, "args": {}}


def _events() -> Iterator[dict[str, Any]]:
    """Steps on the main thread. A thread of the backward pass has ranges of its own at times, another one has none, and a loader has one
    that is open all the time.
    """
    correlation, device_us = 0, 0
    yield _range("prefetch", LOADER, 0, 10 * STEP_US)
    for step in STEPS:
        begin = step * STEP_US
        yield _range(f"ProfilerStep#{step}", MAIN, begin, STEP_US)
        yield _range("backward", MAIN, begin + 190, 300)
        yield _range("nccl:all_reduce", HOOKS, begin + 195, 20)
        launches = [(*each, "kernel") for each in KERNELS] + [
            (thread, at, [lasts], "gpu_memcpy") for thread, at, lasts in COPIES
        ]
        for thread, at, durations, category in launches:
            correlation += 1
            call = (
                "cudaMemcpyAsync"
                if category == "gpu_memcpy"
                else "cudaGraphLaunch"
                if len(durations) > 1
                else "cudaLaunchKernel"
            )
            yield {"ph": "X", "cat": "cuda_runtime", "name": call, "pid": 100, "tid": thread, "ts": begin + at, "dur": 5,
                   "args": {"correlation": correlation}}  # fmt: skip
            for lasts in durations:
                name = "Memcpy HtoD (Pinned -> Device)" if category == "gpu_memcpy" else f"k{lasts}"
                device_us = max(device_us, begin + at + 10)
                yield {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": device_us, "dur": lasts,
                       "args": {"device": 0, "context": 1, "stream": 7, "correlation": correlation, "bytes": 4096}}  # fmt: skip
                device_us += lasts


def write(file: Path, *more: dict[str, Any]) -> Path:
    """Write the trace, with more events."""
    file.write_text(json.dumps({"traceEvents": [*_events(), *more]}))
    return file


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> run_data.RunData:
    folder = tmp_path_factory.mktemp("steps")
    return run_data.load(store.open_run(folder / import_report(write(folder / "steps.json"), folder, "", None, [])))


@pytest.mark.slow
def test_transfers_counts_what_any_thread_launched_in_the_step_and_each_call_once(data: run_data.RunData) -> None:
    found = query.stages(data)
    assert found["variant"].tolist() == [f"ProfilerStep#{step}" for step in STEPS]
    kernel_ns = 1000 * sum(sum(durations) for *_, durations in KERNELS)
    launch_ns, copies_ns = 1000 * 5 * len(KERNELS), 1000 * sum(lasts for *_, lasts in COPIES)
    assert (kernel_ns, launch_ns, copies_ns) == (424_000, 30_000, 41_000)
    expected = [kernel_ns, kernel_ns + launch_ns, kernel_ns + launch_ns + copies_ns, 1000 * STEP_US, copies_ns]
    for row in found[[*query.STAGES, "copies_ns"]].to_numpy().tolist():
        assert row == expected
    title = chart.stages(found, Look("light", {}, "", on_gpu=True)).title
    # 495 and 1,000 us over 424 us.
    assert title == "With launch and copies ProfilerStep#1 takes 1.17× its kernels' time, end to end 2.36×"


def test_the_timeline_holds_the_work_of_all_threads_for_a_chosen_step(data: run_data.RunData) -> None:
    place = list(data.traces.texts("ranges", "text")).index("ProfilerStep#2")
    chosen = selection.ChosenEvent("ranges", place)
    work = selection.work(data.traces, chosen, 0)
    assert work["total_ns"].sum() == 1000 * (424 + 41)
    # What main launched is 124 us of kernels and 30 us of copies.
    assert selection.by_time_ns(data.traces, chosen) == 1000 * (300 + 11)


def test_an_operator_of_another_thread_counts_for_the_range_that_was_open_by_then(tmp_path: Path) -> None:
    """Operators of the step's thread, of a thread with a range of its own, and of one without."""
    file = write(
        tmp_path / "operators.json",
        *(
            {"ph": "X", "cat": "cpu_op", "name": name, "pid": 100, "tid": thread, "ts": at, "dur": 8, "args": {}}
            for name, thread, at in (
                ("aten::mm", MAIN, 2058),
                ("aten::sum", HOOKS, 2199),
                ("aten::add", BARE, 2298),
                ("aten::cat", BARE, 2500),
            )
        ),
    )
    found = operators.operators(
        run_data.load(store.open_run(tmp_path / import_report(file, tmp_path, "", None, []))), "range"
    ).set_index("operator")
    assert found["range"].to_dict() == {
        "aten::mm": "ProfilerStep",
        "aten::sum": "nccl:all_reduce",
        "aten::add": "backward",
        "aten::cat": "ProfilerStep",
    }
    assert found["self_device_ns"].to_dict() == {"aten::mm": 100_000, "aten::sum": 200_000, "aten::add": 30_000, "aten::cat": 0}


@pytest.mark.parametrize("overlap", [False, True])
def test_tables_of_work_by_range_count_what_other_threads_launched_in_the_step(tmp_path: Path, overlap: bool) -> None:
    """Also where ranges of a thread overlap without nesting."""
    file = write(tmp_path / "steps.json", *([_range("across", MAIN, 2480, 1000)] if overlap else []))
    data = run_data.load(store.open_run(tmp_path / import_report(file, tmp_path, "", None, [])))
    projected = calls.summary(data, "nvtx_gpu_proj_sum").set_index("Range")
    # From the copy at 15 us of the step to the end of the last kernel: all work is back to back from the first kernel on, at 2070 us, but
    # for the kernels from 2710 us on, which the host launches later.
    device = [event for event in _events() if event["pid"] == 0 and 2000 <= event["ts"] < 3000]
    first, last = min(each["ts"] for each in device), max(each["ts"] + each["dur"] for each in device)
    assert projected.loc["ProfilerStep#2", ["Total Proj Time (ns)", "Total GPU Ops"]].tolist() == [1000 * (last - first), 8]
    kernels = calls.summary(data, "nvtx_kern_sum")
    in_steps = kernels[kernels["NVTX Range"].str.startswith("ProfilerStep", na=False)]
    assert in_steps["Total Time (ns)"].sum() == 3 * 424_000
    assert kernels.loc[kernels["NVTX Range"] == "nccl:all_reduce", "Total Time (ns)"].tolist() == [3 * 200_000]
    assert not kernels["NVTX Range"].isna().any()
    if overlap:
        # Kernels of 7, 8 and 9 us of the second step, and those of the third before 480 us, of main and of the other threads.
        assert kernels.loc[kernels["NVTX Range"] == "across", "Total Time (ns)"].sum() == 1000 * (24 + 100 + 200 + 50 + 30 + 20)
