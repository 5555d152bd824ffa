"""The occupancy of every launch of a case, as rows and as sentences."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core import counted, what_if
from warpladder.dashboard.core.machine_code import Kernel
from warpladder.dashboard.core.numbers import format_percent, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.naming import CellName

RULES: Final = (
    "By NVIDIA's rules for the compute capability, with the largest carve-out of shared memory. Another block size has a grid with as "
    "many threads."
)


def rows(data: RunData, workload: str, case: str) -> pd.DataFrame:
    """A row for each launch of a case, in the order of the run; empty where the limits of the GPU are not known.

    The columns are `variant`, `config`, `launch_index`, `kernel`, `registers`, `shared_bytes`, `threads`, `blocks` of a multiprocessor,
    `limiter`, `occupancy_percent`, `waves` and `last_wave_percent`.
    """
    limits, sms = what_if.limits_of_run(data), what_if.sms_of_run(data)
    every = []
    for cell, kernel in what_if.launches(data, workload, case):
        if limits and (own := what_if.own_choice(kernel)):
            about = {"variant": cell.variant, "config": cell.config, "launch_index": kernel.index, "kernel": kernel.name}
            every.append({**about, **_figures(what_if.resident(limits, own, kernel, sms))})
    columns = ["variant", "config", "launch_index", "kernel", "registers", "shared_bytes", "threads", "blocks", "limiter"]
    return pd.DataFrame(every, columns=[*columns, "occupancy_percent", "waves", "last_wave_percent"])


def _figures(state: what_if.Resident) -> dict[str, Any]:
    """What a choice gives, by the columns of both tables."""
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
    every = list(what_if.launches(data, workload, case))
    cells = [cell for cell, _ in every]
    names: dict[str, tuple[CellName, Kernel]] = {}
    for cell, kernel in every:
        config = f" [{cell.config}]" if cell.config else ""
        launch = f" · {kernel.index + 1}: {kernel.name}" if cells.count(cell) > 1 else ""
        names[f"{cell.variant}{config}{launch}"] = cell, kernel
    return names


def first_name(data: RunData, workload: str, case: str, names: Mapping[str, tuple[CellName, Kernel]]) -> str:
    """The first launch of the fastest rung; the first of all where no rung was timed.

    Args:
        names: `launch_names`, not empty.
    """
    timed = counted.times(data, workload, case)
    median_ns = dict(zip(zip(timed["variant"], timed["config"], strict=True), timed["timed_ns"], strict=True))
    rungs = set(data.variants.loc[(data.variants["workload"] == workload) & (data.variants["role"] == "rung"), "variant"])
    times = {name: median_ns.get((cell.variant, cell.config)) for name, (cell, _) in names.items() if cell.variant in rungs}
    known = {name: ns for name, ns in times.items() if ns is not None}
    return min(known, key=known.__getitem__, default=next(iter(names)))


def answer(result: what_if.WhatIf, name: str) -> str:
    """One sentence on what limits the resident warps, and on what the other choice gives."""
    other = f"; the other choice: {limit_clause(result.changed)}" if differs(result) else ""
    return f"{name}: {limit_clause(result.own)}{other}"


def limit_clause(state: what_if.Resident) -> str:
    """`75 % of the warps, limited by registers`."""
    if not state.occupancy.blocks:
        return f"no block fits, for want of {listed(state.occupancy.limiters)}"
    return f"{format_percent(state.occupancy.percent)} of the warps, limited by {listed(state.occupancy.limiters)}"


def listed(names: Sequence[str]) -> str:
    """`registers and warps`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def differs(result: what_if.WhatIf) -> bool:
    """Whether the other choice is another one."""
    return result.own.choice != result.changed.choice


def compared(result: what_if.WhatIf) -> pd.DataFrame:
    """The variant's own choice and the other one, a row each; one row where they are equal."""
    states = {"as it is": result.own, **({"other choice": result.changed} if differs(result) else {})}
    return pd.DataFrame({"choice": name, **_figures(state)} for name, state in states.items())


def in_words(state: what_if.Resident) -> str:
    """`0.97 waves, the last one filled to 97 %`; empty where no block fits."""
    if state.waves is None:
        return ""
    return f"{significant(state.waves.waves)} waves, the last one filled to {format_percent(100 * state.waves.last_share)}"
