"""Variants over the size axis."""

from typing import Literal

import pandas as pd

from dashboard.charts.template import Chart, Look

Metric = Literal["median_ns", "gb_per_s", "gflop_per_s", "speedup", "percent_of_floor"]


def over_size(frame: pd.DataFrame, regions: pd.DataFrame, look: Look, metric: Metric = "median_ns") -> Chart:
    """One line a variant over size, log axes, with intervals; sizes that fit L2 or are launch-bound are shaded.

    Args:
        frame: `queries.sizes.sizes`, not empty.
        regions: `queries.sizes.regions` of the same workload and series.
    """
    raise NotImplementedError


def best_strip(frame: pd.DataFrame, look: Look, workload: str, measured: str) -> Chart:
    """The winner of every case as a strip of coloured tiles, one row a series.

    Args:
        frame: `queries.sizes.best_per_size`, not empty.
        measured: label of the view, e.g. `View.label`.
    """
    raise NotImplementedError
