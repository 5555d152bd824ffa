"""The ladder of one case as bars."""

import pandas as pd

from dashboard.charts.template import Chart, Look


def ladder(frame: pd.DataFrame, look: Look) -> Chart:
    """Horizontal bars, rung by rung, with 95 % intervals, the gain of each step, the floor as a line, ceiling and peers apart.

    Args:
        frame: `queries.ladder.ladder` with at least one cell that has samples.
    """
    raise NotImplementedError
