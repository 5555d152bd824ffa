"""The source reports' own tables as charts."""

import pandas as pd

from dashboard.charts.template import Chart, Look


def bank_conflicts(frame: pd.DataFrame, look: Look) -> Chart:
    """Heat map of `queries.extras.bank_conflict_table`."""
    raise NotImplementedError


def overheads(frame: pd.DataFrame, look: Look) -> Chart:
    """Stacked shares of `queries.extras.overheads`, not empty."""
    raise NotImplementedError


def block_sensitivity(frame: pd.DataFrame, look: Look) -> Chart:
    """Time over block size of `queries.extras.block_sensitivity`, not empty."""
    raise NotImplementedError


def with_and_without_copies(frame: pd.DataFrame, look: Look) -> Chart:
    """Speedup over the sequential host code with the copies and without, of `queries.extras.with_and_without_copies`, not empty."""
    raise NotImplementedError
