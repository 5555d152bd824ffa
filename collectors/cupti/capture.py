"""Captures CUPTI's activity records of this process, as columns of the model of a trace.

A captured batch is a dictionary, table of the model -> columns, which `warpladder.collectors.cupti.trace` joins.
"""

import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from cupti import cupti

from warpladder.collectors.core.demangle import demangled, short_name
from warpladder.collectors.trace import model
from warpladder.collectors.trace.cupti_words import COPY_KINDS, MEMORY_KINDS, MIGRATIONS

Batch = dict[str, dict[str, list[Any]]]
#: The table of a batch with the number of records that CUPTI dropped.
DROPPED: Final = "dropped"

#: About 300,000 records. CUPTI delivers a buffer when it is full, and converting its records would disturb timings on the host.
#: With a buffer of this size, it happens between cases.
_BUFFER_BYTES: Final = 64 << 20
_KINDS: Final = cupti.ActivityKind
_TRACED: Final = (_KINDS.CONCURRENT_KERNEL, _KINDS.MEMCPY, _KINDS.MEMSET, _KINDS.RUNTIME, _KINDS.DRIVER, _KINDS.MARKER)
_DRIVER_API, _RUNTIME_API = 1, 2  # CUpti_CallbackDomain
_MARKER_START, _MARKER_END = 2, 4  # CUpti_ActivityFlag; cupti-python defines only the first


class CuptiCapture:
    """Records from its construction on. It must be made before the first use of CUDA and NVTX."""

    def __init__(self) -> None:
        self._rows: dict[int, list[tuple[Any, ...]]] = {int(kind): [] for kind in _TRACED}
        self._process = os.getpid()
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
            model.KERNELS: _columns(_KERNEL, self._rows[_KINDS.CONCURRENT_KERNEL]),
            model.COPIES: _columns(_COPY, self._rows[_KINDS.MEMCPY]),
            model.SETS: _columns(_SET, self._rows[_KINDS.MEMSET]),
            model.API_CALLS: _columns(_CALL, self._calls()),
            model.RANGES: _columns(_RANGE, self._ranges()),
            DROPPED: {"records": [int(dropped[0])]},
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
        of_runtime = {row[_CALL.index("correlation")] for row in runtime}
        return runtime + [row for row in self._rows[_KINDS.DRIVER] if row[_CALL.index("correlation")] not in of_runtime]

    def _ranges(self) -> list[tuple[Any, ...]]:
        """Join markers to ranges. One that is still open has no end."""
        rows, opened = [], dict[int, tuple[Any, ...]]()
        for identity, flags, time_ns, *place in self._rows[_KINDS.MARKER]:
            if flags & _MARKER_START:
                opened[identity] = (time_ns, *place)
            elif flags & _MARKER_END and identity in opened:
                start_ns, *of_range = opened.pop(identity)
                rows.append((start_ns, time_ns, *of_range))
        return rows + [(start_ns, None, *of_range) for start_ns, *of_range in opened.values()]


_OF_WORK: Final = ("start_ns", "end_ns", "device", "stream", "correlation", "process")
_KERNEL: Final = (
    *(*_OF_WORK, "context", "full_name", "name", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    *("registers", "static_shared_bytes", "dynamic_shared_bytes", "graph_id"),
)
_COPY: Final = (*_OF_WORK, "bytes", "kind", "migrates", "src_memory", "dst_memory")
_SET: Final = (*_OF_WORK, "bytes", "dst_memory")
_CALL: Final = ("start_ns", "end_ns", "thread", "correlation", "name")
_RANGE: Final = ("start_ns", "end_ns", "thread", "text", "domain")


def _kernel(record: Any, process: int) -> tuple[Any, ...]:
    return (
        *(*_of_work(record, process), record.context_id, *_names(record.name)),
        *(record.grid_x, record.grid_y, record.grid_z, record.block_x, record.block_y, record.block_z),
        *(record.registers_per_thread, record.static_shared_memory, record.dynamic_shared_memory, record.graph_id or None),
    )


def _copy(record: Any, process: int) -> tuple[Any, ...]:
    kinds = (COPY_KINDS.get(record.copy_kind), int(record.copy_kind in MIGRATIONS))
    return (*_of_work(record, process), record.bytes, *kinds, _memory(record.src_kind), _memory(record.dst_kind))


def _set(record: Any, process: int) -> tuple[Any, ...]:
    return (*_of_work(record, process), record.bytes, _memory(record.memory_kind))


def _of_work(record: Any, process: int) -> tuple[Any, ...]:
    return (record.start, record.end, record.device_id, record.stream_id, record.correlation_id, process)


def _memory(kind: int) -> str | None:
    return MEMORY_KINDS.get(kind - 1)  # CUPTI numbers kinds of memory from 1, reports of Nsight Systems from 0


def _call(record: Any, process: int) -> tuple[Any, ...]:
    name = _call_name(_DRIVER_API if record.kind == _KINDS.DRIVER else _RUNTIME_API, record.cbid)
    return (record.start, record.end, process << model.ID_BITS | record.thread_id, record.correlation_id, name)


def _marker(record: Any, process: int) -> tuple[Any, ...]:
    thread = process << model.ID_BITS | record.object_id.pt.thread_id
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
