"""A small trace of PyTorch's profiler whose sums are counted by hand, imported as a run."""

import json
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from warpladder.collectors.kineto.parse import import_report

#: Names of the trace's operators that are markup.
HOSTILE: Final = "<img src=x onerror=alert(1)>[a](b)"
_MAIN, _BACKWARD = 100, 101


def _event(category: str, name: str, start_us: float, lasts_us: float, thread: int = _MAIN, **arguments: Any) -> dict[str, Any]:
    return {
        "ph": "X", "cat": category, "name": name, "pid": 100, "tid": thread, "ts": start_us, "dur": lasts_us, "args": arguments,
    }  # fmt: skip


def _launch(number: int, name: str, called_us: float, lasts_us: float, thread: int = _MAIN) -> list[dict[str, Any]]:
    """A call of 1 us, and the kernel that it launched."""
    kernel = {"device": 0, "context": 1, "stream": 7, "correlation": number, "grid": [1, 1, 1], "block": [32, 1, 1]}
    return [
        _event("cuda_runtime", "cudaLaunchKernel", called_us, 1, thread, correlation=number),
        {**_event("kernel", name, 1_000 + 100 * number, lasts_us, 7, **kernel), "pid": 0},
    ]


def _link(phase: str, start_us: float, thread: int) -> dict[str, Any]:
    end = {"bp": "e"} if phase == "f" else {}
    return {"ph": phase, "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 100, "tid": thread, "ts": start_us, **end}


def events() -> list[dict[str, Any]]:
    """Operators with their times in us; kernels last 10, 20, 30, 40, 50 and 60 us.

    - `conv` of 100 in range `forward` and module `Conv_0` calls `pad` and, inside `pad`, `conv` again; both launch.
    - `to` of 20 calls `to` alone, which launches.
    - `backward` on another thread computes the gradient of the first `conv`, and launches.
    - a kernel is launched outside of all operators.
    """
    whole, strided = {"Input Dims": [[8, 4]], "Input Strides": [[4, 1]]}, {"Input Dims": [[8, 4]], "Input Strides": [[1, 8]]}
    return [
        _event("user_annotation", "forward", 0, 150),
        _event("python_function", "nn.Module: Conv_0", 5, 140, **{"Python id": 1}),
        _event("python_function", "<built-in method conv at 0x7f01>", 8, 120, **{"Python id": 2, "Python parent id": 1}),
        _event("cpu_op", "conv", 10, 100, **whole, **{"Input type": ["float"]}),
        *_launch(1, "gemm", 12, 10),
        _event("cpu_op", "pad", 20, 60, **whole, **{"Input type": ["float"]}),
        _event("cpu_op", "conv", 30, 40, **strided, **{"Input type": ["float"]}),
        *_launch(2, "gemm", 32, 20),
        *_launch(3, "relu", 34, 30),
        _event("cpu_op", "to", 200, 20),
        _event("cpu_op", "to", 205, 10),
        *_launch(4, "copy", 207, 40),
        _event("cpu_op", "backward", 300, 50, _BACKWARD),
        *_launch(5, "wgrad", 310, 50, _BACKWARD),
        _link("s", 10, _MAIN),
        _link("f", 300, _BACKWARD),
        *_launch(6, "loose", 400, 60),
        _event("cpu_op", HOSTILE, 500, 5),
    ]


def write(folder: Path) -> Path:
    """Import the trace into a folder of runs; the folder of the run `operators`."""
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / "made.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events()}))
    run = folder / import_report(trace, folder, "operators", None, [])
    trace.unlink()
    table = pq.read_table(run / "run.parquet")
    place = table.schema.get_field_index("run_id")
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array(["operators"])), run / "run.parquet")
    return run.rename(folder / "operators")
