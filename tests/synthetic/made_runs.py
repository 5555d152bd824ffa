"""Runs with known medians, written through the store: what the dashboard's tests and a developer without a GPU look at.

`row` and `write_tables` make any other run, of rows counted by hand. The figures are invented, of the order of an H200's.
`median_ns` says what each cell was made to measure.
"""

import functools
import hashlib
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from warpladder.data.names import Ceiling
from warpladder.data.schema import SCHEMA_VERSION, TABLES
from warpladder.data.store import RunWriter, to_json

PERMUTATIONS = ("012", "021", "102", "120", "201", "210")
COPY_GB_PER_S = 4000.0
READ_GB_PER_S = 4400.0
FMA_TFLOP_PER_S = 50.0
LAUNCH_US = 2.5
CEILINGS = (
    (Ceiling.DEVICE_COPY, "cuda:0", COPY_GB_PER_S, "GB/s"),
    ("device_read", "cuda:0", READ_GB_PER_S, "GB/s"),
    ("device_write", "cuda:0", 4500.0, "GB/s"),
    (Ceiling.FP32_FMA, "cuda:0", FMA_TFLOP_PER_S, "TFLOP/s"),
    ("tf32_mma", "cuda:0", 300.0, "TFLOP/s"),
    (Ceiling.H2D_PINNED, "cuda:0", 55.0, "GB/s"),
    (Ceiling.H2D_PAGEABLE, "cuda:0", 10.0, "GB/s"),
    (Ceiling.D2H_PINNED, "cuda:0", 55.0, "GB/s"),
    (Ceiling.D2H_PAGEABLE, "cuda:0", 8.0, "GB/s"),
    (Ceiling.LAUNCH, "cuda:0", LAUNCH_US, "us"),
    (Ceiling.GRAPH_NODE, "cuda:0", 0.6, "us"),
    ("host_copy", "cpu", 20.0, "GB/s"),
    ("host_fma", "cpu", 0.1, "TFLOP/s"),
)


@dataclass(frozen=True)
class Made:
    """A variant to invent: `share` is the part of the ceiling that it reaches at a large size, by config; `error` the relative one that it is
    found to have."""

    workload: str
    name: str
    title: str
    role: str
    kind: str
    share: Mapping[str, float]
    next: str = ""
    precision: str = "fp32"
    error: float = 1.0e-7


