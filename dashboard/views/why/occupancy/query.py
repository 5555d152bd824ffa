"""The occupancy of every launch of a case, and over other registers, shared memory and block sizes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core import counted
from warpladder.dashboard.core.machine_code import Kernel, kernels_by_variant
from warpladder.dashboard.core.numbers import format_percent, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.views.why.machine_code.query import main_launch
from warpladder.data.naming import CellName
from warpladder.data.occupancy import WARP, Limits, Occupancy, Waves, limits_of, occupancy, waves
from warpladder.data.words import joined

#: Of the curve over shared memory.
_SHARED_STEP: Final = 1024
_MOST_REGISTERS: Final = 255  # that the compiler gives a thread


@dataclass(frozen=True)
class Choice:
    """The resources of a kernel: registers of a thread, shared memory and threads of a block."""

    registers: int
    shared_bytes: int
    threads: int


@dataclass(frozen=True)
class Resident:
    """The resources of a kernel, and the blocks that are resident with it.

    Attributes:
        waves: how often the grid fills the GPU; None where no block fits, or the multiprocessors are not known.
    """

    choice: Choice
    occupancy: Occupancy
    waves: Waves | None


@dataclass(frozen=True)
class WhatIf:
    """A kernel as it is and as it would be.

    Attributes:
        curves: by each number of a choice, the occupancy in percent over it (the index), with the other two as they are.
    """

    limits: Limits
    own: Resident
    curves: Mapping[str, "pd.Series[float]"]


def own_choice(kernel: Kernel) -> Choice | None:
    """The resources of a kernel; None where its registers are not known."""
    if kernel.registers is None:
        return None
    return Choice(kernel.registers, kernel.shared_bytes, kernel.threads)


def what_if(kernel: Kernel, capability: str, sms: int) -> WhatIf | None:
    """The occupancy of a launch, and of other values.

    Args:
        capability: of the GPU, such as `9.0`.
        sms: multiprocessors of the GPU; 0 where they are not known.

    Returns:
        None where the limits of the GPU or the registers of the kernel are not known.
    """
    limits, own = limits_of(capability), own_choice(kernel)
    if limits is None or own is None:
        return None
    places: Mapping[str, Sequence[int]] = {
        "registers": range(1, _MOST_REGISTERS + 1),
        "shared_bytes": sorted({*range(0, limits.block_shared_bytes + 1, _SHARED_STEP), own.shared_bytes}),
        "threads": sorted({1, *range(WARP, limits.block_threads + 1, WARP), own.threads}),
    }
    curves = {
        number: pd.Series({place: _of(limits, replace(own, **{number: place})).percent for place in over})
        for number, over in places.items()
    }
    return WhatIf(limits, resident(limits, own, kernel, sms), curves)


def resident(limits: Limits, choice: Choice, kernel: Kernel, sms: int) -> Resident:
    result = _of(limits, choice)
    return Resident(choice, result, waves(kernel.blocks, result.blocks, sms) if result.blocks and sms else None)


def _of(limits: Limits, choice: Choice) -> Occupancy:
    return occupancy(limits, choice.threads, choice.registers, choice.shared_bytes)


# -- a run ---------------------------------------------------------------------------------------------------------------------


def limits_of_run(data: RunData) -> Limits | None:
    """The limits of the GPU of a run; None where they are not known."""
    return limits_of(str(data.info["compute_capability"]))


def sms_of_run(data: RunData) -> int:
    """The multiprocessors of the GPU of a run; 0 where they are not known."""
    count = data.info["sm_count"]
    return int(count) if count and count == count else 0


def launches(data: RunData, workload: str, case: str) -> Iterator[tuple[CellName, Kernel]]:
    """The launches of a case whose registers are known, in the order of the run."""
    for cell, kernels in kernels_by_variant(data.code, workload, case):
        yield from ((cell, kernel) for kernel in kernels if kernel.registers is not None)


RULES: Final = "By NVIDIA's rules for the compute capability, with the largest carve-out of shared memory."


def rows(data: RunData, workload: str, case: str) -> pd.DataFrame:
    """A row for each launch of a case, in the order of the run; empty where the limits of the GPU are not known.

    The columns are `variant`, `config`, `launch_index`, `kernel`, `registers`, `shared_bytes`, `threads`, `blocks` of a multiprocessor,
    `limiter`, `occupancy_percent`, `waves` and `last_wave_percent`.
    """
    limits, sms = limits_of_run(data), sms_of_run(data)
    every = []
    for cell, kernel in launches(data, workload, case):
        if limits and (own := own_choice(kernel)):
            about = {"variant": cell.variant, "config": cell.config, "launch_index": kernel.index, "kernel": kernel.name}
            every.append({**about, **_figures(resident(limits, own, kernel, sms))})
    columns = ["variant", "config", "launch_index", "kernel", "registers", "shared_bytes", "threads", "blocks", "limiter"]
    return pd.DataFrame(every, columns=[*columns, "occupancy_percent", "waves", "last_wave_percent"])


def _figures(state: Resident) -> dict[str, Any]:
    """What a launch has, by the columns of the table."""
    return {
        "registers": state.choice.registers,
        "shared_bytes": state.choice.shared_bytes,
        "threads": state.choice.threads,
        "blocks": state.occupancy.blocks,
        "limiter": ", ".join(state.occupancy.limiters),
        "occupancy_percent": state.occupancy.percent,
        "waves": state.waves.waves if state.waves else float("nan"),
        "last_wave_percent": 100 * state.waves.last_share if state.waves else float("nan"),
    }


def launch_names(data: RunData, workload: str, case: str) -> Mapping[str, tuple[CellName, Kernel]]:
    """The launches of a case by their names: variant, config, and the kernel where the cell has several launches."""
    every = list(launches(data, workload, case))
    cells = [cell for cell, _ in every]
    names: dict[str, tuple[CellName, Kernel]] = {}
    for cell, kernel in every:
        config = f" [{cell.config}]" if cell.config else ""
        launch = f" · {kernel.index + 1}: {kernel.name}" if cells.count(cell) > 1 else ""
        names[f"{cell.variant}{config}{launch}"] = cell, kernel
    return names


def first_name(data: RunData, workload: str, case: str, names: Mapping[str, tuple[CellName, Kernel]]) -> str:
    """The main launch of the fastest rung, as Machine code has it; the first of all where no rung was timed.

    Args:
        names: `launch_names`, not empty.
    """
    timed = counted.times(data, workload, case)
    median_ns = dict(zip(zip(timed["variant"], timed["config"], strict=True), timed["timed_ns"], strict=True))
    rungs = set(data.variants.loc[(data.variants["workload"] == workload) & (data.variants["role"] == "rung"), "variant"])
    times = {name: median_ns.get((cell.variant, cell.config)) for name, (cell, _) in names.items() if cell.variant in rungs}
    known = {name: ns for name, ns in times.items() if ns is not None}
    if not known:
        return next(iter(names))
    cell, _ = names[min(known, key=known.__getitem__)]
    of_cell = {kernel.index: name for name, (each, kernel) in names.items() if each == cell}
    main = data.code.kernels(cell)[main_launch(data, cell)].index
    return of_cell.get(main, next(iter(of_cell.values())))


def limit_clause(state: Resident) -> str:
    """`75 % of the warps, limited by registers`."""
    if not state.occupancy.blocks:
        return f"no block fits, for want of {joined(state.occupancy.limiters)}"
    return f"{format_percent(state.occupancy.percent)} of the warps, limited by {joined(state.occupancy.limiters)}"


def in_words(state: Resident) -> str:
    """`0.97 waves, the last one filled to 97 %`; empty where no block fits."""
    if state.waves is None:
        return ""
    return f"{significant(state.waves.waves)} waves, the last one filled to {format_percent(100 * state.waves.last_share)}"
