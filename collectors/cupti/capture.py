"""Captures CUPTI's activity records of this process, as columns with the names of a report of Nsight Systems.

A captured batch is a dictionary, table -> columns. It holds texts as strings; `warpladder.collectors.cupti.report` numbers
them.
"""

import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from cupti import cupti

from warpladder.collectors.core.demangle import demangled, short_name

Batch = dict[str, dict[str, list[Any]]]

#: About 300,000 records. CUPTI delivers a buffer when it is full, and converting its records would disturb timings on the host.
#: With a buffer of this size, it happens between cases.
_BUFFER_BYTES: Final = 64 << 20
_PUSH_POP, _DOMAIN = 59, 75
_KINDS: Final = cupti.ActivityKind
_TRACED: Final = (_KINDS.CONCURRENT_KERNEL, _KINDS.MEMCPY, _KINDS.MEMSET, _KINDS.RUNTIME, _KINDS.DRIVER, _KINDS.MARKER)
_DRIVER_API, _RUNTIME_API = 1, 2  # CUpti_CallbackDomain
_MARKER_START, _MARKER_END = 2, 4  # CUpti_ActivityFlag; cupti-python defines only the first
_PROCESS_SHIFT: Final = 24


class CuptiCapture:
    """Records from its construction on. It must be made before the first use of CUDA and NVTX."""

    def __init__(self) -> None:
        self._rows: dict[int, list[tuple[Any, ...]]] = {int(kind): [] for kind in _TRACED}
        self._process = os.getpid() << _PROCESS_SHIFT
        cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), self._completed)
        cupti.set_thread_id_type(int(cupti.ActivityThreadIdType.SYSTEM))
        for kind in _TRACED:
            cupti.activity_enable(kind)
        # NVTX sends its ranges to the library named here; it must be the one that cupti-python has loaded.
        os.environ["NVTX_INJECTION64_PATH"] = str(_loaded_library("libcupti"))

    def begin(self) -> None:
        cupti.activity_flush_all(1)
        for rows in self._rows.values():
            rows.clear()

    def take(self) -> Batch:
        cupti.activity_flush_all(1)
        dropped = np.zeros(1, np.uint64)
        cupti.activity_get_num_dropped_records(0, 0, dropped.ctypes.data)
        batch = {
            "StringIds": {},
            "CUPTI_ACTIVITY_KIND_KERNEL": _columns(_KERNEL, self._rows[_KINDS.CONCURRENT_KERNEL]),
            "CUPTI_ACTIVITY_KIND_MEMCPY": _columns(_COPY, self._rows[_KINDS.MEMCPY]),
            "CUPTI_ACTIVITY_KIND_MEMSET": _columns(_SET, self._rows[_KINDS.MEMSET]),
            "CUPTI_ACTIVITY_KIND_RUNTIME": _columns(_CALL, self._calls()),
            "NVTX_EVENTS": _columns(_RANGE, self._ranges()),
            "DROPPED": {"records": [int(dropped[0])]},
        }
        self._rows = {kind: [] for kind in self._rows}
        return batch

    def end(self) -> None:
        """Do nothing: all records have been taken."""

    def _completed(self, activities: Iterable[Any]) -> None:
        """Called by CUPTI on its own thread. Copies the records' fields, because CUPTI reuses the records' memory."""
        for activity in activities:
            kind = activity.kind
            if kind in self._rows:
                self._rows[kind].append(_READ[kind](activity, self._process))

    def _calls(self) -> list[tuple[Any, ...]]:
        """Return the calls to the runtime, and the calls to the driver that the runtime did not make."""
        runtime = self._rows[_KINDS.RUNTIME]
        of_runtime = {row[_CALL.index("correlationId")] for row in runtime}
        return runtime + [row for row in self._rows[_KINDS.DRIVER] if row[_CALL.index("correlationId")] not in of_runtime]

    def _ranges(self) -> list[tuple[Any, ...]]:
        """Join markers to ranges, and add one row with the name of each domain."""
        rows, opened, domains = [], dict[int, Any](), dict[str, int]()
        for identity, flags, time_ns, thread, name, domain in self._rows[_KINDS.MARKER]:
            if flags & _MARKER_START:
                opened[identity] = (time_ns, thread, name, domains.setdefault(domain, len(domains) + 1) if domain else 0)
            elif flags & _MARKER_END and identity in opened:
                start_ns, of_thread, text, number = opened.pop(identity)
                rows.append((start_ns, time_ns, _PUSH_POP, of_thread, text, number))
        rows += [(start_ns, None, _PUSH_POP, thread, text, number) for start_ns, thread, text, number in opened.values()]
        return rows + [(0, None, _DOMAIN, self._process, name, number) for name, number in domains.items()]