VARIANTS = (
    Made("tensor_transpose", "copy", "Copy kernel (the ceiling)", "ceiling", "cuda", {"": 0.99}),
    Made("tensor_transpose", "v01_simple", "One thread an element", "rung", "cuda", {"": 0.42}, "fix the permutation"),
    Made("tensor_transpose", "v02_template", "Permutation at compile time", "rung", "cuda", {"": 0.45}, "use shared memory"),
    Made("tensor_transpose", "v03_shared", "8x8x8 tile through shared memory", "rung", "cuda", {"": 0.62}, "pad the tile"),
    Made("tensor_transpose", "v04_padded", "Padded 32x32 tile", "rung", "cuda", {"tile=16": 0.71, "tile=32": 0.80}, "float4"),
    Made("tensor_transpose", "v05_swizzled", "float4 through a swizzled 64x64 tile", "rung", "cuda", {"": 0.97}),
    Made("tensor_transpose", "torch", "PyTorch contiguous()", "peer", "library", {"": 0.28}),
    Made("tensor_transpose", "cupy", "CuPy ascontiguousarray", "peer", "library", {"": 0.31}),
    Made("tensor_transpose", "numpy", "NumPy", "host", "host", {"": 0.10}),
    Made("tensor_transpose", "numba_serial", "Numba, one thread", "host", "host", {"": 0.05}),
    Made("tensor_transpose", "numba_parallel", "Numba, all cores", "host", "host", {"": 0.35}),
    Made("tensor_transpose", "numpy_view", "NumPy view: copies nothing", "specimen", "host", {"": 0.0}),
    Made("conv2d", "copy", "Copy kernel (the ceiling)", "ceiling", "cuda", {"": 0.99}),
    Made(
        "conv2d", "v01_naive", "Global memory only", "rung", "cuda", {"block=8": 0.17, "block=16": 0.19, "block=32": 0.18},
        "constant and shared memory",
    ),
    Made(
        "conv2d", "v02_shared", "Constant and shared memory", "rung", "cuda",
        {"block=8": 0.24, "block=16": 0.27, "block=32": 0.25}, "a tile in registers",
    ),
    Made("conv2d", "v03_register_tile", "Register tile", "rung", "cuda", {"": 0.74}, "slide along the columns"),
    Made("conv2d", "v04_sliding", "Sliding window in registers", "rung", "cuda", {"rows=8": 0.985, "rows=16": 0.95}),
    Made("conv2d", "v05_cluster", "Clusters with multicast", "rung", "cuda", {"": 0.90}),
    Made("conv2d", "cudnn", "cuDNN", "peer", "library", {"": 0.095}),
    Made("conv2d", "numpy", "NumPy", "host", "host", {"": 0.06}),
    Made("conv2d", "numba_serial", "Numba, one thread", "host", "host", {"": 0.03}),
    Made("conv2d", "numba_parallel", "Numba, all cores", "host", "host", {"": 0.11}),
)  # fmt: skip
GEMM = "gemm"
#: Shares are of the fp32 rate, 50 TFLOP/s: TF32 may reach 6 of it, and 3xTF32 2.
PRECISIONS = (
    Made(GEMM, "v01_naive", "One thread an element", "rung", "cuda", {"": 0.08}, "a tile in shared memory", error=4.0e-7),
    Made(
        GEMM, "v02_tile", "8x8 registers a thread", "rung", "cuda", {"tile=64": 0.7, "tile=128": 0.8}, "tensor cores", error=3.0e-7,
    ),
    Made(GEMM, "v03_tensor_cores", "TF32 on tensor cores", "rung", "cuda", {"": 3.2}, "lose no digits", "tf32", 3.0e-4),
    Made(GEMM, "v04_split", "Three TF32 products for one", "rung", "cuda", {"": 1.6}, "asynchronous copies", "3xtf32", 2.0e-7),
    Made(GEMM, "v05_pipelined", "TF32 with asynchronous copies", "rung", "cuda", {"": 4.8}, "", "tf32", 3.1e-4),
    Made(GEMM, "cublas", "cuBLAS", "peer", "library", {"": 0.9}, error=2.5e-7),
    Made(GEMM, "cublas_tf32", "cuBLAS, TF32 allowed", "peer", "library", {"": 4.0}, "", "tf32", 2.9e-4),
    Made(GEMM, "numpy", "NumPy", "host", "host", {"": 0.02}),
    Made(GEMM, "numba_serial", "Numba, one thread", "host", "host", {"": 0.01}),
)  # fmt: skip
BASELINE = {"tensor_transpose": ("v01_simple", ""), "conv2d": ("v01_naive", "block=8"), "gemm": ("v01_naive", "")}
HOST_BASELINE = "numba_serial"
#: Columns of whole numbers that a host has none of.
NULLABLE = {"sm_clock_mhz", "temperature_c", "throttle_reasons"}
#: Cells with a verdict other than ok, by (workload, variant, config, case); their samples are not written.
FAILED = {
    ("conv2d", "v05_cluster", "", "n=512"): ("wrong_result", "rel_l2_error 0.31 is above the tolerance 2e-06"),
    ("conv2d", "v04_sliding", "rows=16", "n=512"): ("skipped", "rows=16 leaves 32 blocks for 132 multiprocessors"),
    ("conv2d", "cudnn", "", "n=8192"): ("out_of_memory", "cuDNN asked for a workspace of 96.0 GB"),
    ("conv2d", "numpy", "", "n=8192"): ("timeout", "not finished after 60 s"),
    ("tensor_transpose", "v04_padded", "tile=16", "n=64,perm=102"): ("launch_error", "CUDA_ERROR_INVALID_VALUE"),
}


def row(table: str, **values: Any) -> dict[str, Any]:
    """A row with the default, nothing, zero or an empty text in the other columns."""
    return {**_empty(table), **values}


@functools.cache
def _empty(table: str) -> Mapping[str, Any]:
    return {
        c.name: None
        if c.nullable
        else ""
        if pa.types.is_string(c.type) or pa.types.is_dictionary(c.type)
        else c.default or max(c.least or 0, 0)
        for c in TABLES[table].columns
    }


def run_row(run_id: str, label: str) -> dict[str, Any]:
    """The row of table `run` of an import."""
    return row(
        "run", run_id=run_id, schema_version=SCHEMA_VERSION, label=label, kind="import", device_count=2,
        started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), collector="nsight_systems", collector_version="2025.3", source="report.nsys-rep",
        device_name="NVIDIA H200 (synthetic)", packages=to_json({}), git_commit="c0ffee00" * 5, python_version="3.11.7",
    )  # fmt: skip


