"""Every variant over the size axis, and who wins where."""

import pandas as pd

from warpladder.dashboard.core.axes import Timing, charted_cases
from warpladder.dashboard.core.compare import with_speedups
from warpladder.dashboard.core.floors import add_floors, ceiling
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.winners import best_of_charted


def sizes(data: RunData, workload: str, view: Timing, series: str = "") -> pd.DataFrame:
    """Each variant's fastest config at each size of one series.

    Args:
        series: one of `axes.series`, e.g. `perm=210`.

    Returns:
        Rows of `cells` by variant and size_rank with, besides, `size` (e.g. `n=512`), `size_value` (the number of it where the
        axis is one number, else size_rank) and `speedup`, `speedup_low`, `speedup_high`, `verdict` against the baseline. Specimens
        are left out: what they show is an error, not a time.
    """
    best = best_of_charted(data, workload, view)
    best = best[(best["series"] == series) & (best["role"] != "specimen")]
    frame = with_speedups(data, workload, view, best.reset_index(drop=True))
    place = {name: number for number, name in enumerate(data.variants.loc[data.variants["workload"] == workload, "variant"])}
    return (
        frame.assign(place=frame["variant"].map(place))
        .sort_values(["place", "size_rank"], kind="stable")
        .drop(columns="place")
        .reset_index(drop=True)
    )


def regions(data: RunData, workload: str, series: str = "") -> pd.DataFrame:
    """Where a size is not limited by memory bandwidth or arithmetic.

    Returns:
        One row a size: `case`, `size`, `size_value`, `size_rank`, `min_bytes`, `floor_ns` (of fp32 on one GPU), `fits_l2`
        (min_bytes known and within the GPU's L2) and `launch_bound` (the measured launch latency exceeds the floor); both False where the
        run has no GPU.
    """
    cases = charted_cases(data, workload)
    cases = cases[cases["series"] == series].drop_duplicates("size").reset_index(drop=True)
    floors = add_floors(cases.assign(kind="cuda", precision="fp32", gpus=1, scope="device"), data)
    l2_bytes = data.info["l2_bytes"] or 0
    launch_ns = 1000 * ceiling(data, "launch", on_gpu=True)
    columns = ["case", "size", "size_value", "size_rank", "min_bytes", "floor_ns"]
    return floors[columns].assign(fits_l2=floors["min_bytes"].between(1, l2_bytes), launch_bound=floors["floor_ns"] < launch_ns)
