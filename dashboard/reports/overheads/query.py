"""Allocation, copies and release as parts of a whole operation."""

from typing import Final

import pandas as pd

from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.run_data import RunData

PARTS: Final = {f"phase:{part}": part for part in ("allocate", "h2d", "compute", "d2h", "free")}


def overheads(data: RunData, workload: str) -> pd.DataFrame:
    """Allocation, copies and release as a part of the whole run of an operation.

    Returns:
        One row a (case, variant, part): `case`, `size_rank`, `params`, `variant`, `title`, `config`, `part` (`allocate`, `h2d`, `compute`,
        `d2h`, `free`), `median_ns`, `low_ns`, `high_ns`, `n` and `fraction` of the sum of the parts. Of each variant the config that
        computes fastest. Empty where the run has no such phases.
    """
    every = cells(data)
    parts = every[(every["workload"] == workload) & every["scope"].isin(PARTS) & every["size_rank"].notna() & (every["n"] > 0)]
    parts = parts[~parts["role"].isin(["ceiling", "specimen"])]
    chosen = best_config(parts[parts["scope"] == "phase:compute"])[["case", "variant", "config", "gpus", "cache"]]
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
