"""The kinds of the events of a trace, from their categories, or from their lanes in a trace of XLA."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from warpladder.collectors.kineto.events import CallArguments, CopyArguments, Event, KernelArguments, arguments_of
from warpladder.data.arrays import Int64s

LINKS: Final = "links"
#: Events of the allocator, which have no duration.
MEMORY: Final = "memory"
#: Categories of events, in lower case, and what they are. Older profilers write `Kernel`, `Memcpy` and `Memset`.
_KINDS: Final = {
    "kernel": "kernels",
    **dict.fromkeys(("gpu_memcpy", "memcpy"), "copies"),
    **dict.fromkeys(("gpu_memset", "memset"), "sets"),
    "user_annotation": "ranges",
    **dict.fromkeys(("cpu_op", "operator"), "operations"),
    "python_function": "functions",
    "cuda_sync": "synchronizations",
    "fwdbwd": LINKS,
    "cpu_instant_event": MEMORY,
}
#: Categories of calls, in lower case: of CUDA, HIP, XPU, MTIA, MUSA and custom backends, and of older profilers.
_CALLS: Final = re.compile(r"(\w+_)?(runtime|driver)")
_WHOLE: Final = "X"
#: Phases of the begin and of the end of an event.
_HALVES: Final = ("B", "E")
#: Categories of what a device did that do not tell work from waits.
_UNTOLD: Final = ("mtia_ccp_events", "hpu_op")
#: What wrote a trace that is none of a profiler of GPUs, by words of its categories.
_WRITERS: Final = {
    "a browser": ("toplevel", "devtools", "blink", "v8", "cc", "navigation", "renderer", "ipc"),
    "eBPF": ("bpf", "ebpf"),
    "Linux or Android": ("sched", "ftrace", "irq", "cpufreq"),
    "Bazel": ("build phase marker", "action processing"),
    "Node.js": ("node.perf", "node.async_hooks"),
}


class Kinds:
    """Sorts the events of a trace, piece by piece.

    Attributes:
        lanes: those of a trace of XLA.
        functions: how many functions of Python such a trace has, which are left out.
        events: number of events.
        left_out: numbers of events by category that the device did and that are not used.
    """

    def __init__(self) -> None:
        self.lanes = Lanes()
        self.functions = 0
        self.events = 0
        self.left_out = Counter[str]()
        self._has_kinds = False
        self._others = Counter[str]()
        self._halves = 0

    @property
    def is_xla(self) -> bool:
        """Whether the trace is one of XLA."""
        return not self._has_kinds and bool(self.lanes)

    def of(self, events: Sequence[Event]) -> dict[str, Int64s]:
        """The rows of the events that are used, by what they are."""
        if not self._has_kinds:
            self.lanes.add(events)
        if self.is_xla:
            found, functions = self.lanes.rows_of(events)
            rows_of = {kind: np.array(rows, np.int64) for kind, rows in found.items()}
            self.functions += functions
        else:
            rows_of = self._rows_of(events)
        self.events += len(events)
        return {kind: rows for kind, rows in rows_of.items() if len(rows)}

    def _rows_of(self, events: Sequence[Event]) -> dict[str, Int64s]:
        of_category: dict[str, list[int]] = defaultdict(list)
        for row, event in enumerate(events):
            category = event.cat
            of_category[category if isinstance(category, str) else "" if category is None else str(category)].append(row)
        parts: dict[str, list[Int64s]] = defaultdict(list)
        for category, rows in of_category.items():
            if kind := _kind(category.lower()):
                own = np.array(rows, np.int64)
                parts[kind].append(own if kind in (LINKS, MEMORY) else _whole(events, own))
            elif category in _UNTOLD:
                self.left_out[category] += len(rows)
            elif not self._has_kinds:
                self._others[category] += len(rows)
        if not self._has_kinds:
            self._halves += sum(event.ph in _HALVES for event in events)
        found = {kind: np.concatenate(rows) for kind, rows in parts.items()}
        self._has_kinds |= any(len(rows) for kind, rows in found.items() if kind not in (LINKS, MEMORY))
        return found

    def problem(self) -> str:
        """Why the trace is none of a profiler of GPUs; empty if it is one."""
        if self._has_kinds or self.lanes:
            return ""
        if not self.events:
            return "has no events; profile again, with work between the start and the stop of the profiler"
        if self._halves > self.events / 2:
            why = "it has begins and ends of events (`ph` B and E), and theirs are whole (X)"
            return f"is no trace of PyTorch's profiler or JAX: {why}; give a file that export_chrome_trace of PyTorch's profiler wrote"
        named = [name for name, _ in self._others.most_common() if name]
        writer = next((each for each, marks in _WRITERS.items() if any(_is_of(name, marks) for name in named)), "")
        listed = ", ".join(f"`{name[:40]}`" for name in named[:3])
        what = f"is a trace of {writer}, not" if writer else "is no trace"
        count = "its one event" if self.events == 1 else f"its {self.events:,} events"
        why = f"{count}: {listed}" if listed else f"{count} without a category"
        return f"{what} of a profiler of GPUs ({why}); give a trace of PyTorch's profiler (export_chrome_trace) or of JAX"


def _whole(events: Sequence[Event], rows: Int64s) -> Int64s:
    """Those of some rows that have whole events."""
    phases = [events[row].ph for row in rows.tolist()]
    if phases.count(_WHOLE) == len(phases):
        return rows
    return rows[[phase == _WHOLE for phase in phases]]


def _kind(category: str) -> str:
    """The kind of the events of a category; empty for one that is not used."""
    return _KINDS.get(category) or ("calls" if _CALLS.fullmatch(category) else "")


def _is_of(category: str, marks: Sequence[str]) -> bool:
    """Whether one of the marks is a word of a category."""
    return any(re.search(rf"(?<![a-z]){re.escape(mark)}(?![a-z])", category.lower()) for mark in marks)


_DEVICE: Final = re.compile(r"/device:[A-Za-z_]+:(\d+)")
_HOST: Final = re.compile(r"/host:")
_STREAM: Final = re.compile(r"Stream #(\d+)")
#: The line of a device without streams that has what ran.
_OPERATIONS: Final = "XLA Ops"
_CALL: Final = re.compile(r"(cu|cuda|hip|hsa_|roc)[A-Z_]\w*\Z")
_DETAIL: Final = re.compile(r"(\w+):(\S+)")
_NO_DETAILS: Final[dict[str, str]] = {}
#: Lines of a host that are left out: functions of Python, of which there are very many.
_FUNCTION: Final = "$"


class _Arguments(msgspec.Struct, gc=False):
    correlation: Any = msgspec.field(default=None, name="correlation_id")
    context: Any = msgspec.field(default=None, name="context_id")
    kernel: Any = msgspec.field(default=None, name="kernel_details")
    copy: Any = msgspec.field(default=None, name="memcpy_details")
    fill: Any = msgspec.field(default=None, name="memset_details")
    step: Any = msgspec.field(default=None, name="step_num")


class _Name(msgspec.Struct, gc=False):
    name: Any = None


@dataclass(frozen=True)
class _Lane:
    """The device and the stream of the events of a line. `device` is None for a line of a host, and `stream` for a line that is left out."""

    device: int | None
    stream: int | None = None


class Lanes:
    """The lines of a trace of JAX or TensorFlow, as XLA's profiler writes it, from its metadata.

    Metadata name each lane. A process `/device:GPU:0` has lines `Stream #14(Compute)` with what ran on the streams; its other lines, such as
    `XLA Modules`, repeat that. A TPU has no streams: its line `XLA Ops` is what ran. A process `/host:CPU` has the calls of CUDA and ROCm among
    other activities of its threads.
    """

    def __init__(self) -> None:
        self._processes: dict[Any, str] = {}
        self._threads: dict[Any, dict[Any, str]] = defaultdict(dict)
        self._lanes: dict[tuple[Any, Any], _Lane | None] = {}

    def add(self, events: Sequence[Event]) -> None:
        """Take the names of lanes from events of metadata."""
        named = [event for event in events if event.ph == "M" and event.name in ("process_name", "thread_name")]
        for event, arguments in zip(named, arguments_of(named, _Name), strict=True):
            if event.name == "process_name":
                self._processes[event.pid] = str(arguments.name)
            else:
                self._threads[event.pid][event.tid] = str(arguments.name)
        if named:
            self._lanes.clear()

    def __bool__(self) -> bool:
        """Whether the lanes are those of XLA."""
        return any(_DEVICE.search(name) or _HOST.match(name) for name in self._processes.values())

    def of(self, event: Event) -> _Lane | None:
        """The lane of an event; None for one that is left out."""
        key = event.pid, event.tid
        if key not in self._lanes:
            self._lanes[key] = self._lane(*key)
        return self._lanes[key]

    def _lane(self, process: Any, thread: Any) -> _Lane | None:
        name, lines = self._processes.get(process, ""), self._threads[process]
        line = lines.get(thread, "")
        device = _DEVICE.search(name)
        if not device:
            return _Lane(None) if _HOST.search(name) else None
        stream = _STREAM.match(line)
        if stream:
            return _Lane(int(device[1]), int(stream[1]))
        has_streams = any(map(_STREAM.match, lines.values()))
        return _Lane(int(device[1]), 0) if line == _OPERATIONS and not has_streams else None

    def rows_of(self, events: Sequence[Event]) -> tuple[dict[str, list[int]], int]:
        """The places of the events that are used, by what they are, and how many functions of Python are left out."""
        found: dict[str, list[int]] = defaultdict(list)
        functions = 0
        for row, event in enumerate(events):
            if event.ph != "X" or (lane := self.of(event)) is None:
                continue
            name = str(event.name)
            if lane.device is not None:
                found["copies" if name.startswith("Memcpy") else "sets" if name.startswith("Memset") else "kernels"].append(row)
            elif _CALL.match(name):
                found["calls"].append(row)
            elif name.startswith(_FUNCTION):
                functions += 1
            else:
                found["ranges"].append(row)
        _number_steps([events[row] for row in found["ranges"]])
        return found, functions

    def arguments_of(self, events: Sequence[Event], kind: Any) -> Any:
        """The arguments of events, as those of a trace of PyTorch."""
        own = arguments_of(events, _Arguments)
        if kind is CallArguments:
            return [CallArguments(correlation=each.correlation) for each in own]
        make = _kernel if kind is KernelArguments else _copy
        return [make(each, lane) for each, lane in zip(own, map(self.of, events), strict=True) if lane]


def _number_steps(events: Sequence[Event]) -> None:
    """Name the ranges of `StepTraceAnnotation` after the number of their step."""
    for event, arguments in zip(events, arguments_of(events, _Arguments), strict=True):
        if arguments.step is not None:
            event.name = f"step {arguments.step}"


def _details(text: Any) -> dict[str, str]:
    return dict(_DETAIL.findall(text)) if isinstance(text, str) else _NO_DETAILS


def _of_device(arguments: _Arguments, lane: _Lane) -> dict[str, Any]:
    return {
        "correlation": arguments.correlation,
        "stream": lane.stream,
        "device": lane.device,
        "context": str(arguments.context or "").lstrip("$") or None,
    }


def _kernel(arguments: _Arguments, lane: _Lane) -> KernelArguments:
    details = _details(arguments.kernel)
    grid, block = (details.get(name, "").split(",") for name in ("grid", "block"))
    shared = [details[name] for name in ("static_shared", "dynamic_shared") if name in details]
    return KernelArguments(
        **_of_device(arguments, lane),
        grid=grid,
        block=block,
        registers=details.get("regs"),
        dynamic_shared_bytes=sum(map(int, shared)) if shared and all(map(str.isdecimal, shared)) else None,
    )


def _copy(arguments: _Arguments, lane: _Lane) -> CopyArguments:
    details = _details(arguments.copy) or _details(arguments.fill)
    size = details.get("size") or details.get("num_bytes")
    return CopyArguments(**_of_device(arguments, lane), bytes=size, kind=arguments.copy)
