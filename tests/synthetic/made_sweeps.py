"""Runs of 1, 2 and 4 ranks with known times, and one with counters counted by hand. The figures are invented."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.synthetic import made_runs
from tests.synthetic.made_runs import row, run_row, write_tables
from warpladder.data import metrics, store
from warpladder.data.names import Phase, nccl_allreduce
from warpladder.data.schema import COUNTERS
from warpladder.data.store import to_json

COUNTS = (1, 2, 4)
IMAGES = (10, 100, 880, 1000, 2224, 2512, 4856, 5248)
BATCHES = (400, 800, 1600)
#: Of each round's ranks the first is the fastest, by this part of the time of the last.
SKEW = 0.03
IMAGE_BYTES = 3 * 64 * 64 * 4
#: What one more rank costs a generation, and a step its allreduce: the ends of a launch that all wait for.
SYNC_NS = 140_000
#: Kernels of one image and of one row of a batch, by variant.
IMAGE_NS = {"v06_pinned": 10_000, "v07_overlapped": 10_000, "v12_wgmma": 700}
ROW_NS = {"v05_nccl": 500, "v06_overlapped_nccl": 500}
ALLREDUCE_NS = {1: 0, 2: 31_000, 4: 33_000}
#: The report's network, and what NCCL by itself takes for it, in us.
GRADIENT_BYTES = 3_180_040
NCCL_US = {2: 30.0, 4: 32.0}
_TITLES = {
    "v06_pinned": "Outputs through pinned memory", "v07_overlapped": "Copies under the next batch's kernels",
    "v12_wgmma": "Warpgroups in TF32, copies overlapped", "v05_nccl": "Gradients summed by NCCL",
    "v06_overlapped_nccl": "NCCL under the backward pass", "numba_parallel": "Numba, all cores",
}  # fmt: skip


def copy_out_ns(images: int, ranks: int) -> float:
    """Pinned copies of a rank's images: 55 GB/s, and 39.6 with four at once."""
    return images / ranks * IMAGE_BYTES / (39.6 if ranks == 4 else 55.0)


def generation_ns(variant: str, images: int, ranks: int, scope: str) -> dict[str, float]:
    """Time of the slowest rank by scope, phases included."""
    compute = 20_000 + IMAGE_NS[variant] * images / ranks
    if scope == "device":
        return {"device": compute}
    sync, out = 30_000 + SYNC_NS * (ranks - 1), copy_out_ns(images, ranks)
    if variant == "v06_pinned":
        return {"end_to_end": compute + out + sync, Phase.COMPUTE: compute, Phase.D2H: out}
    return {"end_to_end": max(compute, out) + sync}


def step_ns(variant: str, batch: int, ranks: int, scope: str) -> dict[str, float]:
    """As `generation_ns`, of a training step; overlapping hides two thirds of the allreduce."""
    hidden = 2 / 3 if variant == "v06_overlapped_nccl" else 0.0
    whole = 50_000 + ROW_NS[variant] * batch / ranks + ALLREDUCE_NS[ranks] * (1 - hidden)
    if scope == "device":
        return {"device": whole}
    return {"operation": whole + 10_000} | ({Phase.ALLREDUCE: ALLREDUCE_NS[ranks]} if ranks > 1 else {})


def write_scaling(data_dir: Path, run_id: str = "scaling", *, rounds: int = 20, seed: int = 3) -> Path:
    """Write a run that looks like a recording of four H200s.

    Returns:
        The folder of the run.
    """
    random = np.random.default_rng(seed)
    samples: list[dict[str, Any]] = []
    for ranks in COUNTS:
        for variant in IMAGE_NS:
            for images in IMAGES:
                cell = _cell("gan_tconv", variant, f"images={images}")
                for scope in ("device", "end_to_end"):
                    samples += _samples(cell, generation_ns(variant, images, ranks, scope), ranks, ranks, rounds, random)
        for variant in ROW_NS:
            for batch in BATCHES:
                cell = _cell("mlp_training", variant, f"batch={batch}")
                for scope in ("device", "operation"):
                    samples += _samples(cell, step_ns(variant, batch, ranks, scope), ranks, ranks, rounds, random)
    cases = [("gan_tconv", "images", number) for number in IMAGES] + [("mlp_training", "batch", number) for number in BATCHES]
    return _write(data_dir, run_id, "NVIDIA H200 (synthetic)", samples, cases)


def write_scaling_on_host(data_dir: Path, run_id: str = "scaling-host", *, rounds: int = 12, seed: int = 4) -> Path:
    """Write a run of one process and of two on a machine without a GPU: half the time and 1 ms more.

    Returns:
        The folder of the run.
    """
    random = np.random.default_rng(seed)
    samples: list[dict[str, Any]] = []
    for images in (4, 16):
        cell = _cell("gan_tconv", "numba_parallel", f"images={images},channels=64")
        for ranks in (1, 2):
            times = {"operation": images * 400_000 / ranks + 1_000_000 * (ranks - 1)}
            samples += _samples(cell, times, ranks, ranks if ranks > 1 else 0, rounds, random)
    return _write(data_dir, run_id, "", samples, [("gan_tconv", "images", 4), ("gan_tconv", "images", 16)], ",channels=64")


