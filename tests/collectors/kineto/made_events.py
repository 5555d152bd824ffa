"""Events of a trace of PyTorch's profiler, and imported runs of them, for tests."""

import json
from pathlib import Path
from typing import Any

from warpladder.collectors.kineto.parse import import_report
from warpladder.collectors.trace.notes import Notes
from warpladder.data import store

Event = dict[str, Any]


def host(name: str, start: float, lasts: float, cat: str = "cpu_op", pid: Any = 100, tid: Any = 100, **args: Any) -> Event:
    """An operator, range or call of the host; times in us."""
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": lasts, "args": args}


def launch(start: float, correlation: int, pid: Any = 100, tid: Any = 100) -> Event:
    """A call that launches a kernel."""
    return host("cudaLaunchKernel", start, 5, "cuda_runtime", pid, tid, correlation=correlation)


def kernel(start: float, lasts: float, correlation: int, pid: Any = 0, device: int = 0, name: str = "gemm") -> Event:
    """A kernel on stream 7."""
    args = {"device": device, "context": 1, "stream": 7, "correlation": correlation, "grid": [1, 1, 1], "block": [128, 1, 1]}
    return host(name, start, lasts, "kernel", pid, 7, **args)


def document(events: list[Event], **head: Any) -> dict[str, Any]:
    """A trace of these events."""
    return {"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": 10**18, **head, "traceEvents": events}


def imported(folder: Path, events: list[Event], name: str = "trace.json", **head: Any) -> tuple[store.Run, list[str]]:
    """The run of a trace of these events, and the warnings of its import."""
    path = folder / name
    path.write_text(json.dumps(document(events, **head)))
    return imported_file(path, folder / "runs")


def imported_file(path: Path, folder: Path) -> tuple[store.Run, list[str]]:
    """The run of a file, and the warnings of its import."""
    notes = Notes()
    return store.open_run(folder / import_report(path, folder, "", None, [], notes)), notes.warnings()
