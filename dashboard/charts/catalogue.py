"""All charts of a run."""

from collections.abc import Iterator

from dashboard.charts.template import Chart, Theme
from dashboard.queries.run_data import RunData


def charts_of(data: RunData, theme: Theme = "light") -> Iterator[Chart]:
    """Every chart that the run has the data for, in the order of the pages."""
    raise NotImplementedError