def write_one_process(data_dir: Path, run_id: str = "one-process", *, gpus: int) -> Path:
    """Write a run of one process that used so many GPUs, as an imported program may.

    Returns:
        The folder of the run.
    """
    cell, random = _cell("gan_tconv", "v07_overlapped", "images=10"), np.random.default_rng(5)
    samples = list(_samples(cell, {"device": 1_000_000}, 1, gpus, 6, random))
    return _write(data_dir, run_id, "NVIDIA H200 (synthetic)", samples, [("gan_tconv", "images", 10)])


def _cell(workload: str, variant: str, case: str) -> dict[str, str]:
    return {"workload": workload, "variant": variant, "config": "", "case": case}


def _samples(
    cell: Mapping[str, str], times: Mapping[str, float], ranks: int, gpus: int, rounds: int, random: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """A row a scope, round and rank; the noise of a round is that of all its ranks, and of their phases."""
    noise = np.exp(random.normal(0, 0.004, rounds))
    for scope, slowest_ns in times.items():
        for number in range(rounds):
            for rank in range(ranks):
                behind = SKEW * (ranks - 1 - rank) / (ranks - 1) if ranks > 1 else 0.0
                yield row(
                    "samples", **cell, gpus=gpus, rank=rank, cache="hot", scope=scope, round=number,
                    duration_ns=round(slowest_ns * noise[number] * (1 - behind)),
                )  # fmt: skip


def _write(
    data_dir: Path, run_id: str, device: str, samples: list[dict[str, Any]], cases: list[tuple[str, str, int]], more: str = ""
) -> Path:
    cells = dict.fromkeys((s["workload"], s["variant"], s["config"], s["case"]) for s in samples)
    variants = dict.fromkeys((workload, variant) for workload, variant, *_ in cells)
    facts = {"kind": "recording", "device_name": device, "cpu_name": "Synthetic CPU", "device_count": 4 if device else 0}
    tables = {
        "variants": [
            row("variants", workload=workload, variant=name, title=_TITLES[name], source_text="",
                kind="cuda" if device else "host", role="rung" if device else "host", rung=int(name[1:3]) if device else None,
                precision="tf32" if name == "v12_wgmma" else "fp32")
            for workload, name in variants
        ],
        "ceilings": [
            row("ceilings", name=nccl_allreduce(GRADIENT_BYTES), device=f"{ranks} GPUs", value=value, unit="us")
            for ranks, value in NCCL_US.items() if device
        ],
        "cases": [
            row("cases", workload=workload, case=f"{axis}={number}{more}", size_rank=rank, flops=1000 * number, min_bytes=number,
                d2h_bytes=GRADIENT_BYTES if axis == "batch" else IMAGE_BYTES * number,
                params=to_json({axis: number} | ({"channels": 64} if more else {})))
            for rank, (workload, axis, number) in enumerate(cases)
        ],
        "results": [
            row("results", workload=workload, variant=variant, config=config, case=case, status="ok", rel_l2_error=1e-7, tolerance=2e-6)
            for workload, variant, config, case in cells
        ],
        "samples": samples,
    }  # fmt: skip
    return write_tables(data_dir, run_row(run_id, run_id) | facts, tables)


WORKLOAD, CASE = "tensor_transpose", "n=512,perm=210"
MIN_BYTES = 8 * 512**3


def percents(compute: float, memory: float, dram: float, l2: float, l1: float) -> dict[str, float]:
    names = (metrics.COMPUTE, metrics.MEMORY, metrics.DRAM, metrics.L2, metrics.L1)
    return dict(zip(names, (compute, memory, dram, l2, l1), strict=True))


def _limits(registers: float, shared: float, warps: float, blocks: float) -> dict[str, float]:
    return dict(zip(metrics.LIMITS, (registers, shared, warps, blocks, 32.0), strict=True))


def stalls(**cycles: float) -> dict[str, float]:
    return {metrics.stall_metric(reason): cycles.get(reason, 0.0) for reason in metrics.STALLS}


def _memory(read: float, write: float, load_sectors: float, store_sectors: float, conflicts: float) -> dict[str, float]:
    """For 1000 requests and 2000 wavefronts each way."""
    return {
        metrics.DRAM_READ: read, metrics.DRAM_WRITE: write, metrics.LOAD_REQUESTS: 1000.0, metrics.LOAD_SECTORS: load_sectors,
        metrics.STORE_REQUESTS: 1000.0, metrics.STORE_SECTORS: store_sectors, metrics.LOAD_WAVEFRONTS: 2000.0,
        metrics.LOAD_CONFLICTS: 0.0, metrics.STORE_WAVEFRONTS: 2000.0, metrics.STORE_CONFLICTS: conflicts, metrics.L1_HIT: 12.5,
        metrics.L2_HIT: 48.0,
    }  # fmt: skip


def _launch(achieved: float, theoretical: float, registers: float, waves: float) -> dict[str, float]:
    return {
        metrics.OCCUPANCY: achieved, metrics.THEORETICAL: theoretical, metrics.REGISTERS: registers, metrics.WAVES: waves,
        metrics.SHARED_BYTES: 16_384.0, metrics.GRID: 4096.0, metrics.BLOCK: 256.0, metrics.ISSUE: 20.0, metrics.TENSOR: 0.0,
    }  # fmt: skip


HALF = MIN_BYTES / 2
#: (variant, config) -> its launches in order: kernel and metrics.
CELLS: dict[tuple[str, str], list[tuple[str, dict[str, float]]]] = {
    ("copy", ""): [
        (
            "copy",
            {metrics.TIME: 250_000.0, **percents(20, 93, 93, 60, 30), **_limits(32, 32, 8, 32), **_memory(HALF, HALF, 16e3, 16e3, 0)}
            | _launch(90, 100, 20, 15.5) | stalls(selected=1, long_scoreboard=30, wait=3),
        )
    ],
    ("v01_simple", ""): [
        (
            "simple",
            # 32 sectors a load of a warp: each thread touches a sector of its own. 40 of 50 cycles wait for memory.
            {metrics.TIME: 900_000.0, **percents(12, 45, 40, 44, 38), **_limits(16, 32, 8, 32), **_memory(4 * HALF, HALF, 32e3, 4e3, 0)}
            | _launch(60, 100, 16, 15.5) | stalls(selected=1, not_selected=1, long_scoreboard=40, lg_throttle=6, wait=2),
        )
    ],
    ("v03_shared", ""): [
        (
            "shared",
            # 500 of 2000 wavefronts of stores are conflicts; registers allow 3 blocks, less than anything else.
            {metrics.TIME: 400_000.0, **percents(30, 72, 55, 50, 71), **_limits(3, 6, 8, 32), **_memory(HALF, HALF, 4e3, 4e3, 500)}
            | _launch(30, 37.5, 80, 41) | stalls(selected=1, short_scoreboard=9, barrier=6, long_scoreboard=4),
        )
    ],
    ("v04_padded", "tile=16"): [
        ("padded", {metrics.TIME: 380_000.0, **percents(85, 40, 30, 40, 38)} | stalls(selected=1, math_pipe_throttle=3)),
    ],
    ("v04_padded", "tile=32"): [
        ("padded", {metrics.TIME: 310_000.0, **percents(86, 41, 31, 41, 38)} | stalls(selected=1, math_pipe_throttle=3)),
    ],
    # Two launches of 300 and 100 µs: 100 * 300 / 400 + 60 * 100 / 400 = 90 % of DRAM.
    ("v05_swizzled", ""): [
        ("split", {metrics.TIME: 210_000.0, **percents(20, 100, 100, 50, 30), metrics.DRAM_READ: HALF, metrics.DRAM_WRITE: 0.5 * HALF}),
        ("join", {metrics.TIME: 70_000.0, **percents(20, 60, 60, 50, 30), metrics.DRAM_READ: 0.5 * HALF, metrics.DRAM_WRITE: 0.5 * HALF}),
    ],
}  # fmt: skip


def counter_rows(cells: Mapping[tuple[str, str], Any] = CELLS) -> list[dict[str, Any]]:
    """Rows of `counters`."""
    return [
        {
            "workload": WORKLOAD, "variant": variant, "config": config, "case": CASE, "kernel": kernel, "launch_index": index,
            "metric": name, "value": float(value), "unit": "%" if name.endswith(("pct", "elapsed", "active")) else "",
        }
        for (variant, config), launches in cells.items()
        for index, (kernel, values) in enumerate(launches)
        for name, value in values.items()
    ]  # fmt: skip


def write_counted(folder: Path, run_id: str = "counted", cells: Mapping[tuple[str, str], Any] = CELLS) -> Path:
    """A synthetic run of the GPU with these counters.

    Returns:
        The folder of the run.
    """
    path = made_runs.write(folder, run_id, rounds=8)
    add(path, "counters", counter_rows(cells))
    return path


def add(path: Path, table: str, found: list[dict[str, Any]]) -> None:
    """Put further rows into a run that is on disk, as a collector would have written them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = path / f"{table}.parquet"
    made = store.conform(table, found)
    pq.write_table(pa.concat_tables([pq.read_table(file), made]) if file.exists() else made, file)


assert {row["metric"] for row in counter_rows()} <= set(metrics.BY_NAME)
assert set(counter_rows()[0]) == set(COUNTERS.arrow.names)