def write_tables(data_dir: Path, run: Mapping[str, Any], tables: Mapping[str, Any]) -> Path:
    """Write a run of these rows, by table.

    Returns:
        The folder of the run.
    """
    with RunWriter(data_dir, run["run_id"]) as writer:
        writer.append("run", [run])
        for name, rows in tables.items():
            writer.append(name, rows)
        return writer.commit()


def cases(workload: str) -> Iterator[tuple[dict[str, Any], int | None, int, int]]:
    """Params, size_rank, flops and min_bytes of each case of a workload."""
    if workload == "tensor_transpose":
        for rank, size in enumerate((64, 256, 512)):
            for perm in PERMUTATIONS:
                yield {"n": size, "perm": perm}, rank, 0, 8 * size**3
        yield {"shape": "65x127x33", "perm": "210"}, None, 0, 8 * 65 * 127 * 33
    elif workload == "gemm":
        for rank, size in enumerate((1024, 2048, 4096)):
            yield {"n": size}, rank, 2 * size**3, 12 * size**2
    else:
        for rank, size in enumerate((512, 1024, 2048, 4096, 8192)):
            yield {"n": size}, rank, 50 * size**2, 8 * size**2
        yield {"shape": "513x1027"}, None, 50 * 513 * 1027, 8 * 513 * 1027


def name_of(params: Mapping[str, Any]) -> str:
    """`n=512,perm=210`, as the project names its cases."""
    return ",".join(f"{key}={value}" for key, value in params.items())


def median_ns(made: Made, config: str, params: Mapping[str, Any], min_bytes: int, cache: str, scope: str) -> float:
    """The median that a cell is made to measure, in nanoseconds."""
    if made.role == "specimen":
        return 200.0
    if made.kind == "host":
        return 500.0 + min_bytes / (20.0 * made.share[config])
    keeps_rows = str(params.get("perm", "")).endswith("2")
    share = made.share[config] * (2.0 if keeps_rows and made.share[config] < 0.5 else 1.0)
    from_l2 = cache == "hot" and min_bytes < 50e6 and made.workload != "gemm"
    # A product of two n x n matrices is limited by arithmetic: 2 n^3 operations in 12 n^2 bytes.
    least = 2 * (min_bytes / 12) ** 1.5 / (1000 * FMA_TFLOP_PER_S) if made.workload == "gemm" else min_bytes / COPY_GB_PER_S
    device = 1500.0 + least / share * (0.6 if from_l2 else 1.0)
    return device + {"device": 0.0, "operation": 4000.0, "end_to_end": 24000.0 + min_bytes / 55.0}[scope]


def phases_ns(made: Made, config: str, params: Mapping[str, Any], min_bytes: int) -> dict[str, float]:
    """The parts of an end-to-end operation of conv2d, by scope, in nanoseconds."""
    copy_ns = min_bytes / 2 / 55.0
    compute_ns = median_ns(made, config, params, min_bytes, "hot", "device")
    parts = {"allocate": 200e3, "h2d": copy_ns, "compute": compute_ns, "d2h": copy_ns, "free": 50e3}
    return {f"phase:{part}": duration_ns for part, duration_ns in parts.items()}


def write(
    data_dir: Path,
    run_id: str = "synthetic",
    *,
    label: str = "",
    rounds: int = 40,
    seed: int = 7,
    workloads: Collection[str] = ("tensor_transpose", "conv2d"),
) -> Path:
    """Write a run that looks like an H200's recording of tensor_transpose and conv2d, or of one of them.

    Returns:
        The folder of the run.
    """
    variants = tuple(made for made in VARIANTS if made.workload in workloads)
    return write_variants(data_dir, run_id, label or run_id, variants, rounds, seed, on_gpu=True)


def write_host_run(
    data_dir: Path,
    run_id: str = "synthetic-host",
    *,
    label: str = "",
    rounds: int = 20,
    seed: int = 8,
    workloads: Collection[str] = ("tensor_transpose", "conv2d"),
) -> Path:
    """Write a run of a machine without a GPU: host variants are measured, and all others skipped.

    Returns:
        The folder of the run.
    """
    variants = tuple(made for made in VARIANTS if made.workload in workloads)
    return write_variants(data_dir, run_id, label or run_id, variants, rounds, seed, on_gpu=False)


def write_precisions(data_dir: Path, run_id: str = "precisions", *, rounds: int = 20, seed: int = 9) -> Path:
    """Write a run that looks like an H200's recording of a matrix product in three precisions.

    Returns:
        The folder of the run.
    """
    return write_variants(data_dir, run_id, run_id, PRECISIONS, rounds, seed, on_gpu=True)


