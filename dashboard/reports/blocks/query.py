"""How much the block size matters."""

import re
from typing import Final

import pandas as pd

from warpladder.dashboard.core.axes import Timing, timings
from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.run_data import Copy, RunData

_BLOCK_CONFIG: Final = re.compile(r"block=(\d+)")


def block_sensitivity(data: RunData, workload: str) -> pd.DataFrame:
    """How much the block size matters.

    Returns:
        Rows of `cells` of the rungs that were measured with several configs `block=N`, in the first view, with `block` (N) and
        `relative`: time over that of the fastest block, paired by round (+`relative_low`, `relative_high`).
    """
    found = timings(data, workload)
    every = cells(data)
    view = found[0] if found else Timing("", "")
    rows = every[
        (every["workload"] == workload) & (every["scope"] == view.scope) & (every["cache"] == view.cache)
        & (every["n"] > 0) & every["size_rank"].notna() & every["config"].str.fullmatch(_BLOCK_CONFIG.pattern)
    ]  # fmt: skip
    rows = rows[rows.groupby(["variant", "case"])["config"].transform("nunique") > 1]
    rows = rows.assign(block=rows["config"].str.extract(_BLOCK_CONFIG.pattern, expand=False).astype(int))
    fastest = (
        rows.loc[rows.groupby(["variant", "case"])["median_ns"].idxmin()].set_index(["variant", "case"])["config"].to_dict()
    )
    ratios = []
    for row in rows.to_dict("records"):
        rounds = data.rounds(workload, row["case"], view.scope, view.cache)
        best = Copy(row["variant"], fastest[row["variant"], row["case"]], int(row["gpus"]), 0)
        ratios.append(paired_ratio(rounds[best._replace(config=row["config"])], rounds[best])[:3])
    relative = pd.DataFrame(ratios, columns=["relative", "relative_low", "relative_high"], index=rows.index, dtype=float)
    return rows.join(relative).sort_values(["rung", "size_rank", "block"], kind="stable").reset_index(drop=True)
