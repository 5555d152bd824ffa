"""The shares of allocation, copies and release in a whole operation."""

from typing import Final

import pandas as pd

from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.names import PHASE, Phase

PARTS: Final = {phase: phase.removeprefix(PHASE) for phase in (Phase.ALLOCATE, Phase.H2D, Phase.COMPUTE, Phase.D2H, Phase.FREE)}


def overheads(data: RunData, workload: str) -> pd.DataFrame:
    """The times and shares of allocation, copies, computation and release in an end-to-end operation.

    Returns:
        One row for each (case, variant, part), with the config that computes fastest. Empty where the run has no such phases.
        The columns are `case`, `size_rank`, `params`, `variant`, `title`, `config`, `median_ns`, `low_ns`, `high_ns`, `n`, and

        - `part`: `allocate`, `h2d`, `compute`, `d2h` or `free`;
        - `fraction`: the median over the sum of the medians of all parts.
    """
    every = cells(data)
    parts = every[(every["workload"] == workload) & every["scope"].isin(PARTS) & every["size_rank"].notna() & (every["n"] > 0)]
    parts = parts[~parts["role"].isin(["ceiling", "specimen"])]
    chosen = best_config(parts[parts["scope"] == Phase.COMPUTE])[["case", "variant", "config", "gpus", "cache"]]
    parts = parts.merge(chosen)
    parts["part"] = parts["scope"].map(PARTS)
    parts["fraction"] = parts["median_ns"] / parts.groupby(["case", "variant"])["median_ns"].transform("sum")
    columns = [
        "case",
        "size_rank",
        "params",
        "variant",
        "title",
        "config",
        "part",
        "median_ns",
        "low_ns",
        "high_ns",
        "n",
        "fraction",
    ]
    return parts.sort_values(["size_rank", "case", "variant"], kind="stable")[columns].reset_index(drop=True)
