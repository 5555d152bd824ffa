"""Makes and imports tiny traces of PyTorch's profiler."""

import json
from pathlib import Path
from typing import Any

from warpladder.collectors.kineto.parse import import_report
from warpladder.data import store

Events = list[dict[str, Any]]


def kernel(name: str, start: float, lasts: float, *, correlation: int = 0, stream: int = 7, **arguments: Any) -> dict[str, Any]:
    """A kernel; times in us. Further arguments are those of its event, with `_` for a blank."""
    own = {"device": 0, "context": 1, "stream": stream, "correlation": correlation}
    own |= {key.replace("_", " "): value for key, value in arguments.items()}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": start, "dur": lasts, "args": own}


def launch(correlation: int, start: float, lasts: float = 2) -> dict[str, Any]:
    """The call that launches a kernel; times in us."""
    where = {"pid": 100, "tid": 100, "ts": start, "dur": lasts}
    return {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **where, "args": {"correlation": correlation}}


def imported(events: Events, folder: Path) -> store.Run:
    """Import a trace of these events."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return store.open_run(folder / import_report(path, folder, "", None, []))
