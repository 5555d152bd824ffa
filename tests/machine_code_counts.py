"""Counters by instruction, made without a GPU: a run of `machine_code_run` as Nsight Compute would count it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.synthetic import made_sweeps
from warpladder.dashboard.core.machine_code import CellName, Kernel
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.core.sass import Unit
from warpladder.data import store

#: Times that a warp goes through a loop in another one or in none.
TRIPS = 16
WARPS = 1_000


def add(path: Path) -> None:
    """Count each instruction of each launch of a run: once for each warp, and 16 times as often in each loop."""
    data = load(store.open_run(path))
    rows = [
        {**cell._asdict(), "launch_index": kernel.index, "metric": metric, "instruction": place, "value": value}
        for cell in data.code.cells
        for kernel in data.code.kernels(cell)
        for metric, place, value in _counted(cell, kernel)
    ]
    made_sweeps.add(path, "instruction_counters", rows)


def _counted(cell: CellName, kernel: Kernel) -> Iterator[tuple[str, int, Any]]:
    for place, instruction in enumerate(kernel.code.instructions):
        depth = sum(loop.first <= place <= loop.last for loop in kernel.code.loops)
        executed = WARPS * TRIPS**depth
        yield "inst_executed", place, executed
        if place % 3 == 0:
            yield "smsp__pcsamp_sample_count", place, executed // 100
            yield "smsp__pcsamp_warps_issue_stalled_long_scoreboard", place, executed // 150
            yield "smsp__pcsamp_warps_issue_stalled_wait", place, executed // 100 - executed // 150
        if instruction.unit is Unit.GLOBAL:
            yield "memory_l2_theoretical_sectors_global", place, executed * 8
            yield "memory_l2_theoretical_sectors_global_ideal", place, executed * (8 if place % 2 else 4)
        if instruction.unit is Unit.SHARED:
            yield "memory_l1_wavefronts_shared", place, executed * 2
            yield "memory_l1_wavefronts_shared_ideal", place, executed * (2 if place % 2 else 1)
