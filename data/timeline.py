"""The timeline of a rank: what its GPUs do in each nanosecond, and in which iteration it lies.

Each nanosecond of a GPU, from the start of the rank's first device work to the end of its last, has one class: compute, if a kernel runs
that does not communicate; else a graph, if a CUDA graph runs that was traced as a whole; else exposed communication, if communication
runs; else copies alone, if copies or sets run; else idle by its cause. So the classes of all iterations and of the time outside of them add
up to those of the profile.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpladder.data import job_tables, schema, store
from warpladder.data.arrays import (
    NONE,
    Bools,
    Int64s,
    Intervals,
    Launches,
    Places,
    coded,
    free_unused,
    integers,
    least_of_groups,
    most_of_groups,
    ordered,
)
from warpladder.data.communication import is_communication
from warpladder.data.iterations import Steps, launch_times

COMPUTE, COMMUNICATION, MEMORY, GRAPH = (
    job_tables.WORK_KINDS.index(kind) for kind in ("compute", "communication", "memory", "graph")
)
#: A shorter gap whose next work had been launched is the cost of starting a kernel.
_KERNEL_WAIT_NS: Final = 30_000
#: In the names of calls of the host that copy, such as `cudaMemcpyAsync` and `hipMemcpyWithStream`, or that wait for a device.
COPYING: Final = "Memcpy"
WAITING: Final = "Synchronize"
#: The kind of migrations of managed memory to the host, which uses it.
_TO_HOST: Final = "unified_d2h"
#: In a longer wait for the host, it does more than to launch.
_LONG_NS: Final = 100_000
_BREAKDOWN: Final = tuple(column.name for column in job_tables.BREAKDOWN)
LONG_AGO: Final = np.iinfo(np.int64).min
#: Pieces of work of a GPU of which the times of each class are kept.
_MOST_KEPT: Final = 1 << 20
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
        columns = {each.name: getattr(self, each.name) for each in fields(self)}
        return DeviceWork(**{name: value if name == "names" else value[rows] for name, value in columns.items()})

    def where(self, chosen: Bools) -> "DeviceWork":
        """The chosen work. Nothing is copied where that is all."""
        return self if chosen.all() else self[chosen]

    def place_of(self, name: str) -> int:
        """The index of a name; `NONE` where no work has it."""
        return self.names.index(name) if name in self.names else NONE

    @cached_property
    def stream_code(self) -> Int64s:
        """A number for the stream of each: a stream is one of a process and a device."""
        return ordered(self.process, self.device, self.stream)

    @cached_property
    def launched_at(self) -> Int64s:
        """When each was launched, see `iterations.launch_times`."""
        return launch_times(self.start, self.stream_code, self.launch_start, self.launched)

    @cached_property
    def timeline(self) -> "Timeline":
        """The timeline of the rank, if there is any work."""
        return Timeline(self)


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
    order, launched = order_by_start(work)
    return work[order], launched


def order_by_start(work: DeviceWork) -> tuple[Int64s, Int64s]:
    """The order of `by_start`, and the launches in it."""
    launched = np.where(work.launched, work.launch_start, LONG_AGO)
    order = np.lexsort((launched, work.start))
    return order, launched[order]


def migrations(work: DeviceWork) -> Bools:
    """Which work is a migration of managed memory to the host. No call launches one: it starts when the host uses the memory."""
    found: Bools = (work.kind == MEMORY) & (work.name == work.place_of(_TO_HOST))
    return found


class _Gpu:
    """The classes of the time of one GPU from the start to the end of the rank's profile."""

    def __init__(self, work: DeviceWork, begin: int, end: int) -> None:
        order, launched = order_by_start(work)
        start, stop, kind = work.start[order], work.end[order], work.kind[order]
        compute, communication, graph = (kind == each for each in (COMPUTE, COMMUNICATION, GRAPH))
        opens, closes, cause = gaps(begin, start, stop, launched)
        # Behind the last work, the next was not launched.
        opens, closes, cause = np.append(opens, stop.max()), np.append(closes, end), np.append(cause, _HOST_WAIT)
        untold = (cause == _OTHER) & ~np.append(work.launched[order], True)
        migrates = np.append(migrations(work)[order], False)
        chosen = {
            **{f"{words}_ns": cause == each for each, words in enumerate(("host_wait", "kernel_wait", "other_idle"))},
            "long_wait_ns": (cause == _HOST_WAIT) & (closes - opens > _LONG_NS),
            "untold_ns": untold,
            "managed_ns": untold & migrates,
        }
        working = {
            "busy_ns": np.ones(len(order), bool),
            "compute_ns": compute,
            "communication_ns": communication,
            "memory_ns": kind == MEMORY,
            "exposed_ns": compute | graph | communication,
            "graph_ns": compute | graph,
        }
        self._spans = {name: (start, stop, rows) for name, rows in working.items()}
        self._spans |= {name: (opens, closes, rows) for name, rows in chosen.items()}
        self._unions: dict[str, Intervals] = {}

    def breakdown(self, begin: Int64s, end: Int64s) -> dict[str, Int64s]:
        columns = {name: self._union(name).within(begin, end) for name in self._spans}
        columns["exposed_ns"] -= columns["graph_ns"]
        columns["graph_ns"] -= columns["compute_ns"]
        return {"span_ns": end - begin, **columns}

    def _union(self, name: str) -> Intervals:
        """When there is work, or a gap, of a class. Of a long trace it is not kept: all classes take twice the memory of the work."""
        if name in self._unions:
            return self._unions[name]
        start, end, rows = self._spans[name]
        union = Intervals(start[rows], end[rows])
        if len(start) < _MOST_KEPT:
            self._unions[name] = union
        return union


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
        self._gpus = [_Gpu(work.where(gpu == each), self.begin, self.end) for each in own.tolist()]

    def breakdown(self, begin: Int64s, end: Int64s) -> dict[str, Int64s]:
        """The columns of `ranks` and `iterations` that break time down, between each begin and end."""
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


