"""Rows of `energy` with known figures: power and time of a loop by variant. The figures are invented."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.synthetic.made_sweeps import add
from warpladder.data import store

IDLE_W = 124.0
LOOP_S = 1.05
CLOCK_MHZ = 1755.0


def millijoules(watts: float, execution_ns: float) -> float:
    """What an execution takes above idle."""
    return (watts - IDLE_W) * execution_ns * 1e-6


def rows(
    workload: str,
    case: str,
    loops: Mapping[tuple[str, str], tuple[float, float]],
    baseline: str,
    *,
    rounds: int = 6,
    noise: float = 0.002,
    seed: int = 0,
    clocks_mhz: Mapping[str, float | None] = {},
) -> list[dict[str, Any]]:
    """Rows of `energy` of a case.

    Args:
        loops: watts in the loop and nanoseconds of an execution, by variant and config.
        baseline: the variant that has a twin.
        noise: standard deviation of the power of a loop, as a share of it.
        clocks_mhz: clocks held, by variant; `CLOCK_MHZ` for others.
    """
    rng = np.random.default_rng(seed)
    entries = [(key, twin) for key in loops for twin in ((0, 1) if key[0] == baseline else (0,))]
    return [
        {
            "workload": workload,
            "variant": variant,
            "config": config,
            "case": case,
            "twin": twin,
            "round": number,
            "energy_mj": round(loops[variant, config][0] * (1 + rng.normal(0, noise)) * LOOP_S * 1000),
            "duration_ns": round(LOOP_S * 1e9),
            "execution_ns": loops[variant, config][1],
            "idle_w": IDLE_W,
            "held_clock_mhz": clocks_mhz.get(variant, CLOCK_MHZ),
            "sm_clock_mhz": 1965,
            "temperature_c": 51,
            "power_w": loops[variant, config][0],
            "throttle_reasons": 0,
        }
        for number in range(rounds)
        for (variant, config), twin in entries
    ]


def add_to(path: Path, workload: str = "conv2d") -> None:
    """Add energies to a run that is on disk, for the fastest config of each variant of a GPU at each case: a loop takes its cold median, and
    later rungs draw more power."""
    run = store.open_run(path)
    samples = run.table("samples").query(
        "workload == @workload and scope == 'device' and cache == 'cold' and twin == 0 and gpus == 1"
    )
    medians = samples.groupby(["case", "variant", "config"], observed=True)["duration_ns"].median().reset_index()
    best = medians.sort_values("duration_ns", kind="stable").drop_duplicates(["case", "variant"])
    order = {row["variant"]: number for number, row in enumerate(run.records("variants"))}
    for number, (case, group) in enumerate(best.groupby("case", sort=False)):
        cells = group.sort_values("variant", key=lambda names: names.map(order))
        loops = {
            (row.variant, row.config): (400.0 + 20 * order[row.variant], float(row.duration_ns)) for row in cells.itertuples()
        }
        add(path, "energy", rows(workload, str(case), loops, "v01_naive", seed=number))