_KERNEL: Final = (
    *("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "demangledName", "shortName"),
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory"),
    *("dynamicSharedMemory", "graphId"),
)
_COPY: Final = (
    *("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "copyKind", "srcKind", "dstKind"),
)
_SET: Final = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "memKind")
_CALL: Final = ("start", "end", "eventClass", "globalTid", "correlationId", "nameId")
_RANGE: Final = ("start", "end", "eventType", "globalTid", "text", "domainId")


def _kernel(record: Any, process: int) -> tuple[Any, ...]:
    full, short = _names(record.name)
    return (
        *(record.start, record.end, record.device_id, record.context_id, record.stream_id, record.correlation_id, process),
        *(full, short, record.grid_x, record.grid_y, record.grid_z, record.block_x, record.block_y, record.block_z),
        *(record.registers_per_thread, record.static_shared_memory, record.dynamic_shared_memory, record.graph_id or None),
    )


def _copy(record: Any, process: int) -> tuple[Any, ...]:
    # CUPTI numbers kinds of memory from 1, reports of Nsight Systems from 0.
    kinds = (record.copy_kind, record.src_kind - 1, record.dst_kind - 1)
    place = (record.device_id, record.stream_id, record.correlation_id, process)
    return (record.start, record.end, *place, record.bytes, *kinds)


def _set(record: Any, process: int) -> tuple[Any, ...]:
    place = (record.device_id, record.stream_id, record.correlation_id, process)
    return (record.start, record.end, *place, record.bytes, record.memory_kind - 1)


def _call(record: Any, process: int) -> tuple[Any, ...]:
    by_driver = record.kind == _KINDS.DRIVER
    name = _call_name(_DRIVER_API if by_driver else _RUNTIME_API, record.cbid)
    return (record.start, record.end, int(by_driver), process | record.thread_id, record.correlation_id, name)


def _marker(record: Any, process: int) -> tuple[Any, ...]:
    thread = process | record.object_id.pt.thread_id
    return (record.id, record.flags_, record.timestamp, thread, record.name or "", record.domain or "")


_READ: Final[dict[int, Callable[[Any, int], tuple[Any, ...]]]] = {
    int(_KINDS.CONCURRENT_KERNEL): _kernel,
    int(_KINDS.MEMCPY): _copy,
    int(_KINDS.MEMSET): _set,
    int(_KINDS.RUNTIME): _call,
    int(_KINDS.DRIVER): _call,
    int(_KINDS.MARKER): _marker,
}


def _columns(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)} if rows else {}


@cache  # a trace has millions of calls, and a few hundred names
def _call_name(domain: int, number: int) -> str:
    return str(cupti.get_callback_name(domain, number))


@cache
def _names(mangled: str) -> tuple[str, str]:
    """Return a kernel's demangled name and its base name."""
    full = demangled(mangled)
    return full, short_name(full)


def _loaded_library(name: str) -> Path:
    """Return the path of a library that this process has loaded."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.name.startswith(f"{name}.so"):
            return path
    raise OSError(f"{name} is not loaded; install cupti-python again")
