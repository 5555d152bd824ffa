"""Jobs whose ranks execute a program on a simulated host and device, so that the time of an iteration with faster kernels is known.

The host of a rank calls one operation of the program after the other. A kernel starts when its launch has reached the device, the kernel
before it on its stream has ended, and the events that it waits for have happened. With programmatic dependent launch, it starts some time
before that end. A collective ends on all ranks at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.synthetic.made_runs import row, run_row, write_tables

BEGIN_NS: Final = 1_700_000_000_000_000_000
EVERY_NS: Final = 1_000
CALL_US: Final = 4
LAUNCH_US: Final = 3
GAP_US: Final = 1
EVENT_US: Final = 2
EVENT_CALL_US: Final = 1
RETURN_US: Final = 8
REDUCE: Final = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"

#: A time in us by rank and iteration.
Time = Callable[[int, int], float]


@dataclass(frozen=True)
class Kernel:
    """A kernel, or a collective of all ranks, whose time is that of its transfer.

    Attributes:
        after: streams whose last kernel, as the host has launched them, it waits for.
        thread: that launches it.
    """

    name: str
    us: Time | float
    stream: int = 7
    after: tuple[int, ...] = ()
    thread: int = 100

    @property
    def is_collective(self) -> bool:
        return self.name == REDUCE


@dataclass(frozen=True)
class Host:
    """Work of the host between calls; an operator if it has a name."""

    us: Time | float
    name: str = ""
    thread: int = 100


@dataclass(frozen=True)
class Synchronize:
    """The host waits until the device is idle."""

    thread: int = 100


Operation = Kernel | Host | Synchronize


@dataclass(frozen=True)
class PathJob:
    """A job.

    Attributes:
        program: of an iteration.
        faster: kernel -> factor of its time on all ranks.
        offset_us: rank -> how far its clock is ahead.
        told: clocks are aligned and collectives matched.
        launches: the profiles have calls.
        events: the profiles have the calls that let a stream wait for an event.
        uncertainty_ns: of the clocks.
        early_us: how long before the end of the kernel before it on its stream a kernel starts, except a collective; 0 for not at all.
    """

    program: Sequence[Operation]
    ranks: int = 4
    iterations: int = 4
    faster: Mapping[str, float] = field(default_factory=dict)
    offset_us: Mapping[int, float] = field(default_factory=dict)
    told: bool = True
    launches: bool = True
    events: bool = True
    numbered: bool = True
    uncertainty_ns: float = 100.0
    early_us: float = 0.0

    def with_faster(self, name: str, factor: float = 0.9) -> "PathJob":
        """The same job with a kernel that takes less time."""
        return replace(self, faster={name: factor})

    def end_us(self) -> list[float]:
        """When the last device work of each iteration ends."""
        return [max(times) for times in _Simulated(self).ends]

    def duration_us(self, iteration: int) -> float:
        """From the end of the last device work of the iteration before to the end of its own; not of the first one."""
        ends = self.end_us()
        return ends[iteration] - ends[iteration - 1]

    def write(self, data_dir: Path, run_id: str = "job") -> Path:
        """Write the job and the runs of its ranks. Returns its folder."""
        done = _Simulated(self)
        tables = {"ranks": [], "iterations": [], "rank_kernels": [], "collectives": []}
        for rank in range(self.ranks):
            for name, rows in self._of_rank(done, rank).items():
                tables[name] += rows
        info = run_row(run_id, run_id) | {"kind": "job", "collector": "kineto", "source": "job", "device_count": self.ranks}
        folder = write_tables(data_dir, info, {name: rows for name, rows in tables.items() if rows})
        for rank in range(self.ranks):
            traced = {name: rows for name, rows in done.tables[rank].items() if rows}
            write_tables(folder / "ranks", run_row(f"{rank:05d}", "") | {"collector": "kineto"}, traced)
        return folder

    def _of_rank(self, done: "_Simulated", rank: int) -> dict[str, list[dict[str, Any]]]:
        """Rows of the job's tables."""
        rows: dict[str, list[dict[str, Any]]] = {"iterations": [], "rank_kernels": [], "collectives": []}
        offset = _ns(self.offset_us.get(rank, 0.0))
        clock = {"offset_ns": float(offset), "offset_at_ns": BEGIN_NS, "drift_ppm": 0.0, "uncertainty_ns": self.uncertainty_ns}
        kernels = done.tables[rank]["kernels"]
        about = {
            "status": "ok",
            "host": "node0",
            "device_name": "NVIDIA H200 (synthetic)",
            "file": f"rank-{rank}.json",
            "late": False,
        }
        events = sum(map(len, done.tables[rank].values()))
        rows["ranks"] = [row("ranks", rank=rank, events=events, **about) | (clock if self.told else {})]
        for iteration in range(self.iterations if self.numbered else 0):
            start, end = (BEGIN_NS + offset + _ns(time) for time in done.steps[rank][iteration])
            device = (
                {"device_start_ns": start, "device_end_ns": BEGIN_NS + offset + _ns(done.ends[iteration][rank])}
                if kernels
                else {}
            )
            rows["iterations"].append(row("iterations", rank=rank, iteration=iteration, start_ns=start, end_ns=end, **device))
        for number, (kernel, iteration) in enumerate(done.collectives[rank]):
            times = {"start_ns": kernel["start_ns"], "end_ns": kernel["end_ns"]}
            last = max(
                others[number][0]["start_ns"] - _ns(self.offset_us.get(other, 0.0))
                for other, others in enumerate(done.collectives)
            )
            arrival, finish = (time - offset for time in times.values())
            match = {
                "match": number,
                "arrival_ns": arrival,
                "finish_ns": finish,
                "wait_ns": last - arrival,
                "transfer_ns": finish - last,
            }
            rows["collectives"].append(
                row("collectives", rank=rank, iteration=iteration, collective="all_reduce", kernel=REDUCE, group="0", number=number, device=0, stream=kernel["stream"],
                    **times, **(match if self.told else {}))
            )  # fmt: skip
        return rows


