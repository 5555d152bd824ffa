"""The timeline of a rank: what its GPUs do in each nanosecond, and in which iteration it lies.

Each nanosecond of a GPU, from the start of the rank's first device work to the end of its last, has one class: compute, if a kernel runs
that does not communicate; else a graph, if a CUDA graph runs that was traced as a whole; else exposed communication, if communication
runs; else copies alone, if copies or sets run; else idle by its cause. So the classes of all iterations and of the time outside of them add
up to those of the profile.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from warpladder.data import job_tables
from warpladder.data.arrays import Bools, Int64s, Intervals, ordered

COMPUTE, COMMUNICATION, MEMORY, GRAPH = (
    job_tables.WORK_KINDS.index(kind) for kind in ("compute", "communication", "memory", "graph")
)
#: The stream or the iteration of work that has none.
NONE: Final = -1
#: A shorter gap whose next work had been launched is the cost of starting a kernel.
_KERNEL_WAIT_NS: Final = 30_000
LONG_AGO: Final = np.iinfo(np.int64).min
#: A GPU on which the kernels of a rank take a smaller share of their time on its busiest GPU is none of the rank's.
_LEAST_SHARE: Final = 0.01


@dataclass(frozen=True)
class DeviceWork:
    """Kernels, copies and sets of a rank, in any order. The arrays have one element for each.

    Attributes:
        start, end: times on the device in ns. No end is before its start.
        process, device: whose work it is, and the number of the GPU.
        stream: `NONE` where it is not known.
        kind: index into `job_tables.WORK_KINDS`.
        name: index into `names`.
        correlation: of the call that launched it.
        launched: this call is in the trace.
        launch_start, launch_end: its times in ns; any number where it is not in the trace.
    """

    start: Int64s
    end: Int64s
    process: Int64s
    device: Int64s
    stream: Int64s
    kind: npt.NDArray[np.int8]
    name: Int64s
    names: list[str]
    correlation: Int64s
    launch_start: Int64s
    launch_end: Int64s
    launched: Bools

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, rows: npt.NDArray[Any]) -> "DeviceWork":
        return DeviceWork(**{name: value if name == "names" else value[rows] for name, value in vars(self).items()})

    @property
    def stream_code(self) -> Int64s:
        """A number for the stream of each: a stream is one of a process and a device."""
        return ordered(self.process, self.device, self.stream)


#: Causes of gaps, by their numbers in `gaps`.
CAUSES: Final = ("host_wait", "kernel_wait", "other")
_HOST_WAIT, _KERNEL_WAIT, _OTHER = range(len(CAUSES))


def gaps(begin: int, start: Int64s, end: Int64s, launched: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The gaps before each of some work, in which none of it runs.

    Args:
        begin: from when on the gap before the first work counts.
        start, end, launched: of work in the order of starts, see `by_start`.

    Returns:
        start, end and cause of each gap; where there is none, start and end are equal. The cause is a wait for the host if the call that
        launched the work began after the gap had begun, otherwise a wait for the kernel below 30 us. Work whose launch is not in the trace
        was launched before.
    """
    reached = np.append(begin, np.maximum.accumulate(end)[:-1])[: len(start)]
    opens = np.minimum(reached, start)
    waits = np.where(start - opens < _KERNEL_WAIT_NS, _KERNEL_WAIT, _OTHER)
    return opens, start, np.where(launched > opens, _HOST_WAIT, waits)


def by_start(work: DeviceWork) -> tuple[DeviceWork, Int64s]:
    """The work in the order of starts, and its launches. Of work that starts together, the work launched first comes first."""
    launched = np.where(work.launched, work.launch_start, LONG_AGO)
    order = np.lexsort((launched, work.start))
    return work[order], launched[order]


class _Gpu:
    """The classes of the time of one GPU from the start to the end of the rank's profile."""

    def __init__(self, work: DeviceWork, begin: int, end: int) -> None:
        work, launched = by_start(work)
        compute, communication, graph = (work.kind == kind for kind in (COMPUTE, COMMUNICATION, GRAPH))
        opens, closes, cause = gaps(begin, work.start, work.end, launched)
        # Behind the last work, the next was not launched.
        opens, closes, cause = np.append(opens, work.end.max()), np.append(closes, end), np.append(cause, _HOST_WAIT)
        idle = [Intervals(opens[cause == each], closes[cause == each]) for each in range(len(CAUSES))]
        self._parts = {
            "busy_ns": self._union(work, np.ones(len(work), bool)),
            "compute_ns": self._union(work, compute),
            "communication_ns": self._union(work, communication),
            "memory_ns": self._union(work, work.kind == MEMORY),
            "exposed_ns": self._union(work, compute | graph | communication),
            "graph_ns": self._union(work, compute | graph),
            **dict(zip(("host_wait_ns", "kernel_wait_ns", "other_idle_ns"), idle, strict=True)),
        }

    @staticmethod
    def _union(work: DeviceWork, chosen: Bools) -> Intervals:
        return Intervals(work.start[chosen], work.end[chosen])

    def breakdown(self, begin: Int64s, end: Int64s) -> dict[str, Int64s]:
        columns = {name: intervals.within(begin, end) for name, intervals in self._parts.items()}
        columns["exposed_ns"] -= columns["graph_ns"]
        columns["graph_ns"] -= columns["compute_ns"]
        return {"span_ns": end - begin, **columns}


class Timeline:
    """The GPUs of a rank. The times of a rank with several GPUs are sums over them.

    Args:
        work: of the rank, at least one piece.

    Attributes:
        begin, end: start of its first device work and end of its last.
        devices: numbers of its GPUs. A GPU on which its kernels take less than a hundredth of their time on its busiest one is none of
            them, as where a program starts on the wrong GPU: that work counts as work of the busiest.
    """

    def __init__(self, work: DeviceWork) -> None:
        self.begin, self.end = int(work.start.min()), int(work.end.max())
        gpu = ordered(work.process, work.device)
        time = np.bincount(gpu, np.where(work.kind == MEMORY, 0, work.end - work.start))
        own = np.flatnonzero(time >= max(_LEAST_SHARE * time.max(), 1))
        busiest = int(np.argmax(time if len(own) else np.bincount(gpu)))
        own = own if len(own) else np.array([busiest])
        self.devices = [int(work.device[np.argmax(gpu == each)]) for each in own.tolist()]
        gpu = np.where(np.isin(gpu, own), gpu, busiest)
        self._gpus = [_Gpu(work[gpu == each], self.begin, self.end) for each in own.tolist()]

    def breakdown(self, begin: Int64s, end: Int64s) -> dict[str, Int64s]:
        """The columns of `ranks` and `iterations` from `span_ns` to `other_idle_ns`, between each begin and end."""
        each = [gpu.breakdown(begin, end) for gpu in self._gpus]
        return {name: np.sum([columns[name] for columns in each], axis=0) for name in each[0]}

    def by_device(self) -> list[dict[str, int]]:
        """The same of each GPU over the whole profile, with the column `device`."""
        whole = np.array([self.begin]), np.array([self.end])
        rows: dict[int, dict[str, int]] = {}
        for device, gpu in zip(self.devices, self._gpus, strict=True):
            row = rows.setdefault(device, {"device": device})
            for name, values in gpu.breakdown(*whole).items():
                row[name] = row.get(name, 0) + int(values[0])
        return [rows[device] for device in sorted(rows)]
