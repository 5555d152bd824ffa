"""Traces of one process whose host, streams and events are simulated, with the path that is true: each piece of work knows what it waited for.

A kernel starts when its launch has reached the device, the kernel before it on its stream has ended, and the events that its stream waits for
have happened. Times are in us.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

CALL, LAUNCH, GAP, EVENT, RETURN = 4.0, 3.0, 1.0, 2.0, 8.0
MAIN, OTHER = 100, 300
#: A device and a stream of it.
Stream = tuple[int, int]
HOME: Final[Stream] = (0, 7)


class Launch(NamedTuple):
    """A kernel."""

    name: str
    us: float
    stream: Stream = HOME


class Wait(NamedTuple):
    """What follows on a stream waits for all that is launched on another one."""

    stream: Stream
    of: Stream


class Block(NamedTuple):
    """The host waits for a stream, for an event that is recorded on it now, or for its device."""

    kind: str
    stream: Stream = HOME


class Host(NamedTuple):
    """The host makes no call."""

    us: float


Operation = Launch | Wait | Block | Host


@dataclass
class Work:
    """A kernel that was executed, and the one that it waited for; None for none in the trace."""

    name: str
    start: float
    end: float
    stream: Stream
    step: int
    cause: "Work | None"


@dataclass(frozen=True)
class Process:
    """A process.

    Attributes:
        program: of a step.
        faster: kernel -> factor of its time.
        early: how long before the end of the kernel before it on its stream a kernel starts; 0 for not at all.
        graph: all kernels of a step between two other calls are one launch of a graph.
        names: the trace has the events `cuda_sync`.
        others: times since the start of a step at which another thread launches a kernel of 5 us on another device.
        queries: the host asks whether the first event of all has happened, and lets each stream wait for it, after each launch. That takes no time.
    """

    program: Sequence[Operation]
    steps: int = 4
    faster: Mapping[str, float] = field(default_factory=dict)
    early: float = 0.0
    names: bool = True
    others: Sequence[float] = ()
    queries: bool = False

    def with_faster(self, name: str) -> "Process":
        return replace(self, faster={name: 0.9})

    def path(self, step: int) -> list[str]:
        """The kernels that the end of a step waited for, in their order."""
        done = _Simulated(self)
        begin = max((work.end for work in done.works if work.step == step - 1), default=0.0)
        work: Work | None = max((work for work in done.works if work.step == step), key=lambda work: work.end)
        path = []
        while work is not None and work.end > begin + 1e-6:
            path.append(work.name)
            work = work.cause
        return path[::-1]

    def duration(self, step: int) -> float:
        """From the end of the last work of the step before to the end of its own."""
        ends = [max(work.end for work in _Simulated(self).works if work.step == each) for each in (step - 1, step)]
        return ends[1] - ends[0]

    def write(self, folder: Path) -> Path:
        """Write the trace of the only rank of a job."""
        folder.mkdir(parents=True, exist_ok=True)
        distributed = {"rank": 0, "world_size": 1}
        text = json.dumps({"traceEvents": _Simulated(self).events, "distributedInfo": distributed})
        (folder / "rank-0.json").write_text(text)
        return folder


class _Simulated:
    """The steps of a process, operation by operation."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.works: list[Work] = []
        self.events: list[dict[str, Any]] = []
        self._host, self._correlation, self._step = 1_000.0, 0, 0
        #: The work whose end the host waited for last.
        self._host_cause: Work | None = None
        self._last: dict[Stream, Work] = {}
        #: What a stream waits for before its next work.
        self._pending: dict[Stream, list[Work]] = {}
        self._first = self._call("cudaEventRecord", 1.0)
        for self._step in range(process.steps):
            begun = self._host
            for operation in process.program:
                self._execute(operation)
            self._host += 5
            self._add("user_annotation", f"ProfilerStep#{self._step}", begun, self._host, {})
            for at in process.others:
                self._correlation += 1
                correlation = {"correlation": self._correlation}
                self._add("cuda_runtime", "cudaLaunchKernel", begun + at, begun + at + CALL, correlation, OTHER)
                self._add("kernel", "other", begun + at + 6, begun + at + 11, {**correlation, "device": 5, "stream": 7})

    def _add(self, category: str, name: str, start: float, end: float, arguments: dict[str, Any], thread: int = MAIN) -> None:
        # Nanoseconds, as the profiler writes them.
        begin, finish = round(start, 3), round(end, 3)
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": begin, "dur": round(finish - begin, 3), "args": arguments}
        )  # fmt: skip

    def _call(self, name: str, lasts: float) -> int:
        """Let the host make a call. Returns its correlation."""
        self._correlation += 1
        self._add("cuda_runtime", name, self._host, self._host + lasts, {"correlation": self._correlation})
        self._host += lasts
        return self._correlation

    def _name_wait(self, kind: str, begun: float, end: float, correlation: int, **arguments: int) -> None:
        if self._process.names:
            about = {"cuda_sync_kind": kind, "device": 0, "stream": -1, "correlation": correlation, **arguments}
            self._add("cuda_sync", kind, begun, end, about, -1)

    def _execute(self, operation: Operation) -> None:
        match operation:
            case Host(us):
                self._host += us
            case Wait(stream, of):
                recorded = self._call("cudaEventRecord", 1.0)
                sources = self._of_event(of)
                begun, correlation = self._host, self._call("cudaStreamWaitEvent", 1.0)
                event = {
                    "wait_on_stream": of[1],
                    "wait_on_cuda_event_record_corr_id": recorded,
                    "wait_on_cuda_event_id": recorded,
                }
                self._name_wait(
                    "Stream Wait Event", begun, self._host, correlation, device=stream[0], stream=stream[1], **event
                )
                self._pending.setdefault(stream, []).extend(sources)
            case Block(kind, stream):
                self._block(kind, stream)
            case Launch(name, us, stream):
                self._launch(name, us * self._process.faster.get(name, 1.0), stream)

    def _of_event(self, stream: Stream) -> list[Work]:
        """The works that an event waits for that is recorded on a stream."""
        return [*self._pending.get(stream, ()), *([self._last[stream]] if stream in self._last else [])]

    def _block(self, kind: str, stream: Stream) -> None:
        event = {}
        if kind == "event":
            recorded = self._call("cudaEventRecord", 1.0)
            event = {
                "wait_on_stream": stream[1],
                "wait_on_cuda_event_record_corr_id": recorded,
                "wait_on_cuda_event_id": recorded,
            }
        works = self._of_event(stream)
        if kind == "device":
            works = [work for (device, _), work in self._last.items() if device == stream[0]]
        last = max(works, key=lambda work: work.end, default=None)
        begun = self._host
        end = max(begun + 2.0, last.end + RETURN if last and last.end > begun else 0.0)
        name, sync = {
            "event": ("cudaEventSynchronize", "Event Sync"),
            "stream": ("cudaStreamSynchronize", "Stream Sync"),
            "device": ("cudaDeviceSynchronize", "Context Sync"),
        }[kind]
        correlation = self._call(name, end - begun)
        about = {"stream": stream[1]} if kind == "stream" else {}
        self._name_wait(sync, begun, end, correlation, **{**event, **about, "device": stream[0]})
        if last and last.end > begun:
            self._host_cause = last

    def _launch(self, name: str, us: float, stream: Stream) -> None:
        correlation = self._call("cudaLaunchKernel", CALL)
        before, early = self._last.get(stream), self._process.early
        ready: list[tuple[float, Work | None]] = [(self._host + LAUNCH, self._host_cause)]
        ready += [(before.end + (-early if early else GAP), before)] if before else []
        ready += [(work.end + EVENT, work) for work in self._pending.pop(stream, ())]
        start, cause = max(ready, key=lambda each: each[0])
        start = round(start, 3)
        if before and before.end > start:
            cause = before
        work = Work(name, start, round(start + us, 3), stream, self._step, cause)
        self.works.append(work)
        self._last[stream] = work
        arguments = {"correlation": correlation, "device": stream[0], "stream": stream[1]}
        self._add("kernel", name, work.start, work.end, arguments, stream[1])
        if self._process.queries:
            event = {
                "wait_on_stream": 7,
                "wait_on_cuda_event_record_corr_id": self._first,
                "wait_on_cuda_event_id": self._first,
            }
            for kind, about in (
                ("Event Sync", {}),
                ("Stream Wait Event", {"stream": stream[1]}),
                ("Stream Wait Event", {"stream": 99}),
            ):
                call = {"Event Sync": "cudaEventQuery", "Stream Wait Event": "cudaStreamWaitEvent"}[kind]
                begun = self._host
                self._name_wait(kind, begun, begun, self._call(call, 0.0), **event, **about)
