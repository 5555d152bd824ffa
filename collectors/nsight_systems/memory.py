"""The allocations of a report with `--cuda-memory-usage=true`: how much device memory is in use from each on."""

from collections.abc import Generator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from warpladder.collectors.nsight_systems.report import Report
from warpladder.collectors.trace.model import arrays_of
from warpladder.data.arrays import Bools, Int64s, heads
from warpladder.data.columns import FAR, MOST_WORK

#: Each allocation and release.
TABLE: Final = "CUDA_GPU_MEMORY_USAGE_EVENTS"
#: Columns of `memory_in_use`, and what each is read of.
COLUMNS: Final = "process=globalPid device=deviceId start_ns=start source=bytes bytes=bytes"
_OPERATIONS: Final = "ENUM_CUDA_DEV_MEM_EVENT_OPER"
_KINDS: Final = "ENUM_CUDA_MEM_KIND"


def batches(report: Report) -> Generator[pa.RecordBatch, None, None]:
    """The bytes in use after each allocation and release, a batch for each device of a process. Bytes released without an allocation were
    in use from the start on."""
    allocates, releases = _codes(report, _OPERATIONS, "alloc", "dealloc"), _codes(report, _OPERATIONS, "dealloc")
    names = ("globalPid", "deviceId", "start", "bytes", "memoryOperationType", "memKind")
    columns = arrays_of(report.batches(TABLE, names), names, -1)
    columns[0] >>= 24
    process, device, start, size, operation, kind = (column[np.lexsort(columns[2::-1])] for column in columns)
    fine = _is_within(start, FAR) & (process >= 0) & (device >= 0) & _is_within(size, MOST_WORK)
    fine &= np.isin(operation, [*allocates, *releases]) & np.isin(kind, _codes(report, _KINDS, "device"))
    process, device, start = process[fine] & 0xFF_FFFF, device[fine], start[fine]
    change = np.where(np.isin(operation, allocates), size, -size)[fine]
    for first, last in pairwise([*heads(process, device).tolist(), len(start)]):
        used = np.cumsum(change[first:last])
        used -= min(int(used.min()), 0)
        own = {"process": process, "device": device, "start_ns": start}
        yield pa.RecordBatch.from_pydict(
            {
                **{name: column[first:last] for name, column in own.items()},
                "source": pa.array(["cuda"] * (last - first), pa.string()),
                "bytes": np.minimum(used, MOST_WORK),
            }
        )


def _codes(report: Report, table: str, word: str, other: str = "") -> list[int]:
    """The numbers of an enumeration whose names have a word, and not another."""
    named = [(row["id"], f"{row['name']} {row['label']}".lower()) for row in report.rows(table, ("id",), ("name", "label"))]
    return [number for number, name in named if word in name and not (other and other in name)]


def _is_within(values: Int64s, most: int) -> Bools:
    return np.asarray((values >= 0) & (values <= most))
