"""Reads the events of a trace of JAX or TensorFlow, as XLA's profiler writes it: their lanes tell what they are.

Metadata name each lane. A process `/device:GPU:0` has lines `Stream #14(Compute)` with what ran on the streams; its other lines, such as
`XLA Modules`, repeat that. A TPU has no streams: its line `XLA Ops` is what ran. A process `/host:CPU` has the calls of CUDA and ROCm among
other activities of its threads.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from warpladder.collectors.kineto.events import CallArguments, CopyArguments, Event, KernelArguments, arguments_of

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
    """The lines of a trace, from its metadata."""

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
        return any(_DEVICE.search(name) for name in self._processes.values())

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
        shared_memory=sum(map(int, shared)) if shared and all(map(str.isdecimal, shared)) else None,
    )


def _copy(arguments: _Arguments, lane: _Lane) -> CopyArguments:
    details = _details(arguments.copy) or _details(arguments.fill)
    size = details.get("size") or details.get("num_bytes")
    return CopyArguments(**_of_device(arguments, lane), bytes=size, kind=arguments.copy)
