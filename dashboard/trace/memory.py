"""Device memory in use over the time of a trace."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from warpladder.dashboard.core.traces import Int64s, Traces

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


def memory_in_use(traces: Traces) -> list[MemoryInUse]:
    """The memory in use of each process and device; of the allocator where it was recorded, else of CUDA. Nothing for a trace without it."""
    if _TABLE not in traces.run.tables:
        return []
    process, device, start, used = (traces.numbers(_TABLE, name) for name in ("process", "device", "start_ns", "bytes"))
    sources = traces.texts(_TABLE, "source")
    several = len(np.unique(process)) > 1
    word = "rank" if traces.of_ranks else "process"
    found = {}
    keys = np.stack([process, device, np.asarray(sources.codes, dtype=np.int64)])
    for number, ordinal, code in np.unique(keys, axis=1).T.tolist():
        rows = np.flatnonzero((process == number) & (device == ordinal) & (sources.codes == code))
        group = f"{word} {number} · GPU {ordinal}" if several else f"GPU {ordinal}"
        source = str(sources.categories[code])
        if source == "allocator" or (number, ordinal) not in found:
            found[number, ordinal] = MemoryInUse(group, source, start[rows], used[rows])
    return list(found.values())
