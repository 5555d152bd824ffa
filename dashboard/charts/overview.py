"""Percent of the floor by workload."""

import pandas as pd

from dashboard.charts.template import Chart, Look


def percent_of_floor(frame: pd.DataFrame, look: Look) -> Chart:
    """Best rung, best peer and baseline of each workload, as a share of what the device measurably can do.

    Args:
        frame: `queries.overview.overview`, not empty.
    """
    raise NotImplementedError