def breakdown(work: DeviceWork) -> dict[str, int]:
    """Return the columns of `ranks` that break time down. Busy time and the idle times add up to the span."""
    if not len(work):
        return dict.fromkeys(_BREAKDOWN, 0)
    line = work.timeline
    return {name: int(values[0]) for name, values in line.breakdown(np.array([line.begin]), np.array([line.end])).items()}


def iteration_rows(work: DeviceWork, steps: Steps) -> list[dict[str, Any]]:
    """Return the rows of `iterations`, without the columns of the rank and of matched collectives.

    An iteration lasts on the devices until all work that was launched before its end has ended. It begins with the first work that was
    launched in it, but not before the work that was launched earlier has ended. So no two overlap, and each nanosecond has one class.
    """
    place = steps.at(work.launched_at)
    begin, end = on_devices(work, steps)
    times = work.timeline.breakdown(begin, end) if len(work) else dict.fromkeys(_BREAKDOWN, np.zeros(len(steps), np.int64))
    columns = {
        "iteration": steps.number,
        "start_ns": steps.start,
        "end_ns": steps.end,
        "device_start_ns": begin,
        "device_end_ns": end,
        **times,
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*(column.tolist() for column in columns.values()), strict=True)]
    without = np.bincount(place[place != NONE], minlength=len(steps)) == 0
    for step in np.flatnonzero(without).tolist():
        rows[step].update(device_start_ns=None, device_end_ns=None)
    return rows


def on_devices(work: DeviceWork, steps: Steps) -> tuple[Int64s, Int64s]:
    """Return from when to when each iteration lasts on the devices; two equal times for one without work."""
    # Iteration k has number 2k + 1 here, and the work that is launched between k - 1 and k has 2k.
    when, place = work.launched_at, steps.at(work.launched_at)
    turn = np.where(place != NONE, 2 * place + 1, 2 * np.searchsorted(steps.start, when, side="right"))
    count = 2 * len(steps) + 1
    first = least_of_groups(turn, work.start, count)
    last = np.maximum.accumulate(np.maximum(most_of_groups(turn, work.end, count), work.start.min(initial=0)))
    end = last[1::2]
    return np.minimum(np.maximum(last[:-1:2], first[1::2]), end), end


def device_work(run: store.Run) -> DeviceWork:
    """All device work of a trace, with the calls that launched it."""
    of_both = ["start_ns", "end_ns", "process", "device", "stream", "correlation"]
    kernels = run.arrow("kernels", [*of_both, "full_name", "launch_start_ns", "launch_end_ns", "collective"])
    copies = run.arrow("memory_ops", [*of_both, "kind"])
    name, names = coded(kernels["full_name"])
    kind, kinds = coded(copies["kind"])
    # A run that is older than the column has only the names.
    by_name = np.array([is_communication(each) for each in names], bool)[name]
    talks = kernels["collective"].is_valid().to_numpy() | by_name
    whole = np.array([each == schema.CUDA_GRAPH for each in names], bool)[name]
    of_kernels = np.where(talks, COMMUNICATION, np.where(whole, GRAPH, COMPUTE)).astype(np.int8)
    called, launch_start, launch_end = _launches_of_copies(run, copies)
    start, end, process, device, stream, correlation = (
        np.concatenate([integers(table[column], -1) for table in (kernels, copies)]) for column in of_both
    )
    work = DeviceWork(
        start=start,
        end=end,
        process=process,
        device=device,
        stream=stream,
        kind=np.concatenate((of_kernels, np.full(len(copies), MEMORY, np.int8))),
        name=np.concatenate((name, kind + len(names))),
        names=[*names, *kinds],
        correlation=correlation,
        launch_start=np.concatenate((integers(kernels["launch_start_ns"]), launch_start)),
        launch_end=np.concatenate((integers(kernels["launch_end_ns"]), launch_end)),
        launched=np.concatenate((kernels["launch_start_ns"].is_valid().to_numpy(), called)),
    )
    del kernels, copies
    free_unused()
    return work


def _launches_of_copies(run: store.Run, copies: pa.Table) -> tuple[Bools, Int64s, Int64s]:
    """Whether the call of each copy and set is in the trace, and its start and end."""
    wanted = Places(integers(copies["correlation"]))
    every = run.scan("api_calls", ["process", "correlation", "start_ns", "end_ns"])
    own = [batch.filter(pa.array(wanted.of(integers(batch["correlation"])) != NONE)) for batch in every]
    none = np.zeros(len(copies), np.int64)
    if not own or not len(copies):
        return none.astype(bool), none, none
    calls = pa.Table.from_batches(own)
    free_unused()
    call = Launches(integers(calls["process"]), integers(calls["correlation"])).of(
        integers(copies["process"]), integers(copies["correlation"])
    )
    return call != NONE, *(np.append(integers(calls[name]), 0)[call] for name in ("start_ns", "end_ns"))


def calls_ns(run: store.Run, *choices: tuple[str, ...]) -> tuple[int, ...]:
    """Time of the host in calls whose names have one of some words, for each choice of words."""
    total = [0] * len(choices)
    for calls in run.scan("api_calls", ["name", "start_ns", "end_ns"]):
        code, names = coded(calls["name"])
        lasts = integers(calls["end_ns"]) - integers(calls["start_ns"])
        for place, words in enumerate(choices):
            chosen = np.array([any(word in name for word in words) for name in names], bool)
            total[place] += int(lasts[chosen[code]].sum())
    free_unused()
    return tuple(total)
