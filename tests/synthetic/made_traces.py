"""Runs with a trace whose sums are counted by hand: two processes, two GPUs, ranges nested on one thread and open on others.

Beside them: recordings of the same cells by several collectors, and one with a trace.
Names are as a profiler gives them; one of them is hostile.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.synthetic.made_runs import row, run_row, write_tables
from warpladder.data import metrics
from warpladder.data.names import Source
from warpladder.data.schema import TABLES

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
    return write_tables(
        data_dir, run_row(run_id, label or run_id), {name: rows for name, rows in tables.items() if name not in without}
    )


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
    return write_tables(data_dir, run_row(run_id, run_id), tables)


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


DEVICE = "NVIDIA H200 (synthetic)"
CASE = "n=512"
#: Variant -> its device time in ns, by collector.
TIMES: Mapping[str, Mapping[str, int]] = {
    "cuda_events": {"v01_long": 100_000, "v02_longer": 200_000, "v03_short": 5_000, "v04_shorter": 4_000},
    "nsight_compute": {"v01_long": 102_000, "v03_short": 5_200},
}
H2D_BYTES, D2H_BYTES = 4_096, 2_048


def write_collected(
    data_dir: Path,
    collector: str,
    run_id: str = "",
    *,
    sources: Mapping[str, str] | None = None,
) -> Path:
    """Write the run of a collector: of each variant of `TIMES` seven samples from 30 ‰ below to 30 ‰ above, cold; of `nsight_compute`
    the counter of two launches that add up to it.

    Args:
        sources: hashes of the variants' sources; all `same` where a variant is not named.

    Returns:
        The folder of the run.
    """
    times = TIMES[collector]
    counted = collector == "nsight_compute"
    samples = [
        row("samples") | _cell(variant) | {
            "gpus": 1, "rank": 0, "cache": "cold", "scope": "device", "twin": 0, "process": 0, "round": number, "position": 0,
            "duration_ns": time_ns * (1_000 + 10 * (number - 3)) // 1_000,
        }
        for variant, time_ns in times.items() for number in range(7) if not counted
    ]  # fmt: skip
    counters = [
        _cell(variant) | {"kernel": "k", "launch_index": index, "metric": metrics.TIME, "value": value, "unit": "ns"}
        for variant, time_ns in times.items() if counted for index, value in enumerate((time_ns - 1_000.0, 1_000.0))
    ]  # fmt: skip
    tables = {
        "variants": [_variant(name, (sources or {}).get(name, "same")) for name in times], "cases": [_case()], "samples": samples,
        "counters": counters, "results": [row("results") | _cell(name) | {"status": "ok", "detail": ""} for name in times],
    }  # fmt: skip
    info = {"collector": collector, "device_name": DEVICE, "started_at": datetime(2026, 1, 2, tzinfo=UTC)}
    return _write_recording(data_dir, run_id or collector, info, tables)


def write_traced(data_dir: Path, run_id: str = "traced", *, wrong: bool = False, dropped: bool = False) -> Path:
    """Write a recording with a trace: rounds 0 and 1 and a twin that copy the case's bytes, a warm-up that copies others, and a device
    sample; its five kernels of 100 ns are in these ranges. What is wrong where asked: a third round that copies 96 bytes too few, a
    fourth that copies nothing, a kernel of 300 ns outside of any range, and one of 200 ns with no launch.

    Returns:
        The folder of the run.
    """
    texts = ["end_to_end.hot#0", "end_to_end.hot#1", "end_to_end.hot.twin#1", "end_to_end.hot.warm_up#0", "device.cold#0"]
    texts += ["end_to_end.hot#2", "end_to_end.hot#3"] if wrong else []
    ranges: list[dict[str, Any]] = [_sample_range(0, None, "conv2d", {"workload": "conv2d"})]
    copies: list[dict[str, Any]] = []
    kernels = []
    for text in texts:
        scope = text.split(".")[0]
        cell = _cell("v01_long") | {"scope": scope, "round": None if "warm_up" in text else int(text[-1])}
        outer = len(ranges)
        ranges += [_sample_range(outer, 0, text, cell), _sample_range(outer + 1, outer, "executions=1", cell)]
        kernels.append(_kernel_in(len(kernels), 100, outer + 1))
        bytes_in = {"end_to_end.hot#2": H2D_BYTES - 96, "end_to_end.hot.warm_up#0": 7, "end_to_end.hot#3": 0}.get(
            text, H2D_BYTES
        )
        if bytes_in:
            copies += [
                # In two pieces, one by the sample's range and one by a range within it.
                _copy_in("h2d", bytes_in - 1, outer), _copy_in("h2d", 1, outer + 1), _copy_in("d2h", D2H_BYTES, outer + 1),
                _copy_in("memset", 999, outer),
            ]  # fmt: skip
    if wrong:
        kernels = kernels[:5]
        kernels += [_kernel_in(5, 300, None), _kernel_in(6, 200, 1) | {"launch_start_ns": None, "launch_end_ns": None}]
    lost = {"severity": "error", "source": Source.DROPPED, "text": "CUPTI dropped 12 records", **dict.fromkeys(_cell(""))}
    tables = {
        "variants": [_variant("v01_long", "same")], "cases": [_case()], "ranges": ranges, "kernels": kernels, "memory_ops": copies,
        "diagnostics": [lost] if dropped else [],
    }  # fmt: skip
    info = {"collector": "cupti", "device_name": DEVICE, "started_at": datetime(2026, 1, 1, tzinfo=UTC)}
    return _write_recording(data_dir, run_id, info, tables)


def _write_recording(data_dir: Path, run_id: str, info: Mapping[str, Any], tables: Mapping[str, Any]) -> Path:
    return write_tables(data_dir, run_row(run_id, run_id) | {"kind": "recording", "source": ""} | info, tables)


def _cell(variant: str) -> dict[str, Any]:
    return {"workload": "conv2d", "variant": variant, "config": "", "case": CASE}


def _variant(name: str, source: str) -> dict[str, Any]:
    about = {"workload": "conv2d", "variant": name, "rung": int(name[1:3]), "kind": "cuda", "role": "rung", "precision": "fp32"}
    return row("variants") | about | {"title": name, "source_sha256": source}


def _case() -> dict[str, Any]:
    work = {
        "flops": 10**6,
        "min_bytes": 10**6,
        "h2d_bytes": H2D_BYTES,
        "d2h_bytes": D2H_BYTES,
        "passes": 1,
        "inputs_sha256": None,
        "reference_sha256": None,
    }
    return {"workload": "conv2d", "case": CASE, "size_rank": 0, "params": '{"n":512}', **work}


def _sample_range(range_id: int, parent: int | None, text: str, cell: Mapping[str, Any]) -> dict[str, Any]:
    # The workload's range holds those of the samples, and each of them its executions.
    depth = 0 if parent is None else 1 if parent == 0 else 2
    times = {"start_ns": range_id, "end_ns": range_id + 1_000}
    about = {"range_id": range_id, "parent_id": parent, "depth": depth, "process": 1, "thread": 1, "domain": "warpladder"}
    return row("ranges") | about | times | {"text": text, "style": "push_pop"} | cell


def _kernel_in(correlation: int, duration_ns: int, range_id: int | None) -> dict[str, Any]:
    name = "inside" if range_id is not None else "outside"
    times = {"start_ns": 0, "end_ns": duration_ns, "launch_start_ns": 0, "launch_end_ns": 1}
    about = {"correlation": correlation, "process": 1, "device": 0, "name": name, "full_name": name, "range_id": range_id}
    return row("kernels") | about | times


def _copy_in(kind: str, size: int, range_id: int) -> dict[str, Any]:
    about = {"correlation": 1, "process": 1, "start_ns": 0, "end_ns": 1, "device": 0}
    return row("memory_ops") | about | {"kind": kind, "bytes": size, "range_id": range_id}
