"""Device work whose times cannot be true: what is cut, what is left out, and what is not touched."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.collectors.nsight_systems import reports
from warpladder.collectors.kineto.parse import import_report
from warpladder.collectors.nsight_systems.parse import import_report as import_nsys
from warpladder.collectors.trace.notes import Notes
from warpladder.data import store

#: The first call of the traces, in us: far from 0, as the times of a profiler are.
BEGIN = 5_000_000_000
Event = dict[str, Any]


def call(correlation: int, at: float, name: str = "cudaLaunchKernel") -> Event:
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 100, "tid": 100, "ts": BEGIN + at, "dur": 3,
            "args": {"correlation": correlation}}  # fmt: skip


def kernel(correlation: int, at: float, lasts: float, name: str = "gemm", **place: Any) -> Event:
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": BEGIN + at, "dur": lasts,
            "args": {"device": 0, "context": 1, "stream": 7, "correlation": correlation, **place}}  # fmt: skip


def untimed(correlation: int) -> Event:
    return {**kernel(correlation, 0, 0), "ts": 0}


def chain(count: int, every: float = 100, lasts: float = 80) -> list[Event]:
    """Launches and kernels of one stream, the n-th at n times `every`."""
    return [event for n in range(count) for event in (call(n + 1, 10 * n), kernel(n + 1, 50 + every * n, lasts))]


def imported(folder: Path, *events: Event) -> tuple[list[tuple[float, float]], list[str]]:
    """Start and duration of each kernel in us, by its start, and the warnings."""
    file = folder / "trace.json"
    file.write_text(json.dumps({"traceEvents": events, "deviceProperties": []}))
    notes = Notes()
    run = store.open_run(folder / import_report(file, folder, "", None, [], notes))
    kernels = run.table("kernels", ["start_ns", "end_ns"]).sort_values("start_ns")
    rows = zip(
        (kernels["start_ns"] / 1000 - BEGIN).tolist(), ((kernels["end_ns"] - kernels["start_ns"]) / 1000).tolist(), strict=True
    )
    told = [row["text"] for row in notes.rows if row["severity"] == "warning" and row["source"] == "times"]
    return list(rows), told


def test_a_kernel_that_lasts_over_later_ones_of_its_stream_is_cut_to_the_start_of_the_next(tmp_path: Path) -> None:
    events = chain(6)
    events[3] = kernel(2, 150, 3_400_000, "elementwise_add")
    rows, told = imported(tmp_path, *events)
    assert rows == [(50 + 100 * n, 100 if n == 1 else 80) for n in range(6)]
    assert told == [
        "elementwise_add (3.4 s, counted as 100 µs): too long to be true, as later work of its stream ran meanwhile; "
        "counted up to the start of that work"
    ]


def test_a_copy_that_lasts_over_later_work_of_its_stream_is_cut_too(tmp_path: Path) -> None:
    events = chain(6)
    events[3] |= {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "dur": 3_400_000}
    events[3]["args"] |= {"bytes": 4_000}
    rows, told = imported(tmp_path, *events)
    assert rows == [(50 + 100 * n, 80) for n in range(6) if n != 1]
    (run,) = (store.open_run(path.parent) for path in tmp_path.glob("*/run.parquet"))
    copies = run.table("memory_ops", ["start_ns", "end_ns"])
    assert (copies["end_ns"] - copies["start_ns"]).tolist() == [100_000]
    assert [text.split(":")[0] for text in told] == ["a copy (3.4 s, counted as 100 µs)"]


def test_several_are_named_the_longest_first(tmp_path: Path) -> None:
    events = chain(12)
    for n, lasts in enumerate((5_000, 7_000, 6_000, 900)):
        events[1 + 4 * n] = kernel(1 + 2 * n, 50 + 200 * n, lasts, f"k{n}")
    rows, (told,) = imported(tmp_path, *events)
    assert [lasts for _, lasts in rows] == [100, 80] * 4 + [80] * 4
    assert told.startswith(
        "k1 (7 ms, counted as 100 µs), k2 (6 ms, counted as 100 µs), k0 (5 ms, counted as 100 µs) and 1 more: "
    )


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({"stream": 8}, id="another stream"),
        pytest.param({"device": 1}, id="stream 7 of another GPU"),
        pytest.param({"context": 2}, id="stream 7 of another context"),
        pytest.param({"graph id": 5}, id="a node of a graph"),
    ],
)
def test_kernels_that_may_run_side_by_side_stay(tmp_path: Path, second: dict[str, Any]) -> None:
    events = [
        call(1, 0),
        call(2, 10),
        call(3, 20),
        kernel(1, 50, 900),
        kernel(2, 100, 50, **second),
        kernel(3, 200, 50, **second),
    ]
    rows, told = imported(tmp_path, *events)
    assert rows == [(50, 900), (100, 50), (200, 50)] and not told


def test_kernels_of_one_launch_are_nodes_of_a_graph(tmp_path: Path) -> None:
    rows, told = imported(tmp_path, call(1, 0, "cudaGraphLaunch"), kernel(1, 50, 900), kernel(1, 60, 50), kernel(1, 120, 80))
    assert [lasts for _, lasts in rows] == [900, 50, 80] and not told


def test_launches_that_overlap_by_microseconds_stay(tmp_path: Path) -> None:
    # The third begins 2 us before the second ends, and ends 1 us before it, as with whole microseconds.
    events = [call(n, n) for n in (1, 2, 3, 4)]
    events += [kernel(1, 10, 100), kernel(2, 108, 100), kernel(3, 206, 1), kernel(4, 210, 100)]
    rows, told = imported(tmp_path, *events)
    assert [lasts for _, lasts in rows] == [100, 100, 1, 100] and not told


def test_a_kernel_without_a_duration_shows_nothing_about_the_one_before_it(tmp_path: Path) -> None:
    rows, told = imported(tmp_path, call(1, 0), call(2, 1), kernel(1, 10, 5_000), kernel(2, 20, 0))
    assert [lasts for _, lasts in rows] == [5_000, 0] and not told


def test_kernels_without_times_are_left_out_and_counted(tmp_path: Path) -> None:
    rows, told = imported(tmp_path, *chain(4), call(20, 100), untimed(20), call(21, 110), untimed(21))
    assert [at for at, _ in rows] == [50, 150, 250, 350]
    assert told == [
        "2 kernels, copies and sets have time 0 and duration 0, because the profiler did not take their times, and are left out"
    ]


@pytest.mark.parametrize("at", [-BEGIN + 1, -90e6, 200e6, 1.7e15 - BEGIN], ids=["near 0", "before", "behind", "another epoch"])
def test_work_that_is_far_from_all_that_the_host_did_is_left_out(tmp_path: Path, at: float) -> None:
    rows, told = imported(tmp_path, *chain(12), call(20, 130), kernel(20, at, 50))
    assert len(rows) == 12 and rows[-1] == (1150, 80)
    assert told == [
        "1 kernels, copies and sets are minutes or more away from everything that the host did, as with times of another clock, and are left out"
    ]


def test_a_trace_of_parts_that_are_far_from_each_other_stays(tmp_path: Path) -> None:
    later = [{**event, "ts": event["ts"] + 900e6} for event in chain(3)]
    for event in later:
        event["args"] = {**event["args"], "correlation": event["args"]["correlation"] + 50}
    rows, told = imported(tmp_path, *chain(30), *later)
    assert len(rows) == 33 and not told


def test_if_all_work_is_far_from_the_host_it_stays(tmp_path: Path) -> None:
    shifted = [{**event, "ts": event["ts"] + 900e6} if event["cat"] == "kernel" else event for event in chain(5)]
    assert len(imported(tmp_path, *shifted)[0]) == 5


def test_without_the_host_only_an_hour_is_far(tmp_path: Path) -> None:
    alone = [event for event in chain(30) if event["cat"] == "kernel"]
    assert len(imported(tmp_path, *alone, kernel(99, 100e6, 5))[0]) == 31
    assert len(imported(tmp_path, *alone, kernel(99, 4000e6, 5))[0]) == 30


def test_a_report_of_nsight_systems_is_corrected_too(tmp_path: Path) -> None:
    made = reports.small()
    for table in ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"):  # which share a launch with a kernel
        made.pop(table, None)
    made["CUPTI_ACTIVITY_KIND_KERNEL"] = [
        reports.kernel(n, 1_000_000 * n, 1_000_000 * n + (3_000_000_000 if n == 2 else 900_000)) for n in range(1, 6)
    ]
    made["CUPTI_ACTIVITY_KIND_KERNEL"].append(reports.kernel(6, 0, 0))
    file = reports.write(tmp_path / "report.sqlite", made)
    notes = Notes()
    run = store.open_run(tmp_path / import_nsys(file, tmp_path, "", None, [], notes))
    kernels = run.table("kernels", ["start_ns", "end_ns"])
    assert (kernels["end_ns"] - kernels["start_ns"]).tolist() == [900_000, 1_000_000, 900_000, 900_000, 900_000]
    told = " ".join(row["text"] for row in notes.rows if row["source"] == "times")
    assert "gemm (3 s, counted as 1 ms)" in told and "1 kernels, copies and sets have time 0" in told


def test_collectives_have_the_true_ends(tmp_path: Path) -> None:
    events = [*chain(4), call(9, 5), untimed(9)]
    events[3]["dur"] = 1_000_000
    for each in (events[1], events[3], events[-1]):
        each["name"] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL()"
    imported(tmp_path, *events)
    (run,) = (store.open_run(path.parent) for path in tmp_path.glob("*/run.parquet"))
    collectives = run.table("collectives", ["start_ns", "end_ns"])
    assert ((collectives["end_ns"] - collectives["start_ns"]) / 1000).tolist() == [80, 100]
    assert run.table("kernels", ["end_ns"])["end_ns"].max() / 1000 - BEGIN == 430
