"""Device memory in use over the time of a trace."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from warpladder.dashboard.core.traces import Traces
from warpladder.data.arrays import NONE, Int64s

_TABLE: Final = "memory_in_use"


@dataclass(frozen=True, eq=False)
class MemoryInUse:
    """The memory that a process has in use on a device.

    Attributes:
        group: heading of its lane, which is that of the device's streams.
        source: who counts, as column `source` has it.
        start: shape (n,), times of the changes on the trace's clock, ascending.
        used: shape (n,), bytes in use from each change on.
    """

    group: str
    source: str
    start: Int64s
    used: Int64s

    @property
    def most(self) -> int:
        """Bytes at the peak of the trace."""
        return int(self.used.max())

    def peaks(self, edges: Int64s) -> Int64s:
        """The most bytes in use in each bin between two edges."""
        after = np.concatenate([[0], self.used, [0]])
        at_start = np.searchsorted(self.start, edges[:-1], side="right")
        past_last = np.searchsorted(self.start, edges[1:], side="left") + 1
        bounds = np.column_stack([at_start, np.maximum(past_last, at_start + 1)]).ravel()
        peaks: Int64s = np.maximum.reduceat(after, bounds)[::2]
        return peaks


def memory_in_use(traces: Traces, several: bool = False) -> list[MemoryInUse]:
    """The memory in use of each process and device; of the allocator where it was recorded, else of CUDA. Nothing for a trace without it.

    Args:
        several: the trace has several processes, which the headings of its lanes name.
    """
    if _TABLE not in traces.run.tables:
        return []
    process, device, start, used = (traces.numbers(_TABLE, name) for name in ("process", "device", "start_ns", "bytes"))
    sources = traces.texts(_TABLE, "source")
    word = "rank" if traces.of_ranks else "process"
    codes = np.asarray(sources.codes, dtype=np.int64)
    # Rows of one process, device and source follow each other.
    changes = sum(np.abs(np.diff(key, prepend=NONE)) for key in (process, device, codes))
    bounds = [*np.flatnonzero(changes).tolist(), len(start)]
    found: dict[tuple[int, int], MemoryInUse] = {}
    for first, last in pairwise(bounds):
        owner = int(process[first]), int(device[first])
        group = f"{word} {owner[0]} · GPU {owner[1]}" if several else f"GPU {owner[1]}"
        source = str(sources.categories[codes[first]])
        if source == "allocator" or owner not in found:
            found[owner] = MemoryInUse(group, source, start[first:last], used[first:last])
    return list(found.values())
