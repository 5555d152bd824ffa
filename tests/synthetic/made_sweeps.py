"""Runs of 1, 2 and 4 ranks with known times, written through the store. The figures are invented, of the order of an H200's."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from data.schema import TABLES
from data.store import RunWriter, to_json
from tests.synthetic_trace import run_row

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
        return {"end_to_end": compute + out + sync, "phase:compute": compute, "phase:d2h": out}
    return {"end_to_end": max(compute, out) + sync}


def step_ns(variant: str, batch: int, ranks: int, scope: str) -> dict[str, float]:
    """As `generation_ns`, of a training step; overlapping hides two thirds of the allreduce."""
    hidden = 2 / 3 if variant == "v06_overlapped_nccl" else 0.0
    whole = 50_000 + ROW_NS[variant] * batch / ranks + ALLREDUCE_NS[ranks] * (1 - hidden)
    if scope == "device":
        return {"device": whole}
    return {"operation": whole + 10_000} | ({"phase:allreduce": ALLREDUCE_NS[ranks]} if ranks > 1 else {})


def write(data_dir: Path, run_id: str = "scaling", *, rounds: int = 20, seed: int = 3) -> Path:
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


def write_host_run(data_dir: Path, run_id: str = "scaling-host", *, rounds: int = 12, seed: int = 4) -> Path:
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


def row(table: str, **values: Any) -> dict[str, Any]:
    """A row with nothing, zero or an empty text in the other columns."""
    empty = {
        c.name: None if c.nullable else "" if pa.types.is_string(c.type) or pa.types.is_dictionary(c.type) else 0
        for c in TABLES[table].columns
    }
    return {**empty, **values}


def _write(
    data_dir: Path, run_id: str, device: str, samples: list[dict[str, Any]], cases: list[tuple[str, str, int]], more: str = ""
) -> Path:
    cells = dict.fromkeys((s["workload"], s["variant"], s["config"], s["case"]) for s in samples)
    variants = dict.fromkeys((workload, variant) for workload, variant, *_ in cells)
    with RunWriter(data_dir, run_id) as writer:
        facts = {"kind": "recording", "device_name": device, "cpu_name": "Synthetic CPU", "device_count": 4 if device else 0}
        writer.append("run", [run_row(run_id, run_id) | facts])
        writer.append("variants", [
            row("variants", workload=workload, variant=name, title=_TITLES[name], source_text="",
                kind="cuda" if device else "host", role="rung" if device else "host", rung=int(name[1:3]) if device else None,
                precision="tf32" if name == "v12_wgmma" else "fp32")
            for workload, name in variants
        ])  # fmt: skip
        writer.append("ceilings", [
            row("ceilings", name=f"nccl_allreduce_{GRADIENT_BYTES}_bytes", device=f"{ranks} GPUs", value=value, unit="us")
            for ranks, value in NCCL_US.items() if device
        ])  # fmt: skip
        writer.append("cases", [
            row("cases", workload=workload, case=f"{axis}={number}{more}", size_rank=rank, flops=1000 * number, min_bytes=number,
                d2h_bytes=GRADIENT_BYTES if axis == "batch" else IMAGE_BYTES * number,
                params=to_json({axis: number} | ({"channels": 64} if more else {})))
            for rank, (workload, axis, number) in enumerate(cases)
        ])  # fmt: skip
        writer.append("results", [
            row("results", workload=workload, variant=variant, config=config, case=case, status="ok", rel_l2_error=1e-7, tolerance=2e-6)
            for workload, variant, config, case in cells
        ])  # fmt: skip
        writer.append("samples", samples)
        return writer.commit()
