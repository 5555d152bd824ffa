"""The device work of one rank."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from warpladder.dashboard.core.traces import NONE, Int64s

Bools = npt.NDArray[np.bool_]

COMPUTE, COMMUNICATION, MEMORY, GRAPH = range(4)
#: A time before any other.
LONG_AGO: Final = np.iinfo(np.int64).min // 4


@dataclass(frozen=True)
class Work:
    """Kernels, copies and sets of a rank, in the order of their starts. Times are ns on the job's clock.

    Attributes:
        start, end: times on the device. No end is before its start.
        stream: index into `streams`, which has the process, device and number of each.
        kind: `COMPUTE`, `COMMUNICATION`, `MEMORY`, or `GRAPH`, a CUDA graph that was traced as a whole.
        name: index into `names`.
        match: the collective of the job that a communication kernel is a part of; `NONE` for other work.
        correlation: of its call, shared by all nodes of a graph.
        call: place in `api_calls` of the call that launched it, which all nodes of a graph share; `NONE` where it is not in the trace.
        thread: that launched it, counted from 0 over all processes; `NONE` where the launch is not in the trace.
        launched: end of the launch call, or the start of the work where that is earlier.
    """

    start: Int64s
    end: Int64s
    stream: Int64s
    streams: tuple[tuple[int, int, int], ...]
    kind: Int64s
    name: Int64s
    names: tuple[str, ...]
    match: Int64s
    correlation: Int64s
    call: Int64s
    thread: Int64s
    launched: Int64s

    def __len__(self) -> int:
        return len(self.start)

    def launches_of(self, rows: Int64s) -> Int64s:
        """When the works of a stream, in their order, had been launched at the latest: work is launched before what follows it."""
        return np.asarray(np.minimum.accumulate(self.launched[rows][::-1])[::-1])

    def latest(self, times: Int64s) -> Int64s:
        """The work that ended last at each time or before it; `NONE` without any."""
        by_end = np.argsort(self.end, kind="stable")
        place = np.searchsorted(self.end[by_end], times, side="right")
        return np.append(NONE, by_end)[place]
