"""Converts the records of allocations of a report to rows of `memory_in_use`: how much device memory is in use from each change on."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from warpladder.collectors.trace.report import Report
from warpladder.data.arrays import Int64s, integers
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
    columns = _joined(report, ALLOCATOR, ("globalPid", "deviceId", "start", IN_USE, RESERVED))
    process, device, start, used, reserved = (column[np.lexsort(columns[2::-1])] for column in columns)
    fine = _is_time(start) & (process >= 0) & (device >= 0) & _is_size(used)
    columns = [each[fine] for each in (report.process_numbers(process), device, start, used, reserved)]
    yield from _table(*columns, source="allocator")


def _of_cuda(report: Report) -> Iterator[pa.Table]:
    """The bytes in use after each allocation and release. Bytes released without an allocation were in use from the start on."""
    allocates, releases = _codes(report, _OPERATIONS, "alloc", "dealloc"), _codes(report, _OPERATIONS, "dealloc")
    columns = _joined(report, USAGE, ("globalPid", "deviceId", "start", "bytes", "memoryOperationType", "memKind"))
    process, device, start, size, operation, kind = (column[np.lexsort(columns[2::-1])] for column in columns)
    fine = _is_time(start) & (process >= 0) & (device >= 0) & _is_size(size) & np.isin(kind, _codes(report, _KINDS, "device"))
    fine &= np.isin(operation, [*allocates, *releases])
    process, device, start = report.process_numbers(process)[fine], device[fine], start[fine]
    change = np.where(np.isin(operation, allocates), size, -size)[fine]
    bounds = np.flatnonzero(np.diff(process, prepend=-1) | np.diff(device, prepend=-1)).tolist()
    for first, last in pairwise([*bounds, len(start)] if bounds else []):
        used = np.cumsum(change[first:last])
        used -= min(int(used.min()), 0)
        part = process[first:last], device[first:last], start[first:last]
        yield from _table(*part, np.minimum(used, MOST_WORK), np.full(last - first, -1), source="cuda")


def _joined(report: Report, table: str, names: tuple[str, ...]) -> list[Int64s]:
    """Columns of a table; -1 for null."""
    parts = [[integers(batch[name], -1) for name in names] for batch in report.batches(table, names)]
    return [np.concatenate(column) for column in zip([np.empty(0, np.int64)] * len(names), *parts, strict=True)]


def _codes(report: Report, table: str, word: str, other: str = "") -> list[int]:
    """The numbers of an enumeration whose names have a word, and not another."""
    named = [(row["id"], f"{row['name']} {row['label']}".lower()) for row in report.rows(table, ("id",), ("name", "label"))]
    return [number for number, name in named if word in name and not (other and other in name)]


def _is_time(start: Int64s) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return (start >= 0) & (start <= FAR)


def _is_size(size: Int64s) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return (size >= 0) & (size <= MOST_WORK)


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
                "reserved_bytes": pa.array(reserved, mask=(reserved < 0) | (reserved > MOST_WORK)),
            }
        )