def write_variants(
    data_dir: Path, run_id: str, label: str, variants: tuple[Made, ...], rounds: int, seed: int, *, on_gpu: bool
) -> Path:
    """Write a run of these variants. Many tests ask for the same: its tables are made once, and copied.

    Returns:
        The folder of the run.
    """
    key = (*map(repr, variants), rounds, seed, on_gpu)
    if key not in _made:
        tables = _tables(variants, rounds, seed, on_gpu=on_gpu)
        _made[key] = write_tables(Path(_kept.name), _run(str(len(_made)), "", on_gpu), tables)
    path = write_tables(data_dir, _run(run_id, label, on_gpu), {})
    for file in _made[key].iterdir():
        if not (path / file.name).exists():
            shutil.copy(file, path)
    return path


_kept = tempfile.TemporaryDirectory(prefix="made-runs-")
#: What was asked for -> the run that has its tables.
_made: dict[tuple[object, ...], Path] = {}


def _tables(variants: tuple[Made, ...], rounds: int, seed: int, *, on_gpu: bool) -> dict[str, Any]:
    """The rows of each table but `run`."""
    random = np.random.default_rng(seed)
    results: list[dict[str, Any]] = []
    samples: list[dict[str, Any]] = []
    for made in variants:
        for params, rank, _, min_bytes in cases(made.workload):
            for config in made.share:
                cell = {"workload": made.workload, "variant": made.name, "config": config, "case": name_of(params)}
                status, detail = FAILED.get(tuple(cell.values()), ("ok", ""))  # type: ignore[arg-type]
                if made.kind != "host" and not on_gpu:
                    status, detail = "skipped", "needs an NVIDIA GPU; this collector runs host variants only"
                timed = status == "ok" and rank is not None
                results.append(_result(cell, made, status, detail or (_stopped(made, rounds) if timed else "")))
                if timed:
                    samples += _samples(cell, made, config, params, min_bytes, rounds, random, on_gpu)
    workloads = dict.fromkeys(made.workload for made in variants)
    return {
        "ceilings": [
            {"name": name, "device": device, "value": value, "unit": unit, "method": "invented for tests"}
            for name, device, value, unit in CEILINGS if on_gpu or device == "cpu"
        ],
        "variants": [_variant(made) for made in variants],
        "cases": [
            {"workload": workload, "case": name_of(params), "size_rank": rank, "params": to_json(params), "flops": flops,
             "min_bytes": min_bytes, "h2d_bytes": min_bytes // 2, "d2h_bytes": min_bytes // 2, "passes": 1,
             "inputs_sha256": None, "reference_sha256": None}
            for workload in workloads for params, rank, flops, min_bytes in cases(workload)
        ],
        "results": results, "samples": _table(samples, rounds), "diagnostics": list(_diagnostics(on_gpu)),
    }  # fmt: skip


def _samples(
    cell: Mapping[str, str],
    made: Made,
    config: str,
    params: Mapping[str, Any],
    min_bytes: int,
    rounds: int,
    random: np.random.Generator,
    on_gpu: bool,
) -> Iterator[dict[str, Any]]:
    """Samples of one cell in every scope that it is measured in, with a common drift over the rounds: columns of one value or one a round."""
    host = made.kind == "host"
    views = (("hot", "operation"),) if host else (
        ("cold", "device"), ("hot", "device"), ("hot", "operation"), ("hot", "end_to_end"))  # fmt: skip
    is_baseline = (made.name, config) == BASELINE[made.workload] or (host and not on_gpu and made.name == HOST_BASELINE)
    drift = 1 + 0.004 * np.sin(np.arange(rounds) / 6)
    made_of = {view: median_ns(made, config, params, min_bytes, *view) for view in views}
    if made.workload == "conv2d" and not host:
        made_of |= {("hot", scope): made_ns for scope, made_ns in phases_ns(made, config, params, min_bytes).items()}
    for (cache, scope), made_ns in made_of.items():
        for twin in (0, 1) if is_baseline else (0,):
            # The A/A of one case fails on purpose, so that what distrusts it has something to show.
            bias = 1.03 if twin and cell["case"] == "n=1024" else 1.0
            noise = np.exp(random.normal(0, 0.015 if host else 0.003, rounds))
            yield {
                **cell, "gpus": 0 if host else 1, "rank": 0, "cache": cache, "scope": scope, "twin": twin, "process": 0,
                "round": np.arange(rounds), "position": random.integers(0, 12, rounds),
                "duration_ns": np.rint(made_ns * drift * noise * bias).astype(np.int64),
                "sm_clock_mhz": None if host else 1980, "temperature_c": None if host else 41,
                "held_clock_mhz": 1972.5 if (cache, scope) == ("hot", "device") else np.nan,
                "power_w": np.nan if host else 310.0, "throttle_reasons": None if host else 0,
            }  # fmt: skip


