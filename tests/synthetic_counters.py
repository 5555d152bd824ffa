"""A run with counters counted by hand: one case of one workload, of variants that are bound by different things."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests import synthetic_run
from warpladder.data import metrics, store
from warpladder.data.schema import COUNTERS

WORKLOAD, CASE = "tensor_transpose", "n=512,perm=210"
MIN_BYTES = 8 * 512**3


def percents(compute: float, memory: float, dram: float, l2: float, l1: float) -> dict[str, float]:
    names = (metrics.COMPUTE, metrics.MEMORY, metrics.DRAM, metrics.L2, metrics.L1)
    return dict(zip(names, (compute, memory, dram, l2, l1), strict=True))


def limits(registers: float, shared: float, warps: float, blocks: float) -> dict[str, float]:
    return dict(zip(metrics.LIMITS, (registers, shared, warps, blocks, 32.0), strict=True))


def stalls(**cycles: float) -> dict[str, float]:
    return {metrics.stall_metric(reason): cycles.get(reason, 0.0) for reason in metrics.STALLS}


def memory(read: float, write: float, load_sectors: float, store_sectors: float, conflicts: float) -> dict[str, float]:
    """For 1000 requests and 2000 wavefronts each way."""
    return {
        metrics.DRAM_READ: read, metrics.DRAM_WRITE: write, metrics.LOAD_REQUESTS: 1000.0, metrics.LOAD_SECTORS: load_sectors,
        metrics.STORE_REQUESTS: 1000.0, metrics.STORE_SECTORS: store_sectors, metrics.LOAD_WAVEFRONTS: 2000.0,
        metrics.LOAD_CONFLICTS: 0.0, metrics.STORE_WAVEFRONTS: 2000.0, metrics.STORE_CONFLICTS: conflicts, metrics.L1_HIT: 12.5,
        metrics.L2_HIT: 48.0,
    }  # fmt: skip


def launch(achieved: float, theoretical: float, registers: float, waves: float) -> dict[str, float]:
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
            {metrics.TIME: 250_000.0, **percents(20, 93, 93, 60, 30), **limits(32, 32, 8, 32), **memory(HALF, HALF, 16e3, 16e3, 0)}
            | launch(90, 100, 20, 15.5) | stalls(selected=1, long_scoreboard=30, wait=3),
        )
    ],
    ("v01_simple", ""): [
        (
            "simple",
            # 32 sectors a load of a warp: each thread touches a sector of its own. 40 of 50 cycles wait for memory.
            {metrics.TIME: 900_000.0, **percents(12, 45, 40, 44, 38), **limits(16, 32, 8, 32), **memory(4 * HALF, HALF, 32e3, 4e3, 0)}
            | launch(60, 100, 16, 15.5) | stalls(selected=1, not_selected=1, long_scoreboard=40, lg_throttle=6, wait=2),
        )
    ],
    ("v03_shared", ""): [
        (
            "shared",
            # 500 of 2000 wavefronts of stores are conflicts; registers allow 3 blocks, less than anything else.
            {metrics.TIME: 400_000.0, **percents(30, 72, 55, 50, 71), **limits(3, 6, 8, 32), **memory(HALF, HALF, 4e3, 4e3, 500)}
            | launch(30, 37.5, 80, 41) | stalls(selected=1, short_scoreboard=9, barrier=6, long_scoreboard=4),
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


def rows(cells: Mapping[tuple[str, str], Any] = CELLS) -> list[dict[str, Any]]:
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


def write(folder: Path, run_id: str = "counted", cells: Mapping[tuple[str, str], Any] = CELLS) -> Path:
    """A synthetic run of the GPU with these counters.

    Returns:
        The folder of the run.
    """
    path = synthetic_run.write(folder, run_id, rounds=8)
    add(path, "counters", rows(cells))
    return path


def add(path: Path, table: str, found: list[dict[str, Any]]) -> None:
    """Put further rows into a run that is on disk, as a collector would have written them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = path / f"{table}.parquet"
    made = store.conform(table, found)
    pq.write_table(pa.concat_tables([pq.read_table(file), made]) if file.exists() else made, file)


assert {row["metric"] for row in rows()} <= set(metrics.BY_NAME)
assert set(rows()[0]) == set(COUNTERS.arrow.names)
