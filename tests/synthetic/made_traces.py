"""Runs with a trace whose sums are counted by hand: two processes, two GPUs, ranges nested on one thread and open on others.

All names are as a profiler gives them; one of them is hostile.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from data.schema import SCHEMA_VERSION, TABLES
from data.store import RunWriter, to_json

HOSTILE = "<img src=x onerror=alert(1)>[a](b)"
GEMM = "void gemm<float>(float*)"
# range_id, parent_id, depth, process, thread, domain, text, start, end, start and end of its device work.
RANGES = (
    (1, None, 0, 100, 101, "", "train", 0, 10_000, 1_000, 9_800),
    (2, 1, 1, 100, 101, "", "step", 500, 3_000, 1_000, 2_500),
    (3, 2, 2, 100, 101, "lib", "inner", 600, 1_500, 1_000, 2_000),
    (4, 1, 1, 100, 101, "", "step", 3_500, 9_000, 3_800, 7_000),
    (5, None, 0, 100, 102, "", "step", 1_000, 4_000, 1_200, 2_600),
    (6, None, 0, 200, 201, "", "open", 2_000, None, 3_000, 5_200),
    (7, None, 0, 200, 202, "", "idle", 2_000, 2_100, None, None),
)
# correlation, process, thread, name, start, end, range_id. Both processes have a correlation 1 and a correlation 2.
API_CALLS = (
    (1, 100, 101, "cudaLaunchKernel", 700, 800, 3),
    (2, 100, 101, "cudaLaunchKernel", 1_600, 1_700, 2),
    (3, 100, 101, "cudaMemcpyAsync", 3_600, 3_700, 4),
    (4, 100, 101, "cudaLaunchKernel", 4_000, 4_100, 4),
    (5, 100, 102, "cudaMemcpy", 1_100, 1_400, 5),
    (6, 100, 102, "cudaLaunchKernel", 1_500, 1_600, 5),
    (1, 200, 201, "cudaLaunchKernel", 2_100, 2_300, 6),
    (2, 200, 201, "cudaMemcpy", 2_400, 2_800, 6),
    (7, 100, 101, "cudaMemsetAsync", 9_500, 9_600, 1),
    (8, 100, 101, "cudaLaunchKernel", 10_500, 10_600, None),
    (9, 100, 102, "cudaDeviceSynchronize", 5_000, 9_000, None),
)
# correlation, process, start, end, device, full_name, range_id. The last one's launch was not traced.
KERNELS = (
    (1, 100, 1_000, 2_000, 0, GEMM, 3),
    (2, 100, 2_000, 2_500, 0, "relu", 2),
    (4, 100, 5_000, 7_000, 0, GEMM, 4),
    (6, 100, 2_200, 2_600, 1, "relu", 5),
    (1, 200, 3_000, 3_600, 1, GEMM, 6),
    (8, 100, 11_000, 11_100, 0, "relu", None),
    (99, 100, 12_000, 12_300, 0, HOSTILE, None),
)
# correlation, process, start, end, kind, bytes, memory it comes from, memory it goes to, device, range_id.
MEMORY_OPS = (
    (3, 100, 3_800, 4_800, "h2d", 1_000_000, "pinned", "device", 0, 4),
    (5, 100, 1_200, 2_200, "h2d", 500_000, "pageable", "device", 1, 5),
    (2, 200, 3_200, 5_200, "d2h", 2_000_000, "device", "pageable", 1, 6),
    (7, 100, 9_700, 9_800, "memset", 4_096, None, "device", 0, 1),
)


def write(data_dir: Path, run_id: str = "trace", *, label: str = "", without: tuple[str, ...] = ()) -> Path:
    """Write an imported run with that trace.

    Args:
        without: tables to leave out, as a report that lacks them does.

    Returns:
        The folder of the run.
    """
    tables: dict[str, list[dict[str, Any]]] = {
        "ranges": [_range(*row) for row in RANGES],
        "api_calls": [
            dict(zip(("correlation", "process", "thread", "name", "start_ns", "end_ns", "range_id"), row, strict=True))
            for row in API_CALLS
        ],
        "kernels": [_kernel(*row) for row in KERNELS],
        "memory_ops": [_memory_op(*row) for row in MEMORY_OPS],
    }
    return _write(data_dir, run_id, label, {name: rows for name, rows in tables.items() if name not in without})


def write_variants(data_dir: Path, run_id: str = "variants") -> Path:
    """Write an imported run with ranges of ours: two variants of one case, two rounds each, with their copies.

    `v01_slow` has kernels of 8000 ns, `v02_fast` of 2000 ns; both have launches of 1000 ns, copies of 5000 ns in and 3000 ns out, and
    ranges that end 1000 ns after their copies.
    """
    tables: dict[str, list[dict[str, Any]]] = {"ranges": [], "api_calls": [], "kernels": [], "memory_ops": []}
    start = correlation = 0
    for round_number in range(2):
        for variant, kernel_ns in (("v01_slow", 8_000), ("v02_fast", 2_000)):
            range_id = len(tables["ranges"]) + 1
            after = start + 6_000 + kernel_ns
            tables["ranges"].append(
                _range(range_id, None, 0, 1, 1, "warpladder", f"end_to_end#{round_number}", start, after + 4_000, start, after + 3_000)
                | {"workload": "conv2d", "variant": variant, "config": "", "case": "n=512", "scope": "end_to_end", "round": round_number}
            )  # fmt: skip
            for kind, begins, ends, source, target in (
                ("h2d", start, start + 5_000, "pinned", "device"),
                ("d2h", after, after + 3_000, "device", "pinned"),
            ):
                correlation += 1
                tables["memory_ops"].append(_memory_op(correlation, 1, begins, ends, kind, 5_000, source, target, 0, range_id))
            correlation += 1
            launch = (start + 5_000, start + 6_000)
            tables["api_calls"].append(
                {"correlation": correlation, "process": 1, "thread": 1, "name": "cuLaunchKernel", "start_ns": launch[0],
                 "end_ns": launch[1], "range_id": range_id}
            )  # fmt: skip
            tables["kernels"].append(
                _kernel(correlation, 1, launch[1], after, 0, variant, range_id)
                | {"launch_start_ns": launch[0], "launch_end_ns": launch[1]}
            )
            start = after + 5_000
    return _write(data_dir, run_id, "", tables)


def run_row(run_id: str, label: str) -> dict[str, Any]:
    """The row of table `run` of an import."""
    row: dict[str, Any] = {column.name: None if column.nullable else "" for column in TABLES["run"].columns}
    return row | {
        "run_id": run_id, "schema_version": SCHEMA_VERSION, "label": label, "kind": "import", "device_count": 2,
        "started_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "collector": "nsight_systems", "collector_version": "2025.3",
        "source": "report.nsys-rep", "device_name": "NVIDIA H200 (synthetic)", "packages": to_json({}),
        "git_commit": "c0ffee00" * 5, "python_version": "3.11.7",
    }  # fmt: skip


def _write(data_dir: Path, run_id: str, label: str, tables: Mapping[str, list[dict[str, Any]]]) -> Path:
    with RunWriter(data_dir, run_id) as writer:
        writer.append("run", [run_row(run_id, label or run_id)])
        for name, rows in tables.items():
            writer.append(name, rows)
        return writer.commit()


def _range(*row: Any) -> dict[str, Any]:
    names = (
        "range_id",
        "parent_id",
        "depth",
        "process",
        "thread",
        "domain",
        "text",
        "start_ns",
        "end_ns",
        "gpu_start_ns",
        "gpu_end_ns",
    )
    by_time = ("time_gpu_start_ns", "time_gpu_end_ns", "time_gpu_busy_ns")
    nothing = dict.fromkeys(("gpu_busy_ns", *by_time, "workload", "variant", "config", "case", "scope", "round"))
    return dict(zip(names, row, strict=True)) | {"style": "push_pop"} | nothing


def _kernel(*row: Any) -> dict[str, Any]:
    names = ("correlation", "process", "start_ns", "end_ns", "device", "full_name", "range_id")
    found = dict(zip(names, row, strict=True))
    launch = next((call for call in API_CALLS if call[:2] == row[:2]), None)
    nothing = {column.name: None for column in TABLES["kernels"].columns if column.nullable and column.name != "range_id"}
    times = {"launch_start_ns": launch[4], "launch_end_ns": launch[5]} if launch else {}
    return nothing | found | times | {"name": found["full_name"], "stream": 7}


def _memory_op(*row: Any) -> dict[str, Any]:
    names = ("correlation", "process", "start_ns", "end_ns", "kind", "bytes", "src_memory", "dst_memory", "device", "range_id")
    return dict(zip(names, row, strict=True)) | {"stream": 7, "time_range_id": None}