def _table(parts: list[dict[str, Any]], rounds: int) -> pd.DataFrame:
    """The parts below one another; a frame for each of a thousand of them would take ten times as long."""

    def column(name: str) -> pd.Series:
        values = [part[name] for part in parts]
        if isinstance(values[0], np.ndarray):
            return pd.Series(np.concatenate(values))
        each = pd.Series(values, dtype="Int64" if name in NULLABLE else None)
        return each.repeat(rounds).reset_index(drop=True)

    return pd.DataFrame({name: column(name) for name in parts[0]})


def _stopped(made: Made, rounds: int) -> str:
    views = ("operation hot",) if made.kind == "host" else ("device cold", "device hot", "operation hot", "end_to_end hot")
    return "; ".join(f"{view}: converged, n={rounds}, ±0.31%" for view in views)


def _result(cell: Mapping[str, str], made: Made, status: str, detail: str) -> dict[str, Any]:
    verified = status in ("ok", "wrong_result")
    exact = made.workload == "tensor_transpose"
    error = 0.31 if status == "wrong_result" else 0.0 if exact else made.error
    return {
        **cell, "status": status, "detail": detail, "rel_l2_error": error if verified else None,
        "max_rel_error": error if verified else None, "tolerance": 0.0 if exact else {"tf32": 1e-3}.get(made.precision, 2e-6),
        "verified_elements": 262144 if verified else None,
    }  # fmt: skip


def _variant(made: Made) -> dict[str, Any]:
    cuda = made.kind == "cuda"
    text = f"// Idea: {made.title}.\n// Next: {made.next}.\n__global__ void kernel() {{}}\n" if cuda else "def run(): ...\n"
    return {
        "workload": made.workload, "variant": made.name, "rung": int(made.name[1:3]) if made.role == "rung" else None,
        "kind": made.kind, "role": made.role, "precision": made.precision, "title": made.title,
        "idea": f"{made.title}.", "bottleneck": "Memory." if made.next else "", "next": made.next,
        "source": "Invented for tests.",
        # One variant points at a file that is not there: its source changed since the recording.
        "source_path": "workloads/tensor_transpose/kernels/v02_gone.cu" if made.name == "v02_template" else "",
        "source_text": text, "source_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "registers": 32 if cuda else None, "shared_bytes": 4096 if cuda else None, "spill_bytes": 0 if cuda else None,
        "min_compute_capability": "7.5" if cuda else "", "transfer": "pageable" if made.kind != "host" else None,
    }  # fmt: skip


def _run(run_id: str, label: str, on_gpu: bool) -> dict[str, Any]:
    gpu = {
        "device_name": "NVIDIA H200 (synthetic)", "device_count": 1, "compute_capability": "9.0", "sm_count": 132,
        "l2_bytes": 60 * 2**20, "memory_bytes": 150 * 10**9, "driver_version": "580.0", "cuda_version": "13.0",
        "collector": "cuda_events",
    }  # fmt: skip
    host = {name: None if TABLES["run"].arrow.field(name).nullable else 0 if name == "device_count" else "" for name in gpu}
    return {
        "run_id": run_id, "schema_version": SCHEMA_VERSION, "label": label, "kind": "recording",
        "started_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "collector_version": "0.1.0", "source": "", "source_sha256": None,
        **(gpu if on_gpu else {**host, "collector": "host_clock"}), "cpu_name": "Synthetic CPU", "cpu_threads": 8, "os": "Linux",
        "python_version": "3.11.9", "packages": to_json({"numpy": np.__version__}), "git_commit": "0" * 40,
        "git_dirty": False, "command": "warpladder record --cases full",
    }  # fmt: skip


def _diagnostics(on_gpu: bool) -> Iterator[dict[str, Any]]:
    nowhere = {"workload": None, "variant": None, "config": None, "case": None}
    yield {
        "severity": "warning", "source": "constant_time", "text": "0.2 us at every size: its time does not grow with the work",
        "workload": "tensor_transpose", "variant": "numpy_view", "config": "", "case": "n=512,perm=210",
    }  # fmt: skip
    yield {"severity": "info", "source": "sampling", "text": "fixed number of rounds", **nowhere}
    if on_gpu:
        yield {
            "severity": "warning", "source": "throttling", "text": "3 samples under a power cap were taken again",
            "workload": "conv2d", "variant": "v04_sliding", "config": "rows=16", "case": "n=8192",
        }  # fmt: skip