def _ns(us: float) -> int:
    return round(us * EVERY_NS)


class _Simulated:
    """The ranks of a job in lockstep, operation by operation. Times are in us on the job's clock, in tables in ns on the rank's.

    Attributes:
        ends: by iteration and rank, the end of the last device work that was launched in it.
        steps: by rank and iteration, the start and the end on the host.
        tables: by rank, of its run.
        collectives: by rank, rows of `kernels` and their iterations.
    """

    def __init__(self, job: PathJob) -> None:
        self.job = job
        ranks = range(job.ranks)
        self.ends: list[list[float]] = []
        self.steps: list[list[tuple[float, float]]] = [[] for _ in ranks]
        names = ("kernels", "api_calls", "operations")
        self.tables: list[dict[str, list[dict[str, Any]]]] = [{name: [] for name in names} for _ in ranks]
        self.collectives: list[list[tuple[dict[str, Any], int]]] = [[] for _ in ranks]
        self._host = np.zeros(job.ranks)
        self._streams: list[dict[int, float]] = [{} for _ in ranks]
        self._correlation = 0
        for iteration in range(job.iterations):
            begun = self._host.copy()
            self.ends.append([0.0] * job.ranks)
            for operation in job.program:
                self._execute(operation, iteration)
            self._host += 5
            for rank in ranks:
                self.steps[rank].append((float(begun[rank]), float(self._host[rank])))

    def _execute(self, operation: Operation, iteration: int) -> None:
        ranks = range(self.job.ranks)
        if isinstance(operation, Host):
            for rank in ranks:
                end = self._host[rank] + _us(operation.us, rank, iteration)
                if operation.name:
                    self._operator(rank, operation, self._host[rank], end)
                self._host[rank] = end
            return
        self._correlation += 1
        if isinstance(operation, Synchronize):
            for rank in ranks:
                done = max([self._host[rank] + CALL_US, *(end + RETURN_US for end in self._streams[rank].values())])
                self._call(rank, "cudaDeviceSynchronize", operation.thread, done)
            return
        starts = [self._start(rank, operation) for rank in ranks]
        last = max(starts)
        for rank, start in zip(ranks, starts, strict=True):
            took = _us(operation.us, rank, iteration) * self.job.faster.get(operation.name, 1.0)
            end = (last if operation.is_collective else start) + took
            if operation.after and self.job.events:
                self._call(rank, "cudaStreamWaitEvent", operation.thread, self._host[rank] + EVENT_CALL_US, correlation=0)
            called = self._host[rank]
            self._call(rank, "cudaLaunchKernel", operation.thread, called + CALL_US)
            self._streams[rank][operation.stream] = end
            self.ends[iteration][rank] = max(self.ends[iteration][rank], end)
            self._kernel(rank, operation, iteration, start, end, called)

    def _start(self, rank: int, kernel: Kernel) -> float:
        streams = self._streams[rank]
        ready = [self._host[rank] + CALL_US + LAUNCH_US + (EVENT_CALL_US if kernel.after and self.job.events else 0)]
        gap = -self.job.early_us if self.job.early_us and not kernel.is_collective else GAP_US
        ready += [streams[kernel.stream] + gap] if kernel.stream in streams else []
        ready += [streams[stream] + EVENT_US for stream in kernel.after if stream in streams]
        return float(max(ready))

    def _at(self, rank: int, us: float) -> int:
        return BEGIN_NS + _ns(us) + _ns(self.job.offset_us.get(rank, 0.0))

    def _call(self, rank: int, name: str, thread: int, end: float, correlation: int | None = None) -> None:
        if self.job.launches:
            correlation = self._correlation if correlation is None else correlation
            times = {"start_ns": self._at(rank, self._host[rank]), "end_ns": self._at(rank, end)}
            calls = self.tables[rank]["api_calls"]
            calls.append(row("api_calls", correlation=correlation, process=1, thread=thread, name=name, **times))
        self._host[rank] = end

    def _operator(self, rank: int, operation: Host, start: float, end: float) -> None:
        rows = self.tables[rank]["operations"]
        times = {"start_ns": self._at(rank, start), "end_ns": self._at(rank, end)}
        rows.append(row("operations", operation_id=len(rows), process=1, thread=operation.thread, name=operation.name, **times))

    def _kernel(self, rank: int, kernel: Kernel, iteration: int, start: float, end: float, called: float) -> None:
        times = {"start_ns": self._at(rank, start), "end_ns": self._at(rank, end)}
        launch = (
            {"launch_start_ns": self._at(rank, called), "launch_end_ns": self._at(rank, called + CALL_US)}
            if self.job.launches
            else {}
        )
        found = row(
            "kernels",
            correlation=self._correlation,
            process=1,
            stream=kernel.stream,
            name=kernel.name,
            full_name=kernel.name,
            collective="all_reduce" if kernel.is_collective else None,
            **times,
            **launch,
        )
        self.tables[rank]["kernels"].append(found)
        if kernel.is_collective:
            self.collectives[rank].append((found, iteration))


def _us(time: Time | float, rank: int, iteration: int) -> float:
    return time(rank, iteration) if callable(time) else time
