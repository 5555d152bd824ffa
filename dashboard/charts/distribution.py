"""The samples of one cell, to believe its median."""

import pandas as pd

from dashboard.charts.template import Chart, Look


def samples_over_rounds(samples: pd.DataFrame, look: Look) -> Chart:
    """Every sample over the rounds, with median and interval, and the distribution beside it.

    Args:
        samples: rows of table `samples` of one cell, twins (twin = 1) marked apart; not empty.
    """
    raise NotImplementedError
