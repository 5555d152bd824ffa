"""Converts the records of allocations of a report to rows of `memory_in_use`: how much device memory is in use from each change on."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from warpladder.collectors.trace.report import Report
from warpladder.data.arrays import Bools, Int64s
from warpladder.data.columns import FAR, MOST_WORK

#: Each allocation and release, by Nsight Systems with `--cuda-memory-usage=true`.
USAGE: Final = "CUDA_GPU_MEMORY_USAGE_EVENTS"
_OPERATIONS: Final = "ENUM_CUDA_DEV_MEM_EVENT_OPER"
_KINDS: Final = "ENUM_CUDA_MEM_KIND"
#: What PyTorch's allocator has in use after each change, by PyTorch's profiler with `profile_memory=True`.
ALLOCATOR: Final = "PYTORCH_ALLOCATOR_EVENTS"
IN_USE, RESERVED = "inUse", "reserved"


def rows(report: Report) -> Iterator[pa.Table]:
    """Yield rows of `memory_in_use`, by process, device and time. Records without a time, a device or a size are left out."""
    yield from _of_allocator(report)
    yield from _of_cuda(report)


def _of_allocator(report: Report) -> Iterator[pa.Table]:
    columns = report.arrays(ALLOCATOR, ("globalPid", "deviceId", "start", IN_USE, RESERVED), -1)
    process, device, start, used, reserved = (column[np.lexsort(columns[2::-1])] for column in columns)
    fine = _is_within(start, FAR) & (process >= 0) & (device >= 0) & _is_within(used, MOST_WORK)
    columns = [each[fine] for each in (report.process_numbers(process), device, start, used, reserved)]
    yield from _table(*columns, source="allocator")


def _of_cuda(report: Report) -> Iterator[pa.Table]:
    """The bytes in use after each allocation and release. Bytes released without an allocation were in use from the start on."""
    allocates, releases = _codes(report, _OPERATIONS, "alloc", "dealloc"), _codes(report, _OPERATIONS, "dealloc")
    columns = report.arrays(USAGE, ("globalPid", "deviceId", "start", "bytes", "memoryOperationType", "memKind"), -1)
    process, device, start, size, operation, kind = (column[np.lexsort(columns[2::-1])] for column in columns)
    fine = _is_within(start, FAR) & (process >= 0) & (device >= 0) & _is_within(size, MOST_WORK)
    fine &= np.isin(operation, [*allocates, *releases]) & np.isin(kind, _codes(report, _KINDS, "device"))
    process, device, start = report.process_numbers(process)[fine], device[fine], start[fine]
    change = np.where(np.isin(operation, allocates), size, -size)[fine]
    bounds = np.flatnonzero(np.diff(process, prepend=-1) | np.diff(device, prepend=-1)).tolist()
    for first, last in pairwise([*bounds, len(start)] if bounds else []):
        used = np.cumsum(change[first:last])
        used -= min(int(used.min()), 0)
        part = process[first:last], device[first:last], start[first:last]
        yield from _table(*part, np.minimum(used, MOST_WORK), np.full(last - first, -1), source="cuda")


def _codes(report: Report, table: str, word: str, other: str = "") -> list[int]:
    """The numbers of an enumeration whose names have a word, and not another."""
    named = [(row["id"], f"{row['name']} {row['label']}".lower()) for row in report.rows(table, ("id",), ("name", "label"))]
    return [number for number, name in named if word in name and not (other and other in name)]


def _is_within(values: Int64s, most: int) -> Bools:
    return np.asarray((values >= 0) & (values <= most))


def _table(
    process: Int64s, device: Int64s, start: Int64s, used: Int64s, reserved: Int64s, *, source: str
) -> Iterator[pa.Table]:
    if len(start):
        yield pa.table(
            {
                "process": process,
                "device": np.minimum(device, (1 << 31) - 1).astype(np.int32),
                "start_ns": start,
                "source": pa.array([source] * len(start), pa.string()),
                "bytes": used,
                "reserved_bytes": pa.array(reserved, mask=~_is_within(reserved, MOST_WORK)),
            }
        )
