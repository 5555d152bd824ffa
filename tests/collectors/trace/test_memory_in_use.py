"""Memory in use over time, from the events of PyTorch's allocator and from the allocations that Nsight Systems records."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tests.collectors.kineto.made_events import Event, imported, kernel, launch
from tests.collectors.nsight_systems import reports
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.lanes import MemoryInUse, memory_in_use
from warpladder.data import store


def allocator(ts: float, allocated: Any, device: int = 0, kind: int = 1, reserved: int | None = 4096, **more: Any) -> Event:
    args = {
        "Device Type": kind,
        "Device Id": device,
        "Total Allocated": allocated,
        "Total Reserved": reserved,
        "Bytes": 1,
        "Addr": 1,
    }
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": 100,
        "tid": 100,
        "ts": ts,
        "args": args,
    } | more


def test_the_allocator_of_each_gpu_is_read_and_that_of_the_host_is_not(tmp_path: Path) -> None:
    events = [
        launch(1, 1),
        kernel(10, 5, 1),
        allocator(12, 3000),
        allocator(2, 1000),
        allocator(3, 500, device=1, reserved=None),
        allocator(4, 10, kind=0, device=-1),
        allocator(5, 77, name="[other]"),
        allocator(6, "many"),
        allocator(14, 0),
    ]
    run, warnings = imported(tmp_path, events, baseTimeNanoseconds=0)
    rows = run.table("memory_in_use")
    assert rows[["process", "device", "start_ns", "source", "bytes"]].to_numpy().tolist() == [
        [100, 0, 2_000, "allocator", 1000],
        [100, 0, 12_000, "allocator", 3000],
        [100, 0, 14_000, "allocator", 0],
        [100, 1, 3_000, "allocator", 500],
    ]
    assert rows["reserved_bytes"].isna().tolist() == [False, False, False, True]
    assert not any("memory" in text for text in warnings)
    first, second = memory_in_use(Traces(run))
    assert (first.group, first.most, second.group) == ("GPU 0", 3000, "GPU 1")
    assert memory_in_use(Traces(run), several=True)[1].group == "process 100 · GPU 1"


def test_allocations_and_releases_of_nsight_systems_add_up_to_what_is_in_use(tmp_path: Path) -> None:
    """A release of what was allocated before the trace, pinned memory, which is not the device's, and an operation that is not known."""
    events = [(100, 300, 0, 2), (200, 500, 1, 2), (300, 50, 0, 1), (400, 100, 1, 2), (500, 9, 7, 2), (600, 200, 0, 2)]
    tables = {
        **reports.small(),
        "ENUM_CUDA_DEV_MEM_EVENT_OPER": [
            {"id": 0, "name": "CUDA_DEV_MEM_EVENT_OPR_ALLOCATION", "label": "Allocation"},
            {"id": 1, "name": "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION", "label": "Deallocation"},
        ],
        "ENUM_CUDA_MEM_KIND": [{"id": 1, "name": "PINNED", "label": "Pinned"}, {"id": 2, "name": "DEVICE", "label": "Device"}],
        "CUDA_GPU_MEMORY_USAGE_EVENTS": [
            {
                "start": start,
                "globalPid": reports.GLOBAL_PID,
                "deviceId": 0,
                "bytes": size,
                "memoryOperationType": what,
                "memKind": kind,
            }
            for start, size, what, kind in events
        ],
    }
    reports.write(tmp_path / "r.sqlite", tables)
    run = store.open_run(tmp_path / "runs" / import_report(tmp_path / "r.sqlite", tmp_path / "runs", "", None, []))
    rows = run.table("memory_in_use")
    # 300, then 500 less, so that 300 were in use before; then 100 less; then 200 more.
    assert rows["bytes"].tolist() == [600, 100, 0, 200] and set(rows["source"]) == {"cuda"}
    assert np.diff(rows["start_ns"]).tolist() == [100, 200, 200] and rows["reserved_bytes"].isna().all()


def test_the_peak_of_a_bin_is_that_of_every_nanosecond_in_it() -> None:
    random = np.random.default_rng(3)
    for _ in range(40):
        start = np.sort(random.integers(0, 60, random.integers(1, 12)))
        used = random.integers(0, 100, len(start))
        edges = np.unique(random.integers(-5, 70, 6))
        if len(edges) < 2:
            continue
        held = [int(used[start <= time][-1]) if (start <= time).any() else 0 for time in range(-5, 71)]
        changed = {time: [int(each) for each in used[start == time]] for time in set(start.tolist())}
        expected = [
            max(value for time in range(first, last) for value in (held[time + 5], *changed.get(time, ())))
            for first, last in pairwise(edges)
        ]
        assert MemoryInUse("", "", start, used).peaks(edges).tolist() == expected
