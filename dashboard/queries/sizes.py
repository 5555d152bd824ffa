"""Every variant over the size axis, and who wins where."""

import pandas as pd

from dashboard.queries.axes import View
from dashboard.queries.run_data import RunData


def sizes(data: RunData, workload: str, view: View, series: str = "") -> pd.DataFrame:
    """Each variant's fastest config at each size of one series.

    Args:
        series: one of `axes.series`, e.g. `perm=210`.

    Returns:
        Rows of `cells` by variant and size_rank with, besides, `size` (e.g. `n=512`), `size_value` (the number of it where the
        axis is one number, else size_rank) and `speedup`, `speedup_low`, `speedup_high`, `verdict` against the baseline.
    """
    raise NotImplementedError


def regions(data: RunData, workload: str, series: str = "") -> pd.DataFrame:
    """Where a size is not limited by memory bandwidth or arithmetic.

    Returns:
        One row a size: `case`, `size`, `size_value`, `size_rank`, `min_bytes`, `floor_ns`, `fits_l2` (min_bytes within the GPU's L2) and `launch_bound`
        (the measured launch latency exceeds the floor); both False where the run has no GPU.
    """
    raise NotImplementedError


def best_per_size(data: RunData, workload: str, view: View, roles: tuple[str, ...] = ("rung", "peer", "host")) -> pd.DataFrame:
    """The winner of every charted case.

    Returns:
        One row a case: `case`, `series`, `size`, `size_rank`, `variant`, `config`, `title`, `median_ns`, `runner_up`, `margin` (runner-up's time over the
        winner's), `margin_low`, `margin_high`, `n` and `tied` (the margin's interval holds 1, or lies within the noise).
    """
    raise NotImplementedError
